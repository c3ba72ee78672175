//! One GPU shared in time: what each resident is guaranteed, what it measures, and which
//! scheduler keeps everyone's promise.
//!
//! * [`Timeshare`] is the document: residents, scheduler, slice.
//! * [`closed`] has the guarantees by formula ([`turns`], [`priority`]), [`simulate`](mod@simulate) measures the same
//!   figures event by event and knows none of the formulas.
//! * [`choose`](mod@choose) searches scheduler, slice and [`weights`], or proves that none does.
//! * [`crate::verify::timeshare`] derives a choice or a refusal again.
//!
//! # The model
//!
//! The GPU runs one resident at a time. Going from one resident to another costs `c` =
//! `switch_us`, paid before the new one runs; staying costs nothing. A turn lasts at most the
//! slice `q`. A resident is always busy, or has a job of `b` = `burst_us` GPU time every
//! `p` = `period_us`; its jobs run in order of arrival. Whatever arrives at an instant counts
//! for a decision at that instant.
//!
//! | scheduler | rule |
//! |---|---|
//! | best effort | round robin over whoever has work; who runs out of work gives up the turn |
//! | equal share | one slot for each resident present, kept while it is idle |
//! | fixed share | `max_vgpus` slots, a resident has `shares` of them, present or not |
//! | weighted fair | round robin with turns by weight; of unused turns up to one slice is kept as credit, and one part in `averaging_factor` of it lengthens a later turn |
//! | priority | at each turn's end the highest priority with work; equals in round robin |
//! | preemptive | the same, and who arrives takes the GPU from lower priorities at once; a switch that has begun is finished |
//!
//! **Wait** is from a job's arrival to its first running; of an always busy resident, from
//! losing the GPU to running again. **Response** is from arrival to the end of the burst.

pub mod choose;
pub mod closed;
mod demand;
mod document;
pub mod priority;
pub mod simulate;
pub mod turns;
pub mod weights;

pub use choose::{Answer, Choice, Failing, Limit, Refusal, choose};
pub use closed::{Bounds, P99, bounds, keeps, overhead_ppm};
pub use demand::{Demand, Resident, Sla};
pub use document::{Search, Timeshare};
pub use simulate::{Measured, Run, phases_of, simulate};

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// All of the GPU.
pub const WHOLE_PPM: u64 = 1_000_000;
/// Shortest slice that a vGPU manager takes (published).
pub const SLICE_MIN_US: u64 = 1_000;
/// Longest slice that a vGPU manager takes (published).
pub const SLICE_MAX_US: u64 = 30_000;
/// What a switch costs where nobody says (assumed: no vendor publishes it; 50 to 200 us are
/// the figures that operators work with).
pub const SWITCH_DEFAULT_US: u64 = 100;
/// Averaging factor where nobody says (published).
pub const AVERAGING_DEFAULT: u64 = 33;

/// The slice of a vGPU type that allows this many on a GPU (published: 2 ms up to 8, else 1 ms).
pub fn slice_default_us(max_vgpus: u64) -> u64 {
    if max_vgpus <= 8 { 2_000 } else { 1_000 }
}

/// Who runs next, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scheduler {
    /// Round robin over whoever has work.
    BestEffort,
    /// Equal slots for those present.
    EqualShare,
    /// Slots of the vGPU type, whether used or not.
    FixedShare,
    /// Round robin with turns by weight.
    WeightedFair,
    /// Fixed priorities, looked at when a turn ends.
    Priority,
    /// Fixed priorities, looked at when work arrives.
    Preemptive,
}

impl Scheduler {
    /// All of them, in the order that breaks ties between equal overheads.
    pub const ALL: [Self; 6] =
        [Self::BestEffort, Self::EqualShare, Self::FixedShare, Self::WeightedFair, Self::Priority, Self::Preemptive];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::BestEffort => "best_effort",
            Self::EqualShare => "equal_share",
            Self::FixedShare => "fixed_share",
            Self::WeightedFair => "weighted_fair",
            Self::Priority => "priority",
            Self::Preemptive => "preemptive",
        }
    }

    /// Slots stay with their owner while it is idle.
    pub fn is_slotted(self) -> bool {
        matches!(self, Self::EqualShare | Self::FixedShare)
    }
}

/// A scheduler with everything that it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Longest turn; of weighted fair, the mean of the turns.
    pub slice_us: u64,
    /// Cost of going from one resident to another.
    pub switch_us: u64,
    /// Over how many turns weighted fair spreads its credit.
    pub averaging_factor: u64,
    /// Most vGPUs of the type on one GPU: the slots of fixed share.
    pub max_vgpus: u64,
    /// Weights, by resident: the parts of weighted fair.
    pub weights: Vec<u64>,
}

/// Sums of ratios round against the claim: this many parts make one.
pub(crate) const PARTS: u64 = 1_000_000_000;
