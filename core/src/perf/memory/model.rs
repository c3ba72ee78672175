//! A model as its memory sees it.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use crate::error::{Fault, InputError};

/// Bits of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits.
    Fp32,
    /// 16 bits, IEEE.
    Fp16,
    /// 16 bits, brain float.
    #[default]
    Bf16,
    /// 8 bits, float.
    Fp8,
    /// 8 bits, integer.
    Int8,
    /// 4 bits, with scales beside them.
    Int4,
}

impl Precision {
    /// Bits of one number.
    pub fn bits(self) -> u64 {
        match self {
            Self::Fp32 => 32,
            Self::Fp16 | Self::Bf16 => 16,
            Self::Fp8 | Self::Int8 => 8,
            Self::Int4 => 4,
        }
    }
}

/// What is done with the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Answering.
    #[default]
    Inference,
    /// Training.
    Training,
}

/// What training keeps for each trained parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Optimizer {
    /// Adam with 16-bit weights and gradients.
    #[default]
    AdamMixed,
    /// Adam in 32 bits.
    Adam,
    /// Gradient descent with momentum in 32 bits.
    SgdMomentum,
}

impl Optimizer {
    /// The parameter that says how many bytes.
    pub(super) fn parameter(self) -> &'static str {
        match self {
            Self::AdamMixed => "memory.optimizer.adam_mixed_bytes",
            Self::Adam => "memory.optimizer.adam_bytes",
            Self::SgdMomentum => "memory.optimizer.sgd_momentum_bytes",
        }
    }
}

/// A model as its memory sees it. Only the number of parameters is needed; what is absent
/// is left out or held to be as in the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModelMemory {
    /// Parameters.
    pub parameters: u64,
    /// Bits of a weight.
    #[serde(default)]
    pub precision: Precision,
    /// What is done.
    #[serde(default)]
    pub task: Task,
    /// Layers; with `kv_heads` and `head_dim` they give the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<u64>,
    /// Heads of keys and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<u64>,
    /// Size of a head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<u64>,
    /// Hidden size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<u64>,
    /// Entries of the vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<u64>,
    /// Bits of the cache; absent: 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_precision: Option<Precision>,
    /// Tokens of one sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// Sequences at once: requests when answering, the micro-batch when training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// Most tokens of one inference step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_in_flight: Option<u64>,
    /// Measured activations in MiB, in place of the formula: for models that are no
    /// transformers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation_mib: Option<u64>,
    /// What training keeps.
    #[serde(default)]
    pub optimizer: Optimizer,
    /// Parameters that training changes; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trained_parameters: Option<u64>,
    /// Processes that each load the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

/// Counts beyond this are typing errors: a thousand times the largest of today.
const COUNT_MAX: u64 = 1 << 50;

/// Checks that what is given makes sense.
pub(super) fn check(model: &ModelMemory) -> Result<(), InputError> {
    let counts = [
        ("parameters", Some(model.parameters)),
        ("layers", model.layers),
        ("kv_heads", model.kv_heads),
        ("head_dim", model.head_dim),
        ("hidden", model.hidden),
        ("vocabulary", model.vocabulary),
        ("context", model.context),
        ("concurrency", model.concurrency),
        ("tokens_in_flight", model.tokens_in_flight),
        ("processes", model.processes),
    ];
    for (path, value) in counts {
        if let Some(value) = value.filter(|v| *v == 0 || *v > COUNT_MAX) {
            return Err(InputError::new(path, Fault::OutOfRange { value, min: 1, max: COUNT_MAX }));
        }
    }
    if let Some(value) = model.trained_parameters.filter(|t| *t > model.parameters) {
        return Err(InputError::new("trained_parameters", Fault::OutOfRange { value, min: 0, max: model.parameters }));
    }
    // A cache needs all of its sizes: half of them are a slip that would count as no cache.
    let cache = [("layers", model.layers), ("kv_heads", model.kv_heads), ("head_dim", model.head_dim)];
    let wants = model.task == Task::Inference && (model.kv_heads.is_some() || model.head_dim.is_some());
    match cache.iter().find(|(_, value)| wants && value.is_none()) {
        Some((path, _)) => Err(InputError::new(
            *path,
            Fault::Invalid(String::from("the cache needs `layers`, `kv_heads`, `head_dim`")),
        )),
        None => Ok(()),
    }
}
