//! The class index: GPUs that are alike for placement, counted instead of listed, so
//! that a decision looks at classes and not at GPUs.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::spec::StateKey;
use crate::ids::{ClassId, GpuId, Id, IdVec, ProfileId, SpecId};
use crate::place::{Key, Surroundings};
use crate::space::Take;

/// What makes GPUs alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassKey {
    /// Device kind.
    pub spec: SpecId,
    /// What is on the device.
    pub state: StateKey,
    /// What a policy knows of the node.
    pub around: Surroundings,
}

/// GPUs that are alike.
#[derive(Clone, Debug)]
pub struct Class {
    /// What they share.
    pub key: ClassKey,
    /// The GPUs, in fleet order.
    pub members: BTreeSet<GpuId>,
    /// Those on nodes with a CPU limit, by CPU left on the node.
    pub by_cpu: BTreeSet<(u64, GpuId)>,
    ranked: Vec<Option<(Key, Take)>>,
}

/// All classes.
#[derive(Clone, Debug, Default)]
pub struct ClassIndex {
    classes: IdVec<ClassId, Class>,
    by_key: BTreeMap<ClassKey, ClassId>,
    vacant: Vec<ClassId>,
    by_spec: Vec<BTreeSet<ClassId>>,
    ranks: Vec<Vec<BTreeSet<(Key, ClassId)>>>,
}

impl ClassIndex {
    /// The class.
    pub fn class(&self, id: ClassId) -> &Class {
        &self.classes[id]
    }
    /// Classes of a device kind that have members.
    pub fn of_spec(&self, spec: SpecId) -> impl Iterator<Item = (ClassId, &Class)> {
        self.by_spec.get(spec.index()).into_iter().flatten().map(|id| (*id, &self.classes[*id]))
    }
    /// Classes with members that can take the profile, best first.
    pub fn ranked(&self, spec: SpecId, profile: ProfileId) -> impl Iterator<Item = (Key, Take, &Class)> {
        let ranks = self.ranks.get(spec.index()).and_then(|r| r.get(profile.index()));
        ranks.into_iter().flatten().filter_map(move |(key, id)| {
            let class = &self.classes[*id];
            let (_, take) = class.ranked.get(profile.index()).copied().flatten()?;
            Some((*key, take, class))
        })
    }
    /// Classes that have members.
    pub fn len(&self) -> usize {
        self.by_spec.iter().map(BTreeSet::len).sum()
    }
    /// Whether no GPU takes work.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a GPU. `rank` gives the best take for each profile when the class is new.
    pub fn insert(
        &mut self,
        key: ClassKey,
        gpu: GpuId,
        cpu: Option<u64>,
        rank: impl FnOnce() -> Vec<Option<(Key, Take)>>,
    ) -> ClassId {
        let id = match self.by_key.get(&key) {
            Some(id) => *id,
            None => {
                let class = Class { key, members: BTreeSet::new(), by_cpu: BTreeSet::new(), ranked: rank() };
                let id = match self.vacant.pop() {
                    Some(id) => {
                        self.classes[id] = class;
                        id
                    }
                    None => self.classes.push(class),
                };
                self.by_key.insert(key, id);
                id
            }
        };
        let class = &mut self.classes[id];
        let was_empty = class.members.is_empty();
        class.members.insert(gpu);
        if let Some(cpu) = cpu {
            class.by_cpu.insert((cpu, gpu));
        }
        if was_empty {
            self.list(id);
        }
        id
    }

    /// Takes a GPU out of its class.
    pub fn remove(&mut self, id: ClassId, gpu: GpuId, cpu: Option<u64>) {
        let class = &mut self.classes[id];
        class.members.remove(&gpu);
        if let Some(cpu) = cpu {
            class.by_cpu.remove(&(cpu, gpu));
        }
        if class.members.is_empty() {
            self.unlist(id);
        }
    }

    fn list(&mut self, id: ClassId) {
        let class = &self.classes[id];
        let spec = class.key.spec.index();
        if self.by_spec.len() <= spec {
            self.by_spec.resize_with(spec + 1, BTreeSet::new);
            self.ranks.resize_with(spec + 1, Vec::new);
        }
        if let Some(set) = self.by_spec.get_mut(spec) {
            set.insert(id);
        }
        let Some(ranks) = self.ranks.get_mut(spec) else { return };
        if ranks.len() < class.ranked.len() {
            ranks.resize_with(class.ranked.len(), BTreeSet::new);
        }
        for (set, rank) in ranks.iter_mut().zip(&class.ranked) {
            if let Some((key, _)) = rank {
                set.insert((*key, id));
            }
        }
    }

    fn unlist(&mut self, id: ClassId) {
        let class = &self.classes[id];
        let spec = class.key.spec.index();
        if let Some(set) = self.by_spec.get_mut(spec) {
            set.remove(&id);
        }
        for (set, rank) in self.ranks.get_mut(spec).into_iter().flatten().zip(&class.ranked) {
            if let Some((key, _)) = rank {
                set.remove(&(*key, id));
            }
        }
        // Amounts have too many states to keep each; layouts recur, and measuring one is dear.
        if matches!(class.key.state, StateKey::Fluid(_)) {
            self.by_key.remove(&class.key);
            self.vacant.push(id);
        }
    }
}
