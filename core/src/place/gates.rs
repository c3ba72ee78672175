//! Why a request does not fit: every gate that stopped a GPU, with counts and numbers.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::power;
use super::seats::Search;
use super::sets::{Limits, whole_sets};
use super::view::View;
use crate::decision::{Blocker, Reason};
use crate::fleet::Health;
use crate::ids::{ClassId, GpuId, NodeId, ProfileId, SpecId};
use crate::ledger::{Class, Ledger, Spec};
use crate::reason::Code;
use crate::space::{DeviceAsk, FluidState, Grid, Hold, Layout, Obstacle, Space, SpaceState, Take};
use crate::workload::{InstancesOn, MemberAsk, WholeGpus};

/// What one gate stopped.
#[derive(Clone, Debug, Default)]
struct Tally {
    count: u64,
    needed: Option<u64>,
    largest: Option<u64>,
    total: Option<u64>,
    subject: Option<String>,
    blockers: Vec<Blocker>,
}

impl Tally {
    fn of(count: u64) -> Self {
        Self { count, ..Self::default() }
    }
    fn amounts(count: u64, needed: u64, free: u64) -> Self {
        let total = free.saturating_mul(count);
        Self { count, needed: Some(needed), largest: Some(free), total: Some(total), ..Self::default() }
    }
    fn about(self, subject: impl Into<String>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }
    fn merge(&mut self, other: Self) {
        let larger = |a: Option<u64>, b: Option<u64>| a.max(b);
        self.count += other.count;
        self.needed = self.needed.or(other.needed);
        self.largest = larger(self.largest, other.largest);
        self.total = match (self.total, other.total) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        if self.subject.is_none() {
            self.subject = other.subject;
        }
        let fewest = |b: &[Blocker]| b.iter().map(|b| b.by.len()).min().unwrap_or(usize::MAX);
        if fewest(&other.blockers) < fewest(&self.blockers) {
            self.blockers = other.blockers;
        }
    }
}

/// The gates of every alternative, by rising code.
pub fn reasons(search: &Search<'_>, view: &View<'_>) -> Vec<Reason> {
    let mut gates = Gates { search, view, tallies: BTreeMap::new(), free: BTreeMap::new() };
    let ledger = view.ledger;
    let asks = search.workload.alternatives();
    if ledger.gpus().is_empty() && !asks.contains(&crate::workload::Ask::NodeOnly {}) {
        gates.add(Code::NoGpus, Tally::of(0));
    }
    for alternative in 0..search.resolved.alternatives.len() {
        if search.resolved.is_node_only(alternative) {
            gates.nodes();
            continue;
        }
        for (spec, kind) in ledger.specs().iter() {
            let on = |spec: &SpecId| search.resolved.on(alternative, *spec);
            let changed = kind.siblings().iter().find_map(|other| Some((*other, on(other).ok()?)));
            match (on(&spec), changed) {
                (Ok(ask), _) => gates.spec(spec, kind, ask),
                (Err(_), Some((other, ask))) => gates.after_change(spec, other, ask),
                (Err(code), None) => gates.not_offered(spec, kind, code),
            }
        }
        gates.whole(alternative);
    }
    gates.finish()
}

struct Gates<'a> {
    search: &'a Search<'a>,
    view: &'a View<'a>,
    tallies: BTreeMap<Code, Tally>,
    /// GPUs that could be given whole, by model and node.
    free: BTreeMap<(&'a str, NodeId), Vec<GpuId>>,
}

impl<'a> Gates<'a> {
    fn ledger(&self) -> &Ledger {
        self.view.ledger
    }

    fn add(&mut self, code: Code, tally: Tally) {
        match self.tallies.get_mut(&code) {
            Some(known) => known.merge(tally),
            None => {
                self.tallies.insert(code, tally);
            }
        }
    }

    fn finish(self) -> Vec<Reason> {
        let reason = |(code, tally): (Code, Tally)| Reason {
            code,
            number: code.number(),
            count: tally.count,
            needed: tally.needed,
            largest_free: tally.largest,
            total_free: tally.total,
            blockers: tally.blockers,
            subject: tally.subject,
        };
        self.tallies.into_iter().map(reason).collect()
    }

