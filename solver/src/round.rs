//! Whole numbers from the program's fractions: round down, then solve what is left as a
//! small integer program that starts from a heuristic.

use std::cmp::Reverse;

use slicewise_core::ids::IdVec;

use crate::demand::Batch;
use crate::ids::{ColumnId, DemandId, PartId, SlotId};
use crate::lp::{Program, floor, whole};
use crate::master::{Given, Goal, Layout, Master};
use crate::room::SlotPrices;

/// How many copies of each pattern are given back to the integer program, in turn, while
/// the bound is not met.
const LOOSENINGS: [i64; 4] = [0, 1, 3, 8];

/// GPUs up to which all copies are given back at last.
const FREE_MAX: i64 = 400;

/// Patterns that the heuristic adds one by one before it stops.
const FILLS_MAX: usize = 4_096;

/// A whole solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Copies of each pattern.
    pub copies: IdVec<ColumnId, u64>,
    /// Members served, by demand and alternative.
    pub served: Vec<(DemandId, usize, u64)>,
    /// Parts served by each slot.
    pub flows: Vec<(PartId, SlotId, u64)>,
    /// Members admitted, by demand.
    pub admitted: IdVec<DemandId, u64>,
    /// GPUs opened at most.
    pub opened: u64,
}

impl Packing {
    /// What the admitted are worth.
    pub fn value(&self, worth: &IdVec<DemandId, u64>) -> u64 {
        self.admitted.iter().fold(0, |sum, (id, n)| sum.saturating_add(n.saturating_mul(worth[id])))
    }
}

/// How good a packing is for a goal; more is better. `None`: it misses the goal.
fn merit(goal: &Goal, packing: &Packing) -> Option<i128> {
    match goal {
        Goal::Value(worth) => Some(i128::from(packing.value(worth))),
        Goal::Gpus(members) => {
            let all = packing.admitted.iter().all(|(id, n)| *n >= members[id]);
            all.then(|| -i128::from(packing.opened))
        }
    }
}

/// The best packing found for the goal. `target` is the bound: what meets it is optimal.
pub fn solve(master: &Master<'_>, goal: &Goal, prices: &SlotPrices, target: u64) -> Option<Packing> {
    let target = match goal {
        Goal::Value(_) => i128::from(target),
        Goal::Gpus(_) => -i128::from(target),
    };
    let nothing = master.nothing();
    let (program, layout) = master.primal(goal, &nothing, false);
    let fractions = program.solve(master.backend, 0);
    let mut best: Option<(i128, Packing)> = None;
    let mut keep = |packing: Option<Packing>| {
        if let Some(packing) = packing
            && let Some(merit) = merit(goal, &packing)
            && best.as_ref().is_none_or(|(b, _)| merit > *b)
        {
            best = Some((merit, packing));
        }
        best.as_ref().is_some_and(|(b, _)| *b >= target)
    };
    let Some(fractions) = fractions else {
        keep(Some(fill(master, goal, prices, &nothing, &no_copies(master))));
        return best.map(|(_, packing)| packing);
    };
    let all = (nothing.left.iter().map(|(_, n)| *n).sum::<i64>() <= FREE_MAX).then_some(FREE_MAX);
    for loosening in LOOSENINGS.into_iter().chain(all) {
        let base = rounded_down(master, &layout, &fractions, loosening);
        let given = after(master, &base);
        let start = fill(master, goal, prices, &given, &base);
        if keep(Some(start.clone())) {
            break;
        }
        if keep(residual(master, goal, &given, &base, &start)) {
            break;
        }
        if base.iter().all(|(_, n)| *n == 0) {
            break;
        }
    }
    best.map(|(_, packing)| packing)
}

fn no_copies(master: &Master<'_>) -> IdVec<ColumnId, u64> {
    master.pool.iter().map(|_| 0).collect()
}

fn rounded_down(master: &Master<'_>, layout: &Layout, values: &[i64], loosening: i64) -> IdVec<ColumnId, u64> {
    let mut left = master.nothing().left;
    let copies = layout.copies.iter().zip(master.pool.iter()).map(|(position, (_, (room, _)))| {
        let value = floor(values.get(*position).copied().unwrap_or(0)) - loosening;
        // A solver may overstep a room by its tolerance.
        let value = value.clamp(0, left[*room].max(0));
        left[*room] -= value;
        u64::try_from(value).unwrap_or(0)
    });
    copies.collect()
}

/// What is given once these copies are made.
fn after(master: &Master<'_>, copies: &IdVec<ColumnId, u64>) -> Given {
    let mut given = master.nothing();
    for (id, (room, pattern)) in master.pool.iter() {
        let n = copies[id] as i64;
        given.left[*room] -= n;
        pattern.iter().for_each(|(slot, times)| given.slots[*slot] += n * i64::from(*times));
    }
    given
}

