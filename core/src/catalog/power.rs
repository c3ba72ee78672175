//! What GPUs and CPUs draw. The built-in watts are data, in `core/data/power.json`, with
//! sources; a model or a GPU of a document may give its own.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::Catalog;
use crate::error::{Fault, InputError};
use crate::fleet::{Gpu, Node};

/// Milliwatts in a watt.
const MILLI: u64 = 1000;

/// Watts of a GPU, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Watts with nothing on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_w: Option<u32>,
    /// Watts as soon as anything is on it; absent: the same as idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_w: Option<u32>,
    /// Watts with all of its compute in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_w: Option<u32>,
}

impl Power {
    /// Whether nothing is given.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
    /// These figures, with `other` where one is absent.
    fn or(self, other: Self) -> Self {
        Self {
            idle_w: self.idle_w.or(other.idle_w),
            active_w: self.active_w.or(other.active_w),
            full_w: self.full_w.or(other.full_w),
        }
    }
}

/// Watts of a node's CPU: of so many cores, none in use and all in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CpuPower {
    /// Cores that the watts are of.
    pub cores: u32,
    /// Watts with none of them in use.
    pub idle_w: u32,
    /// Watts with all of them in use.
    pub full_w: u32,
}

/// What one GPU draws, in milliwatts: `idle` unused; in use, from `active` to `full` with the
/// compute in use, and never more than `limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuDraw {
    /// With nothing on it.
    pub idle_mw: u64,
    /// As soon as anything is on it.
    pub active_mw: u64,
    /// With all of its compute in use.
    pub full_mw: u64,
    /// What the GPU keeps itself to.
    pub limit_mw: u64,
}

/// How well a model's watts are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerStatus {
    /// Stated by the vendor or a publication.
    Published,
    /// Follows from a sibling's figure.
    Derived,
    /// Not known: the document has to give them.
    Unknown,
}

/// The built-in watts of one model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PowerRow {
    /// Model id.
    pub model: String,
    /// The watts.
    #[serde(flatten)]
    pub power: Power,
    /// How well they are known.
    pub status: PowerStatus,
    /// Keys into the table of sources.
    pub sources: Vec<String>,
    /// Remark of the table.
    #[serde(default)]
    pub note: Option<String>,
}

/// The rows of `core/data/power.json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct PowerTable {
    cpu: CpuRow,
    gpus: Vec<PowerRow>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct CpuRow {
    #[serde(flatten)]
    power: CpuPower,
}

impl Catalog {
    /// The built-in watts of a model, by its id.
    pub fn power_row(&self, model: &str) -> Option<&PowerRow> {
        self.power.as_ref()?.gpus.iter().find(|row| row.model == model)
    }

    /// Watts of a model: its own, else the built-in ones.
    pub fn power(&self, model: &str) -> Power {
        let own = self.find(model).map(|m| m.power).unwrap_or_default();
        own.or(self.power_row(model).map(|row| row.power).unwrap_or_default())
    }

    /// What a GPU of a document draws; `None` where its watts are not known.
    ///
    /// # Errors
    /// Watts that fall from idle to full, a limit below idle, a limit of a GPU whose watts are
    /// not known.
    pub fn gpu_draw(&self, gpu: &Gpu) -> Result<Option<GpuDraw>, InputError> {
        let model = self.find(&gpu.model).map_or(gpu.model.as_str(), |m| &m.id);
        let power = gpu.power.or(self.power(model));
        let (Some(idle), Some(full)) = (power.idle_w, power.full_w) else {
            return match gpu.power_limit_w {
                Some(_) => Err(unknown(model)),
                None => Ok(None),
            };
        };
        let active = power.active_w.unwrap_or(idle);
        if idle > active || active > full {
            let text = alloc::format!("{idle} W idle, {active} W active and {full} W full do not rise");
            return Err(InputError::new("power", Fault::Invalid(text)));
        }
        let limit = gpu.power_limit_w.unwrap_or(full);
        if limit < idle {
            let fault = Fault::OutOfRange { value: limit.into(), min: idle.into(), max: u32::MAX.into() };
            return Err(InputError::new("power_limit_w", fault));
        }
        let mw = |watts: u32| u64::from(watts) * MILLI;
        Ok(Some(GpuDraw { idle_mw: mw(idle), active_mw: mw(active), full_mw: mw(full), limit_mw: mw(limit) }))
    }

    /// Watts of a node's CPU: its own, else the built-in ones.
    ///
    /// # Errors
    /// No cores, or watts that fall.
    pub fn cpu_power(&self, node: &Node) -> Result<CpuPower, InputError> {
        let built_in = self.power.as_ref().map(|table| table.cpu.power).unwrap_or_default();
        let power = node.cpu_power.unwrap_or(CpuPower { cores: built_in.cores.max(1), ..built_in });
        if power.cores == 0 || power.idle_w > power.full_w {
            let text = String::from("a CPU has cores, and draws no less in use than idle");
            return Err(InputError::new("cpu_power", Fault::Invalid(text)));
        }
        Ok(power)
    }
}

/// The error for a GPU that is under a limit or cap and whose watts nobody gave.
pub(crate) fn unknown(model: &str) -> InputError {
    InputError::new("power", Fault::UnknownPower { model: model.into() })
}
