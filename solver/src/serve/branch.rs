//! Where prices alone leave a gap: a tree of splits, each leaf with its own prices, grown
//! until every leaf proves one GPU more than is proved already, or the budget ends.

use slicewise_core::ids::{Id, IdVec};
use slicewise_core::serving::{GpuProof, ProfilePrice, SplitOn};

use super::facts::{BySize, Facts};
use super::pack::pack;
use super::price::{Pool, Priced, Pricer, Ranges};
use super::program::Solution;
use crate::ids::{ShapeId, SizeId, TargetId};
use crate::lp::UNIT;

/// Deepest tree: far below what the checker reads.
const DEPTH_MAX: usize = 60;

/// A search for a proof.
pub struct Tree<'a, 'b> {
    pricer: &'a Pricer<'a>,
    pool: &'b mut Pool,
    /// The best solution so far.
    pub best: Solution,
    /// Whether a branching found it.
    pub improved: bool,
    /// Splits that may still be made.
    pub splits: u64,
}

/// What is split.
#[derive(Clone, Copy)]
enum On {
    Segments(TargetId, SizeId),
    Gpus(ShapeId),
}

impl<'a, 'b> Tree<'a, 'b> {
    /// A search that begins with a solution.
    pub fn new(pricer: &'a Pricer<'a>, pool: &'b mut Pool, best: Solution, splits: u64) -> Self {
        Self { pricer, pool, best, improved: false, splits }
    }

    /// A tree below `ranges` and what it proves, `goal` if it can.
    pub fn grow(&mut self, ranges: &Ranges, goal: u64, depth: usize) -> (GpuProof, u64) {
        let priced = self.pricer.price(ranges, self.pool, goal);
        let leaf = (self.leaf(&priced), priced.bound);
        if priced.bound >= goal || depth >= DEPTH_MAX || self.splits == 0 {
            return leaf;
        }
        let Some((on, most)) = self.choose(ranges, &priced) else { return leaf };
        if self.best.count() < goal {
            return leaf;
        }
        self.splits -= 1;
        let (mut low, mut high) = (ranges.clone(), ranges.clone());
        match on {
            On::Segments(target, size) => {
                let (least, limit) = ranges.segments(target, size);
                low.segments.insert((target, size), (least, limit.min(most)));
                high.segments.insert((target, size), (least.max(most + 1), limit));
            }
            On::Gpus(shape) => {
                let (least, limit) = ranges.gpus(shape);
                low.gpus.insert(shape, (least, limit.min(most)));
                high.gpus.insert(shape, (least.max(most + 1), limit));
            }
        }
        let (fewer, a) = self.grow(&low, goal, depth + 1);
        let (more, b) = self.grow(&high, goal, depth + 1);
        let proof = GpuProof::Split { on: self.name(on), most, fewer: Box::new(fewer), more: Box::new(more) };
        // A tree that proves no more than its root would is only long.
        if a.min(b) > priced.bound { (proof, a.min(b)) } else { leaf }
    }

    /// Where to split: what is furthest from whole. `None` where the fractions are a
    /// solution themselves.
    fn choose(&mut self, ranges: &Ranges, priced: &Priced) -> Option<(On, u64)> {
        let fractions = self.pricer.fractions(ranges, self.pool)?;
        let facts = self.pricer.facts;
        self.keep(fractions.rounded());
        let covers = facts.jobs.ids().map(|id| self.pricer.cover(id, ranges, &priced.prices)?.counts);
        if let Some(segments) = covers.collect::<Option<IdVec<TargetId, BySize<u64>>>>() {
            self.keep(pack(facts, segments, &priced.prices));
        }
        let segments = fractions.segments.iter();
        let segments = segments.flat_map(|(t, c)| c.iter().map(move |(s, v)| (On::Segments(t, s), *v)));
        let gpus = fractions.gpus.iter().map(|(id, v)| (On::Gpus(id), *v));
        let off = |v: i64| v.rem_euclid(UNIT).min(UNIT - v.rem_euclid(UNIT));
        let mut best: Option<(On, i64)> = None;
        for (on, value) in segments.chain(gpus).filter(|(_, v)| off(*v) > UNIT / 100_000) {
            if best.is_none_or(|(_, b)| off(value) > off(b)) {
                best = Some((on, value));
            }
        }
        best.map(|(on, value)| (on, u64::try_from(value / UNIT).unwrap_or(0)))
    }

