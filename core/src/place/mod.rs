//! Deciding one request at a time.

mod best;
mod check;
mod direct;
mod explain;
mod gang;
mod gates;
mod modes;
mod moves;
mod policy;
mod power;
mod rules;
mod seats;
mod sets;
mod steps;
mod view;
mod worth;

pub use explain::explain;
pub use policy::{DeviceMix, Key, Measures, MixEntry, Policy, Surroundings, TERMS_MAX, Term};
pub use rules::{NodeRules, NodeUse};
pub use seats::Search;
pub use view::{Piece, Seat, Unmade, Unseat, View, switched};
pub use worth::Worth;

use alloc::vec::Vec;

use crate::decision::{Decision, ModeChange, Proof, Reason, Step, Verdict};
use crate::error::InputError;
use crate::fleet::Lease;
use crate::fleet::Placement;
use crate::ledger::{Ledger, PartRecord, Switched};
use crate::reason::Code;
use crate::workload::{Resolver, Workload};
use gang::Outcome;
use steps::Shift;

/// How much work a call may do. Work is counted in places looked at, never in time, so
/// that the same call gives the same answer everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Places looked at.
    pub work: u64,
    /// Most moves of others that one request may cause.
    pub moves: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { work: 2_000_000, moves: 4 }
    }
}

/// Decides a request on the ledger's present version; changes nothing.
///
/// # Errors
/// A request that is not well formed: see [`Resolver::resolve`].
pub fn decide(ledger: &Ledger, workload: &Workload, budget: Budget) -> Result<Decision, InputError> {
    let resolved = Resolver::new(ledger).resolve(workload)?;
    let search = Search::new(ledger, workload, &resolved);
    let mut view = View::new(ledger);
    let mut work = 0;
    let outcome = gang::seat_all(&search, &mut view, budget.work, &mut work);
    Ok(match outcome {
        Outcome::Seated(seats) => admitted(ledger, workload, &[], &seats),
        Outcome::Exhausted => undecided(ledger, workload, Code::BudgetExhausted, work),
        Outcome::Impossible(proof) => {
            let may_move = workload.allow_moves || ledger.policy().allow_moves;
            let limit = if may_move { budget.moves } else { 0 };
            match moves::make_room(&search, &view, limit, budget.work, &mut work) {
                (Some(room), _) => admitted(ledger, workload, &room.shifts, &room.seats),
                (None, complete) if may_move && !complete => undecided(ledger, workload, Code::BudgetExhausted, work),
                (None, _) => refused(&search, &view, proof),
            }
        }
    })
}

/// What the host has to do so that these leases, which the ledger does not have, come true
/// after these changes of mode.
///
/// # Errors
/// A placement or change of mode that names what is not there.
pub fn steps_for(ledger: &Ledger, leases: &[Lease], changes: &[ModeChange]) -> Result<Vec<Step>, InputError> {
    let switched = ledger.read_changes(changes)?;
    let mut admissions: Vec<(&str, Vec<Seat>)> = Vec::new();
    for (i, lease) in leases.iter().enumerate() {
        let own = seats(ledger, &lease.placements, &switched).map_err(|e| e.within(&alloc::format!("leases[{i}]")))?;
        admissions.push((&lease.name, own));
    }
    let borrowed: Vec<(&str, &[Seat])> = admissions.iter().map(|(name, seats)| (*name, seats.as_slice())).collect();
    Ok(steps::steps(ledger, &[], &borrowed))
}

fn admitted(ledger: &Ledger, workload: &Workload, shifts: &[Shift], seats: &[Seat]) -> Decision {
    if !check::holds(ledger, &NodeRules::of(workload), shifts, seats) {
        return undecided(ledger, workload, Code::VerificationFailed, 1);
    }
    let switched = switched(ledger, seats.iter().flat_map(|seat| &seat.takes));
    Decision {
        proved: true,
        proof: Some(Proof::Verified),
        placements: placements(ledger, workload, seats),
        mode_changes: ledger.changes(&switched),
        steps: steps::steps(ledger, shifts, &[(&workload.name, seats)]),
        moves: steps::moves(ledger, shifts),
        ..blank(ledger, workload, Verdict::Admit)
    }
}

/// Reads the seats of members from their placements on GPUs after changes of mode.
///
/// # Errors
/// A placement that names what is not there.
pub fn seats(ledger: &Ledger, placements: &[Placement], switched: &Switched) -> Result<Vec<Seat>, InputError> {
    let mut seats: Vec<Seat> = Vec::new();
    let mut last = None;
    for (i, placement) in placements.iter().enumerate() {
        let part = ledger.part_after(placement, switched);
        let part = part.map_err(|e| e.within(&alloc::format!("placements[{i}]")))?;
        let piece = part.on.map(|(gpu, take)| Piece { gpu, spec: ledger.spec_after(gpu, switched), take });
        match seats.last_mut().filter(|_| last == Some(part.member)) {
            Some(seat) => seat.takes.extend(piece),
            None => {
                let takes = piece.into_iter().collect();
                seats.push(Seat { alternative: part.alternative, node: part.node, takes });
            }
        }
        last = Some(part.member);
    }
    Ok(seats)
}

/// Seats of members as documents say them.
pub fn placements(ledger: &Ledger, workload: &Workload, seats: &[Seat]) -> Vec<Placement> {
    let mut placements = Vec::new();
    for (member, seat) in seats.iter().enumerate() {
        let (member, alternative) = (member as u32, seat.alternative);
        let mps_priority = workload.mps_priority(alternative);
        let part = |on| PartRecord { member, alternative, mps_priority, node: seat.node, on };
        if seat.takes.is_empty() {
            placements.push(ledger.placement(&part(None)));
        }
        let placed = |piece: &Piece| ledger.placement_as(&part(Some((piece.gpu, piece.take))), piece.spec);
        placements.extend(seat.takes.iter().map(placed));
    }
    placements
}

fn blank(ledger: &Ledger, workload: &Workload, verdict: Verdict) -> Decision {
    Decision {
        workload: workload.name.clone(),
        version: ledger.version(),
        verdict,
        proved: false,
        proof: None,
        reasons: Vec::new(),
        placements: Vec::new(),
        steps: Vec::new(),
        moves: Vec::new(),
        mode_changes: Vec::new(),
    }
}

fn refused(search: &Search<'_>, view: &View<'_>, proof: Proof) -> Decision {
    let verdict = if search.workload.queue { Verdict::Wait } else { Verdict::Reject };
    let reasons = gates::reasons(search, view);
    Decision { proved: true, proof: Some(proof), reasons, ..blank(view.ledger, search.workload, verdict) }
}

/// No answer: `count` says how much work was done, or how many plans the checker refused.
fn undecided(ledger: &Ledger, workload: &Workload, code: Code, count: u64) -> Decision {
    let reason = Reason {
        code,
        number: code.number(),
        count,
        needed: None,
        largest_free: None,
        total_free: None,
        blockers: Vec::new(),
        subject: None,
    };
    Decision { reasons: Vec::from([reason]), ..blank(ledger, workload, Verdict::Undecided) }
}
