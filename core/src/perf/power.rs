//! Throttling by power: what is left to each resident of a GPU, node or rack that is to
//! draw more than it may.
//!
//! What a GPU would draw above its idle watts is its residents', by the compute that they
//! have. Where the residents under a limit or cap want more than is left beside idle GPUs
//! and the CPU, watts are shared max-min: everybody gets the same up to what it wants, and
//! no one's watts can rise without taking from somebody who has no more. Limits of GPUs and
//! caps of nodes and racks hold together. Exact in milliwatts; what does not divide goes to
//! the first.
//!
//! A share of the watts is not the same share of the speed: dynamic power goes with the
//! clock and the square of the voltage. The low end takes the voltage as fixed (speed as
//! power), the high end lets it follow the clock (speed as the cube root of power), and the
//! square root is expected in between. That is assumed, not measured; work that waits for
//! memory slows less.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

use super::Range;
use super::fixed::{PPM, least, narrow, scale, scale_up};
use crate::fleet::PowerCap;
use crate::ids::{GpuId, NodeId, RackId};
use crate::ledger::Ledger;
use crate::space::{Hold, SpaceState, Take};

/// A resident that is slowed down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Slowed {
    /// Name of the lease or instance.
    pub name: String,
    /// Name of its node.
    pub node: String,
    /// Index of its GPU.
    pub gpu: u32,
    /// What it would draw above the idle GPU, in milliwatts.
    pub demand_mw: u64,
    /// What it gets of that.
    pub share_mw: u64,
    /// Its speed, of that without limits and caps.
    pub rate_ppm: Range,
}

/// Something that residents share: what they may draw above idle, and who they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// Milliwatts to share out.
    pub capacity_mw: u64,
    /// Residents by position.
    pub members: Vec<usize>,
}

/// A resident before anything is shared out.
struct Resident {
    name: String,
    gpu: GpuId,
    demand_mw: u64,
}

/// The residents that are slowed down by limits of GPUs and caps of nodes and racks.
pub fn slowed(ledger: &Ledger) -> Vec<Slowed> {
    let mut residents: Vec<Resident> = Vec::new();
    let mut supplies: Vec<Supply> = Vec::new();
    let mut racks: BTreeMap<RackId, Supply> = BTreeMap::new();
    for (node, record) in ledger.nodes().iter() {
        let rack = record.power.rack.filter(|rack| ledger.rack(*rack).document.power_cap.is_some());
        let first = residents.len();
        for gpu in record.gpus() {
            let Some(draw) = ledger.spec(gpu).draw() else { continue };
            if record.power_cap().is_none() && rack.is_none() && draw.limit_mw >= draw.full_mw {
                continue;
            }
            let own = residents.len();
            residents.extend(residents_of(ledger, gpu));
            let members = (own..residents.len()).collect();
            supplies.push(Supply { capacity_mw: draw.limit_mw.saturating_sub(draw.idle_mw), members });
        }
        let members: Vec<usize> = (first..residents.len()).collect();
        let fixed = fixed_mw(ledger, node);
        if let Some(cap) = record.power_cap() {
            supplies.push(Supply { capacity_mw: cap.limit_mw().saturating_sub(fixed), members: members.clone() });
        }
        if let Some(rack) = rack {
            let whole = || Supply {
                capacity_mw: ledger.rack(rack).document.power_cap.map_or(0, PowerCap::limit_mw),
                ..Supply::default()
            };
            let supply = racks.entry(rack).or_insert_with(whole);
            supply.capacity_mw = supply.capacity_mw.saturating_sub(fixed);
            supply.members.extend(members);
        }
    }
    supplies.extend(racks.into_values());
    let demands: Vec<u64> = residents.iter().map(|r| r.demand_mw).collect();
    let shares = max_min(&demands, &supplies);
    let slowed = residents.into_iter().zip(shares).filter(|(resident, share)| *share < resident.demand_mw);
    slowed
        .map(|(resident, share_mw)| {
            let record = &ledger.gpus()[resident.gpu];
            Slowed {
                name: resident.name,
                node: ledger.nodes()[record.node].name.clone(),
                gpu: record.index,
                demand_mw: resident.demand_mw,
                share_mw,
                rate_ppm: rate_ppm(share_mw, resident.demand_mw),
            }
        })
        .collect()
}

