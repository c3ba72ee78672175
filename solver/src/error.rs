//! What can go wrong with a plan. Refusing members is not an error.

use slicewise_core::error::InputError;
use thiserror::Error;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A request is not well formed; the path begins with `requests[i]`.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The independent checker rejected every plan that was found: a bug of this crate.
    #[error("no plan passed the checker: {0}")]
    NotVerified(String),
}
