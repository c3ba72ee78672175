//! Making room by moving others: the fewest moves after which a request fits.
//!
//! Iterative deepening over the number of moves: to place an instance on a start, what
//! stands on its cells has to go elsewhere, which may in turn need room. Depths are tried
//! in order, so the first answer is the fewest, if nothing was left out.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::policy::{Key, Surroundings};
use super::rules::NodeRules;
use super::seats::Search;
use super::steps::Shift;
use super::view::{Seat, View};
use crate::ids::{GpuId, ProfileId, SpecId};
use crate::space::{DeviceAsk, Entry, Grid, Hold, SpaceState, Take};
use crate::workload::MemberAsk;

/// What a search for room found.
#[derive(Clone, Debug)]
pub struct Room {
    /// Where the members go.
    pub seats: Vec<Seat>,
    /// Who moves.
    pub shifts: Vec<Shift>,
    /// Fewer moves were proved not to do.
    pub fewest: bool,
}

/// Seats the request with at most `moves` moves of others. `None`: not found, and the
/// flag says whether none exists.
pub fn make_room(
    search: &Search<'_>,
    view: &View<'_>,
    moves: u32,
    budget: u64,
    work: &mut u64,
) -> (Option<Room>, bool) {
    let mut room = Room { seats: Vec::new(), shifts: Vec::new(), fewest: search.workload.count == 1 };
    let mut now = view.clone();
    let mut complete = search.workload.count == 1;
    for _ in 0..search.workload.count {
        let left = moves.saturating_sub(room.shifts.len() as u32);
        let mut deep = Deepening { search, seats: &room.seats, budget, work, fixed: BTreeSet::new(), complete: true };
        deep.fixed.extend(room.shifts.iter().map(|s| s.to));
        deep.fixed.extend(room.seats.iter().flat_map(|s| s.takes.iter().copied()));
        let found = deep.first(&now, left);
        complete &= deep.complete;
        let Some((seat, shifts, view)) = found else { return (None, complete) };
        now = view;
        // The takes are made; what is left is the node's CPU and memory.
        if now.seat(&Seat { takes: Vec::new(), ..seat.clone() }, &search.rules).is_none() {
            return (None, false);
        }
        room.shifts.extend(shifts);
        room.seats.push(seat);
    }
    room.fewest &= complete;
    (Some(room), complete)
}

struct Deepening<'a, 'b> {
    search: &'a Search<'a>,
    seats: &'a [Seat],
    budget: u64,
    work: &'b mut u64,
    fixed: BTreeSet<(GpuId, Take)>,
    complete: bool,
}

/// An instance on its way: what it is and where it came from.
#[derive(Clone)]
struct Displaced {
    from: (GpuId, Take),
    profile: ProfileId,
    owner: Option<String>,
    name: String,
    member: u32,
}

type Placed<'v> = (Seat, Vec<Shift>, View<'v>);

