//! Rooms: GPUs on which the same patterns fit, counted.
//!
//! A pattern is a multiset of slots that one GPU can give at once. Which patterns fit is
//! read off a graph of states (grids and equal shares) or a table of amounts (fluid),
//! one for each kind of device; states from which the same patterns can be reached are
//! one room, however different they look. What an unused GPU fits that may be given other
//! modes is a pattern of any one of them.

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
    /// Nothing uses these GPUs.
    pub unused: bool,
    /// The GPUs, rising.
    pub gpus: Vec<GpuId>,
    at: Start,
}

/// Where a room begins, by each kind of device that its GPUs are or can be, rising.
type Start = Vec<(SpecId, Position)>;

/// Where a room begins in a device kind's graph or table.
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

impl Shape {
    /// Where a state is in it; `None` once too many states were seen.
    fn enter(&mut self, space: &Space, state: &SpaceState) -> Option<Position> {
        match (self, state) {
            (Self::Table(table), SpaceState::Fluid(state)) => Some(Position::Amounts(table.amounts(*state))),
            (Self::Graph(graph), state) => graph.enter(space, state).map(Position::State),
            (Self::Table(_), _) => None,
        }
    }
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
        let mut is_asked = Vec::new();
        for (spec, kind) in ledger.specs().iter() {
            let slots: Vec<_> = batch.slots.iter().filter(|(_, s)| s.spec == spec).map(|(id, s)| (id, s.ask)).collect();
            is_asked.push(!slots.is_empty());
            rooms.shapes.push(match kind.space() {
                Space::Fluid(fluid) => {
                    let table = Table::new(fluid, &slots);
                    rooms.complete &= table.is_small(states.saturating_mul(40));
                    Shape::Table(table)
                }
                space => Shape::Graph(Graph::new(space, slots, states)),
            });
        }
        let mut found: BTreeMap<(Start, bool), Vec<GpuId>> = BTreeMap::new();
        for (spec, kind) in ledger.specs().iter() {
            for (_, class) in ledger.index().of_spec(spec) {
                let state = kind.state(class.key.state).into_owned();
                let unused = kind.space().is_unused(&state);
                let others = kind.siblings().iter().filter(|_| unused);
                let others = others.map(|other| (*other, ledger.specs()[*other].space().empty()));
                let mut at = Start::new();
                for (spec, state) in std::iter::once((spec, state)).chain(others) {
                    if !is_asked.get(spec.index()).is_some_and(|asked| *asked) {
                        continue;
                    }
                    match rooms.shapes[spec].enter(ledger.specs()[spec].space(), &state) {
                        Some(position) => at.push((spec, position)),
                        None => rooms.complete = false,
                    }
                }
                if !at.is_empty() {
                    at.sort_unstable();
                    found.entry((at, unused)).or_default().extend(class.members.iter().copied());
                }
            }
        }
        for ((at, unused), mut gpus) in found {
            gpus.sort_unstable();
            rooms.rooms.push(Room { unused, gpus, at });
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
            for (spec, at) in &room.at {
                let sets = by_spec.get(spec.index())?.as_ref()?;
                let Position::State(state) = at else { return None };
                let patterns = sets.get(state.index())?;
                if all.len() + patterns.len() > limit {
                    return None;
                }
                all.extend(patterns.iter().map(|p| (id, p.clone())));
            }
        }
        Some(all)
    }
}

impl Valuation<'_> {
    /// The dearest pattern's price.
    pub fn best(&self, room: RoomId) -> u64 {
        self.rooms.rooms[room].at.iter().map(|at| self.best_of(*at)).max().unwrap_or(0)
    }

    fn best_of(&self, (spec, at): (SpecId, Position)) -> u64 {
        let values = self.values_of(spec);
        match (&self.rooms.shapes[spec], at) {
            (Shape::Graph(_), Position::State(state)) => values.get(state.index()).copied().unwrap_or(0),
            (Shape::Table(table), Position::Amounts(at)) => table.best(values, self.prices, at),
            _ => 0,
        }
    }

    /// A dearest pattern, of the first kind that has one.
    pub fn pattern(&self, room: RoomId) -> Pattern {
        let kinds = self.rooms.rooms[room].at.iter();
        let Some((spec, at)) = kinds.copied().rev().max_by_key(|at| self.best_of(*at)) else { return Pattern::new() };
        let values = self.values_of(spec);
        let slots = match (&self.rooms.shapes[spec], at) {
            (Shape::Graph(graph), Position::State(state)) => graph.trace(values, self.prices, state),
            (Shape::Table(table), Position::Amounts(at)) => table.trace(values, self.prices, at),
            _ => Vec::new(),
        };
        count(slots)
    }

    fn values_of(&self, spec: SpecId) -> &[u64] {
        self.values.get(spec.index()).map_or(&[][..], Vec::as_slice)
    }
}

fn count(slots: Vec<SlotId>) -> Pattern {
    let mut counts: BTreeMap<SlotId, u32> = BTreeMap::new();
    for slot in slots {
        *counts.entry(slot).or_default() += 1;
    }
    counts.into_iter().collect()
}