fn residual(
    master: &Master<'_>,
    goal: &Goal,
    given: &Given,
    base: &IdVec<ColumnId, u64>,
    start: &Packing,
) -> Option<Packing> {
    let (mut program, layout) = master.primal(goal, given, true);
    if merit(goal, start).is_some() {
        set_start(&mut program, &layout, base, start);
    }
    let values = program.solve(master.backend, master.budget.nodes)?;
    let mut left = given.left.clone();
    let mut copies = base.clone();
    for (position, (id, (room, _))) in layout.copies.iter().zip(master.pool.iter()) {
        let n = whole(values.get(*position).copied().unwrap_or(0)).clamp(0, left[*room].max(0));
        left[*room] -= n;
        copies[id] += n as u64;
    }
    let supply = after(master, &copies).slots;
    let mut packing = read(master, &program, &layout, &values).unwrap_or_else(|| assign(master.batch, goal, &supply));
    packing.opened = opened(master, &copies);
    packing.copies = copies;
    Some(packing)
}

/// The flows of a solution, where they are whole.
fn read(master: &Master<'_>, program: &Program, layout: &Layout, values: &[i64]) -> Option<Packing> {
    let values: Vec<i64> = values.iter().map(|v| whole(*v)).collect();
    if !program.is_met_by(&values) {
        return None;
    }
    let at = |position: usize| u64::try_from(values.get(position).copied().unwrap_or(0)).unwrap_or(0);
    let served: Vec<(DemandId, usize, u64)> = layout.served.iter().map(|(d, a, c)| (*d, *a, at(*c))).collect();
    let flows = layout.flows.iter().map(|(p, s, c)| (*p, *s, at(*c))).collect();
    let mut admitted: IdVec<DemandId, u64> = master.batch.demands.iter().map(|_| 0).collect();
    served.iter().for_each(|(demand, _, n)| admitted[*demand] += n);
    Some(Packing { copies: IdVec::default(), served, flows, admitted, opened: 0 })
}

fn set_start(program: &mut Program, layout: &Layout, base: &IdVec<ColumnId, u64>, start: &Packing) {
    let mut set = |position: usize, value: u64| {
        if let Some(column) = program.columns.get_mut(position) {
            column.start = i64::try_from(value).ok();
        }
    };
    for (position, (id, n)) in layout.copies.iter().zip(start.copies.iter()) {
        set(*position, n.saturating_sub(base[id]));
    }
    for ((_, _, position), (_, _, n)) in layout.served.iter().zip(&start.served) {
        set(*position, *n);
    }
    for ((_, _, position), (_, _, n)) in layout.flows.iter().zip(&start.flows) {
        set(*position, *n);
    }
    for (demand, position) in &layout.lots {
        set(*position, start.admitted[*demand]);
    }
}

/// GPUs opened by these copies.
fn opened(master: &Master<'_>, copies: &IdVec<ColumnId, u64>) -> u64 {
    let unused = |room| master.rooms.rooms[room].unused;
    master.pool.iter().filter(|(_, (room, _))| unused(*room)).map(|(id, _)| copies[id]).sum()
}

