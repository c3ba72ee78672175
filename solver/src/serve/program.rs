//! The integer program of a deployment: how many GPUs of each shape, how many segments of
//! each target and size. Answers are read in integers and made whole by hand.

use slicewise_core::ids::{Id, IdVec};

use super::facts::{BySize, Facts};
use super::price::{Pool, Pricer, Ranges, is_within, weights, whole};
use crate::ids::{ShapeId, SizeId, TargetId};
use crate::lp::{self, Column, Program, Sense};

/// Segments of every target and GPUs of every shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// Segments.
    pub segments: IdVec<TargetId, BySize<u64>>,
    /// GPUs.
    pub gpus: IdVec<ShapeId, u64>,
}

impl Solution {
    /// GPUs in all.
    pub fn count(&self) -> u64 {
        self.gpus.iter().map(|(_, n)| *n).sum()
    }

    /// Whether every rate is reached and every segment has a place.
    pub fn is_right(&self, facts: &Facts<'_>) -> bool {
        let reaches = |(id, counts): (TargetId, &BySize<u64>)| {
            reach(facts, id, counts) >= u128::from(facts.jobs[id].target.rate_milli)
        };
        let has_place = |size: SizeId| {
            let supply: u64 = facts.shapes.iter().map(|(id, s)| s.counts[size] * self.gpus[id]).sum();
            self.segments.iter().map(|(_, counts)| counts[size]).sum::<u64>() <= supply
        };
        self.segments.iter().all(reaches) && facts.sizes.ids().all(has_place)
    }
}

/// What the segments of a target do together.
pub fn reach(facts: &Facts<'_>, target: TargetId, counts: &BySize<u64>) -> u128 {
    counts.iter().map(|(s, n)| u128::from(*n) * u128::from(facts.jobs[target].throughput(s))).sum()
}

impl Pricer<'_> {
    /// Solves for at least `bound` GPUs. Rows from prices make the program as tight as the
    /// bound that they prove.
    pub fn integer(&self, bound: u64, prices: &[BySize<u64>], start: &Solution) -> Option<Solution> {
        let facts = self.facts;
        let mut program = Program::default();
        for (id, _) in facts.shapes.iter() {
            let upper = Some(whole(start.count()));
            program.column(Column { cost: 1, integer: true, upper, start: Some(whole(start.gpus[id])) });
        }
        let first = program.columns.len();
        let sizes = facts.sizes.len();
        let at = |target: TargetId, size: SizeId| first + target.index() * sizes + size.index();
        for (id, job) in facts.jobs.iter() {
            for size in facts.sizes.ids() {
                let throughput = job.throughput(size);
                let most = job.target.rate_milli.checked_div(throughput).map_or(0, |n| n + 1);
                let start = Some(whole(start.segments[id][size]));
                program.column(Column { cost: 0, integer: true, upper: Some(whole(most)), start });
            }
        }
        program.row(facts.shapes.ids().map(|id| (id.index(), 1)).collect(), Sense::Ge, whole(bound));
        for size in facts.sizes.ids() {
            let supply = facts.shapes.iter().map(|(id, s)| (id.index(), whole(s.counts[size])));
            let demand = facts.jobs.ids().map(|id| (at(id, size), -1));
            program.row(supply.chain(demand).filter(|(_, n)| *n != 0).collect(), Sense::Ge, 0);
        }
        for (id, job) in facts.jobs.iter() {
            let terms = |value: &dyn Fn(SizeId) -> u64| {
                let all = facts.sizes.ids().filter(|s| job.throughput(*s) > 0).map(|s| (at(id, s), whole(value(s))));
                all.filter(|(_, n)| *n > 0).collect::<Vec<_>>()
            };
            program.row(terms(&|s| job.throughput(s)), Sense::Ge, whole(job.target.rate_milli));
            for prices in prices {
                let least = self.cover(id, &Ranges::default(), prices)?.price;
                let least = u64::try_from(least).unwrap_or(u64::MAX);
                program.row(terms(&|s| prices[s]), Sense::Ge, whole(least));
            }
        }
        let values = program.solve(self.backend, self.budget.nodes)?;
        let value = |position: usize| count(values.get(position).copied().unwrap_or(0));
        let found = Solution {
            segments: facts.jobs.ids().map(|id| facts.sizes.ids().map(|s| value(at(id, s))).collect()).collect(),
            gpus: facts.shapes.ids().map(|id| value(id.index())).collect(),
        };
        found.is_right(facts).then_some(found)
    }

    /// Fractions of the program of whole multisets: segments of every target and size, and
    /// GPUs of every shape, in units of the solver.
    pub fn fractions(&self, ranges: &Ranges, pool: &Pool) -> Option<Fractions> {
        let facts = self.facts;
        let mut program = Program::default();
        for (id, _) in facts.shapes.iter() {
            let (least, most) = ranges.gpus(id);
            let upper = (most < u64::MAX).then(|| whole(most));
            let column = program.column(Column { cost: 1, upper, ..Column::default() });
            if least > 0 {
                program.row(vec![(column, 1)], Sense::Ge, whole(least));
            }
        }
        let mut needs: BySize<Vec<(usize, i64)>> = facts.sizes.iter().map(|_| Vec::new()).collect();
        let mut chosen: Vec<(TargetId, &BySize<u64>, usize)> = Vec::new();
        for (target, multisets) in pool.iter() {
            let mut row = Vec::new();
            for counts in multisets.iter().filter(|c| is_within(ranges, target, c)) {
                let column = program.column(Column::default());
                row.push((column, 1));
                chosen.push((target, counts, column));
                for (size, n) in weights(counts, -1) {
                    needs[SizeId::from_index(size)].push((column, n));
                }
            }
            program.row(row, Sense::Ge, 1);
        }
        for (size, mut terms) in needs.iter().map(|(s, t)| (s, t.clone())) {
            terms.extend(facts.shapes.iter().map(|(id, s)| (id.index(), whole(s.counts[size]))).filter(|t| t.1 > 0));
            program.row(terms, Sense::Ge, 0);
        }
        let values = program.solve(self.backend, 0)?;
        let value = |position: usize| values.get(position).copied().unwrap_or(0).max(0);
        let none = |_| facts.sizes.iter().map(|_| 0).collect();
        let mut segments: IdVec<TargetId, BySize<i64>> = facts.jobs.ids().map(none).collect();
        for (target, counts, column) in chosen {
            for (size, n) in counts.iter() {
                segments[target][size] = segments[target][size].saturating_add(value(column).saturating_mul(whole(*n)));
            }
        }
        Some(Fractions { segments, gpus: facts.shapes.ids().map(|id| value(id.index())).collect() })
    }
}

/// A solution in fractions.
pub struct Fractions {
    /// Segments.
    pub segments: IdVec<TargetId, BySize<i64>>,
    /// GPUs.
    pub gpus: IdVec<ShapeId, i64>,
}

impl Fractions {
    /// The nearest whole numbers.
    pub fn rounded(&self) -> Solution {
        Solution {
            segments: self.segments.iter().map(|(_, c)| c.iter().map(|(_, v)| count(*v)).collect()).collect(),
            gpus: self.gpus.iter().map(|(_, v)| count(*v)).collect(),
        }
    }
}

fn count(units: i64) -> u64 {
    u64::try_from(lp::whole(units)).unwrap_or(0)
}
