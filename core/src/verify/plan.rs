//! Whether a plan is right: legal as a whole, its totals counted again, its bound proved.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::ask::Asked;
use super::bound::{Admitted, bound};
use super::decision::check_spread;
use super::image::{Image, Resident};
use super::kind::cells_of;
use super::modes;
use super::put::Place;
use super::put::{Hold, On, overlaps};
use super::serve::{Member, members, seat};
use super::state::load;
use super::worth::value;
use super::{Checked, Rule, Violation, catalog_of, power};
use crate::catalog::Catalog;
use crate::fleet::{Lease, State};
use crate::plan::{BoundOf, BoundSource, Plan};
use crate::workload::Workload;

const PPM: u128 = 1_000_000;

/// Checks a plan of these requests against the state it was made on: every lease legal
/// together with the state and the other leases, gangs whole, totals and refusals as they
/// count, and the bound no tighter than its prices, or all that was asked, prove.
///
/// A bound that is the solver's word is nobody's proof: the answer is then
/// [`Checked::Partial`].
///
/// # Errors
/// The first rule that does not hold.
pub fn plan(catalog: &Catalog, state: &State, workloads: &[Workload], plan: &Plan) -> Result<Checked, Violation> {
    let catalog = catalog_of(catalog, state)?;
    let before = load(&catalog, state).map_err(|v| v.within("state"))?;
    if plan.version != state.version {
        let text = alloc::format!("it was made on {}, the state has {}", plan.version, state.version);
        return Err(Violation::new(Rule::Version, "version", text));
    }
    let mut asked = Vec::new();
    let mut by_name = BTreeMap::new();
    for (i, workload) in workloads.iter().enumerate() {
        let at = alloc::format!("requests[{i}]");
        asked.push(Asked::of(&catalog, workload).map_err(|v| v.within(&at))?);
        if by_name.insert(workload.name.as_str(), i).is_some() {
            return Err(Violation::new(Rule::Duplicate, at, alloc::format!("`{}` is asked twice", workload.name)));
        }
    }
    for lease in &state.leases {
        by_name.remove(lease.name.as_str());
    }
    let mut admitted = alloc::vec![0u64; workloads.len()];
    let mut after = before.clone();
    let changed = modes::apply(&mut after, &plan.mode_changes)?;
    let mut placed: Vec<(usize, Member)> = Vec::new();
    for (i, lease) in plan.leases.iter().enumerate() {
        let at = alloc::format!("leases[{i}]");
        // A name is taken out when its lease is read: a second lease of it finds nothing.
        let position = by_name.remove(lease.name.as_str());
        let found = position.and_then(|p| Some((p, asked.get(p)?, admitted.get_mut(p)?)));
        let Some((position, asked, count)) = found else {
            let text = alloc::format!("`{}` is no request without a lease", lease.name);
            return Err(Violation::new(Rule::Unknown, at, text));
        };
        let own = admit(&mut after, asked, lease).map_err(|v| v.within(&at))?;
        *count = u64::try_from(own.len()).unwrap_or(u64::MAX);
        placed.extend(own.into_iter().map(|member| (position, member)));
    }
    modes::serve_somebody(&after, &changed, placed.iter().map(|(_, member)| member))?;
    check_gpus(&before, &after, &asked, &placed)?;
    power::check_all(&after)?;
    check_refusals(plan, workloads, &admitted)?;
    check_totals(plan, &before, &asked, &admitted, &placed)?;
    check_bound(&catalog, &before, &asked, plan)
}

