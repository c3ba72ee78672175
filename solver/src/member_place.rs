//! The integer program with a variable for every place that a member could have. It knows
//! every constraint, and is for small parts of a fleet: its size grows with the places.

use std::collections::{BTreeMap, BTreeSet};

use slicewise_core::ids::{GpuId, NodeId, SpecId};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::{NodeRules, NodeUse, Piece, Search, Seat, View};
use slicewise_core::plan::Objective;
use slicewise_core::space::{DeviceAsk, Space, SpaceState, Take};
use slicewise_core::workload::{MemberAsk, Resolved, Spread, Workload};

use crate::budget::Backend;
use crate::capacity::{Capacity, Use};
use crate::demand::Batch;
use crate::lp::{Column, Program, Sense, whole};

/// Variables that a program may have.
const PLACES_MAX: usize = 6_000;

/// Branch-and-bound nodes times places: a node of a large program costs more.
const NODES_BY_PLACES: u64 = 1_500_000;

/// A request with members to place.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Position of the request.
    pub request: usize,
    /// Members to place.
    pub members: u32,
}

/// Where, for what, and how hard.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The state to place on.
    pub ledger: &'a Ledger,
    /// What is asked.
    pub batch: &'a Batch,
    /// The requests.
    pub workloads: &'a [Workload],
    /// What for.
    pub objective: Objective,
    /// Branch-and-bound nodes.
    pub nodes: u64,
    /// Who solves.
    pub backend: Backend,
}

/// Requests that are alike but for their names.
struct Bundle<'a> {
    tasks: Vec<Task>,
    members: u32,
    workload: &'a Workload,
    resolved: &'a Resolved,
}

/// Seats by request for these members on these nodes; `None` where the program is too
/// large, the solver finds nothing, or its answer does not hold.
/// `now` is where they are.
pub fn solve(
    frame: Frame<'_>,
    tasks: &[Task],
    nodes: &BTreeSet<NodeId>,
    now: &[(usize, Vec<Seat>)],
) -> Option<Vec<(usize, Vec<Seat>)>> {
    let bundles = bundles(frame, tasks);
    let mut places: Vec<(usize, Seat)> = Vec::new();
    for (position, bundle) in bundles.iter().enumerate() {
        places.extend(places_of(frame, bundle, nodes)?.into_iter().map(|seat| (position, seat)));
        if places.len() > PLACES_MAX {
            return None;
        }
    }
    let mut model = Model { frame, bundles: &bundles, places: &places, program: Program::default() };
    model.build()?;
    model.start(now);
    let budget = frame.nodes.min(NODES_BY_PLACES / (places.len() as u64 + 1)).max(16);
    let values = model.program.solve(frame.backend, budget)?;
    read(frame, &bundles, &places, &values)
}

fn bundles<'a>(frame: Frame<'a>, tasks: &[Task]) -> Vec<Bundle<'a>> {
    let mut found: Vec<Bundle<'a>> = Vec::new();
    let mut by_text: BTreeMap<String, usize> = BTreeMap::new();
    for task in tasks {
        let (Some(workload), Some(resolved)) = (frame.workloads.get(task.request), frame.batch.resolved(task.request))
        else {
            continue;
        };
        let alone = workload.gang
            || workload.members.is_some()
            || !workload.labels.is_empty()
            || !workload.anti_affinity.is_empty();
        let text = if alone {
            format!("\u{1}{}", task.request)
        } else {
            let alike = Workload { name: String::new(), count: 1, tenant: None, pinned: false, ..workload.clone() };
            format!("{alike:?}")
        };
        let position = *by_text.entry(text).or_insert_with(|| {
            found.push(Bundle { tasks: Vec::new(), members: 0, workload, resolved });
            found.len() - 1
        });
        if let Some(bundle) = found.get_mut(position) {
            bundle.tasks.push(*task);
            bundle.members += task.members;
        }
    }
    found
}

