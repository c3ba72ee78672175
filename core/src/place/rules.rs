//! What a node must meet, whatever is asked of its GPUs.

use crate::ids::NodeId;
use crate::ledger::{LeaseRecord, Ledger};
use crate::reason::Code;
use crate::workload::{Requirement, Workload};
use alloc::collections::BTreeMap;
use alloc::string::String;

/// What others of the same decision have already taken of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeUse {
    /// CPU, thousandths of a core.
    pub cpu_milli: u64,
    /// Memory, MiB.
    pub memory_mib: u64,
}

/// The requirements of one member on its node.
#[derive(Clone, Copy, Debug)]
pub struct NodeRules<'a> {
    /// CPU it takes.
    pub cpu_milli: u64,
    /// Memory it takes.
    pub memory_mib: u64,
    nodes: &'a [Requirement],
    dislikes: &'a [Requirement],
    labels: &'a BTreeMap<String, String>,
}

impl<'a> NodeRules<'a> {
    /// Those of a request.
    pub fn of(workload: &'a Workload) -> Self {
        Self {
            cpu_milli: workload.cpu_milli,
            memory_mib: workload.memory_mib,
            nodes: &workload.nodes,
            dislikes: &workload.anti_affinity,
            labels: &workload.labels,
        }
    }
    /// Those of a lease, for moving it.
    pub fn of_lease(lease: &'a LeaseRecord) -> Self {
        Self {
            cpu_milli: lease.cpu_milli,
            memory_mib: lease.memory_mib,
            nodes: &lease.allowed_nodes,
            dislikes: &lease.keeps_away,
            labels: &lease.labels,
        }
    }
    /// Whether any node is as good as another for these rules.
    pub fn is_blank(&self, ledger: &Ledger) -> bool {
        self.cpu_milli == 0
            && self.memory_mib == 0
            && self.nodes.is_empty()
            && self.dislikes.is_empty()
            && (self.labels.is_empty() || !ledger.has_dislikes())
    }

    /// The first rule that the node does not meet, with `taken` of it gone already.
    pub fn failure(&self, ledger: &Ledger, node: NodeId, taken: NodeUse) -> Option<Code> {
        let record = &ledger.nodes()[node];
        if record.cordoned {
            return Some(Code::Cordoned);
        }
        if !self.nodes.iter().all(|r| r.accepts(record.label(&r.key))) {
            return Some(Code::NodeSelector);
        }
        let short = |free: Option<u64>, taken: u64, needed: u64| {
            needed > 0 && free.is_some_and(|f| f.saturating_sub(taken) < needed)
        };
        if short(record.cpu_free(), taken.cpu_milli, self.cpu_milli) {
            return Some(Code::NodeCpu);
        }
        if short(record.memory_free(), taken.memory_mib, self.memory_mib) {
            return Some(Code::NodeMemory);
        }
        ledger.noted(node).any(|lease| self.clashes(lease)).then_some(Code::AntiAffinity)
    }

    fn clashes(&self, lease: &LeaseRecord) -> bool {
        let meets =
            |labels: &BTreeMap<String, String>, r: &Requirement| labels.get(&r.key).is_some_and(|v| r.accepts(Some(v)));
        self.dislikes.iter().any(|r| meets(&lease.labels, r)) || lease.keeps_away.iter().any(|r| meets(self.labels, r))
    }
}
