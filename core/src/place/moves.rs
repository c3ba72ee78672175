//! Making room by moving others: the fewest moves after which a request fits.
//!
//! Iterative deepening over the number of moves, jointly over the members: to place an
//! instance on a start, what stands on its cells has to go elsewhere, which may in turn need
//! room. Each depth tries every combination in which an instance moves at most once, which
//! is all that matters: where everything ends. So the first answer is the fewest, if nothing
//! was left out.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use super::direct;
use super::policy::{Key, Surroundings};
use super::rules::NodeRules;
use super::seats::Search;
use super::steps::Shift;
use super::view::{Piece, Seat, View};
use crate::ids::{GpuId, ProfileId, SpecId};
use crate::ledger::Ledger;
use crate::space::{DeviceAsk, Entry, Grid, Hold, SpaceState, Take};
use crate::workload::{MemberAsk, Workload};

/// What a search for room found.
#[derive(Clone, Debug)]
pub struct Room {
    /// Where the members go.
    pub seats: Vec<Seat>,
    /// Who moves, each when its target is free.
    pub shifts: Vec<Shift>,
}

/// Seats a request that does not fit as it is, with at most `moves` moves of others. The flag
/// says whether nothing was left out: then fewer moves do not do, or none exist.
pub fn make_room(
    search: &Search<'_>,
    view: &View<'_>,
    moves: u32,
    budget: u64,
    work: &mut u64,
) -> (Option<Room>, bool) {
    let direct = direct::make_room(search, view, moves, work);
    let fewer = direct.as_ref().map_or(moves as usize, |room| room.shifts.len() - 1);
    let mut deep = Deepening { search, budget, work, fixed: BTreeSet::new(), complete: true };
    for depth in 1..=fewer as u32 {
        let start = Attempt { view: view.clone(), seats: Vec::new(), shifts: Vec::new(), displaced: VecDeque::new() };
        if let Some(found) = deep.fill(start, depth) {
            let room = Room { seats: found.seats, shifts: found.shifts };
            return (ordered(view.ledger, Some(room)), deep.complete);
        }
        if *deep.work > budget {
            return (ordered(view.ledger, direct), false);
        }
    }
    (ordered(view.ledger, direct), deep.complete)
}

fn ordered(ledger: &Ledger, room: Option<Room>) -> Option<Room> {
    room.map(|Room { seats, shifts }| Room { seats, shifts: in_order(ledger, shifts) })
}

/// Shifts so that each target is free when its turn comes; what only frees each other's
/// target stays as it is.
fn in_order(ledger: &Ledger, mut open: Vec<Shift>) -> Vec<Shift> {
    let mut view = View::new(ledger);
    let mut ordered = Vec::with_capacity(open.len());
    while let Some(position) = open.iter().position(|s| view.clone().put(s.to.0, s.to.1)) {
        let shift = open.remove(position);
        view.put(shift.to.0, shift.to.1);
        let after = ledger.spec(shift.from.0).space().remove(&view.state(shift.from.0), shift.from.1);
        after.into_iter().for_each(|state| view.set(shift.from.0, state));
        ordered.push(shift);
    }
    ordered.extend(open);
    ordered
}

struct Deepening<'a, 'b> {
    search: &'a Search<'a>,
    budget: u64,
    work: &'b mut u64,
    /// Takes of this attempt, which stay.
    fixed: BTreeSet<(GpuId, Take)>,
    complete: bool,
}

/// How far an attempt has come.
#[derive(Clone)]
struct Attempt<'v> {
    view: View<'v>,
    seats: Vec<Seat>,
    shifts: Vec<Shift>,
    /// Lifted from their places, and not put down again.
    displaced: VecDeque<Displaced>,
}

/// An instance on its way: what it is and where it came from.
#[derive(Clone)]
pub(super) struct Displaced {
    pub from: (GpuId, Take),
    pub profile: ProfileId,
    pub owner: Option<String>,
    name: String,
    member: u32,
}

impl Displaced {
    /// Takes it from its place; `None` if it is not there.
    pub fn lift(&self, view: &mut View<'_>) -> Option<()> {
        let (gpu, take) = self.from;
        let after = view.spec(gpu).space().remove(&view.state(gpu), take)?;
        view.set(gpu, after);
        Some(())
    }
    /// What its nodes have to meet; `blank` if no lease owns it.
    pub fn rules<'a>(&self, ledger: &'a Ledger, blank: &'a Workload) -> NodeRules<'a> {
        let lease = self.owner.as_deref().and_then(|name| ledger.lease(name));
        lease.map_or_else(|| NodeRules::of(blank), NodeRules::of_lease)
    }
    pub fn shift(&self, to: (GpuId, Take)) -> Shift {
        let leased = self.owner.is_some();
        Shift { name: self.name.clone(), member: self.member, leased, from: self.from, to }
    }
}

