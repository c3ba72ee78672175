//! Where one member can go, best place first.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::policy::{Key, Surroundings, Term};
use super::rules::NodeRules;
use super::sets::{Limits, several, whole_sets};
use super::view::{Seat, View};
use crate::ids::{GpuId, NodeId};
use crate::ledger::{Class, Ledger, PEERS_MAX};
use crate::space::{DeviceAsk, Space, SpaceState, Take};
use crate::workload::{MemberAsk, Resolved, Spread, WholeGpus, Workload};

/// Sets of GPUs or instances looked at for one member on one node before giving up.
const SETS_MAX: usize = 256;

/// Everything that bounds where a member may go.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The request.
    pub workload: &'a Workload,
    /// Its alternatives by device kind.
    pub resolved: &'a Resolved,
    /// What its nodes must meet.
    pub rules: NodeRules<'a>,
    /// Whether nodes differ for this request beyond their classes.
    pub by_node: bool,
}

/// A place with its rank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ranked {
    key: Key,
    cpu_left: u64,
    /// The place.
    pub seat: Seat,
}

/// Places found, and whether they are all there are.
#[derive(Clone, Debug, Default)]
pub struct Seats {
    /// Best first.
    pub ranked: Vec<Ranked>,
    /// Some were left out because there are too many.
    pub truncated: bool,
}

impl<'a> Search<'a> {
    /// A search for this request.
    pub fn new(ledger: &Ledger, workload: &'a Workload, resolved: &'a Resolved) -> Self {
        let rules = NodeRules::of(workload);
        let by_node = workload.members.is_some() || !rules.is_blank(ledger);
        Self { workload, resolved, rules, by_node }
    }

    /// The best place for a member with this alternative.
    pub fn best(&self, view: &View<'_>, alternative: usize, seated: &[Seat], work: &mut u64) -> Option<Seat> {
        if self.resolved.is_node_only(alternative) {
            return self.node_only(view, alternative, seated, true, work).into_iter().next().map(|r| r.seat);
        }
        let mut best: Option<Ranked> = None;
        let widest = self.widest(view.ledger, alternative);
        for rank in 0..widest {
            for (spec, _) in view.ledger.specs().iter() {
                match self.resolved.on(alternative, spec) {
                    Ok(MemberAsk::One(asks)) => {
                        let Some(ask) = asks.get(rank) else { continue };
                        self.best_on_classes(view, spec, *ask, alternative, seated, &mut best, work);
                        for gpu in view.changed().filter(|g| view.ledger.gpus()[*g].spec == spec) {
                            *work += 1;
                            keep_best(&mut best, self.seats_on(view, gpu, *ask, alternative, seated).into_iter().min());
                        }
                    }
                    Ok(MemberAsk::Whole(gpus)) if rank == 0 => {
                        self.best_set(view, spec, gpus, alternative, seated, &mut best, work);
                    }
                    Ok(_) if rank == 0 => {
                        let nodes = view.ledger.nodes().ids();
                        let found = self.on_nodes(view, nodes, alternative, seated, true, work);
                        keep_best(&mut best, found.ranked.into_iter().next());
                    }
                    _ => {}
                }
            }
            if best.is_some() {
                break;
            }
        }
        best.map(|b| b.seat)
    }

    /// Every place for a member with this alternative that could make a difference.
    pub fn all(&self, view: &View<'_>, alternative: usize, seated: &[Seat], work: &mut u64) -> Seats {
        let mut seats = Seats::default();
        if self.resolved.is_node_only(alternative) {
            seats.ranked = self.node_only(view, alternative, seated, false, work);
            return seats;
        }
        let mut on_nodes = false;
        for (spec, _) in view.ledger.specs().iter() {
            match self.resolved.on(alternative, spec) {
                Ok(MemberAsk::One(asks)) => {
                    for ask in asks {
                        for (_, class) in view.ledger.index().of_spec(spec) {
                            self.all_of_class(view, class, *ask, alternative, seated, &mut seats.ranked, work);
                        }
                        for gpu in view.changed().filter(|g| view.ledger.gpus()[*g].spec == spec) {
                            seats.ranked.extend(self.seats_on(view, gpu, *ask, alternative, seated));
                        }
                    }
                }
                Ok(_) => on_nodes = true,
                Err(_) => {}
            }
        }
        if on_nodes {
            let found = self.on_nodes(view, view.ledger.nodes().ids(), alternative, seated, false, work);
            seats.ranked.extend(found.ranked);
            seats.truncated |= found.truncated;
        }
        seats.ranked.sort();
        seats.ranked.dedup();
        seats
    }

    fn widest(&self, ledger: &Ledger, alternative: usize) -> usize {
        let lengths = ledger.specs().ids().map(|spec| match self.resolved.on(alternative, spec) {
            Ok(MemberAsk::One(asks)) => asks.len(),
            Ok(_) => 1,
            Err(_) => 0,
        });
        lengths.max().unwrap_or(0)
    }

