//! The setting that keeps every promise at the least overhead, or why there is none.
//!
//! Of each scheduler the longest slice that keeps all promises is found: a longer one switches
//! less. Among schedulers the least overhead wins, then the longest slice, then the order of
//! [`Scheduler::ALL`]. Of best effort only the document's own or default slice is looked at:
//! a vGPU manager lets nobody set it.
//!
//! The search is exact. Cut where `⌊b / q⌋` or `⌊(b − 1) / q⌋` of a burst changes and where a
//! bound begins or ceases to apply, the slices fall into pieces on which waits and shares only
//! rise with the slice (a bound that does not apply, does not on the whole piece). On a piece
//! the slices not too long for any wait are a first part, found by halving; if any slice keeps
//! all promises, the last of that part does. The percentile of slots follows no such order, as
//! it goes by the greatest common divisor of period and cycle: there every slice is a piece.
//! Of weighted fair see [`weights`].

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::closed::{Bounds, bounds, bounds_of, keeps, overhead_ppm};
use super::demand::{Resident, Sla};
use super::{Scheduler, Setting, Timeshare, priority, turns, weights};
use crate::error::InputError;

/// A setting that keeps every promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The setting.
    pub setting: Setting,
    /// What it spends on switching.
    pub overhead_ppm: u64,
    /// The guarantees, by resident.
    pub bounds: Vec<Bounds>,
}

/// Why a scheduler keeps the promises with no slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// What fails where; together, every slice that may be chosen.
    pub failing: Vec<Failing>,
}

/// A promise that fails with each of these slices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Failing {
    /// The shortest of the slices.
    pub slice_from_us: u64,
    /// The longest.
    pub slice_to_us: u64,
    /// Whose promise; absent for a sum over all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident: Option<String>,
    /// Which promise, with its unit.
    pub limit: Limit,
    /// What was promised, or what the promises add up to.
    pub needed: u64,
    /// The best that any of the slices gives; absent: nothing is bounded with any of them.
    #[serde(default)]
    pub best: Option<u64>,
}

/// The promises that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The least share.
    LeastSharePpm,
    /// The worst wait.
    WaitWorstUs,
    /// The 99th percentile of the waits.
    WaitP99Us,
    /// The least shares of all, beside the least overhead.
    SumOfSharesPpm,
    /// The least turns of all, in a round; the slice is the one that lacks least.
    SumOfTurnsUs,
}

/// What came of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This setting keeps every promise.
    Works(Choice),
    /// None does; by scheduler.
    Refused(Vec<Refusal>),
}

/// Chooses for a document. What it says of scheduler and weights is not looked at, and its
/// slice only for best effort; `choose` says what may be chosen.
///
/// # Errors
/// A document with a fault.
pub fn choose(document: &Timeshare) -> Result<Answer, InputError> {
    document.check()?;
    let search = document.choose.clone().unwrap_or_default();
    let (from, to) = search.slices();
    let allowed = |s: &Scheduler| search.schedulers.is_empty() || search.schedulers.contains(s);
    let mut best: Option<Choice> = None;
    let mut refusals = Vec::new();
    for scheduler in Scheduler::ALL.into_iter().filter(allowed) {
        let base = document.setting(scheduler);
        let found = match scheduler {
            Scheduler::BestEffort => longest(&document.residents, &base, base.slice_us, base.slice_us),
            Scheduler::WeightedFair => weights::longest(&document.residents, &base, from, to),
            _ => longest(&document.residents, &base, from, to),
        };
        match found {
            Ok(setting) => {
                let overhead_ppm = overhead_ppm(&document.residents, &setting);
                let bounds = bounds(&document.residents, &setting);
                let choice = Choice { setting, overhead_ppm, bounds };
                if best.as_ref().is_none_or(|best| before(&choice, best)) {
                    best = Some(choice);
                }
            }
            Err(failing) => refusals.push(Refusal { scheduler, failing }),
        }
    }
    Ok(best.map_or(Answer::Refused(refusals), Answer::Works))
}

fn before(one: &Choice, other: &Choice) -> bool {
    (one.overhead_ppm, other.setting.slice_us) < (other.overhead_ppm, one.setting.slice_us)
}

/// The setting with the longest slice that keeps every promise, or what fails where.
fn longest(residents: &[Resident], base: &Setting, from: u64, to: u64) -> Result<Setting, Vec<Failing>> {
    let with = |slice_us| Setting { slice_us, ..base.clone() };
    let mut failing: Vec<Failing> = Vec::new();
    let starts = cuts(residents, base, from, to);
    let mut last = to;
    for start in starts.into_iter().rev() {
        // Cuts where a bound begins or ceases to apply lie within: only one piece needs them.
        let mut end = last;
        for start in flips(residents, base, start, last).into_iter().rev() {
            let fit = last_of(start, end, |q| fault(residents, &with(q), too_long, None).is_none());
            if let Some(long) = fit.map_or(Some(start), |f| (f < end).then_some(f + 1)) {
                note(&mut failing, residents, &with(long), (long, end), too_long);
            }
            if let Some(fit) = fit {
                let setting = with(fit);
                if fault(residents, &setting, too_short, None).is_none() {
                    return Ok(setting);
                }
                note(&mut failing, residents, &setting, (start, fit), too_short);
            }
            end = start.saturating_sub(1);
        }
        last = start.saturating_sub(1);
    }
    failing.reverse();
    Err(failing)
}