    fn closed(&mut self, spec: SpecId) {
        let ledger = self.ledger();
        let closed: Vec<Code> = ledger
            .closed()
            .filter(|g| ledger.gpus()[*g].spec == spec)
            .map(|g| match ledger.gpus()[g].health {
                Health::Healthy => Code::Cordoned,
                Health::Degraded | Health::Failed => Code::GpuUnhealthy,
            })
            .collect();
        closed.into_iter().for_each(|code| self.add(code, Tally::of(1)));
    }

    fn not_offered(&mut self, spec: SpecId, kind: &Spec, code: Code) {
        let model = kind.model().id.clone();
        if !matches!(code, Code::ModeMismatch | Code::ParentPartitioned) {
            let members = self.ledger().index().of_spec(spec).map(|(_, c)| c.members.len() as u64).sum();
            self.closed(spec);
            if members > 0 {
                self.add(code, Tally::of(members).about(model));
            }
            return;
        }
        // In the wrong mode, and free to change it or not.
        let used = if code == Code::ParentPartitioned { code } else { Code::ModeOccupied };
        let mut split = [(used, 0), (Code::ModeMismatch, 0)];
        for (_, class) in self.ledger().index().of_spec(spec) {
            let state = kind.state(class.key.state);
            let unused = usize::from(kind.space().is_unused(&state));
            if let Some((_, count)) = split.get_mut(unused) {
                *count += class.members.len() as u64;
            }
        }
        self.closed(spec);
        for (code, count) in split.into_iter().filter(|(_, count)| *count > 0) {
            self.add(code, Tally::of(count).about(model.clone()));
        }
    }

    fn spec(&mut self, spec: SpecId, kind: &'a Spec, ask: &MemberAsk) {
        self.closed(spec);
        for (_, class) in self.view.ledger.index().of_spec(spec) {
            self.class(kind, &kind.state(class.key.state), class, ask);
        }
    }

    /// GPUs of one kind that serve the ask as another.
    fn after_change(&mut self, spec: SpecId, other: SpecId, ask: &MemberAsk) {
        self.closed(spec);
        let ledger = self.view.ledger;
        let kind = &ledger.specs()[other];
        let may = ledger.convertible(other, self.search.workload.keep_idle).map(|(id, _)| id);
        let may: BTreeSet<ClassId> = may.collect();
        let mut occupied: Vec<&Class> = Vec::new();
        for (id, class) in ledger.index().of_spec(spec) {
            if may.contains(&id) {
                self.class(kind, &kind.space().empty(), class, ask);
            } else {
                occupied.push(class);
            }
        }
        let count: usize = occupied.iter().map(|class| class.members.len()).sum();
        let firsts = occupied.iter().filter_map(|class| class.first());
        let fewest = firsts.map(|gpu| (self.names_on(gpu), gpu)).min_by_key(|(names, gpu)| (names.len(), *gpu));
        if let Some((by, gpu)) = fewest {
            let record = &ledger.gpus()[gpu];
            let blocker = Blocker { node: ledger.nodes()[record.node].name.clone(), gpu: record.index, start: 0, by };
            let tally = Tally::of(count as u64).about(kind.model().id.clone());
            self.add(Code::ModeOccupied, Tally { blockers: Vec::from([blocker]), ..tally });
        }
    }

    /// How people call what has to leave a GPU before its mode may be changed.
    fn names_on(&self, gpu: GpuId) -> Vec<String> {
        let ledger = self.view.ledger;
        let mut names: Vec<String> = match &*ledger.state(gpu) {
            SpaceState::Grid(layout) => {
                let keep_idle = self.search.workload.keep_idle;
                let stays = layout.entries().iter().filter(|e| keep_idle || e.hold != Hold::Idle);
                stays.flat_map(|e| ledger.names_at(gpu, e.start)).collect()
            }
            SpaceState::Uniform(_) | SpaceState::Fluid(_) => {
                ledger.leases_on(gpu).map(|lease| lease.name.clone()).collect()
            }
        };
        names.sort();
        names.dedup();
        names
    }

