//! Any node that fits, any GPU of it.

use fastrand::Rng;
use slicewise::ids::NodeId;

use crate::openb::{Arrival, Cluster, Placer, ReplayError, Spot};

/// A random place.
pub(super) struct Random {
    rng: Rng,
}

impl Random {
    /// The policy that draws with this seed.
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed) }
    }
}

impl Placer for Random {
    fn decide(&mut self, cluster: &Cluster, arrival: &Arrival) -> Result<Option<Spot>, ReplayError> {
        let pod = &arrival.pod;
        let fitting: Vec<NodeId> =
            cluster.nodes().iter().filter(|(_, node)| node.fits(pod)).map(|(id, _)| id).collect();
        let Some(node) = self.rng.choice(fitting) else { return Ok(None) };
        let devices = cluster.nodes()[node].devices.iter().enumerate();
        let enough: Vec<usize> = devices.filter(|(_, free)| **free >= pod.gpu_milli).map(|(i, _)| i).collect();
        let devices = if pod.gpus == 0 { Vec::new() } else { self.rng.choose_multiple(enough, pod.gpus.into()) };
        Ok(Some(Spot { node, devices }))
    }
}
