//! Whether a "no" that says it is proved is one: an own search over every node, GPU, start
//! and set.

use alloc::vec::Vec;

use super::ask::{Asked, One, named, ones};
use super::image::Image;
use super::node::{Guest, Spot, are_joined, is_near, is_partition, may_lie};
use super::put::{On, Place};
use super::serve::{keeps_idle, lie_as_asked, offers_whole};
use super::{Checked, Rule, Violation, power};
use crate::workload::{Ask, GpuLink, InstancesOn, WholeGpus};

/// Places tried for requests of several members, and for the sets of one member.
const WORK_MAX: u32 = 40_000;

/// A place for one member: its node, its alternative, what it gets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seat {
    node: usize,
    alternative: usize,
    parts: Vec<Part>,
}

/// A place on a GPU, both by position, that is or is given the kind in the middle.
type Part = (usize, usize, Place);

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Place,
    Nothing,
    /// The work ran out.
    Unknown,
}

/// Checks that the request has no place.
pub(super) fn check(image: Image<'_>, asked: &Asked<'_>) -> Result<Checked, Violation> {
    let mut search = Search { image, asked, chosen: Vec::new(), work: 0 };
    match search.seat_next() {
        Found::Nothing => Ok(Checked::Full),
        Found::Unknown => Ok(Checked::Partial),
        Found::Place => {
            let say = |seat: &Seat| match seat.parts.first() {
                Some((gpu, _, place)) => alloc::format!("{} as {place:?}", search.image.say(*gpu)),
                None => alloc::format!("node #{}", seat.node),
            };
            let places: Vec<_> = search.chosen.iter().map(say).collect();
            Err(Violation::new(Rule::Refusal, "proved", alloc::format!("there is a place: {}", places.join("; "))))
        }
    }
}

struct Search<'a, 'b> {
    image: Image<'a>,
    asked: &'b Asked<'a>,
    chosen: Vec<Seat>,
    work: u32,
}

