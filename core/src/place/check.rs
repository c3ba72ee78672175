//! The last look at a placement before anyone sees it: what would be on each GPU and node,
//! listed from what is there and what is taken, is handed to the independent checker.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::rules::NodeRules;
use super::steps::Shift;
use super::view::{Piece, Seat};
use crate::catalog::ShareType;
use crate::ids::{GpuId, Id, NodeId, ProfileId, SpecId};
use crate::ledger::{Ledger, Spec};
use crate::space::{FluidState, Grid, Hold, SpaceState, Take, UniformState};
use crate::verify;

/// Whether every GPU and node is legal once the shifts and seats are made.
pub fn holds(ledger: &Ledger, rules: &NodeRules<'_>, shifts: &[Shift], seats: &[Seat]) -> bool {
    let mut gone: BTreeMap<GpuId, Vec<Take>> = BTreeMap::new();
    let mut come: BTreeMap<GpuId, (SpecId, Vec<Take>)> = BTreeMap::new();
    for shift in shifts {
        gone.entry(shift.from.0).or_default().push(shift.from.1);
        let (_, takes) = come.entry(shift.to.0).or_insert_with(|| (ledger.gpus()[shift.to.0].spec, Vec::new()));
        takes.push(shift.to.1);
    }
    for Piece { gpu, spec, take } in seats.iter().flat_map(|s| &s.takes) {
        let (kind, takes) = come.entry(*gpu).or_insert((*spec, Vec::new()));
        if kind != spec {
            return false;
        }
        takes.push(*take);
    }
    let devices = come.iter().all(|(gpu, (spec, takes))| {
        let leaving = gone.get(gpu).map_or(&[][..], Vec::as_slice);
        let kind = &ledger.specs()[*spec];
        ledger.accepts(*gpu)
            && if ledger.gpus()[*gpu].spec == *spec {
                device_holds(kind, &ledger.state(*gpu), leaving, takes)
            } else {
                ledger.may_become(*gpu, *spec, false) && device_holds(kind, &kind.space().empty(), leaving, takes)
            }
    });
    devices && nodes_hold(ledger, rules, seats)
}

fn device_holds(spec: &Spec, state: &SpaceState, gone: &[Take], come: &[Take]) -> bool {
    match state {
        SpaceState::Grid(layout) => {
            let mut instances: Vec<(usize, u16)> = Vec::new();
            let mut inside: BTreeMap<(ProfileId, u16), Vec<(ProfileId, u16)>> = BTreeMap::new();
            for entry in layout.used() {
                let take = Take::Instance { profile: entry.profile, start: entry.start };
                if gone.contains(&take) {
                    continue;
                }
                instances.push((entry.profile.index(), entry.start));
                if let Hold::Shared(inner) = &entry.hold {
                    let there = inner.used().map(|e| (e.profile, e.start)).collect();
                    inside.insert((entry.profile, entry.start), there);
                }
            }
            for take in come {
                match *take {
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
fn shares_hold(spec: &Spec, there: UniformState, come: &[Take]) -> bool {
    let crate::space::Space::Uniform(uniform) = spec.space() else { return false };
    let types = uniform.types();
    let size = |share: u16| types.get(usize::from(share)).map(ShareType::size_name);
    let taken = u64::from(there.taken) + come.len() as u64;
    come.iter().all(|take| match take {
        Take::Share(share) => {
            let most = types.get(usize::from(*share)).map_or(0, |t| t.max_per_gpu);
            let locked = there.taken > 0 && size(there.share) != size(*share);
            !locked
                && taken <= u64::from(most)
                && come.iter().all(|t| matches!(t, Take::Share(s) if size(*s) == size(*share)))
        }
        _ => false,
    })
}

fn fluid_holds(spec: &Spec, left: FluidState, come: &[Take]) -> bool {
    let crate::space::Space::Fluid(fluid) = spec.space() else { return false };
    let (mut milli, mut mib, mut users) = (0u64, 0u64, u64::from(left.users));
    for take in come {
        match take {
            Take::Whole => return come.len() == 1 && left.users == 0,
            Take::Fraction { milli: m, mib: b, users: n } => {
                users += u64::from(*n);
                milli += u64::from(*m);
                mib += u64::from(*b);
            }
            _ => return false,
        }
    }
    left.users != FluidState::WHOLE
        && users <= fluid.amounts().users.into()
        && milli <= left.milli.into()
        && (mib == 0 || mib <= left.mib.into())
}

fn nodes_hold(ledger: &Ledger, rules: &NodeRules<'_>, seats: &[Seat]) -> bool {
    let mut members: BTreeMap<NodeId, u64> = BTreeMap::new();
    for seat in seats {
        *members.entry(seat.node).or_default() += 1;
    }
    members.into_iter().all(|(node, count)| {
        let record = &ledger.nodes()[node];
        let enough = |free: Option<u64>, each: u64| free.is_none_or(|f| each.saturating_mul(count) <= f);
        enough(record.cpu_free(), rules.cpu_milli) && enough(record.memory_free(), rules.memory_mib)
    })
}
