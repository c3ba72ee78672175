//! The cheapest segments that reach a rate, best first: what is looked at next is always
//! what may be cheapest, so the first that reaches the rate is the answer.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::facts::BySize;
use crate::ids::SizeId;

/// Segments of one size.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Price of one.
    pub price: u64,
    /// Throughput of one.
    pub throughput: u64,
    /// At least this many.
    pub least: u64,
    /// At most this many.
    pub most: u64,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// No multiset within the counts that reaches the rate costs less.
    pub price: u128,
    /// One that costs just that; `None` where the work ended first.
    pub counts: Option<BySize<u64>>,
}

/// The cheapest multiset, within this many steps. `None`: the rate is out of reach.
pub fn cheapest(choices: &BySize<Choice>, rate: u64, work: u64) -> Option<Cover> {
    if choices.iter().any(|(_, c)| c.least > c.most) {
        return None;
    }
    let base: BySize<u64> = choices.iter().map(|(_, c)| c.least).collect();
    let total = |of: fn(&Choice) -> u64| choices.iter().map(|(_, c)| u128::from(c.least) * u128::from(of(c))).sum();
    let (spent, given): (u128, u128) = (total(|c| c.price), total(|c| c.throughput));
    let rest = u128::from(rate).saturating_sub(given);
    if rest == 0 {
        return Some(Cover { price: spent, counts: Some(base) });
    }
    let mut order: Vec<(SizeId, Choice)> =
        choices.iter().filter(|(_, c)| c.throughput > 0 && c.most > c.least).map(|(id, c)| (id, *c)).collect();
    order.sort_by(|(_, a), (_, b)| worth(a, b));
    let step = order.iter().fold(0, |g, (_, c)| gcd(g, c.price)).max(1);
    let search = Search { order: &order, step: u128::from(step) };
    let mut heap = BinaryHeap::new();
    search.push(&mut heap, Vec::new(), rest, 0);
    let mut steps = 0;
    while let Some(Reverse(node)) = heap.pop() {
        if node.left == 0 {
            let mut counts = base;
            for ((size, _), n) in order.iter().zip(&node.counts) {
                counts[*size] += n;
            }
            return Some(Cover { price: spent + node.bound, counts: Some(counts) });
        }
        steps += 1;
        if steps > work {
            return Some(Cover { price: spent + node.bound, counts: None });
        }
        search.next_to(&mut heap, &node);
        search.push(&mut heap, node.counts, node.left, node.spent);
    }
    None
}

/// Most throughput for the price first.
fn worth(a: &Choice, b: &Choice) -> Ordering {
    let (left, right) =
        (u128::from(a.price) * u128::from(b.throughput), u128::from(b.price) * u128::from(a.throughput));
    left.cmp(&right).then(b.throughput.cmp(&a.throughput))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Counts of the first sizes, and what is left then.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    /// What the whole costs at least.
    bound: u128,
    /// Of equals, the one nearest to an answer is looked at first.
    left: u128,
    spent: u128,
    counts: Vec<u64>,
}

struct Search<'a> {
    order: &'a [(SizeId, Choice)],
    /// All prices are multiples of this, so every total is.
    step: u128,
}