    #[expect(clippy::too_many_arguments, reason = "one hot loop, kept flat")]
    fn best_on_classes(
        &self,
        view: &View<'_>,
        spec: crate::ids::SpecId,
        ask: DeviceAsk,
        alternative: usize,
        seated: &[Seat],
        best: &mut Option<Ranked>,
        work: &mut u64,
    ) {
        let index = view.ledger.index();
        let terms = view.ledger.terms();
        let kind = &view.ledger.specs()[spec];
        if let (DeviceAsk::Instance(profile), false) = (ask, self.workload.keep_idle) {
            for (key, take, class) in index.ranked(spec, profile) {
                if best.as_ref().is_some_and(|b| key > b.key) {
                    break;
                }
                let found = self.first_member(view, class, seated, work);
                keep_best(best, found.map(|(cpu, gpu)| self.ranked(view, key, cpu, alternative, gpu, take)));
            }
            return;
        }
        for (_, class) in index.of_spec(spec) {
            *work += 1;
            let state = kind.state(class.key.state);
            let measured = if self.workload.keep_idle {
                kind.measure_best(&state, ask, terms, |take| destroys_nothing(kind.space(), &state, take))
            } else {
                kind.best(class.key.state, ask, terms)
            };
            let Some((measures, take)) = measured else { continue };
            let key = measures.key(terms, class.key.around);
            if best.as_ref().is_some_and(|b| key > b.key) {
                continue;
            }
            let found = self.first_member(view, class, seated, work);
            keep_best(best, found.map(|(cpu, gpu)| self.ranked(view, key, cpu, alternative, gpu, take)));
        }
    }

    fn ranked(&self, view: &View<'_>, key: Key, cpu_left: u64, alternative: usize, gpu: GpuId, take: Take) -> Ranked {
        let node = view.ledger.gpus()[gpu].node;
        Ranked { key, cpu_left, seat: Seat { alternative: alternative as u32, node, takes: Vec::from([(gpu, take)]) } }
    }

    /// The first GPU of a class whose node meets the rules: least CPU left if CPU is asked,
    /// else in fleet order.
    fn first_member(&self, view: &View<'_>, class: &Class, seated: &[Seat], work: &mut u64) -> Option<(u64, GpuId)> {
        let mut passes = |gpu: &GpuId| {
            *work += 1;
            !view.is_changed(*gpu) && self.node_passes(view, view.ledger.gpus()[*gpu].node, Some(*gpu), seated)
        };
        if self.rules.cpu_milli > 0 && !view.ledger.terms().contains(&Term::FirstFit) {
            let limited = class.by_cpu.range((self.rules.cpu_milli, GpuId(0))..).find(|(_, gpu)| passes(gpu));
            if let Some((cpu, gpu)) = limited {
                return Some((*cpu, *gpu));
            }
            if class.by_cpu.len() == class.members.len() {
                return None;
            }
        }
        class.members.iter().find(|gpu| passes(gpu)).map(|gpu| (u64::MAX, *gpu))
    }

    #[expect(clippy::too_many_arguments, reason = "one hot loop, kept flat")]
    fn all_of_class(
        &self,
        view: &View<'_>,
        class: &Class,
        ask: DeviceAsk,
        alternative: usize,
        seated: &[Seat],
        out: &mut Vec<Ranked>,
        work: &mut u64,
    ) {
        let kind = &view.ledger.specs()[class.key.spec];
        let state = kind.state(class.key.state);
        let takes = self.measured(view.ledger, kind, &state, class.key.around, ask);
        if takes.is_empty() {
            return;
        }
        let mut nodes = BTreeSet::new();
        for gpu in &class.members {
            *work += 1;
            let node = view.ledger.gpus()[*gpu].node;
            if view.is_changed(*gpu) || !self.node_passes(view, node, Some(*gpu), seated) || !nodes.insert(node) {
                continue;
            }
            let cpu = view.ledger.nodes()[node].cpu_free().unwrap_or(u64::MAX);
            let cpu_left = if self.rules.cpu_milli > 0 { cpu } else { u64::MAX };
            out.extend(takes.iter().map(|(key, take)| self.ranked(view, *key, cpu_left, alternative, *gpu, *take)));
            if !self.by_node {
                break;
            }
        }
    }

    /// The takes on one state, with their ranks.
    fn measured(
        &self,
        ledger: &Ledger,
        kind: &crate::ledger::Spec,
        state: &SpaceState,
        around: Surroundings,
        ask: DeviceAsk,
    ) -> Vec<(Key, Take)> {
        let takes = kind.space().options(state, ask).into_iter();
        takes
            .filter(|take| !self.workload.keep_idle || destroys_nothing(kind.space(), state, *take))
            .filter_map(|take| Some((kind.measure(state, take)?.key(ledger.terms(), around), take)))
            .collect()
    }

