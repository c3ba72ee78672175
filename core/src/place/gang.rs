//! All members or none: a joint search over alternatives and places.
//!
//! The members of a request are alike, so a choice of alternatives is a multiset; those
//! with the least sum of preference ranks come first, and among equal sums the one that
//! serves the first members best. For each, a greedy pass answers most requests; where it
//! fails, a search with backtracking visits every combination once.

use alloc::vec::Vec;

use super::seats::Search;
use super::view::{Seat, View};
use crate::decision::Proof;
use crate::ledger::Class;
use crate::space::{DeviceAsk, SpaceState};
use crate::workload::MemberAsk;

/// What a joint search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A place for every member.
    Seated(Vec<Seat>),
    /// None exists.
    Impossible(Proof),
    /// The work budget ended first.
    Exhausted,
}

/// Places all members of the request.
pub fn seat_all(search: &Search<'_>, view: &mut View<'_>, budget: u64, work: &mut u64) -> Outcome {
    let members = search.workload.count as usize;
    let alternatives = search.resolved.alternatives.len();
    let mut complete = true;
    let mut counted = false;
    for sum in 0..=members.saturating_mul(alternatives.saturating_sub(1)) {
        let mut choice = Some(first_choice(members, alternatives, sum));
        while let Some(ranks) = choice.flatten() {
            if let Some(seats) = greedy(search, view, &ranks, work) {
                return Outcome::Seated(seats);
            }
            // Counting looks at every class, so only what does not fit at once pays for it.
            if !counted && u64::from(search.workload.count) > room(search, view) {
                return Outcome::Impossible(Proof::CountBound);
            }
            counted = true;
            if members > 1 {
                let mut tree = Tree { search, ranks: &ranks, budget, work, complete: true };
                let mut seats = Vec::new();
                if tree.descend(view, &mut seats) {
                    return Outcome::Seated(seats);
                }
                complete &= tree.complete;
            }
            if *work > budget {
                return Outcome::Exhausted;
            }
            choice = Some(next_choice(&ranks, alternatives));
        }
    }
    if complete { Outcome::Impossible(Proof::ExhaustedSearch) } else { Outcome::Exhausted }
}

/// An upper bound on how many members fit: what each class could take if it took only
/// this, summed over the alternatives.
fn room(search: &Search<'_>, view: &View<'_>) -> u64 {
    let ledger = view.ledger;
    let mut room = 0u64;
    for alternative in 0..search.resolved.alternatives.len() {
        if search.resolved.is_node_only(alternative) {
            return u64::MAX;
        }
        for (spec, kind) in ledger.specs().iter() {
            let asks: Vec<DeviceAsk> = match search.resolved.on(alternative, spec) {
                Ok(MemberAsk::One(asks)) => asks.clone(),
                Ok(MemberAsk::Whole(_)) => Vec::from([DeviceAsk::Whole]),
                Ok(MemberAsk::Several(asks, _)) => asks.iter().flatten().copied().collect(),
                Ok(MemberAsk::NodeOnly) | Err(_) => continue,
            };
            let mut add = |class: &Class, state: &SpaceState| {
                let most: u64 = asks.iter().map(|ask| u64::from(kind.space().capacity(state, *ask))).sum();
                room = room.saturating_add(most.saturating_mul(class.members.len() as u64));
            };
            ledger.index().of_spec(spec).for_each(|(_, class)| add(class, &kind.state(class.key.state)));
            ledger.convertible(spec, false).for_each(|(_, class)| add(class, &kind.space().empty()));
        }
    }
    room
}

/// The best place for one member after the other. The last one is not seated in the view:
/// nobody comes after it, and most requests have one member.
fn greedy(search: &Search<'_>, view: &mut View<'_>, ranks: &[usize], work: &mut u64) -> Option<Vec<Seat>> {
    let mut seats: Vec<Seat> = Vec::with_capacity(ranks.len());
    let mut undo = Vec::new();
    let mut all = true;
    for rank in ranks {
        let Some(seat) = search.best(view, *rank, &seats, work) else {
            all = false;
            break;
        };
        if seats.len() + 1 < ranks.len() {
            let Some(unseat) = view.seat(&seat, &search.rules) else {
                all = false;
                break;
            };
            undo.push(unseat);
        }
        seats.push(seat);
    }
    undo.into_iter().rev().for_each(|u| view.unseat(u));
    all.then_some(seats)
}

