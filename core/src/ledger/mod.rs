//! The state of the engine: every GPU and node in compact form, the leases, and the
//! versions that decisions and commits compare.

mod classes;
mod commit;
mod load;
mod modes;
mod power;
mod snapshot;
mod spec;

pub use classes::{Class, ClassIndex, ClassKey, Rank};
pub use commit::{CommitError, Committed};
pub use modes::Switched;
pub use power::{NodePower, RackRecord};
pub use spec::{Slot, Spec, StateKey, driver_major};

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::catalog::Catalog;
use crate::fleet::{ComputeInstance, Health, Topology};
use crate::ids::{ClassId, GpuId, Id, IdVec, NodeId, RackId, SpecId};
use crate::place::{Policy, Surroundings, Term};
use crate::space::{DeviceAsk, SpaceState, Take};
use crate::workload::{MpsPriority, Requirement};

/// Free GPUs of a node beyond this number count as this many: what a policy sees of big
/// nodes stops changing, so that a node of thousands of GPUs costs no more than a small one.
pub const PEERS_MAX: u8 = 17;

/// An id of a lease, in the order of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseId(pub u64);

/// A GPU.
#[derive(Clone, Debug)]
pub struct GpuRecord {
    /// Its node.
    pub node: NodeId,
    /// Its kind.
    pub spec: SpecId,
    /// What is on it.
    pub state: StateKey,
    /// Driver's index on the node.
    pub index: u32,
    /// NUMA node of the host, where known.
    pub numa_node: Option<u16>,
    /// Health.
    pub health: Health,
    /// Takes nothing new by its own cordon.
    pub cordoned: bool,
    class: Option<ClassId>,
    changed_at: u64,
    names: Option<Box<GpuNames>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GpuNames {
    uuid: Option<String>,
    pci_address: Option<String>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct NodeRecord {
    /// Name.
    pub name: String,
    /// Region, where known.
    pub region: Option<String>,
    /// Zone, where known.
    pub zone: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Takes nothing new.
    pub cordoned: bool,
    /// CPU allocatable; `None`: no limit.
    pub cpu_milli: Option<u64>,
    /// Memory allocatable; `None`: no limit.
    pub memory_mib: Option<u64>,
    /// CPU taken.
    pub cpu_used: u64,
    /// Memory taken.
    pub memory_used: u64,
    /// Its rack, cap and draw.
    pub power: NodePower,
    /// Links of its GPUs.
    pub topology: Topology,
    gpus: Range<u32>,
    users: u32,
    wholly_free: u32,
    document: Box<crate::fleet::Node>,
}

impl NodeRecord {
    /// CPU left; `None`: no limit.
    pub fn cpu_free(&self) -> Option<u64> {
        self.cpu_milli.map(|c| c.saturating_sub(self.cpu_used))
    }
    /// Memory left; `None`: no limit.
    pub fn memory_free(&self) -> Option<u64> {
        self.memory_mib.map(|m| m.saturating_sub(self.memory_used))
    }
    /// Whether anything runs on it.
    pub fn is_open(&self) -> bool {
        self.users > 0
    }
    /// Ids of its GPUs, in document order.
    pub fn gpus(&self) -> impl DoubleEndedIterator<Item = GpuId> + ExactSizeIterator + Clone + use<> {
        (self.gpus.start as usize..self.gpus.end as usize).map(GpuId::from_index)
    }
    /// The label's value; region, zone, rack and name are labels too.
    pub fn label(&self, key: &str) -> Option<&str> {
        match key {
            "slicewise/region" => self.region.as_deref(),
            "slicewise/zone" => self.zone.as_deref(),
            "slicewise/rack" => self.rack(),
            "slicewise/name" => Some(&self.name),
            _ => self.labels.get(key).map(String::as_str),
        }
    }
}

/// A part of a GPU that a lease has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartRecord {
    /// Member of the lease.
    pub member: u32,
    /// Alternative that the member got.
    pub alternative: u32,
    /// Priority of its MPS clients.
    pub mps_priority: MpsPriority,
    /// Node of the member.
    pub node: NodeId,
    /// GPU and what of it; `None` for a member without a GPU.
    pub on: Option<(GpuId, Take)>,
}

impl PartRecord {
    /// Whether it is on this GPU.
    pub fn is_on(&self, gpu: GpuId) -> bool {
        self.on.is_some_and(|(own, _)| own == gpu)
    }
}

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Name.
    pub name: String,
    /// Tenant.
    pub tenant: Option<String>,
    /// Labels that others' dislikes match.
    pub labels: BTreeMap<String, String>,
    /// What it keeps away from.
    pub keeps_away: Vec<Requirement>,
    /// Nodes it may be on.
    pub allowed_nodes: Vec<Requirement>,
    /// May not be moved.
    pub pinned: bool,
    /// CPU per member.
    pub cpu_milli: u64,
    /// Memory per member.
    pub memory_mib: u64,
    /// What its members have.
    pub parts: Vec<PartRecord>,
}

