//! The dearest set of parts that fits on what is free of a GPU.

use alloc::string::String;
use alloc::vec::Vec;

use super::ask::{One, ones};
use super::axis::{Axis, Row};
use super::device::{engines_of, is_meant, pool_of};
use super::kind::{Kind, Thing, cells_of};
use super::put::{Hold, On, Piece};
use crate::fleet::Mode;
use crate::workload::Ask;

/// Amounts remembered at most.
const AMOUNTS_MAX: usize = 200_000;

/// A part with its price.
#[derive(Clone, Debug)]
pub(super) struct Priced {
    pub(super) part: Ask,
    /// Ids of the models it may be on; empty: any.
    pub(super) models: Vec<String>,
    pub(super) price: u64,
}

/// What the parts cost on one kind of GPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Prices {
    instance: Vec<u64>,
    compute: Vec<Vec<u64>>,
    /// By profile: the dearest compute instances that fit into an unused instance.
    inside: Vec<u64>,
    share: Vec<u64>,
    fractions: Fractions,
    whole: u64,
}

impl Prices {
    pub(super) fn of(kind: &Kind<'_>, parts: &[Priced]) -> Self {
        let mut prices = Self {
            instance: alloc::vec![0; kind.profiles.len()],
            compute: kind.profiles.iter().map(|p| alloc::vec![0; p.compute_instances.len()]).collect(),
            share: alloc::vec![0; kind.shares.len()],
            ..Self::default()
        };
        let mut fractions = Vec::new();
        let here = |p: &&Priced| p.models.is_empty() || p.models.contains(&kind.model.id);
        for part in parts.iter().filter(|p| p.price > 0).filter(here) {
            if let Ask::Gpus(gpus) = &part.part
                && kind.mode == Mode::Whole
                && gpus.memory_mib.is_none_or(|least| kind.memory_mib.is_some_and(|has| has >= least))
            {
                prices.whole = prices.whole.max(part.price);
            }
            for one in ones(kind, &part.part) {
                let slot = match one {
                    One::Thing(Thing::Instance(p)) => prices.instance.get_mut(p),
                    One::Thing(Thing::Compute(p, c)) => prices.compute.get_mut(p).and_then(|row| row.get_mut(c)),
                    One::Thing(Thing::Share(s)) => prices.share.get_mut(s),
                    One::Fraction { milli, mib, .. } => {
                        fractions.push((milli, mib, part.price));
                        None
                    }
                };
                slot.into_iter().for_each(|slot| *slot = part.price.max(*slot));
            }
        }
        prices.inside = (0..kind.profiles.len()).map(|p| prices.inside(kind, p, &[])).collect();
        prices.fractions = Fractions::of(&fractions, kind.amounts.compute.into(), kind.memory_mib.unwrap_or(0).into());
        prices
    }

    /// The dearest set on a GPU with this on it. Idle instances count as free.
    pub(super) fn dearest(&self, kind: &Kind<'_>, on: &On) -> u64 {
        match on {
            On::Grid(pieces) => self.on_grid(kind, pieces),
            On::Shares { share, taken } => {
                let left = |(i, price): (usize, &u64)| {
                    let most = kind.shares.get(i).map_or(0, |t| t.max_per_gpu);
                    let left = if *taken > 0 && !kind.is_one_size(*share, i) { 0 } else { most.saturating_sub(*taken) };
                    price.saturating_mul(left.into())
                };
                self.share.iter().enumerate().map(left).max().unwrap_or(0)
            }
            On::Fluid { whole: true, .. } => 0,
            On::Fluid { milli, mib, users, .. } => {
                let left = u32::from(kind.amounts.compute).saturating_sub(*milli);
                let memory = u64::from(kind.memory_mib.unwrap_or(0)).saturating_sub(*mib);
                let whole = if *users == 0 { self.whole } else { 0 };
                whole.max(self.fractions.dearest(left, memory))
            }
        }
    }

