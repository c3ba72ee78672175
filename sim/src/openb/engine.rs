//! The product: pods go through [`Engine::decide`] and [`Engine::commit`].

use std::collections::BTreeMap;

use slicewise::formats::Arrivals;
use slicewise::ids::{Id, NodeId};
use slicewise::{Decision, Engine, Policy, State, Verdict, Workload};

use super::cluster::{Cluster, Spot};
use super::replay::{Arrival, Placer, ReplayError};
use super::trace::Trace;

/// An engine that is asked for each pod.
#[derive(Clone, Debug)]
pub struct Product<'a> {
    engine: Engine,
    requests: &'a [Workload],
    nodes: BTreeMap<String, NodeId>,
    last: Option<(Workload, Decision)>,
}

impl<'a> Product<'a> {
    /// An engine with the trace's nodes in the order of their ranks, so that the engine's
    /// last resort, the order of the fleet, is the protocol's.
    ///
    /// # Errors
    /// Ranks that are not those of the nodes, or a policy that the fleet refuses.
    pub fn new(trace: &'a Trace, arrivals: &Arrivals, policy: Policy) -> Result<Self, ReplayError> {
        let nodes: Vec<_> = trace.nodes_by_rank(arrivals)?.into_iter().cloned().collect();
        let ids = nodes.iter().enumerate().map(|(i, node)| (node.name.clone(), NodeId::from_index(i))).collect();
        let state = State { nodes, ..trace.state.clone() };
        let engine = Engine::builder().policy(policy).build(&state);
        let engine = engine.map_err(|error| ReplayError::Engine { step: 0, error })?;
        Ok(Self { engine, requests: &trace.requests, nodes: ids, last: None })
    }
}

impl Placer for Product<'_> {
    fn decide(&mut self, _: &Cluster, arrival: &Arrival) -> Result<Option<Spot>, ReplayError> {
        let step = arrival.step;
        let Some(request) = self.requests.get(arrival.row) else { return Ok(None) };
        // The order draws pods with replacement; leases have names of their own.
        let request = Workload { name: step.to_string(), ..request.clone() };
        let decision = self.engine.decide(&request).map_err(|error| ReplayError::Engine { step, error })?;
        match decision.verdict {
            Verdict::Admit => {}
            Verdict::Undecided => return Err(ReplayError::Undecided(step)),
            Verdict::Reject | Verdict::Wait => return Ok(None),
        }
        let node = decision.placements.first().and_then(|placement| self.nodes.get(&placement.node)).copied();
        let devices = decision.placements.iter().filter_map(|placement| Some(placement.gpu? as usize)).collect();
        self.last = Some((request, decision));
        Ok(node.map(|node| Spot { node, devices }))
    }

    fn apply(&mut self, arrival: &Arrival) -> Result<(), ReplayError> {
        let Some((request, decision)) = self.last.take() else { return Ok(()) };
        let committed = self.engine.commit(&request, &decision);
        committed.map(drop).map_err(|error| ReplayError::Engine { step: arrival.step, error })
    }
}
