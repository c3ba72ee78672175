//! vGPU boards and their types: what a board can be cut into when a hypervisor's vGPU
//! manager runs it. The same types read the built-in data and a user's document.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::{ComputeProfile, Model, Placements, ShareType};
use crate::error::{Fault, InputError};

/// vGPUs on one GPU at most, and on one that cannot time-slice inside MIG instances
/// (driver 595).
const VGPUS_MAX: u16 = 48;
const VGPUS_MAX_BEFORE_BLACKWELL: u16 = 32;
/// vGPUs inside one GPU instance at most (driver 595).
const VGPUS_PER_INSTANCE_MAX: u16 = 12;

/// A board as the vGPU manager knows it: one GPU, even where a card carries several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// What the names of its types begin with.
    pub prefix: String,
    /// Marketing name.
    pub name: String,
    /// Architecture, for example `Ada`.
    pub architecture: String,
    /// Framebuffer in the vendor's gigabytes.
    pub framebuffer_gb: u32,
    /// PCI device id, four hex digits, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_device: Option<String>,
    /// Id of the GPU model; several boards may be of one model.
    pub model: String,
    /// Whether vGPUs of several sizes may share the GPU.
    #[serde(default, skip_serializing_if = "is_false")]
    pub mixed_size: bool,
    /// Remark of the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The types.
    pub types: Vec<VgpuType>,
}

/// What a vGPU type is cut from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Backing {
    /// The GPU as a whole, shared in time.
    #[default]
    TimeSliced,
    /// A GPU instance.
    Mig,
}

/// How well a type's numbers are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VgpuStatus {
    /// Counts from the vendor's tables; placement ids follow from the driver's rule and
    /// agree with them.
    Published,
    /// No documented mixed-size count to hold the derived placement ids against.
    Derived,
    /// The documented mixed-size count and the driver's rule differ: the smaller one holds.
    Uncertain,
    /// The GPU instance behind the type is not known.
    Unknown,
}

/// A vGPU type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VgpuType {
    /// Name, for example `L40S-12Q`.
    pub name: String,
    /// Series: `C` compute, `Q` workstation.
    pub series: String,
    /// Graphics on a MIG-backed type.
    #[serde(default, skip_serializing_if = "is_false")]
    pub gfx: bool,
    /// What it is cut from.
    #[serde(default)]
    pub backing: Backing,
    /// Framebuffer in MiB by the vendor's tables, where seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framebuffer_mib: Option<u32>,
    /// The number in the name: types of one number are of one size.
    pub nominal_gb: u32,
    /// Most on one GPU, all of this size.
    pub max_per_gpu: u16,
    /// Most on one GPU beside other sizes, where documented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_gpu_mixed_size: Option<u16>,
    /// Where it may lie in the framebuffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<VgpuPlacement>,
    /// Name of the GPU-instance profile behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gi_profile: Option<String>,
    /// The profile was taken from the type's name.
    #[serde(default, skip_serializing_if = "is_false")]
    pub gi_profile_derived: bool,
    /// Compute slices of that instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gi_compute_slices: Option<u16>,
    /// Most inside one GPU instance; absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_gpu_instance: Option<u16>,
    /// Sources that disagree, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
    /// Keys into the table of sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// Placement ids on the framebuffer, in the vendor's gigabytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VgpuPlacement {
    /// Size of the region.
    pub region: u16,
    /// What one vGPU covers.
    pub size: u16,
    /// Ids beside other sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixed_size_ids: Option<Vec<u16>>,
    /// Ids among equal sizes; older GPUs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal_size_ids: Option<Vec<u16>>,
}

impl VgpuType {
    /// Whether it shares the GPU in time.
    pub fn is_time_sliced(&self) -> bool {
        self.backing == Backing::TimeSliced
    }
    /// Most of it beside other sizes: the documented number, and no more than there are
    /// placement ids. `None` where it has none.
    pub fn mixed_size_max(&self) -> Option<u16> {
        let ids = self.placement.as_ref()?.mixed_size_ids.as_ref()?.len();
        let ids = u16::try_from(ids).unwrap_or(u16::MAX);
        Some(self.max_per_gpu_mixed_size.map_or(ids, |documented| documented.min(ids)))
    }
    /// How well its numbers are known.
    pub fn status(&self) -> VgpuStatus {
        let ids = self.placement.as_ref().and_then(|p| p.mixed_size_ids.as_ref()).map(Vec::len);
        match (self.backing, self.max_per_gpu_mixed_size, ids) {
            (Backing::Mig, ..) if self.gi_profile.is_none() => VgpuStatus::Unknown,
            (Backing::Mig, ..) if self.gi_profile_derived => VgpuStatus::Derived,
            (Backing::TimeSliced, Some(documented), Some(ids)) if usize::from(documented) != ids => {
                VgpuStatus::Uncertain
            }
            (Backing::TimeSliced, None, Some(_)) => VgpuStatus::Derived,
            _ => VgpuStatus::Published,
        }
    }
    /// What its size is called; types of one size may share a GPU whatever their series.
    fn size_name(&self) -> String {
        alloc::format!("{} GB", self.nominal_gb)
    }
}

