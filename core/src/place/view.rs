//! The ledger as it would be with some takes made: what a search tries things on.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::rules::{NodeRules, NodeUse};
use crate::ids::{GpuId, NodeId, SpecId};
use crate::ledger::{Ledger, Spec, Switched};
use crate::space::{SpaceState, Take};

/// A take on a GPU that is of a kind, or is given it by a change of mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// The GPU.
    pub gpu: GpuId,
    /// The kind, which says what the take means.
    pub spec: SpecId,
    /// What of it.
    pub take: Take,
}

/// What one member gets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// Its alternative.
    pub alternative: u32,
    /// Its node.
    pub node: NodeId,
    /// The parts of GPUs.
    pub takes: Vec<Piece>,
}

/// GPUs of these pieces that are not of the kind which the pieces need.
pub fn switched<'a>(ledger: &Ledger, pieces: impl Iterator<Item = &'a Piece>) -> Switched {
    let mut switched = Switched::default();
    for piece in pieces.filter(|piece| ledger.gpus()[piece.gpu].spec != piece.spec) {
        switched.set(piece.gpu, Some(piece.spec));
    }
    switched
}

/// A ledger with takes on top.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// What is below.
    pub ledger: &'a Ledger,
    gpus: BTreeMap<GpuId, SpaceState>,
    switched: Switched,
    nodes: BTreeMap<NodeId, NodeUse>,
}

impl<'a> View<'a> {
    /// The ledger as it is.
    pub fn new(ledger: &'a Ledger) -> Self {
        Self { ledger, gpus: BTreeMap::new(), switched: Switched::default(), nodes: BTreeMap::new() }
    }
    /// What is on a GPU.
    pub fn state(&self, gpu: GpuId) -> Cow<'_, SpaceState> {
        self.gpus.get(&gpu).map_or_else(|| self.ledger.state(gpu), Cow::Borrowed)
    }
    /// The kind of a GPU.
    pub fn spec_id(&self, gpu: GpuId) -> SpecId {
        self.ledger.spec_after(gpu, &self.switched)
    }
    /// See [`View::spec_id`].
    pub fn spec(&self, gpu: GpuId) -> &'a Spec {
        &self.ledger.specs()[self.spec_id(gpu)]
    }
    /// What is on a GPU when it is of this kind; `None` if it is of another and cannot be
    /// given this one. Moves of others empty no GPU for a change of its mode.
    pub fn state_in(&self, gpu: GpuId, spec: SpecId, keep_idle: bool) -> Option<Cow<'_, SpaceState>> {
        if self.spec_id(gpu) == spec {
            return Some(self.state(gpu));
        }
        let may = !self.is_changed(gpu) && self.ledger.may_become(gpu, spec, keep_idle);
        may.then(|| Cow::Owned(self.ledger.specs()[spec].space().empty()))
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
    /// Makes a take on a GPU of the kind that it is of; false, and nothing changed, if it is
    /// not legal.
    pub fn put(&mut self, gpu: GpuId, take: Take) -> bool {
        self.make(&Piece { gpu, spec: self.spec_id(gpu), take }).is_some()
    }
    /// Makes a take, with a change of mode if it needs one; what undoes it, or `None` if it is
    /// not legal.
    pub fn make(&mut self, piece: &Piece) -> Option<Unmade> {
        let Piece { gpu, spec, take } = *piece;
        let kind = &self.ledger.specs()[spec];
        let after = kind.space().put(&*self.state_in(gpu, spec, false)?, take)?;
        let unmade = Unmade { gpu, state: self.gpus.insert(gpu, after), spec: self.switched.get(gpu) };
        if self.spec_id(gpu) != spec {
            self.switched.set(gpu, Some(spec));
        }
        Some(unmade)
    }
    /// Takes back a take; takes are taken back in reverse order.
    pub fn unmake(&mut self, unmade: Unmade) {
        match unmade.state {
            Some(state) => self.gpus.insert(unmade.gpu, state),
            None => self.gpus.remove(&unmade.gpu),
        };
        self.switched.set(unmade.gpu, unmade.spec);
    }
    /// Seats a member; what undoes it, or `None` if it does not fit.
    pub fn seat(&mut self, seat: &Seat, rules: &NodeRules<'_>) -> Option<Unseat> {
        let mut unseat = Unseat { node: (seat.node, self.nodes.get(&seat.node).copied()), pieces: Vec::new() };
        for piece in &seat.takes {
            let Some(unmade) = self.make(piece) else {
                self.unseat(unseat);
                return None;
            };
            unseat.pieces.push(unmade);
        }
        let taken = self.nodes.entry(seat.node).or_default();
        taken.cpu_milli = taken.cpu_milli.saturating_add(rules.cpu_milli);
        taken.memory_mib = taken.memory_mib.saturating_add(rules.memory_mib);
        Some(unseat)
    }
    /// Takes back a seat; seats are taken back in reverse order.
    pub fn unseat(&mut self, unseat: Unseat) {
        unseat.pieces.into_iter().rev().for_each(|unmade| self.unmake(unmade));
        let (node, before) = unseat.node;
        match before {
            Some(taken) => self.nodes.insert(node, taken),
            None => self.nodes.remove(&node),
        };
    }
}

/// A GPU as it was before a take.
#[derive(Clone, Debug)]
pub struct Unmade {
    gpu: GpuId,
    state: Option<SpaceState>,
    spec: Option<SpecId>,
}

/// What a seat changed.
#[derive(Clone, Debug)]
pub struct Unseat {
    node: (NodeId, Option<NodeUse>),
    pieces: Vec<Unmade>,
}