    fn on_grid(&self, kind: &Kind<'_>, pieces: &[Piece]) -> u64 {
        let (mut shared, mut beside) = (0u64, Vec::new());
        for piece in pieces.iter().filter(|p| p.hold != Hold::Idle) {
            beside.push((piece.profile, piece.start));
            if let Hold::Shared(there) = &piece.hold {
                let there: Vec<(usize, u16)> = there.iter().map(|i| (i.profile, i.start)).collect();
                shared = shared.saturating_add(self.inside(kind, piece.profile, &there));
            }
        }
        let rows = kind.profiles.iter().enumerate().map(|(p, profile)| Row {
            price: self.instance.get(p).max(self.inside.get(p)).copied().unwrap_or(0),
            size: cells_of(profile),
            starts: profile.placements.as_ref().map_or(&[][..], |p| &p.starts),
        });
        let mut axis = Axis::new(rows.collect());
        for (p, profile) in kind.profiles.iter().enumerate() {
            axis.limit(profile.max_instances.map(u32::from), |row| u32::from(row == p));
        }
        for (e, pool) in pool_of(kind.model.engine_pool).into_iter().enumerate() {
            let of = |row: usize| kind.profile(row).and_then(|p| engines_of(p).get(e).copied()).unwrap_or(0);
            axis.limit(pool.map(u32::from), |row| of(row).into());
        }
        axis.limit(kind.model.compute_slices.map(u32::from), |row| {
            kind.profile(row).map_or(0, |p| p.compute_slices.into())
        });
        axis.limit(kind.max_instances.map(u32::from), |_| 1);
        for rule in kind.model.refused_together.iter().filter(|r| kind.driver.is_some_and(|d| d < r.before_driver)) {
            let of = |name: &String| {
                let meant = kind.profiles.iter().enumerate().filter(|(_, p)| is_meant(kind.model, name, p));
                meant.map(|(i, _)| i).collect()
            };
            axis.refuse(rule.profiles.iter().map(of).collect());
        }
        axis.dearest(&beside).saturating_add(shared)
    }

    /// The dearest compute instances beside these inside an instance of a profile.
    fn inside(&self, kind: &Kind<'_>, profile: usize, there: &[(usize, u16)]) -> u64 {
        let (Some(facts), Some(prices)) = (kind.profile(profile), self.compute.get(profile)) else { return 0 };
        let size = |c: &crate::catalog::ComputeProfile| c.placements.as_ref().map_or(c.compute_slices, |p| p.size);
        let rows = facts.compute_instances.iter().zip(prices).map(|(compute, price)| Row {
            price: *price,
            size: size(compute),
            starts: compute.placements.as_ref().map_or(&[][..], |p| &p.starts),
        });
        let mut axis = Axis::new(rows.collect());
        for (c, compute) in facts.compute_instances.iter().enumerate() {
            axis.limit(compute.max_instances.map(u32::from), |row| u32::from(row == c));
        }
        axis.dearest(there)
    }
}

/// The dearest fractions for every amount of compute: by thousandths over `unit`, what more
/// memory buys, rising in both.
#[derive(Clone, Debug, Default)]
struct Fractions {
    unit: u32,
    fronts: Vec<Vec<(u64, u64)>>,
    /// Added where memory was left out because it has too many amounts.
    extra: u64,
}

impl Fractions {
    fn of(items: &[(u16, u32, u64)], compute: u32, memory: u64) -> Self {
        let mut items: Vec<(u32, u64, u64)> = items
            .iter()
            .map(|(milli, mib, price)| (u32::from(*milli), u64::from(*mib), *price))
            .filter(|(milli, mib, _)| (*milli > 0 || *mib > 0) && *mib <= memory)
            .collect();
        items.sort_unstable();
        items.dedup();
        let unit = items.iter().map(|(milli, ..)| *milli).fold(0, gcd);
        if items.is_empty() {
            return Self::default();
        }
        let unit = if unit == 0 { compute.max(1) } else { unit };
        if let Some(fronts) = fill(&items, unit, compute, memory) {
            return Self { unit, fronts, extra: 0 };
        }
        // Without memory: too high, never too low.
        let only_memory = items.iter().filter(|(milli, ..)| *milli == 0);
        let most = |(_, mib, price): &(u32, u64, u64)| price.saturating_mul(memory.checked_div(*mib).unwrap_or(0));
        let extra = only_memory.map(most).fold(0, u64::saturating_add);
        let bare: Vec<(u32, u64, u64)> =
            items.iter().filter(|(milli, ..)| *milli > 0).map(|(milli, _, price)| (*milli, 0, *price)).collect();
        Self { unit, fronts: fill(&bare, unit, compute, memory).unwrap_or_default(), extra }
    }