/// Shares watts out max-min: all rise together; who has what it wants stops, and so does
/// everybody under a supply that is used up. Who is under none gets what it wants.
pub fn max_min(demands_mw: &[u64], supplies: &[Supply]) -> Vec<u64> {
    let open = demands_mw.iter().map(|_| true).collect();
    let mut filling = Filling { supplies, shares: demands_mw.to_vec(), open };
    while let Some((level, supply)) = filling.tightest() {
        if !filling.serve(level) {
            filling.use_up(level, supply);
        }
    }
    filling.shares
}

/// Shares on their way: final for those who are closed, what they want for the open ones.
struct Filling<'a> {
    supplies: &'a [Supply],
    shares: Vec<u64>,
    open: Vec<bool>,
}

impl<'a> Filling<'a> {
    fn open_members(&self, supply: &'a Supply) -> impl Iterator<Item = usize> {
        supply.members.iter().copied().filter(|i| self.open.get(*i).copied().unwrap_or(false))
    }

    /// What the closed members of a supply leave.
    fn left(&self, supply: &Supply) -> u64 {
        let closed = supply.members.iter().filter(|i| !self.open.get(**i).copied().unwrap_or(false));
        let used = closed.filter_map(|i| self.shares.get(*i)).fold(0u64, |sum, share| sum.saturating_add(*share));
        supply.capacity_mw.saturating_sub(used)
    }

    /// The least that any supply has for each of its open members, with the supply.
    fn tightest(&self) -> Option<(u64, &'a Supply)> {
        let level = |supply: &'a Supply| {
            let level = self.left(supply).checked_div(self.open_members(supply).count() as u64)?;
            Some((level, supply))
        };
        self.supplies.iter().filter_map(level).min_by_key(|(level, _)| *level)
    }

    /// Closes those who want no more than the level; whether there are any.
    fn serve(&mut self, level: u64) -> bool {
        let mut any = false;
        for (open, share) in self.open.iter_mut().zip(&self.shares).filter(|(open, share)| **open && **share <= level) {
            (*open, any) = (*share > level, true);
        }
        any
    }

    /// Gives the open members of a supply the level, and the first of them one more while
    /// every supply they are under has it.
    fn use_up(&mut self, level: u64, supply: &'a Supply) {
        let beyond =
            |s: &'a Supply| self.left(s).saturating_sub(level.saturating_mul(self.open_members(s).count() as u64));
        let mut beyond: Vec<u64> = self.supplies.iter().map(beyond).collect();
        for member in self.open_members(supply).collect::<Vec<usize>>() {
            let mut above: Vec<&mut u64> = self
                .supplies
                .iter()
                .zip(&mut beyond)
                .filter_map(|(s, left)| s.members.contains(&member).then_some(left))
                .collect();
            let more = above.iter().all(|left| **left > 0);
            if more {
                above.iter_mut().for_each(|left| **left -= 1);
            }
            if let (Some(share), Some(open)) = (self.shares.get_mut(member), self.open.get_mut(member)) {
                (*share, *open) = (level + u64::from(more), false);
            }
        }
    }
}

/// What idle GPUs and the CPU of a node draw, whatever is slowed down.
fn fixed_mw(ledger: &Ledger, node: NodeId) -> u64 {
    let record = &ledger.nodes()[node];
    let idle = record.gpus().filter_map(|gpu| ledger.spec(gpu).draw()).map(|draw| draw.idle_mw);
    idle.fold(record.cpu_draw_mw(record.cpu_used), u64::saturating_add)
}

