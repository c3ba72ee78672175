//! From counts to places: patterns onto GPUs, slots onto starts, members onto slots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use slicewise_core::ids::{GpuId, IdVec, NodeId, SpecId};
use slicewise_core::ledger::{Ledger, StateKey};
use slicewise_core::place::{Piece, Seat};
use slicewise_core::space::{DeviceAsk, Space, SpaceState, Take};
use slicewise_core::workload::Workload;

use crate::ids::{ColumnId, PartId, RoomId, SlotId};
use crate::master::Master;
use crate::room::Pattern;
use crate::round::Packing;

/// What each request gets, member by member; fewer seats than members where some are
/// refused.
pub type Seats = Vec<Vec<Seat>>;

type Places = IdVec<SlotId, VecDeque<Piece>>;

/// Spreads a packing over the GPUs. `None` if a pattern turns out not to fit, which would
/// be a fault of this crate.
pub fn expand(ledger: &Ledger, master: &Master<'_>, packing: &Packing, workloads: &[Workload]) -> Option<Seats> {
    let places = places(ledger, master, packing)?;
    members(ledger, master, packing, places, workloads)
}

/// A place on a GPU for every slot that the packing uses.
fn places(ledger: &Ledger, master: &Master<'_>, packing: &Packing) -> Option<Places> {
    let mut needed: IdVec<SlotId, u64> = master.batch.slots.iter().map(|_| 0).collect();
    packing.flows.iter().for_each(|(_, slot, n)| needed[*slot] += n);
    let mut columns: IdVec<RoomId, Vec<ColumnId>> = master.rooms.rooms.iter().map(|_| Vec::new()).collect();
    for (id, (room, _)) in master.pool.iter().filter(|(id, _)| packing.copies[*id] > 0) {
        columns[*room].push(id);
    }
    let mut places: Places = master.batch.slots.iter().map(|_| VecDeque::new()).collect();
    let mut arranger = Arranger { ledger, master, memo: BTreeMap::new() };
    let mut open: BTreeSet<NodeId> = ledger.nodes().iter().filter(|(_, n)| n.is_open()).map(|(id, _)| id).collect();
    // GPUs in use first: what they give need not be opened.
    let mut order: Vec<RoomId> = master.rooms.rooms.ids().filter(|r| !columns[*r].is_empty()).collect();
    order.sort_by_key(|room| (master.rooms.rooms[*room].unused, *room));
    for room in order {
        let record = &master.rooms.rooms[room];
        let gpus = if record.unused { by_node(ledger, &record.gpus, &open) } else { record.gpus.clone() };
        let mut patterns: Vec<(SpecId, Pattern)> = Vec::new();
        for column in &columns[room] {
            let pattern = &master.pool[*column].1;
            for _ in 0..packing.copies[*column] {
                let used: Pattern = pattern
                    .iter()
                    .map(|(slot, n)| (*slot, u32::try_from(needed[*slot]).unwrap_or(u32::MAX).min(*n)))
                    .filter(|(_, n)| *n > 0)
                    .collect();
                let Some((slot, _)) = used.first() else { continue };
                used.iter().for_each(|(slot, n)| needed[*slot] -= u64::from(*n));
                patterns.push((master.batch.slots[*slot].spec, used));
            }
        }
        for (gpu, (spec, used)) in with_fewest_changes(ledger, gpus, patterns)? {
            open.insert(ledger.gpus()[gpu].node);
            for (slot, take) in arranger.arrange(gpu, spec, used)? {
                places[*slot].push_back(Piece { gpu, spec, take: *take });
            }
        }
    }
    Some(places)
}

/// A GPU for each pattern, in order: one that is of the pattern's kind while there is one, so
/// that as few as can be change their mode. `None` if there are too few.
fn with_fewest_changes<T>(
    ledger: &Ledger,
    gpus: Vec<GpuId>,
    patterns: Vec<(SpecId, T)>,
) -> Option<Vec<(GpuId, (SpecId, T))>> {
    if !ledger.has_modes() {
        return (patterns.len() <= gpus.len()).then(|| gpus.into_iter().zip(patterns).collect());
    }
    let mut by_kind: BTreeMap<SpecId, VecDeque<GpuId>> = BTreeMap::new();
    gpus.iter().for_each(|gpu| by_kind.entry(ledger.gpus()[*gpu].spec).or_default().push_back(*gpu));
    let mut found = Vec::new();
    let mut others = Vec::new();
    for (spec, pattern) in patterns {
        match by_kind.get_mut(&spec).and_then(VecDeque::pop_front) {
            Some(gpu) => found.push((gpu, (spec, pattern))),
            None => others.push((spec, pattern)),
        }
    }
    let left: BTreeSet<GpuId> = by_kind.into_values().flatten().collect();
    let mut left = gpus.into_iter().filter(|gpu| left.contains(gpu));
    for pattern in others {
        found.push((left.next()?, pattern));
    }
    Some(found)
}

/// Unused GPUs so that few nodes are opened: those of open nodes, then node by node, the
/// nodes with the most of them first.
fn by_node(ledger: &Ledger, gpus: &[GpuId], open: &BTreeSet<NodeId>) -> Vec<GpuId> {
    let node = |gpu: GpuId| ledger.gpus()[gpu].node;
    let mut counts: BTreeMap<NodeId, u32> = BTreeMap::new();
    gpus.iter().for_each(|gpu| *counts.entry(node(*gpu)).or_default() += 1);
    let mut order = gpus.to_vec();
    order.sort_by_cached_key(|gpu| {
        let node = node(*gpu);
        (!open.contains(&node), Reverse(counts.get(&node).copied()), node, *gpu)
    });
    order
}

