//! Changes of mode: which GPUs can be given which other kind, and how documents say it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Class, Ledger, Spec, StateKey};
use crate::decision::ModeChange;
use crate::error::{Fault, InputError};
use crate::ids::{ClassId, GpuId, SpecId};

/// GPUs that are given another mode, each with the kind that it then is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switched(BTreeMap<GpuId, SpecId>);

impl Switched {
    /// The kind that a GPU is given, if it is given another.
    pub fn get(&self, gpu: GpuId) -> Option<SpecId> {
        self.0.get(&gpu).copied()
    }
    /// Gives a GPU a kind, or with `None` the one that it has.
    pub fn set(&mut self, gpu: GpuId, spec: Option<SpecId>) {
        match spec {
            Some(spec) => self.0.insert(gpu, spec),
            None => self.0.remove(&gpu),
        };
    }
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (GpuId, SpecId)> {
        self.0.iter().map(|(gpu, spec)| (*gpu, *spec))
    }
}

impl Ledger {
    /// Whether any GPU may change its mode.
    pub fn has_modes(&self) -> bool {
        self.has_modes
    }

    /// The kind of a GPU after changes.
    pub fn spec_after(&self, gpu: GpuId, switched: &Switched) -> SpecId {
        switched.get(gpu).unwrap_or(self.gpus[gpu].spec)
    }

    /// Whether a GPU can be given a kind that it is not of: its modes have it, and nothing
    /// uses it. With `keep_idle`, idle instances stay too.
    pub fn may_become(&self, gpu: GpuId, spec: SpecId, keep_idle: bool) -> bool {
        let record = &self.gpus[gpu];
        let kind = &self.specs[record.spec];
        kind.siblings().contains(&spec) && is_vacant(kind, record.state, keep_idle)
    }

    /// Classes of GPUs of other kinds that can be given this one; see [`Ledger::may_become`].
    pub fn convertible(&self, spec: SpecId, keep_idle: bool) -> impl Iterator<Item = (ClassId, &Class)> {
        let classes = self.specs[spec].siblings().iter().flat_map(|other| self.index.of_spec(*other));
        classes.filter(move |(_, class)| is_vacant(&self.specs[class.key.spec], class.key.state, keep_idle))
    }

    /// Reads changes of mode. Whether the GPUs are empty is left to the caller.
    ///
    /// # Errors
    /// A GPU that is not there or named twice, or a mode that it may not be in.
    pub fn read_changes(&self, changes: &[ModeChange]) -> Result<Switched, InputError> {
        let mut switched = Switched::default();
        for (i, change) in changes.iter().enumerate() {
            let unknown =
                |kind, name| InputError::new(alloc::format!("mode_changes[{i}]"), Fault::Unknown { kind, name });
            let node = self.node_named(&change.node).ok_or_else(|| unknown("node", change.node.clone()))?;
            let gpu =
                self.gpu_at(node, change.gpu).ok_or_else(|| unknown("GPU index", alloc::format!("{}", change.gpu)))?;
            let mut siblings = self.spec(gpu).siblings().iter().copied();
            let spec = siblings
                .find(|id| self.specs[*id].mode() == change.to)
                .ok_or_else(|| unknown("mode of this GPU", change.to.name().into()))?;
            if switched.get(gpu).is_some() {
                let text = alloc::format!("GPU {} of `{}`", change.gpu, change.node);
                return Err(InputError::new(alloc::format!("mode_changes[{i}]"), Fault::Duplicate(text)));
            }
            switched.set(gpu, Some(spec));
        }
        Ok(switched)
    }

    /// Changes of mode in the words of documents.
    pub fn changes(&self, switched: &Switched) -> Vec<ModeChange> {
        let change = |(gpu, spec): (GpuId, SpecId)| ModeChange {
            node: self.nodes[self.gpus[gpu].node].name.clone(),
            gpu: self.gpus[gpu].index,
            from: self.spec(gpu).mode(),
            to: self.specs[spec].mode(),
        };
        switched.iter().map(change).collect()
    }
}

/// Whether nothing uses a GPU, or, with `keep_idle`, nothing is on it.
fn is_vacant(kind: &Spec, state: StateKey, keep_idle: bool) -> bool {
    state == kind.empty() || (!keep_idle && kind.space().is_unused(&kind.state(state)))
}
