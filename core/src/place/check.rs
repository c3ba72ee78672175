//! The last look at a placement before anyone sees it: what would be on each GPU and node,
//! listed from what is there and what is taken, is handed to the independent checker.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::rules::NodeRules;
use super::steps::Shift;
use super::view::{Piece, Seat, View};
use crate::catalog::ShareType;
use crate::ids::{Id, NodeId, ProfileId};
use crate::ledger::{Ledger, Spec};
use crate::space::{FluidState, Grid, Hold, SpaceState, Take, UniformState};
use crate::verify;

/// Whether every GPU and node is legal once the shifts and seats are made.
pub fn holds(ledger: &Ledger, rules: &NodeRules<'_>, shifts: &[Shift], seats: &[Seat]) -> bool {
    let arrivals = shifts.iter().map(|shift| {
        let (gpu, take) = shift.to;
        Piece { gpu, spec: ledger.gpus()[gpu].spec, take }
    });
    let mut come: Vec<Piece> = arrivals.chain(seats.iter().flat_map(|seat| seat.takes.iter().copied())).collect();
    come.sort_by_key(|piece| piece.gpu);
    let devices = come.chunk_by(|a, b| a.gpu == b.gpu).all(|pieces| gpu_holds(ledger, shifts, pieces));
    devices && nodes_hold(ledger, rules, seats) && caps_hold(ledger, rules, shifts, seats)
}

/// One GPU, with what comes to it, which is all of one kind.
fn gpu_holds(ledger: &Ledger, shifts: &[Shift], come: &[Piece]) -> bool {
    let Some(Piece { gpu, spec, .. }) = come.first().copied() else { return true };
    if !ledger.accepts(gpu) || come.iter().any(|piece| piece.spec != spec) {
        return false;
    }
    let kind = &ledger.specs()[spec];
    let gone = |take: Take| shifts.iter().any(|shift| shift.from == (gpu, take));
    let takes = come.iter().map(|piece| piece.take);
    if ledger.gpus()[gpu].spec == spec {
        device_holds(kind, &ledger.state(gpu), gone, takes)
    } else {
        ledger.may_become(gpu, spec, false) && device_holds(kind, &kind.space().empty(), gone, takes)
    }
}

fn device_holds(
    spec: &Spec,
    state: &SpaceState,
    gone: impl Fn(Take) -> bool,
    come: impl ExactSizeIterator<Item = Take> + Clone,
) -> bool {
    match state {
        SpaceState::Grid(layout) => {
            let mut instances: Vec<(usize, u16)> = Vec::with_capacity(layout.entries().len() + come.len());
            let mut inside: BTreeMap<(ProfileId, u16), Vec<(ProfileId, u16)>> = BTreeMap::new();
            for entry in layout.used() {
                let take = Take::Instance { profile: entry.profile, start: entry.start };
                if gone(take) {
                    continue;
                }
                instances.push((entry.profile.index(), entry.start));
                if let Hold::Shared(inner) = &entry.hold {
                    let there = inner.used().map(|e| (e.profile, e.start)).collect();
                    inside.insert((entry.profile, entry.start), there);
                }
            }
            for take in come {
                match take {
                    Take::Instance { profile, start } => instances.push((profile.index(), start)),
                    Take::Compute { profile, start, inner, inner_start } => {
                        let shared = inside.entry((profile, start)).or_insert_with(|| {
                            instances.push((profile.index(), start));
                            Vec::new()
                        });
                        shared.push((inner, inner_start));
                    }
                    _ => return false,
                }
            }
            let most = spec.grid().and_then(Grid::max_instances);
            verify::device::check(spec.model(), spec.profiles(), spec.driver_major(), most, &instances).is_ok()
                && inside.iter().all(|((outer, _), parts)| parts_hold(spec, *outer, parts))
        }
        SpaceState::Uniform(shares) => shares_hold(spec, *shares, come),
        SpaceState::Fluid(left) => fluid_holds(spec, *left, come),
    }
}

