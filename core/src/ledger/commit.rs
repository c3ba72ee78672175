//! Changes of state: commit, release, undo. Each raises the version by one, and each is
//! checked whole before anything is touched.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use thiserror::Error;

use super::load::{member_nodes, start_of};
use super::{FoundInstance, LeaseId, LeaseRecord, Ledger, PartRecord, Spec, StateKey, Switched};
use crate::decision::{Decision, Move, Verdict};
use crate::error::{Fault, InputError};
use crate::ids::{GpuId, NodeId, RackId, SpecId};
use crate::place::{NodeRules, NodeUse};
use crate::reason::Code;
use crate::space::{DeviceAsk, Entry, Hold, Layout, SpaceState, Take};
use crate::workload::Workload;

/// Why a change was not made. The state is as it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommitError {
    /// What the decision relied on has changed since it was made.
    #[error("conflict: {what} changed after version {version}; decide again on version {now}")]
    Conflict {
        /// What changed.
        what: String,
        /// Version of the decision.
        version: u64,
        /// Version of the state.
        now: u64,
    },
    /// The decision does not admit anything.
    #[error("only an admitting decision can be committed")]
    NotAdmitted,
    /// No lease of this name.
    #[error("no lease named `{0}`")]
    UnknownLease(String),
    /// Something later uses what would have to be undone.
    #[error("cannot undo: {0} changed since")]
    UndoBlocked(String),
    /// The decision does not belong to this state or request.
    #[error(transparent)]
    Input(#[from] InputError),
}

impl CommitError {
    /// The stable number of this error.
    pub fn number(&self) -> u16 {
        match self {
            Self::Conflict { .. } => Code::Conflict.number(),
            Self::NotAdmitted => Code::NotAdmitted.number(),
            Self::UnknownLease(_) => Code::UnknownLease.number(),
            Self::UndoBlocked(_) => Code::UndoBlocked.number(),
            Self::Input(e) => e.fault().number(),
        }
    }
}

/// A change that was made, and what takes it back.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The new lease.
    pub lease: LeaseId,
    /// The version it made.
    pub version: u64,
    /// Kinds and states of the GPUs it touched, before and after.
    gpus: BTreeMap<GpuId, (Held, Held)>,
    found: Vec<((GpuId, u16), FoundInstance)>,
    moves: Vec<Moved>,
}

/// What a GPU is, and what is on it.
type Held = (SpecId, StateKey);

/// A part that went elsewhere.
#[derive(Clone, Copy, Debug)]
struct Moved {
    owner: Option<(LeaseId, u32)>,
    from: (GpuId, Take),
    to: (GpuId, Take),
}

/// New states of GPUs and what nodes gain, applied together.
#[derive(Default)]
struct Transition {
    gpus: BTreeMap<GpuId, SpaceState>,
    switched: Switched,
    nodes: BTreeMap<NodeId, NodeDelta>,
}

#[derive(Clone, Copy, Default)]
struct NodeDelta {
    cpu_milli: i64,
    memory_mib: i64,
    users: i32,
}

