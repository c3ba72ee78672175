//! Who shares the GPU: what each needs and what it was promised.

use alloc::format;
use alloc::string::String;
use serde::{Deserialize, Serialize};

use super::WHOLE_PPM;
use crate::error::{Fault, InputError};

/// Largest time of a document: a quarter of an hour leaves sums far from overflow.
const TIME_MAX_US: u64 = 1_000_000_000;
/// Longest burst: ten seconds of GPU time in one piece.
const BURST_MAX_US: u64 = 10_000_000;
/// Largest weight.
const WEIGHT_MAX: u64 = 1_000_000;

/// One who shares the GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Resident {
    /// The name; no two residents have the same.
    pub name: String,
    /// Part of weighted fair.
    #[serde(default = "one")]
    pub weight: u64,
    /// Larger goes first under the priority schedulers.
    #[serde(default)]
    pub priority: u32,
    /// Slots of fixed share.
    #[serde(default = "one")]
    pub shares: u64,
    /// What it asks of the GPU; absent: always busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<Demand>,
    /// What it was promised.
    #[serde(default, skip_serializing_if = "Sla::is_empty")]
    pub sla: Sla,
}

/// Jobs of equal length at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// GPU time of a job.
    pub burst_us: u64,
    /// Time from one job to the next.
    pub period_us: u64,
}

/// Limits; an absent one is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sla {
    /// Least share of the GPU that it can count on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_share_ppm: Option<u64>,
    /// Longest wait of 99 jobs in 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_p99_us: Option<u64>,
    /// Longest wait of any job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_worst_us: Option<u64>,
}

fn one() -> u64 {
    1
}

impl Sla {
    /// Nothing is promised.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn check(&self, at: &str) -> Result<(), InputError> {
        range(format!("{at}.least_share_ppm"), self.least_share_ppm.unwrap_or(0), 0, WHOLE_PPM)?;
        range(format!("{at}.wait_p99_us"), self.wait_p99_us.unwrap_or(0), 0, TIME_MAX_US)?;
        range(format!("{at}.wait_worst_us"), self.wait_worst_us.unwrap_or(0), 0, TIME_MAX_US)
    }
}

impl Resident {
    /// An always busy resident with nothing promised.
    pub fn busy(name: &str) -> Self {
        Self { name: name.into(), weight: 1, priority: 0, shares: 1, demand: None, sla: Sla::default() }
    }

    /// A resident with jobs.
    pub fn periodic(name: &str, burst_us: u64, period_us: u64) -> Self {
        Self { demand: Some(Demand { burst_us, period_us }), ..Self::busy(name) }
    }

    pub(super) fn check(&self, at: &str) -> Result<(), InputError> {
        if self.name.is_empty() {
            return Err(InputError::new(format!("{at}.name"), Fault::Invalid("a resident needs a name".into())));
        }
        range(format!("{at}.weight"), self.weight, 1, WEIGHT_MAX)?;
        range(format!("{at}.shares"), self.shares, 1, super::document::VGPUS_MAX)?;
        if let Some(demand) = &self.demand {
            range(format!("{at}.demand.burst_us"), demand.burst_us, 1, BURST_MAX_US)?;
            range(format!("{at}.demand.period_us"), demand.period_us, 1, TIME_MAX_US)?;
        }
        self.sla.check(&format!("{at}.sla"))
    }
}

/// A number within its range, or the fault at its path.
pub(super) fn range(path: impl Into<String>, value: u64, min: u64, max: u64) -> Result<(), InputError> {
    match (min..=max).contains(&value) {
        true => Ok(()),
        false => Err(InputError::new(path, Fault::OutOfRange { value, min, max })),
    }
}
