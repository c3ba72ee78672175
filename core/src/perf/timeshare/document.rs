//! The document of a shared GPU, its defaults and its faults.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::demand::{Resident, range};
use super::{AVERAGING_DEFAULT, SLICE_MAX_US, SLICE_MIN_US, SWITCH_DEFAULT_US, Scheduler, Setting, slice_default_us};
use crate::error::{Fault, InputError};

/// Most vGPUs on one GPU: the driver's own limit is 48.
pub(super) const VGPUS_MAX: u64 = 64;
const SWITCH_MAX_US: u64 = 10_000;
const AVERAGING_MAX: u64 = 60;
const FREQUENCY_HZ: (u64, u64) = (63, 960);
const SECOND_US: u64 = 1_000_000;

/// Residents of one GPU, and how they share it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Timeshare {
    /// Always `slicewise/v1`; may be left out when writing by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Who shares the GPU, in the order of their turns.
    pub residents: Vec<Resident>,
    /// The scheduler; absent: it is to be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// Time slice; absent: by frequency, else the default of the vGPU type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_us: Option<u64>,
    /// Scheduling frequency, of which the slice is the inverse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_hz: Option<u64>,
    /// Cost of going from one resident to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_us: Option<u64>,
    /// Over how many turns weighted fair spreads its credit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaging_factor: Option<u64>,
    /// Most vGPUs of the type on one GPU; absent: those present, each with its shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_vgpus: Option<u64>,
    /// What may be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choose: Option<Search>,
}

/// What may be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The schedulers; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedulers: Vec<Scheduler>,
    /// Shortest slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_min_us: Option<u64>,
    /// Longest slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_max_us: Option<u64>,
}

impl Search {
    /// The slices that may be chosen.
    pub fn slices(&self) -> (u64, u64) {
        (self.slice_min_us.unwrap_or(SLICE_MIN_US), self.slice_max_us.unwrap_or(SLICE_MAX_US))
    }
}

impl Timeshare {
    /// Finds what is wrong in it.
    ///
    /// # Errors
    /// The first fault, with the path of its field.
    pub fn check(&self) -> Result<(), InputError> {
        let invalid = |path: &str, text: &str| Err(InputError::new(path, Fault::Invalid(text.into())));
        if self.residents.is_empty() {
            return invalid("residents", "a shared GPU needs at least one resident");
        }
        let mut names = BTreeSet::new();
        for (i, resident) in self.residents.iter().enumerate() {
            resident.check(&format!("residents[{i}]"))?;
            if !names.insert(resident.name.as_str()) {
                return Err(InputError::new(format!("residents[{i}].name"), Fault::Duplicate(resident.name.clone())));
            }
        }
        if let Some(slice) = self.slice_us {
            range("slice_us", slice, SLICE_MIN_US, SLICE_MAX_US)?;
            if self.frequency_hz.is_some() {
                return invalid("frequency_hz", "the slice is given already by `slice_us`");
            }
        }
        if let Some(frequency) = self.frequency_hz {
            range("frequency_hz", frequency, FREQUENCY_HZ.0, FREQUENCY_HZ.1)?;
        }
        range("switch_us", self.switch_us.unwrap_or(0), 0, SWITCH_MAX_US)?;
        range("averaging_factor", self.averaging_factor.unwrap_or(1), 1, AVERAGING_MAX)?;
        let shares = self.shares();
        let path = if self.max_vgpus.is_some() { "max_vgpus" } else { "residents" };
        range(path, self.max_vgpus(), shares, VGPUS_MAX.max(shares))?;
        range(path, self.max_vgpus(), 1, VGPUS_MAX)?;
        let search = self.choose.clone().unwrap_or_default();
        let (least, most) = search.slices();
        range("choose.slice_min_us", least, SLICE_MIN_US, SLICE_MAX_US)?;
        range("choose.slice_max_us", most, least, SLICE_MAX_US)
    }

    fn shares(&self) -> u64 {
        self.residents.iter().map(|r| r.shares).sum()
    }

    fn max_vgpus(&self) -> u64 {
        self.max_vgpus.unwrap_or_else(|| self.shares())
    }

    /// The setting that the document says, defaults filled in, under a scheduler.
    pub fn setting(&self, scheduler: Scheduler) -> Setting {
        let max_vgpus = self.max_vgpus();
        let by_frequency = self.frequency_hz.and_then(|hz| SECOND_US.checked_div(hz));
        Setting {
            scheduler,
            slice_us: self.slice_us.or(by_frequency).unwrap_or_else(|| slice_default_us(max_vgpus)),
            switch_us: self.switch_us.unwrap_or(SWITCH_DEFAULT_US),
            averaging_factor: self.averaging_factor.unwrap_or(AVERAGING_DEFAULT),
            max_vgpus,
            weights: self.residents.iter().map(|r| r.weight).collect(),
        }
    }
}