impl Ledger {
    /// Makes an admitting decision true.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if a GPU or node it uses has changed since its version.
    /// Nothing is changed on an error.
    pub fn commit(&mut self, workload: &Workload, decision: &Decision) -> Result<Committed, CommitError> {
        if decision.verdict != Verdict::Admit {
            return Err(CommitError::NotAdmitted);
        }
        if self.lease_names.contains_key(&workload.name) {
            return Err(InputError::new("name", Fault::Duplicate(workload.name.clone())).into());
        }
        if self.has_modes {
            self.check_modes_unchanged(decision)?;
        }
        let switched = self.read_changes(&decision.mode_changes)?;
        let mut parts = Vec::new();
        for (i, placement) in decision.placements.iter().enumerate() {
            let part = self.part_after(placement, &switched);
            parts.push(part.map_err(|e| e.within(&alloc::format!("placements[{i}]")))?);
        }
        let moves = decision.moves.iter().map(|m| self.load_move(m)).collect::<Result<Vec<Moved>, CommitError>>()?;
        self.check_unchanged(workload, decision.version, &parts, &moves)?;
        let mut transition = Transition::default();
        let mut found = Vec::new();
        for (gpu, spec) in switched.iter() {
            let moves_here = moves.iter().any(|m| m.from.0 == gpu || m.to.0 == gpu);
            if moves_here || !self.accepts(gpu) || !self.may_become(gpu, spec, false) {
                return Err(self.conflict(decision, gpu));
            }
            let idle = self.found.range((gpu, 0)..=(gpu, u16::MAX));
            found.extend(idle.map(|(key, instance)| (*key, instance.clone())));
            transition.gpus.insert(gpu, self.specs[spec].space().empty());
        }
        transition.switched = switched;
        for moved in &moves {
            self.stage(&mut transition, moved.from, Self::vacate)
                .ok_or_else(|| self.conflict(decision, moved.from.0))?;
        }
        let targets = parts.iter().filter_map(|p| p.on).chain(moves.iter().map(|m| m.to));
        for (gpu, take) in targets {
            let destroyed = self.stage_put(&mut transition, gpu, take).ok_or_else(|| self.conflict(decision, gpu))?;
            let gone =
                destroyed.iter().filter_map(|e| Some(((gpu, e.start), self.found.get(&(gpu, e.start))?.clone())));
            found.extend(gone);
        }
        for node in member_nodes(&parts) {
            transition.nodes.entry(node).or_default().add(workload.cpu_milli, workload.memory_mib);
        }
        self.stage_moves(&mut transition, &moves, false);
        if let Some(what) = self.passes_cap(&transition) {
            return Err(CommitError::Conflict { what, version: decision.version, now: self.version });
        }
        let before: Vec<(GpuId, Held)> = transition.gpus.keys().map(|g| (*g, self.held(*g))).collect();
        self.transit(transition);
        let gpus = before.into_iter().map(|(gpu, held)| (gpu, (held, self.held(gpu)))).collect();
        for (key, _) in &found {
            self.found.remove(key);
        }
        for moved in &moves {
            self.rehome(moved.owner, moved.from, moved.to);
        }
        let lease = self.add_lease(LeaseRecord {
            name: workload.name.clone(),
            tenant: workload.tenant.clone(),
            labels: workload.labels.clone(),
            keeps_away: workload.anti_affinity.clone(),
            allowed_nodes: workload.nodes.clone(),
            pinned: workload.pinned,
            cpu_milli: workload.cpu_milli,
            memory_mib: workload.memory_mib,
            parts,
        });
        Ok(Committed { lease, version: self.version, gpus, found, moves })
    }

    /// Takes back a change: every byte but the version is as before it.
    ///
    /// # Errors
    /// [`CommitError::UndoBlocked`] if its GPUs are not as it left them: later changes are
    /// taken back first.
    pub fn undo(&mut self, change: &Committed) -> Result<u64, CommitError> {
        let record = self
            .leases
            .get(&change.lease)
            .ok_or_else(|| CommitError::UnknownLease(alloc::format!("#{}", change.lease.0)))?;
        if let Some((gpu, _)) = change.gpus.iter().find(|(g, (_, after))| self.held(**g) != *after) {
            return Err(CommitError::UndoBlocked(self.say(*gpu)));
        }
        let gone = |m: &&Moved| m.owner.is_some_and(|(id, _)| !self.leases.get(&id).is_some_and(|l| l.has(m.to)));
        if let Some(moved) = change.moves.iter().find(gone) {
            return Err(CommitError::UndoBlocked(self.say(moved.to.0)));
        }
        let mut transition = Transition::default();
        for (gpu, ((spec, state), _)) in &change.gpus {
            transition.gpus.insert(*gpu, self.specs[*spec].state(*state).into_owned());
            transition.switched.set(*gpu, Some(*spec));
        }
        for node in member_nodes(&record.parts) {
            transition.nodes.entry(node).or_default().take(record.cpu_milli, record.memory_mib);
        }
        self.stage_moves(&mut transition, &change.moves, true);
        if let Some(what) = self.passes_cap(&transition) {
            return Err(CommitError::UndoBlocked(what));
        }
        self.forget(change.lease);
        for moved in &change.moves {
            self.rehome(moved.owner, moved.to, moved.from);
        }
        self.found.extend(change.found.iter().cloned());
        self.transit(transition);
        if self.next_lease == change.lease.0 + 1 {
            self.next_lease = change.lease.0;
        }
        Ok(self.version)
    }