impl LeaseRecord {
    /// Whether the lease has this part.
    pub fn has(&self, on: (GpuId, Take)) -> bool {
        self.parts.iter().any(|part| part.on == Some(on))
    }
}

/// An instance that no lease owns: found on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FoundInstance {
    name: Option<String>,
    id: Option<u32>,
    uuid: Option<String>,
    pinned: bool,
    compute: Vec<ComputeInstance>,
}

/// The state of the engine.
#[derive(Clone, Debug)]
pub struct Ledger {
    catalog: Catalog,
    policy: Policy,
    version: u64,
    models: Vec<crate::catalog::Model>,
    boards: Vec<crate::catalog::Board>,
    specs: IdVec<SpecId, Spec>,
    racks: IdVec<RackId, RackRecord>,
    nodes: IdVec<NodeId, NodeRecord>,
    gpus: IdVec<GpuId, GpuRecord>,
    index: ClassIndex,
    node_names: BTreeMap<String, NodeId>,
    leases: BTreeMap<LeaseId, LeaseRecord>,
    lease_names: BTreeMap<String, LeaseId>,
    next_lease: u64,
    owners: BTreeMap<(GpuId, u16), BTreeSet<LeaseId>>,
    found: BTreeMap<(GpuId, u16), FoundInstance>,
    /// Leases that selectors must look at, by node: those with labels or dislikes.
    noted: BTreeMap<NodeId, BTreeSet<LeaseId>>,
    /// Leases with dislikes.
    disliking: usize,
    /// GPUs that take nothing new.
    closed: BTreeSet<GpuId>,
    /// Placements keep to a power cap somewhere.
    power_caps: bool,
    /// Nodes by CPU left, those without a limit last.
    nodes_by_cpu: BTreeSet<(u64, NodeId)>,
    /// Some GPUs may change their mode.
    has_modes: bool,
}

