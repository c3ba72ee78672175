//! The fewest GPUs that serve inference models within their latency objectives.
//!
//! At a latency objective, each model has one best measured point per size of instance.
//! What remains is a covering problem over the ways to cut a GPU. Prices on sizes bound it
//! from below: they are found by a linear program, rounded to integers, and what they
//! prove is computed again by exact search (`cover`). A deployment comes from packing the
//! cheapest segments, or from an integer program that is tightened by the same prices.
//! Where bound and deployment do not meet, a tree of splits tries to close the gap.

mod branch;
mod cover;
mod expand;
mod facts;
mod pack;
mod price;
mod program;

use slicewise_core::catalog::Catalog;
use slicewise_core::serving::{Deployment, Served, Serving, ServingMethod};
use slicewise_core::verify;

use self::branch::{Tree, empty_pool, leaf};
use self::expand::expand;
use self::facts::{BySize, Facts};
use self::pack::{pack, trim};
use self::price::{Pricer, Ranges};
use self::program::Solution;
use crate::budget::Backend;
use crate::error::PlanError;

/// Limits on the work of [`serve`]. All are counts, so that the same input gives the same
/// answer everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServeBudget {
    /// Branch-and-bound nodes of the integer program.
    pub nodes: u64,
    /// Rounds of finding prices.
    pub rounds: u32,
    /// Steps of each exact search for cheapest segments.
    pub work: u64,
    /// Splits of the tree that proves a bound.
    pub splits: u64,
}

impl Default for ServeBudget {
    fn default() -> Self {
        Self { nodes: 500, rounds: 100, work: 50_000, splits: 400 }
    }
}

/// Serves the targets on the fewest GPUs that are found, with a bound that is proved.
///
/// # Errors
/// [`PlanError::Input`] for a request that is not well formed, with the path of the field.
/// A target that nothing can serve is no error: see [`Served::Refused`].
pub fn serve(catalog: &Catalog, request: &Serving) -> Result<Served, PlanError> {
    serve_with(catalog, request, ServeBudget::default(), Backend::default())
}

/// [`serve`] within limits, with a chosen back end.
///
/// # Errors
/// See [`serve`].
pub fn serve_with(
    catalog: &Catalog,
    request: &Serving,
    budget: ServeBudget,
    backend: Backend,
) -> Result<Served, PlanError> {
    let facts = Facts::read(catalog, request)?;
    let refused = facts.refused(request);
    if !refused.is_empty() {
        verify::serving_refusal(catalog, request, &refused).map_err(not_verified)?;
        return Ok(Served::Refused(refused));
    }
    let mut deployment = solve(&facts, budget, backend);
    // What the checker proves counts: its search for cheapest segments has its own limit.
    let proved = verify::serving_bound(catalog, request, &deployment.certificate).map_err(not_verified)?;
    deployment.bound = deployment.bound.min(proved);
    deployment.gap = deployment.gpus.saturating_sub(deployment.bound);
    verify::serving(catalog, request, &deployment).map_err(not_verified)?;
    deployment.verified = true;
    Ok(Served::Deployment(deployment))
}

fn not_verified(violation: verify::Violation) -> PlanError {
    PlanError::NotVerified(violation.to_string())
}

fn solve(facts: &Facts<'_>, budget: ServeBudget, backend: Backend) -> Deployment {
    let pricer = Pricer { facts, budget, backend };
    let mut pool = empty_pool(facts);
    let everything = Ranges::default();
    let root = pricer.price(&everything, &mut pool, u64::MAX);
    let mut method = ServingMethod::Greedy;
    let mut best = by_hand(&pricer, &root.prices);
    let mut certificate = leaf(facts, &root.prices);
    let mut bound = root.bound;
    if best.count() > bound
        && let Some(found) = pricer.integer(bound, std::slice::from_ref(&root.prices), &best)
        && found.count() < best.count()
    {
        (best, method) = (found, ServingMethod::Program);
    }
    let mut splits = budget.splits;
    while best.count() > bound && splits > 0 {
        let mut tree = Tree::new(&pricer, &mut pool, best, splits);
        let (proof, proved) = tree.grow(&everything, bound + 1, 0);
        if tree.improved {
            method = ServingMethod::Branching;
        }
        (best, splits) = (tree.best, tree.splits);
        if proved <= bound {
            break;
        }
        (certificate, bound) = (proof, proved);
    }
    trim(facts, &mut best);
    let deployment = expand(facts, &best);
    let gpus = u64::try_from(deployment.len()).unwrap_or(u64::MAX);
    let bound = bound.min(gpus);
    Deployment {
        gpu: facts.gpu.to_owned(),
        gpus,
        bound,
        gap: gpus - bound,
        verified: false,
        budget_exhausted: gpus > bound,
        method,
        deployment,
        certificate,
    }
}

/// A solution that always is there: for every target its cheapest segments, or else those
/// of its best size alone.
fn by_hand(pricer: &Pricer<'_>, prices: &BySize<u64>) -> Solution {
    let facts = pricer.facts;
    let segments = facts.jobs.iter().map(|(id, job)| {
        let cover = pricer.cover(id, &Ranges::default(), prices).and_then(|cover| cover.counts);
        cover.unwrap_or_else(|| {
            let fastest = facts.sizes.ids().max_by_key(|s| job.throughput(*s));
            let count = |size| {
                let needed = job.target.rate_milli.div_ceil(job.throughput(size).max(1));
                if Some(size) == fastest { needed } else { 0 }
            };
            facts.sizes.ids().map(count).collect()
        })
    });
    pack(facts, segments.collect(), prices)
}