/// Places the members of a lease.
fn admit<'a>(image: &mut Image<'a>, asked: &Asked<'a>, lease: &Lease) -> Result<Vec<Member>, Violation> {
    let workload = asked.workload;
    let same = lease.tenant == workload.tenant
        && lease.labels == workload.labels
        && lease.pinned == workload.pinned
        && lease.keeps_away == workload.anti_affinity
        && lease.nodes == workload.nodes
        && lease.cpu_milli == workload.cpu_milli
        && lease.memory_mib == workload.memory_mib;
    if !same {
        return Err(Violation::new(Rule::Terms, "", "the lease says other terms than its request"));
    }
    let own = members(image, &lease.placements)?;
    let count = u64::from(workload.count);
    let number = u64::try_from(own.len()).unwrap_or(u64::MAX);
    if own.is_empty() || own.last().is_some_and(|m| u64::from(m.number) >= count) {
        let text = alloc::format!("the request has members 0 to {}", count.saturating_sub(1));
        return Err(Violation::new(Rule::Members, "placements", text));
    }
    if workload.gang && number != count {
        return Err(Violation::new(Rule::Gang, "placements", alloc::format!("{number} of {count} members of a gang")));
    }
    for member in &own {
        seat(image, asked, member, Some((usize::MAX, member.number)))?;
    }
    check_spread(image, asked, &own)?;
    let resident = Resident { name: &workload.name, labels: &workload.labels, keeps_away: &workload.anti_affinity };
    for member in &own {
        image.reside(member.node, resident);
    }
    Ok(own)
}

