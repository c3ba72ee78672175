//! The guarantees of time sharing, derived again: a round is written out part by part, and
//! what higher priorities take is added up until it no longer grows.

use alloc::vec::Vec;

use crate::perf::timeshare::{Resident, Scheduler, Setting};

const PPM: u128 = 1_000_000;
/// Ratios are in billionths, rounded against the claim.
const UNIT: u64 = 1_000_000_000;
/// Steps after which a sum that still grows is replaced by the line above it.
const STEPS: usize = 20_000;

/// What a resident can count on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub share_ppm: u64,
    pub worst: Option<u64>,
    pub p99: Option<u64>,
    pub band: Option<u64>,
    pub exact: bool,
    pub response: Option<u64>,
}

/// One stop of a round.
struct Stop {
    turn: u64,
    longest: u64,
    switch: u64,
}

/// The guarantees of the resident in this place.
pub(super) fn of(residents: &[Resident], setting: &Setting, at: usize) -> Form {
    let found = match setting.scheduler {
        Scheduler::Priority | Scheduler::Preemptive => ranked(residents, setting, at),
        _ => rounds(residents, setting, at),
    };
    found.unwrap_or(Form { share_ppm: 0, worst: None, p99: None, band: None, exact: false, response: None })
}

/// The round in the order of the residents, then slots of nobody.
fn stops(residents: &[Resident], setting: &Setting) -> Vec<Stop> {
    let (q, people) = (setting.slice_us, residents.len() as u64);
    let alone = people == 1;
    let c = if alone { 0 } else { setting.switch_us };
    match setting.scheduler {
        Scheduler::FixedShare => {
            let c = if setting.max_vgpus == 1 { 0 } else { setting.switch_us };
            let taken: u64 = residents.iter().map(|r| r.shares).sum();
            let own = residents.iter().map(|r| r.shares * q + (r.shares - 1) * c);
            let nobody = (taken..setting.max_vgpus).map(|_| q);
            own.chain(nobody).map(|turn| Stop { turn, longest: turn, switch: c }).collect()
        }
        Scheduler::WeightedFair => {
            let total: u64 = setting.weights.iter().sum();
            let turn = |w: &u64| (people * q * w).checked_div(total).unwrap_or(0).max(1);
            let kept = |r: &Resident| if r.demand.is_none() { 0 } else { q / setting.averaging_factor.max(1) };
            let each = setting.weights.iter().zip(residents);
            each.map(|(w, r)| Stop { turn: turn(w), longest: turn(w) + kept(r), switch: c }).collect()
        }
        _ => residents.iter().map(|_| Stop { turn: q, longest: q, switch: c }).collect(),
    }
}

fn rounds(residents: &[Resident], setting: &Setting, at: usize) -> Option<Form> {
    let stops = stops(residents, setting);
    let own = stops.get(at)?;
    let round: u64 = stops.iter().map(|s| s.turn + s.switch).sum();
    let others = stops.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, s)| s.longest + s.switch);
    let away = others.sum::<u64>() + own.switch;
    let share_ppm = u64::try_from(u128::from(own.turn) * PPM / u128::from(round.max(1))).ok()?;
    let slots = matches!(setting.scheduler, Scheduler::EqualShare | Scheduler::FixedShare);
    let Some(job) = residents.get(at)?.demand else {
        let band = Some(if slots { 0 } else { away });
        return Some(Form { share_ppm, worst: Some(away), p99: Some(away), band, exact: slots, response: None });
    };
    let spends = u128::from(job.burst_us) * u128::from(own.turn + away);
    let earns = u128::from(own.turn) * u128::from(job.period_us);
    let mut worst = if spends <= earns { Some(away) } else { None };
    if setting.scheduler == Scheduler::BestEffort
        && let Some(longest) = never_resting(residents, setting)
    {
        let waits = longest.saturating_sub(job.burst_us);
        worst = Some(worst.map_or(waits, |w| w.min(waits)));
    }
    let turns = job.burst_us.div_ceil(own.turn.max(1));
    let ends = turns * away + job.burst_us;
    let response = if ends > job.period_us { None } else { Some(ends) };
    if let (true, Some(_), Some(worst)) = (slots, response, worst) {
        let step = common(job.period_us, round);
        let above = round / step.max(1) / 100;
        let p99 = worst.saturating_sub(above * step);
        let band = Some(step.saturating_sub(1));
        return Some(Form { share_ppm, worst: Some(worst), p99: Some(p99), band, exact: true, response });
    }
    Some(Form { share_ppm, worst, p99: worst, band: worst, exact: false, response })
}