    fn dearest(&self, milli: u32, memory: u64) -> u64 {
        let at = milli.checked_div(self.unit).and_then(|m| usize::try_from(m).ok());
        let Some(front) = at.and_then(|m| self.fronts.get(m)) else { return self.extra };
        let best = front.iter().rev().find(|(mib, _)| *mib <= memory).map_or(0, |(_, price)| *price);
        best.saturating_add(self.extra)
    }
}

/// Fills the table item by item; `None` if it has too many entries.
fn fill(items: &[(u32, u64, u64)], unit: u32, compute: u32, memory: u64) -> Option<Vec<Vec<(u64, u64)>>> {
    let last = compute.checked_div(unit)?;
    let mut fronts: Vec<Vec<(u64, u64)>> = (0..=last).map(|_| Vec::from([(0, 0)])).collect();
    for (milli, mib, price) in items {
        let step = usize::try_from(milli.checked_div(unit)?).ok()?;
        let shift = |front: &Vec<(u64, u64)>| -> Vec<(u64, u64)> {
            let more = front.iter().map(|(m, p)| (m.saturating_add(*mib), p.saturating_add(*price)));
            more.filter(|(m, _)| *m <= memory).collect()
        };
        for at in step..fronts.len() {
            let from = at.checked_sub(step)?;
            loop {
                let more = shift(fronts.get(from)?);
                let slot = fronts.get_mut(at)?;
                let grown = merge(slot, more);
                if slot.len() > AMOUNTS_MAX {
                    return None;
                }
                // An item of memory alone can be taken again at the same place.
                if step > 0 || !grown {
                    break;
                }
            }
        }
        if fronts.iter().map(Vec::len).sum::<usize>() > AMOUNTS_MAX {
            return None;
        }
    }
    Some(fronts)
}

/// Merges two fronts and keeps what is dearer than everything with less memory; whether
/// anything new stays.
fn merge(front: &mut Vec<(u64, u64)>, more: Vec<(u64, u64)>) -> bool {
    let before = front.clone();
    front.extend(more);
    front.sort_unstable_by_key(|(mib, price)| (*mib, core::cmp::Reverse(*price)));
    let mut dearest = None;
    front.retain(|(_, price)| {
        let keep = dearest.is_none_or(|d| *price > d);
        if keep {
            dearest = Some(*price);
        }
        keep
    });
    *front != before
}

fn gcd(a: u32, b: u32) -> u32 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::Fractions;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn plain(items: &[(u16, u32, u64)], milli: u32, memory: u64) -> u64 {
        let mut best = 0;
        for (m, b, price) in items {
            if u32::from(*m) <= milli && u64::from(*b) <= memory && *m > 0 {
                best = best.max(price + plain(items, milli - u32::from(*m), memory - u64::from(*b)));
            }
        }
        best
    }

    proptest! {
        #[test]
        fn fractions_equal_every_choice(
            items in proptest::collection::vec((1u16..6, 0u32..4, 1u64..30), 1..4),
            milli in 0u32..=8,
            memory in 0u64..=10,
        ) {
            let items: Vec<(u16, u32, u64)> = items.into_iter().map(|(m, b, p)| (m * 125, b * 1000, p)).collect();
            let table = Fractions::of(&items, 1000, 10_000);
            prop_assert_eq!(table.dearest(milli * 125, memory * 1000), plain(&items, milli * 125, memory * 1000));
        }
    }
}
