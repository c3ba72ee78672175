//! Prices on sizes under which the targets are worth as many GPUs as can be proved: the
//! dual of the program of whole multisets, with a row for each multiset that was once the
//! cheapest of a target.

use std::collections::BTreeMap;

use slicewise_core::ids::{Id, IdVec};

use super::ServeBudget;
use super::cover::{Choice, Cover, cheapest};
use super::facts::{BySize, Facts};
use crate::budget::Backend;
use crate::ids::{ShapeId, SizeId, TargetId};
use crate::lp::{Column, Program, Sense, UNIT};

/// Prices of a solver's answer are found to this many parts of a GPU.
const FINE: u64 = 1_000_000;

/// Scales that prices are tried at: those of small programs are often whole, halves,
/// thirds and so on, and then a coarse scale loses nothing.
const SCALES: [u64; 14] = [1, 2, 3, 4, 5, 6, 7, 12, 60, 420, 840, 27_720, FINE / 10, FINE];

/// Most that a target may be worth in GPUs: keeps a dual finite whose primal has no
/// solution.
const WORTH_MAX: i64 = 1_000_000;

/// At least and at most.
pub type Range = (u64, u64);

/// No limit.
pub const FREE: Range = (0, u64::MAX);

/// What a branch has decided.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Segments of a target and size.
    pub segments: BTreeMap<(TargetId, SizeId), Range>,
    /// GPUs of a shape.
    pub gpus: BTreeMap<ShapeId, Range>,
}

impl Ranges {
    /// How many segments a target may have.
    pub fn segments(&self, target: TargetId, size: SizeId) -> Range {
        self.segments.get(&(target, size)).copied().unwrap_or(FREE)
    }
    /// How many GPUs may have a shape.
    pub fn gpus(&self, shape: ShapeId) -> Range {
        self.gpus.get(&shape).copied().unwrap_or(FREE)
    }
}

/// The multisets of each target that were cheapest at some prices.
pub type Pool = IdVec<TargetId, Vec<BySize<u64>>>;

/// Prices and what they prove.
#[derive(Clone, Debug)]
pub struct Priced {
    /// Prices, in any unit.
    pub prices: BySize<u64>,
    /// GPUs that they prove; `u64::MAX`: nothing serves within the ranges.
    pub bound: u64,
}

/// One place in the search for a proof.
pub struct Pricer<'a> {
    /// What is asked.
    pub facts: &'a Facts<'a>,
    /// Limits.
    pub budget: ServeBudget,
    /// Who solves.
    pub backend: Backend,
}

