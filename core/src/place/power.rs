//! Power caps of nodes and racks while a request is placed: what would be drawn with what
//! is already taken. Nothing is computed where no cap is.

use super::rules::NodeUse;
use super::view::{Piece, View};
use crate::ids::{NodeId, RackId, SpecId};
use crate::ledger::{Class, Ledger, Spec};
use crate::reason::Code;
use crate::space::{SpaceState, Take};

/// A cap that would be passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverCap {
    /// Whose: [`Code::PowerCapNode`] or [`Code::PowerCapRack`].
    pub code: Code,
    /// What is needed, in milliwatts.
    pub needed_mw: u64,
    /// What is free, in milliwatts.
    pub free_mw: u64,
}

/// What a take adds to the draw of a GPU in a state, in milliwatts; 0 where no cap asks.
pub fn growth_mw(ledger: &Ledger, kind: &Spec, state: &SpaceState, take: Take) -> u64 {
    if !ledger.has_power_caps() {
        return 0;
    }
    let after = kind.space().put(state, take).and_then(|after| kind.draw_mw(&after));
    after.unwrap_or(0).saturating_sub(kind.draw_mw(state).unwrap_or(0))
}

/// The same for a take on the GPUs of a class, which are of this kind or are given it.
pub fn growth_on(ledger: &Ledger, class: &Class, spec: SpecId, take: Take) -> u64 {
    if !ledger.has_power_caps() {
        return 0;
    }
    let kind = &ledger.specs()[spec];
    if class.key.spec == spec {
        growth_mw(ledger, kind, &kind.state(class.key.state), take)
    } else {
        // Nothing is on it, and an idle GPU draws alike in every mode.
        growth_mw(ledger, kind, &kind.space().empty(), take)
    }
}

/// The same for a piece on a GPU as it is in a view.
pub fn growth_of(view: &View<'_>, piece: &Piece) -> u64 {
    if !view.ledger.has_power_caps() {
        return 0;
    }
    let state = view.state_in(piece.gpu, piece.spec, false);
    state.map_or(0, |state| growth_mw(view.ledger, &view.ledger.specs()[piece.spec], &state, piece.take))
}

impl View<'_> {
    /// The cap that a member would pass on a node where its GPUs draw so much more.
    pub fn over_cap(&self, node: NodeId, cpu_milli: u64, growth_mw: u64) -> Option<OverCap> {
        let ((code, free_mw), needed_mw) = (self.tightest(node)?, self.needed_mw(node, cpu_milli, growth_mw));
        (needed_mw > free_mw).then_some(OverCap { code, needed_mw, free_mw })
    }

    /// What the GPUs of a node may draw more beside a member's CPU; `None`: no limit.
    pub fn growth_max_mw(&self, node: NodeId, cpu_milli: u64) -> Option<u64> {
        let (_, free) = self.tightest(node)?;
        Some(free.saturating_sub(self.needed_mw(node, cpu_milli, 0)))
    }

    /// Whether no node or rack draws more than its cap.
    pub fn keeps_caps(&self) -> bool {
        !self.ledger.has_power_caps()
            || self.touched().into_iter().all(|node| {
                let power = self.ledger.nodes()[node].power;
                let rack = power.rack.map(|rack| (self.ledger.rack(rack).cap_mw, self.rack_draw_mw(rack)));
                let within = |(cap, draw): (Option<u64>, u64)| cap.is_none_or(|cap| draw <= cap);
                within((power.cap_mw, self.node_draw_mw(node))) && rack.is_none_or(within)
            })
    }

    /// The cap with the least power free, the node's before the rack's.
    fn tightest(&self, node: NodeId) -> Option<(Code, u64)> {
        if !self.ledger.has_power_caps() {
            return None;
        }
        let power = self.ledger.nodes()[node].power;
        let own = power.cap_mw.map(|cap| (Code::PowerCapNode, cap.saturating_sub(self.node_draw_mw(node))));
        let shared = power.rack.and_then(|rack| {
            let cap = self.ledger.rack(rack).cap_mw?;
            Some((Code::PowerCapRack, cap.saturating_sub(self.rack_draw_mw(rack))))
        });
        own.into_iter().chain(shared).min_by_key(|(_, free)| *free)
    }

    fn needed_mw(&self, node: NodeId, cpu_milli: u64, growth_mw: u64) -> u64 {
        let record = &self.ledger.nodes()[node];
        let taken = record.cpu_used.saturating_add(self.node_use(node).cpu_milli);
        let cpu = record.cpu_draw_mw(taken.saturating_add(cpu_milli)).saturating_sub(record.cpu_draw_mw(taken));
        cpu.saturating_add(growth_mw)
    }

    fn node_draw_mw(&self, node: NodeId) -> u64 {
        let record = &self.ledger.nodes()[node];
        let used = self.node_use(node);
        if used == NodeUse::default() && !record.gpus().any(|gpu| self.is_changed(gpu)) {
            return record.power.draw_mw;
        }
        let cpu = record.cpu_draw_mw(record.cpu_used.saturating_add(used.cpu_milli));
        let draws = record.gpus().map(|gpu| self.spec(gpu).draw_mw(&self.state(gpu)).unwrap_or(0));
        draws.fold(cpu, u64::saturating_add)
    }

    fn rack_draw_mw(&self, rack: RackId) -> u64 {
        let record = |node: NodeId| self.ledger.nodes()[node].power;
        let own = self.touched().into_iter().filter(|node| record(*node).rack == Some(rack));
        own.fold(self.ledger.rack(rack).draw_mw, |sum, node| {
            sum.saturating_sub(record(node).draw_mw).saturating_add(self.node_draw_mw(node))
        })
    }
}
