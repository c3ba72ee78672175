//! What GPUs, nodes and racks draw, in milliwatts, and the caps that placements keep to.
//!
//! A GPU draws its idle watts while nothing is on it; in use, from its active to its full
//! watts with the compute that is in use, rounded up, and never more than its limit. A CPU
//! goes from idle to full with the cores taken. These are what is admitted, not what a
//! meter shows: the draw if everybody uses all that they have. Sums are kept where a cap
//! applies, and nowhere else.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Ledger, NodeRecord, Spec};
use crate::catalog::{CpuPower, GpuDraw, unknown_power};
use crate::error::{Fault, InputError};
use crate::fleet::{Node, PowerCap, Rack, State};
use crate::ids::{GpuId, Id, NodeId, RackId};
use crate::space::SpaceState;

const MILLI: u64 = 1000;

/// A rack.
#[derive(Clone, Debug)]
pub struct RackRecord {
    /// As the document says it.
    pub document: Rack,
    /// What placements keep to, in milliwatts; `None`: no limit.
    pub cap_mw: Option<u64>,
    /// What its nodes draw, in milliwatts; kept where placements keep to a cap.
    pub draw_mw: u64,
}

/// What a node has to do with power.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodePower {
    /// Its rack, where the state has racks.
    pub rack: Option<RackId>,
    /// What placements keep to, in milliwatts; `None`: no limit.
    pub cap_mw: Option<u64>,
    /// What it draws, in milliwatts; kept where placements keep to a cap.
    pub draw_mw: u64,
    cpu: CpuPower,
}

impl GpuDraw {
    /// The draw with a part of the compute in use.
    fn at(self, used: u64, of: u64) -> u64 {
        let swing = u128::from(self.full_mw.saturating_sub(self.active_mw)) * u128::from(used.min(of));
        let grown = u64::try_from(swing.div_ceil(u128::from(of.max(1)))).unwrap_or(u64::MAX);
        self.active_mw.saturating_add(grown).min(self.limit_mw)
    }
}

impl Spec {
    /// What a GPU of this kind draws in a state, in milliwatts; `None`: its watts are not known.
    pub fn draw_mw(&self, state: &SpaceState) -> Option<u64> {
        Some(self.drawn_mw(state, self.draw()?))
    }
    /// What it would draw above its idle watts if it had no limit, in milliwatts.
    pub fn swing_mw(&self, state: &SpaceState) -> Option<u64> {
        let unlimited = GpuDraw { limit_mw: u64::MAX, ..self.draw()? };
        Some(self.drawn_mw(state, unlimited).saturating_sub(unlimited.idle_mw))
    }
    fn drawn_mw(&self, state: &SpaceState, draw: GpuDraw) -> u64 {
        if self.space().is_unused(state) {
            return draw.idle_mw;
        }
        let (used, of) = self.space().compute_used(state);
        draw.at(used, of)
    }
}

impl NodeRecord {
    /// Its power cap, whether placements or its GPUs keep to it.
    pub fn power_cap(&self) -> Option<PowerCap> {
        self.document.power_cap
    }
    /// Name of its rack.
    pub fn rack(&self) -> Option<&str> {
        self.document.rack.as_deref()
    }
    /// What its CPU draws with this much of it taken, in milliwatts: thousandths of a core
    /// times watts of a core. Nothing where the node does not say how much it has.
    pub fn cpu_draw_mw(&self, taken_milli: u64) -> u64 {
        let (Some(has), cpu) = (self.cpu_milli, self.power.cpu) else { return 0 };
        let swing = u128::from(cpu.full_w.saturating_sub(cpu.idle_w)) * u128::from(taken_milli.min(has));
        let total = u128::from(cpu.idle_w) * u128::from(has) + swing;
        u64::try_from(total.div_ceil(u128::from(cpu.cores.max(1)))).unwrap_or(u64::MAX)
    }
}

