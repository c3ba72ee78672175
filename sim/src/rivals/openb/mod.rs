//! The policies of the ATC'23 study.
//!
//! Each gives a node a score from 0 to 100, rounded down; of equal scores the node of
//! lowest rank wins. That rounding is part of what was published: without it the results
//! differ by points.

mod fgd;
mod random;
mod scores;

use slicewise::formats::Arrivals;
use slicewise::ids::{IdVec, NodeId};

use crate::openb::{Arrival, Cluster, KindId, Node, Placer, Pod, ReplayError, Spot, Trace, Typical};

/// A policy that scores nodes.
trait Score {
    /// The node's score for a pod that fits there, and the GPU if the pod shares one.
    fn score(&self, id: NodeId, node: &Node, pod: &Pod) -> (i64, Option<usize>);
}

/// Names of the policies.
pub const NAMES: [&str; 6] = [
    "published-fgd",
    "published-best-fit",
    "published-dot-product",
    "published-gpu-packing",
    "published-gpu-clustering",
    "published-random",
];

/// The policy of this name.
pub fn named(name: &str, trace: &Trace, arrivals: &Arrivals) -> Option<Box<dyn Placer>> {
    Some(match name {
        "published-fgd" => Box::new(Scored::new(fgd::Fgd::new(Typical::of(trace)))),
        "published-best-fit" => Box::new(Scored::new(scores::BestFit)),
        "published-dot-product" => Box::new(Scored::new(scores::DotProduct)),
        "published-gpu-packing" => Box::new(Scored::new(scores::Packing)),
        "published-gpu-clustering" => Box::new(Scored::new(scores::Clustering)),
        "published-random" => Box::new(random::Random::new(arrivals.seed)),
        _ => return None,
    })
}

/// A score with its memory: what a node is worth to a kind of pod changes only with the
/// node, and each step changes one node.
struct Scored<S> {
    rule: S,
    memory: IdVec<KindId, IdVec<NodeId, Memo>>,
}

#[derive(Clone, Copy, Default)]
struct Memo {
    version: u32,
    /// `None` if the pod does not fit.
    score: Option<i64>,
}

impl<S> Scored<S> {
    fn new(rule: S) -> Self {
        Self { rule, memory: IdVec::default() }
    }
}

impl<S: Score> Placer for Scored<S> {
    fn decide(&mut self, cluster: &Cluster, arrival: &Arrival) -> Result<Option<Spot>, ReplayError> {
        let pod = &arrival.pod;
        while self.memory.lookup(arrival.kind).is_none() {
            self.memory.push(IdVec::default());
        }
        let memory = &mut self.memory[arrival.kind];
        let mut best: Option<(i64, NodeId)> = None;
        for (id, node) in cluster.nodes().iter() {
            if memory.lookup(id).is_none() {
                memory.push(Memo::default());
            }
            let memo = &mut memory[id];
            if memo.version != node.version {
                let score = node.fits(pod).then(|| self.rule.score(id, node, pod).0);
                *memo = Memo { version: node.version, score };
            }
            if let Some(score) = memo.score
                && best.is_none_or(|(least, _)| score > least)
            {
                best = Some((score, id));
            }
        }
        Ok(best.map(|(_, id)| {
            let node = &cluster.nodes()[id];
            let shared = pod.is_shared().then(|| self.rule.score(id, node, pod).1).flatten();
            let devices = shared.map_or_else(|| node.first_devices(pod), |device| vec![device]);
            Spot { node: id, devices }
        }))
    }
}
