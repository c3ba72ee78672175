//! `recommend`: of the places that a workload could go to, the one that meets what it needs
//! at least cost, with predicted figures, the others, and why each loses.

mod ask;
mod checkpoint;
mod predict;
#[cfg(test)]
mod tests;

pub use ask::{BatchRate, Candidate, Demand, Objective, PricedGpu, RecommendAsk, SliceRate};
pub use checkpoint::{Checkpoint, checkpoint};
pub use predict::Predicted;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::fixed::{PPM, scale, scale_up};
use super::memory::Fit;
use super::params::{Class, Parameters};
use crate::catalog::Catalog;
use crate::error::InputError;
use predict::Basis;

/// Why a candidate is not the one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "because")]
pub enum Loss {
    /// It does not hold the workload.
    Memory {
        /// Expected need.
        needed_mib: u64,
        /// What is there.
        there_mib: u64,
    },
    /// A batch takes too long.
    Latency {
        /// Expected time.
        expected_us: u64,
        /// Longest allowed.
        max_us: u64,
    },
    /// The way of sharing loses more than the workload bears.
    Overhead {
        /// Expected loss.
        expected_ppm: u64,
        /// Most allowed.
        max_ppm: u64,
    },
    /// It costs more by the objective.
    Cost {
        /// By how much.
        more_ppm: u64,
    },
    /// It costs the same; the one before it is the first in the order given.
    Order,
}

/// A candidate at its best batch and number of processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Choice {
    /// Name of the candidate.
    pub candidate: String,
    /// What it would deliver.
    pub predicted: Predicted,
    /// Whether even the low end meets what is needed.
    pub certain: bool,
    /// Why it is not the one; none for the best.
    pub loses: Vec<Loss>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recommendation {
    /// The best; none if no candidate meets what is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<Choice>,
    /// The others, nearest first.
    pub others: Vec<Choice>,
    /// Steps over which gradients are added, where the best batch is below the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accumulate_steps: Option<u64>,
    /// When to write checkpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// Notebooks that share one place, as most are idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notebooks_per_place: Option<u64>,
    /// Idle time after which a notebook's place is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_reclaim_s: Option<u64>,
}

/// Recommends a place.
///
/// # Errors
/// The field that is not as it should be.
pub fn recommend(ask: &RecommendAsk, catalog: &Catalog) -> Result<Recommendation, InputError> {
    ask.check()?;
    let parameters = Parameters::built_in()?.with(&ask.parameters).map_err(|e| e.within("parameters"))?;
    let candidates = ask.all_candidates(catalog)?;
    let basis = Basis::new(ask, &parameters).map_err(|e| e.within("parameters"))?;
    let bears = match ask.workload.overhead_max_ppm {
        Some(own) => own,
        None => parameters.value(&alloc::format!("class.{}.overhead_max_ppm", ask.workload.class.name()))?,
    };
    let mut choices = Vec::new();
    for candidate in &candidates {
        choices.extend(best_of(ask, &basis, candidate, bears)?);
    }
    // Those that meet the need first; then by cost; the order given breaks ties.
    choices.sort_by_key(|c| (!c.loses.is_empty(), cost(ask, &c.predicted)));
    let meets = choices.first().is_some_and(|c| c.loses.is_empty());
    let best = meets.then(|| choices.remove(0));
    if let Some(best) = &best {
        let least = cost(ask, &best.predicted);
        for other in choices.iter_mut().filter(|c| c.loses.is_empty()) {
            let more = cost(ask, &other.predicted).saturating_sub(least);
            let more_ppm = scale_up(more, PPM, least.max(1));
            other.loses.push(if more == 0 { Loss::Order } else { Loss::Cost { more_ppm } });
        }
    }
    extras(ask, &parameters, best, choices)
}

fn cost(ask: &RecommendAsk, predicted: &Predicted) -> u64 {
    match ask.objective {
        Objective::LeastCost => predicted.micro_per_hour,
        Objective::ThroughputPerCost => predicted.micro_per_million_items,
    }
}

/// A candidate's best way to run: one that meets the need if any does, then the cheapest,
/// then the fastest.
fn best_of(
    ask: &RecommendAsk,
    basis: &Basis<'_>,
    candidate: &Candidate,
    bears: u64,
) -> Result<Option<Choice>, InputError> {
    let one = vec![1];
    let processes = if ask.workload.processes.is_empty() { &one } else { &ask.workload.processes };
    let mut ways = Vec::new();
    for point in &ask.workload.whole_gpu {
        for n in processes {
            let predicted = basis.predict(candidate, *point, *n)?;
            let loses = misses(ask, candidate, &predicted, bears);
            let certain = certain(ask, &predicted, bears);
            ways.push(Choice { candidate: candidate.name.clone(), predicted, certain, loses });
        }
    }
    Ok(ways.into_iter().min_by_key(|way| {
        let slowest_first = u64::MAX - way.predicted.throughput_milli.expected;
        (way.loses.len(), cost(ask, &way.predicted), slowest_first)
    }))
}

/// What is needed and not met, by expected figures.
fn misses(ask: &RecommendAsk, candidate: &Candidate, predicted: &Predicted, bears: u64) -> Vec<Loss> {
    let mut misses = Vec::new();
    if let (Some(size), Some(Fit::Doubtful | Fit::TooSmall)) = (predicted.memory_mib, predicted.memory_fit) {
        misses.push(Loss::Memory { needed_mib: size.expected, there_mib: candidate.memory_mib });
    }
    let expected_us = predicted.latency_us.expected;
    if let Some(max_us) = ask.workload.latency_max_us.filter(|max| expected_us > *max) {
        misses.push(Loss::Latency { expected_us, max_us });
    }
    if predicted.overhead_ppm.expected > bears {
        misses.push(Loss::Overhead { expected_ppm: predicted.overhead_ppm.expected, max_ppm: bears });
    }
    misses
}

fn certain(ask: &RecommendAsk, predicted: &Predicted, bears: u64) -> bool {
    let memory = predicted.memory_fit.is_none_or(|fit| fit == Fit::Holds);
    let latency = ask.workload.latency_max_us.is_none_or(|max| predicted.latency_us.high <= max);
    let together = u128::from(predicted.throughput_milli.low) * u128::from(predicted.places);
    let rate = ask.workload.rate_min_milli.is_none_or(|min| together >= u128::from(min));
    memory && latency && rate && predicted.overhead_ppm.high <= bears
}

/// What goes with the class.
fn extras(
    ask: &RecommendAsk,
    parameters: &Parameters,
    best: Option<Choice>,
    others: Vec<Choice>,
) -> Result<Recommendation, InputError> {
    let demand = &ask.workload;
    let batch = best.as_ref().map(|b| b.predicted.batch);
    let steps = batch.zip(demand.batch_target).map(|(batch, target)| target.div_ceil(batch.max(1)));
    let cost_s = match demand.checkpoint_s {
        Some(own) => own,
        None => parameters.value("checkpoint.default_s")?,
    };
    let interactive = demand.class == Class::Interactive;
    let active = parameters.value("class.interactive.active_ppm")?;
    let idle = parameters.value("class.interactive.idle_reclaim_s")?;
    Ok(Recommendation {
        best,
        others,
        accumulate_steps: steps.filter(|s| *s > 1),
        checkpoint: demand.preemptions_per_1000_h.and_then(|stops| checkpoint(cost_s, stops)),
        notebooks_per_place: interactive.then(|| scale(1, PPM, active.max(1)).max(1)),
        idle_reclaim_s: interactive.then_some(idle),
    })
}