/// Serves members from slots, the most wanted first; flows and members in the order that
/// [`Master::primal`] lists them.
pub fn assign(batch: &Batch, goal: &Goal, supply: &IdVec<SlotId, i64>) -> Packing {
    let mut left: IdVec<SlotId, u64> = supply.iter().map(|(_, n)| u64::try_from(*n).unwrap_or(0)).collect();
    let mut users: IdVec<SlotId, usize> = batch.slots.iter().map(|_| 0).collect();
    batch.parts.iter().flat_map(|(_, p)| &p.slots).for_each(|slot| users[*slot] += 1);
    let mut flows: IdVec<PartId, Vec<(SlotId, u64)>> =
        batch.parts.iter().map(|(_, p)| p.slots.iter().map(|s| (*s, 0)).collect()).collect();
    let mut served: IdVec<DemandId, Vec<u64>> =
        batch.demands.iter().map(|(_, d)| d.alternatives.iter().map(|_| 0).collect()).collect();
    let mut admitted: IdVec<DemandId, u64> = batch.demands.iter().map(|_| 0).collect();
    let mut order: Vec<DemandId> = batch.demands.ids().collect();
    // Equal worth: those with the fewest places first.
    let places = |id: DemandId| -> usize {
        batch.demands[id].alternatives.iter().flatten().map(|(p, _)| batch.parts[*p].slots.len()).sum()
    };
    order.sort_by_key(|id| (Reverse(worth(goal, *id)), places(*id), *id));
    for id in order {
        let demand = &batch.demands[id];
        for (position, alternative) in demand.alternatives.iter().enumerate() {
            let wanted = demand.members - admitted[id];
            let room = |(part, n): &(PartId, u32)| {
                let all: u64 = batch.parts[*part].slots.iter().map(|s| left[*s]).sum();
                all / u64::from((*n).max(1))
            };
            let fit = alternative.iter().map(room).min().unwrap_or(0).min(wanted);
            // A gang's members may differ in their alternatives; here they do not.
            let fit = fit - fit % demand.lot.max(1);
            for (part, n) in alternative {
                let mut need = fit * u64::from(*n);
                let mut order: Vec<usize> = (0..flows[*part].len()).collect();
                order.sort_by_key(|i| flows[*part].get(*i).map(|(slot, _)| users[*slot]));
                for i in order {
                    let Some((slot, flow)) = flows[*part].get_mut(i) else { continue };
                    let take = need.min(left[*slot]);
                    left[*slot] -= take;
                    *flow += take;
                    need -= take;
                }
            }
            if let Some(count) = served[id].get_mut(position) {
                *count += fit;
            }
            admitted[id] += fit;
        }
    }
    Packing {
        copies: IdVec::default(),
        served: served
            .iter()
            .flat_map(|(id, counts)| counts.iter().enumerate().map(move |(a, n)| (id, a, *n)))
            .collect(),
        flows: flows.iter().flat_map(|(part, flows)| flows.iter().map(move |(s, n)| (part, *s, *n))).collect(),
        admitted,
        opened: 0,
    }
}

fn worth(goal: &Goal, demand: DemandId) -> u64 {
    match goal {
        Goal::Value(worth) => worth.lookup(demand).copied().unwrap_or(0),
        Goal::Gpus(members) => u64::from(members.lookup(demand).copied().unwrap_or(0) > 0),
    }
}

/// Adds patterns to a base, each time the one that serves the dearest of what is missing.
fn fill(master: &Master<'_>, goal: &Goal, prices: &SlotPrices, given: &Given, base: &IdVec<ColumnId, u64>) -> Packing {
    let batch = master.batch;
    let (mut given, mut copies) = (given.clone(), base.clone());
    let mut packing = assign(batch, goal, &given.slots);
    for _ in 0..FILLS_MAX {
        let missing = missing(batch, goal, &packing);
        if missing.iter().all(|(_, n)| *n == 0) {
            break;
        }
        let gain = |column: &ColumnId| -> (u64, bool, Reverse<ColumnId>) {
            let (room, pattern) = &master.pool[*column];
            let serves = pattern.iter().map(|(s, n)| u64::from(*n).min(missing[*s]).saturating_mul(1 + prices[*s]));
            (serves.sum(), !master.rooms.rooms[*room].unused, Reverse(*column))
        };
        let open = master.pool.iter().filter(|(_, (room, _))| given.left[*room] > 0).map(|(id, _)| id);
        let Some((best, (gain, ..))) = open.map(|c| (c, gain(&c))).max_by_key(|(_, gain)| *gain) else { break };
        if gain == 0 {
            break;
        }
        let (room, pattern) = &master.pool[best];
        // As often as it is wanted whole.
        let times = pattern.iter().map(|(s, n)| missing[*s] / u64::from((*n).max(1))).min().unwrap_or(0).max(1);
        let times = times.min(given.left[*room] as u64);
        copies[best] += times;
        given.left[*room] -= times as i64;
        pattern.iter().for_each(|(slot, n)| given.slots[*slot] += (times * u64::from(*n)) as i64);
        let next = assign(batch, goal, &given.slots);
        packing = next;
    }
    packing.opened = opened(master, &copies);
    packing.copies = copies;
    packing
}

/// Slots that would serve the members not yet admitted, by any alternative.
fn missing(batch: &Batch, goal: &Goal, packing: &Packing) -> IdVec<SlotId, u64> {
    let mut missing: IdVec<SlotId, u64> = batch.slots.iter().map(|_| 0).collect();
    for (id, demand) in batch.demands.iter() {
        let wanted = match goal {
            Goal::Value(_) => demand.members,
            Goal::Gpus(members) => members[id],
        };
        let short = wanted.saturating_sub(packing.admitted[id]);
        let servable =
            |a: &&crate::demand::Alternative| !a.is_empty() && a.iter().all(|(p, _)| !batch.parts[*p].slots.is_empty());
        for (part, n) in demand.alternatives.iter().filter(servable).flatten() {
            for slot in &batch.parts[*part].slots {
                missing[*slot] += short * u64::from(*n);
            }
        }
    }
    missing
}