    /// Ends a lease. Instances that were there before it stay, idle; those made for it go.
    ///
    /// # Errors
    /// [`CommitError::UnknownLease`].
    pub fn release(&mut self, name: &str) -> Result<u64, CommitError> {
        let unknown = || CommitError::UnknownLease(String::from(name));
        let id = *self.lease_names.get(name).ok_or_else(unknown)?;
        let record = self.leases.get(&id).ok_or_else(unknown)?;
        let mut transition = Transition::default();
        for (gpu, take) in record.parts.iter().filter_map(|p| p.on) {
            self.stage(&mut transition, (gpu, take), Self::vacate).ok_or_else(unknown)?;
        }
        for node in member_nodes(&record.parts) {
            transition.nodes.entry(node).or_default().take(record.cpu_milli, record.memory_mib);
        }
        self.forget(id);
        self.transit(transition);
        Ok(self.version)
    }

    /// Cordons or uncordons a GPU.
    pub fn set_gpu_cordon(&mut self, gpu: GpuId, cordoned: bool) -> u64 {
        self.delist(gpu);
        self.gpus[gpu].cordoned = cordoned;
        self.version += 1;
        self.gpus[gpu].changed_at = self.version;
        self.enlist(gpu);
        self.version
    }

    /// Cordons or uncordons a node.
    pub fn set_node_cordon(&mut self, node: NodeId, cordoned: bool) -> u64 {
        let gpus = self.nodes[node].gpus();
        gpus.clone().for_each(|g| self.delist(g));
        self.nodes[node].cordoned = cordoned;
        self.version += 1;
        for gpu in gpus {
            self.gpus[gpu].changed_at = self.version;
            self.enlist(gpu);
        }
        self.version
    }

    fn held(&self, gpu: GpuId) -> Held {
        (self.gpus[gpu].spec, self.gpus[gpu].state)
    }

    /// The kind of a GPU once the transition is made.
    fn staged_spec(&self, transition: &Transition, gpu: GpuId) -> &Spec {
        &self.specs[self.spec_after(gpu, &transition.switched)]
    }

    /// A GPU whose mode was changed since does not know the decision's names any more.
    fn check_modes_unchanged(&self, decision: &Decision) -> Result<(), CommitError> {
        let gpu = |node: &str, index: Option<u32>| self.gpu_at(self.node_named(node)?, index?);
        let placed = decision.placements.iter().filter_map(|p| gpu(&p.node, p.gpu));
        let changed = decision.mode_changes.iter().filter_map(|c| gpu(&c.node, Some(c.gpu)));
        match placed.chain(changed).find(|gpu| self.gpus[*gpu].changed_at > decision.version) {
            Some(gpu) => Err(self.conflict(decision, gpu)),
            None => Ok(()),
        }
    }

    fn say(&self, gpu: GpuId) -> String {
        let record = &self.gpus[gpu];
        alloc::format!("GPU {} of node `{}`", record.index, self.nodes[record.node].name)
    }

    fn conflict(&self, decision: &Decision, gpu: GpuId) -> CommitError {
        CommitError::Conflict { what: self.say(gpu), version: decision.version, now: self.version }
    }