/// Compute instances inside one GPU instance: legal starts, disjoint slices, maxima.
fn parts_hold(spec: &Spec, outer: ProfileId, parts: &[(ProfileId, u16)]) -> bool {
    let Some(profile) = spec.profiles().get(outer.index()) else { return false };
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for (inner, start) in parts {
        let Some(compute) = profile.compute_instances.get(inner.index()) else { return false };
        let Some(places) = &compute.placements else { return false };
        let same = parts.iter().filter(|(p, _)| p == inner).count();
        if !places.starts.contains(start) || compute.max_instances.is_some_and(|max| same > usize::from(max)) {
            return false;
        }
        runs.push((*start, start.saturating_add(places.size)));
    }
    runs.sort_unstable();
    runs.is_sorted_by(|a, b| a.1 <= b.0)
}

/// Shares beside those that are there: all of one size, no more than the type allows.
fn shares_hold(spec: &Spec, there: UniformState, mut come: impl ExactSizeIterator<Item = Take> + Clone) -> bool {
    let crate::space::Space::Uniform(uniform) = spec.space() else { return false };
    let types = uniform.types();
    let size = |share: u16| types.get(usize::from(share)).map(ShareType::size_name);
    let taken = u64::from(there.taken) + come.len() as u64;
    let all = come.clone();
    come.all(|take| match take {
        Take::Share(share) => {
            let most = types.get(usize::from(share)).map_or(0, |t| t.max_per_gpu);
            let locked = there.taken > 0 && size(there.share) != size(share);
            !locked
                && taken <= u64::from(most)
                && all.clone().all(|t| matches!(t, Take::Share(s) if size(s) == size(share)))
        }
        _ => false,
    })
}

fn fluid_holds(spec: &Spec, left: FluidState, come: impl ExactSizeIterator<Item = Take>) -> bool {
    let crate::space::Space::Fluid(fluid) = spec.space() else { return false };
    let (mut milli, mut mib, mut users) = (0u64, 0u64, u64::from(left.users));
    let alone = come.len() == 1;
    for take in come {
        match take {
            Take::Whole => return alone && left.users == 0,
            Take::Fraction { milli: m, mib: b, users: n } => {
                users += u64::from(n);
                milli += u64::from(m);
                mib += u64::from(b);
            }
            _ => return false,
        }
    }
    left.users != FluidState::WHOLE
        && users <= fluid.amounts().users.into()
        && milli <= left.milli.into()
        && (mib == 0 || mib <= left.mib.into())
}

/// Whether every node and rack draws no more than its cap once all is made.
fn caps_hold(ledger: &Ledger, rules: &NodeRules<'_>, shifts: &[Shift], seats: &[Seat]) -> bool {
    if !ledger.has_power_caps() {
        return true;
    }
    let mut view = View::new(ledger);
    for (gpu, take) in shifts.iter().map(|shift| shift.from) {
        let Some(after) = ledger.spec(gpu).space().remove(&view.state(gpu), take) else { return false };
        view.set(gpu, after);
    }
    let made = shifts.iter().all(|shift| view.put(shift.to.0, shift.to.1));
    made && seats.iter().all(|seat| view.seat(seat, rules).is_some()) && view.keeps_caps()
}

fn nodes_hold(ledger: &Ledger, rules: &NodeRules<'_>, seats: &[Seat]) -> bool {
    if rules.cpu_milli == 0 && rules.memory_mib == 0 {
        return true;
    }
    let mut nodes: Vec<NodeId> = seats.iter().map(|seat| seat.node).collect();
    nodes.sort_unstable();
    nodes.chunk_by(|a, b| a == b).all(|members| {
        let Some(node) = members.first() else { return true };
        let record = &ledger.nodes()[*node];
        let enough = |free: Option<u64>, each: u64| free.is_none_or(|f| each.saturating_mul(members.len() as u64) <= f);
        enough(record.cpu_free(), rules.cpu_milli) && enough(record.memory_free(), rules.memory_mib)
    })
}
