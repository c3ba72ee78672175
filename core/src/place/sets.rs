//! Sets of devices for one member on one node: whole GPUs that are joined as asked, and
//! several instances together.

use alloc::vec::Vec;

use super::power;
use super::seats::destroys_nothing;
use super::view::View;
use crate::fleet::LinkKind;
use crate::ids::{GpuId, NodeId, SpecId};
use crate::space::{DeviceAsk, Take};
use crate::workload::{GpuLink, InstancesOn, WholeGpus};

/// What a set may be made of besides legality.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// GPUs that may be in it.
    pub gpu: &'a dyn Fn(GpuId) -> bool,
    /// Leave idle instances as they are.
    pub keep_idle: bool,
    /// What the set may add to the node's draw, in milliwatts; `None`: no limit.
    pub growth_max_mw: Option<u64>,
    /// Most sets to look for.
    pub sets: usize,
}

/// Sets of wholly free GPUs of one kind that meet the ask, lowest positions first.
pub fn whole_sets(
    view: &View<'_>,
    node: NodeId,
    spec: SpecId,
    ask: &WholeGpus,
    limits: Limits<'_>,
    work: &mut u64,
) -> Vec<Vec<(GpuId, Take)>> {
    let ledger = view.ledger;
    let record = &ledger.nodes()[node];
    let is_free = |gpu: &GpuId| {
        let g = &ledger.gpus()[*gpu];
        g.spec == spec
            && ledger.accepts(*gpu)
            && ledger.spec(*gpu).space().put(&view.state(*gpu), Take::Whole).is_some()
    };
    let near = |position: usize| ask.near_nic.is_none_or(|least| record.topology.to_nic(position) >= least);
    let free: Vec<(usize, GpuId)> = record.gpus().enumerate().filter(|(p, g)| near(*p) && is_free(g)).collect();
    let count = ask.count as usize;
    if free.len() < count || !draws_within(view, &free, ask.count, limits) {
        return Vec::new();
    }
    let as_takes = |set: &[(usize, GpuId)]| set.iter().map(|(_, gpu)| (*gpu, Take::Whole)).collect();
    if ask.link == Some(GpuLink::FabricPartition) {
        let offered = record.topology.partitions.iter().filter(|p| p.len() == count);
        let sets = offered.filter_map(|partition| {
            let members = partition.iter().map(|p| free.iter().find(|(q, _)| *q == usize::from(*p)).copied());
            members.collect::<Option<Vec<_>>>()
        });
        return sets.take(limits.sets).map(|set| as_takes(&set)).collect();
    }
    let joined = |a: &(usize, GpuId), b: &(usize, GpuId)| match ask.link {
        None | Some(GpuLink::FabricPartition) => true,
        Some(GpuLink::SameNuma) => {
            let numa = |g: GpuId| ledger.gpus()[g].numa_node;
            numa(a.1).is_some() && numa(a.1) == numa(b.1)
        }
        Some(GpuLink::Nvlink) => matches!(record.topology.between(a.0, b.0), LinkKind::NvLink(_)),
        Some(GpuLink::AtLeast(least)) => record.topology.between(a.0, b.0) >= least,
    };
    let mut sets = Vec::new();
    let mut open: Vec<Vec<usize>> = (0..free.len()).rev().map(|i| Vec::from([i])).collect();
    while let Some(chosen) = open.pop() {
        *work += 1;
        if chosen.len() == count {
            let set: Vec<_> = chosen.iter().filter_map(|i| free.get(*i).copied()).collect();
            sets.push(as_takes(&set));
            if sets.len() >= limits.sets {
                break;
            }
            continue;
        }
        let last = chosen.last().copied().unwrap_or(0);
        for next in (last + 1..free.len()).rev() {
            let fits = free.get(next).is_some_and(|b| chosen.iter().filter_map(|i| free.get(*i)).all(|a| joined(a, b)));
            if fits && free.len() - next >= count - chosen.len() {
                let mut longer = chosen.clone();
                longer.push(next);
                open.push(longer);
            }
        }
    }
    sets
}

/// Whether so many of these unused GPUs of one kind, which draw alike, stay below the limit.
fn draws_within(view: &View<'_>, free: &[(usize, GpuId)], count: u32, limits: Limits<'_>) -> bool {
    let (Some(most), Some((_, gpu))) = (limits.growth_max_mw, free.first()) else { return true };
    let growth = power::growth_mw(view.ledger, view.ledger.spec(*gpu), &view.state(*gpu), Take::Whole);
    growth.saturating_mul(count.into()) <= most
}