    fn load_move(&self, step: &Move) -> Result<Moved, CommitError> {
        let unknown = |name: &String| {
            CommitError::Input(InputError::new("moves", Fault::Unknown { kind: "place to move", name: name.clone() }))
        };
        let site = |site: &crate::decision::Site| {
            let node = self.node_named(&site.node).ok_or_else(|| unknown(&site.node))?;
            let gpu = self.gpu_at(node, site.gpu).ok_or_else(|| unknown(&site.node))?;
            match self.spec(gpu).named(&site.profile) {
                Some(DeviceAsk::Instance(profile)) => Ok((gpu, Take::Instance { profile, start: site.start })),
                _ => Err(unknown(&site.profile)),
            }
        };
        let (from, to) = (site(&step.from)?, site(&step.to)?);
        let owner = self.owners(from.0, step.from.start).map(|(id, _)| (id, step.member)).next();
        Ok(Moved { owner, from, to })
    }

    fn check_unchanged(
        &self,
        workload: &Workload,
        version: u64,
        parts: &[PartRecord],
        moves: &[Moved],
    ) -> Result<(), CommitError> {
        let conflict = |what: String| CommitError::Conflict { what, version, now: self.version };
        let used =
            parts.iter().filter_map(|p| p.on.map(|(g, _)| g)).chain(moves.iter().flat_map(|m| [m.from.0, m.to.0]));
        for gpu in used {
            if self.gpus[gpu].changed_at > version || !self.accepts(gpu) {
                return Err(conflict(self.say(gpu)));
            }
        }
        let nodes = member_nodes(parts);
        let rules = NodeRules::of(workload);
        for node in &nodes {
            let before = nodes.iter().filter(|n| *n == node).count() as u64 - 1;
            let taken = NodeUse { cpu_milli: workload.cpu_milli * before, memory_mib: workload.memory_mib * before };
            if rules.failure(self, *node, taken).is_some() {
                return Err(conflict(alloc::format!("node `{}`", self.nodes[*node].name)));
            }
        }
        Ok(())
    }

    /// Changes the staged state of a GPU by `change`; `None` if it is not legal there.
    fn stage(
        &self,
        transition: &mut Transition,
        (gpu, take): (GpuId, Take),
        change: impl Fn(&Self, GpuId, &SpaceState, Take) -> Option<SpaceState>,
    ) -> Option<()> {
        let after = match transition.gpus.get(&gpu) {
            Some(state) => change(self, gpu, state, take)?,
            None => change(self, gpu, &self.state(gpu), take)?,
        };
        transition.gpus.insert(gpu, after);
        Some(())
    }

    /// Stages a take; returns the idle instances that it destroys.
    fn stage_put(&self, transition: &mut Transition, gpu: GpuId, take: Take) -> Option<Vec<Entry>> {
        let now = self.state(gpu);
        let state = transition.gpus.get(&gpu).unwrap_or(&now);
        let spec = self.staged_spec(transition, gpu);
        let (after, destroyed) = match (state, spec.grid()) {
            (SpaceState::Grid(layout), Some(grid)) => {
                let put = grid.put(layout, take)?;
                (SpaceState::Grid(put.layout), put.destroyed)
            }
            _ => (spec.space().put(state, take)?, Vec::new()),
        };
        transition.gpus.insert(gpu, after);
        Some(destroyed)
    }