impl Ledger {
    /// The catalog in force: built in, with the document's models.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }
    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
    /// The terms of the policy.
    pub fn terms(&self) -> &[Term] {
        &self.policy.terms
    }
    /// The version: one more after each change.
    pub fn version(&self) -> u64 {
        self.version
    }
    /// The device kinds.
    pub fn specs(&self) -> &IdVec<SpecId, Spec> {
        &self.specs
    }
    /// The nodes.
    pub fn nodes(&self) -> &IdVec<NodeId, NodeRecord> {
        &self.nodes
    }
    /// The GPUs.
    pub fn gpus(&self) -> &IdVec<GpuId, GpuRecord> {
        &self.gpus
    }
    /// The classes of GPUs that take work.
    pub fn index(&self) -> &ClassIndex {
        &self.index
    }
    /// The leases, in the order of admission.
    pub fn leases(&self) -> impl ExactSizeIterator<Item = (LeaseId, &LeaseRecord)> {
        self.leases.iter().map(|(id, lease)| (*id, lease))
    }
    /// The lease of this name.
    pub fn lease(&self, name: &str) -> Option<&LeaseRecord> {
        self.leases.get(self.lease_names.get(name)?)
    }
    /// The lease of this id.
    pub fn lease_of(&self, id: LeaseId) -> Option<&LeaseRecord> {
        self.leases.get(&id)
    }
    /// The node of this name.
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.node_names.get(name).copied()
    }
    /// The GPU with this index on the node.
    pub fn gpu_at(&self, node: NodeId, index: u32) -> Option<GpuId> {
        let record = &self.nodes[node];
        let expected = GpuId::from_index((record.gpus.start + index.min(record.gpus.end)) as usize);
        match self.gpus.lookup(expected) {
            Some(gpu) if gpu.node == node && gpu.index == index => Some(expected),
            _ => record.gpus().find(|g| self.gpus[*g].index == index),
        }
    }
    /// UUID of a GPU, where known.
    pub fn uuid(&self, gpu: GpuId) -> Option<&str> {
        self.gpus[gpu].names.as_ref()?.uuid.as_deref()
    }
    /// The kind of a GPU.
    pub fn spec(&self, gpu: GpuId) -> &Spec {
        &self.specs[self.gpus[gpu].spec]
    }
    /// What is on a GPU.
    pub fn state(&self, gpu: GpuId) -> Cow<'_, SpaceState> {
        let record = &self.gpus[gpu];
        self.specs[record.spec].state(record.state)
    }
    /// How many parts of a GPU are in use, by leases or as found on the device.
    pub fn used_parts(&self, gpu: GpuId) -> usize {
        match &*self.state(gpu) {
            SpaceState::Grid(layout) => {
                let inside = |hold: &crate::space::Hold| match hold {
                    crate::space::Hold::Idle => 0,
                    crate::space::Hold::Busy => 1,
                    crate::space::Hold::Shared(inside) => inside.used().count(),
                };
                layout.entries().iter().map(|e| inside(&e.hold)).sum()
            }
            SpaceState::Uniform(shares) => shares.taken.into(),
            SpaceState::Fluid(_) => {
                self.leases_on(gpu).flat_map(|lease| &lease.parts).filter(|part| part.is_on(gpu)).count()
            }
        }
    }
    /// Leases with parts on a GPU, in the order of admission.
    pub fn leases_on(&self, gpu: GpuId) -> impl Iterator<Item = &LeaseRecord> {
        let ids: BTreeSet<LeaseId> =
            self.owners.range((gpu, 0)..=(gpu, u16::MAX)).flat_map(|(_, ids)| ids).copied().collect();
        ids.into_iter().filter_map(|id| self.leases.get(&id))
    }
    /// Whether a GPU takes new work.
    pub fn accepts(&self, gpu: GpuId) -> bool {
        self.gpus[gpu].class.is_some()
    }
    /// The version at which a GPU last changed.
    pub fn changed_at(&self, gpu: GpuId) -> u64 {
        self.gpus[gpu].changed_at
    }
    /// Leases on the instance that starts at this cell of a GPU, or, with start 0, on a
    /// GPU without cells.
    pub fn owners(&self, gpu: GpuId, start: u16) -> impl Iterator<Item = (LeaseId, &LeaseRecord)> {
        let ids = self.owners.get(&(gpu, start)).into_iter().flatten();
        ids.filter_map(|id| Some((*id, self.leases.get(id)?)))
    }
    /// The names given to the instance that starts at this cell: its leases', or its own.
    pub fn given_names_at(&self, gpu: GpuId, start: u16) -> Vec<String> {
        let owners: Vec<String> = self.owners(gpu, start).map(|(_, lease)| lease.name.clone()).collect();
        if !owners.is_empty() {
            return owners;
        }
        self.found.get(&(gpu, start)).and_then(|f| f.name.clone()).into_iter().collect()
    }
    /// How people call the instance that starts at this cell: the names given to it, else
    /// its profile and start.
    pub fn names_at(&self, gpu: GpuId, start: u16) -> Vec<String> {
        let given = self.given_names_at(gpu, start);
        if !given.is_empty() {
            return given;
        }
        let profile = match &*self.state(gpu) {
            SpaceState::Grid(layout) => layout.at(start).map(|e| self.spec(gpu).profile_name(e.profile).into()),
            _ => None,
        };
        Vec::from([alloc::format!("{}@{start}", profile.unwrap_or_else(|| String::from("instance")))])
    }
    /// Driver's id of the instance that starts at this cell, where known.
    pub fn instance_id(&self, gpu: GpuId, start: u16) -> Option<u32> {
        self.found.get(&(gpu, start))?.id
    }
    /// Compute instances that the document lists inside the instance at this cell; none are
    /// listed where the default one is all there is.
    pub fn listed_compute(&self, gpu: GpuId, start: u16) -> &[ComputeInstance] {
        self.found.get(&(gpu, start)).map_or(&[], |f| &f.compute)
    }
    /// Whether what starts at this cell may not be moved.
    pub fn is_pinned(&self, gpu: GpuId, start: u16) -> bool {
        self.found.get(&(gpu, start)).is_some_and(|f| f.pinned) || self.owners(gpu, start).any(|(_, l)| l.pinned)
    }
    /// Whether any lease keeps others away.
    pub fn has_dislikes(&self) -> bool {
        self.disliking > 0
    }
    /// Leases with labels or dislikes on a node.
    pub fn noted(&self, node: NodeId) -> impl Iterator<Item = &LeaseRecord> {
        self.noted.get(&node).into_iter().flatten().filter_map(|id| self.leases.get(id))
    }
    /// What a policy sees around a GPU in a state.
    fn around(&self, gpu: GpuId, state: StateKey) -> Surroundings {
        let record = &self.gpus[gpu];
        let node = &self.nodes[record.node];
        let is_free = matches!(state, StateKey::Fluid(_)) && state == self.specs[record.spec].empty();
        let peers = if is_free { u8::try_from(node.wholly_free).unwrap_or(u8::MAX).min(PEERS_MAX) } else { 0 };
        Surroundings { open: node.is_open(), peers }
    }

    /// Puts a GPU into its class.
    fn enlist(&mut self, gpu: GpuId) {
        let record = &self.gpus[gpu];
        let node = &self.nodes[record.node];
        if record.cordoned || node.cordoned || record.health != Health::Healthy {
            self.closed.insert(gpu);
            return;
        }
        let (spec, state) = (record.spec, record.state);
        let key = ClassKey { spec, state, around: self.around(gpu, state) };
        let cpu = node.cpu_free();
        let (kind, terms) = (&self.specs[spec], &self.policy.terms);
        let rank = || kind.watched().map(|ask| kind.rank(key, ask, terms)).collect();
        let class = self.index.insert(key, gpu, cpu, rank);
        self.gpus[gpu].class = Some(class);
    }

    /// Keeps the classes ranked for an amount that was asked of this device kind.
    fn watch(&mut self, spec: SpecId, ask: DeviceAsk) {
        if let Some(slot) = self.specs[spec].watch(ask, self.version) {
            let (kind, terms) = (&self.specs[spec], &self.policy.terms);
            self.index.rank(spec, slot, |key| kind.rank(key, ask, terms));
        }
    }

    /// Takes a GPU out of its class.
    fn delist(&mut self, gpu: GpuId) {
        if let Some(class) = self.gpus[gpu].class.take() {
            let cpu = self.nodes[self.gpus[gpu].node].cpu_free();
            self.index.remove(class, gpu, cpu);
        } else {
            self.closed.remove(&gpu);
        }
    }

    /// GPUs that take nothing new: cordoned, on a cordoned node, or not healthy.
    pub fn closed(&self) -> impl Iterator<Item = GpuId> {
        self.closed.iter().copied()
    }

    /// Nodes with at least this much CPU left, least left first.
    pub fn nodes_with_cpu(&self, cpu_milli: u64) -> impl DoubleEndedIterator<Item = NodeId> {
        self.nodes_by_cpu.range((cpu_milli, NodeId(0))..).map(|(_, node)| *node)
    }

    fn rank_node(&mut self, node: NodeId) {
        self.nodes_by_cpu.insert((self.nodes[node].cpu_free().unwrap_or(u64::MAX), node));
    }

    fn unrank_node(&mut self, node: NodeId) {
        self.nodes_by_cpu.remove(&(self.nodes[node].cpu_free().unwrap_or(u64::MAX), node));
    }
}
