//! What proves that fewer GPUs do not do.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A tree whose leaves are prices. The leaves of a split cover every deployment between
/// them, so the least of the leaves' bounds holds.
///
/// A leaf knows, from the splits above it, bounds on how many segments each model has of
/// each profile and on how many GPUs have each layout. With prices π ≥ 0 on profiles,
///
/// - a deployment is worth at least D = Σ over models of the cheapest multiset of segments
///   within its bounds whose throughputs, at the fastest usable point of each profile,
///   reach the rate;
/// - a GPU whose profiles are all in a layout is worth at most the layout's Σ π;
///
/// so the GPUs of each layout, within their bounds, are worth D together, and the fewest
/// that are is found by taking the dearest layouts first. Every GPU counts as one of a
/// *maximal* layout that has all its instances. Without splits this is D ÷ the dearest
/// layout, rounded up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GpuProof {
    /// A leaf; a profile without a price costs nothing.
    Prices(Vec<ProfilePrice>),
    /// Either at most `most` or at least one more.
    Split {
        /// Of what.
        on: SplitOn,
        /// Most of it on one side.
        most: u64,
        /// What proves the side with at most that.
        fewer: Box<Self>,
        /// What proves the side with more.
        more: Box<Self>,
    },
}

/// The price of an instance of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProfilePrice {
    /// The profile.
    pub profile: String,
    /// Its price, in any unit: only ratios matter.
    pub price: u64,
}

/// What a split counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SplitOn {
    /// Segments of a model on a profile.
    Segments {
        /// The inference model.
        model: String,
        /// The profile.
        profile: String,
    },
    /// GPUs that count as this maximal layout.
    Gpus {
        /// Its profiles, one for each instance, in any order.
        layout: Vec<String>,
    },
}