impl<'a> Search<'a, '_> {
    fn is_single(&self) -> bool {
        self.asked.workload.count == 1
    }

    /// Seats the members that are left. Members are alike, so their places are tried in
    /// rising order only.
    fn seat_next(&mut self) -> Found {
        if self.chosen.len() >= usize::try_from(self.asked.workload.count).unwrap_or(usize::MAX) {
            return Found::Place;
        }
        let first = self.chosen.last().map_or(0, |s| s.node);
        let mut whole = Found::Nothing;
        for node in first..self.image.nodes.len() {
            if !self.may_enter(node) {
                continue;
            }
            for alternative in 0..self.asked.alternatives.len() {
                match self.on_node(node, alternative) {
                    Found::Place => return Found::Place,
                    Found::Unknown => whole = Found::Unknown,
                    Found::Nothing => {}
                }
                if self.work > WORK_MAX && !self.is_single() {
                    return Found::Unknown;
                }
            }
        }
        whole
    }

    fn may_enter(&self, node: usize) -> bool {
        let workload = self.asked.workload;
        let guest = Guest {
            name: &workload.name,
            labels: &workload.labels,
            keeps_away: &workload.anti_affinity,
            nodes: &workload.nodes,
        };
        let Some(found) = self.image.nodes.get(node) else { return false };
        let room = |needed: u64, taken: u64, has: Option<u64>| {
            needed == 0 || has.is_none_or(|has| taken.saturating_add(needed) <= has)
        };
        room(workload.cpu_milli, found.cpu_milli, found.document.cpu_milli)
            && room(workload.memory_mib, found.memory_mib, found.document.memory_mib)
            && guest.may_enter(found).is_ok()
    }

    fn on_node(&mut self, node: usize, alternative: usize) -> Found {
        let asked = self.asked;
        let Some(ask) = asked.alternatives.get(alternative) else { return Found::Nothing };
        let gpus: Vec<usize> = match self.image.nodes.get(node) {
            Some(found) => found.gpus.clone().filter(|g| self.is_open(*g)).collect(),
            None => return Found::Nothing,
        };
        let seat = |parts: Vec<Part>| Seat { node, alternative, parts };
        match ask {
            // With models named, what a member without a GPU asks for is not said.
            Ask::NodeOnly {} if !asked.models.is_empty() => Found::Unknown,
            Ask::NodeOnly {} => self.try_seat(seat(Vec::new())),
            Ask::Profile(_) | Ask::AtLeast(_) | Ask::Fraction(_) | Ask::Mps(_) => {
                let mut whole = Found::Nothing;
                let kinds: Vec<(usize, usize)> = gpus.into_iter().flat_map(|gpu| self.kinds_of(gpu)).collect();
                for (gpu, position) in kinds {
                    let Some(kind) = self.image.kinds.get(position) else { continue };
                    let places: Vec<Place> = ones(kind, ask).iter().flat_map(|one| one.places(kind)).collect();
                    for place in places {
                        match self.try_seat(seat(Vec::from([(gpu, position, place)]))) {
                            Found::Place => return Found::Place,
                            Found::Unknown => whole = Found::Unknown,
                            Found::Nothing => {}
                        }
                    }
                }
                whole
            }
            Ask::Gpus(whole) => self.sets(&gpus, whole, &mut Vec::new(), &seat),
            Ask::Instances(set) => {
                let mut order: Vec<&str> = set.profiles.iter().map(alloc::string::String::as_str).collect();
                order.sort_unstable();
                self.instances(&gpus, &order, set.on, &mut Vec::new(), &seat)
            }
        }
    }

    /// A GPU with each kind that it is of or can be given.
    fn kinds_of(&self, gpu: usize) -> Vec<(usize, usize)> {
        let kinds = self.image.kinds_of(gpu, self.asked.workload.keep_idle);
        kinds.into_iter().map(|kind| (gpu, kind)).collect()
    }

    fn is_open(&self, gpu: usize) -> bool {
        self.image.closed(gpu).is_none() && self.image.kind(gpu).is_some_and(|k| self.asked.allows(k))
    }

    /// Seats a member at a place, if it is legal, and then the members after it.
    fn try_seat(&mut self, seat: Seat) -> Found {
        self.work += 1;
        if self.work > WORK_MAX && !self.is_single() {
            return Found::Unknown;
        }
        if self.chosen.last().is_some_and(|last| seat < *last) {
            return Found::Nothing;
        }
        let spot = |s: &Seat| Spot { node: s.node, gpus: s.parts.iter().map(|(gpu, ..)| *gpu).collect() };
        if let Some(spread) = self.asked.workload.members {
            let own = spot(&seat);
            if !self.chosen.iter().all(|other| may_lie(&self.image, spread, &own, &spot(other))) {
                return Found::Nothing;
            }
        }
        let before = self.keep(&seat);
        let found = if self.put(&seat, &before) {
            let workload = self.asked.workload;
            let node = seat.node;
            let _ = self.image.charge(node, workload.cpu_milli, workload.memory_mib);
            self.chosen.push(seat);
            let within = power::check(&self.image, node).is_ok();
            let found = if within { self.seat_next() } else { Found::Nothing };
            if found != Found::Place {
                self.chosen.pop();
            }
            self.image.discharge(node, workload.cpu_milli, workload.memory_mib);
            found
        } else {
            Found::Nothing
        };
        self.restore(before);
        found
    }

    fn keep(&self, seat: &Seat) -> Vec<(usize, usize, On)> {
        let mut gpus: Vec<usize> = seat.parts.iter().map(|(gpu, ..)| *gpu).collect();
        gpus.sort_unstable();
        gpus.dedup();
        let held = |gpu: usize| self.image.gpus.get(gpu).map(|g| (gpu, g.kind, g.on.clone()));
        gpus.into_iter().filter_map(held).collect()
    }

    fn restore(&mut self, before: Vec<(usize, usize, On)>) {
        for (gpu, kind, on) in before {
            if let Some(found) = self.image.gpus.get_mut(gpu) {
                (found.kind, found.on) = (kind, on);
            }
        }
    }

    fn put(&mut self, seat: &Seat, before: &[(usize, usize, On)]) -> bool {
        let put = seat.parts.iter().all(|(gpu, kind, place)| {
            self.give_kind(*gpu, *kind);
            let own = self.image.gpus.get(*gpu).filter(|g| g.kind == *kind).and_then(|g| self.image.kinds.get(g.kind));
            let apart = own.is_some_and(|kind| self.asked.keeps_apart(kind, *place).is_ok());
            apart && self.image.put(*gpu, *place, None).is_ok()
        });
        put && before.iter().all(|(gpu, _, on)| {
            let within = match (self.image.gpus.get(*gpu), self.image.kind(*gpu)) {
                (Some(found), Some(kind)) => found.on.check_used(kind).is_ok(),
                _ => false,
            };
            within && (!self.asked.workload.keep_idle || keeps_idle(&self.image, *gpu, on).is_ok())
        })
    }

    /// Gives an unused GPU a kind; one in use stays what it is.
    fn give_kind(&mut self, gpu: usize, kind: usize) {
        if let (Some(found), Some(facts)) = (self.image.gpus.get_mut(gpu), self.image.kinds.get(kind))
            && found.kind != kind
            && found.on.is_unused()
        {
            (found.kind, found.on) = (kind, On::empty(facts.mode));
        }
    }

    /// Sets of whole GPUs of one model that are joined as asked.
    fn sets(
        &mut self,
        gpus: &[usize],
        ask: &WholeGpus,
        set: &mut Vec<usize>,
        seat: &dyn Fn(Vec<Part>) -> Seat,
    ) -> Found {
        if u32::try_from(set.len()) == Ok(ask.count) {
            if ask.link == Some(GpuLink::FabricPartition) && !is_partition(&self.image, set) {
                return Found::Nothing;
            }
            let parts = set.iter().filter_map(|gpu| Some((*gpu, self.whole_kind(*gpu, ask)?, Place::Whole)));
            return self.try_seat(seat(parts.collect()));
        }
        let mut whole = Found::Nothing;
        for (i, gpu) in gpus.iter().enumerate() {
            self.work += 1;
            if self.work > WORK_MAX {
                return Found::Unknown;
            }
            let model = |g: usize| self.image.kind(g).map(|k| &k.model.id);
            let unused = self.image.gpus.get(*gpu).is_some_and(|g| g.on.is_unused());
            let fits = unused
                && self.whole_kind(*gpu, ask).is_some()
                && is_near(&self.image, ask, *gpu)
                && set.iter().all(|o| model(*o) == model(*gpu) && are_joined(&self.image, ask.link, *o, *gpu));
            if !fits {
                continue;
            }
            set.push(*gpu);
            let found = self.sets(gpus.get(i + 1..).unwrap_or_default(), ask, set, seat);
            set.pop();
            match found {
                Found::Place => return Found::Place,
                Found::Unknown => whole = Found::Unknown,
                Found::Nothing => {}
            }
        }
        whole
    }

    /// The kind in which a GPU is or can be given whole with the memory asked.
    fn whole_kind(&self, gpu: usize, ask: &WholeGpus) -> Option<usize> {
        let offers = |(_, kind): &(usize, usize)| self.image.kinds.get(*kind).is_some_and(|k| offers_whole(k, ask));
        self.kinds_of(gpu).into_iter().find(offers).map(|(_, kind)| kind)
    }

    /// Several instances, one after the other; equal ones in rising order only.
    fn instances(
        &mut self,
        gpus: &[usize],
        names: &[&str],
        on: InstancesOn,
        parts: &mut Vec<Part>,
        seat: &dyn Fn(Vec<Part>) -> Seat,
    ) -> Found {
        let Some(name) = names.get(parts.len()) else { return self.try_seat(seat(parts.clone())) };
        let is_twin = parts.len().checked_sub(1).and_then(|i| names.get(i)) == Some(name);
        let mut whole = Found::Nothing;
        let kinds: Vec<(usize, usize)> = gpus.iter().flat_map(|gpu| self.kinds_of(*gpu)).collect();
        for (gpu, position) in kinds {
            let Some(kind) = self.image.kinds.get(position) else { continue };
            let places = named(kind, name).map_or_else(Vec::new, |one: One| one.places(kind));
            for place in places {
                self.work += 1;
                if self.work > WORK_MAX {
                    return Found::Unknown;
                }
                let next = (gpu, position, place);
                let done = is_twin && parts.last().is_some_and(|last| *last > next);
                if done || !self.still_fits(parts, next) {
                    continue;
                }
                parts.push(next);
                let own: Vec<usize> = parts.iter().map(|(gpu, ..)| *gpu).collect();
                let found =
                    if lie_as_asked(on, &own) { self.instances(gpus, names, on, parts, seat) } else { Found::Nothing };
                parts.pop();
                match found {
                    Found::Place => return Found::Place,
                    Found::Unknown => whole = Found::Unknown,
                    Found::Nothing => {}
                }
            }
        }
        whole
    }

    /// Whether the parts so far can be together: those of one GPU in one kind.
    fn still_fits(&self, parts: &[Part], next: Part) -> bool {
        let here: Vec<Part> = parts.iter().copied().filter(|(gpu, ..)| *gpu == next.0).chain([next]).collect();
        let (Some(found), Some(kind)) = (self.image.gpus.get(next.0), self.image.kinds.get(next.1)) else {
            return false;
        };
        let mut on = if found.kind == next.1 { found.on.clone() } else { On::empty(kind.mode) };
        here.iter().all(|(_, own, place)| *own == next.1 && on.put(kind, *place, None).is_ok())
            && on.check_used(kind).is_ok()
    }
}
