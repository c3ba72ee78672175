//! Serving inference models on MIG GPUs: measured points and targets in, segments on GPUs
//! with a proved bound out. All amounts are integers: items and requests in thousandths
//! per second, latencies in microseconds.

mod proof;

pub use proof::{GpuProof, ProfilePrice, SplitOn};

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The published latency rule: a batch may take less than 0.9 × half the objective. Half,
/// because a request can wait for one batch before its own.
pub const SLO_SHARE_PPM: u32 = 450_000;

/// Most processes in one instance where nothing else is said.
pub const MAX_PROCESSES: u32 = 5;

/// What one instance was measured to do with one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The inference model.
    pub model: String,
    /// Compute slices of the instance.
    pub compute_slices: u16,
    /// Items in a batch.
    pub batch: u32,
    /// Processes that share the instance.
    pub processes: u32,
    /// Items of all processes together, in thousandths per second.
    pub throughput_milli: u64,
    /// Time of one batch in microseconds.
    pub latency_us: u64,
}

/// What a model has to serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The inference model.
    pub model: String,
    /// Requests in thousandths per second.
    pub rate_milli: u64,
    /// Latency objective in microseconds.
    pub slo_us: u64,
}

/// The question: the fewest GPUs of one model, cut into base profiles, that serve all
/// targets.
///
/// A point is usable for a target if it is of its model, has at most `max_processes`
/// processes, and latency × 1,000,000 < SLO × `slo_share_ppm`. An instance serves one
/// model at one usable point; the throughputs of a model's instances reach its rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Serving {
    /// The GPU model, by id or product name of the catalog.
    pub gpu: String,
    /// Most processes in one instance.
    #[serde(default = "max_processes")]
    pub max_processes: u32,
    /// Share of the objective that a batch has to stay below, in parts per million.
    #[serde(default = "slo_share_ppm")]
    pub slo_share_ppm: u32,
    /// What was measured.
    pub points: Vec<Point>,
    /// What is to be served; a model is there once.
    pub targets: Vec<Target>,
}

fn max_processes() -> u32 {
    MAX_PROCESSES
}

fn slo_share_ppm() -> u32 {
    SLO_SHARE_PPM
}

/// An instance that serves a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// The inference model.
    pub model: String,
    /// The GPU's profile.
    pub profile: String,
    /// Compute slices of the profile.
    pub size: u16,
    /// First cell on the GPU.
    pub start: u16,
    /// Items in a batch.
    pub batch: u32,
    /// Processes that share the instance.
    pub processes: u32,
    /// Time of one batch in microseconds.
    pub latency_us: u64,
    /// Items of all processes together, in thousandths per second.
    pub throughput_milli: u64,
}

/// One GPU and what is on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ServingGpu {
    /// Its instances, by rising start.
    pub instances: Vec<Segment>,
}

/// Where the best deployment comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ServingMethod {
    /// Cheapest segments at the prices of the bound, packed largest worth first.
    Greedy,
    /// The layout program.
    Program,
    /// A program inside the branching that proves the bound.
    Branching,
}

/// A deployment, how many GPUs it takes, and what proves that fewer do not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Deployment {
    /// Catalog id of the GPU model.
    pub gpu: String,
    /// GPUs that it takes.
    pub gpus: u64,
    /// No deployment takes fewer.
    pub bound: u64,
    /// `gpus` − `bound`; 0: proved optimal.
    pub gap: u64,
    /// The independent checker accepted it, bound included.
    pub verified: bool,
    /// The budget ended the search for a better deployment or bound.
    #[serde(default)]
    pub budget_exhausted: bool,
    /// How it was found.
    pub method: ServingMethod,
    /// The GPUs.
    pub deployment: Vec<ServingGpu>,
    /// What proves the bound.
    pub certificate: GpuProof,
}

/// Why a target cannot be served, on however many GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnservableBecause {
    /// No point of the model with a throughput, within the processes, on a profile of the GPU.
    NoPoint,
    /// There are such points; even the fastest is too slow.
    Latency,
}

/// A target that no instance can serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unservable {
    /// The inference model.
    pub model: String,
    /// Why.
    pub because: UnservableBecause,
    /// Least latency of its points in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us_least: Option<u64>,
    /// A usable point stays below this, in microseconds.
    pub latency_us_below: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Served {
    /// All targets are served.
    Deployment(Deployment),
    /// These targets can be served by nothing: a proved "no".
    Refused(Vec<Unservable>),
}
