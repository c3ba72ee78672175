//! One error type for the facade; each kind keeps its stable number.

use slicewise_core::error::InputError;
use slicewise_core::ledger::CommitError;
use slicewise_core::reason::Code;
use slicewise_solver::PlanError;
use thiserror::Error;

/// What can go wrong in a call. A rejection is not among them: it is a
/// [`Decision`](crate::Decision).
#[derive(Debug, Error)]
pub enum Error {
    /// A document or request is not well formed.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A change was not made.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A batch could not be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl Error {
    /// The stable number of this error in the table of codes.
    pub fn number(&self) -> u16 {
        match self {
            Self::Input(e) => e.fault().number(),
            Self::Commit(e) => e.number(),
            Self::Plan(PlanError::Input(e)) => e.fault().number(),
            Self::Plan(_) => Code::VerificationFailed.number(),
        }
    }
}
