//! The ledger as it would be with some takes made: what a search tries things on.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::rules::{NodeRules, NodeUse};
use crate::ids::{GpuId, NodeId};
use crate::ledger::Ledger;
use crate::space::{SpaceState, Take};

/// What one member gets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// Its alternative.
    pub alternative: u32,
    /// Its node.
    pub node: NodeId,
    /// The parts of GPUs.
    pub takes: Vec<(GpuId, Take)>,
}

/// A ledger with takes on top.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// What is below.
    pub ledger: &'a Ledger,
    gpus: BTreeMap<GpuId, SpaceState>,
    nodes: BTreeMap<NodeId, NodeUse>,
}

impl<'a> View<'a> {
    /// The ledger as it is.
    pub fn new(ledger: &'a Ledger) -> Self {
        Self { ledger, gpus: BTreeMap::new(), nodes: BTreeMap::new() }
    }
    /// What is on a GPU.
    pub fn state(&self, gpu: GpuId) -> Cow<'_, SpaceState> {
        self.gpus.get(&gpu).map_or_else(|| self.ledger.state(gpu), Cow::Borrowed)
    }
    /// GPUs that differ from the ledger.
    pub fn changed(&self) -> impl Iterator<Item = GpuId> {
        self.gpus.keys().copied()
    }
    /// Whether a GPU differs from the ledger.
    pub fn is_changed(&self, gpu: GpuId) -> bool {
        self.gpus.contains_key(&gpu)
    }
    /// What the takes have of a node.
    pub fn node_use(&self, node: NodeId) -> NodeUse {
        self.nodes.get(&node).copied().unwrap_or_default()
    }
    /// Nodes that differ from the ledger.
    pub fn touched(&self) -> BTreeSet<NodeId> {
        let of_gpus = self.gpus.keys().map(|gpu| self.ledger.gpus()[*gpu].node);
        self.nodes.keys().copied().chain(of_gpus).collect()
    }
    /// Sets what is on a GPU.
    pub fn set(&mut self, gpu: GpuId, state: SpaceState) {
        self.gpus.insert(gpu, state);
    }
    /// Makes a take; false, and nothing changed, if it is not legal.
    pub fn put(&mut self, gpu: GpuId, take: Take) -> bool {
        match self.ledger.spec(gpu).space().put(&self.state(gpu), take) {
            Some(after) => {
                self.gpus.insert(gpu, after);
                true
            }
            None => false,
        }
    }
    /// Seats a member; what undoes it, or `None` if it does not fit.
    pub fn seat(&mut self, seat: &Seat, rules: &NodeRules<'_>) -> Option<Unseat> {
        let mut unseat = Unseat { node: (seat.node, self.nodes.get(&seat.node).copied()), gpus: Vec::new() };
        for (gpu, take) in &seat.takes {
            let before = self.gpus.get(gpu).cloned();
            if !self.put(*gpu, *take) {
                self.unseat(unseat);
                return None;
            }
            unseat.gpus.push((*gpu, before));
        }
        let taken = self.nodes.entry(seat.node).or_default();
        taken.cpu_milli = taken.cpu_milli.saturating_add(rules.cpu_milli);
        taken.memory_mib = taken.memory_mib.saturating_add(rules.memory_mib);
        Some(unseat)
    }
    /// Takes back a seat; seats are taken back in reverse order.
    pub fn unseat(&mut self, unseat: Unseat) {
        for (gpu, before) in unseat.gpus.into_iter().rev() {
            match before {
                Some(state) => self.gpus.insert(gpu, state),
                None => self.gpus.remove(&gpu),
            };
        }
        let (node, before) = unseat.node;
        match before {
            Some(taken) => self.nodes.insert(node, taken),
            None => self.nodes.remove(&node),
        };
    }
}

/// What a seat changed.
#[derive(Clone, Debug)]
pub struct Unseat {
    node: (NodeId, Option<NodeUse>),
    gpus: Vec<(GpuId, Option<SpaceState>)>,
}
