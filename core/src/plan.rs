//! The answer to a batch: who gets what, how good it is, and what proves that.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::decision::ModeChange;
use crate::fleet::Lease;
use crate::workload::Ask;

/// What a batch is planned for. Each objective is followed by the next ones in the fixed
/// order value, GPUs opened, nodes opened, fragmentation, moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The most value admitted.
    #[default]
    MostValue,
    /// As many members as possible, then the fewest GPUs opened.
    FewestGpus,
}

/// How a plan was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Class × pattern integer program.
    ClassPattern,
    /// One variable per member and place, integer program.
    MemberPlace,
    /// Neighbourhood search from the best of the others.
    NeighbourhoodSearch,
    /// First fit on the requests by falling size.
    FirstFitDecreasing,
    /// Best fit on the requests by falling size.
    BestFitDecreasing,
    /// Fewest lost placements on the requests by falling size.
    FewestLostPlacements,
}

/// Where a bound comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BoundSource {
    /// Recomputed in integers from prices: a proof.
    Prices,
    /// All that was asked: a proof.
    Demand,
    /// The solver's word: no proof.
    Solver,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The state's version it was made on.
    pub version: u64,
    /// What it was planned for.
    pub objective: Objective,
    /// How it was found.
    pub method: Method,
    /// Constraints that the leading bound leaves out; its gap includes what they cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relaxed: Vec<String>,
    /// The independent checker accepted it.
    pub verified: bool,
    /// Members admitted.
    pub admitted: u64,
    /// Members refused.
    pub refused: u64,
    /// Value admitted.
    pub value: u64,
    /// GPUs that hold something of the plan.
    pub gpus_used: u64,
    /// GPUs that were unused before.
    pub gpus_opened: u64,
    /// Nodes that were unused before.
    pub nodes_opened: u64,
    /// What the bound is of: the leading objective (`value` or `members`), or `gpus` (opened)
    /// when all members are admitted.
    pub bound_of: BoundOf,
    /// No plan can be better than this.
    pub bound: u64,
    /// Distance to the bound in parts per million of the bound, rounded up.
    pub gap_ppm: u64,
    /// Where the bound comes from.
    pub bound_source: BoundSource,
    /// The prices that prove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// The admitted, by request; members keep their positions.
    pub leases: Vec<Lease>,
    /// GPUs whose mode is changed first; what the leases have of them is in the new mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mode_changes: Vec<ModeChange>,
    /// Requests of which members are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
    /// The budget ended the search before it was done.
    #[serde(default)]
    pub budget_exhausted: bool,
}

/// What a bound is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BoundOf {
    /// Value admitted, from above.
    Value,
    /// Members admitted, from above.
    Members,
    /// GPUs opened, from below.
    Gpus,
}

/// Prices on parts of GPUs. For any prices π ≥ 0, with S the scale:
///
/// - S × value ≤ Σ over requests of members × max(0, S × value − cheapest alternative)
///   + Σ over GPUs of the dearest set of parts that fits on what is free of it;
/// - S × members admitted ≤ the same with every value 1;
/// - S × GPUs opened ≥ Σ over requests of members × cheapest alternative
///   − Σ over GPUs of max(0, dearest set − (S if the GPU is unused, else 0)),
///   when all these members are admitted.
///
/// An alternative costs the sum of its parts, times how often it has each; a part is an
/// [`Ask`] for something of one device. Idle instances count as free. Of an unused GPU that may
/// be given other modes, the dearest set is that of the dearest mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Certificate {
    /// S: prices are in units of 1/S.
    pub scale: u64,
    /// The prices; a part without one costs nothing.
    pub prices: Vec<Price>,
}

/// The price of one part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Price {
    /// The part: a profile, amounts, a fraction, or one whole GPU.
    pub part: Ask,
    /// Models it may be on, by id; empty: any. Parts of requests that differ in this are
    /// different parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Price in units of 1/scale.
    pub price: u64,
}

/// Members of a request that did not get in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// Name of the request.
    pub workload: String,
    /// How many members.
    pub members: u64,
}
