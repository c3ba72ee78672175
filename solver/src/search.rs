//! Neighbourhood search: free a few nodes of what the plan put there, and plan those
//! again exactly, together with some of the refused. Kept when it is no worse.

use std::collections::BTreeSet;

use slicewise_core::ids::{Id, NodeId};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::Seat;
use slicewise_core::plan::Objective;
use slicewise_core::workload::Workload;

use crate::budget::{Backend, PlanBudget};
use crate::demand::Batch;
use crate::desk::Desk;
use crate::expand::Seats;
use crate::greedy::{self, POLICIES};
use crate::member_place::{self, Frame, Task};
use crate::report::{Rank, Score};

/// Trials per round.
const TRIALS_PER_ROUND: usize = 32;

/// One trial in this many is exact: it costs as much as hundreds of the others, which
/// serve requests one by one.
const EXACT_EVERY: usize = 96;

/// Part of the branch-and-bound nodes that one exact trial may use.
const EXACT_PART: u64 = 40;

/// GPUs that one neighbourhood has at most, if its first node does not have more.
const GPUS_MAX: usize = 16;

/// Refused requests that are considered with a neighbourhood.
const REFUSED_MAX: usize = 24;

/// Members of one request that a neighbourhood considers.
const MEMBERS_MAX: u32 = 16;

/// What the search works on.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// The state before the batch.
    pub ledger: &'a Ledger,
    /// What is asked.
    pub batch: &'a Batch,
    /// The requests.
    pub workloads: &'a [Workload],
    /// What for.
    pub objective: Objective,
    /// Limits.
    pub budget: PlanBudget,
    /// Who solves.
    pub backend: Backend,
}

/// Improves seats; `None` if nothing better was found.
pub fn improve(ground: Ground<'_>, from: &Seats) -> Option<Seats> {
    let (_, terms) = POLICIES.first()?;
    let mut desk = Desk::new(ground.ledger, ground.batch, ground.workloads, terms)?;
    for (request, seats) in from.iter().enumerate() {
        if !seats.is_empty() && !desk.commit(request, seats.clone()) {
            return None;
        }
    }
    let rank = |seats: &Seats| Score::of(ground.ledger, ground.batch, seats).rank(ground.objective);
    let start = rank(from);
    let mut search = Descent { ground, desk, order: greedy::order(ground.batch, ground.objective), best: start };
    for trial in 0..ground.budget.rounds as usize * TRIALS_PER_ROUND {
        search.trial(trial, trial % EXACT_EVERY == EXACT_EVERY - 1)?;
        if search.desk.work > ground.budget.work {
            break;
        }
    }
    (search.best > start).then(|| search.desk.seats().clone())
}

/// A walk from plan to plan that never gets worse.
struct Descent<'a> {
    ground: Ground<'a>,
    desk: Desk<'a>,
    order: Vec<usize>,
    best: Rank,
}