/// The limits of every GPU that the plan uses, and idle instances that are to stay.
fn check_gpus(
    before: &Image<'_>,
    after: &Image<'_>,
    asked: &[Asked<'_>],
    placed: &[(usize, Member)],
) -> Result<(), Violation> {
    for gpu in distinct(placed.iter().flat_map(|(_, m)| m.parts.iter().map(|(gpu, _)| *gpu))) {
        if let (Some(found), Some(kind)) = (after.gpus.get(gpu), after.kind(gpu)) {
            found.on.check_used(kind).map_err(|(rule, text)| Violation::new(rule, after.say(gpu), text))?;
        }
    }
    let keeping = |p: &&(usize, Member)| asked.get(p.0).is_some_and(|a| a.workload.keep_idle);
    for (gpu, place) in placed.iter().filter(keeping).flat_map(|(_, m)| &m.parts) {
        if let (Some(old), Some(new)) = (before.gpus.get(*gpu), after.gpus.get(*gpu))
            && old.kind != new.kind
            && modes::has_idle(&old.on)
        {
            let text = "an idle instance would go for a change of mode";
            return Err(Violation::new(Rule::KeepIdle, before.say(*gpu), text));
        }
        let (Place::Instance { profile, start } | Place::Compute { profile, start, .. }) = *place else { continue };
        let (Some(found), Some(kind)) = (before.gpus.get(*gpu), after.kind(*gpu)) else { continue };
        let On::Grid(pieces) = &found.on else { continue };
        let size = kind.profile(profile).map_or(0, cells_of);
        let goes = |p: &super::put::Piece| {
            p.hold == Hold::Idle && (p.start, p.profile) != (start, profile) && overlaps(kind, p, start, size)
        };
        if let Some(piece) = pieces.iter().find(|p| goes(p)) {
            let text = alloc::format!("idle `{}` at {} would go", kind.name(piece.profile), piece.start);
            return Err(Violation::new(Rule::KeepIdle, before.say(*gpu), text));
        }
    }
    Ok(())
}

fn check_refusals(plan: &Plan, workloads: &[Workload], admitted: &[u64]) -> Result<(), Violation> {
    let mut refused: BTreeMap<&str, u64> = BTreeMap::new();
    for (i, refusal) in plan.refusals.iter().enumerate() {
        if refusal.members == 0 || refused.insert(&refusal.workload, refusal.members).is_some() {
            let text = alloc::format!("`{}` is refused no member, or twice", refusal.workload);
            return Err(Violation::new(Rule::Total, alloc::format!("refusals[{i}]"), text));
        }
    }
    for (workload, admitted) in workloads.iter().zip(admitted) {
        let expected = u64::from(workload.count).saturating_sub(*admitted);
        let said = refused.remove(workload.name.as_str()).unwrap_or(0);
        if said != expected {
            let text = alloc::format!("`{}`: {said} members refused, {expected} are not placed", workload.name);
            return Err(Violation::new(Rule::Total, "refusals", text));
        }
    }
    match refused.keys().next() {
        Some(name) => Err(Violation::new(Rule::Unknown, "refusals", alloc::format!("`{name}` is no request"))),
        None => Ok(()),
    }
}

fn check_totals(
    plan: &Plan,
    before: &Image<'_>,
    asked: &[Asked<'_>],
    admitted: &[u64],
    placed: &[(usize, Member)],
) -> Result<(), Violation> {
    let asked_for = asked.iter().map(|a| u64::from(a.workload.count)).fold(0, u64::saturating_add);
    let members = admitted.iter().copied().fold(0, u64::saturating_add);
    let worth = asked.iter().zip(admitted).map(|(a, n)| value(&before.kinds, a).saturating_mul(*n));
    let gpus = distinct(placed.iter().flat_map(|(_, m)| m.parts.iter().map(|(gpu, _)| *gpu)));
    let nodes = distinct(placed.iter().map(|(_, m)| m.node));
    let opened = gpus.iter().filter(|g| before.gpus.get(**g).is_some_and(|g| g.on.is_unused()));
    let new_nodes = nodes.iter().filter(|n| before.nodes.get(**n).is_some_and(|n| n.users == 0));
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let totals = [
        ("admitted", plan.admitted, members),
        ("refused", plan.refused, asked_for.saturating_sub(members)),
        ("value", plan.value, worth.fold(0, u64::saturating_add)),
        ("gpus_used", plan.gpus_used, count(gpus.len())),
        ("gpus_opened", plan.gpus_opened, count(opened.count())),
        ("nodes_opened", plan.nodes_opened, count(new_nodes.count())),
    ];
    match totals.into_iter().find(|(_, said, counted)| said != counted) {
        Some((name, said, counted)) => {
            Err(Violation::new(Rule::Total, name, alloc::format!("it says {said}, it is {counted}")))
        }
        None => Ok(()),
    }
}

fn check_bound(catalog: &Catalog, before: &Image<'_>, asked: &[Asked<'_>], plan: &Plan) -> Result<Checked, Violation> {
    let wrong = |text: alloc::string::String| Err(Violation::new(Rule::Bound, "bound", text));
    if plan.bound_of == BoundOf::Gpus && plan.refused > 0 {
        return wrong("a bound of the GPUs is for plans that admit everybody".into());
    }
    let proved = match (plan.bound_source, plan.bound_of) {
        (BoundSource::Solver, _) => None,
        (BoundSource::Demand, BoundOf::Value) => {
            let all = asked.iter().map(|a| value(&before.kinds, a).saturating_mul(a.workload.count.into()));
            Some(all.fold(0, u64::saturating_add))
        }
        (BoundSource::Demand, BoundOf::Members) => Some(asked.iter().map(|a| u64::from(a.workload.count)).sum()),
        (BoundSource::Demand, BoundOf::Gpus) => Some(0),
        (BoundSource::Prices, of) => match &plan.certificate {
            Some(certificate) => Some(bound(catalog, before, asked, certificate, of, Admitted::All)?),
            None => return wrong("there are no prices that prove it".into()),
        },
    };
    let (is_tighter, distance) = match plan.bound_of {
        BoundOf::Value => (proved.is_some_and(|p| plan.bound < p), plan.bound.checked_sub(plan.value)),
        BoundOf::Members => (proved.is_some_and(|p| plan.bound < p), plan.bound.checked_sub(plan.admitted)),
        BoundOf::Gpus => (proved.is_some_and(|p| plan.bound > p), plan.gpus_opened.checked_sub(plan.bound)),
    };
    if is_tighter {
        return wrong(alloc::format!("{} is tighter than {:?}, which is what is proved", plan.bound, proved));
    }
    let Some(distance) = distance else { return wrong("the plan is better than its bound".into()) };
    let gap = (u128::from(distance) * PPM).div_ceil(u128::from(plan.bound.max(1)));
    if u128::from(plan.gap_ppm) != gap.min(u64::MAX.into()) {
        return Err(Violation::new(Rule::Gap, "gap_ppm", alloc::format!("it says {}, it is {gap}", plan.gap_ppm)));
    }
    Ok(if proved.is_some() { Checked::Full } else { Checked::Partial })
}

fn distinct(items: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut items: Vec<usize> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}
