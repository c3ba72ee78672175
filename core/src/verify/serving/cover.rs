//! The cheapest multiset of segments that reaches a rate: exact, by depth-first search over
//! the profiles by falling throughput for the price, each branch cut off by what a
//! fraction of a segment would cost.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// Segments of one profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) price: u64,
    pub(super) throughput: u64,
    /// At least this many.
    pub(super) least: u64,
    /// At most this many.
    pub(super) most: u64,
}

/// The least total price within the counts, or a lower bound of it once `work` is used up.
/// `None`: the rate is out of reach.
pub(super) fn cheapest(kinds: &[Kind], rate: u64, work: &mut u64) -> Option<u128> {
    if kinds.iter().any(|k| k.least > k.most) {
        return None;
    }
    let fixed: u128 = kinds.iter().map(|k| u128::from(k.least) * u128::from(k.price)).sum();
    let given: u128 = kinds.iter().map(|k| u128::from(k.least) * u128::from(k.throughput)).sum();
    let mut rest: Vec<Kind> = kinds.iter().filter(|k| k.throughput > 0 && k.most > k.least).copied().collect();
    for kind in &mut rest {
        (kind.most, kind.least) = (kind.most - kind.least, 0);
    }
    rest.sort_by(by_worth);
    let step = rest.iter().fold(0, |g, k| gcd(g, k.price)).max(1);
    let mut search = Search { kinds: &rest, step: u128::from(step), best: None, work };
    search.go(0, u128::from(rate).saturating_sub(given), 0);
    search.best.map(|best| best.saturating_add(fixed))
}

/// Most throughput for the price first.
fn by_worth(a: &Kind, b: &Kind) -> Ordering {
    let (left, right) =
        (u128::from(a.price) * u128::from(b.throughput), u128::from(b.price) * u128::from(a.throughput));
    left.cmp(&right).then(b.throughput.cmp(&a.throughput))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

struct Search<'a> {
    kinds: &'a [Kind],
    /// All prices are multiples of this.
    step: u128,
    best: Option<u128>,
    work: &'a mut u64,
}

impl Search<'_> {
    /// Looks at all ways to reach `rest` with kinds from `from` on; false if none of them
    /// can be better than what is known.
    fn go(&mut self, from: usize, rest: u128, spent: u128) -> bool {
        let Some(least) = self.relaxed(from, rest) else { return false };
        let bound = spent.saturating_add(least.div_ceil(self.step).saturating_mul(self.step));
        if self.best.is_some_and(|best| bound >= best) {
            return false;
        }
        let kind = self.kinds.get(from).copied();
        let (Some(kind), true, true) = (kind, rest > 0, *self.work > 0) else {
            // Reached, or no work left: then the bound stands for all that is below.
            self.best = Some(bound);
            return true;
        };
        *self.work -= 1;
        let (throughput, price) = (u128::from(kind.throughput), u128::from(kind.price));
        let mut count = rest.div_ceil(throughput).min(u128::from(kind.most));
        loop {
            let left = rest.saturating_sub(count * throughput);
            // Fewer of the best kind are never cheaper in the relaxation.
            if !self.go(from + 1, left, spent.saturating_add(count * price)) && left > 0 || count == 0 {
                return true;
            }
            count -= 1;
        }
    }

    /// What the rest costs when the last segment may be a fraction, rounded up.
    fn relaxed(&self, from: usize, mut rest: u128) -> Option<u128> {
        let mut cost = 0u128;
        for kind in self.kinds.get(from..).unwrap_or_default() {
            if rest == 0 {
                break;
            }
            let (throughput, price) = (u128::from(kind.throughput), u128::from(kind.price));
            let all = u128::from(kind.most).saturating_mul(throughput);
            if all >= rest {
                return Some(cost.saturating_add(rest.saturating_mul(price).div_ceil(throughput)));
            }
            cost = cost.saturating_add(u128::from(kind.most).saturating_mul(price));
            rest -= all;
        }
        (rest == 0).then_some(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, cheapest};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// Every multiset.
    fn plain(kinds: &[Kind], rate: u64) -> Option<u128> {
        let Some((first, others)) = kinds.split_first() else { return (rate == 0).then_some(0) };
        let counts = first.least..=first.most.min(first.least.max(rate));
        let cost = |n: u64| {
            let left = rate.saturating_sub(n * first.throughput);
            plain(others, left).map(|c| c + u128::from(n * first.price))
        };
        counts.filter_map(cost).min()
    }

    prop_compose! {
        fn kind()(price in 0u64..12, throughput in 0u64..9, least in 0u64..3, more in 0u64..7) -> Kind {
            Kind { price, throughput, least, most: least + more }
        }
    }

    proptest! {
        #[test]
        fn equals_every_multiset(kinds in proptest::collection::vec(kind(), 0..4), rate in 0u64..40) {
            prop_assert_eq!(cheapest(&kinds, rate, &mut u64::MAX.clone()), plain(&kinds, rate));
        }

        #[test]
        fn too_little_work_proves_less(kinds in proptest::collection::vec(kind(), 1..4), rate in 0u64..40, work in 0u64..6) {
            let exact = plain(&kinds, rate);
            let mut left = work;
            let found = cheapest(&kinds, rate, &mut left);
            // Out of reach counts as more than everything.
            prop_assert!(found.unwrap_or(u128::MAX) <= exact.unwrap_or(u128::MAX), "{found:?} {exact:?}");
        }
    }

    #[test]
    fn large_rates_take_little_work() {
        let throughputs: [u64; 5] = [119_751, 253_123, 391_417, 502_891, 897_113];
        let prices = [101_818, 203_636, 367_272, 439_999, 1_000_000];
        let unlimited = |(price, throughput): (&u64, &u64)| Kind {
            price: *price,
            throughput: *throughput,
            least: 0,
            most: u64::MAX,
        };
        let kinds: Vec<Kind> = prices.iter().zip(&throughputs).map(unlimited).collect();
        let mut work = 100_000;
        assert!(cheapest(&kinds, 1_000_000_007, &mut work).is_some());
        assert!(work > 0);
    }
}
