//! `size`: the memory of a model, part by part, each with its formula.
//!
//! ```text
//! weights      parameters · bits ÷ 8
//! cache        2 · layers · kv heads · head dim · bytes · context · concurrency
//! activations  inference: tokens in flight · hidden · vectors alive · bytes
//!              training:  34 · tokens · hidden · layers (selective recomputation) + logits
//! optimizer    trained parameters · bytes a parameter
//! reserve      context + framework + what the allocator holds in pieces
//! ```

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::model::{ModelMemory, Precision, Task, check};
use crate::catalog::Model;
use crate::error::InputError;
use crate::perf::fixed::narrow;
use crate::perf::params::{Parameters, Status};
use crate::perf::range::Range;

/// One part of a size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Item {
    /// What it is.
    pub part: String,
    /// How much.
    pub mib: Range,
    /// How it is reckoned.
    pub formula: String,
    /// The least certain figure in it.
    pub status: Status,
}

/// A size, part by part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Size {
    /// All of it.
    pub total_mib: Range,
    /// The parts.
    pub parts: Vec<Item>,
}

/// The memory that a model needs.
///
/// # Errors
/// A count that is zero or absurd, a cache of which one size is missing.
pub fn size(model: &ModelMemory, parameters: &Parameters) -> Result<Size, InputError> {
    check(model)?;
    let mut parts = Parts { parameters, items: Vec::new() };
    match model.task {
        Task::Inference => parts.weights(model)?,
        Task::Training => parts.states(model)?,
    }
    let fixed = parts.total();
    if model.task == Task::Inference {
        parts.cache(model)?;
    }
    parts.activations(model)?;
    let pieces = parameters.range("memory.allocator_ppm")?;
    let moving = parts.total().low.saturating_sub(fixed.low);
    let moving = Range {
        low: moving,
        expected: parts.total().expected.saturating_sub(fixed.expected),
        high: parts.total().high.saturating_sub(fixed.high),
    };
    parts.push("allocator", moving.share(pieces), "share of cache and activations", "memory.allocator_ppm")?;
    parts.push("context", parameters.range("memory.context_mib")?, "one process", "memory.context_mib")?;
    parts.push("framework", parameters.range("memory.framework_mib")?, "one process", "memory.framework_mib")?;
    let processes = model.processes.unwrap_or(1);
    let mut items = parts.items;
    for item in &mut items {
        item.mib = item.mib.map(|mib| mib.saturating_mul(processes));
    }
    let total_mib = items.iter().fold(Range::default(), |sum, item| sum.plus(item.mib));
    Ok(Size { total_mib, parts: items })
}

/// Bytes of a product in MiB, rounded up.
fn mib(factors: &[u64], bits: u64) -> u64 {
    let bits = factors.iter().fold(u128::from(bits), |product, f| product.saturating_mul(u128::from(*f)));
    narrow(bits.div_ceil(8 << 20))
}

struct Parts<'t> {
    parameters: &'t Parameters,
    items: Vec<Item>,
}

