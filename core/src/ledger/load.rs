//! From the document to the engine's form, with every check that a document needs.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{
    ClassIndex, FoundInstance, GpuNames, GpuRecord, LeaseId, LeaseRecord, Ledger, NodeRecord, PartRecord, Spec,
    StateKey, Switched,
};
use crate::catalog::Catalog;
use crate::error::{Fault, InputError};
use crate::fleet::{Gpu, Instance, Lease, Mode, Node, Part, Placement, State, Topology, Usage};
use crate::ids::{GpuId, Id, IdVec, NodeId, SpecId};
use crate::place::Policy;
use crate::space::{DeviceAsk, Entry, Grid, Hold, Layout, SpaceState, Take};
use crate::workload::Resolver;

impl Ledger {
    /// Reads a state document.
    ///
    /// # Errors
    /// Anything in the document that contradicts itself or the catalog, with its path.
    pub fn new(mut catalog: Catalog, policy: Policy, state: &State) -> Result<Self, InputError> {
        for (i, model) in state.models.iter().enumerate() {
            catalog.add(model.clone()).map_err(|e| e.within(&alloc::format!("models[{i}]")))?;
        }
        for (i, board) in state.boards.iter().enumerate() {
            catalog.add_board(board.clone()).map_err(|e| e.within(&alloc::format!("boards[{i}]")))?;
        }
        let mut ledger = Self {
            catalog,
            policy,
            version: state.version,
            models: state.models.clone(),
            boards: state.boards.clone(),
            specs: IdVec::default(),
            racks: IdVec::default(),
            nodes: IdVec::default(),
            gpus: IdVec::default(),
            index: ClassIndex::default(),
            node_names: Default::default(),
            leases: Default::default(),
            lease_names: Default::default(),
            next_lease: 0,
            owners: Default::default(),
            found: Default::default(),
            noted: Default::default(),
            disliking: 0,
            closed: Default::default(),
            power_caps: false,
            nodes_by_cpu: Default::default(),
            has_modes: false,
        };
        ledger.load_racks(state)?;
        for (i, node) in state.nodes.iter().enumerate() {
            ledger.load_node(node).map_err(|e| e.within(&alloc::format!("nodes[{i}]")))?;
        }
        ledger.load_mix()?;
        for (i, lease) in state.leases.iter().enumerate() {
            ledger.load_lease(lease).map_err(|e| e.within(&alloc::format!("leases[{i}]")))?;
        }
        ledger.load_draws()?;
        let gpus: Vec<GpuId> = ledger.gpus.ids().collect();
        for &gpu in &gpus {
            ledger.count_use(gpu);
        }
        for gpu in gpus {
            ledger.enlist(gpu);
        }
        let nodes: Vec<NodeId> = ledger.nodes.ids().collect();
        nodes.into_iter().for_each(|node| ledger.rank_node(node));
        Ok(ledger)
    }

    fn load_node(&mut self, node: &Node) -> Result<(), InputError> {
        if node.name.is_empty() {
            return Err(InputError::new("name", Fault::Invalid(String::from("a node needs a name"))));
        }
        let id = NodeId::from_index(self.nodes.len());
        if self.node_names.insert(node.name.clone(), id).is_some() {
            return Err(InputError::new("name", Fault::Duplicate(node.name.clone())));
        }
        let first = self.gpus.len() as u32;
        let topology = Topology::of(node)?;
        let power = self.power_of(node)?;
        self.nodes.push(NodeRecord {
            name: node.name.clone(),
            region: node.region.clone(),
            zone: node.zone.clone(),
            labels: node.labels.clone(),
            cordoned: node.cordoned,
            cpu_milli: node.cpu_milli,
            memory_mib: node.memory_mib,
            cpu_used: 0,
            memory_used: 0,
            power,
            topology,
            gpus: first..first + node.gpus.len() as u32,
            users: 0,
            wholly_free: 0,
            document: Box::new(Node { gpus: Vec::new(), labels: Default::default(), ..node.clone() }),
        });
        let mut indices = BTreeSet::new();
        for (position, gpu) in node.gpus.iter().enumerate() {
            let index = gpu.index.unwrap_or(position as u32);
            let at = alloc::format!("gpus[{position}]");
            if !indices.insert(index) {
                return Err(InputError::new("index", Fault::Duplicate(index.to_string())).within(&at));
            }
            self.load_gpu(id, index, gpu).map_err(|e| e.within(&at))?;
        }
        Ok(())
    }