/// How long best effort can go without rest.
fn never_resting(residents: &[Resident], setting: &Setting) -> Option<u64> {
    let jobs: Option<Vec<_>> = residents.iter().map(|r| r.demand).collect();
    let c = if residents.len() == 1 { 0 } else { setting.switch_us };
    let costs = jobs?.into_iter().map(|j| (j.period_us, j.burst_us + c + j.burst_us / setting.slice_us.max(1) * c));
    let costs: Vec<(u64, u64)> = costs.collect();
    let spare = UNIT.checked_sub(busy(&costs)).filter(|s| *s > 0)?;
    let start = costs.iter().map(|(_, cost)| cost).sum();
    let step = |t: u64| costs.iter().map(|(period, cost)| t.div_ceil(*period) * cost).sum();
    settle(start, step).or_else(|| stretch(start, spare))
}

/// What these jobs take of the time, in billionths, rounded up.
fn busy(costs: &[(u64, u64)]) -> u64 {
    let of = |(period, cost): &(u64, u64)| (u128::from(*cost) * u128::from(UNIT)).div_ceil(u128::from(*period));
    u64::try_from(costs.iter().map(of).sum::<u128>()).unwrap_or(u64::MAX)
}

/// The first time that a growing sum repeats.
fn settle(start: u64, step: impl Fn(u64) -> u64) -> Option<u64> {
    let mut at = start;
    for _ in 0..STEPS {
        let next = step(at);
        if next == at {
            return Some(at);
        }
        at = next;
    }
    None
}

/// Time for an amount of work with so many billionths to spare.
fn stretch(work: u64, spare: u64) -> Option<u64> {
    u64::try_from((u128::from(work) * u128::from(UNIT)).div_ceil(u128::from(spare))).ok()
}

fn ranked(residents: &[Resident], setting: &Setting, at: usize) -> Option<Form> {
    let own = residents.get(at)?;
    let q = setting.slice_us;
    let c = if residents.len() == 1 { 0 } else { setting.switch_us };
    let interrupts = setting.scheduler == Scheduler::Preemptive;
    let above: Vec<&Resident> = residents.iter().filter(|r| r.priority > own.priority).collect();
    let beside = residents.iter().filter(|r| r.priority == own.priority).count() as u64 - 1;
    let jobs: Option<Vec<_>> = above.iter().map(|r| r.demand).collect();
    let Some(jobs) = jobs else {
        return Some(Form { share_ppm: 0, worst: None, p99: None, band: None, exact: false, response: None });
    };
    let switches = |burst: u64| burst / q.max(1) + if interrupts { 3 } else { 1 };
    let costs: Vec<(u64, u64)> = jobs.iter().map(|j| (j.period_us, j.burst_us + switches(j.burst_us) * c)).collect();
    let back: Vec<(u64, u64)> = costs.iter().map(|(period, cost)| (*period, cost + c)).collect();
    let left = u128::from(UNIT.saturating_sub(busy(&back)));
    let share_ppm = match beside {
        0 => left * PPM / u128::from(UNIT),
        _ => left * PPM * u128::from(q) / (u128::from(UNIT) * u128::from((beside + 1) * (q + c))),
    };
    let share_ppm = u64::try_from(share_ppm).ok()?;
    let spare = UNIT.saturating_sub(busy(&costs));
    if spare == 0 {
        return Some(Form { share_ppm, worst: None, p99: None, band: None, exact: false, response: None });
    }
    let others = residents.iter().any(|r| r.priority != own.priority);
    let begun = if !others {
        0
    } else if interrupts {
        c
    } else {
        q + c
    };
    let away = beside * (q + c) + c;
    let sum: u64 = costs.iter().map(|(_, cost)| cost).sum();
    let reach = |work: u64| {
        let step = |t: u64| work + costs.iter().map(|(period, cost)| (t / period + 1) * cost).sum::<u64>();
        settle(work, step).or_else(|| stretch(work + sum, spare))
    };
    let (response, worst) = match own.demand {
        None => (None, reach(begun + away)),
        Some(job) => {
            let work = begun + job.burst_us.div_ceil(q.max(1)) * away + job.burst_us;
            let ends = if work > job.period_us { None } else { reach(work).filter(|e| *e <= job.period_us) };
            let spends = u128::from(job.burst_us) * u128::from(q + away) * u128::from(UNIT);
            let earns = u128::from(q) * u128::from(job.period_us) * u128::from(spare);
            let worst = match ends {
                Some(_) => reach(begun + away),
                None if spends <= earns => stretch(begun + away + sum, spare),
                None => None,
            };
            (ends, worst)
        }
    };
    Some(Form { share_ppm, worst, p99: worst, band: worst, exact: false, response })
}