impl Deepening<'_, '_> {
    fn first<'v>(&mut self, view: &View<'v>, moves: u32) -> Option<Placed<'v>> {
        for alternative in 0..self.search.resolved.alternatives.len() {
            if let Some(seat) = self.search.best(view, alternative, self.seats, self.work) {
                let mut after = view.clone();
                seat.takes.iter().for_each(|(gpu, take)| {
                    after.put(*gpu, *take);
                });
                return Some((seat, Vec::new(), after));
            }
        }
        for depth in 1..=moves {
            for alternative in 0..self.search.resolved.alternatives.len() {
                for (spec, _) in view.ledger.specs().iter() {
                    let Ok(ask) = self.search.resolved.on(alternative, spec) else { continue };
                    let MemberAsk::One(asks) = ask else {
                        self.complete = false;
                        continue;
                    };
                    for ask in asks {
                        let DeviceAsk::Instance(profile) = ask else { continue };
                        let rules = self.search.rules;
                        let Some((gpu, take, shifts, after)) = self.place(view, spec, *profile, &rules, None, depth)
                        else {
                            continue;
                        };
                        let node = view.ledger.gpus()[gpu].node;
                        let seat = Seat { alternative: alternative as u32, node, takes: Vec::from([(gpu, take)]) };
                        return Some((seat, shifts, after));
                    }
                }
            }
        }
        None
    }

    /// Places one instance of a profile with at most `moves` moves of others.
    fn place<'v>(
        &mut self,
        view: &View<'v>,
        spec: SpecId,
        profile: ProfileId,
        rules: &NodeRules<'_>,
        moved: Option<&Displaced>,
        moves: u32,
    ) -> Option<(GpuId, Take, Vec<Shift>, View<'v>)> {
        let mut targets = self.targets(view, spec, profile, rules, moved);
        targets.retain(|(standing, ..)| standing.len() <= moves as usize);
        for (standing, _, gpu, start) in targets {
            *self.work += 1;
            if *self.work > self.budget {
                self.complete = false;
                return None;
            }
            let take = Take::Instance { profile, start };
            let mut after = view.clone();
            let cleared = standing.iter().try_for_each(|d| self.lift(&mut after, d));
            if cleared.is_none() || !after.put(gpu, take) {
                continue;
            }
            let left = moves - standing.len() as u32;
            self.fixed.insert((gpu, take));
            let settled = self.settle(&after, &standing, left);
            self.fixed.remove(&(gpu, take));
            if let Some((shifts, after)) = settled {
                return Some((gpu, take, shifts, after));
            }
        }
        None
    }

    /// Finds a place for each displaced instance; those that move for it count too.
    fn settle<'v>(&mut self, view: &View<'v>, displaced: &[Displaced], moves: u32) -> Option<(Vec<Shift>, View<'v>)> {
        let Some((first, rest)) = displaced.split_first() else { return Some((Vec::new(), view.clone())) };
        let lease = first.owner.as_deref().and_then(|name| view.ledger.lease(name));
        let blank = crate::workload::Workload::default();
        let rules = lease.map_or_else(|| NodeRules::of(&blank), NodeRules::of_lease);
        let spec = view.ledger.gpus()[first.from.0].spec;
        for used in 0..=moves {
            let Some((gpu, take, mut shifts, after)) = self.place(view, spec, first.profile, &rules, Some(first), used)
            else {
                continue;
            };
            self.fixed.insert((gpu, take));
            let settled = self.settle(&after, rest, moves - used);
            self.fixed.remove(&(gpu, take));
            if let Some((more, after)) = settled {
                shifts.push(Shift {
                    name: first.name.clone(),
                    member: first.member,
                    leased: first.owner.is_some(),
                    from: first.from,
                    to: (gpu, take),
                });
                shifts.extend(more);
                return Some((shifts, after));
            }
            // Another place for the first might leave room for the rest: not tried.
            self.complete &= rest.is_empty();
        }
        None
    }

    fn lift(&self, view: &mut View<'_>, displaced: &Displaced) -> Option<()> {
        let (gpu, take) = displaced.from;
        let after = view.ledger.spec(gpu).space().remove(&view.state(gpu), take)?;
        view.set(gpu, after);
        Some(())
    }

    /// GPUs and starts for a profile, with what stands there: fewest to move first, then as
    /// the policy ranks them.
    fn targets(
        &mut self,
        view: &View<'_>,
        spec: SpecId,
        profile: ProfileId,
        rules: &NodeRules<'_>,
        moved: Option<&Displaced>,
    ) -> Vec<(Vec<Displaced>, Key, GpuId, u16)> {
        let ledger = view.ledger;
        let Some(grid) = ledger.specs()[spec].grid() else { return Vec::new() };
        let home = moved.map(|d| ledger.gpus()[d.from.0].node);
        let mut targets = Vec::new();
        let members = ledger.index().of_spec(spec).flat_map(|(_, class)| class.members.iter().copied());
        for gpu in members {
            *self.work += 1;
            let node = ledger.gpus()[gpu].node;
            let stays = moved.is_none_or(|d| home == Some(node) || d.owner.is_some());
            // A member that stays on its node already has its CPU there.
            let passes = home == Some(node) || rules.failure(ledger, node, view.node_use(node)).is_none();
            let spread = moved.is_some() || self.search.spread_allows(ledger, node, Some(gpu), self.seats);
            if !(stays && passes && spread) {
                continue;
            }
            let state = view.state(gpu);
            let SpaceState::Grid(layout) = &*state else { continue };
            for &start in &grid.rows()[profile].starts {
                let Some(standing) = self.standing(view, grid, layout, gpu, profile, start) else { continue };
                let mut lifted = view.clone();
                if standing.iter().try_for_each(|d| self.lift(&mut lifted, d)).is_none() {
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
        let end = start.saturating_add(grid.rows()[profile].size);
        let on_cells = |e: &&Entry| e.start < end && start < e.start.saturating_add(grid.rows()[e.profile].size);
        layout.used().filter(on_cells).map(|entry| self.displaced(view, gpu, entry)).collect()
    }

    fn displaced(&self, view: &View<'_>, gpu: GpuId, entry: &Entry) -> Option<Displaced> {
        let take = Take::Instance { profile: entry.profile, start: entry.start };
        if entry.hold != Hold::Busy || self.fixed.contains(&(gpu, take)) || view.ledger.is_pinned(gpu, entry.start) {
            return None;
        }
        let owner = view.ledger.owners(gpu, entry.start).next();
        let name =
            owner.map(|(_, l)| l.name.clone()).or_else(|| view.ledger.names_at(gpu, entry.start).into_iter().next())?;
        let part = owner.and_then(|(_, l)| l.parts.iter().find(|p| p.on == Some((gpu, take))));
        // What is bound to its other parts stays with them.
        let alone = owner.is_none_or(|(_, l)| l.parts.len() == 1);
        Some(Displaced {
            from: (gpu, take),
            profile: entry.profile,
            owner: owner.filter(|_| alone).map(|(_, l)| l.name.clone()),
            name,
            member: part.map_or(0, |p| p.member),
        })
        .filter(|_| owner.is_none() || alone)
    }
}