    /// An ask on GPUs of one class, which are of this kind and in this state or can be.
    fn class(&mut self, kind: &'a Spec, state: &SpaceState, class: &Class, ask: &MemberAsk) {
        match ask {
            MemberAsk::NodeOnly => {}
            MemberAsk::One(asks) => {
                // The smallest thing that would do: if it has no place, nothing has.
                asks.first().into_iter().for_each(|ask| self.device(kind, state, class, *ask, asks));
            }
            MemberAsk::Whole(_) if kind.space().is_unused(state) => {
                for gpu in &class.members {
                    let at = (kind.model().id.as_str(), self.view.ledger.gpus()[*gpu].node);
                    self.free.entry(at).or_default().push(*gpu);
                }
            }
            MemberAsk::Whole(_) => self.add(Code::GpuInUse, Tally::of(class.members.len() as u64)),
            MemberAsk::Several(asks, on) => self.several(kind, state, class, asks, *on),
        }
    }

    /// One ask on the GPUs of one class.
    fn device(&mut self, kind: &Spec, state: &SpaceState, class: &Class, ask: DeviceAsk, asks: &[DeviceAsk]) {
        let count = class.members.len() as u64;
        if let Some(take) = asks.iter().find_map(|a| kind.space().options(state, *a).first().copied()) {
            let growth = power::growth_mw(self.view.ledger, kind, state, take);
            class.members.iter().for_each(|gpu| self.node(*gpu, growth));
            return;
        }
        let (code, tally) = match (kind.space(), state, ask) {
            (Space::Grid(grid), SpaceState::Grid(layout), DeviceAsk::Instance(p) | DeviceAsk::Compute(p, _)) => {
                let first = class.members.first().copied();
                self.grid(grid, layout, p, first, count)
            }
            (Space::Fluid(fluid), SpaceState::Fluid(left), DeviceAsk::Fraction { milli, mib, users }) => {
                let users_left = fluid.users_left(*left);
                if left.users != FluidState::WHOLE && users_left < users {
                    (
                        Code::ClientsExhausted,
                        Tally::amounts(count, users.into(), users_left.into()).about("client contexts"),
                    )
                } else if left.milli < milli {
                    (
                        Code::InsufficientFraction,
                        Tally::amounts(count, milli.into(), left.milli.into()).about("milli-GPU"),
                    )
                } else {
                    (Code::InsufficientMemory, Tally::amounts(count, mib.into(), left.mib.into()).about("MiB"))
                }
            }
            (Space::Uniform(uniform), SpaceState::Uniform(left), DeviceAsk::Share(share)) => {
                let code =
                    if uniform.is_locked(*left, share) { Code::LockedToOtherType } else { Code::SharesExhausted };
                let name = uniform.types().get(usize::from(share)).map_or("", |t| &t.name);
                (code, Tally::amounts(count, 1, 0).about(name))
            }
            _ => (Code::GpuInUse, Tally::of(count)),
        };
        self.add(code, tally);
    }

    fn grid(&self, grid: &Grid, layout: &Layout, profile: ProfileId, gpu: Option<GpuId>, count: u64) -> (Code, Tally) {
        let row = &grid.rows()[profile];
        let cells = Tally::amounts(count, row.size.into(), grid.cells_free(layout).into());
        match grid.obstacle(layout, profile) {
            Some(Obstacle::PlacementsUnknown) => (Code::PlacementsUnknown, Tally::of(count).about(row.name.clone())),
            Some(Obstacle::TooFewSlices) => {
                let compute = grid.compute_free(layout).filter(|free| *free < row.compute_slices);
                let tally = match compute {
                    Some(free) => Tally::amounts(count, row.compute_slices.into(), free.into()).about("compute slices"),
                    None => cells.about("memory slices"),
                };
                (Code::InsufficientSlices, tally)
            }
            Some(Obstacle::MaxInstances) => (Code::MaxInstances, Tally::of(count).about(row.name.clone())),
            Some(Obstacle::Engines) => (Code::EnginesExhausted, Tally::of(count).about(row.name.clone())),
            Some(Obstacle::RefusedTogether) => (Code::RefusedTogether, Tally::of(count).about(row.name.clone())),
            // The profile has a start, but its compute instance has not.
            None => (Code::InsufficientSlices, Tally::of(count).about("compute slices inside the instance")),
            Some(Obstacle::Fragmented) => {
                let blockers = gpu.map_or_else(Vec::new, |gpu| self.blockers(grid, layout, profile, gpu));
                (Code::Fragmented, Tally { blockers, ..cells.about("memory slices") })
            }
        }
    }

