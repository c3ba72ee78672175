//! Where one member can go, best place first.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::policy::{Key, Surroundings, Term};
use super::power;
use super::rules::NodeRules;
use super::sets::{Limits, several, whole_sets};
use super::view::{Piece, Seat, View};
use crate::ids::{GpuId, NodeId, SpecId};
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
    /// Whether empty GPUs may change their mode for it. A change ranks after every place for
    /// the same alternative in the modes that the GPUs are in.
    pub changing: bool,
}

/// A place with its rank: fewest changes of mode, then as the policy has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ranked {
    changes: usize,
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
        Self { workload, resolved, rules, by_node, changing: false }
    }

    /// Every place for a member with this alternative that could make a difference, changes
    /// of mode included.
    pub fn all(&self, view: &View<'_>, alternative: usize, seated: &[Seat], work: &mut u64) -> Seats {
        Self { changing: view.ledger.has_modes(), ..*self }.all_places(view, alternative, seated, work)
    }

    fn all_places(&self, view: &View<'_>, alternative: usize, seated: &[Seat], work: &mut u64) -> Seats {
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
                        let convertible = view.ledger.convertible(spec, self.workload.keep_idle);
                        for (_, class) in view.ledger.index().of_spec(spec).chain(convertible) {
                            self.all_of_class(view, class, spec, *ask, alternative, seated, &mut seats.ranked, work);
                        }
                        for gpu in view.changed().filter(|g| view.spec_id(*g) == spec) {
                            for (key, take) in self.takes_on(view, gpu, *ask, seated) {
                                let piece = Piece { gpu, spec, take };
                                seats.ranked.push(self.ranked(view, key, u64::MAX, alternative, piece));
                            }
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

    fn ranked(&self, view: &View<'_>, key: Key, cpu_left: u64, alternative: usize, piece: Piece) -> Ranked {
        let node = view.ledger.gpus()[piece.gpu].node;
        let seat = Seat { alternative: alternative as u32, node, takes: Vec::from([piece]) };
        Ranked { changes: usize::from(view.spec_id(piece.gpu) != piece.spec), key, cpu_left, seat }
    }

    #[expect(clippy::too_many_arguments, reason = "one hot loop, kept flat")]
    fn all_of_class(
        &self,
        view: &View<'_>,
        class: &Class,
        spec: SpecId,
        ask: DeviceAsk,
        alternative: usize,
        seated: &[Seat],
        out: &mut Vec<Ranked>,
        work: &mut u64,
    ) {
        let kind = &view.ledger.specs()[spec];
        let takes = if class.key.spec == spec {
            self.measured(view.ledger, kind, &kind.state(class.key.state), class.key.around, ask)
        } else {
            measured_after_change(view.ledger, class, spec, ask)
        };
        let Some((_, first)) = takes.first() else { return };
        // What an ask adds to a state's draw is the same at each of its places.
        let growth = power::growth_on(view.ledger, class, spec, *first);
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
            out.extend(takes.iter().map(|(key, take)| {
                let piece = Piece { gpu: *gpu, spec, take: *take };
                self.ranked(view, *key, cpu_left, alternative, piece)
            }));
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
            Spread::DistinctGpus => others.all(|s| s.takes.iter().all(|p| Some(p.gpu) != gpu)),
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
            let (keep_idle, changing) = (self.workload.keep_idle, self.changing);
            let limits = Limits { gpu: &on_gpu, keep_idle, changing, growth_max_mw, sets };
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
    ) -> Vec<Vec<Piece>> {
        let ledger = view.ledger;
        let mut kinds: Vec<SpecId> = ledger.nodes()[node].gpus().flat_map(|g| limits.kinds(view, g)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut found = Vec::new();
        let (mut spread_out, mut models) = (None, Vec::new());
        for spec in kinds {
            match self.resolved.on(alternative, spec) {
                Ok(MemberAsk::Whole(gpus)) if !models.contains(&&ledger.specs()[spec].model().id) => {
                    let model = &ledger.specs()[spec].model().id;
                    models.push(model);
                    let serves = |spec: SpecId| {
                        ledger.specs()[spec].model().id == *model && self.resolved.on(alternative, spec).is_ok()
                    };
                    found.extend(whole_sets(view, node, &serves, gpus, limits, work));
                }
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
    fn rank_set(&self, view: &View<'_>, alternative: usize, node: NodeId, takes: Vec<Piece>) -> Option<Ranked> {
        let ledger = view.ledger;
        let record = &ledger.nodes()[node];
        let free = record.gpus().filter(|g| ledger.accepts(*g) && view.spec(*g).space().is_unused(&view.state(*g)));
        let around = Surroundings { open: record.is_open(), peers: u8::try_from(free.count()).unwrap_or(u8::MAX) };
        let (mut key, mut changes) = (Key::default(), 0);
        let mut scratch = view.clone();
        for piece in &takes {
            let state = scratch.state_in(piece.gpu, piece.spec, false)?;
            let mut measures = ledger.specs()[piece.spec].measure(&state, piece.take)?;
            if scratch.spec_id(piece.gpu) != piece.spec {
                changes += 1;
                measures = measures.after_destroying(instances(&scratch.state(piece.gpu)));
            }
            key = key.plus(measures.key(ledger.terms(), around));
            scratch.make(piece);
        }
        let cpu = record.cpu_free().unwrap_or(u64::MAX);
        let cpu_left = if self.rules.cpu_milli > 0 { cpu } else { u64::MAX };
        Some(Ranked { changes, key, cpu_left, seat: Seat { alternative: alternative as u32, node, takes } })
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
            changes: 0,
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

/// The takes on the GPUs of a class of empty ones after a change to this kind, with their ranks.
pub(super) fn measured_after_change(ledger: &Ledger, class: &Class, spec: SpecId, ask: DeviceAsk) -> Vec<(Key, Take)> {
    let kind = &ledger.specs()[spec];
    let idle = instances(&ledger.specs()[class.key.spec].state(class.key.state));
    let empty = kind.space().empty();
    let takes = kind.space().options(&empty, ask).into_iter();
    let key = |take| Some(kind.measure(&empty, take)?.after_destroying(idle).key(ledger.terms(), class.key.around));
    takes.filter_map(|take| Some((key(take)?, take))).collect()
}

/// Instances on a GPU.
fn instances(state: &SpaceState) -> u32 {
    match state {
        SpaceState::Grid(layout) => layout.entries().len() as u32,
        SpaceState::Uniform(_) | SpaceState::Fluid(_) => 0,
    }
}

/// Whether a take leaves every idle instance as it is, or uses it.
pub(super) fn destroys_nothing(space: &Space, state: &SpaceState, take: Take) -> bool {
    match (space, state) {
        (Space::Grid(grid), SpaceState::Grid(layout)) => grid.put(layout, take).is_some_and(|p| p.destroyed.is_empty()),
        _ => true,
    }
}
