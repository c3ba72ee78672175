//! Batch planning: who gets what when many ask at once, with a bound that proves how
//! good the answer is.
//!
//! GPUs on which the same patterns fit are one *room*; the integer program has one
//! variable for every room and pattern. Its dual prices the parts of GPUs, and from those
//! prices, rounded to integers, a bound is recomputed by exact search: the solver's word
//! is never taken for it.

mod bound;
mod budget;
mod capacity;
mod demand;
mod desk;
mod error;
mod expand;
mod greedy;
mod ids;
mod lp;
mod master;
mod member_place;
pub mod natural;
mod plan;
mod report;
mod room;
mod round;
mod search;
mod serve;

pub use budget::{Backend, PlanBudget, Progress};
pub use error::PlanError;
pub use plan::{plan, plan_with};
pub use serve::{ServeBudget, serve, serve_with};