/// Every place that one member could have; `None` if they cannot all be listed.
fn places_of(frame: Frame<'_>, bundle: &Bundle<'_>, nodes: &BTreeSet<NodeId>) -> Option<Vec<Seat>> {
    let ledger = frame.ledger;
    let rules = NodeRules::of(bundle.workload);
    let view = View::new(ledger);
    let mut seats = Vec::new();
    for (alternative, asked) in bundle.resolved.alternatives.iter().enumerate() {
        if asked
            .by_spec
            .iter()
            .any(|ask| matches!(ask, Ok(MemberAsk::Whole(_) | MemberAsk::Several(..) | MemberAsk::NodeOnly)))
            || ledger.specs().is_empty()
        {
            let search = Search::new(ledger, bundle.workload, bundle.resolved);
            let found = search.all(&view, alternative, &[], &mut 0);
            seats.extend(found.ranked.into_iter().map(|r| r.seat).filter(|seat| nodes.contains(&seat.node)));
            continue;
        }
        for node in nodes.iter().filter(|n| rules.failure(ledger, **n, NodeUse::default()).is_none()) {
            for gpu in ledger.nodes()[*node].gpus().filter(|g| ledger.accepts(*g)) {
                let keep_idle = bundle.workload.keep_idle;
                let own = std::iter::once(ledger.gpus()[gpu].spec);
                for spec in own.chain(ledger.spec(gpu).siblings().iter().copied()) {
                    let Ok(MemberAsk::One(asks)) = bundle.resolved.on(alternative, spec) else { continue };
                    let Some(state) = view.state_in(gpu, spec, keep_idle) else { continue };
                    let space = ledger.specs()[spec].space();
                    for ask in asks {
                        if matches!(ask, DeviceAsk::Compute(..)) {
                            return None;
                        }
                        let takes = space.options(&state, *ask).into_iter();
                        let takes = takes.filter(|t| !keep_idle || keeps_idle(space, &state, *t));
                        let pieces = takes.map(|take| Piece { gpu, spec, take });
                        let seat = |p| Seat { alternative: alternative as u32, node: *node, takes: vec![p] };
                        seats.extend(pieces.map(seat));
                    }
                }
            }
        }
    }
    Some(seats)
}

fn keeps_idle(space: &Space, state: &SpaceState, take: Take) -> bool {
    match (space, state) {
        (Space::Grid(grid), SpaceState::Grid(layout)) => grid.put(layout, take).is_some_and(|p| p.destroyed.is_empty()),
        _ => true,
    }
}

/// One column for each place comes first.
struct Model<'a> {
    frame: Frame<'a>,
    bundles: &'a [Bundle<'a>],
    places: &'a [(usize, Seat)],
    program: Program,
}

type Terms = Vec<(usize, i64)>;

