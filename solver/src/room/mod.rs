//! Rooms: GPUs on which the same patterns fit, counted.
//!
//! A pattern is a multiset of slots that one GPU can give at once. Which patterns fit is
//! read off a graph of states (grids and equal shares) or a table of amounts (fluid),
//! one for each kind of device; states from which the same patterns can be reached are
//! one room, however different they look.

mod graph;
mod table;

use std::collections::BTreeMap;

use slicewise_core::ids::{GpuId, Id, IdVec, SpecId};
use slicewise_core::ledger::Ledger;
use slicewise_core::space::{Space, SpaceState};

use crate::demand::Batch;
use crate::ids::{RoomId, SlotId};
use graph::{Graph, StateId};
use table::{Amounts, Table};

/// Slots that a GPU gives at once, by rising slot.
pub type Pattern = Vec<(SlotId, u32)>;

/// GPUs on which the same patterns fit.
#[derive(Clone, Debug)]
pub struct Room {
    /// Kind of device.
    pub spec: SpecId,
    /// Nothing uses these GPUs.
    pub unused: bool,
    /// The GPUs, rising.
    pub gpus: Vec<GpuId>,
    at: Position,
}

/// Where a room begins in its device kind's graph or table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    State(StateId),
    Amounts(Amounts),
}

#[derive(Clone, Debug)]
enum Shape {
    Graph(Graph),
    Table(Table),
}

/// All rooms of a fleet for one batch.
#[derive(Clone, Debug, Default)]
pub struct Rooms {
    /// The rooms.
    pub rooms: IdVec<RoomId, Room>,
    /// Every pattern that fits is known to this search; if not, it proves no bound.
    pub complete: bool,
    shapes: IdVec<SpecId, Shape>,
}

/// Prices of slots.
pub type SlotPrices = IdVec<SlotId, u64>;

/// For one set of prices, what each room is worth.
pub struct Valuation<'a> {
    rooms: &'a Rooms,
    prices: &'a SlotPrices,
    values: Vec<Vec<u64>>,
}

impl Rooms {
    /// The rooms of the GPUs that take work, for the slots of a batch. `states` bounds the
    /// states looked at for each kind of device.
    pub fn of(ledger: &Ledger, batch: &Batch, states: usize) -> Self {
        let mut rooms = Self { complete: true, ..Self::default() };
        let mut found: BTreeMap<(SpecId, Position, bool), Vec<GpuId>> = BTreeMap::new();
        for (spec, kind) in ledger.specs().iter() {
            let slots: Vec<_> = batch.slots.iter().filter(|(_, s)| s.spec == spec).map(|(id, s)| (id, s.ask)).collect();
            let mut shape = match kind.space() {
                Space::Fluid(fluid) => Shape::Table(Table::new(fluid, &slots)),
                space => Shape::Graph(Graph::new(space, slots.clone(), states)),
            };
            for (_, class) in ledger.index().of_spec(spec) {
                let state = kind.state(class.key.state);
                let unused = kind.space().is_unused(&state);
                let at = match (&mut shape, &*state) {
                    (Shape::Table(table), SpaceState::Fluid(state)) => Position::Amounts(table.amounts(*state)),
                    (Shape::Graph(graph), state) => match graph.enter(kind.space(), state) {
                        Some(state) => Position::State(state),
                        None => {
                            rooms.complete = false;
                            continue;
                        }
                    },
                    (Shape::Table(_), _) => continue,
                };
                if !slots.is_empty() {
                    found.entry((spec, at, unused)).or_default().extend(class.members.iter().copied());
                }
            }
            if let Shape::Table(table) = &mut shape {
                rooms.complete &= table.is_small(states.saturating_mul(40));
            }
            rooms.shapes.push(shape);
        }
        for ((spec, at, unused), mut gpus) in found {
            gpus.sort_unstable();
            rooms.rooms.push(Room { spec, unused, gpus, at });
        }
        rooms
    }

    /// What every room is worth at these prices.
    pub fn value<'a>(&'a self, prices: &'a SlotPrices) -> Valuation<'a> {
        let values = self.shapes.iter().map(|(_, shape)| match shape {
            Shape::Graph(graph) => graph.values(prices),
            Shape::Table(table) => table.values(prices),
        });
        Valuation { rooms: self, prices, values: values.collect() }
    }

    /// All patterns of a room to which nothing can be added, at most `limit`.
    pub fn maximal(&self, limit: usize) -> Option<Vec<(RoomId, Pattern)>> {
        let mut all = Vec::new();
        let mut by_spec = Vec::new();
        for (_, shape) in self.shapes.iter() {
            by_spec.push(match shape {
                Shape::Graph(graph) => Some(graph.maximal(limit)?),
                Shape::Table(_) => None,
            });
        }
        for (id, room) in self.rooms.iter() {
            let sets = by_spec.get(room.spec.index())?.as_ref()?;
            let Position::State(state) = room.at else { return None };
            let patterns = sets.get(state.index())?;
            if all.len() + patterns.len() > limit {
                return None;
            }
            all.extend(patterns.iter().map(|p| (id, p.clone())));
        }
        Some(all)
    }
}

impl Valuation<'_> {
    /// The dearest pattern's price.
    pub fn best(&self, room: RoomId) -> u64 {
        let room = &self.rooms.rooms[room];
        let values = self.values.get(room.spec.index()).map_or(&[][..], Vec::as_slice);
        match (&self.rooms.shapes[room.spec], room.at) {
            (Shape::Graph(_), Position::State(state)) => values.get(state.index()).copied().unwrap_or(0),
            (Shape::Table(table), Position::Amounts(at)) => table.best(values, self.prices, at),
            _ => 0,
        }
    }
    /// A dearest pattern.
    pub fn pattern(&self, room: RoomId) -> Pattern {
        let room = &self.rooms.rooms[room];
        let values = self.values.get(room.spec.index()).map_or(&[][..], Vec::as_slice);
        let slots = match (&self.rooms.shapes[room.spec], room.at) {
            (Shape::Graph(graph), Position::State(state)) => graph.trace(values, self.prices, state),
            (Shape::Table(table), Position::Amounts(at)) => table.trace(values, self.prices, at),
            _ => Vec::new(),
        };
        count(slots)
    }
}

fn count(slots: Vec<SlotId>) -> Pattern {
    let mut counts: BTreeMap<SlotId, u32> = BTreeMap::new();
    for slot in slots {
        *counts.entry(slot).or_default() += 1;
    }
    counts.into_iter().collect()
}
