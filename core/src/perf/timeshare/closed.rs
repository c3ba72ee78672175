//! Guarantees by formula. [`turns`] and [`priority`] have the
//! formulas; what no formula bounds is `None`, never a figure.

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::demand::{Resident, Sla};
use super::{PARTS, Scheduler, Setting, WHOLE_PPM, priority, turns};

/// What a resident can count on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Share of the GPU that it gets if it always has work, rounded down.
    pub share_ppm: u64,
    /// Bound on the 99th percentile of the waits; absent: unbounded.
    pub wait_p99_us: Option<u64>,
    /// Longest time from ready to first running; absent: unbounded.
    pub wait_worst_us: Option<u64>,
    /// How `wait_p99_us` is meant.
    pub p99: P99,
    /// The true percentile is at most this far below `wait_p99_us`.
    pub p99_band_us: Option<u64>,
    /// Longest time from ready to the end of the burst, where every job ends before the next
    /// comes; absent: not known.
    pub response_worst_us: Option<u64>,
}

/// How a percentile is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum P99 {
    /// What the worst phase has over whole hyperperiods.
    Exact,
    /// The worst wait: no closed form is known that is lower.
    UpperBound,
}

/// The guarantees, by resident.
pub fn bounds(residents: &[Resident], setting: &Setting) -> Vec<Bounds> {
    (0..residents.len()).filter_map(|at| bounds_of(residents, setting, at)).collect()
}

pub(super) fn bounds_of(residents: &[Resident], setting: &Setting, at: usize) -> Option<Bounds> {
    match setting.scheduler {
        Scheduler::Priority | Scheduler::Preemptive => priority::bounds(residents, setting, at),
        _ => turns::bounds(residents, setting, at),
    }
}

/// The guarantees keep the promise.
pub fn keeps(bounds: &Bounds, sla: &Sla) -> bool {
    let within = |limit: Option<u64>, wait: Option<u64>| limit.is_none_or(|limit| wait.is_some_and(|w| w <= limit));
    sla.least_share_ppm.is_none_or(|least| bounds.share_ppm >= least)
        && within(sla.wait_worst_us, bounds.wait_worst_us)
        && within(sla.wait_p99_us, bounds.wait_p99_us)
}

/// Part of the GPU's time that goes into switching while everyone has work, rounded up:
/// `c / (q + c)`; under preemption and two switches more for each job that can interrupt.
pub fn overhead_ppm(residents: &[Resident], setting: &Setting) -> u64 {
    let switch = turns::switch(residents, setting);
    let (turns, round) = match setting.scheduler {
        Scheduler::WeightedFair => {
            let turns = residents.len() as u64;
            (turns, turns::lengths(setting).iter().sum::<u64>() + turns * switch)
        }
        _ => (1, setting.slice_us + switch),
    };
    let by_slices = ppm_up(turns * switch, round);
    let lowest = residents.iter().map(|r| r.priority).min().unwrap_or(0);
    let interrupts = |r: &&Resident| setting.scheduler == Scheduler::Preemptive && r.priority > lowest;
    let jobs = residents.iter().filter(interrupts).filter_map(|r| r.demand);
    let by_jobs: u64 = jobs.map(|d| ppm_up(2 * switch, d.period_us)).sum();
    (by_slices + by_jobs).min(WHOLE_PPM)
}

/// A ratio in parts per million, rounded down.
pub(super) fn ppm_down(part: u64, whole: u64) -> u64 {
    let ppm = (u128::from(part) * u128::from(WHOLE_PPM)).checked_div(u128::from(whole));
    ppm.and_then(|p| u64::try_from(p).ok()).unwrap_or(0).min(WHOLE_PPM)
}

fn ppm_up(part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    let ppm = (u128::from(part) * u128::from(WHOLE_PPM)).div_ceil(u128::from(whole));
    u64::try_from(ppm).unwrap_or(u64::MAX)
}

/// A ratio in [`PARTS`], rounded up.
pub(super) fn parts_up(part: u64, whole: u64) -> u64 {
    let parts = (u128::from(part) * u128::from(PARTS)).div_ceil(u128::from(whole.max(1)));
    u64::try_from(parts).unwrap_or(u64::MAX)
}
