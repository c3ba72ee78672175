//! Event by event: what really comes out of a schedule.
//!
//! Nothing here knows a formula. Time is an integer, arrivals lie in a binary heap, and there
//! is no randomness: phases are given, or come from a seed by [`phases_of`].

mod dispatch;
mod queue;
mod slots;

use alloc::vec::Vec;
use serde::Serialize;

use super::closed::ppm_down;
use super::demand::Resident;
use super::{Scheduler, Setting};
use crate::error::{Fault, InputError};
use queue::Queues;

/// Most jobs and turns of a run: what it holds in memory.
const EVENTS_MAX: u64 = 4_000_000;

/// What a resident got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// GPU time that it ran.
    pub ran_us: u64,
    /// Every wait that ended, in order.
    pub waits: Vec<u64>,
    /// Waits that had not ended at the horizon, as long as they were then.
    pub open: Vec<u64>,
    /// Longest time from a job's arrival to its end, of those that ended.
    pub response_worst_us: Option<u64>,
}

/// What a run gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// How long it was.
    pub horizon_us: u64,
    /// By resident.
    pub residents: Vec<Measured>,
    /// Switches begun.
    pub switches: u64,
    /// Time spent in them.
    pub switching_us: u64,
}

/// A measured resident in the words of the guarantees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Least share of any run, rounded down.
    pub share_ppm: u64,
    /// 99th percentile by nearest rank, over all runs; absent: nothing waited.
    pub wait_p99_us: Option<u64>,
    /// Longest wait; one that had not ended counts as long as it was.
    pub wait_worst_us: Option<u64>,
    /// Longest time from a job's arrival to its end; absent: none ended.
    pub response_worst_us: Option<u64>,
    /// Waits counted.
    pub waits: u64,
}

/// Runs the schedule with each resident's first job at its phase.
///
/// # Errors
/// A horizon of zero, or one with more jobs and turns than a run may hold.
pub fn simulate(residents: &[Resident], setting: &Setting, phases: &[u64], horizon_us: u64) -> Result<Run, InputError> {
    let jobs = residents.iter().filter_map(|r| r.demand).map(|d| horizon_us / d.period_us.max(1));
    let events = jobs.fold(horizon_us / setting.slice_us.max(1), u64::saturating_add);
    if horizon_us == 0 || events > EVENTS_MAX {
        let text = alloc::format!("{horizon_us} us give {events} jobs and turns; a run holds 1 to {EVENTS_MAX}");
        return Err(InputError::new("horizon_us", Fault::Invalid(text)));
    }
    let mut queues = Queues::new(residents, phases, horizon_us);
    match setting.scheduler {
        Scheduler::EqualShare => {
            slots::run(&mut queues, setting, &alloc::vec![1; residents.len()], residents.len() as u64)
        }
        Scheduler::FixedShare => {
            let shares: Vec<u64> = residents.iter().map(|r| r.shares).collect();
            slots::run(&mut queues, setting, &shares, setting.max_vgpus);
        }
        _ => dispatch::run(&mut queues, setting, residents),
    }
    Ok(queues.finish())
}

/// First arrivals from a seed: of seed 0 all at once, else each somewhere in its period.
pub fn phases_of(residents: &[Resident], seed: u64) -> Vec<u64> {
    // Weyl steps through a mixing function: every seed starts its own sequence.
    let mut at = seed;
    let mut draw = || {
        at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (at ^ (at >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    };
    let phase = |r: &Resident| match (seed, r.demand) {
        (0, _) | (_, None) => 0,
        (_, Some(demand)) => draw().checked_rem(demand.period_us).unwrap_or(0),
    };
    residents.iter().map(phase).collect()
}

/// The figures of a resident over several runs.
pub fn figures(runs: &[Run], at: usize) -> Figures {
    let mut waits = Vec::new();
    let mut shares = Vec::new();
    let mut response_worst_us = None;
    for run in runs {
        let Some(measured) = run.residents.get(at) else { continue };
        shares.push(ppm_down(measured.ran_us, run.horizon_us));
        response_worst_us = response_worst_us.max(measured.response_worst_us);
        waits.extend(measured.waits.iter().chain(&measured.open));
    }
    waits.sort_unstable();
    Figures {
        share_ppm: shares.into_iter().min().unwrap_or(0),
        wait_p99_us: percentile(&waits, 99),
        wait_worst_us: waits.last().copied(),
        response_worst_us,
        waits: waits.len() as u64,
    }
}

/// Nearest rank: the least value that so many in a hundred do not exceed.
pub fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}