    /// The node or rack that would draw more than its power cap.
    fn passes_cap(&self, transition: &Transition) -> Option<String> {
        if !self.has_power_caps() {
            return None;
        }
        let mut nodes: BTreeSet<NodeId> = transition.nodes.keys().copied().collect();
        nodes.extend(transition.gpus.keys().map(|gpu| self.gpus[*gpu].node));
        let mut racks: BTreeMap<RackId, (u64, u64)> = BTreeMap::new();
        for node in nodes {
            let record = &self.nodes[node];
            let delta = transition.nodes.get(&node).copied().unwrap_or_default();
            let cpu = record.cpu_draw_mw(record.cpu_used.saturating_add_signed(delta.cpu_milli));
            let after = record.gpus().fold(cpu, |sum, gpu| {
                let kind = self.staged_spec(transition, gpu);
                let own = transition.gpus.get(&gpu).map_or_else(|| self.gpu_draw_mw(gpu), |s| kind.draw_mw(s));
                sum.saturating_add(own.unwrap_or(0))
            });
            if record.power.cap_mw.is_some_and(|cap| after > cap) {
                return Some(alloc::format!("the power that node `{}` has left", record.name));
            }
            if let Some(rack) = record.power.rack {
                let (gone, come) = racks.entry(rack).or_default();
                *gone = gone.saturating_add(record.power.draw_mw);
                *come = come.saturating_add(after);
            }
        }
        racks.into_iter().find_map(|(rack, (gone, come))| {
            let record = self.rack(rack);
            let after = record.draw_mw.saturating_sub(gone).saturating_add(come);
            let name = &record.document.name;
            record
                .cap_mw
                .is_some_and(|cap| after > cap)
                .then(|| alloc::format!("the power that rack `{name}` has left"))
        })
    }

    /// Stages what moves between nodes take along.
    fn stage_moves(&self, transition: &mut Transition, moves: &[Moved], back: bool) {
        for moved in moves {
            let (from, to) = if back { (moved.to, moved.from) } else { (moved.from, moved.to) };
            let (from, to) = (self.gpus[from.0].node, self.gpus[to.0].node);
            let lease = moved.owner.and_then(|(id, _)| self.leases.get(&id));
            let (cpu, memory) = lease.map_or((0, 0), |l| (l.cpu_milli, l.memory_mib));
            transition.nodes.entry(from).or_default().take(cpu, memory);
            transition.nodes.entry(to).or_default().add(cpu, memory);
        }
    }

    /// The state of a GPU without a take. An instance that was found on the device stays,
    /// idle.
    pub(crate) fn vacate(&self, gpu: GpuId, state: &SpaceState, take: Take) -> Option<SpaceState> {
        let spec = self.spec(gpu);
        let after = spec.space().remove(state, take)?;
        let kept = match take {
            Take::Instance { profile, start } | Take::Compute { profile, start, .. } => Some((profile, start)),
            _ => None,
        };
        match (&after, kept) {
            (SpaceState::Grid(layout), Some((profile, start)))
                if self.found.contains_key(&(gpu, start)) && layout.at(start).is_none() =>
            {
                Some(SpaceState::Grid(with_idle(layout, profile, start)))
            }
            _ => Some(after),
        }
    }

    /// Moves the ownership of a part.
    fn rehome(&mut self, owner: Option<(LeaseId, u32)>, from: (GpuId, Take), to: (GpuId, Take)) {
        let (old, new) = ((from.0, start_of(from.1)), (to.0, start_of(to.1)));
        let Some((lease, _)) = owner else {
            if let Some(found) = self.found.remove(&old) {
                self.found.insert(new, found);
            }
            return;
        };
        if let Some(ids) = self.owners.get_mut(&old) {
            ids.remove(&lease);
            if ids.is_empty() {
                self.owners.remove(&old);
            }
        }
        self.owners.entry(new).or_default().insert(lease);
        let node = self.gpus[to.0].node;
        if let Some(record) = self.leases.get_mut(&lease) {
            for part in record.parts.iter_mut().filter(|p| p.on == Some(from)) {
                part.on = Some(to);
                part.node = node;
            }
        }
    }

