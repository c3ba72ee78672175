//! Sets of devices for one member on one node: whole GPUs that are joined as asked, and
//! several instances together.

use alloc::vec::Vec;

use super::view::View;
use crate::fleet::LinkKind;
use crate::ids::{GpuId, NodeId, SpecId};
use crate::space::{DeviceAsk, Take};
use crate::workload::{GpuLink, InstancesOn, WholeGpus};

/// Sets of wholly free GPUs of one kind that meet the ask, lowest positions first, at most
/// `limit`.
pub fn whole_sets(
    view: &View<'_>,
    node: NodeId,
    spec: SpecId,
    ask: &WholeGpus,
    limit: usize,
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
    if free.len() < count {
        return Vec::new();
    }
    let as_takes = |set: &[(usize, GpuId)]| set.iter().map(|(_, gpu)| (*gpu, Take::Whole)).collect();
    if ask.link == Some(GpuLink::FabricPartition) {
        let offered = record.topology.partitions.iter().filter(|p| p.len() == count);
        let sets = offered.filter_map(|partition| {
            let members = partition.iter().map(|p| free.iter().find(|(q, _)| *q == usize::from(*p)).copied());
            members.collect::<Option<Vec<_>>>()
        });
        return sets.take(limit).map(|set| as_takes(&set)).collect();
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
            if sets.len() >= limit {
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

/// Ways to place several instances on one node's GPUs of one kind, at most `limit`.
pub fn several(
    view: &View<'_>,
    node: NodeId,
    spec: SpecId,
    asks: &[DeviceAsk],
    on: InstancesOn,
    limit: usize,
    work: &mut u64,
) -> Vec<Vec<(GpuId, Take)>> {
    let ledger = view.ledger;
    let gpus: Vec<GpuId> =
        ledger.nodes()[node].gpus().filter(|g| ledger.gpus()[*g].spec == spec && ledger.accepts(*g)).collect();
    // Big ones first: they have the fewest starts.
    let mut order: Vec<(usize, DeviceAsk)> = asks.iter().copied().enumerate().collect();
    let size = |ask: DeviceAsk| match (ask, ledger.specs()[spec].grid()) {
        (DeviceAsk::Instance(p) | DeviceAsk::Compute(p, _), Some(grid)) => grid.rows()[p].size,
        _ => 0,
    };
    order.sort_by_key(|(i, ask)| (core::cmp::Reverse(size(*ask)), *ask, *i));
    let mut found = Vec::new();
    let mut set = Set { gpus: &gpus, order: &order, on, limit, work };
    set.extend(&mut view.clone(), &mut Vec::new(), &mut found);
    found
}

struct Set<'a> {
    gpus: &'a [GpuId],
    order: &'a [(usize, DeviceAsk)],
    on: InstancesOn,
    limit: usize,
    work: &'a mut u64,
}

impl Set<'_> {
    fn extend(
        &mut self,
        view: &mut View<'_>,
        chosen: &mut Vec<(usize, GpuId, Take)>,
        found: &mut Vec<Vec<(GpuId, Take)>>,
    ) {
        let Some((position, ask)) = self.order.get(chosen.len()).copied() else {
            let mut takes = chosen.clone();
            takes.sort_by_key(|(position, ..)| *position);
            found.push(takes.into_iter().map(|(_, gpu, take)| (gpu, take)).collect());
            return;
        };
        let twin = chosen.len().checked_sub(1).and_then(|i| self.order.get(i)).is_some_and(|(_, a)| *a == ask);
        let after = chosen.last().filter(|_| twin).map(|(_, gpu, take)| (*gpu, *take));
        for gpu in self.gpus {
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
                // Equal asks in one order only.
                .filter(|take| after.is_none_or(|a| (*gpu, *take) > a))
                .filter_map(|take| {
                    Some((spec.measure(&before, take)?.key(view.ledger.terms(), Default::default()), take))
                })
                .collect();
            takes.sort_unstable();
            for (_, take) in takes {
                *self.work += 1;
                if !view.put(*gpu, take) {
                    continue;
                }
                chosen.push((position, *gpu, take));
                self.extend(view, chosen, found);
                chosen.pop();
                view.set(*gpu, before.clone());
                if found.len() >= self.limit {
                    return;
                }
            }
        }
    }
}