/// Where pieces begin on which all terms but the slice itself stay as they are.
fn cuts(residents: &[Resident], base: &Setting, from: u64, to: u64) -> BTreeSet<u64> {
    let p99 = |r: &Resident| r.demand.is_some() && r.sla.wait_p99_us.is_some();
    if base.scheduler.is_slotted() && residents.iter().any(p99) {
        return (from..=to).collect();
    }
    let mut cuts = BTreeSet::from([from]);
    for burst in residents.iter().filter_map(|r| r.demand).flat_map(|d| [d.burst_us, d.burst_us - 1]) {
        let mut at = from;
        // The next slice that a burst holds one time less.
        while let Some(next) = burst.checked_div(at).and_then(|times| burst.checked_div(times)) {
            at = next + 1;
            if at > to {
                break;
            }
            cuts.insert(at);
        }
    }
    cuts
}

/// Where, within a piece, a resident's bound begins or ceases to apply.
fn flips(residents: &[Resident], base: &Setting, from: u64, to: u64) -> BTreeSet<u64> {
    let mut starts = BTreeSet::from([from]);
    if from == to {
        return starts;
    }
    let waits = |r: &Resident| r.demand.is_some() && (r.sla.wait_worst_us.is_some() || r.sla.wait_p99_us.is_some());
    for at in residents.iter().enumerate().filter(|(_, r)| waits(r)).map(|(at, _)| at) {
        let regime = |q| {
            let setting = Setting { slice_us: q, ..base.clone() };
            match base.scheduler {
                Scheduler::Priority | Scheduler::Preemptive => priority::regime(residents, &setting, at),
                _ => (turns::within_share(residents, &setting, at), true),
            }
        };
        let first = regime(from);
        starts.extend(last_of(from, to, |q| regime(q).0 == first.0).filter(|l| *l < to).map(|l| l + 1));
        starts.extend(last_of(from, to, |q| regime(q).1 == first.1).filter(|l| *l < to).map(|l| l + 1));
    }
    starts
}

/// The last of a range for which something holds that holds for a first part of it.
fn last_of(from: u64, to: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if holds(to) {
        return Some(to);
    }
    let (mut low, mut high) = (from, to);
    while low < high {
        let middle = low + (high - low) / 2;
        match holds(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    (low > from).then(|| low - 1)
}

/// A promise that fails: which, what was promised, what there is.
type Fault = (Limit, u64, Option<u64>);

/// Promises that a longer slice breaks.
fn too_long(bounds: &Bounds, sla: &Sla) -> [Option<Fault>; 2] {
    let over = |limit, promised: Option<u64>, wait: Option<u64>| match (promised, wait) {
        (Some(promised), Some(wait)) if wait > promised => Some((limit, promised, Some(wait))),
        _ => None,
    };
    [
        over(Limit::WaitWorstUs, sla.wait_worst_us, bounds.wait_worst_us),
        over(Limit::WaitP99Us, sla.wait_p99_us, bounds.wait_p99_us),
    ]
}

/// Promises that a shorter slice breaks, or any slice of the piece.
fn too_short(bounds: &Bounds, sla: &Sla) -> [Option<Fault>; 2] {
    let share = sla.least_share_ppm.filter(|least| bounds.share_ppm < *least);
    let unbounded = |limit, promised: Option<u64>, wait: Option<u64>| match (promised, wait) {
        (Some(promised), None) => Some((limit, promised, None)),
        _ => None,
    };
    [
        share.map(|least| (Limit::LeastSharePpm, least, Some(bounds.share_ppm))),
        unbounded(Limit::WaitWorstUs, sla.wait_worst_us, bounds.wait_worst_us).or(unbounded(
            Limit::WaitP99Us,
            sla.wait_p99_us,
            bounds.wait_p99_us,
        )),
    ]
}

/// The first promise that fails, or the one that is asked for if it fails too.
fn fault(
    residents: &[Resident],
    setting: &Setting,
    kind: fn(&Bounds, &Sla) -> [Option<Fault>; 2],
    prefer: Option<&Failing>,
) -> Option<(String, Fault)> {
    let mut first = None;
    for (at, resident) in residents.iter().enumerate().filter(|(_, r)| !r.sla.is_empty()) {
        let bounds = bounds_of(residents, setting, at)?;
        if prefer.is_none() && keeps(&bounds, &resident.sla) {
            continue;
        }
        for fault in kind(&bounds, &resident.sla).into_iter().flatten() {
            let same = prefer.is_some_and(|p| p.limit == fault.0 && p.resident.as_ref() == Some(&resident.name));
            if prefer.is_none() || same {
                return Some((resident.name.clone(), fault));
            }
            first.get_or_insert((resident.name.clone(), fault));
        }
    }
    first
}

/// Writes down what fails from one slice to another, as part of what fails next to it if it
/// is the same.
fn note(
    failing: &mut Vec<Failing>,
    residents: &[Resident],
    setting: &Setting,
    (from, to): (u64, u64),
    kind: fn(&Bounds, &Sla) -> [Option<Fault>; 2],
) {
    let Some((resident, (limit, needed, best))) = fault(residents, setting, kind, failing.last()) else { return };
    if let Some(next) = failing.last_mut()
        && next.limit == limit
        && next.resident.as_ref() == Some(&resident)
    {
        next.slice_from_us = from;
        let both = [next.best, best].into_iter().flatten();
        next.best = if limit == Limit::LeastSharePpm { both.max() } else { both.min() };
        return;
    }
    failing.push(Failing { slice_from_us: from, slice_to_us: to, resident: Some(resident), limit, needed, best });
}