    fn keep(&mut self, found: Solution) {
        if found.count() < self.best.count() && found.is_right(self.pricer.facts) {
            self.best = found;
            self.improved = true;
        }
    }

    fn leaf(&self, priced: &Priced) -> GpuProof {
        leaf(self.pricer.facts, &priced.prices)
    }

    fn name(&self, on: On) -> SplitOn {
        let facts = self.pricer.facts;
        match on {
            On::Segments(target, size) => SplitOn::Segments {
                model: facts.jobs[target].target.model.clone(),
                profile: facts.sizes[size].name.clone(),
            },
            On::Gpus(shape) => {
                let names = facts.shapes[shape].places.iter().map(|(size, _)| facts.sizes[*size].name.clone());
                SplitOn::Gpus { layout: names.collect() }
            }
        }
    }
}

/// Prices as a proof.
pub fn leaf(facts: &Facts<'_>, prices: &BySize<u64>) -> GpuProof {
    let price = |(id, price): (SizeId, &u64)| ProfilePrice { profile: facts.sizes[id].name.clone(), price: *price };
    GpuProof::Prices(prices.iter().map(price).collect())
}

/// A pool with nothing in it.
pub fn empty_pool(facts: &Facts<'_>) -> Pool {
    (0..facts.jobs.len()).map(TargetId::from_index).map(|_| Vec::new()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Backend;
    use crate::serve::ServeBudget;
    use crate::serve::facts::{Job, Shape, Size};
    use slicewise_core::serving::{Point, Target};

    /// Two triangles: of three sizes any two go together, never all three, and none with
    /// those of the other triangle. One segment of each: three GPUs in fractions, each
    /// pair half; four in whole. No published model is so awkward.
    #[test]
    fn a_gap_that_prices_leave_is_closed() {
        let size = |i: u16| Size { name: format!("{i}g"), slices: i + 1 };
        let pairs = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)];
        let shape = |(a, b): (usize, usize)| {
            let counts = (0..6).map(|i| u64::from(i == a || i == b)).collect();
            Shape { counts, places: vec![(SizeId::from_index(a), 0), (SizeId::from_index(b), 4)] }
        };
        let point =
            Point { model: "m".into(), compute_slices: 1, batch: 1, processes: 1, throughput_milli: 10, latency_us: 1 };
        let targets: Vec<Target> =
            (0..6).map(|i| Target { model: format!("m{i}"), rate_milli: 10, slo_us: 100 }).collect();
        let job = |(i, target)| Job { target, points: (0..6).map(|s| (s == i).then_some(&point)).collect() };
        let facts = Facts {
            gpu: "odd",
            sizes: (0..6).map(size).collect(),
            shapes: pairs.into_iter().map(shape).collect(),
            jobs: targets.iter().enumerate().map(job).collect(),
        };
        let pricer = Pricer { facts: &facts, budget: ServeBudget::default(), backend: Backend::default() };
        let mut pool = empty_pool(&facts);
        let root = pricer.price(&Ranges::default(), &mut pool, u64::MAX);
        assert_eq!(root.bound, 3);
        let whole = facts.jobs.ids().map(|t| facts.sizes.ids().map(|s| u64::from(s.index() == t.index())).collect());
        let start = pack(&facts, whole.collect(), &root.prices);
        assert!(start.count() == 4 && start.is_right(&facts));
        for (splits, bound) in [(0, 3), (400, 4)] {
            let mut tree = Tree::new(&pricer, &mut pool, start.clone(), splits);
            let (proof, proved) = tree.grow(&Ranges::default(), 4, 0);
            assert_eq!((proved, tree.best.count()), (bound, 4));
            assert_eq!(matches!(proof, GpuProof::Split { .. }), bound == 4);
        }
    }
}
