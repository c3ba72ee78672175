//! What the nodes have left: the model on which published policies decide, and on which
//! every replay is measured.

use slicewise::formats::Arrivals;
use slicewise::ids::{IdVec, NodeId};

use super::trace::{ModelId, Pod, Trace, TraceError, WHOLE_MILLI};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// CPU left, thousandths of a core.
    pub cpu_free_milli: u64,
    /// Memory left, MiB.
    pub memory_free_mib: u64,
    /// Thousandths left of each GPU.
    pub devices: Vec<u16>,
    /// Model of the GPUs; `None` if there are none.
    pub model: Option<ModelId>,
    /// Numbers of GPUs that its pods ask, 0 standing for a part of one; each once.
    pub residents: Vec<u16>,
    /// Grows with each change.
    pub version: u32,
}

impl Node {
    /// Thousandths of GPUs left in all.
    pub fn free_milli(&self) -> u64 {
        self.devices.iter().map(|free| u64::from(*free)).sum()
    }
    /// GPUs with at least this much left.
    pub fn devices_with(&self, milli: u16) -> usize {
        self.devices.iter().filter(|free| **free >= milli).count()
    }
    /// Whether its model and GPUs can take the pod.
    pub fn has_gpus_for(&self, pod: &Pod) -> bool {
        pod.gpus == 0
            || (self.model.is_some_and(|model| pod.models.has(model))
                && self.devices_with(pod.gpu_milli) >= usize::from(pod.gpus))
    }
    /// Whether it can take the pod.
    pub fn fits(&self, pod: &Pod) -> bool {
        self.cpu_free_milli >= pod.cpu_milli && self.memory_free_mib >= pod.memory_mib && self.has_gpus_for(pod)
    }
    /// GPUs that nothing uses.
    pub fn whole_devices(&self) -> usize {
        self.devices_with(WHOLE_MILLI)
    }
    /// The GPU with the least left that suffices, the first of equal ones.
    pub fn tightest(&self, milli: u16) -> Option<usize> {
        let enough = self.devices.iter().enumerate().filter(|(_, free)| **free >= milli);
        enough.min_by_key(|(i, free)| (**free, *i)).map(|(i, _)| i)
    }
    /// The node with the pod on these GPUs.
    pub fn with(&self, pod: &Pod, devices: &[usize]) -> Self {
        let mut after = self.clone();
        after.take(pod, devices);
        after
    }
    /// The first GPUs that have enough left.
    pub fn first_devices(&self, pod: &Pod) -> Vec<usize> {
        let enough = self.devices.iter().enumerate().filter(|(_, free)| **free >= pod.gpu_milli);
        enough.map(|(i, _)| i).take(pod.gpus.into()).collect()
    }

    fn take(&mut self, pod: &Pod, devices: &[usize]) {
        self.cpu_free_milli = self.cpu_free_milli.saturating_sub(pod.cpu_milli);
        self.memory_free_mib = self.memory_free_mib.saturating_sub(pod.memory_mib);
        for device in devices {
            if let Some(free) = self.devices.get_mut(*device) {
                *free = free.saturating_sub(pod.gpu_milli);
            }
        }
        let resident = resident(pod);
        if pod.gpus > 0 && !self.residents.contains(&resident) {
            self.residents.push(resident);
        }
        self.version += 1;
    }
}

/// What tells pods apart for clustering: parts of a GPU, or the number of GPUs.
pub fn resident(pod: &Pod) -> u16 {
    if pod.is_shared() { 0 } else { pod.gpus }
}

/// Where a pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The node.
    pub node: NodeId,
    /// Positions of the GPUs on it.
    pub devices: Vec<usize>,
}

/// The nodes by rank.
#[derive(Clone, Debug)]
pub struct Cluster {
    nodes: IdVec<NodeId, Node>,
    capacity_milli: u64,
}

impl Cluster {
    /// The empty cluster of a trace, the nodes in the order of their ranks.
    ///
    /// # Errors
    /// Ranks that are not those of the nodes.
    pub fn new(trace: &Trace, arrivals: &Arrivals) -> Result<Self, TraceError> {
        let node = |node: &slicewise::Node| Node {
            cpu_free_milli: node.cpu_milli.unwrap_or(u64::MAX),
            memory_free_mib: node.memory_mib.unwrap_or(u64::MAX),
            devices: vec![WHOLE_MILLI; node.gpus.len()],
            model: trace.model_of(node),
            residents: Vec::new(),
            version: 1,
        };
        let nodes: IdVec<NodeId, Node> = trace.nodes_by_rank(arrivals)?.into_iter().map(node).collect();
        let capacity_milli = nodes.iter().map(|(_, node)| node.free_milli()).sum();
        Ok(Self { nodes, capacity_milli })
    }
    /// The nodes, lowest rank first.
    pub fn nodes(&self) -> &IdVec<NodeId, Node> {
        &self.nodes
    }
    /// Thousandths of GPUs there are.
    pub fn capacity_milli(&self) -> u64 {
        self.capacity_milli
    }
    /// Binds a pod; false, and nothing changed, if it does not fit there.
    pub fn bind(&mut self, pod: &Pod, spot: &Spot) -> bool {
        let Some(node) = self.nodes.lookup(spot.node) else { return false };
        let enough = |device: &usize| node.devices.get(*device).is_some_and(|free| *free >= pod.gpu_milli);
        let mut distinct = spot.devices.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if !node.fits(pod) || distinct.len() != usize::from(pod.gpus) || !distinct.iter().all(enough) {
            return false;
        }
        self.nodes[spot.node].take(pod, &distinct);
        true
    }
}
