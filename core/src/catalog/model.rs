//! The data of a GPU model: what it is, how it can be cut, and how well each
//! figure is known. The same types read the built-in catalog, a user's document
//! and a device's own listing.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::Power;

/// A GPU model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Stable id, for example `a100-80gb`.
    pub id: String,
    /// Marketing name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Architecture, for example `Hopper`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// CUDA compute capability, `major.minor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// Names as the driver prints them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub product_names: Vec<String>,
    /// PCI device ids (vendor 10DE).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pci: Vec<PciId>,
    /// Memory in the product's name, in decimal or binary gigabytes: a label, not a size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_gb: Option<u32>,
    /// Usable memory of the whole GPU in MiB, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Compute slices of the GPU (7 on A100, 4 on A30).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_slices: Option<u16>,
    /// Cells of the placement axis (8 on A100, 12 on RTX PRO 6000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_slices: Option<u16>,
    /// Most GPU instances at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gpu_instances: Option<u16>,
    /// Streaming multiprocessors of the whole GPU outside MIG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_full_gpu: Option<u16>,
    /// Streaming multiprocessors of the full-size MIG profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_mig_total: Option<u16>,
    /// Engines that instances share out; an absent pool does not constrain.
    #[serde(default)]
    pub engine_pool: EnginePool,
    /// How well the placements are known.
    #[serde(default)]
    pub placements_status: PlacementsStatus,
    /// Whether switching MIG mode resets the GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_change_needs_gpu_reset: Option<bool>,
    /// Profiles that older drivers refuse together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_together: Vec<RefusedTogether>,
    /// GPU-instance profiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profile>,
    /// Equal shares the whole GPU can be cut into, one type at a time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub share_types: Vec<ShareType>,
    /// Compute modes of an AMD GPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_modes: Vec<PartitionMode>,
    /// Memory mode of an AMD GPU as it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mode: Option<String>,
    /// Watts; absent ones are the built-in ones of the id, where known.
    #[serde(default, skip_serializing_if = "Power::is_unknown")]
    pub power: Power,
    /// Remarks of the catalog.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Keys into the catalog's table of sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Sources that disagree, as JSON text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
}

/// A PCI device id of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PciId {
    /// Device id, four hex digits.
    pub device: String,
    /// Subsystem ids that narrow it, four hex digits each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subsystems: Vec<String>,
    /// Product name that goes with the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Engines of the whole GPU that instances share out. `None`: not known, so not a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EnginePool {
    /// Video decoders (NVDEC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoders: Option<u16>,
    /// Video encoders (NVENC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoders: Option<u16>,
    /// JPEG engines (NVJPG).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jpeg: Option<u16>,
    /// Optical-flow accelerators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ofa: Option<u16>,
}

/// How well a model's placements are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PlacementsStatus {
    /// Printed by a driver for this model or a sibling.
    Published,
    /// Taken from the family's rule.
    Derived,
    /// Not known: they must come from the device's own listing.
    #[default]
    Unknown,
}

/// Which media engines a profile carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Media {
    /// None at all (`-me`).
    None,
    /// What comes with its slices.
    #[default]
    Default,
    /// At least one of each engine (`+me`).
    OneFullSet,
    /// All engines of the GPU (`+me.all`).
    All,
}

/// How well a profile's figures are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProfileStatus {
    /// Every figure was printed by a driver.
    Published,
    /// Some figures were; the others are absent.
    PartlyPublished,
    /// Some figures follow from a rule.
    PartlyDerived,
    /// Only counts and engines, from the vendor's guide.
    GuideTable,
    /// Only the name was seen.
    NamesOnly,
    /// Read from the device itself.
    Device,
    /// Written by the user.
    #[default]
    User,
}

/// Where a profile may start, and how many cells it covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Placements {
    /// Legal first cells, rising.
    pub starts: Vec<u16>,
    /// Cells covered from the start.
    pub size: u16,
}

/// A GPU-instance profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Display name, for example `3g.40gb`. Not an identity: drivers round differently.
    pub name: String,
    /// The ID column of `nvidia-smi mig -lgip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// NVML's enum value, a different number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvml_id: Option<u32>,
    /// Compute slices.
    pub compute_slices: u16,
    /// Cells covered on the placement axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_slices: Option<u16>,
    /// Memory in GiB as the driver prints it: two decimals, cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<String>,
    /// Memory in MiB as NVML gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// The same figure from other drivers, in GiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_gib_other: Vec<String>,
    /// Streaming multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm: Option<u16>,
    /// Copy engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_engines: Option<u16>,
    /// Video decoders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoders: Option<u16>,
    /// Video encoders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoders: Option<u16>,
    /// JPEG engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jpeg: Option<u16>,
    /// Optical-flow accelerators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ofa: Option<u16>,
    /// Media attribute.
    #[serde(default)]
    pub media: Media,
    /// Graphics-capable (`+gfx`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub gfx: bool,
    /// Most instances of this profile on one GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_instances: Option<u16>,
    /// Legal placements; absent where no source has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placements: Option<Placements>,
    /// Least driver major version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_driver: Option<u32>,
    /// How well the figures are known.
    #[serde(default)]
    pub status: ProfileStatus,
    /// Keys into the catalog's table of sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Remark of the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Compute-instance profiles inside this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compute_instances: Vec<ComputeProfile>,
    /// Cells of the axis inside an instance; absent: its compute slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner_cells: Option<u16>,
}

