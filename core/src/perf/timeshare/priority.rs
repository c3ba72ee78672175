//! Guarantees under fixed priorities.
//!
//! For a resident, `H` are those with higher priority and `E` the others with the same one,
//! `k` of them. A job of `h` in `H` takes at most
//!
//! * `C = b + (⌊b / q⌋ + 1) c` without preemption: every turn ends by slice or by running dry;
//! * `C = b + (⌊b / q⌋ + 3) c` with it: it may spoil a switch and make another necessary.
//!
//! The work of `H` in a window of `t` is at most `I(t) = Σ (⌊t / p⌋ + 1) C`, counted from when
//! `H` last had nothing to do. Before that someone may have begun a turn: `B = q + c`, or with
//! preemption the switch alone, `B = c`; if all have one priority, `B = 0`. Nothing is bounded if someone in `H` is always busy or
//! `ρ = Σ C / p ≥ 1`.
//!
//! * Worst wait, if a job always ends before the next comes: the least `S` with
//!   `S = B + I(S) + k (q + c) + c`. It does if the least `F` with
//!   `F = B + I(F) + ⌈b / q⌉ (k (q + c) + c) + b` is at most `p`; `F` is the worst response.
//! * Worst wait otherwise, if `b (q + k (q + c) + c) ≤ q p (1 − ρ)`: the same line with `I`
//!   replaced by `Σ C + ρ S`, that is `(B + Σ C + k (q + c) + c) / (1 − ρ)`. It bounds every
//!   later job of a backlog too, as in [`turns`].
//! * Share: `(1 − Σ (C + c) / p)`, of which equals have `q / ((k + 1) (q + c))` each; with
//!   someone in `H` always busy nothing is left.
//! * p99: the worst wait, an upper bound.

use super::closed::{Bounds, P99, parts_up};
use super::demand::{Demand, Resident};
use super::{PARTS, Scheduler, Setting, WHOLE_PPM, turns};

/// Rounds of a fixed point before the line above it is taken instead.
const ROUNDS_MAX: u32 = 20_000;

/// What a resident meets.
struct Level<'a> {
    residents: &'a [Resident],
    priority: u32,
    slice: u64,
    switch: u64,
    /// Turns of a job beyond those that slices cut.
    extra: u64,
    /// A turn in progress.
    blocking: u64,
    /// One turn of each equal, and the switch to one's own.
    gap: u64,
    equals: u64,
}

impl Level<'_> {
    /// The demands of those with higher priority.
    fn higher(&self) -> impl Iterator<Item = Demand> {
        self.residents.iter().filter(|r| r.priority > self.priority).filter_map(|r| r.demand)
    }
    fn cost(&self, demand: &Demand) -> u64 {
        job(demand, self.slice, self.switch, self.extra)
    }
    fn starved(&self) -> bool {
        self.residents.iter().any(|r| r.priority > self.priority && r.demand.is_none())
    }
    /// The least `t` with `t = own + I(t)`, or the line above it.
    fn reach(&self, own: u64, free: u64) -> u64 {
        let mut reached = own;
        for _ in 0..ROUNDS_MAX {
            let next = own + self.higher().map(|d| (reached / d.period_us.max(1) + 1) * self.cost(&d)).sum::<u64>();
            if next == reached {
                return reached;
            }
            reached = next;
        }
        self.line(own, free)
    }
    /// `(own + Σ C) / (1 − ρ)`, rounded up.
    fn line(&self, own: u64, free: u64) -> u64 {
        let sum = own + self.higher().map(|d| self.cost(&d)).sum::<u64>();
        let reached = (u128::from(sum) * u128::from(PARTS)).div_ceil(u128::from(free.max(1)));
        u64::try_from(reached).unwrap_or(u64::MAX)
    }
    /// `1 − ρ` in [`PARTS`], rounded down; of costs with so many more switches each.
    fn free(&self, switches: u64) -> u64 {
        let taken = self.higher().map(|d| parts_up(self.cost(&d) + switches * self.switch, d.period_us));
        PARTS.saturating_sub(taken.fold(0, u64::saturating_add))
    }
}

fn job(demand: &Demand, slice: u64, switch: u64, extra: u64) -> u64 {
    demand.burst_us + (demand.burst_us.checked_div(slice).unwrap_or(0) + 1 + extra) * switch
}

