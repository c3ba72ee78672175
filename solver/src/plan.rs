//! The way of a plan: read, bound, pack, spread, check, and keep the best.

use std::cmp::Reverse;

use slicewise_core::fleet::State;
use slicewise_core::ids::IdVec;
use slicewise_core::ledger::Ledger;
use slicewise_core::plan::{BoundOf, Method, Objective, Plan};
use slicewise_core::verify::{self, Checked};
use slicewise_core::workload::Workload;

use crate::bound::tightest;
use crate::budget::{Backend, PlanBudget, Progress};
use crate::demand::Batch;
use crate::error::PlanError;
use crate::expand::{Seats, expand};
use crate::greedy;
use crate::ids::DemandId;
use crate::master::{Goal, Master, slot_prices};
use crate::natural;
use crate::report::{self, Bounds, Score};
use crate::room::Rooms;
use crate::round::{Packing, solve};
use crate::search::{self, Ground};

/// GPUs and members up to which the natural program is worth a try.
const SMALL_GPUS: usize = 12;
/// See [`SMALL_GPUS`].
const SMALL_MEMBERS: u64 = 40;

/// Requests up to which a neighbourhood search gets anywhere within its rounds.
const SEARCH_REQUESTS_MAX: usize = 5_000;

/// Members up to which a plan by patterns that misses its bound is compared with others.
const PLAIN_MEMBERS_MAX: u64 = 2_000;

/// Plans a batch on the ledger's present version; changes nothing.
///
/// # Errors
/// [`PlanError::Input`] for a request that is not well formed.
pub fn plan(
    ledger: &Ledger,
    workloads: &[Workload],
    objective: Objective,
    budget: PlanBudget,
) -> Result<Plan, PlanError> {
    plan_with(ledger, workloads, objective, budget, Backend::default(), &mut |_| {})
}

/// [`plan`] with a chosen back end, telling how it gets on.
///
/// # Errors
/// See [`plan`].
pub fn plan_with(
    ledger: &Ledger,
    workloads: &[Workload],
    objective: Objective,
    budget: PlanBudget,
    backend: Backend,
    progress: &mut dyn FnMut(Progress),
) -> Result<Plan, PlanError> {
    let batch = Batch::read(ledger, workloads)?;
    let rooms = Rooms::of(ledger, &batch, budget.rows);
    progress(Progress::Read { demands: batch.demands.len(), rooms: rooms.rooms.len() });
    let mut master = Master::new(&batch, &rooms, budget, backend);
    let mut bounds = Bounds::default();
    let packing = pack(&mut master, objective, &mut bounds, progress);
    let ground = Ground { ledger, batch: &batch, workloads, objective, budget, backend };
    let mut found = Found { ground, bounds: &bounds, plans: Vec::new(), exhausted: false };
    if batch.is_plain()
        && let Some(seats) = packing.and_then(|p| expand(ledger, &master, &p, workloads))
    {
        found.add(Method::ClassPattern, seats, progress);
    }
    if !found.is_optimal() {
        found.by_other_ways(progress);
    }
    found.verified()
}

/// The plans of one batch by several methods.
struct Found<'a> {
    ground: Ground<'a>,
    bounds: &'a Bounds,
    plans: Vec<(Score, Method, Seats)>,
    exhausted: bool,
}

impl Found<'_> {
    fn add(&mut self, method: Method, seats: Seats, progress: &mut dyn FnMut(Progress)) {
        let score = Score::of(self.ground.ledger, self.ground.batch, &seats);
        progress(Progress::Found { value: score.value, gpus_opened: score.gpus_opened });
        self.plans.push((score, method, seats));
        // Best first; of equals, the one that was found first.
        let objective = self.ground.objective;
        self.plans.sort_by_key(|(score, ..)| Reverse(score.rank(objective)));
    }

    /// Whether the best plan meets its bound.
    fn is_optimal(&self) -> bool {
        self.plans.first().is_some_and(|(score, ..)| {
            report::is_optimal(self.bounds, self.ground.batch, self.ground.objective, *score)
        })
    }

    /// Fallbacks, exact programs on small inputs, and search from the best of them.
    fn by_other_ways(&mut self, progress: &mut dyn FnMut(Progress)) {
        let Ground { ledger, batch, workloads, objective, budget, backend } = self.ground;
        if batch.is_plain() && !self.plans.is_empty() && batch.members() > PLAIN_MEMBERS_MAX {
            return;
        }
        if !batch.is_plain()
            && let Some(seats) = rest_by_patterns(self.ground)
        {
            self.add(Method::ClassPattern, seats, progress);
        }
        let order = greedy::order(batch, objective);
        for (method, terms) in greedy::POLICIES {
            if let Some((desk, done)) = greedy::pack(ledger, batch, workloads, terms, &order, budget.work / 3) {
                self.exhausted |= !done;
                self.add(method, desk.seats().clone(), progress);
            }
        }
        let is_small = ledger.gpus().len() <= SMALL_GPUS && batch.members() <= SMALL_MEMBERS;
        if is_small
            && !self.is_optimal()
            && let Some(seats) = natural::seats(ledger, batch, workloads, objective, budget.nodes, backend)
        {
            self.add(Method::MemberPlace, seats, progress);
        }
        // Patterns and members that are alike leave a neighbourhood nothing to find.
        let has_patterns = batch.is_plain() && self.plans.iter().any(|(_, m, _)| *m == Method::ClassPattern);
        if !self.is_optimal()
            && !has_patterns
            && batch.requests.len() <= SEARCH_REQUESTS_MAX
            && let Some((_, _, seats)) = self.plans.first()
            && let Some(better) = search::improve(self.ground, seats)
        {
            self.add(Method::NeighbourhoodSearch, better, progress);
        }
    }

    /// The best plan that the checker accepts.
    fn verified(self) -> Result<Plan, PlanError> {
        let Ground { ledger, batch, workloads, objective, .. } = self.ground;
        let nothing = (Score::default(), Method::FirstFitDecreasing, workloads.iter().map(|_| Vec::new()).collect());
        let state = ledger.snapshot();
        let mut last = None;
        for (_, method, seats) in self.plans.into_iter().chain([nothing]) {
            let mut plan = report::plan(ledger, workloads, batch, objective, method, &seats, self.bounds);
            plan.budget_exhausted = self.exhausted;
            match check(ledger, &state, workloads, &plan) {
                Ok(verified) => {
                    plan.verified = verified;
                    return Ok(plan);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| PlanError::NotVerified(String::new())))
    }
}