/// The instance with what moving it needs to know; `None` if it may not be moved.
pub(super) fn displaced(view: &View<'_>, gpu: GpuId, entry: &Entry) -> Option<Displaced> {
    let take = Take::Instance { profile: entry.profile, start: entry.start };
    if entry.hold != Hold::Busy || view.ledger.is_pinned(gpu, entry.start) {
        return None;
    }
    let owner = view.ledger.owners(gpu, entry.start).next();
    let name =
        owner.map(|(_, l)| l.name.clone()).or_else(|| view.ledger.names_at(gpu, entry.start).into_iter().next())?;
    let part = owner.and_then(|(_, l)| l.parts.iter().find(|p| p.on == Some((gpu, take))));
    // What is bound to its other parts stays with them.
    if owner.is_some_and(|(_, l)| l.parts.len() > 1) {
        return None;
    }
    Some(Displaced {
        from: (gpu, take),
        profile: entry.profile,
        owner: owner.map(|(_, l)| l.name.clone()),
        name,
        member: part.map_or(0, |p| p.member),
    })
}

impl Deepening<'_, '_> {
    /// Puts down who was displaced, then the members that are left, with at most `moves`
    /// further moves.
    fn fill<'v>(&mut self, mut now: Attempt<'v>, moves: u32) -> Option<Attempt<'v>> {
        if *self.work > self.budget {
            self.complete = false;
            return None;
        }
        if let Some(next) = now.displaced.pop_front() {
            return self.put_down(&now, &next, moves);
        }
        if now.seats.len() == self.search.workload.count as usize {
            return now.view.keeps_caps().then_some(now);
        }
        for alternative in 0..self.search.resolved.alternatives.len() {
            let found = self.search.all(&now.view, alternative, &now.seats, self.work);
            self.complete &= !found.truncated;
            for ranked in found.ranked {
                *self.work += 1;
                let mut then = now.clone();
                if then.view.seat(&ranked.seat, &self.search.rules).is_none() {
                    continue;
                }
                let takes: Vec<(GpuId, Take)> = ranked.seat.takes.iter().map(|p| (p.gpu, p.take)).collect();
                then.seats.push(ranked.seat);
                let found = self.holding(&takes, |deep| deep.fill(then, moves));
                if found.is_some() {
                    return found;
                }
            }
        }
        if moves == 0 {
            return None;
        }
        for alternative in 0..self.search.resolved.alternatives.len() {
            for (spec, _) in now.view.ledger.specs().iter() {
                let found = self.member_on(&now, alternative, spec, moves);
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Seats the next member where others have to go for it.
    fn member_on<'v>(
        &mut self,
        now: &Attempt<'v>,
        alternative: usize,
        spec: SpecId,
        moves: u32,
    ) -> Option<Attempt<'v>> {
        let has_instances = now.view.ledger.specs()[spec].grid().is_some();
        let asks = match self.search.resolved.on(alternative, spec) {
            Ok(MemberAsk::One(asks)) => asks,
            Ok(MemberAsk::Several(..)) if has_instances => {
                self.complete = false;
                return None;
            }
            // Nothing that can be moved stands in the way of these.
            _ => return None,
        };
        for ask in asks {
            let profile = match ask {
                DeviceAsk::Instance(profile) => *profile,
                DeviceAsk::Compute(..) => {
                    self.complete = false;
                    continue;
                }
                _ => continue,
            };
            let rules = self.search.rules;
            for (standing, _, gpu, start) in self.targets(now, spec, profile, &rules, None) {
                if standing.is_empty() || standing.len() > moves as usize {
                    continue;
                }
                let take = Take::Instance { profile, start };
                let Some(mut then) = self.taken(now, &standing, gpu, take) else { continue };
                let node = now.view.ledger.gpus()[gpu].node;
                let seat =
                    Seat { alternative: alternative as u32, node, takes: Vec::from([Piece { gpu, spec, take }]) };
                // The take is made; what is left is the node's CPU and memory.
                if then.view.seat(&Seat { takes: Vec::new(), ..seat.clone() }, &rules).is_none() {
                    continue;
                }
                then.seats.push(seat);
                let left = moves - standing.len() as u32;
                let found = self.holding(&[(gpu, take)], |deep| deep.fill(then, left));
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Finds a place for a displaced instance; those that move for it count too.
    fn put_down<'v>(&mut self, now: &Attempt<'v>, next: &Displaced, moves: u32) -> Option<Attempt<'v>> {
        let blank = Workload::default();
        let rules = next.rules(now.view.ledger, &blank);
        let spec = now.view.ledger.gpus()[next.from.0].spec;
        for (standing, _, gpu, start) in self.targets(now, spec, next.profile, &rules, Some(next)) {
            if standing.len() > moves as usize {
                continue;
            }
            let take = Take::Instance { profile: next.profile, start };
            let Some(mut then) = self.taken(now, &standing, gpu, take) else { continue };
            let node = now.view.ledger.gpus()[gpu].node;
            if node != now.view.ledger.gpus()[next.from.0].node {
                // Its CPU and memory come along; the take itself is made.
                let arrival = Seat { alternative: 0, node, takes: Vec::new() };
                if then.view.seat(&arrival, &rules).is_none() {
                    continue;
                }
            }
            then.shifts.push(next.shift((gpu, take)));
            let left = moves - standing.len() as u32;
            let found = self.holding(&[(gpu, take)], |deep| deep.fill(then, left));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The attempt with these lifted and the take made.
    fn taken<'v>(&mut self, now: &Attempt<'v>, standing: &[Displaced], gpu: GpuId, take: Take) -> Option<Attempt<'v>> {
        *self.work += 1;
        let mut then = now.clone();
        standing.iter().try_for_each(|d| d.lift(&mut then.view))?;
        then.displaced.extend(standing.iter().cloned());
        then.view.put(gpu, take).then_some(then)
    }

    /// Goes on while these takes stay.
    fn holding<T>(&mut self, takes: &[(GpuId, Take)], go_on: impl FnOnce(&mut Self) -> T) -> T {
        self.fixed.extend(takes);
        let result = go_on(self);
        takes.iter().for_each(|take| {
            self.fixed.remove(take);
        });
        result
    }

    /// GPUs and starts for a profile, with what stands there: fewest to move first, then as
    /// the policy ranks them.
    fn targets(
        &mut self,
        now: &Attempt<'_>,
        spec: SpecId,
        profile: ProfileId,
        rules: &NodeRules<'_>,
        moved: Option<&Displaced>,
    ) -> Vec<(Vec<Displaced>, Key, GpuId, u16)> {
        let view = &now.view;
        let ledger = view.ledger;
        let Some(grid) = ledger.specs()[spec].grid() else { return Vec::new() };
        let home = moved.map(|d| ledger.gpus()[d.from.0].node);
        let mut targets = Vec::new();
        // What moves goes to GPUs as they are; one that changes its mode for it is not searched.
        self.complete &= moved.is_none() || ledger.convertible(spec, false).next().is_none();
        let members = ledger.index().of_spec(spec).flat_map(|(_, class)| class.members.iter().copied());
        for gpu in members {
            *self.work += 1;
            let node = ledger.gpus()[gpu].node;
            let stays = moved.is_none_or(|d| home == Some(node) || d.owner.is_some());
            // A member that stays on its node already has its CPU there.
            let passes = home == Some(node) || rules.failure(ledger, node, view.node_use(node)).is_none();
            let spread = moved.is_some() || self.search.spread_allows(ledger, node, Some(gpu), &now.seats);
            if !(stays && passes && spread) || view.spec_id(gpu) != spec {
                continue;
            }
            let state = view.state(gpu);
            let SpaceState::Grid(layout) = &*state else { continue };
            for &start in &grid.rows()[profile].starts {
                let Some(standing) = self.standing(view, grid, layout, gpu, profile, start) else { continue };
                let mut lifted = view.clone();
                if standing.iter().try_for_each(|d| d.lift(&mut lifted)).is_none() {
                    continue;
                }
                let take = Take::Instance { profile, start };
                let Some(measures) = ledger.spec(gpu).measure(&lifted.state(gpu), take) else {
                    // Engines or a maximum stand in the way besides cells: not searched.
                    self.complete = false;
                    continue;
                };
                if moved.is_some_and(|d| d.from == (gpu, take)) {
                    continue;
                }
                let key = measures.key(ledger.terms(), Surroundings { open: true, peers: 0 });
                targets.push((standing, key, gpu, start));
            }
        }
        targets.sort_by_key(|(standing, key, gpu, start)| (standing.len(), *key, *gpu, *start));
        targets
    }

    /// Who stands on the cells; `None` if one of them may not be moved.
    fn standing(
        &self,
        view: &View<'_>,
        grid: &Grid,
        layout: &crate::space::Layout,
        gpu: GpuId,
        profile: ProfileId,
        start: u16,
    ) -> Option<Vec<Displaced>> {
        let entries = grid.standing(layout, profile, start).into_iter();
        let stays =
            |entry: &Entry| self.fixed.contains(&(gpu, Take::Instance { profile: entry.profile, start: entry.start }));
        entries.map(|entry| if stays(entry) { None } else { displaced(view, gpu, entry) }).collect()
    }
}