/// Slots with their places on one GPU.
type Arranged = Vec<(SlotId, Take)>;

type Score = (u32, Reverse<u32>);

/// Finds starts for patterns, each kind of pattern on each kind of state once.
struct Arranger<'a> {
    ledger: &'a Ledger,
    master: &'a Master<'a>,
    memo: BTreeMap<(SpecId, StateKey, Pattern), Option<Arranged>>,
}

impl Arranger<'_> {
    /// Starts on a GPU that is or is given this kind.
    fn arrange(&mut self, gpu: GpuId, spec: SpecId, pattern: Pattern) -> Option<&Arranged> {
        let record = &self.ledger.gpus()[gpu];
        let (ledger, master) = (self.ledger, self.master);
        let state = if record.spec == spec { record.state } else { ledger.specs()[spec].empty() };
        let key = (spec, state, pattern);
        let entry = self.memo.entry(key).or_insert_with_key(|(spec, state, pattern)| {
            let kind = &ledger.specs()[*spec];
            let asks: Vec<(SlotId, DeviceAsk)> = pattern
                .iter()
                .flat_map(|(slot, n)| std::iter::repeat_n((*slot, master.batch.slots[*slot].ask), *n as usize))
                .collect();
            arrange(kind.space(), &kind.state(*state), asks)
        });
        entry.as_ref()
    }
}

/// Starts for the asks that leave the most placements, then need the fewest operations.
fn arrange(space: &Space, state: &SpaceState, mut asks: Vec<(SlotId, DeviceAsk)>) -> Option<Arranged> {
    // Few options first.
    asks.sort_by_cached_key(|(slot, ask)| (space.options(&space.empty(), *ask).len(), *slot));
    let mut search = Search { space, asks, memo: BTreeMap::new() };
    search.best(state, 0);
    let mut takes = Vec::new();
    let mut now = state.clone();
    for position in 0..search.asks.len() {
        let (_, take) = search.memo.get(&(position, now.clone())).cloned().flatten()?;
        let (slot, _) = search.asks.get(position)?;
        takes.push((*slot, take?));
        now = space.put(&now, take?)?;
    }
    Some(takes)
}

/// The best that can be reached from a state with some asks still open, and its first take.
type Best = Option<(Score, Option<Take>)>;

struct Search<'a> {
    space: &'a Space,
    asks: Vec<(SlotId, DeviceAsk)>,
    memo: BTreeMap<(usize, SpaceState), Best>,
}

impl Search<'_> {
    fn best(&mut self, state: &SpaceState, position: usize) -> Option<Score> {
        let Some((_, ask)) = self.asks.get(position).copied() else {
            return Some((self.space.placements_left(state), Reverse(0)));
        };
        let key = (position, state.clone());
        if let Some(best) = self.memo.get(&key) {
            return best.map(|(score, _)| score);
        }
        let mut best: Best = None;
        for take in self.space.options(state, ask) {
            let Some(after) = self.space.put(state, take) else { continue };
            let Some((left, Reverse(operations))) = self.best(&after, position + 1) else { continue };
            let score = (left, Reverse(operations + self.space.reconfiguration(state, take)));
            if best.is_none_or(|(b, _)| score > b) {
                best = Some((score, Some(take)));
            }
        }
        self.memo.insert(key, best);
        best.map(|(score, _)| score)
    }
}

/// Members in the order of the requests, those with the best alternatives first.
fn members(
    ledger: &Ledger,
    master: &Master<'_>,
    packing: &Packing,
    mut places: Places,
    workloads: &[Workload],
) -> Option<Seats> {
    let batch = master.batch;
    let mut queues: IdVec<PartId, VecDeque<Piece>> = batch.parts.iter().map(|_| VecDeque::new()).collect();
    for (part, slot, n) in &packing.flows {
        for _ in 0..*n {
            // Flows may exceed what members take; places may then run out.
            match places[*slot].pop_front() {
                Some(place) => queues[*part].push_back(place),
                None => break,
            }
        }
    }
    let mut seats: Seats = workloads.iter().map(|_| Vec::new()).collect();
    for (id, demand) in batch.demands.iter() {
        let mut alternatives = packing
            .served
            .iter()
            .filter(|(d, ..)| *d == id)
            .flat_map(|(_, position, n)| std::iter::repeat_n(*position, usize::try_from(*n).unwrap_or(0)));
        let mut left = packing.admitted[id] - packing.admitted[id] % demand.lot.max(1);
        for request in &demand.requests {
            let members = u64::from(workloads.get(*request)?.count).min(left);
            left -= members;
            for _ in 0..members {
                let position = alternatives.next()?;
                let mut takes = Vec::new();
                for (part, n) in demand.alternatives.get(position)? {
                    for _ in 0..*n {
                        takes.push(queues[*part].pop_front()?);
                    }
                }
                let node = takes.first().map(|piece: &Piece| ledger.gpus()[piece.gpu].node)?;
                seats.get_mut(*request)?.push(Seat { alternative: position as u32, node, takes });
            }
        }
    }
    Some(seats)
}