impl Parts<'_> {
    fn total(&self) -> Range {
        self.items.iter().fold(Range::default(), |sum, item| sum.plus(item.mib))
    }

    fn push(&mut self, part: &str, mib: Range, formula: &str, figure: &str) -> Result<(), InputError> {
        let status = self.parameters.figure(figure)?.status;
        self.items.push(Item { part: String::from(part), mib, formula: String::from(formula), status });
        Ok(())
    }

    /// What follows from the model itself.
    fn plain(&mut self, part: &str, mib: Range, formula: &str) {
        let (part, formula) = (String::from(part), String::from(formula));
        self.items.push(Item { part, mib, formula, status: Status::Published });
    }

    fn weights(&mut self, model: &ModelMemory) -> Result<(), InputError> {
        let bare = mib(&[model.parameters], model.precision.bits());
        if model.precision != Precision::Int4 {
            self.plain("weights", Range::exact(bare), "parameters · bits ÷ 8");
            return Ok(());
        }
        let scales = self.parameters.range("memory.int4_overhead_ppm")?;
        let all = Range::exact(bare).plus(Range::exact(bare).share(scales));
        self.push("weights", all, "parameters · bits ÷ 8 · (1 + scales)", "memory.int4_overhead_ppm")
    }

    /// Weights, gradients and moments of what is trained; bare weights of the rest.
    fn states(&mut self, model: &ModelMemory) -> Result<(), InputError> {
        let trained = model.trained_parameters.unwrap_or(model.parameters);
        let frozen = mib(&[model.parameters - trained.min(model.parameters)], model.precision.bits());
        if frozen > 0 {
            self.plain("frozen weights", Range::exact(frozen), "untrained parameters · bits ÷ 8");
        }
        let name = model.optimizer.parameter();
        let bytes = self.parameters.range(name)?;
        self.push(
            "weights, gradients and moments",
            bytes.map(|b| mib(&[trained, b], 8)),
            "trained parameters · bytes",
            name,
        )
    }

    fn cache(&mut self, model: &ModelMemory) -> Result<(), InputError> {
        let (Some(layers), Some(heads), Some(dim)) = (model.layers, model.kv_heads, model.head_dim) else {
            return Ok(());
        };
        let tokens = [model.context.unwrap_or(1), model.concurrency.unwrap_or(1)];
        let bits = model.kv_precision.map_or(16, Precision::bits);
        let full = Range::exact(mib(&[2, layers, heads, dim, tokens[0], tokens[1]], bits));
        let waste = full.share(self.parameters.range("memory.kv_waste_ppm")?);
        let formula = "2 · layers · kv heads · head dim · bytes · context · concurrency · (1 + waste)";
        self.push("key-value cache", full.plus(waste), formula, "memory.kv_waste_ppm")
    }

    fn activations(&mut self, model: &ModelMemory) -> Result<(), InputError> {
        if let Some(mib) = model.activation_mib {
            self.items.push(Item {
                part: String::from("activations"),
                mib: Range::exact(mib),
                formula: String::from("as given"),
                status: Status::User,
            });
            return Ok(());
        }
        match (model.task, model.hidden, model.layers) {
            (Task::Training, Some(hidden), Some(layers)) => {
                let tokens = [model.context.unwrap_or(1), model.concurrency.unwrap_or(1)];
                let bytes = self.parameters.range("memory.training_activation_bytes")?;
                // The published figure is for 16 bits.
                let bits = 8 * model.precision.bits().max(16) / 16;
                let kept = bytes.map(|b| mib(&[b, tokens[0], tokens[1], hidden, layers], bits));
                let formula = "34 · context · concurrency · hidden · layers bytes";
                self.push("activations", kept, formula, "memory.training_activation_bytes")?;
                let Some(vocabulary) = model.vocabulary else { return Ok(()) };
                let bytes = self.parameters.range("memory.training_logits_bytes")?;
                let logits = bytes.map(|b| mib(&[b, tokens[0], tokens[1], vocabulary], 8));
                self.push(
                    "logits",
                    logits,
                    "bytes · context · concurrency · vocabulary",
                    "memory.training_logits_bytes",
                )
            }
            (Task::Inference, Some(hidden), _) => {
                let tokens = match model.tokens_in_flight {
                    Some(tokens) => Range::exact(tokens),
                    None => self.parameters.range("memory.tokens_in_flight")?,
                };
                let vectors = self.parameters.range("memory.activation_vectors")?;
                let bits = model.precision.bits().max(16);
                let at = |tokens: u64, vectors: u64| mib(&[tokens, vectors, hidden], bits);
                let alive = Range {
                    low: at(tokens.low, vectors.low),
                    expected: at(tokens.expected, vectors.expected),
                    high: at(tokens.high, vectors.high),
                };
                self.push(
                    "activations",
                    alive,
                    "tokens in flight · hidden · vectors alive · bytes",
                    "memory.activation_vectors",
                )
            }
            _ => {
                let share = self.parameters.range("memory.activation_weights_ppm")?;
                let weights = Range::exact(mib(&[model.parameters], model.precision.bits()));
                // Training keeps what inference lets go, item by item of the batch.
                let times = if model.task == Task::Training { model.concurrency.unwrap_or(1) } else { 1 };
                let held = weights.share(share).map(|mib| mib.saturating_mul(times));
                self.push("activations", held, "share of weights (sizes not given)", "memory.activation_weights_ppm")
            }
        }
    }
}

/// Whether a size goes into a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Even the high end does.
    Holds,
    /// The expected value does, the high end does not.
    Tight,
    /// Only the low end does.
    Doubtful,
    /// Not even the low end does.
    TooSmall,
}

impl Fit {
    /// The answer for a space of this many MiB.
    pub fn of(size: Range, mib: u64) -> Self {
        match mib {
            mib if mib >= size.high => Self::Holds,
            mib if mib >= size.expected => Self::Tight,
            mib if mib >= size.low => Self::Doubtful,
            _ => Self::TooSmall,
        }
    }
}