    fn load_gpu(&mut self, node: NodeId, index: u32, gpu: &Gpu) -> Result<(), InputError> {
        let spec = self.spec_of(gpu)?;
        let id = GpuId::from_index(self.gpus.len());
        let state = if gpu.instances.is_empty() {
            self.specs[spec].empty()
        } else {
            let layout = self.load_instances(spec, gpu)?;
            self.specs[spec].intern(&SpaceState::Grid(layout), &self.policy.terms)
        };
        for instance in &gpu.instances {
            self.found.insert((id, instance.start), found(instance));
        }
        let names = (gpu.uuid.is_some() || gpu.pci_address.is_some())
            .then(|| Box::new(GpuNames { uuid: gpu.uuid.clone(), pci_address: gpu.pci_address.clone() }));
        self.gpus.push(GpuRecord {
            node,
            spec,
            state,
            index,
            numa_node: gpu.numa_node,
            health: gpu.health,
            cordoned: gpu.cordoned,
            class: None,
            changed_at: 0,
            names,
        });
        Ok(())
    }

    fn spec_of(&mut self, gpu: &Gpu) -> Result<SpecId, InputError> {
        // Fleets are long runs of alike GPUs: the kind of the last one is the likeliest.
        let last = self.gpus.iter().next_back().map(|(_, g)| g.spec);
        let known = last.into_iter().chain(self.specs.ids()).find(|id| self.specs[*id].is_of(&self.catalog, gpu));
        match known {
            Some(id) => Ok(id),
            None => {
                check_listing(gpu)?;
                match gpu.modes_allowed() {
                    modes if modes.is_empty() => Ok(self.specs.push(Spec::of(&self.catalog, gpu)?)),
                    modes => self.kinds_of(gpu, &modes),
                }
            }
        }
    }

    /// A kind for each mode that a GPU may be in, and which of them it is of. They come in the
    /// order of the modes, so that ids say nothing of the mode that it happens to be in.
    fn kinds_of(&mut self, gpu: &Gpu, modes: &[Mode]) -> Result<SpecId, InputError> {
        let mut kinds = Vec::new();
        for mode in modes {
            let kind = Spec::of(&self.catalog, &Gpu { mode: *mode, modes: modes.to_vec(), ..gpu.clone() });
            kinds.push(kind.map_err(|e| match gpu.modes.iter().position(|m| m == mode) {
                Some(position) if *mode != gpu.mode && e.path() == "mode" => {
                    InputError::new(alloc::format!("modes[{position}]"), e.fault().clone())
                }
                _ => e,
            })?);
        }
        let own = modes.iter().take_while(|mode| **mode != gpu.mode).count();
        let own = SpecId::from_index(self.specs.len() + own);
        let ids: Vec<SpecId> = kinds.into_iter().map(|kind| self.specs.push(kind)).collect();
        for id in &ids {
            self.specs[*id].set_siblings(ids.iter().copied().filter(|other| other != id).collect());
        }
        self.has_modes = true;
        Ok(own)
    }

