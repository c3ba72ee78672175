//! What is asked for a recommendation, and its checks.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::error::{Fault, InputError};
use crate::perf::fixed::{PPM, scale_up};
use crate::perf::interference::Resident;
use crate::perf::memory::ModelMemory;
use crate::perf::overhead::{DriverEra, Sharing};
use crate::perf::params::{Class, Override};
use crate::perf::range::Range;
use crate::perf::scaling::Slice;

/// A workload, the places it could go to, and what they cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecommendAsk {
    /// What is to run.
    pub workload: Demand,
    /// Places, with prices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// A GPU model of the catalog: adds all of it and each plain MIG profile as candidates,
    /// at the share of the price that their slices are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<PricedGpu>,
    /// What is wanted of those that meet the demand.
    #[serde(default)]
    pub objective: Objective,
    /// Own figures in place of the table's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Override>,
}

/// A whole GPU and its price.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PricedGpu {
    /// Id or product name.
    pub model: String,
    /// Millionths of a unit of money an hour.
    pub micro_per_hour: u64,
}

/// What is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Least money an hour for the rate that is asked.
    #[default]
    LeastCost,
    /// Least money for an item.
    ThroughputPerCost,
}

/// The workload as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// What kind of work.
    pub class: Class,
    /// Throughput of one process on the whole GPU, by batch. Two batches tell how launches
    /// bind it; the batches here are those that are tried.
    pub whole_gpu: Vec<BatchRate>,
    /// Throughput of one process on a slice, at a batch that is also in `whole_gpu`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<SliceRate>,
    /// MPS processes to try; absent: one only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<u32>,
    /// The model, from which memory follows; the batch is its concurrency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelMemory>,
    /// Memory of one process at the largest batch, in place of `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<Range>,
    /// How it and its co-residents press on each other, from measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Resident>,
    /// Longest time for one batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_max_us: Option<u64>,
    /// Items in a thousand seconds that all places together must do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_min_milli: Option<u64>,
    /// Overhead it bears; absent: what its class does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_max_ppm: Option<u64>,
    /// Items of one optimizer step: smaller batches are added up to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_target: Option<u64>,
    /// How often it is stopped, in a thousand hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptions_per_1000_h: Option<u64>,
    /// Time to write a checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_s: Option<u64>,
}

/// A measured throughput.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BatchRate {
    /// Items of a step.
    pub batch: u64,
    /// Items in a thousand seconds.
    pub milli_items_per_s: u64,
}

/// A measured throughput on a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SliceRate {
    /// The slice.
    pub slice: Slice,
    /// Items of a step.
    pub batch: u64,
    /// Items in a thousand seconds.
    pub milli_items_per_s: u64,
}

/// A place that the workload could go to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Name in the answer.
    pub name: String,
    /// How the GPU is shared.
    #[serde(default)]
    pub sharing: Sharing,
    /// The part of the GPU; absent: all.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub slice: Slice,
    /// Memory there.
    pub memory_mib: u64,
    /// Who else is on it; none for MIG instances and whole GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Class>,
    /// Length of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_slice_us: Option<u64>,
    /// What the driver helps a software layer with.
    #[serde(default)]
    pub driver_era: DriverEra,
    /// Millionths of a unit of money an hour.
    pub micro_per_hour: u64,
}

fn whole() -> Slice {
    Slice::WHOLE
}

fn is_whole(slice: &Slice) -> bool {
    *slice == Slice::WHOLE
}

/// Candidates in one question.
const CANDIDATES_MAX: usize = 10_000;