/// A compute-instance profile inside a GPU instance; starts are compute slices of the instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ComputeProfile {
    /// Display name, for example `1c.3g.40gb`.
    pub name: String,
    /// The ID column of `nvidia-smi mig -lcip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Compute slices.
    pub compute_slices: u16,
    /// Most at once inside one instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_instances: Option<u16>,
    /// Legal placements inside the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placements: Option<Placements>,
    /// Streaming multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm: Option<u16>,
    /// The one that `-C` creates.
    #[serde(default, skip_serializing_if = "is_false")]
    pub default: bool,
}

/// Profiles that a driver refuses to hold together on one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RefusedTogether {
    /// Names of the profiles, all of which must be present for the refusal.
    pub profiles: Vec<String>,
    /// First driver major version that accepts them.
    pub before_driver: u32,
}

/// An equal share of a whole GPU: a GPU that holds shares of one size takes no other size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ShareType {
    /// Type name, asked for like a profile.
    pub name: String,
    /// Most of this type on one GPU.
    pub max_per_gpu: u16,
    /// Memory of one share in MiB, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// What the size is called: types of one size may be on a GPU together. Absent: the
    /// type goes with no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
}

impl ShareType {
    /// The size that locks the GPU.
    pub fn size_name(&self) -> &str {
        self.size.as_deref().unwrap_or(&self.name)
    }
}

/// A way to partition an AMD Instinct GPU: equal parts under one compute mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PartitionMode {
    /// Compute mode: `SPX`, `DPX`, `TPX`, `QPX`, `CPX`.
    pub compute_mode: String,
    /// Partitions of the GPU.
    pub partitions: u16,
    /// Memory modes that go with it: `NPS1`, `NPS2`, `NPS4`.
    pub memory_modes: Vec<String>,
    /// Memory of one partition in MiB, as the vendor prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Compute units of one partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_units: Option<u16>,
    /// Memory modes that the vendor has validated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validated: Vec<String>,
    /// Remark of the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Keys into the table of sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl Profile {
    /// Cells of the axis inside an instance.
    pub fn cells_inside(&self) -> u16 {
        self.inner_cells.unwrap_or(self.compute_slices)
    }
    /// Memory in MiB: the published figure, else the printed GiB cut down to whole MiB,
    /// which is never more than the instance has. `None` where neither is known.
    pub fn memory_mib_least(&self) -> Option<u32> {
        self.memory_mib.or_else(|| self.memory_gib.as_deref().and_then(mib_of_printed_gib))
    }
    /// The attributes that identify a profile across drivers and models.
    pub fn shape(&self) -> (u16, Option<u16>, Media, bool) {
        (self.compute_slices, self.memory_slices, self.media, self.gfx)
    }
}

impl Model {
    /// Usable memory in MiB: as declared, else that of the full-size profile.
    pub fn memory_mib_least(&self) -> Option<u32> {
        self.memory_mib.or_else(|| self.profiles.iter().filter_map(Profile::memory_mib_least).max())
    }
    /// Whether MIG layouts can be computed for this model.
    pub fn has_placements(&self) -> bool {
        self.profiles.iter().any(|p| p.placements.is_some())
    }
    /// The plain profiles: default engines, no graphics, and the least memory for
    /// their compute slices.
    pub fn is_base(&self, profile: &Profile) -> bool {
        self.is_plain(profile)
            && self
                .profiles
                .iter()
                .filter(|p| self.is_plain(p) && p.compute_slices == profile.compute_slices)
                .all(|p| p.memory_slices >= profile.memory_slices)
    }
    /// Default engines and no graphics: base profiles and the double-memory ones.
    pub fn is_plain(&self, profile: &Profile) -> bool {
        profile.media == Media::Default && !profile.gfx
    }
}

/// `"9.62"` GiB as MiB, rounded down. The printed figure is itself cut off.
fn mib_of_printed_gib(text: &str) -> Option<u32> {
    let (whole, frac) = text.split_once('.').unwrap_or((text, "0"));
    let frac = match frac.len() {
        0 => 0,
        1 => frac.parse::<u32>().ok()?.checked_mul(10)?,
        2 => frac.parse::<u32>().ok()?,
        _ => return None,
    };
    let hundredths = whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(frac)?;
    Some(hundredths.checked_mul(1024)? / 100)
}

#[cfg(test)]
mod tests {
    use super::mib_of_printed_gib;
    use rstest::rstest;

    #[rstest]
    #[case("9.75", Some(9984))]
    #[case("39.50", Some(40448))]
    #[case("4.75", Some(4864))]
    #[case("9.62", Some(9850))]
    #[case("", None)]
    #[case("x.1", None)]
    #[case("4294967295.99", None)]
    fn printed_gib_is_cut_to_mib(#[case] text: &str, #[case] mib: Option<u32>) {
        assert_eq!(mib_of_printed_gib(text), mib);
    }
}
