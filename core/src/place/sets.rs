//! Sets of devices for one member on one node: whole GPUs that are joined as asked, and
//! several instances together.

use alloc::vec::Vec;

use super::power;
use super::seats::destroys_nothing;
use super::view::{Piece, View};
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
    /// Empty GPUs may change their mode.
    pub changing: bool,
    /// Most sets to look for.
    pub sets: usize,
}

impl Limits<'_> {
    /// The kinds that a GPU may be of: its own first, then those that it may be given.
    pub fn kinds<'v>(self, view: &'v View<'_>, gpu: GpuId) -> impl Iterator<Item = SpecId> + use<'v> {
        let siblings = if self.changing { view.spec(gpu).siblings() } else { &[] };
        core::iter::once(view.spec_id(gpu)).chain(siblings.iter().copied())
    }
}

/// Sets of wholly free GPUs that meet the ask, of the kinds that `serves` says. GPUs that stay
/// in their mode come first, then lowest positions.
pub fn whole_sets(
    view: &View<'_>,
    node: NodeId,
    serves: &dyn Fn(SpecId) -> bool,
    ask: &WholeGpus,
    limits: Limits<'_>,
    work: &mut u64,
) -> Vec<Vec<Piece>> {
    let ledger = view.ledger;
    let record = &ledger.nodes()[node];
    let is_free = |gpu: GpuId, spec: SpecId| {
        let state = view.state_in(gpu, spec, limits.keep_idle);
        state.is_some_and(|state| ledger.specs()[spec].space().put(&state, Take::Whole).is_some())
    };
    let near = |position: usize| ask.near_nic.is_none_or(|least| record.topology.to_nic(position) >= least);
    let free = |(position, gpu): (usize, GpuId)| {
        let spec = limits.kinds(view, gpu).find(|spec| serves(*spec) && is_free(gpu, *spec))?;
        Some((position, Piece { gpu, spec, take: Take::Whole }))
    };
    let open = record.gpus().enumerate().filter(|(position, gpu)| near(*position) && ledger.accepts(*gpu));
    let mut free: Vec<(usize, Piece)> = open.filter_map(free).collect();
    free.sort_by_key(|(_, piece)| view.spec_id(piece.gpu) != piece.spec);
    let count = ask.count as usize;
    if free.len() < count {
        return Vec::new();
    }
    if limits.growth_max_mw.is_some() {
        // The thriftiest first: if they draw too much together, every set does.
        let mut thriftiest: Vec<&Piece> = free.iter().map(|(_, piece)| piece).collect();
        thriftiest.sort_by_key(|piece| power::growth_of(view, piece));
        if !draws_within(view, thriftiest.into_iter().take(count), limits) {
            return Vec::new();
        }
    }
    let as_takes = |set: &[(usize, Piece)]| {
        let mut pieces: Vec<Piece> = set.iter().map(|(_, piece)| *piece).collect();
        pieces.sort_unstable();
        pieces
    };
    if ask.link == Some(GpuLink::FabricPartition) {
        let offered = record.topology.partitions.iter().filter(|p| p.len() == count);
        let sets = offered.filter_map(|partition| {
            let members = partition.iter().map(|p| free.iter().find(|(q, _)| *q == usize::from(*p)).copied());
            members.collect::<Option<Vec<_>>>()
        });
        let sets = sets.filter(|set| draws_within(view, set.iter().map(|(_, piece)| piece), limits));
        return sets.take(limits.sets).map(|set| as_takes(&set)).collect();
    }
    let joined = |a: &(usize, Piece), b: &(usize, Piece)| match ask.link {
        None | Some(GpuLink::FabricPartition) => true,
        Some(GpuLink::SameNuma) => {
            let numa = |g: GpuId| ledger.gpus()[g].numa_node;
            numa(a.1.gpu).is_some() && numa(a.1.gpu) == numa(b.1.gpu)
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
            if draws_within(view, set.iter().map(|(_, piece)| piece), limits) {
                sets.push(as_takes(&set));
            }
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

/// Whether these unused GPUs may all be in full use.
fn draws_within<'a>(view: &View<'_>, pieces: impl Iterator<Item = &'a Piece>, limits: Limits<'_>) -> bool {
    let Some(most) = limits.growth_max_mw else { return true };
    pieces.map(|piece| power::growth_of(view, piece)).fold(0, u64::saturating_add) <= most
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
) -> Vec<Vec<Piece>> {
    let ledger = view.ledger;
    let open = ledger.nodes()[node].gpus().filter(|g| ledger.accepts(*g) && (limits.gpu)(*g));
    let kinds = open.flat_map(|gpu| limits.kinds(view, gpu).map(move |spec| (gpu, spec)));
    let mut gpus: Vec<Offered<'_>> = kinds.filter_map(|(gpu, spec)| Some((gpu, spec, asks_on(spec)?))).collect();
    gpus.sort_by_key(|(gpu, spec, _)| view.spec_id(*gpu) != *spec);
    let count = gpus.iter().map(|(.., asks)| asks.len()).max().unwrap_or(0);
    // Big ones first: they have the fewest starts. Equal ones lie side by side.
    let what =
        |i: usize| -> Vec<Option<DeviceAsk>> { gpus.iter().map(|(.., a)| a.get(i).copied().flatten()).collect() };
    let size = |i: usize| {
        let cells = gpus.iter().filter_map(|(_, spec, asks)| Some(ledger.specs()[*spec].cells_of((*asks.get(i)?)?)));
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

/// A GPU of a kind, with what each instance is there.
type Offered<'a> = (GpuId, SpecId, &'a [Option<DeviceAsk>]);

struct Set<'a, 'b> {
    gpus: &'a [Offered<'a>],
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
        chosen: &mut Vec<(usize, Piece)>,
        found: &mut Vec<Vec<Piece>>,
    ) {
        let Some(position) = self.order.get(chosen.len()).copied() else {
            let mut takes = chosen.clone();
            takes.sort_by_key(|(position, _)| *position);
            found.push(takes.into_iter().map(|(_, piece)| piece).collect());
            return;
        };
        let twin = self.twin_of_last.get(chosen.len()).copied().unwrap_or(false);
        let after = chosen.last().filter(|_| twin).map(|(_, piece)| *piece);
        for (gpu, spec, asks) in self.gpus {
            let Some(ask) = asks.get(position).copied().flatten() else { continue };
            let allowed = match self.on {
                InstancesOn::Any => true,
                InstancesOn::SameGpu => chosen.iter().all(|(_, p)| p.gpu == *gpu),
                InstancesOn::DistinctGpus => chosen.iter().all(|(_, p)| p.gpu != *gpu),
            };
            if !allowed {
                continue;
            }
            let kind = &view.ledger.specs()[*spec];
            let Some(before) = view.state_in(*gpu, *spec, self.limits.keep_idle) else { continue };
            let mut takes: Vec<_> = kind
                .space()
                .options(&before, ask)
                .into_iter()
                .map(|take| Piece { gpu: *gpu, spec: *spec, take })
                // Equal asks in one order only; shares of one GPU are the same take.
                .filter(|piece| after.is_none_or(|a| *piece >= a))
                .filter(|piece| !self.limits.keep_idle || destroys_nothing(kind.space(), &before, piece.take))
                .filter_map(|piece| {
                    Some((kind.measure(&before, piece.take)?.key(view.ledger.terms(), Default::default()), piece))
                })
                .collect();
            drop(before);
            takes.sort_unstable();
            for (_, piece) in takes {
                *self.work += 1;
                let growth = power::growth_of(view, &piece);
                let left = match growth_left_mw.map(|left| left.checked_sub(growth)) {
                    None => None,
                    Some(Some(left)) => Some(left),
                    Some(None) => continue,
                };
                let Some(unmade) = view.make(&piece) else { continue };
                chosen.push((position, piece));
                self.extend(view, left, chosen, found);
                chosen.pop();
                view.unmake(unmade);
                if found.len() >= self.limits.sets {
                    return;
                }
            }
        }
    }
}