/// A profile of a GPU model and whether it holds a size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfileFit {
    /// Name of the profile, or of the GPU model for all of it.
    pub profile: String,
    /// Its memory.
    pub memory_mib: u64,
    /// The answer.
    pub fit: Fit,
}

/// The profiles of a GPU model, and the whole GPU, smallest first, with the answer for each.
/// Profiles whose memory is not known are left out.
pub fn fits(size: Range, model: &Model) -> Vec<ProfileFit> {
    let profiles = model.profiles.iter().filter_map(|p| Some((p.name.as_str(), p.memory_mib_least()?)));
    let whole = model.memory_mib_least().map(|mib| (model.id.as_str(), mib));
    let mut all: Vec<_> = profiles
        .chain(whole)
        .map(|(name, mib)| {
            let memory_mib = u64::from(mib);
            ProfileFit { profile: String::from(name), memory_mib, fit: Fit::of(size, memory_mib) }
        })
        .collect();
    all.sort_by_key(|p| p.memory_mib);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use proptest::prelude::*;

    fn table() -> Parameters {
        Parameters::built_in().unwrap()
    }

    /// The shape of Llama 3 8B, as its published configuration has it.
    fn eight_billion() -> ModelMemory {
        ModelMemory {
            parameters: 8_030_261_248,
            layers: Some(32),
            kv_heads: Some(8),
            head_dim: Some(128),
            hidden: Some(4096),
            context: Some(8192),
            concurrency: Some(16),
            ..ModelMemory::default()
        }
    }

    fn part(size: &Size, name: &str) -> Range {
        size.parts.iter().find(|p| p.part == name).unwrap().mib
    }

    #[test]
    fn a_known_model_comes_out_as_its_configuration_says() {
        let size = size(&eight_billion(), &table()).unwrap();
        // 16 060 522 496 bytes of weights; 128 KiB of cache a token, 131 072 tokens.
        assert_eq!(part(&size, "weights"), Range::exact(15_317));
        assert_eq!(part(&size, "key-value cache").low, 16 * 1024);
        assert!(size.total_mib.is_ordered());
        let catalog = Catalog::built_in().unwrap();
        let fits = fits(size.total_mib, catalog.find("a100-80gb").unwrap());
        let of = |name: &str| fits.iter().find(|f| f.profile == name).unwrap().fit;
        assert_eq!((of("3g.40gb"), of("2g.20gb"), of("7g.80gb")), (Fit::Holds, Fit::TooSmall, Fit::Holds));
    }

    #[test]
    fn training_keeps_sixteen_bytes_a_parameter() {
        let model = ModelMemory { task: Task::Training, parameters: 1 << 30, ..ModelMemory::default() };
        let all = size(&model, &table()).unwrap();
        assert_eq!(part(&all, "weights, gradients and moments"), Range::exact(16 * 1024));
        let few = ModelMemory { trained_parameters: Some(1 << 20), ..model };
        assert_eq!(part(&size(&few, &table()).unwrap(), "frozen weights"), Range::exact(2046));
    }

    #[test]
    fn slips_name_their_field() {
        let path = |model: ModelMemory| String::from(size(&model, &table()).unwrap_err().path());
        assert_eq!(path(ModelMemory::default()), "parameters");
        assert_eq!(path(ModelMemory { layers: None, ..eight_billion() }), "layers");
        assert_eq!(path(ModelMemory { trained_parameters: Some(u64::MAX), ..eight_billion() }), "trained_parameters");
    }

    proptest! {
        #[test]
        fn more_of_anything_is_never_smaller(b in 1..200_u64, layers in 1..100_u64, context in 1..100_000_u64, n in 1..64_u64, training: bool) {
            let model = ModelMemory {
                parameters: b * 100_000_000, layers: Some(layers), context: Some(context), concurrency: Some(n),
                task: if training { Task::Training } else { Task::Inference }, ..eight_billion()
            };
            let total = |m: &ModelMemory| size(m, &table()).unwrap().total_mib;
            let here = total(&model);
            prop_assert!(here.is_ordered());
            for more in [
                ModelMemory { context: Some(context + 1), ..model.clone() },
                ModelMemory { concurrency: Some(n + 1), ..model.clone() },
                ModelMemory { parameters: model.parameters + 1, ..model.clone() },
                ModelMemory { precision: Precision::Fp32, ..model.clone() },
                ModelMemory { processes: Some(2), ..model.clone() },
            ] {
                let more = total(&more);
                prop_assert!(more.low >= here.low && more.expected >= here.expected && more.high >= here.high);
            }
        }
    }
}