fn common(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Part of the time that goes into switching, rounded up.
pub(super) fn overhead(residents: &[Resident], setting: &Setting) -> u64 {
    let c = if residents.len() == 1 && setting.scheduler != Scheduler::FixedShare { 0 } else { setting.switch_us };
    let (lost, whole) = match setting.scheduler {
        Scheduler::WeightedFair => {
            let stops = stops(residents, setting);
            (stops.iter().map(|s| s.switch).sum(), stops.iter().map(|s| s.turn + s.switch).sum())
        }
        Scheduler::FixedShare if setting.max_vgpus == 1 => (0, setting.slice_us),
        _ => (c, setting.slice_us + c),
    };
    let up = |part: u64, whole: u64| (u128::from(part) * PPM).div_ceil(u128::from(whole.max(1)));
    let mut sum = up(lost, whole);
    let least = residents.iter().map(|r| r.priority).min();
    if setting.scheduler == Scheduler::Preemptive {
        let jobs = residents.iter().filter(|r| Some(r.priority) != least).filter_map(|r| r.demand);
        sum += jobs.map(|j| up(2 * c, j.period_us)).sum::<u128>();
    }
    u64::try_from(sum.min(PPM)).unwrap_or(0)
}

/// The most that residents can have together with this slice.
pub(super) fn usable_ppm(residents: &[Resident], setting: &Setting) -> u64 {
    let c = if residents.len() == 1 { 0 } else { setting.switch_us };
    let usable = u128::from(setting.slice_us) * PPM / u128::from((setting.slice_us + c).max(1));
    u64::try_from(usable).unwrap_or(0)
}

/// The turns that weighted fair would have to give at least, and those that it has.
pub(super) fn least_turns(residents: &[Resident], setting: &Setting) -> (u64, u64) {
    let (q, people) = (setting.slice_us, residents.len() as u64);
    let c = if people == 1 { 0 } else { setting.switch_us };
    let round = people * (q + c);
    let late = |r: &Resident| if r.demand.is_none() { 0 } else { q / setting.averaging_factor.max(1) };
    let lateness: u64 = residents.iter().map(late).sum();
    let turn = |r: &Resident| {
        // A turn of `x` is away for `round + others' credit − x`.
        let full = round + lateness - late(r);
        let share = r.sla.least_share_ppm.map_or(0, |s| (s * round).div_ceil(1_000_000));
        let limits = [r.sla.wait_worst_us, r.sla.wait_p99_us];
        let waits = limits.into_iter().flatten().map(|w| full.saturating_sub(w)).max();
        let fits = r.demand.filter(|_| waits.is_some()).map(|j| (j.burst_us * full).div_ceil(j.period_us.max(1)));
        share.max(waits.unwrap_or(0)).max(fits.unwrap_or(0)).max(1)
    };
    (residents.iter().map(turn).sum(), people * q)
}
