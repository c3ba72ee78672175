//! Slicewise decides who gets which part of which GPU, and proves it.
//!
//! ```
//! use slicewise::{Engine, Verdict, Workload};
//!
//! let state = slicewise::read_state("fleet.yaml", "gpus: [{model: a100-80gb, count: 1, mig: true}]")?;
//! let mut engine = Engine::new(&state)?;
//!
//! let request = Workload { name: "train".into(), count: 1, profile: Some("3g.40gb".into()), ..Workload::default() };
//! let decision = engine.decide(&request)?;
//! assert_eq!(decision.verdict, Verdict::Admit);
//! assert!(decision.proved);
//! engine.commit(&request, &decision)?;
//!
//! // A second 4g does not fit beside it everywhere; ask why, and what would help.
//! let request = Workload { name: "big".into(), count: 1, profile: Some("7g.80gb".into()), ..Workload::default() };
//! let refusal = engine.decide(&request)?;
//! assert_eq!(refusal.reasons[0].code.name(), "insufficient_slices");
//! assert!(!engine.explain(&request)?.remedies.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The engine is a state machine without clock, I/O or randomness: [`Engine::decide`]
//! reads a version and changes nothing, [`Engine::commit`] applies a decision if what it
//! relied on is unchanged. Everything that leaves it has passed the checker in
//! [`verify`], which shares no code with what it checks.

mod answer;
mod engine;
mod error;
mod serve;

pub use answer::{Answer, Answers, Explanations, PlanAnswer};
pub use engine::{Engine, EngineBuilder};
pub use error::Error;
pub use serve::serve;
pub use slicewise_core::catalog::{self, Catalog, Model, Profile};
pub use slicewise_core::decision::{
    Action, Decision, Explanation, ModeChange, Move, Proof, Reason, Remedy, Site, Step, Verdict,
};
pub use slicewise_core::error::{Fault, InputError};
pub use slicewise_core::fleet;
pub use slicewise_core::fleet::{Gpu, Lease, Node, Part, Placement, State};
pub use slicewise_core::ids;
pub use slicewise_core::ledger::{CommitError, Committed, Ledger};
pub use slicewise_core::perf;
pub use slicewise_core::place::{Budget, MixEntry, Policy, Term};
pub use slicewise_core::plan::{BoundOf, BoundSource, Certificate, Method, Objective, Plan};
pub use slicewise_core::reason::Code;
pub use slicewise_core::serving::{self, Deployment, Served, Serving};
pub use slicewise_core::space;
pub use slicewise_core::verify;
pub use slicewise_core::workload::{self, Ask, Workload};
pub use slicewise_formats as formats;
pub use slicewise_formats::{read_requests, read_state, read_timeshare, write_state};
pub use slicewise_solver::{Backend, PlanBudget, PlanError, Progress, ServeBudget, serve_with};

/// The README's example, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
