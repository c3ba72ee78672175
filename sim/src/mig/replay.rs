//! Arrivals and departures at their times.

use std::collections::BTreeSet;

use thiserror::Error;

use super::outcome::Outcome;
use super::stream::{Request, Stream, StreamError};
use crate::{Moment, Observer};

/// Why a replay ended early.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The stream does not fit the model.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The engine refused its input, or what it decided itself.
    #[error("at request {step}: {error}")]
    Engine {
        /// Position of the request.
        step: usize,
        /// What it said.
        error: slicewise::Error,
    },
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Placed, after so many leases were moved.
    Admitted {
        /// Leases moved.
        moves: u32,
    },
    /// Refused.
    Refused,
    /// The work budget ended before an answer; nothing is placed.
    Undecided,
}

/// Places requests and lets them go.
pub trait Placer {
    /// Decides about a request; `moves_left` leases may be moved for it.
    ///
    /// # Errors
    /// Whatever ends the replay.
    fn decide(&mut self, step: usize, request: &Request, moves_left: u64) -> Result<Admission, ReplayError>;

    /// Makes the admission that was decided last true.
    ///
    /// # Errors
    /// Whatever ends the replay.
    fn apply(&mut self, step: usize) -> Result<(), ReplayError>;

    /// Ends the lease of a request.
    ///
    /// # Errors
    /// Whatever ends the replay.
    fn release(&mut self, step: usize) -> Result<(), ReplayError>;
}

/// Replays a stream. The first `warm_up` requests fill the fleet and do not count. At any
/// time at most `moves_ppm` of the requests that came, in parts per million, were moved.
///
/// # Errors
/// A placer that fails.
pub fn replay(
    stream: &Stream,
    warm_up: usize,
    moves_ppm: u32,
    placer: &mut dyn Placer,
    observe: &mut Observer<'_>,
) -> Result<Outcome, ReplayError> {
    let mut outcome = Outcome::default();
    let mut ends: BTreeSet<(u64, usize)> = BTreeSet::new();
    for (step, request) in stream.requests.iter().enumerate() {
        while let Some(over) = ends.first().copied().filter(|(end, _)| *end <= request.arrival_milli) {
            placer.release(over.1)?;
            ends.remove(&over);
        }
        let allowed = (step as u64 + 1).saturating_mul(moves_ppm.into()) / 1_000_000;
        observe(Moment::Deciding, step);
        let admission = placer.decide(step, request, allowed.saturating_sub(outcome.moves))?;
        observe(Moment::Decided, step);
        if let Admission::Admitted { moves } = admission {
            placer.apply(step)?;
            outcome.moves += u64::from(moves);
            ends.insert((request.arrival_milli.saturating_add(request.lifetime_milli), step));
        }
        observe(Moment::Applied, step);
        if step >= warm_up {
            let admitted = u64::from(matches!(admission, Admission::Admitted { .. }));
            outcome.undecided += u64::from(admission == Admission::Undecided);
            outcome.requests += 1;
            outcome.accepted += admitted;
            outcome.slices += u64::from(request.slices);
            outcome.accepted_slices += u64::from(request.slices) * admitted;
        }
    }
    Ok(outcome)
}
