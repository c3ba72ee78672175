//! The natural integer program: one variable for every member and place, over the whole
//! fleet. It is what [`crate::plan`] is measured against; it does not grow far.

use std::collections::BTreeSet;

use slicewise_core::ids::NodeId;
use slicewise_core::ledger::Ledger;
use slicewise_core::plan::Objective;
use slicewise_core::workload::Workload;

use crate::budget::{Backend, PlanBudget};
use crate::demand::Batch;
use crate::error::PlanError;
use crate::expand::Seats;
use crate::member_place::{Frame, Task, solve};
use crate::report::Score;

/// What the natural program reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Natural {
    /// Members admitted.
    pub admitted: u64,
    /// Value admitted.
    pub value: u64,
    /// GPUs opened.
    pub gpus_opened: u64,
}

/// Solves the natural program; `None` where it is too large or the node limit ended it
/// without a plan. An answer is the optimum only if the limit was not reached.
///
/// # Errors
/// A request that is not well formed.
pub fn natural(
    ledger: &Ledger,
    workloads: &[Workload],
    objective: Objective,
    budget: PlanBudget,
    backend: Backend,
) -> Result<Option<Natural>, PlanError> {
    let batch = Batch::read(ledger, workloads)?;
    let seats = seats(ledger, &batch, workloads, objective, budget.nodes, backend);
    Ok(seats.map(|seats| {
        let score = Score::of(ledger, &batch, &seats);
        Natural { admitted: score.admitted, value: score.value, gpus_opened: score.gpus_opened }
    }))
}

/// The seats of the natural program.
pub(crate) fn seats(
    ledger: &Ledger,
    batch: &Batch,
    workloads: &[Workload],
    objective: Objective,
    nodes: u64,
    backend: Backend,
) -> Option<Seats> {
    let frame = Frame { ledger, batch, workloads, objective, nodes, backend };
    let task = |(request, workload): (usize, &Workload)| Task { request, members: workload.count };
    let tasks: Vec<Task> = workloads.iter().enumerate().map(task).collect();
    let everywhere: BTreeSet<NodeId> = ledger.nodes().ids().collect();
    let mut seats: Seats = workloads.iter().map(|_| Vec::new()).collect();
    for (request, found) in solve(frame, &tasks, &everywhere, &[])? {
        if let Some(entry) = seats.get_mut(request) {
            *entry = found;
        }
    }
    Some(seats)
}