    /// The places on one GPU that differs from the ledger.
    fn seats_on(
        &self,
        view: &View<'_>,
        gpu: GpuId,
        ask: DeviceAsk,
        alternative: usize,
        seated: &[Seat],
    ) -> Vec<Ranked> {
        let record = &view.ledger.gpus()[gpu];
        if !view.ledger.accepts(gpu) || !self.node_passes(view, record.node, Some(gpu), seated) {
            return Vec::new();
        }
        // A node that a search already uses counts as open.
        let around = Surroundings { open: true, peers: 0 };
        let takes = self.measured(view.ledger, view.ledger.spec(gpu), &view.state(gpu), around, ask);
        takes.into_iter().map(|(key, take)| self.ranked(view, key, u64::MAX, alternative, gpu, take)).collect()
    }

    /// Whether a node, and the GPU on it, may take a member beside those already seated.
    pub fn node_passes(&self, view: &View<'_>, node: NodeId, gpu: Option<GpuId>, seated: &[Seat]) -> bool {
        self.rules.failure(view.ledger, node, view.node_use(node)).is_none()
            && self.spread_allows(view.ledger, node, gpu, seated)
    }

    /// Whether the members' own rule about each other allows a node and GPU.
    pub fn spread_allows(&self, ledger: &Ledger, node: NodeId, gpu: Option<GpuId>, seated: &[Seat]) -> bool {
        let Some(spread) = self.workload.members else { return true };
        let zone = |n: NodeId| ledger.nodes()[n].zone.as_deref();
        let mut others = seated.iter();
        match spread {
            Spread::DistinctGpus => others.all(|s| s.takes.iter().all(|(g, _)| Some(*g) != gpu)),
            Spread::DistinctNodes => others.all(|s| s.node != node),
            Spread::SameNode => others.all(|s| s.node == node),
            // Nodes without a zone are each a zone of their own.
            Spread::DistinctZones => {
                others.all(|s| s.node != node && (zone(node).is_none() || zone(s.node) != zone(node)))
            }
            Spread::SameZone => others.all(|s| s.node == node || (zone(node).is_some() && zone(s.node) == zone(node))),
        }
    }

    /// The best set of whole GPUs: the classes of free GPUs with enough beside them say
    /// which nodes are worth a look, in the policy's order.
    #[expect(clippy::too_many_arguments, reason = "one hot loop, kept flat")]
    fn best_set(
        &self,
        view: &View<'_>,
        spec: crate::ids::SpecId,
        gpus: &WholeGpus,
        alternative: usize,
        seated: &[Seat],
        best: &mut Option<Ranked>,
        work: &mut u64,
    ) {
        let ledger = view.ledger;
        let kind = &ledger.specs()[spec];
        let touched: BTreeSet<NodeId> = view.changed().map(|g| ledger.gpus()[g].node).collect();
        let least = u8::try_from(gpus.count).unwrap_or(PEERS_MAX).min(PEERS_MAX);
        let mut classes: Vec<(Key, &Class)> = Vec::new();
        for (_, class) in ledger.index().of_spec(spec) {
            *work += 1;
            if class.key.around.peers >= least
                && let Some((measures, _)) = kind.best(class.key.state, DeviceAsk::Whole, ledger.terms())
            {
                classes.push((measures.key(ledger.terms(), class.key.around), class));
            }
        }
        classes.sort_by_key(|(key, class)| (*key, class.key));
        for (_, class) in classes {
            let mut last = None;
            // The set is ranked as a whole, so the first node that has one is the class's best.
            let mut first = |gpu: GpuId| {
                let node = ledger.gpus()[gpu].node;
                if touched.contains(&node) || last.replace(node) == Some(node) {
                    return None;
                }
                self.on_nodes(view, [node].into_iter(), alternative, seated, true, work).ranked.into_iter().next()
            };
            let by_cpu = self.rules.cpu_milli > 0 && class.by_cpu.len() == class.members.len();
            let found = if by_cpu && !ledger.terms().contains(&Term::FirstFit) {
                class.by_cpu.range((self.rules.cpu_milli, GpuId(0))..).find_map(|(_, gpu)| first(*gpu))
            } else {
                class.members.iter().find_map(|gpu| first(*gpu))
            };
            keep_best(best, found);
        }
        let found = self.on_nodes(view, touched.into_iter(), alternative, seated, true, work);
        keep_best(best, found.ranked.into_iter().next());
    }