    /// Drops a lease from all tables; GPUs and nodes are changed by the caller.
    fn forget(&mut self, id: LeaseId) {
        let Some(record) = self.leases.remove(&id) else { return };
        self.lease_names.remove(&record.name);
        self.disliking -= usize::from(!record.keeps_away.is_empty());
        for part in &record.parts {
            if let Some((gpu, take)) = part.on {
                let key = (gpu, start_of(take));
                if let Some(ids) = self.owners.get_mut(&key) {
                    ids.remove(&id);
                    if ids.is_empty() {
                        self.owners.remove(&key);
                    }
                }
            }
            if let Some(ids) = self.noted.get_mut(&part.node) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.noted.remove(&part.node);
                }
            }
        }
    }

    /// Applies new states and node usage, keeps the class index right, raises the version.
    fn transit(&mut self, transition: Transition) {
        self.version += 1;
        let mut nodes = transition.nodes;
        for gpu in transition.gpus.keys() {
            nodes.entry(self.gpus[*gpu].node).or_default();
        }
        let keys: Vec<(GpuId, Held)> = transition
            .gpus
            .iter()
            .map(|(gpu, state)| {
                let spec = self.spec_after(*gpu, &transition.switched);
                (*gpu, (spec, self.specs[spec].intern(state, &self.policy.terms)))
            })
            .collect();
        let mut touched: Vec<GpuId> = Vec::new();
        for (node, delta) in &nodes {
            let own = keys.iter().filter(|(g, _)| self.gpus[*g].node == *node);
            if self.changes_all(*node, *delta, own.clone()) {
                touched.extend(self.nodes[*node].gpus());
            } else {
                touched.extend(own.map(|(g, _)| *g));
            }
        }
        touched.iter().for_each(|g| self.delist(*g));
        for (gpu, (spec, state)) in keys {
            let was = self.is_wholly_free(gpu);
            self.gpus[gpu].spec = spec;
            self.gpus[gpu].state = state;
            self.gpus[gpu].changed_at = self.version;
            let is = self.is_wholly_free(gpu);
            let node = &mut self.nodes[self.gpus[gpu].node];
            node.wholly_free = (node.wholly_free + u32::from(is)).saturating_sub(u32::from(was));
        }
        for (node, delta) in nodes {
            self.unrank_node(node);
            let record = &mut self.nodes[node];
            record.cpu_used = record.cpu_used.saturating_add_signed(delta.cpu_milli);
            record.memory_used = record.memory_used.saturating_add_signed(delta.memory_mib);
            record.users = record.users.saturating_add_signed(delta.users);
            self.rank_node(node);
            self.redraw(node);
        }
        touched.into_iter().for_each(|g| self.enlist(g));
    }

    /// Whether the class of every GPU of the node may change, not only of those touched.
    fn changes_all<'a>(&self, node: NodeId, delta: NodeDelta, own: impl Iterator<Item = &'a (GpuId, Held)>) -> bool {
        let record = &self.nodes[node];
        let cpu = delta.cpu_milli != 0 && record.cpu_milli.is_some();
        let opens = record.is_open() != (record.users.saturating_add_signed(delta.users) > 0);
        let mut free_after = i64::from(record.wholly_free);
        for (gpu, (spec, state)) in own {
            let is_free = matches!(state, StateKey::Fluid(_)) && *state == self.specs[*spec].empty();
            free_after += i64::from(is_free) - i64::from(self.is_wholly_free(*gpu));
        }
        let cap = i64::from(super::PEERS_MAX);
        let peers = free_after.min(cap) != i64::from(record.wholly_free).min(cap);
        cpu || opens || peers
    }
}

fn with_idle(layout: &Layout, profile: crate::ids::ProfileId, start: u16) -> Layout {
    layout.clone().with(Entry { start, profile, hold: Hold::Idle })
}

impl NodeDelta {
    fn add(&mut self, cpu_milli: u64, memory_mib: u64) {
        self.cpu_milli += signed(cpu_milli);
        self.memory_mib += signed(memory_mib);
        self.users += 1;
    }
    fn take(&mut self, cpu_milli: u64, memory_mib: u64) {
        self.cpu_milli -= signed(cpu_milli);
        self.memory_mib -= signed(memory_mib);
        self.users -= 1;
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}
