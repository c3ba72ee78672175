//! A copy of the ledger to try seats on.

use slicewise_core::decision::{Decision, Verdict};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::{Budget, Policy, Search, Seat, Term, View, decide, placements, seats, switched};
use slicewise_core::workload::{Resolved, Workload};

use crate::demand::Batch;

/// Members that are seated before they are committed: the online search gets slower with
/// what is not yet committed.
const CHUNK: usize = 16;

/// Work that one gang may cost.
const GANG_WORK: u64 = 50_000;

/// A ledger with seats of the batch on it.
pub struct Desk<'a> {
    batch: &'a Batch,
    workloads: &'a [Workload],
    ledger: Ledger,
    /// By request, the names under which its seats are committed.
    names: Vec<Vec<String>>,
    /// By request, its seats.
    seats: Vec<Vec<Seat>>,
    /// Places looked at.
    pub work: u64,
}

impl<'a> Desk<'a> {
    /// The ledger under another policy. `None` if its own document does not read back.
    pub fn new(ledger: &Ledger, batch: &'a Batch, workloads: &'a [Workload], terms: &[Term]) -> Option<Self> {
        let policy = Policy::of(terms);
        let ledger = Ledger::new(ledger.catalog().clone(), policy, &ledger.snapshot()).ok()?;
        let none = || workloads.iter().map(|_| Vec::new()).collect();
        Some(Self {
            batch,
            workloads,
            ledger,
            names: none(),
            seats: workloads.iter().map(|_| Vec::new()).collect(),
            work: 0,
        })
    }
    /// The ledger as it is now.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
    /// All seats.
    pub fn seats(&self) -> &Vec<Vec<Seat>> {
        &self.seats
    }
    /// Seats of one request.
    pub fn seats_of(&self, request: usize) -> &[Seat] {
        self.seats.get(request).map_or(&[], Vec::as_slice)
    }

    /// Seats what is missing of a request, as far as it goes; how many it got.
    pub fn admit(&mut self, request: usize) -> usize {
        let Some(workload) = self.workloads.get(request) else { return 0 };
        let missing = (workload.count as usize).saturating_sub(self.seats_of(request).len());
        if missing == 0 {
            return 0;
        }
        let workload = Workload { allow_moves: false, queue: false, ..workload.clone() };
        if workload.gang && workload.count > 1 {
            return self.admit_gang(request, &workload);
        }
        let batch = self.batch;
        let Some(resolved) = batch.resolved(request) else { return 0 };
        // Members that look at each other, or whose labels others look at, stay together.
        let together = workload.members.is_some() || !workload.labels.is_empty() || !workload.anti_affinity.is_empty();
        if together && !self.seats_of(request).is_empty() {
            self.withdraw(request);
        }
        let mut gained = 0;
        loop {
            let missing = (workload.count as usize).saturating_sub(self.seats_of(request).len());
            let chunk = if together { missing } else { missing.min(CHUNK) };
            let seats = self.best_seats(&workload, resolved, chunk);
            let found = seats.len();
            if found == 0 || !self.commit(request, seats) {
                return gained;
            }
            gained += found;
            if found < chunk || together {
                return gained;
            }
        }
    }

    fn best_seats(&mut self, workload: &Workload, resolved: &Resolved, members: usize) -> Vec<Seat> {
        let search = Search::new(&self.ledger, workload, resolved);
        let mut view = View::new(&self.ledger);
        let mut seats: Vec<Seat> = Vec::new();
        while seats.len() < members {
            let mut ranks = 0..resolved.alternatives.len();
            let seat = ranks.find_map(|rank| search.best(&view, rank, &seats, &mut self.work));
            let Some(seat) = seat else { break };
            if view.seat(&seat, &search.rules).is_none() {
                break;
            }
            seats.push(seat);
        }
        seats
    }

    fn admit_gang(&mut self, request: usize, workload: &Workload) -> usize {
        self.work += 1;
        let budget = Budget { work: GANG_WORK, ..Budget::default() };
        let Ok(decision) = decide(&self.ledger, workload, budget) else { return 0 };
        if decision.verdict != Verdict::Admit {
            return 0;
        }
        let changes = self.ledger.read_changes(&decision.mode_changes);
        let seats = changes.and_then(|changes| seats(&self.ledger, &decision.placements, &changes));
        let Ok(seats) = seats else { return 0 };
        let found = seats.len();
        if self.commit(request, seats) { found } else { 0 }
    }

    /// Commits further seats of a request; false, and nothing changed, if they do not fit.
    pub fn commit(&mut self, request: usize, seats: Vec<Seat>) -> bool {
        let (Some(workload), Some(names), Some(held)) =
            (self.workloads.get(request), self.names.get_mut(request), self.seats.get_mut(request))
        else {
            return false;
        };
        // No request has such a name with a control character by chance.
        let name =
            if names.is_empty() { workload.name.clone() } else { format!("{}\u{1}{}", workload.name, names.len()) };
        let part = Workload { name: name.clone(), allow_moves: false, ..workload.clone() };
        let decision = Decision {
            workload: name.clone(),
            version: self.ledger.version(),
            verdict: Verdict::Admit,
            proved: false,
            proof: None,
            reasons: Vec::new(),
            placements: placements(&self.ledger, workload, &seats),
            steps: Vec::new(),
            moves: Vec::new(),
            // A GPU may have been changed by seats that were withdrawn: the mode stays.
            mode_changes: self.ledger.changes(&switched(&self.ledger, seats.iter().flat_map(|s| &s.takes))),
        };
        if self.ledger.commit(&part, &decision).is_err() {
            return false;
        }
        names.push(name);
        held.extend(seats);
        true
    }

    /// Takes a request's seats back and returns them.
    pub fn withdraw(&mut self, request: usize) -> Vec<Seat> {
        for name in self.names.get_mut(request).map(std::mem::take).unwrap_or_default() {
            // It was committed here, under this name.
            let _ = self.ledger.release(&name);
        }
        self.seats.get_mut(request).map(std::mem::take).unwrap_or_default()
    }
}