    fn load_instances(&self, spec: SpecId, gpu: &Gpu) -> Result<Layout, InputError> {
        let spec = &self.specs[spec];
        let Some(grid) = spec.grid() else {
            let fault = Fault::Invalid(alloc::format!("a GPU in mode `{}` has no instances", gpu.mode.name()));
            return Err(InputError::new("instances", fault));
        };
        let mut entries = Vec::new();
        for (i, instance) in gpu.instances.iter().enumerate() {
            let entry =
                self.load_instance(spec, grid, instance).map_err(|e| e.within(&alloc::format!("instances[{i}]")))?;
            entries.push(entry);
        }
        grid.layout(entries).map_err(|(entry, obstacle)| {
            let name = spec.profile_name(entry.profile);
            let is_it = |i: &Instance| i.start == entry.start && spec.named(&i.profile) == spec.named(name);
            let at = gpu.instances.iter().rposition(is_it).unwrap_or(0);
            let fault = Fault::Overlap(alloc::format!("{name} at {}", entry.start), String::from(obstacle.text()));
            InputError::new(alloc::format!("instances[{at}]"), fault)
        })
    }

    fn load_instance(&self, spec: &Spec, grid: &Grid, instance: &Instance) -> Result<Entry, InputError> {
        let name = &instance.profile;
        let profile = match spec.named(name) {
            Some(DeviceAsk::Instance(profile)) => profile,
            _ if self.catalog.knows_profile(name) => {
                let fault = Fault::Unknown { kind: "profile of this GPU", name: name.clone() };
                return Err(InputError::new("profile", fault));
            }
            _ => return Err(InputError::new("profile", Fault::UnknownProfile(name.clone()))),
        };
        check_start(spec, grid, profile, instance.start)?;
        let mut hold = if instance.usage == Usage::Idle { Hold::Idle } else { Hold::Busy };
        let explicit = instance.compute_instances.iter().any(|c| c.profile != instance.profile);
        if let (Some(inner), true) = (grid.rows()[profile].inner(), explicit) {
            hold = load_compute(inner, instance)?;
        }
        Ok(Entry { start: instance.start, profile, hold })
    }

    fn load_mix(&mut self) -> Result<(), InputError> {
        for (i, entry) in self.policy.mix.iter().enumerate() {
            Resolver::new(self).check(&entry.ask).map_err(|e| e.within(&alloc::format!("policy.mix[{i}].ask")))?;
        }
        let ids: Vec<SpecId> = self.specs.ids().collect();
        for id in ids {
            let entries = self.policy.mix.iter();
            let mix: Vec<(DeviceAsk, u32)> = entries
                .filter_map(|e| Some((Resolver::new(self).device_ask(&self.specs[id], &e.ask)?, e.weight)))
                .collect();
            let terms = self.policy.terms.clone();
            self.specs[id].set_mix(mix, &terms);
        }
        Ok(())
    }

    fn load_lease(&mut self, lease: &Lease) -> Result<(), InputError> {
        if self.lease_names.contains_key(&lease.name) {
            return Err(InputError::new("name", Fault::Duplicate(lease.name.clone())));
        }
        if lease.placements.is_empty() {
            return Err(InputError::new(
                "placements",
                Fault::Invalid(String::from("a lease holds at least one placement")),
            ));
        }
        let mut parts: Vec<PartRecord> = Vec::new();
        for (i, placement) in lease.placements.iter().enumerate() {
            let at = alloc::format!("placements[{i}]");
            let part = self.part_of(placement).map_err(|e| e.within(&at))?;
            if parts.iter().any(|p| p.member == part.member && p.node != part.node) {
                let fault = Fault::Invalid(alloc::format!("member {} is on two nodes", part.member));
                return Err(InputError::new(at, fault));
            }
            if let Some((gpu, take)) = part.on {
                self.occupy(gpu, take, &lease.name).map_err(|e| e.within(&at))?;
            }
            parts.push(part);
        }
        let record = LeaseRecord {
            name: lease.name.clone(),
            tenant: lease.tenant.clone(),
            labels: lease.labels.clone(),
            keeps_away: lease.keeps_away.clone(),
            allowed_nodes: lease.nodes.clone(),
            pinned: lease.pinned,
            cpu_milli: lease.cpu_milli,
            memory_mib: lease.memory_mib,
            parts,
        };
        for node in member_nodes(&record.parts) {
            let usage = &self.nodes[node];
            let short = usage.cpu_free().is_some_and(|c| c < record.cpu_milli)
                || usage.memory_free().is_some_and(|m| m < record.memory_mib);
            if short {
                let what = alloc::format!("node `{}` has too little CPU or memory for all its leases", usage.name);
                return Err(InputError::new("placements", Fault::Overlap(lease.name.clone(), what)));
            }
            self.charge_node(node, record.cpu_milli, record.memory_mib);
        }
        self.add_lease(record);
        Ok(())
    }