impl RecommendAsk {
    /// The candidates, those of the GPU model with them.
    ///
    /// # Errors
    /// A model that is not known, no candidates at all.
    pub fn all_candidates(&self, catalog: &Catalog) -> Result<Vec<Candidate>, InputError> {
        let mut all = self.candidates.clone();
        if let Some(gpu) = &self.gpu {
            let unknown = || InputError::new("gpu.model", Fault::UnknownModel(gpu.model.clone()));
            let model = catalog.find(&gpu.model).ok_or_else(unknown)?;
            let candidate = |name: &str, sharing, slice: Slice, mib: u32| Candidate {
                name: String::from(name),
                sharing,
                slice,
                memory_mib: mib.into(),
                beside: Vec::new(),
                time_slice_us: None,
                driver_era: DriverEra::default(),
                micro_per_hour: scale_up(gpu.micro_per_hour, slice.share_ppm(), PPM),
            };
            if let Some(mib) = model.memory_mib_least() {
                all.push(candidate(&model.id, Sharing::Whole, Slice::WHOLE, mib));
            }
            if let (Some(compute_total), Some(memory_total)) = (model.compute_slices, model.memory_slices) {
                for profile in model.profiles.iter().filter(|p| model.is_plain(p)) {
                    if let (Some(memory), Some(mib)) = (profile.memory_slices, profile.memory_mib_least()) {
                        let compute = profile.compute_slices;
                        let slice = Slice { compute, compute_total, memory, memory_total, sm_percent: None };
                        all.push(candidate(&profile.name, Sharing::Mig, slice, mib));
                    }
                }
            }
        }
        match all.len() {
            0 => Err(InputError::new("candidates", Fault::Invalid(String::from("give `candidates`, or a `gpu`")))),
            _ => Ok(all),
        }
    }

    /// Checks all that is given.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn check(&self) -> Result<(), InputError> {
        let invalid = |path: String, text: &str| Err(InputError::new(path, Fault::Invalid(String::from(text))));
        let demand = &self.workload;
        if demand.whole_gpu.is_empty() {
            return invalid(String::from("workload.whole_gpu"), "one measured batch on the whole GPU is needed");
        }
        for (i, point) in demand.whole_gpu.iter().enumerate() {
            positive(&format!("workload.whole_gpu[{i}].batch"), point.batch)?;
            positive(&format!("workload.whole_gpu[{i}].milli_items_per_s"), point.milli_items_per_s)?;
        }
        for (i, point) in demand.slices.iter().enumerate() {
            let path = format!("workload.slices[{i}]");
            point.slice.check().map_err(|e| e.within(&format!("{path}.slice")))?;
            positive(&format!("{path}.milli_items_per_s"), point.milli_items_per_s)?;
            if !demand.whole_gpu.iter().any(|whole| whole.batch == point.batch) {
                return invalid(format!("{path}.batch"), "this batch is not in `whole_gpu`");
            }
        }
        for (i, n) in demand.processes.iter().enumerate() {
            positive(&format!("workload.processes[{i}]"), (*n).into())?;
        }
        if let Some(memory) = demand.memory_mib.filter(|m| !m.is_ordered()) {
            return invalid(
                String::from("workload.memory_mib"),
                &format!("{} is not low ≤ expected ≤ high", memory.expected),
            );
        }
        if let Some(pressure) = &demand.pressure {
            pressure.check().map_err(|e| e.within("workload.pressure"))?;
        }
        if self.candidates.len() > CANDIDATES_MAX {
            let (value, max) = (self.candidates.len() as u64, CANDIDATES_MAX as u64);
            return Err(InputError::new("candidates", Fault::OutOfRange { value, min: 1, max }));
        }
        for (i, candidate) in self.candidates.iter().enumerate() {
            candidate.slice.check().map_err(|e| e.within(&format!("candidates[{i}].slice")))?;
            positive(&format!("candidates[{i}].micro_per_hour"), candidate.micro_per_hour)?;
        }
        Ok(())
    }
}

fn positive(path: &str, value: u64) -> Result<(), InputError> {
    // Products of rates and prices stay far inside 128 bits.
    let max = 1 << 60;
    let fault = Fault::OutOfRange { value, min: 1, max };
    if value == 0 || value > max { Err(InputError::new(path, fault)) } else { Ok(()) }
}