impl Model<'_> {
    fn build(&mut self) -> Option<()> {
        let ledger = self.frame.ledger;
        let gpus: BTreeSet<GpuId> = self.places.iter().flat_map(|(_, s)| s.takes.iter().map(|p| p.gpu)).collect();
        let unused = |gpu: &GpuId| ledger.spec(*gpu).space().is_unused(&ledger.state(*gpu));
        // One member more is worth more than all GPUs saved.
        let weight = gpus.iter().filter(|g| unused(g)).count() as i64 + 1;
        self.program.maximise = true;
        for (position, seat) in self.places {
            let bundle = self.bundles.get(*position)?;
            let request = self.frame.batch.requests.get(bundle.tasks.first()?.request)?;
            let worth = match self.frame.objective {
                Objective::MostValue => i64::try_from(request.value).unwrap_or(i64::MAX),
                Objective::FewestGpus => 1,
            };
            let upper = if seat.takes.is_empty() { i64::from(bundle.members) } else { 1 };
            let cost = worth.saturating_mul(weight).min(100_000_000);
            self.program.column(Column { cost, upper: Some(upper), integer: true, start: None });
        }
        self.rows_of_gpus(&gpus, unused)?;
        self.rows_of_nodes();
        for position in 0..self.bundles.len() {
            self.rows_of_bundle(position)?;
        }
        self.rows_of_dislikes();
        Some(())
    }

    /// Starts the solver from where members are; the other columns follow from the places.
    fn start(&mut self, now: &[(usize, Vec<Seat>)]) {
        let mut here: BTreeSet<(usize, &Seat)> = BTreeSet::new();
        for (request, seats) in now {
            let position = self.bundles.iter().position(|b| b.tasks.iter().any(|t| t.request == *request));
            here.extend(position.into_iter().flat_map(|p| seats.iter().map(move |s| (p, s))));
        }
        for (column, (position, seat)) in self.program.columns.iter_mut().zip(self.places) {
            column.start = Some(i64::from(here.contains(&(*position, seat))));
        }
    }

    fn binary(&mut self, cost: i64) -> usize {
        self.program.column(Column { cost, upper: Some(1), integer: true, start: None })
    }

    fn rows_of_gpus(&mut self, gpus: &BTreeSet<GpuId>, unused: impl Fn(&GpuId) -> bool) -> Option<()> {
        for gpu in gpus {
            let mut users: BTreeMap<SpecId, Vec<usize>> = BTreeMap::new();
            for (column, (_, seat)) in self.places.iter().enumerate() {
                if let Some(piece) = seat.takes.iter().find(|p| p.gpu == *gpu) {
                    users.entry(piece.spec).or_default().push(column);
                }
            }
            for (spec, columns) in &users {
                self.rows_of_capacity(*gpu, *spec, columns)?;
            }
            if users.len() > 1 {
                // One mode for all that is on it.
                let mut modes = Terms::new();
                for columns in users.values() {
                    let mode = self.binary(0);
                    modes.push((mode, 1));
                    columns.iter().for_each(|c| self.program.row(vec![(*c, 1), (mode, -1)], Sense::Le, 0));
                }
                self.program.row(modes, Sense::Le, 1);
            }
            if unused(gpu) {
                let opened = self.binary(-1);
                let whoever = users.into_values().flatten();
                whoever.for_each(|c| self.program.row(vec![(c, 1), (opened, -1)], Sense::Le, 0));
            }
        }
        Some(())
    }

    /// What a GPU has left when it is of this kind, for the places that need it to be.
    fn rows_of_capacity(&mut self, gpu: GpuId, spec: SpecId, columns: &[usize]) -> Option<()> {
        let ledger = self.frame.ledger;
        let view = View::new(ledger);
        let capacity = Capacity::of(&ledger.specs()[spec], &*view.state_in(gpu, spec, false)?)?;
        let mut uses: BTreeMap<Use, Terms> = BTreeMap::new();
        for column in columns {
            let (_, seat) = self.places.get(*column)?;
            let mut own: BTreeMap<Use, i64> = BTreeMap::new();
            for piece in seat.takes.iter().filter(|p| p.gpu == gpu) {
                capacity.uses(piece.take, |what, n| *own.entry(what).or_default() += n);
            }
            own.into_iter().for_each(|(what, n)| uses.entry(what).or_default().push((*column, n)));
        }
        let mut kinds = Vec::new();
        for (what, mut terms) in uses {
            let left = capacity.left(what);
            if let Use::Share(_) = what {
                // Shares of one type at a time.
                let kind = self.binary(0);
                kinds.push((kind, 1));
                terms.push((kind, -left));
                self.program.row(terms, Sense::Le, 0);
            } else if terms.iter().map(|(_, n)| n).sum::<i64>() > left {
                self.program.row(terms, Sense::Le, left);
            }
        }
        self.program.row(kinds, Sense::Le, 1);
        Some(())
    }

    fn rows_of_nodes(&mut self) {
        let mut cpu: BTreeMap<NodeId, Terms> = BTreeMap::new();
        let mut memory: BTreeMap<NodeId, Terms> = BTreeMap::new();
        for (column, (position, seat)) in self.places.iter().enumerate() {
            let Some(workload) = self.bundles.get(*position).map(|b| b.workload) else { continue };
            if workload.cpu_milli > 0 {
                cpu.entry(seat.node).or_default().push((column, clip(workload.cpu_milli)));
            }
            if workload.memory_mib > 0 {
                memory.entry(seat.node).or_default().push((column, clip(workload.memory_mib)));
            }
        }
        let ledger = self.frame.ledger;
        for (node, terms) in cpu {
            if let Some(free) = ledger.nodes()[node].cpu_free() {
                self.program.row(terms, Sense::Le, clip(free));
            }
        }
        for (node, terms) in memory {
            if let Some(free) = ledger.nodes()[node].memory_free() {
                self.program.row(terms, Sense::Le, clip(free));
            }
        }
    }

    /// The columns of a bundle, grouped.
    fn grouped<K: Ord>(&self, position: usize, key: impl Fn(&Seat) -> Vec<K>) -> BTreeMap<K, Terms> {
        let mut groups: BTreeMap<K, Terms> = BTreeMap::new();
        for (column, (_, seat)) in self.places.iter().enumerate().filter(|(_, (p, _))| *p == position) {
            key(seat).into_iter().for_each(|k| groups.entry(k).or_default().push((column, 1)));
        }
        groups
    }

    fn rows_of_bundle(&mut self, position: usize) -> Option<()> {
        let bundle = self.bundles.get(position)?;
        let members = i64::from(bundle.members);
        let mut all: Terms = self.grouped(position, |_| vec![()]).remove(&()).unwrap_or_default();
        if bundle.workload.gang && members > 1 {
            let gang = self.binary(0);
            all.push((gang, -members));
            self.program.row(all.clone(), Sense::Ge, 0);
            self.program.row(all, Sense::Le, 0);
        } else {
            self.program.row(all, Sense::Le, members);
        }
        if members < 2 {
            return Some(());
        }
        let ledger = self.frame.ledger;
        // Nodes without a zone are each a zone of their own.
        let zone = |seat: &Seat| match &ledger.nodes()[seat.node].zone {
            Some(zone) => vec![(1, zone.clone(), seat.node.min(NodeId(0)))],
            None => vec![(0, String::new(), seat.node)],
        };
        match bundle.workload.members {
            None => {}
            Some(Spread::DistinctGpus) => {
                let gpus =
                    |seat: &Seat| seat.takes.iter().map(|p| p.gpu).collect::<BTreeSet<_>>().into_iter().collect();
                self.at_most_one(self.grouped(position, gpus));
            }
            Some(Spread::DistinctNodes) => self.at_most_one(self.grouped(position, |s| vec![s.node])),
            Some(Spread::DistinctZones) => self.at_most_one(self.grouped(position, zone)),
            Some(Spread::SameNode) => self.one_of(self.grouped(position, |s| vec![s.node]), members),
            Some(Spread::SameZone) => self.one_of(self.grouped(position, zone), members),
        }
        Some(())
    }

    fn at_most_one<K>(&mut self, groups: BTreeMap<K, Terms>) {
        groups.into_values().for_each(|terms| self.program.row(terms, Sense::Le, 1));
    }

    fn one_of<K>(&mut self, groups: BTreeMap<K, Terms>, members: i64) {
        let mut chosen = Terms::new();
        for mut terms in groups.into_values() {
            let choice = self.binary(0);
            terms.push((choice, -members));
            self.program.row(terms, Sense::Le, 0);
            chosen.push((choice, 1));
        }
        self.program.row(chosen, Sense::Le, 1);
    }

    /// Bundles of which one keeps away from the other are on different nodes.
    fn rows_of_dislikes(&mut self) {
        let meets = |a: &Workload, b: &Workload| {
            a.anti_affinity.iter().any(|r| b.labels.get(&r.key).is_some_and(|v| r.accepts(Some(v))))
        };
        let mut pairs = Vec::new();
        for (i, a) in self.bundles.iter().enumerate() {
            for (j, b) in self.bundles.iter().enumerate().skip(i + 1) {
                if meets(a.workload, b.workload) || meets(b.workload, a.workload) {
                    pairs.push((i, j));
                }
            }
        }
        let mut present: BTreeMap<(usize, NodeId), usize> = BTreeMap::new();
        let clashing: BTreeSet<usize> = pairs.iter().flat_map(|(i, j)| [*i, *j]).collect();
        for position in clashing {
            let members = self.bundles.get(position).map_or(1, |b| i64::from(b.members));
            for (node, mut terms) in self.grouped(position, |s| vec![s.node]) {
                let here = self.binary(0);
                terms.push((here, -members));
                self.program.row(terms, Sense::Le, 0);
                present.insert((position, node), here);
            }
        }
        for (i, j) in pairs {
            for ((_, node), first) in present.range((i, NodeId(0))..=(i, NodeId(u32::MAX))) {
                if let Some(second) = present.get(&(j, *node)) {
                    self.program.row(vec![(*first, 1), (*second, 1)], Sense::Le, 1);
                }
            }
        }
    }
}

/// Seats from values, each tried on the state.
fn read(
    frame: Frame<'_>,
    bundles: &[Bundle<'_>],
    places: &[(usize, Seat)],
    values: &[i64],
) -> Option<Vec<(usize, Vec<Seat>)>> {
    let mut view = View::new(frame.ledger);
    let mut by_bundle: Vec<Vec<Seat>> = bundles.iter().map(|_| Vec::new()).collect();
    for ((position, seat), value) in places.iter().zip(values) {
        for _ in 0..whole(*value).max(0) {
            let rules = NodeRules::of(bundles.get(*position)?.workload);
            if rules.failure(frame.ledger, seat.node, view.node_use(seat.node)).is_some() {
                return None;
            }
            view.seat(seat, &rules)?;
            if !view.keeps_caps() {
                return None;
            }
            by_bundle.get_mut(*position)?.push(seat.clone());
        }
    }
    let mut seats = Vec::new();
    for (bundle, found) in bundles.iter().zip(by_bundle) {
        let mut found = found.into_iter();
        for task in &bundle.tasks {
            seats.push((task.request, found.by_ref().take(task.members as usize).collect()));
        }
    }
    Some(seats)
}

fn clip(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX).min(1_000_000_000)
}
