//! Packing fallbacks: the online engine over the requests in a fixed order. They know
//! every constraint, and nothing of the future.

use std::cmp::Reverse;

use slicewise_core::ledger::Ledger;
use slicewise_core::place::Term;
use slicewise_core::plan::{Method, Objective};
use slicewise_core::workload::Workload;

use crate::demand::{Batch, Request};
use crate::desk::Desk;

/// The policies that are tried, each under its name.
pub const POLICIES: [(Method, &[Term]); 3] = [
    (Method::FewestLostPlacements, &[Term::FewestLostPlacements, Term::FewestNodesOpened, Term::BestFit]),
    (Method::BestFitDecreasing, &[Term::Pack, Term::BestFit, Term::FewestNodesOpened]),
    (Method::FirstFitDecreasing, &[Term::FirstFit]),
];

/// Requests in the order they are served: most worth for its size first, then the largest.
pub fn order(batch: &Batch, objective: Objective) -> Vec<usize> {
    let mut order: Vec<usize> = (0..batch.requests.len()).collect();
    let key = |request: &Request| {
        let density = match objective {
            Objective::MostValue => u128::from(request.value) * 1_000_000 / u128::from(request.size.max(1)),
            Objective::FewestGpus => 0,
        };
        (Reverse(density), Reverse(request.size), request.plain)
    };
    order.sort_by_key(|i| (batch.requests.get(*i).map(key), *i));
    order
}

/// Serves the requests in this order until the work is spent. `None` if the desk cannot be
/// set up; the flag says whether everything was tried.
pub fn pack<'a>(
    ledger: &Ledger,
    batch: &'a Batch,
    workloads: &'a [Workload],
    terms: &[Term],
    order: &[usize],
    work: u64,
) -> Option<(Desk<'a>, bool)> {
    let mut desk = Desk::new(ledger, batch, workloads, terms)?;
    for request in order {
        if desk.work > work {
            return Some((desk, false));
        }
        desk.admit(*request);
    }
    Some((desk, true))
}
