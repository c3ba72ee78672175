//! Plans from seats.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use slicewise_core::fleet::Lease;
use slicewise_core::ids::{GpuId, NodeId};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::{Seat, placements, switched};
use slicewise_core::plan::{BoundOf, BoundSource, Certificate, Method, Objective, Plan, Price, Refusal};
use slicewise_core::space::PPM;
use slicewise_core::workload::Workload;

use crate::bound::Priced;
use crate::demand::Batch;
use crate::expand::Seats;

/// The order of plans: by the objective, GPUs opened, value, nodes opened.
pub type Rank = (u64, Reverse<u64>, u64, Reverse<u64>);

/// What a set of seats comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Members admitted.
    pub admitted: u64,
    /// Value admitted.
    pub value: u64,
    /// GPUs that hold something.
    pub gpus_used: u64,
    /// GPUs that were unused.
    pub gpus_opened: u64,
    /// Nodes that were unused.
    pub nodes_opened: u64,
}

impl Score {
    /// Of these seats.
    pub fn of(ledger: &Ledger, batch: &Batch, seats: &Seats) -> Self {
        let mut score = Self::default();
        let (mut gpus, mut nodes) = (BTreeSet::<GpuId>::new(), BTreeSet::<NodeId>::new());
        for (request, seats) in batch.requests.iter().zip(seats) {
            let members = seats.len() as u64;
            score.admitted += members;
            score.value = score.value.saturating_add(members.saturating_mul(request.value));
            nodes.extend(seats.iter().map(|s| s.node));
            gpus.extend(seats.iter().flat_map(|s| &s.takes).map(|piece| piece.gpu));
        }
        score.gpus_used = gpus.len() as u64;
        let unused = |gpu: &GpuId| ledger.spec(*gpu).space().is_unused(&ledger.state(*gpu));
        score.gpus_opened = gpus.iter().filter(|gpu| unused(gpu)).count() as u64;
        score.nodes_opened = nodes.iter().filter(|node| !ledger.nodes()[**node].is_open()).count() as u64;
        score
    }
    /// The order of plans: more is better.
    pub fn rank(&self, objective: Objective) -> Rank {
        let leading = match objective {
            Objective::MostValue => self.value,
            Objective::FewestGpus => self.admitted,
        };
        (leading, Reverse(self.gpus_opened), self.value, Reverse(self.nodes_opened))
    }
}

/// Bounds of both kinds, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// Of the leading objective, from above.
    pub leading: Option<Priced>,
    /// Of the GPUs opened when all are admitted.
    pub gpus: Option<Priced>,
}

/// Writes a plan out.
pub fn plan(
    ledger: &Ledger,
    workloads: &[Workload],
    batch: &Batch,
    objective: Objective,
    method: Method,
    seats: &Seats,
    bounds: &Bounds,
) -> Plan {
    let score = Score::of(ledger, batch, seats);
    let refused = batch.members() - score.admitted;
    let proof = proof(bounds, batch, objective, score);
    let mut leases = Vec::new();
    let mut refusals = Vec::new();
    for (workload, seats) in workloads.iter().zip(seats) {
        let left_out = u64::from(workload.count) - seats.len() as u64;
        if left_out > 0 {
            refusals.push(Refusal { workload: workload.name.clone(), members: left_out });
        }
        if !seats.is_empty() {
            leases.push(lease(ledger, workload, seats));
        }
    }
    Plan {
        version: ledger.version(),
        objective,
        method,
        relaxed: batch.relaxed.clone(),
        verified: false,
        admitted: score.admitted,
        refused,
        value: score.value,
        gpus_used: score.gpus_used,
        gpus_opened: score.gpus_opened,
        nodes_opened: score.nodes_opened,
        bound_of: proof.of,
        bound: proof.bound,
        gap_ppm: proof.gap_ppm,
        bound_source: proof.source,
        certificate: proof.priced.map(|p| certificate(batch, p)),
        leases,
        mode_changes: ledger.changes(&switched(ledger, seats.iter().flatten().flat_map(|seat| &seat.takes))),
        refusals,
        budget_exhausted: false,
    }
}

/// Whether nothing can be better by the leading objective.
pub fn is_optimal(bounds: &Bounds, batch: &Batch, objective: Objective, score: Score) -> bool {
    proof(bounds, batch, objective, score).gap_ppm == 0
}

fn proof<'a>(bounds: &'a Bounds, batch: &Batch, objective: Objective, score: Score) -> Proof<'a> {
    match objective {
        _ if score.admitted == batch.members() => gpus_proof(bounds, score),
        Objective::MostValue => leading_proof(bounds, BoundOf::Value, batch.value(), score.value),
        Objective::FewestGpus => leading_proof(bounds, BoundOf::Members, batch.members(), score.admitted),
    }
}

struct Proof<'a> {
    of: BoundOf,
    bound: u64,
    gap_ppm: u64,
    source: BoundSource,
    priced: Option<&'a Priced>,
}

/// Of what is to be as much as can be, of which `demand` is asked and `reached` admitted.
fn leading_proof(bounds: &Bounds, of: BoundOf, demand: u64, reached: u64) -> Proof<'_> {
    let priced = bounds.leading.as_ref().filter(|p| p.bound < demand);
    let bound = priced.map_or(demand, |p| p.bound);
    Proof {
        of,
        bound,
        gap_ppm: gap_ppm(bound, bound.saturating_sub(reached)),
        source: if priced.is_some() { BoundSource::Prices } else { BoundSource::Demand },
        priced,
    }
}

fn gpus_proof(bounds: &Bounds, score: Score) -> Proof<'_> {
    let priced = bounds.gpus.as_ref();
    let bound = priced.map_or(0, |p| p.bound);
    Proof {
        of: BoundOf::Gpus,
        bound,
        gap_ppm: gap_ppm(bound, score.gpus_opened.saturating_sub(bound)),
        source: if priced.is_some() { BoundSource::Prices } else { BoundSource::Demand },
        priced,
    }
}

/// A distance in parts per million of the bound, rounded up; of one where the bound is zero.
fn gap_ppm(bound: u64, distance: u64) -> u64 {
    let scaled = u128::from(distance) * u128::from(PPM);
    u64::try_from(scaled.div_ceil(u128::from(bound.max(1)))).unwrap_or(u64::MAX)
}

fn certificate(batch: &Batch, priced: &Priced) -> Certificate {
    let price = |(id, part): (crate::ids::PartId, &crate::demand::Part)| {
        let price = priced.prices.lookup(id).copied().filter(|p| *p > 0)?;
        Some(Price { part: part.ask.clone(), models: part.models.clone(), price })
    };
    Certificate { scale: priced.scale, prices: batch.parts.iter().filter_map(price).collect() }
}

fn lease(ledger: &Ledger, workload: &Workload, seats: &[Seat]) -> Lease {
    Lease {
        name: workload.name.clone(),
        tenant: workload.tenant.clone(),
        labels: workload.labels.clone(),
        pinned: workload.pinned,
        keeps_away: workload.anti_affinity.clone(),
        nodes: workload.nodes.clone(),
        cpu_milli: workload.cpu_milli,
        memory_mib: workload.memory_mib,
        placements: placements(ledger, workload, seats),
    }
}
