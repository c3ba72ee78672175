//! Where one member can go, best place first.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::policy::{Key, Surroundings, Term};
use super::power;
use super::rules::NodeRules;
use super::sets::{Limits, several, whole_sets};
use super::view::{Seat, View};
use crate::ids::{GpuId, NodeId};
use crate::ledger::{Class, Ledger};
use crate::space::{DeviceAsk, Space, SpaceState, Take};
use crate::workload::{MemberAsk, Resolved, Spread, Workload};

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

impl Seats {
    /// The best place.
    pub fn into_first(self) -> Option<Ranked> {
        self.ranked.into_iter().next()
    }
}

impl<'a> Search<'a> {
    /// A search for this request.
    pub fn new(ledger: &Ledger, workload: &'a Workload, resolved: &'a Resolved) -> Self {
        let rules = NodeRules::of(workload);
        let by_node = workload.members.is_some() || !rules.is_blank(ledger) || ledger.has_power_caps();
        Self { workload, resolved, rules, by_node }
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
                            let takes = self.takes_on(view, gpu, *ask, seated).into_iter();
                            let ranked = |(key, take)| self.ranked(view, key, u64::MAX, alternative, gpu, take);
                            seats.ranked.extend(takes.map(ranked));
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

    fn ranked(&self, view: &View<'_>, key: Key, cpu_left: u64, alternative: usize, gpu: GpuId, take: Take) -> Ranked {
        let node = view.ledger.gpus()[gpu].node;
        Ranked { key, cpu_left, seat: Seat { alternative: alternative as u32, node, takes: Vec::from([(gpu, take)]) } }
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
        let Some((_, first)) = takes.first() else { return };
        // What an ask adds to a state's draw is the same at each of its places.
        let growth = power::growth_mw(view.ledger, kind, &state, *first);
        let mut nodes = BTreeSet::new();
        for gpu in &class.members {
            *work += 1;
            let node = view.ledger.gpus()[*gpu].node;
            let passes = || self.node_passes(view, node, Some(*gpu), growth, seated);
            if view.is_changed(*gpu) || !passes() || !nodes.insert(node) {
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
    pub(super) fn measured(
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

    /// Whether a node, and the GPU on it, may take a member beside those already seated, when
    /// its GPUs then draw this much more.
    pub fn node_passes(
        &self,
        view: &View<'_>,
        node: NodeId,
        gpu: Option<GpuId>,
        growth_mw: u64,
        seated: &[Seat],
    ) -> bool {
        self.rules.failure(view.ledger, node, view.node_use(node)).is_none()
            && self.spread_allows(view.ledger, node, gpu, seated)
            && view.over_cap(node, self.rules.cpu_milli, growth_mw).is_none()
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

    /// Places that take more than one device, or none: node by node.
    pub(super) fn on_nodes(
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
            if record.gpus().len() == 0 || !self.node_passes(view, node, None, 0, seated) {
                continue;
            }
            let on_gpu = |gpu: GpuId| self.spread_allows(view.ledger, node, Some(gpu), seated);
            let sets = if first_only { 1 } else { SETS_MAX };
            let growth_max_mw = view.growth_max_mw(node, self.rules.cpu_milli);
            let limits = Limits { gpu: &on_gpu, keep_idle: self.workload.keep_idle, growth_max_mw, sets };
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
    pub(super) fn node_only(
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
            self.node_passes(view, *node, None, 0, seated)
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
