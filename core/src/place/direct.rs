//! The plain way to make room: who stands on the wanted cells goes to free places
//! elsewhere, and nobody else moves. Alike GPUs are tried once, through the class index.

use alloc::vec::Vec;

use super::moves::{Displaced, Room, displaced};
use super::policy::{Key, Surroundings};
use super::seats::Search;
use super::view::{Piece, Seat, View};
use crate::ids::{GpuId, ProfileId, SpecId};
use crate::ledger::{Class, Spec};
use crate::space::{DeviceAsk, SpaceState, Take};
use crate::workload::{MemberAsk, Workload};

/// GPUs of one class that are tried: who stands there, or the node, may forbid a move.
const MEMBERS_TRIED: usize = 8;

/// Where a GPU with room to be made is, and how.
#[derive(Clone, Copy)]
struct Target {
    alternative: usize,
    profile: ProfileId,
    start: u16,
}

/// Room for one member with at most `moves` moves: the fewest that do in this way, then
/// the best ranks of all places together.
pub(super) fn make_room(search: &Search<'_>, view: &View<'_>, moves: u32, work: &mut u64) -> Option<Room> {
    if moves == 0 || search.workload.count != 1 {
        return None;
    }
    let mut best: Option<(usize, Key, Room)> = None;
    for alternative in 0..search.resolved.alternatives.len() {
        for (spec, kind) in view.ledger.specs().iter() {
            let Ok(MemberAsk::One(asks)) = search.resolved.on(alternative, spec) else { continue };
            for ask in asks {
                let DeviceAsk::Instance(profile) = *ask else { continue };
                let starts = kind.grid().map_or(&[][..], |grid| &grid.rows()[profile].starts);
                for (_, class) in view.ledger.index().of_spec(spec) {
                    for &start in starts {
                        let target = Target { alternative, profile, start };
                        let limit = best.as_ref().map_or(moves as usize, |(count, ..)| *count);
                        let found = on_class(search, view, class, target, limit, work);
                        let better = |(count, key, _): &(usize, Key, Room)| {
                            best.as_ref().is_none_or(|(least, least_key, _)| (count, key) < (least, least_key))
                        };
                        best = found.filter(better).or(best);
                    }
                }
            }
        }
    }
    best.map(|(_, _, room)| room)
}

/// Room on the first GPU of a class where it can be made.
fn on_class(
    search: &Search<'_>,
    view: &View<'_>,
    class: &Class,
    target: Target,
    limit: usize,
    work: &mut u64,
) -> Option<(usize, Key, Room)> {
    let kind = &view.ledger.specs()[class.key.spec];
    let grid = kind.grid()?;
    let state = kind.state(class.key.state);
    let SpaceState::Grid(layout) = &*state else { return None };
    let standing = grid.standing(layout, target.profile, target.start);
    if standing.is_empty() || standing.len() > limit {
        return None;
    }
    class.members.iter().take(MEMBERS_TRIED).find_map(|gpu| {
        *work += 1;
        let standing = standing.iter().map(|entry| displaced(view, *gpu, entry)).collect::<Option<Vec<Displaced>>>()?;
        let node = view.ledger.gpus()[*gpu].node;
        search.node_passes(view, node, Some(*gpu), 0, &[]).then_some(())?;
        on_gpu(search, view, *gpu, target, standing, work)
    })
}

/// Lifts who stands there, seats the member, and puts the lifted down again, largest first.
fn on_gpu(
    search: &Search<'_>,
    view: &View<'_>,
    gpu: GpuId,
    target: Target,
    mut standing: Vec<Displaced>,
    work: &mut u64,
) -> Option<(usize, Key, Room)> {
    let ledger = view.ledger;
    let spec = ledger.gpus()[gpu].spec;
    let kind = &ledger.specs()[spec];
    let before = view.state(gpu).into_owned();
    let mut then = view.clone();
    standing.iter().try_for_each(|lifted| lifted.lift(&mut then))?;
    let take = Take::Instance { profile: target.profile, start: target.start };
    let node = ledger.gpus()[gpu].node;
    let seat = Seat { alternative: target.alternative as u32, node, takes: Vec::from([Piece { gpu, spec, take }]) };
    then.seat(&seat, &search.rules)?;
    let around = Surroundings { open: true, peers: 0 };
    let mut key = kind.measure_change(&before, &then.state(gpu), take).key(ledger.terms(), around);
    standing.sort_by_key(|lifted| core::cmp::Reverse(kind.cells_of(DeviceAsk::Instance(lifted.profile))));
    let mut shifts = Vec::new();
    for lifted in &standing {
        let (rank, to) = put_down(&then, spec, kind, lifted, work)?;
        let blank = Workload::default();
        let rules = lifted.rules(ledger, &blank);
        let place = ledger.gpus()[to.0].node;
        if place == ledger.gpus()[lifted.from.0].node {
            then.put(to.0, to.1).then_some(())?;
        } else {
            let piece = Piece { gpu: to.0, spec, take: to.1 };
            then.seat(&Seat { alternative: 0, node: place, takes: Vec::from([piece]) }, &rules)?;
        }
        key = key.plus(rank);
        shifts.push(lifted.shift(to));
    }
    // What leaves makes the draw less before the member adds to it, so only the end counts.
    then.keeps_caps().then(|| (shifts.len(), key, Room { seats: Vec::from([seat]), shifts }))
}

/// The best free place for a lifted instance.
fn put_down(
    view: &View<'_>,
    spec: SpecId,
    kind: &Spec,
    lifted: &Displaced,
    work: &mut u64,
) -> Option<(Key, (GpuId, Take))> {
    let ledger = view.ledger;
    let ask = DeviceAsk::Instance(lifted.profile);
    let blank = Workload::default();
    let rules = lifted.rules(ledger, &blank);
    let home = ledger.gpus()[lifted.from.0].node;
    let passes = |gpu: GpuId| {
        let node = ledger.gpus()[gpu].node;
        // Nobody's instance stays where it was found; a lease that stays has its CPU there.
        node == home || (lifted.owner.is_some() && rules.failure(ledger, node, view.node_use(node)).is_none())
    };
    let mut best: Option<(Key, GpuId, Take)> = None;
    let around = Surroundings { open: true, peers: 0 };
    for gpu in view.changed().filter(|gpu| ledger.gpus()[*gpu].spec == spec && ledger.accepts(*gpu) && passes(*gpu)) {
        *work += 1;
        let state = view.state(gpu);
        for take in kind.space().options(&state, ask).into_iter().filter(|take| (gpu, *take) != lifted.from) {
            let rank = kind.measure(&state, take).map(|measures| (measures.key(ledger.terms(), around), gpu, take));
            best = best.into_iter().chain(rank).min();
        }
    }
    let slot = kind.slot(ask)?;
    for (key, take, id) in ledger.index().ranked(spec, slot) {
        if best.is_some_and(|(least, ..)| key > least) {
            break;
        }
        *work += 1;
        let member = ledger.index().class(id).members.iter().take(MEMBERS_TRIED);
        let member = member.copied().find(|gpu| !view.is_changed(*gpu) && passes(*gpu));
        best = best.into_iter().chain(member.map(|gpu| (key, gpu, take))).min();
    }
    best.map(|(key, gpu, take)| (key, (gpu, take)))
}
