//! Moves of others: which are allowed, and the fleet after them.

use alloc::string::String;
use alloc::vec::Vec;

use super::ask::Asked;
use super::image::{Image, Resident};
use super::kind::Thing;
use super::node::Guest;
use super::put::{Hold, On, Owner, Piece, Place};
use super::{Rule, Violation};
use crate::decision::{Move, Site};
use crate::fleet::{Lease, State};

/// A move in positions.
#[derive(Clone, Debug)]
pub(super) struct Moved<'a> {
    pub(super) name: &'a str,
    pub(super) member: u32,
    /// The lease that owns it; none for an instance found on the device.
    pub(super) owner: Option<Owner>,
    pub(super) from: (usize, usize, u16),
    pub(super) to: (usize, usize, u16),
}

fn bad<T>(text: impl Into<String>) -> Result<T, Violation> {
    Err(Violation::new(Rule::Move, "", text))
}

/// Checks the moves against the state and makes them in the image, all at once.
pub(super) fn apply<'a>(
    image: &mut Image<'a>,
    state: &'a State,
    asked: &Asked<'_>,
    moves: &'a [Move],
    allowed: bool,
) -> Result<Vec<Moved<'a>>, Violation> {
    if !moves.is_empty() && !allowed && !asked.workload.allow_moves {
        return Err(Violation::new(Rule::Move, "moves", "the request allows no moves"));
    }
    let mut read = Vec::new();
    for (i, step) in moves.iter().enumerate() {
        let moved = take(image, state, step).map_err(|v| v.within(&alloc::format!("moves[{i}]")))?;
        read.push(moved);
    }
    for (i, moved) in read.iter().enumerate() {
        give(image, state, moved).map_err(|v| v.within(&alloc::format!("moves[{i}]")))?;
    }
    Ok(read)
}

fn site(image: &Image<'_>, site: &Site) -> Result<(usize, usize, u16), Violation> {
    let node = image.node_named(&site.node);
    let Some(gpu) = node.and_then(|n| image.gpu_at(n, site.gpu)) else {
        return Err(Violation::new(Rule::Unknown, "", alloc::format!("no GPU {} on `{}`", site.gpu, site.node)));
    };
    match image.kind(gpu).and_then(|k| k.named(&site.profile)) {
        Some(Thing::Instance(profile)) => Ok((gpu, profile, site.start)),
        _ => bad(alloc::format!("`{}` is no instance; only instances move", site.profile)),
    }
}

/// Takes what moves off its GPU. A piece is taken once: a second move of it finds nothing.
fn take<'a>(image: &mut Image<'a>, state: &'a State, step: &'a Move) -> Result<Moved<'a>, Violation> {
    let (from, to) = (site(image, &step.from)?, site(image, &step.to)?);
    if from == to {
        return bad("it moves to where it is");
    }
    let same = match (image.kind(from.0), image.kind(to.0)) {
        (Some(a), Some(b)) => {
            let shape = |k: &super::kind::Kind<'_>, p: usize| k.profile(p).map(crate::catalog::Profile::shape);
            a.model.id == b.model.id && shape(a, from.1) == shape(b, to.1) && b.driver_creates(to.1)
        }
        _ => false,
    };
    if !same {
        return bad("it would be another profile");
    }
    let Some(found) = image.gpus.get_mut(from.0) else { return bad("no such GPU") };
    let On::Grid(pieces) = &mut found.on else { return bad("only instances move") };
    let Some(position) = pieces.iter().position(|p| p.start == from.2 && p.profile == from.1) else {
        return bad("nothing of this profile starts there");
    };
    let piece = pieces.remove(position);
    if piece.hold != Hold::Busy {
        return bad("only an instance that one user has moves");
    }
    let listed = piece.listed.and_then(|i| found.document.instances.get(i));
    if listed.is_some_and(|i| i.pinned) {
        return bad("the instance is pinned");
    }
    match piece.owner {
        Some((lease, member)) => {
            let Some(lease) = state.leases.get(lease) else { return bad("no such lease") };
            if lease.name != step.lease || member != step.member {
                return bad(alloc::format!("it is member {member} of `{}`", lease.name));
            }
            if lease.pinned {
                return bad("the lease is pinned");
            }
        }
        None => {
            let own = listed.and_then(|i| i.name.clone());
            let said = own.unwrap_or_else(|| alloc::format!("{}@{}", step.from.profile, step.from.start));
            if said != step.lease {
                return bad(alloc::format!("it is called `{said}`"));
            }
        }
    }
    Ok(Moved { name: &step.lease, member: step.member, owner: piece.owner, from, to })
}

/// Puts what moves where it goes, with what it brings to its node.
fn give<'a>(image: &mut Image<'a>, state: &'a State, moved: &Moved<'a>) -> Result<(), Violation> {
    let (gpu, profile, start) = moved.to;
    let broken = |(rule, text): (Rule, String)| Violation::new(rule, "to", text);
    if let Some(rule) = image.closed(gpu) {
        return Err(broken((rule, alloc::format!("{} takes nothing new", image.say(gpu)))));
    }
    image.put(gpu, Place::Instance { profile, start }, moved.owner).map_err(broken)?;
    let nodes = (image.gpus.get(moved.from.0).map(|g| g.node), image.gpus.get(gpu).map(|g| g.node));
    let (Some(old), Some(new)) = nodes else { return Ok(()) };
    if old == new {
        return Ok(());
    }
    let Some(lease) = moved.owner.and_then(|(lease, _)| state.leases.get(lease)) else {
        return bad("an instance without a lease stays on its node");
    };
    if lease.placements.len() > 1 {
        return bad("a lease with several placements moves within its node only");
    }
    guest(lease)
        .may_enter(image.nodes.get(new).ok_or_else(|| broken((Rule::Unknown, String::new())))?)
        .map_err(broken)?;
    image.discharge(old, lease.cpu_milli, lease.memory_mib);
    image.leave(old, &lease.name);
    image.charge(new, lease.cpu_milli, lease.memory_mib).map_err(broken)?;
    image.reside(new, Resident { name: &lease.name, labels: &lease.labels, keeps_away: &lease.keeps_away });
    Ok(())
}

fn guest(lease: &Lease) -> Guest<'_> {
    Guest { name: &lease.name, labels: &lease.labels, keeps_away: &lease.keeps_away, nodes: &lease.nodes }
}

/// Whether a piece is the one that a move takes away.
pub(super) fn is_from(moved: &Moved<'_>, gpu: usize, piece: (usize, u16)) -> bool {
    moved.from == (gpu, piece.0, piece.1)
}

/// Pieces of a GPU, if it has any.
pub(super) fn pieces(on: &On) -> &[Piece] {
    match on {
        On::Grid(pieces) => pieces,
        _ => &[],
    }
}