impl Ledger {
    /// The racks.
    pub fn racks(&self) -> impl Iterator<Item = (RackId, &RackRecord)> {
        self.racks.iter()
    }
    /// The rack of this id.
    pub fn rack(&self, rack: RackId) -> &RackRecord {
        &self.racks[rack]
    }
    /// Whether placements keep to a cap anywhere.
    pub fn has_power_caps(&self) -> bool {
        self.power_caps
    }
    /// What a GPU draws, in milliwatts; `None`: its watts are not known.
    pub fn gpu_draw_mw(&self, gpu: GpuId) -> Option<u64> {
        self.spec(gpu).draw_mw(&self.state(gpu))
    }
    /// What a node draws, in milliwatts; `None`: the watts of one of its GPUs are not known.
    pub fn node_draw_mw(&self, node: NodeId) -> Option<u64> {
        let record = &self.nodes[node];
        let cpu = record.cpu_draw_mw(record.cpu_used);
        record.gpus().try_fold(cpu, |sum, gpu| Some(sum.saturating_add(self.gpu_draw_mw(gpu)?)))
    }
    /// The nodes of a rack.
    pub fn nodes_in(&self, rack: RackId) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().filter(move |(_, n)| n.power.rack == Some(rack)).map(|(id, _)| id)
    }

    pub(super) fn load_racks(&mut self, state: &State) -> Result<(), InputError> {
        for (i, rack) in state.racks.iter().enumerate() {
            if self.racks.iter().any(|(_, r)| r.document.name == rack.name) {
                let fault = Fault::Duplicate(rack.name.clone());
                return Err(InputError::new(alloc::format!("racks[{i}].name"), fault));
            }
            let record = RackRecord { document: rack.clone(), cap_mw: kept_to(rack.power_cap), draw_mw: 0 };
            self.power_caps |= record.cap_mw.is_some();
            self.racks.push(record);
        }
        Ok(())
    }

    /// The node's part in power, from its document.
    pub(super) fn power_of(&mut self, node: &Node) -> Result<NodePower, InputError> {
        let cpu = self.catalog.cpu_power(node)?;
        let position = |name: &String| self.racks.iter().find(|(_, r)| r.document.name == *name).map(|(id, _)| id);
        let rack = match &node.rack {
            Some(name) if !self.racks.is_empty() => {
                let unknown = || InputError::new("rack", Fault::Unknown { kind: "rack", name: name.clone() });
                Some(position(name).ok_or_else(unknown)?)
            }
            _ => None,
        };
        let cap_mw = kept_to(node.power_cap);
        self.power_caps |= cap_mw.is_some();
        Ok(NodePower { rack, cap_mw, draw_mw: 0, cpu })
    }

    /// Checks that the watts under every cap are known, and that nothing draws more than
    /// what placements keep to.
    pub(super) fn load_draws(&mut self) -> Result<(), InputError> {
        let nodes: Vec<NodeId> = self.nodes.ids().collect();
        for node in nodes {
            let power = self.nodes[node].power;
            let rack_cap = power.rack.and_then(|rack| self.racks[rack].document.power_cap);
            if self.nodes[node].document.power_cap.or(rack_cap).is_none() {
                continue;
            }
            let mut gpus = self.nodes[node].gpus().enumerate();
            if let Some((position, gpu)) = gpus.find(|(_, gpu)| self.spec(*gpu).draw().is_none()) {
                let at = alloc::format!("nodes[{}].gpus[{position}]", node.index());
                return Err(unknown_power(&self.spec(gpu).model().id).within(&at));
            }
            self.redraw(node);
            if power.cap_mw.is_some_and(|cap| self.nodes[node].power.draw_mw > cap) {
                let at = alloc::format!("nodes[{}].power_cap", node.index());
                return Err(over_cap(at, self.nodes[node].power.draw_mw));
            }
        }
        match self.racks.iter().find(|(_, r)| r.cap_mw.is_some_and(|cap| r.draw_mw > cap)) {
            Some((id, rack)) => Err(over_cap(alloc::format!("racks[{}].power_cap", id.index()), rack.draw_mw)),
            None => Ok(()),
        }
    }

    /// Brings the sums of a node and its rack up to date.
    pub(super) fn redraw(&mut self, node: NodeId) {
        if !self.power_caps {
            return;
        }
        let draw = self.node_draw_mw(node).unwrap_or(0);
        let power = &mut self.nodes[node].power;
        let before = core::mem::replace(&mut power.draw_mw, draw);
        if let Some(rack) = power.rack {
            let rack = &mut self.racks[rack];
            rack.draw_mw = rack.draw_mw.saturating_sub(before).saturating_add(draw);
        }
    }
}

/// What placements keep to; GPUs that are throttled keep to the cap by themselves.
fn kept_to(cap: Option<PowerCap>) -> Option<u64> {
    cap.filter(|cap| !cap.throttle).map(PowerCap::limit_mw)
}

fn over_cap(at: String, draw_mw: u64) -> InputError {
    let watts = draw_mw.div_ceil(MILLI);
    let text =
        alloc::format!("what is there draws {watts} W; raise the cap, or say `throttle: true` if GPUs are slowed");
    InputError::new(at, Fault::Invalid(text))
}