    /// What stands on the cells of each start.
    fn blockers(&self, grid: &Grid, layout: &Layout, profile: ProfileId, gpu: GpuId) -> Vec<Blocker> {
        let ledger = self.ledger();
        let record = &ledger.gpus()[gpu];
        let row = &grid.rows()[profile];
        let blocker = |&start: &u16| {
            let end = start.saturating_add(row.size);
            let hit =
                layout.used().filter(|e| e.start < end && start < e.start.saturating_add(grid.rows()[e.profile].size));
            let mut by: Vec<String> = hit.flat_map(|e| ledger.names_at(gpu, e.start)).collect();
            by.dedup();
            Blocker { node: ledger.nodes()[record.node].name.clone(), gpu: record.index, start, by }
        };
        row.starts.iter().map(blocker).collect()
    }

    /// The node gate that stops a GPU which has room and would draw so much more.
    fn node(&mut self, gpu: GpuId, growth_mw: u64) {
        let ledger = self.view.ledger;
        let node = ledger.gpus()[gpu].node;
        let rules = self.search.rules;
        let taken = self.view.node_use(node);
        let record = &ledger.nodes()[node];
        match rules.failure(ledger, node, taken) {
            Some(code @ Code::NodeCpu) => {
                let free = record.cpu_free().unwrap_or(u64::MAX).saturating_sub(taken.cpu_milli);
                self.add(code, Tally { total: None, ..Tally::amounts(1, rules.cpu_milli, free).about("milli-CPU") });
            }
            Some(code @ Code::NodeMemory) => {
                let free = record.memory_free().unwrap_or(u64::MAX).saturating_sub(taken.memory_mib);
                self.add(code, Tally { total: None, ..Tally::amounts(1, rules.memory_mib, free).about("MiB") });
            }
            Some(code) => self.add(code, Tally::of(1)),
            None => self.power_or_gang(node, growth_mw),
        }
    }

    /// The power cap that stops a member, or else all members together.
    fn power_or_gang(&mut self, node: NodeId, growth_mw: u64) {
        let (code, tally) = match self.view.over_cap(node, self.search.rules.cpu_milli, growth_mw) {
            Some(over) => {
                let tally = Tally::amounts(1, over.needed_mw, over.free_mw).about("mW");
                (over.code, Tally { total: None, ..tally })
            }
            None => {
                let needed = Some(self.search.workload.count.into());
                (Code::GangIncomplete, Tally { needed, ..Tally::of(1) })
            }
        };
        self.add(code, tally);
    }

    fn nodes(&mut self) {
        let ledger = self.view.ledger;
        for (node, record) in ledger.nodes().iter() {
            let (rules, taken) = (self.search.rules, self.view.node_use(node));
            match rules.failure(ledger, node, taken) {
                Some(code @ Code::NodeCpu) => {
                    let free = record.cpu_free().unwrap_or(u64::MAX);
                    self.add(
                        code,
                        Tally { total: None, ..Tally::amounts(1, rules.cpu_milli, free).about("milli-CPU") },
                    );
                }
                Some(code @ Code::NodeMemory) => {
                    let free = record.memory_free().unwrap_or(u64::MAX);
                    self.add(code, Tally { total: None, ..Tally::amounts(1, rules.memory_mib, free).about("MiB") });
                }
                Some(code) => self.add(code, Tally::of(1)),
                None => self.power_or_gang(node, 0),
            }
        }
    }