    /// Places that take more than one device, or none: node by node.
    fn on_nodes(
        &self,
        view: &View<'_>,
        nodes: impl Iterator<Item = NodeId>,
        alternative: usize,
        seated: &[Seat],
        first_only: bool,
        work: &mut u64,
    ) -> Seats {
        let mut seats = Seats::default();
        for node in nodes {
            let record = &view.ledger.nodes()[node];
            *work += 1;
            if record.gpus().len() == 0 || !self.node_passes(view, node, None, seated) {
                continue;
            }
            let on_gpu = |gpu: GpuId| self.spread_allows(view.ledger, node, Some(gpu), seated);
            let sets = if first_only { 1 } else { SETS_MAX };
            let limits = Limits { gpu: &on_gpu, keep_idle: self.workload.keep_idle, sets };
            let found = self.sets_on(view, node, alternative, limits, work);
            seats.truncated |= !first_only && found.len() >= SETS_MAX;
            seats.ranked.extend(found.into_iter().filter_map(|takes| self.rank_set(view, alternative, node, takes)));
        }
        seats.ranked.sort();
        seats
    }

    /// Sets of devices of one node for the alternative, of every kind of device there.
    fn sets_on(
        &self,
        view: &View<'_>,
        node: NodeId,
        alternative: usize,
        limits: Limits<'_>,
        work: &mut u64,
    ) -> Vec<Vec<(GpuId, Take)>> {
        let ledger = view.ledger;
        let mut kinds: Vec<_> = ledger.nodes()[node].gpus().map(|g| ledger.gpus()[g].spec).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut found = Vec::new();
        let mut spread_out = None;
        for spec in kinds {
            match self.resolved.on(alternative, spec) {
                Ok(MemberAsk::Whole(gpus)) => found.extend(whole_sets(view, node, spec, gpus, limits, work)),
                Ok(MemberAsk::Several(_, on)) => spread_out = Some(*on),
                _ => {}
            }
        }
        if let Some(on) = spread_out {
            let asks_on = |spec| match self.resolved.on(alternative, spec) {
                Ok(MemberAsk::Several(asks, _)) => Some(asks.as_slice()),
                _ => None,
            };
            found.extend(several(view, node, &asks_on, on, limits, work));
        }
        found
    }

    /// The rank of a set: the sum of its parts, each on what the parts before it left.
    fn rank_set(&self, view: &View<'_>, alternative: usize, node: NodeId, takes: Vec<(GpuId, Take)>) -> Option<Ranked> {
        let ledger = view.ledger;
        let record = &ledger.nodes()[node];
        let free = record.gpus().filter(|g| ledger.accepts(*g) && ledger.spec(*g).space().is_unused(&view.state(*g)));
        let around = Surroundings { open: record.is_open(), peers: u8::try_from(free.count()).unwrap_or(u8::MAX) };
        let mut key = Key::default();
        let mut scratch = view.clone();
        for (gpu, take) in &takes {
            let measures = ledger.spec(*gpu).measure(&scratch.state(*gpu), *take)?;
            key = key.plus(measures.key(ledger.terms(), around));
            scratch.put(*gpu, *take);
        }
        let cpu = record.cpu_free().unwrap_or(u64::MAX);
        let cpu_left = if self.rules.cpu_milli > 0 { cpu } else { u64::MAX };
        Some(Ranked { key, cpu_left, seat: Seat { alternative: alternative as u32, node, takes } })
    }

    /// Nodes for a member without a GPU: least CPU left that suffices, or most under
    /// [`Term::Spread`].
    fn node_only(
        &self,
        view: &View<'_>,
        alternative: usize,
        seated: &[Seat],
        first_only: bool,
        work: &mut u64,
    ) -> Vec<Ranked> {
        let nodes = view.ledger.nodes_with_cpu(self.rules.cpu_milli);
        let limit = if first_only { 1 } else { usize::MAX };
        let passes = |(_, node): &(usize, NodeId)| {
            *work += 1;
            self.node_passes(view, *node, None, seated)
        };
        let ranked = |(position, node)| Ranked {
            key: Key::default(),
            cpu_left: position as u64,
            seat: Seat { alternative: alternative as u32, node, takes: Vec::new() },
        };
        if view.ledger.terms().contains(&Term::Spread) {
            return nodes.rev().enumerate().filter(passes).take(limit).map(ranked).collect();
        }
        nodes.enumerate().filter(passes).take(limit).map(ranked).collect()
    }
}

/// Whether a take leaves every idle instance as it is, or uses it.
pub(super) fn destroys_nothing(space: &Space, state: &SpaceState, take: Take) -> bool {
    match (space, state) {
        (Space::Grid(grid), SpaceState::Grid(layout)) => grid.put(layout, take).is_some_and(|p| p.destroyed.is_empty()),
        _ => true,
    }
}

fn keep_best(best: &mut Option<Ranked>, candidate: Option<Ranked>) {
    if let Some(candidate) = candidate
        && best.as_ref().is_none_or(|b| candidate < *b)
    {
        *best = Some(candidate);
    }
}