impl Pricer<'_> {
    /// The cheapest segments of a target.
    pub fn cover(&self, target: TargetId, ranges: &Ranges, prices: &BySize<u64>) -> Option<Cover> {
        let job = &self.facts.jobs[target];
        let choice = |size: SizeId| {
            let (throughput, (least, most)) = (job.throughput(size), ranges.segments(target, size));
            Choice { price: prices[size], throughput, least, most: if throughput == 0 { 0 } else { most } }
        };
        cheapest(&self.facts.sizes.ids().map(choice).collect(), job.target.rate_milli, self.budget.work)
    }

    /// What prices prove.
    pub fn bound(&self, ranges: &Ranges, prices: &BySize<u64>) -> u64 {
        let mut worth = 0_u128;
        for target in self.facts.jobs.ids() {
            let Some(cover) = self.cover(target, ranges, prices) else { return u64::MAX };
            worth += cover.price;
        }
        let mut shapes: Vec<(u128, Range)> = Vec::new();
        for (id, shape) in self.facts.shapes.iter() {
            let each = shape.counts.iter().map(|(s, n)| u128::from(*n) * u128::from(prices[s])).sum();
            shapes.push((each, ranges.gpus(id)));
        }
        if shapes.iter().any(|(_, (least, most))| least > most) {
            return u64::MAX;
        }
        shapes.sort_unstable();
        let mut gpus: u128 = shapes.iter().map(|(_, (least, _))| u128::from(*least)).sum();
        let given: u128 = shapes.iter().map(|(each, (least, _))| each * u128::from(*least)).sum();
        let mut left = worth.saturating_sub(given);
        for (each, (least, most)) in shapes.into_iter().rev().filter(|(each, _)| *each > 0) {
            let taken = left.div_ceil(each).min(u128::from(most - least));
            gpus += taken;
            left = left.saturating_sub(taken * each);
        }
        if left > 0 { u64::MAX } else { u64::try_from(gpus).unwrap_or(u64::MAX) }
    }

    /// The best prices found within these ranges; new multisets go to the pool. Stops at
    /// `enough`.
    pub fn price(&self, ranges: &Ranges, pool: &mut Pool, enough: u64) -> Priced {
        let flat: BySize<u64> = self.facts.sizes.iter().map(|(_, size)| u64::from(size.slices)).collect();
        let mut best = Priced { bound: self.bound(ranges, &flat), prices: flat };
        if best.bound == u64::MAX || !self.seed(ranges, pool) {
            return best;
        }
        let mut last = None;
        let mut enough = enough;
        for _ in 0..self.budget.rounds {
            let (program, positions) = self.dual(ranges, pool);
            let Some(values) = program.solve(self.backend, 0) else { break };
            let at = |position: usize| values.get(position).copied().unwrap_or(0).max(0);
            let prices: BySize<u64> = self.facts.sizes.ids().map(|s| fine(at(s.index()))).collect();
            let mut is_new = false;
            for target in self.facts.jobs.ids() {
                let Some(cover) = self.cover(target, ranges, &prices) else { continue };
                let claimed = fine(at(positions + target.index()));
                // What rounding of the prices explains is no improvement.
                let slack = 1 + cover.counts.iter().flat_map(|c| c.iter()).map(|(_, n)| *n).sum::<u64>();
                if let (true, Some(counts)) = (cover.price + u128::from(slack) < u128::from(claimed), cover.counts) {
                    is_new |= add(pool, target, counts);
                }
            }
            last = Some(prices);
            if !is_new {
                // Rounded prices hardly prove more than the program is worth.
                let worth = program.columns.iter().zip(&values).map(|(c, v)| i128::from(c.cost) * i128::from(*v)).sum();
                enough = enough.min(gpus_of(worth));
                break;
            }
        }
        if let Some(prices) = last {
            self.tighten(ranges, &prices, enough, &mut best);
        }
        best
    }

    /// Takes over the tightest rounding of fine prices.
    fn tighten(&self, ranges: &Ranges, prices: &BySize<u64>, enough: u64, best: &mut Priced) {
        for scale in SCALES {
            for half in [FINE / 2, 0, FINE - 1] {
                let rounded: BySize<u64> = prices.iter().map(|(_, p)| (p * scale + half) / FINE).collect();
                if best.bound >= enough {
                    return;
                }
                if rounded.iter().any(|(_, p)| *p > 0) {
                    let bound = self.bound(ranges, &rounded);
                    if bound > best.bound {
                        *best = Priced { prices: rounded, bound };
                    }
                }
            }
        }
    }

    /// First multisets: for each size, the cheapest where the others are dear. False where
    /// a target cannot be reached.
    fn seed(&self, ranges: &Ranges, pool: &mut Pool) -> bool {
        for target in self.facts.jobs.ids() {
            for cheap in self.facts.sizes.ids() {
                let price =
                    |size: SizeId| u64::from(self.facts.sizes[size].slices) * if size == cheap { 1 } else { 64 };
                let prices = self.facts.sizes.ids().map(price).collect();
                let Some(cover) = self.cover(target, ranges, &prices) else { return false };
                if let Some(counts) = cover.counts {
                    add(pool, target, counts);
                }
            }
        }
        true
    }

    /// Prices first, then what each target is worth, from the position given.
    fn dual(&self, ranges: &Ranges, pool: &Pool) -> (Program, usize) {
        let mut program = Program { maximise: true, ..Program::default() };
        self.facts.sizes.iter().for_each(|_| {
            program.column(Column::default());
        });
        let first = program.columns.len();
        self.facts.jobs.iter().for_each(|_| {
            program.column(Column { cost: 1, upper: Some(WORTH_MAX), ..Column::default() });
        });
        for (id, shape) in self.facts.shapes.iter() {
            let mut terms: Vec<(usize, i64)> = weights(&shape.counts, 1);
            let (least, most) = ranges.gpus(id);
            if least > 0 {
                terms.push((program.column(Column { cost: whole(least), upper: Some(1), ..Column::default() }), 1));
            }
            if most < u64::MAX {
                terms.push((program.column(Column { cost: -whole(most), ..Column::default() }), -1));
            }
            program.row(terms, Sense::Le, 1);
        }
        for (target, multisets) in pool.iter() {
            for counts in multisets.iter().filter(|counts| is_within(ranges, target, counts)) {
                let mut terms = weights(counts, -1);
                terms.push((first + target.index(), 1));
                program.row(terms, Sense::Le, 0);
            }
        }
        (program, first)
    }
}

/// Whether a branch allows these segments.
pub fn is_within(ranges: &Ranges, target: TargetId, counts: &BySize<u64>) -> bool {
    counts.iter().all(|(size, n)| {
        let (least, most) = ranges.segments(target, size);
        (least..=most).contains(n)
    })
}

/// Counts as the terms of a row.
pub fn weights(counts: &BySize<u64>, sign: i64) -> Vec<(usize, i64)> {
    counts.iter().filter(|(_, n)| **n > 0).map(|(s, n)| (s.index(), sign * whole(*n))).collect()
}

fn add(pool: &mut Pool, target: TargetId, counts: BySize<u64>) -> bool {
    let is_new = !pool[target].contains(&counts);
    if is_new {
        pool[target].push(counts);
    }
    is_new
}

fn fine(units: i64) -> u64 {
    u64::try_from(i128::from(units) * i128::from(FINE) / i128::from(UNIT)).unwrap_or(0)
}

/// A worth in units of the solver as whole GPUs; what is within rounding of a whole number
/// counts as it.
fn gpus_of(units: i128) -> u64 {
    let slack = i128::from(UNIT / 1000);
    u64::try_from((units - slack).max(0).div_euclid(i128::from(UNIT)) + 1).unwrap_or(u64::MAX)
}

/// A count that a solver can still tell apart.
pub fn whole(number: u64) -> i64 {
    i64::try_from(number.min(1_000_000_000_000)).unwrap_or(0)
}
