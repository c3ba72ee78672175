//! States of a grid or of equal shares, with what each slot makes of them. States with
//! the same future are merged, which is what makes rooms few.

use std::collections::{BTreeMap, BTreeSet};

use slicewise_core::ids::{Id, IdVec};
use slicewise_core::space::{DeviceAsk, Layout, Space, SpaceState};

use super::{Pattern, SlotPrices, count};
use crate::ids::SlotId;

/// A set of states with the same future. Later states have lower numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateId(u32);

impl Id for StateId {
    fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

type Exits = Vec<(SlotId, StateId)>;

/// The states that slots lead to.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    asks: Vec<(SlotId, DeviceAsk)>,
    exits: IdVec<StateId, Exits>,
    by_exits: BTreeMap<Exits, StateId>,
    by_state: BTreeMap<SpaceState, StateId>,
    limit: usize,
}

impl Graph {
    /// A graph for these slots that looks at no more than `limit` states.
    pub fn new(_space: &Space, asks: Vec<(SlotId, DeviceAsk)>, limit: usize) -> Self {
        Self { asks, limit, ..Self::default() }
    }

    /// The node of a state; `None` once too many states were seen.
    pub fn enter(&mut self, space: &Space, state: &SpaceState) -> Option<StateId> {
        let state = without_idle(state);
        if let Some(id) = self.by_state.get(&state) {
            return Some(*id);
        }
        if self.by_state.len() >= self.limit {
            return None;
        }
        let mut exits = BTreeSet::new();
        for (slot, ask) in self.asks.clone() {
            for take in space.options(&state, ask) {
                if let Some(after) = space.put(&state, take) {
                    exits.insert((slot, self.enter(space, &after)?));
                }
            }
        }
        let exits: Exits = exits.into_iter().collect();
        let id = match self.by_exits.get(&exits) {
            Some(id) => *id,
            None => {
                let id = self.exits.push(exits.clone());
                self.by_exits.insert(exits, id);
                id
            }
        };
        self.by_state.insert(state, id);
        Some(id)
    }

    /// The dearest pattern's price, by node.
    pub fn values(&self, prices: &SlotPrices) -> Vec<u64> {
        let mut values: Vec<u64> = Vec::with_capacity(self.exits.len());
        for (_, exits) in self.exits.iter() {
            let worth = |(slot, next): &(SlotId, StateId)| {
                let rest = values.get(next.index()).copied().unwrap_or(0);
                price(prices, *slot).saturating_add(rest)
            };
            let best = exits.iter().map(worth).max().unwrap_or(0);
            values.push(best);
        }
        values
    }

    /// The slots of a dearest pattern from a node on.
    pub fn trace(&self, values: &[u64], prices: &SlotPrices, from: StateId) -> Vec<SlotId> {
        let value = |state: StateId| values.get(state.index()).copied().unwrap_or(0);
        let mut slots = Vec::new();
        let mut at = from;
        while value(at) > 0 {
            let next = self.exits[at].iter().find(|(s, n)| price(prices, *s).saturating_add(value(*n)) == value(at));
            let Some((slot, next)) = next else { break };
            if price(prices, *slot) > 0 {
                slots.push(*slot);
            }
            at = *next;
        }
        slots
    }

    /// By node, the patterns that no other holds; `None` if some node has more than `limit`.
    pub fn maximal(&self, limit: usize) -> Option<Vec<Vec<Pattern>>> {
        let mut sets: Vec<BTreeSet<Pattern>> = Vec::with_capacity(self.exits.len());
        for (_, exits) in self.exits.iter() {
            let mut set = BTreeSet::new();
            for (slot, next) in exits {
                for pattern in sets.get(next.index())? {
                    set.insert(plus(pattern, *slot));
                }
                if set.len() > limit {
                    return None;
                }
            }
            if exits.is_empty() {
                set.insert(Pattern::new());
            }
            sets.push(undominated(&set));
        }
        Some(sets.into_iter().map(|set| set.into_iter().filter(|p| !p.is_empty()).collect()).collect())
    }
}

fn price(prices: &SlotPrices, slot: SlotId) -> u64 {
    prices.lookup(slot).copied().unwrap_or(0)
}

fn plus(pattern: &Pattern, slot: SlotId) -> Pattern {
    let mut slots: Vec<SlotId> = pattern.iter().flat_map(|(s, n)| std::iter::repeat_n(*s, *n as usize)).collect();
    slots.push(slot);
    count(slots)
}

fn undominated(set: &BTreeSet<Pattern>) -> BTreeSet<Pattern> {
    let holds = |big: &Pattern, small: &Pattern| {
        small.iter().all(|(slot, n)| big.iter().any(|(other, m)| other == slot && m >= n))
    };
    let is_beaten = |p: &Pattern| set.iter().any(|q| q != p && holds(q, p));
    set.iter().filter(|p| !is_beaten(p)).cloned().collect()
}

/// Idle instances count as free.
fn without_idle(state: &SpaceState) -> SpaceState {
    match state {
        SpaceState::Grid(layout) if layout.used().count() < layout.entries().len() => {
            let used = layout.used().fold(Layout::default(), |kept, entry| kept.with(entry.clone()));
            SpaceState::Grid(used)
        }
        other => other.clone(),
    }
}
