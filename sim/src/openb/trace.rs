//! The trace in compact form: nodes and the kinds of pods.

use std::collections::BTreeMap;

use slicewise::formats::Arrivals;
use slicewise::ids::{Id, IdVec};
use slicewise::workload::WholeGpus;
use slicewise::{Ask, MixEntry, Node, State, Workload};
use thiserror::Error;

/// Thousandths of a GPU.
pub(super) const WHOLE_MILLI: u16 = 1000;

/// GPU models that a trace may name: as many as a set has bits.
const MODELS_MAX: usize = 64;

/// A GPU model of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelId(u8);

/// GPU models that a pod accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Models(u64);

impl Models {
    /// Whether the model is accepted.
    pub fn has(self, model: ModelId) -> bool {
        self.0 & (1 << model.0) != 0
    }
    fn all() -> Self {
        Self(u64::MAX)
    }
}

/// What a pod asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pod {
    /// CPU in thousandths of a core.
    pub cpu_milli: u64,
    /// Memory of the node in MiB.
    pub memory_mib: u64,
    /// Thousandths of each GPU; 0 if it asks no GPU.
    pub gpu_milli: u16,
    /// GPUs.
    pub gpus: u16,
    /// Models that it accepts.
    pub models: Models,
}

impl Pod {
    /// Thousandths of GPUs in all.
    pub fn total_milli(&self) -> u64 {
        u64::from(self.gpu_milli) * u64::from(self.gpus)
    }
    /// Whether it asks for a part of one GPU.
    pub fn is_shared(&self) -> bool {
        self.gpus == 1 && self.gpu_milli < WHOLE_MILLI
    }
}

/// Pods that ask the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindId(u32);

impl Id for KindId {
    fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A trace: nodes, and pods that may arrive.
#[derive(Clone, Debug)]
pub struct Trace {
    pub(super) state: State,
    pub(super) requests: Vec<Workload>,
    kinds: IdVec<KindId, Pod>,
    rows: Vec<KindId>,
    models: BTreeMap<String, ModelId>,
}

/// Why something is no trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A node or pod has what a trace does not have.
    #[error("{0}: {1}")]
    Unlike(String, &'static str),
    /// More models than can be told apart.
    #[error("more than {MODELS_MAX} GPU models")]
    TooManyModels,
    /// The order names a pod that is not there.
    #[error("pod {0} is not in the table of {1} pods")]
    UnknownPod(u32, usize),
    /// The ranks do not put each node in one place.
    #[error("the ranks of seed {0} do not give each of {1} nodes its own place")]
    Ranks(u64, usize),
}

impl Trace {
    /// The trace of a fleet and requests, as the reader of openb tables gives them.
    ///
    /// # Errors
    /// Nodes with GPUs of several models, or requests other than the trace has.
    pub fn new(state: State, requests: Vec<Workload>) -> Result<Self, TraceError> {
        let mut models = BTreeMap::new();
        for gpu in state.nodes.iter().flat_map(|node| &node.gpus) {
            let next = ModelId(u8::try_from(models.len()).unwrap_or(u8::MAX));
            models.entry(gpu.model.clone()).or_insert(next);
        }
        if models.len() > MODELS_MAX {
            return Err(TraceError::TooManyModels);
        }
        for node in &state.nodes {
            if node.gpus.windows(2).any(|pair| matches!(pair, [a, b] if a.model != b.model)) {
                return Err(TraceError::Unlike(node.name.clone(), "GPUs of several models on one node"));
            }
        }
        let mut known = BTreeMap::new();
        let mut kinds = IdVec::default();
        let mut rows = Vec::new();
        for request in &requests {
            let pod = pod(request, &models)?;
            rows.push(*known.entry(pod).or_insert_with(|| kinds.push(pod)));
        }
        Ok(Self { state, requests, kinds, rows, models })
    }

    /// The kinds of pods.
    pub fn kinds(&self) -> &IdVec<KindId, Pod> {
        &self.kinds
    }
    /// The kind of each pod of the table.
    pub fn rows(&self) -> &[KindId] {
        &self.rows
    }
    /// How often each thing is asked of GPUs: the demand that a policy may expect.
    pub fn mix(&self) -> Vec<MixEntry> {
        let mut counts: BTreeMap<(u16, u16), MixEntry> = BTreeMap::new();
        for (kind, request) in self.rows.iter().zip(&self.requests) {
            let pod = self.kinds[*kind];
            let Some(ask) = request.any_of.first().filter(|_| pod.gpus > 0) else { continue };
            let entry = counts.entry((pod.gpus, pod.gpu_milli));
            entry.or_insert_with(|| MixEntry { ask: ask.clone(), weight: 0 }).weight += 1;
        }
        counts.into_values().collect()
    }
    /// The model of a node; `None` if it has no GPU.
    pub fn model_of(&self, node: &Node) -> Option<ModelId> {
        self.models.get(&node.gpus.first()?.model).copied()
    }

    /// The nodes, lowest rank first.
    ///
    /// # Errors
    /// Ranks that are not those of the nodes.
    pub fn nodes_by_rank(&self, arrivals: &Arrivals) -> Result<Vec<&Node>, TraceError> {
        let mut by_name: Vec<&Node> = self.state.nodes.iter().collect();
        by_name.sort_by(|a, b| a.name.cmp(&b.name));
        let mut ranked: BTreeMap<u32, &Node> = BTreeMap::new();
        ranked.extend(arrivals.ranks.iter().copied().zip(by_name.iter().copied()));
        if ranked.len() != by_name.len() || arrivals.ranks.len() != by_name.len() {
            return Err(TraceError::Ranks(arrivals.seed, by_name.len()));
        }
        Ok(ranked.into_values().collect())
    }
}

fn pod(request: &Workload, models: &BTreeMap<String, ModelId>) -> Result<Pod, TraceError> {
    let unlike = |what| TraceError::Unlike(request.name.clone(), what);
    let [ask] = request.any_of.as_slice() else { return Err(unlike("a pod asks one thing")) };
    let (gpus, gpu_milli) = match ask {
        Ask::NodeOnly {} => (0, 0),
        Ask::Fraction(fraction) => (1, fraction.milli),
        Ask::Gpus(WholeGpus { count, .. }) => {
            (u16::try_from(*count).map_err(|_| unlike("too many GPUs"))?, WHOLE_MILLI)
        }
        _ => return Err(unlike("a pod asks no GPU, a part of one, or whole ones")),
    };
    let accepted = request.models.iter().filter_map(|name| models.get(name));
    let accepted = if request.models.is_empty() {
        Models::all()
    } else {
        Models(accepted.fold(0, |set, model| set | 1 << model.0))
    };
    Ok(Pod { cpu_milli: request.cpu_milli, memory_mib: request.memory_mib, gpu_milli, gpus, models: accepted })
}