    /// Takes a part of a GPU for a lease of the document. An instance listed as busy, or
    /// idle, on the same cells is the lease's own.
    fn occupy(&mut self, gpu: GpuId, take: Take, lease: &str) -> Result<(), InputError> {
        let record = &self.gpus[gpu];
        let spec = &self.specs[record.spec];
        let mut state = spec.state(record.state).into_owned();
        if let (SpaceState::Grid(layout), Take::Instance { profile, start }) = (&state, take)
            && layout.at(start).is_some_and(|e| e.profile == profile && e.hold == Hold::Busy)
            && !self.owners.contains_key(&(gpu, start))
        {
            return Ok(());
        }
        let own_shared = |layout: &Layout, profile, start, inner, inner_start| {
            let Some(Entry { profile: p, hold: Hold::Shared(inside), .. }) = layout.at(start) else { return false };
            *p == profile && inside.at(inner_start).is_some_and(|e| e.profile == inner)
        };
        if let (SpaceState::Grid(layout), Take::Compute { profile, start, inner, inner_start }) = (&state, take)
            && own_shared(layout, profile, start, inner, inner_start)
            && !self.owns_compute(gpu, start, inner_start)
        {
            return Ok(());
        }
        let after = match (&state, take) {
            (SpaceState::Grid(layout), _) => {
                let put = spec.grid().and_then(|g| g.put(layout, take)).filter(|p| p.destroyed.is_empty());
                put.map(|p| SpaceState::Grid(p.layout))
            }
            _ => spec.space().put(&state, take),
        };
        state = after.ok_or_else(|| {
            let fault = Fault::Overlap(lease.to_string(), String::from("its place is taken or not legal"));
            InputError::new("", fault)
        })?;
        let spec = self.gpus[gpu].spec;
        self.gpus[gpu].state = self.specs[spec].intern(&state, &self.policy.terms);
        Ok(())
    }

    fn owns_compute(&self, gpu: GpuId, start: u16, inner_start: u16) -> bool {
        let same = |take: Take| matches!(take, Take::Compute { start: s, inner_start: i, .. } if s == start && i == inner_start);
        self.owners(gpu, start).any(|(_, l)| l.parts.iter().any(|p| p.on.is_some_and(|(g, t)| g == gpu && same(t))))
    }

    /// Reads a placement of a document.
    ///
    /// # Errors
    /// A node, GPU, profile or start that is not there.
    pub fn part_of(&self, placement: &Placement) -> Result<PartRecord, InputError> {
        self.part_after(placement, &Switched::default())
    }

