//! The protocol: one pod at a time, placed or dropped.

use slicewise::formats::Arrivals;
use slicewise::ids::{IdVec, NodeId};
use thiserror::Error;

use super::cluster::{Cluster, Spot};
use super::curve::Curve;
use super::fragmentation::Typical;
use super::trace::{KindId, Pod, Trace, TraceError};
use crate::{Moment, Observer};

/// A pod that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// How many arrived before it.
    pub step: usize,
    /// Its position in the table of pods.
    pub row: usize,
    /// Its kind.
    pub kind: KindId,
    /// What it asks.
    pub pod: Pod,
}

/// Why a replay ended early.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The trace or order is none.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The engine refused its input, or what it decided itself.
    #[error("at step {step}: {error}")]
    Engine {
        /// The step.
        step: usize,
        /// What it said.
        error: slicewise::Error,
    },
    /// The engine gave no answer.
    #[error("at step {0}: the engine was undecided")]
    Undecided(usize),
    /// A policy put a pod where it does not fit.
    #[error("at step {0}: the pod does not fit where the policy put it")]
    Illegal(usize),
}

/// Places pods.
pub trait Placer {
    /// Where the pod goes; `None` drops it.
    ///
    /// # Errors
    /// Whatever ends the replay.
    fn decide(&mut self, cluster: &Cluster, arrival: &Arrival) -> Result<Option<Spot>, ReplayError>;

    /// Makes what was decided last true, in the placer's own state.
    ///
    /// # Errors
    /// Whatever ends the replay.
    fn apply(&mut self, arrival: &Arrival) -> Result<(), ReplayError> {
        let _ = arrival;
        Ok(())
    }
}

/// Replays a trace in one order.
///
/// # Errors
/// An order that is not one of this trace, or a placer that fails.
pub fn replay(
    trace: &Trace,
    arrivals: &Arrivals,
    placer: &mut dyn Placer,
    observe: &mut Observer<'_>,
) -> Result<Curve, ReplayError> {
    let mut cluster = Cluster::new(trace, arrivals)?;
    let typical = Typical::of(trace);
    let mut parts: IdVec<NodeId, u64> = cluster.nodes().iter().map(|(_, node)| typical.fragmentation(node)).collect();
    let mut fragmented: u64 = parts.iter().map(|(_, part)| part).sum();
    let mut curve = Curve::new(cluster.capacity_milli(), typical.total());
    let (mut arrived, mut allocated) = (0, 0);
    for (step, row) in arrivals.pods.iter().enumerate() {
        let unknown = || TraceError::UnknownPod(*row, trace.rows().len());
        let kind = *usize::try_from(*row).ok().and_then(|row| trace.rows().get(row)).ok_or_else(unknown)?;
        let pod = trace.kinds()[kind];
        let arrival = Arrival { step, row: *row as usize, kind, pod };
        observe(Moment::Deciding, step);
        let spot = placer.decide(&cluster, &arrival)?;
        observe(Moment::Decided, step);
        if spot.is_some() {
            placer.apply(&arrival)?;
        }
        observe(Moment::Applied, step);
        arrived += pod.total_milli();
        if let Some(spot) = spot {
            if !cluster.bind(&pod, &spot) {
                return Err(ReplayError::Illegal(step));
            }
            allocated += pod.total_milli();
            let now = typical.fragmentation(&cluster.nodes()[spot.node]);
            fragmented = fragmented + now - std::mem::replace(&mut parts[spot.node], now);
        }
        curve.note(arrived, allocated, fragmented);
    }
    Ok(curve)
}
