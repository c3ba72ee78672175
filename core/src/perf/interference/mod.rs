//! How much co-residents of one GPU slow each other where no hardware keeps them apart:
//! time slices and MPS.
//!
//! ```text
//! slowdown of a = 1 + Σ others b  Σ resources r  weight_r · sensitivity_a,r · pressure_b,r
//! rate of a     = 1 ÷ slowdown
//! ```
//!
//! A pressure is the part of a resource that a workload takes while it runs alone; a
//! sensitivity is the part of its step that waits for that resource. Where only one is
//! known it stands for both. Measured pairs give their products only, so a measured
//! co-resident scales all three resources alike; how a sum splits over them is assumed.

mod fit;
#[cfg(test)]
mod tests;

pub use fit::{Pair, fit_pairs};

use alloc::format;
use serde::{Deserialize, Serialize};

use super::fixed::{PPM, scale, share};
use super::params::{Class, Parameters};
use super::range::Range;
use crate::error::{Fault, InputError};

/// Largest pressure or sensitivity: a thousand times all of a resource.
const LOAD_MAX: u64 = 1000 * PPM;

/// An amount for each of the three resources that co-residents share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Loads {
    /// Multiprocessors.
    #[serde(default)]
    pub sm_ppm: u64,
    /// Memory bandwidth.
    #[serde(default)]
    pub bandwidth_ppm: u64,
    /// Second-level cache.
    #[serde(default)]
    pub cache_ppm: u64,
}

impl Loads {
    /// Each amount times a share.
    #[must_use]
    pub fn times(self, ppm: u64) -> Self {
        let of = |value: u64| share(value, ppm).min(LOAD_MAX);
        Self { sm_ppm: of(self.sm_ppm), bandwidth_ppm: of(self.bandwidth_ppm), cache_ppm: of(self.cache_ppm) }
    }

    fn product(self, other: Self) -> u64 {
        let of = |a: u64, b: u64| share(a.min(LOAD_MAX), b.min(LOAD_MAX));
        of(self.sm_ppm, other.sm_ppm)
            .saturating_add(of(self.bandwidth_ppm, other.bandwidth_ppm))
            .saturating_add(of(self.cache_ppm, other.cache_ppm))
    }

    fn check(self) -> Result<(), InputError> {
        let fields = [("sm_ppm", self.sm_ppm), ("bandwidth_ppm", self.bandwidth_ppm), ("cache_ppm", self.cache_ppm)];
        for (path, value) in fields {
            if value > LOAD_MAX {
                return Err(InputError::new(path, Fault::OutOfRange { value, min: 0, max: LOAD_MAX }));
            }
        }
        Ok(())
    }
}

/// A workload as its co-residents feel it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Resident {
    /// What it takes from others.
    pub pressure: Loads,
    /// What it loses where others take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Loads>,
    /// Percentage of multiprocessors that MPS lets it use: so much less it presses on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_percent: Option<u8>,
}

impl Resident {
    /// What is held of a class.
    ///
    /// # Errors
    /// A table without the parameters.
    pub fn of(class: Class, parameters: &Parameters) -> Result<Self, InputError> {
        let value = |what: &str| parameters.value(&format!("interference.{}.{what}_ppm", class.name()));
        let pressure = Loads { sm_ppm: value("sm")?, bandwidth_ppm: value("bandwidth")?, cache_ppm: value("cache")? };
        Ok(Self { pressure, sensitivity: None, sm_percent: None })
    }

    /// Checks a user's own figures.
    ///
    /// # Errors
    /// An amount beyond reach, or a percentage outside 1 to 100.
    pub fn check(&self) -> Result<(), InputError> {
        self.pressure.check().map_err(|e| e.within("pressure"))?;
        self.sensitivity.unwrap_or_default().check().map_err(|e| e.within("sensitivity"))?;
        match self.sm_percent {
            Some(value) if value == 0 || value > 100 => {
                Err(InputError::new("sm_percent", Fault::OutOfRange { value: value.into(), min: 1, max: 100 }))
            }
            _ => Ok(()),
        }
    }

    fn presses(&self) -> Loads {
        let percent = u64::from(self.sm_percent.unwrap_or(100).min(100));
        Loads { sm_ppm: scale(self.pressure.sm_ppm, percent, 100), ..self.pressure }
    }

    fn feels(&self) -> Loads {
        self.sensitivity.unwrap_or(self.pressure)
    }

    /// The same resident, scaled so that the model gives back one measurement: it ran
    /// beside `other`, at `own_rate_ppm` of its speed alone, and `other` at
    /// `other_rate_ppm` of its own.
    #[must_use]
    pub fn probed(self, weights: &Weights, other: &Self, own_rate_ppm: u64, other_rate_ppm: u64) -> Self {
        let wanted = |rate: u64| scale(PPM, PPM, rate.clamp(1, PPM)).saturating_sub(PPM);
        let felt = weights.apply(self.feels()).product(other.presses());
        let pressed = weights.apply(other.feels()).product(self.presses());
        let sensitivity = self.feels().times(scale(wanted(own_rate_ppm), PPM, felt.max(1)));
        let pressure = self.pressure.times(scale(wanted(other_rate_ppm), PPM, pressed.max(1)));
        Self { pressure, sensitivity: Some(sensitivity), ..self }
    }
}

/// How much each resource counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights(pub Loads);

impl Weights {
    /// The table's weights.
    ///
    /// # Errors
    /// A table without the parameters.
    pub fn of(parameters: &Parameters) -> Result<Self, InputError> {
        let value = |what: &str| parameters.value(&format!("interference.weight.{what}_ppm"));
        Ok(Self(Loads { sm_ppm: value("sm")?, bandwidth_ppm: value("bandwidth")?, cache_ppm: value("cache")? }))
    }

    fn apply(&self, loads: Loads) -> Loads {
        let of = |a: u64, b: u64| share(a.min(LOAD_MAX), b).min(LOAD_MAX);
        Loads {
            sm_ppm: of(loads.sm_ppm, self.0.sm_ppm),
            bandwidth_ppm: of(loads.bandwidth_ppm, self.0.bandwidth_ppm),
            cache_ppm: of(loads.cache_ppm, self.0.cache_ppm),
        }
    }
}

/// Speed beside these others, in units of the speed alone. Falls with each of them.
pub fn rate_ppm(weights: &Weights, resident: &Resident, others: &[Resident]) -> u64 {
    let felt = weights.apply(resident.feels());
    let waits = others.iter().map(|other| felt.product(other.presses()));
    let slowdown = waits.fold(PPM, u64::saturating_add);
    scale(PPM, PPM, slowdown)
}

/// How the resident is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Knowledge {
    /// By its class.
    Class,
    /// By one measured run beside a known workload, or a profile of its own.
    Probe,
}

/// [`rate_ppm`] with the errors that this much knowledge left on measured pairs: in four of
/// five cases the truth lay within.
///
/// # Errors
/// A table without the parameters.
pub fn rate(
    parameters: &Parameters,
    resident: &Resident,
    others: &[Resident],
    known: Knowledge,
) -> Result<Range, InputError> {
    let expected = rate_ppm(&Weights::of(parameters)?, resident, others);
    if others.is_empty() {
        return Ok(Range::exact(expected));
    }
    let errors = parameters.range(match known {
        Knowledge::Class => "interference.error.class_ppm",
        Knowledge::Probe => "interference.error.probe_ppm",
    })?;
    let low = share(expected, errors.low).min(expected);
    Ok(Range { low, expected, high: share(expected, errors.high).clamp(expected, PPM) })
}
