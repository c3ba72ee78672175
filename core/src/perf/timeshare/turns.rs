//! Guarantees of the schedulers that give everyone a turn in every round.
//!
//! A resident has turns of at least `Q` and waits at most the gap `G` between two of them.
//!
//! | scheduler | `Q` | `G` |
//! |---|---|---|
//! | best effort | `q` | `(n − 1)(q + c) + c` |
//! | equal share | `q` | `n(q + c) − Q` |
//! | fixed share | `s q + (s − 1) c` of `s` shares, one after the other | `m(q + c) − Q` of `m` slots |
//! | weighted fair | `⌊n q w / Σw⌋`, at least 1 | `Σ over others (Q + e + c) + c`, `e` = `⌊q / averaging factor⌋` of who can be idle, else 0 |
//!
//! With nobody else on the GPU (one resident, one slot) there is no switch: `c` is 0.
//!
//! * Share: `Q / (Q + G)`; of weighted fair `Q / Σ(Q + c)`, because credit repays turns that
//!   were not used.
//! * Worst wait: `G`, if the demand fits the share, `b (Q + G) ≤ p Q`. Job `m` of a backlog
//!   begins after `(m − 1) b` of own work, which takes at most `⌊(m − 1) b / Q⌋ + 1` gaps, so it
//!   waits at most `G + (m − 1) (b G / Q + b − p) ≤ G`.
//! * Best effort otherwise, with everybody periodic: `L − b`, `L` the longest time in which the
//!   GPU never rests: the least `L` with `L = Σ ⌈L / p⌉ C`, `C = b + (⌊b / q⌋ + 1) c`. There is
//!   one if `Σ C / p < 1`.
//! * Worst response: `⌈b / Q⌉ G + b`, if that is at most `p`.
//! * p99 of slots, if the response is at most `p`: arrivals fall on every `g`-th moment of the
//!   cycle `T = Q + G`, `g = gcd(p, T)`, and so `⌊(T / g) / 100⌋` of them may wait longer than
//!   `G − g ⌊(T / g) / 100⌋`. Exact over whole multiples of `lcm(p, T)` and the worst phase;
//!   other phases are less than `g` below.

use alloc::vec::Vec;

use super::closed::{Bounds, P99, ppm_down};
use super::demand::{Demand, Resident};
use super::priority::busiest;
use super::{Scheduler, Setting};

/// A resident's place in the round.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// It gets at least this.
    length: u64,
    /// And comes back after this.
    gap: u64,
    /// The round that shares are parts of.
    round: u64,
}

/// The guarantees of one resident.
pub(super) fn bounds(residents: &[Resident], setting: &Setting, at: usize) -> Option<Bounds> {
    let resident = residents.get(at)?;
    let turn = turn(residents, setting, at)?;
    let share_ppm = ppm_down(turn.length, turn.round);
    let Some(demand) = resident.demand else {
        let (wait, p99) = (Some(turn.gap), if setting.scheduler.is_slotted() { P99::Exact } else { P99::UpperBound });
        let band = if p99 == P99::Exact { Some(0) } else { wait };
        return Some(Bounds {
            share_ppm,
            wait_worst_us: wait,
            wait_p99_us: wait,
            p99,
            p99_band_us: band,
            response_worst_us: None,
        });
    };
    let fits = fits(&demand, turn);
    let mut wait = fits.then_some(turn.gap);
    if setting.scheduler == Scheduler::BestEffort {
        let others = busiest(residents, setting).map(|l| l.saturating_sub(demand.burst_us));
        wait = [wait, others].into_iter().flatten().min();
    }
    let response = demand.burst_us.div_ceil(turn.length) * turn.gap + demand.burst_us;
    let response = (response <= demand.period_us).then_some(response);
    let (wait_p99_us, p99, band) = match (setting.scheduler.is_slotted(), response, wait) {
        (true, Some(_), Some(gap)) => {
            let step = gcd(demand.period_us, turn.round);
            let above = turn.round.checked_div(step).unwrap_or(0) / 100;
            (Some(gap.saturating_sub(step * above)), P99::Exact, Some(step.saturating_sub(1)))
        }
        _ => (wait, P99::UpperBound, wait),
    };
    Some(Bounds { share_ppm, wait_worst_us: wait, wait_p99_us, p99, p99_band_us: band, response_worst_us: response })
}

/// The demand fits the share: the bound on the wait is the gap.
pub(super) fn within_share(residents: &[Resident], setting: &Setting, at: usize) -> bool {
    let demand = residents.get(at).and_then(|r| r.demand);
    match (demand, turn(residents, setting, at)) {
        (Some(demand), Some(turn)) => fits(&demand, turn),
        _ => true,
    }
}

fn fits(demand: &Demand, turn: Turn) -> bool {
    let needs = u128::from(demand.burst_us) * u128::from(turn.length + turn.gap);
    needs <= u128::from(demand.period_us) * u128::from(turn.length)
}

fn turn(residents: &[Resident], setting: &Setting, at: usize) -> Option<Turn> {
    let count = residents.len() as u64;
    let slice = setting.slice_us;
    let switch = switch(residents, setting);
    let slot = slice + switch;
    Some(match setting.scheduler {
        Scheduler::FixedShare => {
            let shares = residents.get(at)?.shares;
            let length = (shares * slot).saturating_sub(switch);
            let round = setting.max_vgpus * slot;
            Turn { length, gap: round.saturating_sub(length), round }
        }
        Scheduler::WeightedFair => {
            let lengths = lengths(setting);
            let others = lengths.iter().zip(residents).enumerate().filter(|(i, _)| *i != at);
            let gap: u64 = others.map(|(_, (length, r))| length + credit(r, setting) + switch).sum();
            let round = lengths.iter().map(|l| l + switch).sum();
            Turn { length: *lengths.get(at)?, gap: gap + switch, round }
        }
        _ => Turn { length: slice, gap: (count * slot).saturating_sub(slice), round: count * slot },
    })
}

/// What a switch costs: nothing where there is nobody to switch to.
pub(super) fn switch(residents: &[Resident], setting: &Setting) -> u64 {
    let turns = match setting.scheduler {
        Scheduler::FixedShare => setting.max_vgpus,
        _ => residents.len() as u64,
    };
    if turns > 1 { setting.switch_us } else { 0 }
}

/// Turns of weighted fair: parts of one slice for each resident.
pub(super) fn lengths(setting: &Setting) -> Vec<u64> {
    let total: u128 = setting.weights.iter().map(|w| u128::from(*w)).sum();
    let round = u128::from(setting.slice_us) * setting.weights.len() as u128;
    let part = |w: &u64| (round * u128::from(*w)).checked_div(total).and_then(|l| u64::try_from(l).ok()).unwrap_or(0);
    setting.weights.iter().map(|w| part(w).max(1)).collect()
}

/// The most by which credit lengthens a turn of weighted fair.
pub(super) fn credit(resident: &Resident, setting: &Setting) -> u64 {
    match resident.demand {
        Some(_) => setting.slice_us.checked_div(setting.averaging_factor).unwrap_or(setting.slice_us),
        None => 0,
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}