impl Descent<'_> {
    /// Frees a neighbourhood and plans it again. `None` if the desk is in disorder, which
    /// would be a fault of this crate.
    fn trial(&mut self, trial: usize, exactly: bool) -> Option<()> {
        let ground = self.ground;
        let gpus = if exactly { GPUS_MAX / 2 } else { GPUS_MAX };
        let near = neighbourhood(ground.ledger, trial, gpus);
        let freed = freed(&self.desk, &near);
        let refused = refused(&self.desk, &self.order, trial);
        let all = freed.iter().chain(&refused);
        let before: Vec<(usize, Vec<Seat>)> = all.map(|r| (*r, self.desk.withdraw(*r))).collect();
        let exact = if exactly { replan(ground, &self.desk, &before, &near) } else { None };
        let placed = exact.is_some_and(|seats| {
            seats.into_iter().all(|(request, seats)| seats.is_empty() || self.desk.commit(request, seats))
        });
        if !placed {
            self.withdraw(&before);
        }
        self.again(&before, freed.len(), trial);
        let now = Score::of(ground.ledger, ground.batch, self.desk.seats()).rank(ground.objective);
        if now >= self.best {
            self.best = now;
            return Some(());
        }
        self.withdraw(&before);
        for (request, seats) in before {
            if !seats.is_empty() && !self.desk.commit(request, seats) {
                return None;
            }
        }
        Some(())
    }

    fn withdraw(&mut self, requests: &[(usize, Vec<Seat>)]) {
        for (request, _) in requests {
            self.desk.withdraw(*request);
        }
    }

    /// Serves requests one by one: the refused first, or by worth, or with one of the
    /// refused in front.
    fn again(&mut self, requests: &[(usize, Vec<Seat>)], freed: usize, trial: usize) {
        let mut order: Vec<usize> = requests.iter().map(|(request, _)| *request).collect();
        let refused = order.len() - freed;
        let favourite = freed + trial / 3 % refused.max(1);
        match trial % 3 {
            0 => order.rotate_left(freed),
            1 => {
                let place = |request: &usize| self.order.iter().position(|r| r == request);
                order.sort_by_cached_key(place);
            }
            _ if favourite < order.len() => order.swap(0, favourite),
            _ => {}
        }
        for request in order {
            self.desk.admit(request);
        }
    }
}

/// The nodes of a round: neighbours in the fleet, or far apart, by turns.
fn neighbourhood(ledger: &Ledger, trial: usize, gpus_max: usize) -> BTreeSet<NodeId> {
    let nodes = ledger.nodes().len();
    let stride = if trial.is_multiple_of(2) { 1 } else { nodes / 3 + 1 };
    let (mut near, mut gpus) = (BTreeSet::new(), 0);
    for step in 0..nodes {
        let node = NodeId::from_index((trial * 5 + step * stride) % nodes.max(1));
        let own = ledger.nodes()[node].gpus().len();
        if !near.is_empty() && (gpus + own > gpus_max || near.len() >= gpus_max) {
            break;
        }
        if near.insert(node) {
            gpus += own;
        }
    }
    near
}

/// Requests of which all seats are on these nodes.
fn freed(desk: &Desk<'_>, near: &BTreeSet<NodeId>) -> Vec<usize> {
    let is_near = |seats: &Vec<Seat>| !seats.is_empty() && seats.iter().all(|s| near.contains(&s.node));
    desk.seats().iter().enumerate().filter(|(_, seats)| is_near(seats)).map(|(request, _)| request).collect()
}

/// Some of the requests that hold nothing.
fn refused(desk: &Desk<'_>, order: &[usize], trial: usize) -> Vec<usize> {
    let all: Vec<usize> = order.iter().filter(|r| desk.seats_of(**r).is_empty()).copied().collect();
    let start = if all.len() > REFUSED_MAX { trial * REFUSED_MAX / 2 % all.len() } else { 0 };
    all.iter().cycle().skip(start).take(REFUSED_MAX.min(all.len())).copied().collect()
}

fn replan(
    ground: Ground<'_>,
    desk: &Desk<'_>,
    before: &[(usize, Vec<Seat>)],
    near: &BTreeSet<NodeId>,
) -> Option<Vec<(usize, Vec<Seat>)>> {
    let task = |(request, seats): &(usize, Vec<Seat>)| {
        let workload = ground.workloads.get(*request)?;
        let most = if workload.gang { workload.count } else { MEMBERS_MAX.max(seats.len() as u32) };
        Some(Task { request: *request, members: workload.count.min(most) })
    };
    let tasks: Vec<Task> = before.iter().filter_map(task).collect();
    let frame = Frame {
        ledger: desk.ledger(),
        batch: ground.batch,
        workloads: ground.workloads,
        objective: ground.objective,
        nodes: ground.budget.nodes / EXACT_PART,
        backend: ground.backend,
    };
    member_place::solve(frame, &tasks, near, before)
}
