//! Solutions by hand: segments packed onto shapes, and what is not needed taken away.

use slicewise_core::ids::IdVec;

use super::facts::{BySize, Facts};
use super::program::{Solution, reach};
use crate::ids::{ShapeId, TargetId};

/// Packs segments: again and again the shape that takes most of what is left, by price.
/// Always ends, with a place for every segment.
pub fn pack(facts: &Facts<'_>, segments: IdVec<TargetId, BySize<u64>>, prices: &BySize<u64>) -> Solution {
    let mut left: BySize<u64> = facts.sizes.ids().map(|s| segments.iter().map(|(_, counts)| counts[s]).sum()).collect();
    let mut gpus: IdVec<ShapeId, u64> = facts.shapes.iter().map(|_| 0).collect();
    while left.iter().any(|(_, n)| *n > 0) {
        let worth = |counts: &BySize<u64>| -> u128 {
            // A size without a price still needs its place.
            let taken = counts.iter().map(|(s, n)| u128::from((*n).min(left[s])) * (u128::from(prices[s]) * 64 + 1));
            taken.sum()
        };
        let best = facts.shapes.iter().max_by_key(|(id, shape)| (worth(&shape.counts), std::cmp::Reverse(*id)));
        let Some((id, shape)) = best.filter(|(_, shape)| worth(&shape.counts) > 0) else { break };
        let full = shape.counts.iter().filter(|(_, n)| **n > 0).map(|(s, n)| left[s] / n).min();
        let copies = full.unwrap_or(0).max(1);
        gpus[id] += copies;
        for (size, n) in shape.counts.iter() {
            left[size] = left[size].saturating_sub(n.saturating_mul(copies));
        }
    }
    Solution { segments, gpus }
}

/// Takes away segments that no rate needs, largest first, until each is needed.
pub fn trim(facts: &Facts<'_>, solution: &mut Solution) {
    for target in facts.jobs.ids() {
        let rate = u128::from(facts.jobs[target].target.rate_milli);
        for size in facts.sizes.ids().rev() {
            let own = u128::from(facts.jobs[target].throughput(size));
            let counts = &mut solution.segments[target];
            let over = reach(facts, target, counts).saturating_sub(rate);
            let spare = over.checked_div(own).and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
            counts[size] = counts[size].saturating_sub(spare);
        }
    }
}