    /// Reads a placement on GPUs after changes of mode.
    ///
    /// # Errors
    /// See [`Ledger::part_of`].
    pub fn part_after(&self, placement: &Placement, switched: &Switched) -> Result<PartRecord, InputError> {
        let unknown = |path: &str, kind, name: String| InputError::new(path, Fault::Unknown { kind, name });
        let node = self.node_named(&placement.node).ok_or_else(|| unknown("node", "node", placement.node.clone()))?;
        let (member, alternative, mps_priority) = (placement.member, placement.alternative, placement.mps_priority);
        if placement.part == Part::NodeOnly {
            return Ok(PartRecord { member, alternative, mps_priority, node, on: None });
        }
        let index = placement.gpu.ok_or_else(|| InputError::new("gpu", Fault::Invalid(String::from("which GPU?"))))?;
        let gpu = self.gpu_at(node, index).ok_or_else(|| unknown("gpu", "GPU index", index.to_string()))?;
        let spec = &self.specs[self.spec_after(gpu, switched)];
        let offered = |path: &str, name: &str| {
            spec.named(name).ok_or_else(|| unknown(path, "profile of this GPU", name.to_string()))
        };
        let take = match &placement.part {
            Part::NodeOnly | Part::Whole => Take::Whole,
            Part::Fraction { milli, memory_mib, contexts } => {
                Take::Fraction { milli: *milli, mib: *memory_mib, users: *contexts }
            }
            Part::Share { share } => match offered("share", share)? {
                DeviceAsk::Share(share) => Take::Share(share),
                _ => return Err(unknown("share", "share type of this GPU", share.clone())),
            },
            Part::Instance { profile, start, .. } => match offered("profile", profile)? {
                DeviceAsk::Instance(id) => Take::Instance { profile: id, start: *start },
                _ => return Err(unknown("profile", "GPU-instance profile of this GPU", profile.clone())),
            },
            Part::Compute { profile, start, compute_profile, compute_start, .. } => {
                let (DeviceAsk::Instance(outer), Some(grid)) = (offered("profile", profile)?, spec.grid()) else {
                    return Err(unknown("profile", "GPU-instance profile of this GPU", profile.clone()));
                };
                let inner = grid.rows()[outer].inner().and_then(|g| g.find(compute_profile));
                let inner =
                    inner.ok_or_else(|| unknown("compute_profile", "compute profile", compute_profile.clone()))?;
                Take::Compute { profile: outer, start: *start, inner, inner_start: *compute_start }
            }
        };
        Ok(PartRecord { member, alternative, mps_priority, node, on: Some((gpu, take)) })
    }

    /// Registers a lease whose parts are already on the GPUs and nodes.
    pub(super) fn add_lease(&mut self, record: LeaseRecord) -> LeaseId {
        let id = LeaseId(self.next_lease);
        self.next_lease += 1;
        for part in &record.parts {
            if let Some((gpu, take)) = part.on {
                self.owners.entry((gpu, start_of(take))).or_default().insert(id);
            }
            if !record.labels.is_empty() || !record.keeps_away.is_empty() {
                self.noted.entry(part.node).or_default().insert(id);
            }
        }
        self.disliking += usize::from(!record.keeps_away.is_empty());
        let amounts = record.parts.iter().filter_map(|part| match part.on? {
            (gpu, Take::Fraction { milli, mib, users }) => {
                Some((self.gpus[gpu].spec, DeviceAsk::Fraction { milli, mib, users }))
            }
            _ => None,
        });
        let amounts: Vec<(SpecId, DeviceAsk)> = amounts.collect();
        amounts.into_iter().for_each(|(spec, ask)| self.watch(spec, ask));
        self.lease_names.insert(record.name.clone(), id);
        self.leases.insert(id, record);
        id
    }

    /// Adds what one member takes of its node.
    pub(super) fn charge_node(&mut self, node: NodeId, cpu_milli: u64, memory_mib: u64) {
        let record = &mut self.nodes[node];
        record.cpu_used += cpu_milli;
        record.memory_used += memory_mib;
        record.users += 1;
    }

    /// Counts a GPU of the document into its node: instances that no lease owns use the
    /// node, and a wholly free GPU is one more to offer together.
    fn count_use(&mut self, gpu: GpuId) {
        let found = match &*self.state(gpu) {
            SpaceState::Grid(layout) => layout.used().filter(|e| !self.owners.contains_key(&(gpu, e.start))).count(),
            _ => 0,
        };
        let free = self.is_wholly_free(gpu);
        let node = &mut self.nodes[self.gpus[gpu].node];
        node.users += found as u32;
        node.wholly_free += u32::from(free);
    }