fn level<'a>(residents: &'a [Resident], setting: &Setting, at: usize) -> Option<Level<'a>> {
    let priority = residents.get(at)?.priority;
    let switch = turns::switch(residents, setting);
    let slice = setting.slice_us;
    let equals = residents.iter().filter(|r| r.priority == priority).count() as u64 - 1;
    let gap = equals * (slice + switch) + switch;
    let preemptive = setting.scheduler == Scheduler::Preemptive;
    // With nobody above or below, turns in progress are those of equals: counted already.
    let blocked = residents.iter().any(|r| r.priority != priority);
    let blocking = match (blocked, preemptive) {
        (false, _) => 0,
        (true, true) => switch,
        (true, false) => slice + switch,
    };
    Some(Level { residents, priority, slice, switch, extra: if preemptive { 2 } else { 0 }, blocking, gap, equals })
}

/// The guarantees of one resident.
pub(super) fn bounds(residents: &[Resident], setting: &Setting, at: usize) -> Option<Bounds> {
    let demand = residents.get(at)?.demand;
    let level = level(residents, setting, at)?;
    let share_ppm = share(&level);
    let free = level.free(0);
    let mut response_worst_us = None;
    let mut wait_worst_us = None;
    if !level.starved() && free > 0 {
        let own = level.blocking + level.gap;
        response_worst_us = demand.and_then(|d| response(&level, &d, free));
        wait_worst_us = match &demand {
            Some(d) if response_worst_us.is_none() => fits(&level, d, free).then(|| level.line(own, free)),
            _ => Some(level.reach(own, free)),
        };
    }
    let wait = wait_worst_us.filter(|w| *w < u64::MAX);
    let wait_worst_us = wait;
    Some(Bounds {
        share_ppm,
        wait_worst_us,
        wait_p99_us: wait,
        p99: P99::UpperBound,
        p99_band_us: wait,
        response_worst_us,
    })
}

fn response(level: &Level<'_>, demand: &Demand, free: u64) -> Option<u64> {
    let own = level.blocking + demand.burst_us.div_ceil(level.slice.max(1)) * level.gap + demand.burst_us;
    if own > demand.period_us {
        return None;
    }
    Some(level.reach(own, free)).filter(|f| *f <= demand.period_us)
}

fn fits(level: &Level<'_>, demand: &Demand, free: u64) -> bool {
    let needs = u128::from(demand.burst_us) * u128::from(level.slice + level.gap) * u128::from(PARTS);
    needs <= u128::from(level.slice) * u128::from(demand.period_us) * u128::from(free)
}

fn share(level: &Level<'_>) -> u64 {
    if level.starved() {
        return 0;
    }
    let free = u128::from(level.free(1)) * u128::from(WHOLE_PPM);
    let (part, round) = match level.equals {
        0 => (1, 1),
        k => (level.slice, (k + 1) * (level.slice + level.switch)),
    };
    let share = (free * u128::from(part)).checked_div(u128::from(PARTS) * u128::from(round));
    share.and_then(|s| u64::try_from(s).ok()).unwrap_or(0)
}

/// Which of its bounds a resident has; constant where a slice search may rely on it.
pub(super) fn regime(residents: &[Resident], setting: &Setting, at: usize) -> (bool, bool) {
    let (Some(level), Some(demand)) = (level(residents, setting, at), residents.get(at).and_then(|r| r.demand)) else {
        return (true, true);
    };
    match level.free(0) {
        0 => (false, false),
        free => (response(&level, &demand, free).is_some(), fits(&level, &demand, free)),
    }
}

/// The longest time in which best effort never rests.
pub(super) fn busiest(residents: &[Resident], setting: &Setting) -> Option<u64> {
    let switch = turns::switch(residents, setting);
    let mut costs = alloc::vec::Vec::new();
    let mut taken = 0u64;
    for resident in residents {
        let demand = resident.demand?;
        let cost = job(&demand, setting.slice_us, switch, 0);
        taken = taken.saturating_add(parts_up(cost, demand.period_us));
        costs.push((demand.period_us, cost));
    }
    let sum: u64 = costs.iter().map(|(_, cost)| cost).sum();
    let free = PARTS.checked_sub(taken).filter(|free| *free > 0)?;
    let mut reached = sum;
    for _ in 0..ROUNDS_MAX {
        let next = costs.iter().map(|(period, cost)| reached.div_ceil(*period) * cost).sum();
        if next == reached {
            return Some(reached);
        }
        reached = next;
    }
    u64::try_from((u128::from(sum) * u128::from(PARTS)).div_ceil(u128::from(free))).ok()
}
