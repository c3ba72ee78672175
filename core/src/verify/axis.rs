//! The dearest disjoint runs on a row of cells, within limits: an exact search from left to
//! right that remembers what it has seen.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// States remembered at most.
const STATES_MAX: usize = 100_000;

/// A run of cells that may be taken.
#[derive(Clone, Debug)]
pub(super) struct Row<'a> {
    pub(super) price: u64,
    pub(super) starts: &'a [u16],
    pub(super) size: u16,
}

/// An amount that rows take of, by row.
#[derive(Clone, Debug)]
struct Limit {
    has: u32,
    uses: Vec<u32>,
}

/// Rows and their limits.
#[derive(Clone, Debug, Default)]
pub(super) struct Axis<'a> {
    rows: Vec<Row<'a>>,
    limits: Vec<Limit>,
    /// Sets of rows of which not all may be there.
    refused: Vec<Vec<Vec<usize>>>,
}

impl<'a> Axis<'a> {
    pub(super) fn new(rows: Vec<Row<'a>>) -> Self {
        Self { rows, limits: Vec::new(), refused: Vec::new() }
    }

    /// No more than `has` of what the rows use, if there is a limit.
    pub(super) fn limit(&mut self, has: Option<u32>, uses: impl Fn(usize) -> u32) {
        if let Some(has) = has {
            self.limits.push(Limit { has, uses: (0..self.rows.len()).map(uses).collect() });
        }
    }

    /// Not one of each of these together.
    pub(super) fn refuse(&mut self, sets: Vec<Vec<usize>>) {
        self.refused.push(sets);
    }

    /// The dearest rows beside these, each a row and its start. Where there are too many
    /// states, the limits are left out: the answer is then too high, never too low.
    pub(super) fn dearest(&self, beside: &[(usize, u16)]) -> u64 {
        let blocked: Vec<(u16, u16)> = beside
            .iter()
            .filter_map(|(row, start)| Some((*start, start.saturating_add(self.rows.get(*row)?.size))))
            .collect();
        let is_free = |start: u16, end: u16| blocked.iter().all(|(from, to)| end <= *from || *to <= start);
        let mut starts: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (i, row) in self.rows.iter().enumerate().filter(|(_, r)| r.price > 0 && r.size > 0) {
            for start in row.starts.iter().filter(|s| is_free(**s, s.saturating_add(row.size))) {
                starts.entry(*start).or_default().push(i);
            }
        }
        let end = starts.iter().flat_map(|(s, rows)| rows.iter().map(|r| s.saturating_add(self.size(*r)))).max();
        let Some(end) = end else { return 0 };
        let left: Vec<u32> = self.limits.iter().map(|l| l.left(beside)).collect();
        let binding: Vec<usize> = (0..self.limits.len()).filter(|l| self.may_bind(*l, &left, &starts)).collect();
        let seen = self.refused.iter().map(|sets| {
            let there = |set: &Vec<usize>| beside.iter().any(|(row, _)| set.contains(row));
            sets.iter().map(|set| u32::from(there(set))).collect::<Vec<u32>>()
        });
        let key: Vec<u32> = binding.iter().filter_map(|l| left.get(*l).copied()).chain(seen.flatten()).collect();
        let mut search = Search { axis: self, starts: &starts, end, binding: &binding, memo: BTreeMap::new() };
        if let Some(best) = search.best(0, &key) {
            return best;
        }
        let bare = Axis::new(self.rows.clone());
        let mut search = Search { axis: &bare, starts: &starts, end, binding: &[], memo: BTreeMap::new() };
        search.best(0, &[]).unwrap_or(u64::MAX)
    }

    fn size(&self, row: usize) -> u16 {
        self.rows.get(row).map_or(0, |r| r.size)
    }

    /// Whether a limit can be reached on the free cells: not if the row that takes most per
    /// cell could have them all, and not if the one row that takes of it has fewer starts.
    fn may_bind(&self, limit: usize, left: &[u32], starts: &BTreeMap<u16, Vec<usize>>) -> bool {
        let (Some(limit), Some(left)) = (self.limits.get(limit), left.get(limit)) else { return false };
        let mut rows: Vec<usize> = starts.values().flatten().copied().collect();
        rows.sort_unstable();
        rows.dedup();
        let cells = starts.iter().flat_map(|(s, rows)| rows.iter().map(|r| s.saturating_add(self.size(*r)))).max();
        let cells = u64::from(cells.unwrap_or(0));
        let uses = |row: &usize| limit.uses.get(*row).copied().unwrap_or(0);
        rows.retain(|row| uses(row) > 0);
        if rows.iter().all(|row| u64::from(uses(row)) * cells <= u64::from(*left) * u64::from(self.size(*row))) {
            return false;
        }
        let [only] = rows.as_slice() else { return true };
        let (mut count, mut next) = (0u32, 0u16);
        for start in starts.iter().filter(|(_, rows)| rows.contains(only)).map(|(start, _)| *start) {
            if start >= next {
                count += 1;
                next = start.saturating_add(self.size(*only));
            }
        }
        count.saturating_mul(uses(only)) > *left
    }
}