    /// Whether the GPU counts among those that can be offered together.
    pub(super) fn is_wholly_free(&self, gpu: GpuId) -> bool {
        let record = &self.gpus[gpu];
        matches!(record.state, StateKey::Fluid(_)) && record.state == self.specs[record.spec].empty()
    }
}

/// The cell under which a take is listed among the owners of a GPU.
pub(super) fn start_of(take: Take) -> u16 {
    match take {
        Take::Instance { start, .. } | Take::Compute { start, .. } => start,
        Take::Whole | Take::Share(_) | Take::Fraction { .. } => 0,
    }
}

/// The node of each member, once per member.
pub(super) fn member_nodes(parts: &[PartRecord]) -> Vec<NodeId> {
    let mut members: Vec<(u32, NodeId)> = parts.iter().map(|p| (p.member, p.node)).collect();
    members.sort_unstable();
    members.dedup();
    members.into_iter().map(|(_, node)| node).collect()
}

fn found(instance: &Instance) -> FoundInstance {
    FoundInstance {
        name: instance.name.clone(),
        id: instance.id,
        uuid: instance.uuid.clone(),
        pinned: instance.pinned,
        compute: instance.compute_instances.clone(),
    }
}

fn check_listing(gpu: &Gpu) -> Result<(), InputError> {
    let mut names = BTreeSet::new();
    for (i, profile) in gpu.profiles.iter().enumerate() {
        if !names.insert(profile.name.as_str()) {
            return Err(InputError::new(alloc::format!("profiles[{i}].name"), Fault::Duplicate(profile.name.clone())));
        }
        let cells = crate::space::CELLS_MAX as u64;
        let ends = profile.placements.iter().flat_map(|p| p.starts.iter().map(|s| u64::from(*s) + u64::from(p.size)));
        if let Some(end) = ends.max().filter(|end| *end > cells) {
            let fault = Fault::OutOfRange { value: end, min: 1, max: cells };
            return Err(InputError::new(alloc::format!("profiles[{i}].placements"), fault));
        }
    }
    Ok(())
}

fn check_start(spec: &Spec, grid: &Grid, profile: crate::ids::ProfileId, start: u16) -> Result<(), InputError> {
    let row = &grid.rows()[profile];
    let model = || spec.model().id.clone();
    if row.starts.is_empty() {
        let fault = Fault::UnknownPlacements { profile: row.name.clone(), model: model() };
        return Err(InputError::new("start", fault));
    }
    if !row.starts.contains(&start) {
        let legal: Vec<String> = row.starts.iter().map(ToString::to_string).collect();
        let fault =
            Fault::UnknownPlacement { profile: row.name.clone(), start, model: model(), legal: legal.join(", ") };
        return Err(InputError::new("start", fault));
    }
    Ok(())
}

fn load_compute(inner: &Grid, instance: &Instance) -> Result<Hold, InputError> {
    let mut layout = Layout::default();
    for (j, compute) in instance.compute_instances.iter().enumerate() {
        let at = alloc::format!("compute_instances[{j}]");
        let profile = inner.find(&compute.profile).ok_or_else(|| {
            InputError::new(alloc::format!("{at}.profile"), Fault::UnknownProfile(compute.profile.clone()))
        })?;
        if compute.usage == Usage::Idle {
            continue;
        }
        // Older drivers do not print the start: any legal one stands for it.
        let options = inner.options(&layout, DeviceAsk::Instance(profile));
        let take = options.into_iter().find(|t| compute.start.is_none_or(|s| start_of(*t) == s));
        let put = take.and_then(|t| inner.put(&layout, t)).ok_or_else(|| {
            let fault =
                Fault::Overlap(compute.profile.clone(), String::from("no such start is free inside the instance"));
            InputError::new(&*at, fault)
        })?;
        layout = put.layout;
    }
    if layout.is_unused() {
        return Ok(if instance.usage == Usage::Idle { Hold::Idle } else { Hold::Busy });
    }
    Ok(Hold::Shared(layout))
}
