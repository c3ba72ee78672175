//! The class index: GPUs that are alike for placement, counted instead of listed, so
//! that a decision looks at classes and not at GPUs.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound;

use super::spec::{Slot, StateKey};
use crate::ids::{ClassId, GpuId, Id, IdVec, SpecId};
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
    /// The first member: what most decisions end with, kept since the set is a deep tree.
    first: Option<GpuId>,
    ranked: Vec<Rank>,
}

/// The best take for one watched ask on a class, with its rank; `None` if none fits.
pub type Rank = Option<(Key, Take)>;

impl Class {
    /// The member that comes first in the fleet.
    pub fn first(&self) -> Option<GpuId> {
        self.first
    }
    fn set_rank(&mut self, slot: Slot, rank: Rank) -> Rank {
        if self.ranked.len() <= slot.0 {
            self.ranked.resize(slot.0 + 1, None);
        }
        self.ranked.get_mut(slot.0).and_then(|old| core::mem::replace(old, rank))
    }
}

/// All classes.
#[derive(Clone, Debug, Default)]
pub struct ClassIndex {
    classes: IdVec<ClassId, Class>,
    by_key: BTreeMap<ClassKey, ClassId>,
    vacant: Vec<ClassId>,
    by_spec: Vec<BTreeSet<ClassId>>,
    /// By device kind and slot: the classes that have room, best first.
    ranks: Vec<Vec<BTreeMap<(Key, ClassId), Take>>>,
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
    /// Classes with members that have room for the watched ask, best first.
    pub fn ranked(&self, spec: SpecId, slot: Slot) -> impl Iterator<Item = (Key, Take, ClassId)> {
        let ranks = self.ranks.get(spec.index()).and_then(|r| r.get(slot.0));
        ranks.into_iter().flatten().map(|((key, id), take)| (*key, *take, *id))
    }
    /// The members of several classes, merged in fleet order.
    pub fn in_fleet_order(&self, classes: impl Iterator<Item = ClassId>) -> impl Iterator<Item = GpuId> {
        let firsts = classes.filter_map(|id| Some((self.class(id).first()?, id)));
        let mut heads: BTreeSet<(GpuId, ClassId)> = firsts.collect();
        core::iter::from_fn(move || {
            let (gpu, id) = heads.pop_first()?;
            let rest = (Bound::Excluded(gpu), Bound::Unbounded);
            heads.extend(self.class(id).members.range(rest).next().map(|next| (*next, id)));
            Some(gpu)
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

    /// Adds a GPU. `rank` gives the ranks of the watched asks, slot by slot, when the class
    /// is new.
    pub fn insert(&mut self, key: ClassKey, gpu: GpuId, cpu: Option<u64>, rank: impl FnOnce() -> Vec<Rank>) -> ClassId {
        let id = match self.by_key.get(&key) {
            Some(id) => *id,
            None => {
                let ranked = rank();
                let class = Class { key, members: BTreeSet::new(), by_cpu: BTreeSet::new(), first: None, ranked };
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
        class.first = class.first.map_or(Some(gpu), |first| Some(first.min(gpu)));
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
        if class.first == Some(gpu) {
            class.first = class.members.first().copied();
        }
        if let Some(cpu) = cpu {
            class.by_cpu.remove(&(cpu, gpu));
        }
        if class.members.is_empty() {
            self.unlist(id);
        }
    }

    /// Ranks the classes of a device kind anew for one slot.
    pub fn rank(&mut self, spec: SpecId, slot: Slot, rank: impl Fn(ClassKey) -> Rank) {
        let Some(ids) = self.by_spec.get(spec.index()) else { return };
        let mut ranks = BTreeMap::new();
        for id in ids {
            let class = &mut self.classes[*id];
            let new = rank(class.key);
            class.set_rank(slot, new);
            if let Some((key, take)) = new {
                ranks.insert((key, *id), take);
            }
        }
        if let Some(slots) = self.ranks.get_mut(spec.index()) {
            if slots.len() <= slot.0 {
                slots.resize_with(slot.0 + 1, BTreeMap::new);
            }
            slots.get_mut(slot.0).into_iter().for_each(|old| *old = core::mem::take(&mut ranks));
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
            ranks.resize_with(class.ranked.len(), BTreeMap::new);
        }
        for (map, rank) in ranks.iter_mut().zip(&class.ranked) {
            if let Some((key, take)) = rank {
                map.insert((*key, id), *take);
            }
        }
    }

    fn unlist(&mut self, id: ClassId) {
        let class = &self.classes[id];
        let spec = class.key.spec.index();
        if let Some(set) = self.by_spec.get_mut(spec) {
            set.remove(&id);
        }
        for (map, rank) in self.ranks.get_mut(spec).into_iter().flatten().zip(&class.ranked) {
            if let Some((key, _)) = rank {
                map.remove(&(*key, id));
            }
        }
        // Amounts have too many states to keep each; layouts recur, and measuring one is dear.
        if matches!(class.key.state, StateKey::Fluid(_)) {
            self.by_key.remove(&class.key);
            self.vacant.push(id);
        }
    }
}