/// What patterns cannot express goes first, by the online engine; the rest by patterns on
/// what that leaves.
fn rest_by_patterns(ground: Ground<'_>) -> Option<Seats> {
    let Ground { ledger, batch, workloads, objective, budget, backend } = ground;
    let is_plain = |request: &usize| batch.requests.get(*request).is_some_and(|r| r.plain);
    let (rest, first): (Vec<usize>, Vec<usize>) = greedy::order(batch, objective).into_iter().partition(is_plain);
    if rest.is_empty() {
        return None;
    }
    let (_, terms) = greedy::POLICIES.first()?;
    let (desk, _) = greedy::pack(ledger, batch, workloads, terms, &first, budget.work / 3)?;
    let requests: Vec<Workload> = rest.iter().filter_map(|r| workloads.get(*r).cloned()).collect();
    let part = Batch::read(desk.ledger(), &requests).ok().filter(Batch::is_plain)?;
    let rooms = Rooms::of(desk.ledger(), &part, budget.rows);
    let mut master = Master::new(&part, &rooms, budget, backend);
    let packing = pack(&mut master, objective, &mut Bounds::default(), &mut |_| {})?;
    let found = expand(desk.ledger(), &master, &packing, &requests)?;
    let mut seats = desk.seats().clone();
    for (request, own) in rest.into_iter().zip(found) {
        if let Some(entry) = seats.get_mut(request) {
            *entry = own;
        }
    }
    Some(seats)
}

/// The best packing by patterns, and the bounds.
fn pack(
    master: &mut Master<'_>,
    objective: Objective,
    bounds: &mut Bounds,
    progress: &mut dyn FnMut(Progress),
) -> Option<Packing> {
    let (batch, rooms) = (master.batch, master.rooms);
    let leading: IdVec<DemandId, u64> = batch
        .demands
        .iter()
        .map(|(_, d)| match objective {
            Objective::MostValue => d.value,
            Objective::FewestGpus => 1,
        })
        .collect();
    let all: IdVec<DemandId, u64> = batch.demands.iter().map(|(_, d)| d.members).collect();
    // What everybody wants first: that all get in, on the fewest GPUs.
    let cover = Goal::Gpus(all.clone());
    let prices = master.price(&cover, progress)?;
    let priced = tightest(batch, rooms, BoundOf::Gpus, &all, &prices);
    let target = priced.bound;
    if rooms.complete {
        bounds.gpus = Some(priced);
    }
    // More than there are: then not all get in.
    let unused: u64 = rooms.rooms.iter().filter(|(_, r)| r.unused).map(|(_, r)| r.gpus.len() as u64).sum();
    let may_cover = !rooms.complete || target <= unused;
    if may_cover && let Some(packing) = solve(master, &cover, &slot_prices(batch, &prices), target) {
        return Some(packing);
    }
    let goal = Goal::Value(leading.clone());
    let prices = master.price(&goal, progress)?;
    let priced = tightest(batch, rooms, BoundOf::Value, &leading, &prices);
    progress(Progress::Bound { bound: priced.bound });
    let target = priced.bound;
    let packing = solve(master, &goal, &slot_prices(batch, &prices), target);
    if rooms.complete {
        bounds.leading = Some(priced);
    }
    let packing = packing?;
    Some(fewer_gpus(master, packing, progress))
}

/// The same members on fewer GPUs, where that can be.
fn fewer_gpus(master: &mut Master<'_>, packing: Packing, progress: &mut dyn FnMut(Progress)) -> Packing {
    if packing.opened == 0 {
        return packing;
    }
    let goal = Goal::Gpus(packing.admitted.clone());
    let Some(prices) = master.price(&goal, progress) else { return packing };
    let priced = tightest(master.batch, master.rooms, BoundOf::Gpus, &packing.admitted, &prices);
    if priced.bound >= packing.opened {
        return packing;
    }
    match solve(master, &goal, &slot_prices(master.batch, &prices), priced.bound) {
        Some(other) if other.opened < packing.opened => other,
        _ => packing,
    }
}

/// Asks the independent checker; whether everything that the plan claims is proved.
fn check(ledger: &Ledger, state: &State, workloads: &[Workload], plan: &Plan) -> Result<bool, PlanError> {
    match verify::plan(ledger.catalog(), state, workloads, plan) {
        Ok(checked) => Ok(checked == Checked::Full),
        Err(violation) => Err(PlanError::NotVerified(violation.to_string())),
    }
}