impl Board {
    /// Checks a board of a user's document.
    ///
    /// # Errors
    /// A type named twice, a count of zero, placement ids past the region or not rising.
    pub(super) fn check(&self) -> Result<(), InputError> {
        for (i, one) in self.types.iter().enumerate() {
            let at = |field: &str| alloc::format!("types[{i}].{field}");
            if self.types.iter().take(i).any(|other| other.name == one.name) {
                return Err(InputError::new(at("name"), Fault::Duplicate(one.name.clone())));
            }
            if one.max_per_gpu == 0 {
                let fault = Fault::OutOfRange { value: 0, min: 1, max: u16::MAX.into() };
                return Err(InputError::new(at("max_per_gpu"), fault));
            }
            let Some(placement) = &one.placement else { continue };
            for (field, ids) in
                [("mixed_size_ids", &placement.mixed_size_ids), ("equal_size_ids", &placement.equal_size_ids)]
            {
                let Some(ids) = ids else { continue };
                let path = at(&alloc::format!("placement.{field}"));
                let starts = Placements { starts: ids.clone(), size: placement.size };
                super::check_placements(Some(&starts), Some(placement.region), &path)?;
            }
        }
        Ok(())
    }

    /// Most vGPUs on the GPU, whatever their types.
    pub fn vgpus_max(&self) -> u16 {
        let nests = self.types.iter().any(|t| t.max_per_gpu_instance.is_some_and(|n| n > 1));
        if nests { VGPUS_MAX } else { VGPUS_MAX_BEFORE_BLACKWELL }
    }

    /// The types that share the GPU in time.
    pub fn time_sliced(&self) -> impl Iterator<Item = &VgpuType> {
        self.types.iter().filter(|t| t.is_time_sliced())
    }

    /// What the GPU offers to vGPUs of one size at a time.
    pub(super) fn equal_size(&self, base: &Model) -> Model {
        let share = |t: &VgpuType| ShareType {
            name: t.name.clone(),
            max_per_gpu: t.max_per_gpu.min(self.vgpus_max()),
            memory_mib: t.framebuffer_mib,
            size: Some(t.size_name()),
        };
        Model { share_types: self.time_sliced().map(share).collect(), ..bare(base) }
    }

    /// What the GPU offers to vGPUs of several sizes: runs of its framebuffer.
    pub(super) fn mixed_size(&self, base: &Model) -> Model {
        let region = self.time_sliced().filter_map(|t| Some(t.placement.as_ref()?.region)).max();
        let profile = |t: &VgpuType| {
            let placement = t.placement.as_ref();
            super::Profile {
                name: t.name.clone(),
                memory_slices: placement.map(|p| p.size),
                memory_mib: t.framebuffer_mib,
                max_instances: Some(t.mixed_size_max().unwrap_or(0)),
                placements: placement
                    .and_then(|p| Some(Placements { starts: p.mixed_size_ids.clone()?, size: p.size })),
                sources: t.sources.clone(),
                ..super::Profile::default()
            }
        };
        let profiles = if self.mixed_size { self.time_sliced().map(profile).collect() } else { Vec::new() };
        Model { memory_slices: region, max_gpu_instances: Some(self.vgpus_max()), profiles, ..bare(base) }
    }

    /// What the GPU offers to vGPUs on GPU instances: the model's own profiles, with vGPU
    /// types in the place of compute instances.
    pub(super) fn on_instances(&self, base: &Model) -> Model {
        let mut model = base.clone();
        model.profiles.retain_mut(|profile| {
            let here = self.types.iter().filter(|t| t.gi_profile.as_deref() == Some(&profile.name));
            profile.compute_instances = here.map(inside).collect();
            let region = profile.compute_instances.iter().filter_map(|c| c.placements.as_ref().map(end_of)).max();
            profile.inner_cells = region;
            !profile.compute_instances.is_empty()
        });
        model.share_types = Vec::new();
        model
    }
}

/// A vGPU type inside one GPU instance: the instance's framebuffer in as many equal parts
/// as fit, at the driver's ids `region × j / parts`.
fn inside(one: &VgpuType) -> ComputeProfile {
    let parts = one.max_per_gpu_instance.unwrap_or(1).clamp(1, VGPUS_PER_INSTANCE_MAX);
    let size = u16::try_from(one.nominal_gb).unwrap_or(u16::MAX).max(1);
    let region = size.saturating_mul(parts);
    let starts = (0..parts).map(|j| (u32::from(region) * u32::from(j) / u32::from(parts)) as u16).collect();
    ComputeProfile {
        name: one.name.clone(),
        max_instances: Some(parts),
        placements: Some(Placements { starts, size }),
        ..ComputeProfile::default()
    }
}

fn end_of(placements: &Placements) -> u16 {
    placements.starts.iter().map(|s| s.saturating_add(placements.size)).max().unwrap_or(0)
}

/// The model without what it offers in other modes.
fn bare(base: &Model) -> Model {
    Model {
        compute_slices: None,
        memory_slices: None,
        max_gpu_instances: None,
        engine_pool: super::EnginePool::default(),
        refused_together: Vec::new(),
        profiles: Vec::new(),
        share_types: Vec::new(),
        ..base.clone()
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}