impl Search<'_> {
    /// Adds the largest useful count of the next size.
    fn push(&self, heap: &mut BinaryHeap<Reverse<Node>>, counts: Vec<u64>, left: u128, spent: u128) {
        let Some((_, choice)) = self.order.get(counts.len()) else { return };
        let useful = left.div_ceil(u128::from(choice.throughput));
        let most = u64::try_from(useful).unwrap_or(u64::MAX).min(choice.most - choice.least);
        self.add(heap, counts, most, left, spent);
    }

    /// Adds one with one less of the last size.
    fn next_to(&self, heap: &mut BinaryHeap<Reverse<Node>>, node: &Node) {
        let Some((last, counts)) = node.counts.split_last() else { return };
        let Some((_, choice)) = self.order.get(counts.len()) else { return };
        if let Some(n) = last.checked_sub(1) {
            let left = node.left + u128::from(choice.throughput);
            let spent = node.spent - u128::from(choice.price);
            self.put(heap, [counts, &[n]].concat(), left, spent);
        }
    }

    fn add(&self, heap: &mut BinaryHeap<Reverse<Node>>, mut counts: Vec<u64>, n: u64, left: u128, spent: u128) {
        let Some((_, choice)) = self.order.get(counts.len()) else { return };
        let reach = u128::from(n) * u128::from(choice.throughput);
        let after = spent + u128::from(n) * u128::from(choice.price);
        counts.push(n);
        if reach >= left && n > 0 {
            // One less does not reach, and may end cheaper with another size.
            let mut fewer = counts.clone();
            if let Some(last) = fewer.last_mut() {
                *last -= 1;
            }
            let short = left.saturating_sub(reach - u128::from(choice.throughput));
            self.put(heap, fewer, short, after - u128::from(choice.price));
        }
        self.put(heap, counts, left.saturating_sub(reach), after);
    }

    fn put(&self, heap: &mut BinaryHeap<Reverse<Node>>, counts: Vec<u64>, left: u128, spent: u128) {
        if let Some(more) = self.relaxed(counts.len(), left) {
            let bound = (spent + more).next_multiple_of(self.step);
            heap.push(Reverse(Node { bound, left, spent, counts }));
        }
    }

    /// What the rest costs at least with the sizes from `from` on, in parts of segments.
    fn relaxed(&self, from: usize, mut left: u128) -> Option<u128> {
        let mut cost = 0;
        for (_, choice) in self.order.get(from..)? {
            let (price, throughput) = (u128::from(choice.price), u128::from(choice.throughput));
            let most = u128::from(choice.most - choice.least);
            if most * throughput >= left {
                return Some(cost + (left * price).div_ceil(throughput));
            }
            cost += most * price;
            left -= most * throughput;
        }
        (left == 0).then_some(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, Cover, cheapest};
    use crate::ids::SizeId;
    use crate::serve::facts::BySize;
    use proptest::prelude::*;
    use slicewise_core::ids::Id;

    /// Every multiset.
    fn plain(choices: &[Choice], rate: u64) -> Option<u128> {
        let Some((first, others)) = choices.split_first() else { return (rate == 0).then_some(0) };
        let counts = first.least..=first.most.min(first.least.max(rate));
        let cost = |n: u64| {
            let left = rate.saturating_sub(n * first.throughput);
            plain(others, left).map(|c| c + u128::from(n * first.price))
        };
        counts.filter_map(cost).min()
    }

    prop_compose! {
        fn choice()(price in 0u64..12, throughput in 0u64..9, least in 0u64..3, more in 0u64..7) -> Choice {
            Choice { price, throughput, least, most: least + more }
        }
    }

    proptest! {
        #[test]
        fn equals_every_multiset(choices in proptest::collection::vec(choice(), 0..4), rate in 0u64..40) {
            let table: BySize<Choice> = choices.iter().copied().collect();
            let found = cheapest(&table, rate, u64::MAX);
            prop_assert_eq!(found.as_ref().map(|c| c.price), plain(&choices, rate));
            if let Some(Cover { price, counts: Some(counts) }) = found {
                let sum = |of: fn(&Choice) -> u64| -> u64 {
                    choices.iter().enumerate().map(|(i, c)| counts[SizeId::from_index(i)] * of(c)).sum()
                };
                prop_assert_eq!(u128::from(sum(|c| c.price)), price);
                prop_assert!(sum(|c| c.throughput) >= rate);
                let is_within = |(i, c): (usize, &Choice)| (c.least..=c.most).contains(&counts[SizeId::from_index(i)]);
                prop_assert!(choices.iter().enumerate().all(is_within));
            }
        }

        #[test]
        fn too_little_work_proves_less(choices in proptest::collection::vec(choice(), 1..4), rate in 0u64..40, work in 0u64..6) {
            let table: BySize<Choice> = choices.iter().copied().collect();
            let found = cheapest(&table, rate, work).map_or(u128::MAX, |c| c.price);
            prop_assert!(found <= plain(&choices, rate).unwrap_or(u128::MAX));
        }
    }
}