    /// Sets of whole GPUs on the nodes that have some.
    fn whole(&mut self, alternative: usize) {
        let (ledger, resolved) = (self.view.ledger, self.search.resolved);
        let asks = resolved.alternatives.get(alternative).into_iter().flat_map(|a| &a.by_spec);
        let gpus = asks.filter_map(|ask| ask.as_ref().ok()).find_map(|ask| match ask {
            MemberAsk::Whole(gpus) => Some(gpus),
            _ => None,
        });
        let Some(gpus) = gpus else { return };
        for ((model, node), free) in core::mem::take(&mut self.free) {
            let count = free.len() as u64;
            if count < u64::from(gpus.count) {
                let tally = Tally::amounts(1, gpus.count.into(), count);
                self.add(Code::TooFewGpus, Tally { count, ..tally }.about("wholly free GPUs on one node"));
                continue;
            }
            let plain = WholeGpus { near_nic: None, ..gpus.clone() };
            let keep_idle = self.search.workload.keep_idle;
            let limits = Limits { gpu: &|_| true, keep_idle, changing: true, growth_max_mw: None, sets: 1 };
            let serves =
                |spec: SpecId| ledger.specs()[spec].model().id == model && resolved.on(alternative, spec).is_ok();
            let found = |ask: &WholeGpus| !whole_sets(self.view, node, &serves, ask, limits, &mut 0).is_empty();
            let code = match (found(gpus), found(&plain), gpus.link) {
                (true, ..) => {
                    if let Some(gpu) = free.first() {
                        // Idle GPUs of a model draw alike in every mode.
                        let kind = ledger.specs().ids().find(|spec| serves(*spec));
                        let kind = kind.map_or(ledger.spec(*gpu), |spec| &ledger.specs()[spec]);
                        let one = power::growth_mw(ledger, kind, &kind.space().empty(), Take::Whole);
                        self.node(*gpu, one.saturating_mul(gpus.count.into()));
                    }
                    continue;
                }
                (_, true, _) => Code::NicDistance,
                (_, _, Some(crate::workload::GpuLink::FabricPartition)) => Code::FabricPartition,
                _ => Code::Topology,
            };
            self.add(code, Tally { needed: Some(gpus.count.into()), ..Tally::of(count) });
        }
    }

    fn several(&mut self, kind: &Spec, state: &SpaceState, class: &Class, asks: &[Option<DeviceAsk>], on: InstancesOn) {
        let (rules, view) = (self.search.rules, self.view);
        let growth = growth_of_all(view.ledger, kind, state, asks);
        let fails = |gpu: &GpuId| {
            let node = view.ledger.gpus()[*gpu].node;
            rules.failure(view.ledger, node, view.node_use(node)).is_some()
                || view.over_cap(node, rules.cpu_milli, growth).is_some()
        };
        let (barred, open): (Vec<GpuId>, Vec<GpuId>) = class.members.iter().copied().partition(fails);
        barred.into_iter().for_each(|gpu| self.node(gpu, growth));
        let count = open.len() as u64;
        if count == 0 {
            return;
        }
        let (Some(grid), SpaceState::Grid(layout)) = (kind.grid(), state) else { return };
        let rows = asks.iter().flatten().filter_map(|ask| match ask {
            DeviceAsk::Instance(p) | DeviceAsk::Compute(p, _) => grid.rows().lookup(*p),
            _ => None,
        });
        let cells: u64 = rows.clone().map(|r| u64::from(r.size)).sum();
        let compute: u64 = rows.map(|r| u64::from(r.compute_slices)).sum();
        let (cells_free, compute_free) = (u64::from(grid.cells_free(layout)), grid.compute_free(layout).map(u64::from));
        if on == InstancesOn::SameGpu && cells > cells_free {
            self.add(Code::InsufficientSlices, Tally::amounts(count, cells, cells_free).about("memory slices"));
        } else if on == InstancesOn::SameGpu && compute_free.is_some_and(|free| compute > free) {
            let free = compute_free.unwrap_or(0);
            self.add(Code::InsufficientSlices, Tally::amounts(count, compute, free).about("compute slices"));
        } else {
            self.add(Code::InstancesDoNotFit, Tally::amounts(count, cells, cells_free).about("memory slices"));
        }
    }
}

/// What several instances add to the draw of one GPU of a class, in milliwatts, as far as
/// they fit on it together.
fn growth_of_all(ledger: &Ledger, kind: &Spec, state: &SpaceState, asks: &[Option<DeviceAsk>]) -> u64 {
    let mut state = state.clone();
    let mut growth: u64 = 0;
    for ask in asks.iter().flatten() {
        let Some(take) = kind.space().options(&state, *ask).first().copied() else { break };
        growth = growth.saturating_add(power::growth_mw(ledger, kind, &state, take));
        let Some(after) = kind.space().put(&state, take) else { break };
        state = after;
    }
    growth
}