struct Tree<'a, 'b> {
    search: &'a Search<'a>,
    ranks: &'a [usize],
    budget: u64,
    work: &'b mut u64,
    complete: bool,
}

impl Tree<'_, '_> {
    /// Depth-first over the members; the stack is as deep as the request has members, so it
    /// is kept on the heap.
    fn descend(&mut self, view: &mut View<'_>, seats: &mut Vec<Seat>) -> bool {
        let mut levels = Vec::from([self.places(view, seats)]);
        let mut undo = Vec::new();
        while let Some(level) = levels.last_mut() {
            if seats.len() == self.ranks.len() {
                undo.into_iter().rev().for_each(|u| view.unseat(u));
                return true;
            }
            if *self.work > self.budget {
                self.complete = false;
                break;
            }
            match level.pop() {
                Some(seat) => {
                    *self.work += 1;
                    if let Some(unseat) = view.seat(&seat, &self.search.rules) {
                        undo.push(unseat);
                        seats.push(seat);
                        let next = if seats.len() < self.ranks.len() { self.places(view, seats) } else { Vec::new() };
                        levels.push(next);
                    }
                }
                None => {
                    levels.pop();
                    if let Some(unseat) = undo.pop() {
                        view.unseat(unseat);
                        seats.pop();
                    }
                }
            }
        }
        undo.into_iter().rev().for_each(|u| view.unseat(u));
        seats.clear();
        false
    }

    /// The next member's places, worst first (they are taken from the end).
    fn places(&mut self, view: &View<'_>, seats: &[Seat]) -> Vec<Seat> {
        let Some(rank) = self.ranks.get(seats.len()) else { return Vec::new() };
        let found = self.search.all(view, *rank, seats, self.work);
        self.complete &= !found.truncated;
        found.ranked.into_iter().rev().map(|r| r.seat).collect()
    }
}

/// The first choice of alternatives with this sum of ranks: the first members as well
/// served as can be. `None` if no choice has this sum.
fn first_choice(members: usize, alternatives: usize, sum: usize) -> Option<Vec<usize>> {
    let top = alternatives.checked_sub(1)?;
    let mut ranks = Vec::from_iter(core::iter::repeat_n(0, members));
    let mut left = sum;
    for rank in ranks.iter_mut().rev() {
        *rank = left.min(top);
        left -= *rank;
    }
    (left == 0).then_some(ranks)
}

/// The next choice with the same sum, in lexicographic order, ranks never falling.
fn next_choice(ranks: &[usize], alternatives: usize) -> Option<Vec<usize>> {
    let total: usize = ranks.iter().sum();
    for i in (0..ranks.len()).rev() {
        let (head, tail) = (ranks.get(..i)?, ranks.get(i..)?);
        let raised = tail.first()? + 1;
        if raised >= alternatives {
            continue;
        }
        let head_sum: usize = head.iter().sum();
        let rest = tail.len();
        let least = head_sum + raised * rest;
        if least > total {
            continue;
        }
        // Fill the tail with the raised rank, then push what is left to the end.
        let mut next = head.to_vec();
        next.extend(core::iter::repeat_n(raised, rest));
        let mut left = total - least;
        for rank in next.iter_mut().skip(i).rev() {
            let more = left.min(alternatives - 1 - *rank);
            *rank += more;
            left -= more;
        }
        if left == 0 {
            return Some(next);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{first_choice, next_choice};
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn choices_are_all_multisets_by_rising_sum() {
        let mut all = Vec::new();
        for sum in 0..=6 {
            let mut choice = first_choice(3, 3, sum);
            while let Some(ranks) = choice {
                assert_eq!(ranks.iter().sum::<usize>(), sum);
                choice = next_choice(&ranks, 3);
                all.push(ranks);
            }
        }
        let mut expected = Vec::new();
        for a in 0..3 {
            for b in a..3 {
                for c in b..3 {
                    expected.push(vec![a, b, c]);
                }
            }
        }
        expected.sort_by_key(|r: &Vec<usize>| (r.iter().sum::<usize>(), r.clone()));
        assert_eq!(all, expected);
    }
}