impl Limit {
    fn left(&self, beside: &[(usize, u16)]) -> u32 {
        let used: u32 = beside.iter().filter_map(|(row, _)| self.uses.get(*row)).sum();
        self.has.saturating_sub(used)
    }
}

struct Search<'a, 'b> {
    axis: &'b Axis<'a>,
    starts: &'b BTreeMap<u16, Vec<usize>>,
    end: u16,
    binding: &'b [usize],
    memo: BTreeMap<(u16, Vec<u32>), u64>,
}

impl Search<'_, '_> {
    /// The dearest from a cell on; `None` if there are too many states.
    fn best(&mut self, from: u16, key: &[u32]) -> Option<u64> {
        let Some((at, rows)) = self.starts.range(from..self.end).next() else { return Some(0) };
        let state = (*at, key.to_vec());
        if let Some(known) = self.memo.get(&state) {
            return Some(*known);
        }
        if self.memo.len() >= STATES_MAX {
            return None;
        }
        let mut best = self.best(at.saturating_add(1), key)?;
        for row in rows {
            let Some(facts) = self.axis.rows.get(*row) else { continue };
            if let Some(after) = self.take(*row, key) {
                let rest = self.best(at.saturating_add(facts.size), &after)?;
                best = best.max(facts.price.saturating_add(rest));
            }
        }
        self.memo.insert(state, best);
        Some(best)
    }

    /// What is left of the limits after one more of a row; `None` if they forbid it.
    fn take(&self, row: usize, key: &[u32]) -> Option<Vec<u32>> {
        let mut after = key.to_vec();
        let mut slots = after.iter_mut();
        for limit in self.binding {
            let slot = slots.next()?;
            *slot = slot.checked_sub(self.axis.limits.get(*limit)?.uses.get(row).copied().unwrap_or(0))?;
        }
        for sets in &self.axis.refused {
            let mut all = !sets.is_empty();
            for set in sets {
                let slot = slots.next()?;
                *slot |= u32::from(set.contains(&row));
                all &= *slot > 0;
            }
            if all {
                return None;
            }
        }
        Some(after)
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Row};
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// Every subset of placements, one after the other.
    fn plain(rows: &[(u64, Vec<u16>, u16)], caps: &[u32], beside: &[(usize, u16)]) -> u64 {
        let all: Vec<(usize, u16)> =
            rows.iter().enumerate().flat_map(|(i, (_, starts, _))| starts.iter().map(move |s| (i, *s))).collect();
        let mut best = 0;
        for mask in 0u32..1 << all.len() {
            let chosen: Vec<(usize, u16)> = (0..all.len()).filter(|b| mask >> b & 1 == 1).map(|b| all[b]).collect();
            let everything: Vec<(usize, u16)> = chosen.iter().chain(beside).copied().collect();
            let meets = |a: &(usize, u16), b: &(usize, u16)| a.1 < b.1 + rows[b.0].2 && b.1 < a.1 + rows[a.0].2;
            let clash = (0..everything.len()).any(|i| (0..i).any(|j| meets(&everything[i], &everything[j])));
            let over = (0..rows.len()).any(|r| everything.iter().filter(|(i, _)| *i == r).count() > caps[r] as usize);
            if !clash && !over {
                best = best.max(chosen.iter().map(|(i, _)| rows[*i].0).sum());
            }
        }
        best
    }

    proptest! {
        #[test]
        fn equals_every_subset(
            prices in proptest::collection::vec(0u64..20, 3),
            caps in proptest::collection::vec(1u32..4, 3),
            start in 0u16..6,
        ) {
            let shape = [(vec![0, 1, 2, 3, 4, 5], 1), (vec![0, 2, 4], 2), (vec![0, 3], 3)];
            let rows: Vec<(u64, Vec<u16>, u16)> =
                shape.iter().zip(&prices).map(|((starts, size), price)| (*price, starts.clone(), *size)).collect();
            let mut axis = Axis::new(
                rows.iter().map(|(price, starts, size)| Row { price: *price, starts, size: *size }).collect(),
            );
            for (r, cap) in caps.iter().enumerate() {
                axis.limit(Some(*cap), |row| u32::from(row == r));
            }
            let beside = [(0, start)];
            prop_assert_eq!(axis.dearest(&beside), plain(&rows, &caps, &beside));
        }
    }
}