/// Who is on a GPU, with what its draw above idle would be without a limit, shared out by
/// the compute that each has.
fn residents_of(ledger: &Ledger, gpu: GpuId) -> Vec<Resident> {
    let spec = ledger.spec(gpu);
    let weight =
        |take: Take| spec.space().put(&spec.space().empty(), take).map_or(0, |s| spec.space().compute_used(&s).0);
    let leased = ledger.leases_on(gpu).flat_map(|lease| {
        let own = lease.parts.iter().filter_map(|part| part.on).filter(|(on, _)| *on == gpu);
        own.map(|(_, take)| (lease.name.clone(), weight(take)))
    });
    let mut there: Vec<(String, u64)> = leased.collect();
    if let SpaceState::Grid(layout) = &*ledger.state(gpu) {
        for entry in layout.used().filter(|e| ledger.owners(gpu, e.start).next().is_none()) {
            let (profile, start) = (entry.profile, entry.start);
            let weight = match &entry.hold {
                Hold::Shared(inside) => inside
                    .used()
                    .map(|e| weight(Take::Compute { profile, start, inner: e.profile, inner_start: e.start }))
                    .sum(),
                _ => weight(Take::Instance { profile, start }),
            };
            there.push((ledger.names_at(gpu, start).join("+"), weight));
        }
    }
    let above_idle = spec.swing_mw(&ledger.state(gpu)).unwrap_or(0);
    let total: u64 = there.iter().map(|(_, weight)| *weight).sum();
    let resident = |(name, weight): (String, u64)| Resident {
        name,
        gpu,
        demand_mw: if total == 0 { 0 } else { scale_up(above_idle, weight, total) },
    };
    there.into_iter().map(resident).collect()
}

fn rate_ppm(share_mw: u64, demand_mw: u64) -> Range {
    let part = scale(share_mw, PPM, demand_mw);
    let root = least(PPM, |x| u128::from(x + 1).pow(3) > u128::from(part) * u128::from(PPM).pow(2));
    let square = (u128::from(part) * u128::from(PPM)).isqrt();
    Range { low: part, expected: narrow(square), high: root }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn supply(capacity_mw: u64, members: &[usize]) -> Supply {
        Supply { capacity_mw, members: members.to_vec() }
    }

    #[test]
    fn small_demands_are_served_and_the_rest_is_equal() {
        assert_eq!(max_min(&[10, 70, 90], &[supply(100, &[0, 1, 2])]), vec![10, 45, 45]);
        assert_eq!(max_min(&[50, 50, 50], &[supply(100, &[0, 1, 2])]), vec![34, 33, 33]);
        // The first two share a GPU of 40; what it cannot take goes to the third.
        let nested = [supply(40, &[0, 1]), supply(100, &[0, 1, 2])];
        assert_eq!(max_min(&[50, 50, 50], &nested), vec![20, 20, 50]);
        assert_eq!(max_min(&[50, 50, 90], &nested), vec![20, 20, 60]);
        assert_eq!(max_min(&[7], &[]), vec![7]);
    }

    #[test]
    fn speed_lies_between_power_and_its_cube_root() {
        assert_eq!(rate_ppm(1, 8), Range { low: 125_000, expected: 353_553, high: 500_000 });
        assert_eq!(rate_ppm(8, 8), Range::exact(PPM));
        assert_eq!(rate_ppm(0, 8), Range::exact(0));
    }

    proptest! {
        #[test]
        fn no_share_can_rise_without_taking_from_a_smaller_one(
            demands in proptest::collection::vec(0u64..50, 1..7),
            gpus in proptest::collection::vec(0u64..80, 3),
            node in 0u64..200,
        ) {
            let on = |gpu: usize| (0..demands.len()).filter(|i| i % 3 == gpu).collect::<Vec<_>>();
            let mut supplies: Vec<Supply> = (0..3).map(|g| supply(gpus[g], &on(g))).collect();
            supplies.push(supply(node, &(0..demands.len()).collect::<Vec<_>>()));
            let shares = max_min(&demands, &supplies);
            let used = |s: &Supply| s.members.iter().map(|i| shares[*i]).sum::<u64>();
            prop_assert!(supplies.iter().all(|s| used(s) <= s.capacity_mw));
            for i in 0..demands.len() {
                prop_assert!(shares[i] <= demands[i]);
                let holds_back = |s: &&Supply| {
                    let largest = s.members.iter().map(|j| shares[*j]).max().unwrap_or(0);
                    s.members.contains(&i) && used(s) == s.capacity_mw && largest <= shares[i] + 1
                };
                prop_assert!(shares[i] == demands[i] || supplies.iter().any(|s| holds_back(&s)), "{i}: {shares:?}");
            }
        }
    }
}
