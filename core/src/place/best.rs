//! The best place for one member, found through the class index: what is looked at grows
//! with the kinds of GPU states there are, not with the fleet.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Bound;

use super::policy::{Key, Surroundings, Term};
use super::power;
use super::seats::{Ranked, Search, destroys_nothing, measured_after_change};
use super::view::{Piece, Seat, View};
use crate::ids::{ClassId, GpuId, NodeId, SpecId};
use crate::ledger::{Class, PEERS_MAX, Rank};
use crate::space::{DeviceAsk, Take};
use crate::workload::{MemberAsk, WholeGpus};

/// Nodes with a set of instances that are compared before the best of them is taken. A set
/// has no class of its own, and the fleet may have a million nodes.
const NODES_COMPARED: usize = 16;

/// A place on one GPU. The order is that of the policy: rank, then CPU left on the node,
/// then position in the fleet, then place on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    key: Key,
    cpu_left: u64,
    piece: Piece,
}

impl Search<'_> {
    /// The best place for a member with this alternative; where there is none in the modes
    /// that GPUs are in, the best one after a change.
    pub fn best(&self, view: &View<'_>, alternative: usize, seated: &[Seat], work: &mut u64) -> Option<Seat> {
        let best = self.best_place(view, alternative, seated, work);
        if best.is_some() || !view.ledger.has_modes() {
            return best;
        }
        Self { changing: true, ..*self }.best_place(view, alternative, seated, work)
    }

    fn best_place(&self, view: &View<'_>, alternative: usize, seated: &[Seat], work: &mut u64) -> Option<Seat> {
        if self.resolved.is_node_only(alternative) {
            return self.node_only(view, alternative, seated, true, work).into_iter().next().map(|r| r.seat);
        }
        let mut best_set: Option<Ranked> = None;
        let mut has_several = false;
        for (spec, _) in view.ledger.specs().iter() {
            match self.resolved.on(alternative, spec) {
                Ok(MemberAsk::Whole(gpus)) => {
                    keep_best(&mut best_set, self.best_set(view, spec, gpus, alternative, seated, work));
                }
                Ok(MemberAsk::Several(..)) => has_several = true,
                Ok(MemberAsk::One(_) | MemberAsk::NodeOnly) | Err(_) => {}
            }
        }
        if has_several {
            keep_best(&mut best_set, self.best_several(view, alternative, seated, work));
        }
        best_set.map(|set| set.seat).or_else(|| self.best_single(view, alternative, seated, work))
    }

    /// The best single part of a GPU; profiles that serve an ask equally are tried smallest
    /// first.
    fn best_single(&self, view: &View<'_>, alternative: usize, seated: &[Seat], work: &mut u64) -> Option<Seat> {
        for rank in 0.. {
            let mut best: Option<Candidate> = None;
            let mut goes_on = false;
            for (spec, _) in view.ledger.specs().iter() {
                let Ok(MemberAsk::One(asks)) = self.resolved.on(alternative, spec) else { continue };
                let Some(ask) = asks.get(rank) else { continue };
                goes_on = true;
                self.best_on_classes(view, spec, *ask, seated, &mut best, work);
                // In the modes that GPUs are in, the pass before this one found nothing there.
                for gpu in view.changed().filter(|g| !self.changing && view.spec_id(*g) == spec) {
                    *work += 1;
                    let takes = self.takes_on(view, gpu, *ask, seated).into_iter();
                    let candidate =
                        |(key, take)| Candidate { key, cpu_left: u64::MAX, piece: Piece { gpu, spec, take } };
                    keep_best(&mut best, takes.map(candidate).min());
                }
            }
            if let Some(Candidate { piece, .. }) = best {
                let node = view.ledger.gpus()[piece.gpu].node;
                return Some(Seat { alternative: alternative as u32, node, takes: Vec::from([piece]) });
            }
            if !goes_on {
                break;
            }
        }
        None
    }

    fn best_on_classes(
        &self,
        view: &View<'_>,
        spec: SpecId,
        ask: DeviceAsk,
        seated: &[Seat],
        best: &mut Option<Candidate>,
        work: &mut u64,
    ) {
        let index = view.ledger.index();
        let slot = view.ledger.specs()[spec].slot(ask).filter(|_| !self.workload.keep_idle && !self.changing);
        if let Some(slot) = slot {
            for (key, take, id) in index.ranked(spec, slot) {
                if best.as_ref().is_some_and(|b| key > b.key) {
                    break;
                }
                self.keep_first(view, index.class(id), spec, (key, take), seated, best, work);
            }
            return;
        }
        for (_, class) in self.classes(view, spec) {
            *work += 1;
            if let Some(rank) = self.rank(view, class, spec, ask) {
                self.keep_first(view, class, spec, rank, seated, best, work);
            }
        }
    }

    /// Classes of this kind, or where modes change those of empty GPUs that are given it.
    fn classes<'a>(&self, view: &View<'a>, spec: SpecId) -> impl Iterator<Item = (ClassId, &'a Class)> + use<'a> {
        let ledger = view.ledger;
        let own = (!self.changing).then(|| ledger.index().of_spec(spec));
        own.into_iter().flatten().chain(self.given(view, spec))
    }

    /// Classes of empty GPUs that are given this kind, if modes change.
    fn given<'a>(&self, view: &View<'a>, spec: SpecId) -> impl Iterator<Item = (ClassId, &'a Class)> + use<'a> {
        let (ledger, keep_idle) = (view.ledger, self.workload.keep_idle);
        self.changing.then(|| ledger.convertible(spec, keep_idle)).into_iter().flatten()
    }

    /// The best take on a class of this kind, or of GPUs that are given it, with its rank.
    fn rank(&self, view: &View<'_>, class: &Class, spec: SpecId, ask: DeviceAsk) -> Rank {
        let (terms, kind) = (view.ledger.terms(), &view.ledger.specs()[spec]);
        if class.key.spec != spec {
            return measured_after_change(view.ledger, class, spec, ask).into_iter().min();
        }
        if !self.workload.keep_idle {
            return kind.rank(class.key, ask, terms);
        }
        let state = kind.state(class.key.state);
        let (measures, take) =
            kind.measure_best(&state, ask, terms, |take| destroys_nothing(kind.space(), &state, take))?;
        Some((measures.key(terms, class.key.around), take))
    }

    /// Keeps the first GPU of a class whose node meets the rules if it is better than what
    /// there is: least CPU left if CPU is asked, else in fleet order.
    #[expect(clippy::too_many_arguments, reason = "one hot loop, kept flat")]
    fn keep_first(
        &self,
        view: &View<'_>,
        class: &Class,
        spec: SpecId,
        (key, take): (Key, Take),
        seated: &[Seat],
        best: &mut Option<Candidate>,
        work: &mut u64,
    ) {
        let better =
            |cpu_left: u64, gpu: GpuId| best.is_none_or(|b| (key, cpu_left, gpu) < (b.key, b.cpu_left, b.piece.gpu));
        let growth = power::growth_on(view.ledger, class, spec, take);
        let mut passes = |gpu: GpuId| {
            *work += 1;
            !view.is_changed(gpu)
                && (!self.by_node || self.node_passes(view, view.ledger.gpus()[gpu].node, Some(gpu), growth, seated))
        };
        let mut found = None;
        let mut all = true;
        if self.rules.cpu_milli > 0 && !view.ledger.terms().contains(&Term::FirstFit) {
            let enough = class.by_cpu.range((self.rules.cpu_milli, GpuId(0))..);
            found = enough.copied().take_while(|(cpu, gpu)| better(*cpu, *gpu)).find(|(_, gpu)| passes(*gpu));
            all = class.by_cpu.len() < class.members.len();
        }
        if found.is_none() && all {
            // The first member by itself: the set is a tree, and most decisions end here.
            let first = class.first().filter(|gpu| better(u64::MAX, *gpu));
            let member = first.filter(|gpu| passes(*gpu)).or_else(|| {
                let rest = class.members.range((Bound::Excluded(first?), Bound::Unbounded));
                rest.copied().take_while(|gpu| better(u64::MAX, *gpu)).find(|gpu| passes(*gpu))
            });
            found = member.map(|gpu| (u64::MAX, gpu));
        }
        if let Some((cpu_left, gpu)) = found {
            *best = Some(Candidate { key, cpu_left, piece: Piece { gpu, spec, take } });
        }
    }

    /// The best set of whole GPUs: the classes of free GPUs with enough beside them say
    /// which nodes are worth a look, in the policy's order.
    fn best_set(
        &self,
        view: &View<'_>,
        spec: SpecId,
        gpus: &WholeGpus,
        alternative: usize,
        seated: &[Seat],
        work: &mut u64,
    ) -> Option<Ranked> {
        let ledger = view.ledger;
        let touched: BTreeSet<NodeId> = view.changed().map(|g| ledger.gpus()[g].node).collect();
        let least = u8::try_from(gpus.count).unwrap_or(PEERS_MAX).min(PEERS_MAX);
        let mut best = self.on_nodes(view, touched.iter().copied(), alternative, seated, true, work).into_first();
        let mut classes: Vec<(Key, &Class)> = Vec::new();
        for (_, class) in self.classes(view, spec) {
            *work += 1;
            // GPUs in other modes are no peers: how many a node could give is seen there.
            if self.changing || class.key.around.peers >= least {
                let rank = self.rank(view, class, spec, DeviceAsk::Whole);
                classes.extend(rank.map(|(key, _)| (key, class)));
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
                self.on_nodes(view, [node].into_iter(), alternative, seated, true, work).into_first()
            };
            let by_cpu = self.rules.cpu_milli > 0 && class.by_cpu.len() == class.members.len();
            let found = if by_cpu && !ledger.terms().contains(&Term::FirstFit) {
                class.by_cpu.range((self.rules.cpu_milli, GpuId(0))..).find_map(|(_, gpu)| first(*gpu))
            } else {
                class.members.iter().find_map(|gpu| first(*gpu))
            };
            keep_best(&mut best, found);
        }
        best
    }

    /// The best of several instances together. Nodes are visited in the order in which their
    /// GPUs rank for the largest instance; of the first few that have a set, the best is taken.
    fn best_several(&self, view: &View<'_>, alternative: usize, seated: &[Seat], work: &mut u64) -> Option<Ranked> {
        let ledger = view.ledger;
        let mut visited: BTreeSet<NodeId> = view.changed().map(|g| ledger.gpus()[g].node).collect();
        let touched = visited.iter().copied();
        let mut best = self.on_nodes(view, touched, alternative, seated, true, work).into_first();
        'kinds: for (spec, kind) in ledger.specs().iter() {
            let Ok(MemberAsk::Several(asks, _)) = self.resolved.on(alternative, spec) else { continue };
            let Some(largest) = asks.iter().flatten().copied().max_by_key(|ask| kind.cells_of(*ask)) else { continue };
            let mut ranked: Vec<(Key, ClassId)> = Vec::new();
            for (id, class) in ledger.index().of_spec(spec).chain(self.given(view, spec)) {
                *work += 1;
                ranked.extend(self.rank(view, class, spec, largest).map(|(key, _)| (key, id)));
            }
            ranked.sort_unstable();
            let mut compared = 0;
            for group in ranked.chunk_by(|a, b| a.0 == b.0) {
                for gpu in ledger.index().in_fleet_order(group.iter().map(|(_, id)| *id)) {
                    let node = ledger.gpus()[gpu].node;
                    if !visited.insert(node) {
                        continue;
                    }
                    let found = self.on_nodes(view, [node].into_iter(), alternative, seated, true, work).into_first();
                    compared += usize::from(found.is_some());
                    keep_best(&mut best, found);
                    if compared == NODES_COMPARED {
                        continue 'kinds;
                    }
                }
            }
        }
        best
    }

    /// The takes on one GPU that differs from the ledger, with their ranks.
    pub(super) fn takes_on(&self, view: &View<'_>, gpu: GpuId, ask: DeviceAsk, seated: &[Seat]) -> Vec<(Key, Take)> {
        let record = &view.ledger.gpus()[gpu];
        if !view.ledger.accepts(gpu) {
            return Vec::new();
        }
        // A node that a search already uses counts as open.
        let around = Surroundings { open: true, peers: 0 };
        let (kind, state) = (view.spec(gpu), view.state(gpu));
        let takes = self.measured(view.ledger, kind, &state, around, ask);
        let passes = |(_, take): &(Key, Take)| {
            let growth = power::growth_mw(view.ledger, kind, &state, *take);
            self.node_passes(view, record.node, Some(gpu), growth, seated)
        };
        if takes.first().is_some_and(passes) { takes } else { Vec::new() }
    }
}

fn keep_best<T: Ord>(best: &mut Option<T>, candidate: Option<T>) {
    if let Some(candidate) = candidate
        && best.as_ref().is_none_or(|b| candidate < *b)
    {
        *best = Some(candidate);
    }
}