/// Ways to place several instances on one node's GPUs. `asks_on` says what each of the
/// `count` instances is on a kind of device, where the kind offers it.
pub fn several<'a>(
    view: &View<'_>,
    node: NodeId,
    asks_on: &dyn Fn(SpecId) -> Option<&'a [Option<DeviceAsk>]>,
    on: InstancesOn,
    limits: Limits<'_>,
    work: &mut u64,
) -> Vec<Vec<(GpuId, Take)>> {
    let ledger = view.ledger;
    let gpus: Vec<(GpuId, &[Option<DeviceAsk>])> = ledger.nodes()[node]
        .gpus()
        .filter(|g| ledger.accepts(*g) && (limits.gpu)(*g))
        .filter_map(|g| Some((g, asks_on(ledger.gpus()[g].spec)?)))
        .collect();
    let count = gpus.iter().map(|(_, asks)| asks.len()).max().unwrap_or(0);
    // Big ones first: they have the fewest starts. Equal ones lie side by side.
    let what = |i: usize| -> Vec<Option<DeviceAsk>> { gpus.iter().map(|(_, a)| a.get(i).copied().flatten()).collect() };
    let size = |i: usize| {
        let cells = gpus.iter().filter_map(|(gpu, asks)| Some(ledger.spec(*gpu).cells_of((*asks.get(i)?)?)));
        cells.max().unwrap_or(0)
    };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|i| (core::cmp::Reverse(size(*i)), what(*i), *i));
    let twins = order.windows(2).map(|pair| matches!(pair, [a, b] if what(*a) == what(*b)));
    let twin_of_last: Vec<bool> = core::iter::once(false).chain(twins).collect();
    let mut found = Vec::new();
    if count > 0 {
        let mut set = Set { gpus: &gpus, order: &order, twin_of_last: &twin_of_last, on, limits, work };
        set.extend(&mut view.clone(), limits.growth_max_mw, &mut Vec::new(), &mut found);
    }
    found
}

struct Set<'a, 'b> {
    gpus: &'a [(GpuId, &'a [Option<DeviceAsk>])],
    order: &'a [usize],
    twin_of_last: &'a [bool],
    on: InstancesOn,
    limits: Limits<'a>,
    work: &'b mut u64,
}

impl Set<'_, '_> {
    fn extend(
        &mut self,
        view: &mut View<'_>,
        growth_left_mw: Option<u64>,
        chosen: &mut Vec<(usize, GpuId, Take)>,
        found: &mut Vec<Vec<(GpuId, Take)>>,
    ) {
        let Some(position) = self.order.get(chosen.len()).copied() else {
            let mut takes = chosen.clone();
            takes.sort_by_key(|(position, ..)| *position);
            found.push(takes.into_iter().map(|(_, gpu, take)| (gpu, take)).collect());
            return;
        };
        let twin = self.twin_of_last.get(chosen.len()).copied().unwrap_or(false);
        let after = chosen.last().filter(|_| twin).map(|(_, gpu, take)| (*gpu, *take));
        for (gpu, asks) in self.gpus {
            let Some(ask) = asks.get(position).copied().flatten() else { continue };
            let allowed = match self.on {
                InstancesOn::Any => true,
                InstancesOn::SameGpu => chosen.iter().all(|(_, g, _)| g == gpu),
                InstancesOn::DistinctGpus => chosen.iter().all(|(_, g, _)| g != gpu),
            };
            if !allowed {
                continue;
            }
            let before = view.state(*gpu).into_owned();
            let spec = view.ledger.spec(*gpu);
            let mut takes: Vec<_> = spec
                .space()
                .options(&before, ask)
                .into_iter()
                // Equal asks in one order only; shares of one GPU are the same take.
                .filter(|take| after.is_none_or(|a| (*gpu, *take) >= a))
                .filter(|take| !self.limits.keep_idle || destroys_nothing(spec.space(), &before, *take))
                .filter_map(|take| {
                    Some((spec.measure(&before, take)?.key(view.ledger.terms(), Default::default()), take))
                })
                .collect();
            takes.sort_unstable();
            for (_, take) in takes {
                *self.work += 1;
                let growth = power::growth_mw(view.ledger, spec, &before, take);
                let left = match growth_left_mw.map(|left| left.checked_sub(growth)) {
                    None => None,
                    Some(Some(left)) => Some(left),
                    Some(None) => continue,
                };
                if !view.put(*gpu, take) {
                    continue;
                }
                chosen.push((position, *gpu, take));
                self.extend(view, left, chosen, found);
                chosen.pop();
                view.set(*gpu, before.clone());
                if found.len() >= self.limits.sets {
                    return;
                }
            }
        }
    }
}
