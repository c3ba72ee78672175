//! The independent checker. It works on documents, in integers, and derives everything
//! again: it shares nothing with what it checks beyond the catalog and the document types.
//!
//! A check answers `Ok` or one typed [`Violation`]. What is proved only within a bound of
//! work says so: see [`Checked`].

mod ask;
mod axis;
mod bound;
mod dearest;
mod decision;
pub mod device;
mod image;
mod kind;
mod modes;
mod moves;
mod node;
mod plan;
mod power;
mod put;
mod refusal;
mod serve;
mod serving;
mod state;
mod steps;
pub mod timeshare;
mod worth;

use alloc::borrow::Cow;
use alloc::string::String;
use thiserror::Error;

use crate::catalog::Catalog;
use crate::fleet::State;

pub use bound::{Admitted, recompute_bound};
pub use decision::decision;
pub use plan::plan;
pub use serving::{serving, serving_bound, serving_refusal};
pub use state::state;
pub use worth::value_of;

/// A rule that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{at}: {text} ({rule})")]
pub struct Violation {
    /// Where: a path in the document that was checked.
    pub at: String,
    /// Which rule.
    pub rule: Rule,
    /// What is wrong, with names and numbers.
    pub text: String,
}

impl Violation {
    pub(crate) fn new(rule: Rule, at: impl Into<String>, text: impl Into<String>) -> Self {
        Self { at: at.into(), rule, text: text.into() }
    }
    /// The same violation seen from the document that holds this one under `prefix`.
    #[must_use]
    pub(crate) fn within(self, prefix: &str) -> Self {
        let at = if self.at.is_empty() { String::from(prefix) } else { alloc::format!("{prefix}.{}", self.at) };
        Self { at, ..self }
    }
}

/// How far a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Everything that the document claims was checked.
    Full,
    /// What was checked holds; a claim remains that is nobody's proof or that would take
    /// more work than the checker may do.
    Partial,
}

impl Checked {
    /// The weaker of two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self == Self::Full { other } else { self }
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The rules that the checker knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[$doc])* $variant,)*
        }

        impl Rule {
            /// The stable name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

rules! {
    /// The document says something that cannot be read.
    Document = "document",
    /// A name that must exist does not.
    Unknown = "unknown",
    /// A name or index is used twice.
    Duplicate = "duplicate",
    /// The version is not the state's.
    Version = "version",
    /// The device does not offer this in its mode.
    NotOffered = "not_offered",
    /// The profile has no such start.
    Start = "start",
    /// The size is not the profile's.
    Size = "size",
    /// Two things claim the same cells, GPU or share.
    Overlap = "overlap",
    /// More instances than the device or profile allows.
    MaxInstances = "max_instances",
    /// More compute slices than the device has.
    ComputeSlices = "compute_slices",
    /// More media engines than the device has.
    Engines = "engines",
    /// The driver refuses the profiles together.
    RefusedTogether = "refused_together",
    /// The driver is older than the profile needs.
    Driver = "driver",
    /// More of a divisible amount than there is.
    Amount = "amount",
    /// More node CPU or memory than there is.
    NodeResources = "node_resources",
    /// A node or rack draws more power than its cap.
    PowerCap = "power_cap",
    /// The node or GPU is cordoned.
    Cordoned = "cordoned",
    /// The GPU is not healthy.
    Health = "health",
    /// The node does not meet the requirements.
    NodeSelector = "node_selector",
    /// Tenants are kept apart less than the request accepts.
    Isolation = "isolation",
    /// The model is not allowed.
    Model = "model",
    /// Two leases that keep away from each other share a node.
    AntiAffinity = "anti_affinity",
    /// Members do not lie to each other as asked.
    Spread = "spread",
    /// The GPUs of a member are not joined as asked.
    Link = "link",
    /// The placements are not what the alternative asks.
    Alternative = "alternative",
    /// Members are missing, twice there, or on two nodes.
    Members = "members",
    /// A move that is not allowed.
    Move = "move",
    /// A change of mode that is not allowed.
    Mode = "mode",
    /// A step that is not legal where it stands.
    Step = "step",
    /// A step names the wrong leases as disturbed.
    Disturbs = "disturbs",
    /// The steps end elsewhere than the placements say.
    EndState = "end_state",
    /// An idle instance goes although it is to stay.
    KeepIdle = "keep_idle",
    /// A "no" although there is a place.
    Refusal = "refusal",
    /// A gang is admitted in part.
    Gang = "gang",
    /// A lease says other terms than its request.
    Terms = "terms",
    /// No such point was measured, or its processes are too many.
    Point = "point",
    /// A latency that is not below its limit.
    Latency = "latency",
    /// Segments that do not add up to the rate.
    Rate = "rate",
    /// A total is not the sum of what it counts.
    Total = "total",
    /// A bound is tighter than what proves it.
    Bound = "bound",
    /// The gap is not the distance to the bound.
    Gap = "gap",
    /// A setting is not one that may be chosen.
    Setting = "setting",
    /// A figure is not what its formula gives.
    Figure = "figure",
    /// A promise is not kept.
    Promise = "promise",
}

impl core::fmt::Display for Rule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// The catalog with the models that the state brings along.
fn catalog_of<'a>(catalog: &'a Catalog, state: &State) -> Result<Cow<'a, Catalog>, Violation> {
    if state.models.is_empty() && state.boards.is_empty() {
        return Ok(Cow::Borrowed(catalog));
    }
    let mut own = catalog.clone();
    for (i, model) in state.models.iter().enumerate() {
        own.add(model.clone()).map_err(|e| {
            Violation::new(Rule::Document, alloc::format!("models[{i}].{}", e.path()), alloc::format!("{}", e.fault()))
        })?;
    }
    for (i, board) in state.boards.iter().enumerate() {
        own.add_board(board.clone()).map_err(|e| {
            Violation::new(Rule::Document, alloc::format!("boards[{i}].{}", e.path()), alloc::format!("{}", e.fault()))
        })?;
    }
    Ok(Cow::Owned(own))
}
