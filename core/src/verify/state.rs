//! Whether a state document is one that can be.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::image::{Image, Resident};
use super::kind::{Kind, Thing};
use super::put::{Hold, Inner, On, Owner, Piece, Place, check_inner};
use super::{Rule, Violation, catalog_of, power};
use crate::catalog::Catalog;
use crate::fleet::{Gpu, Instance, Lease, Node, SpaceKind, State, Usage};

/// Checks a state: names and indices that are unique, instances at legal starts that are
/// disjoint and within the limits of their GPU, leases on parts that are there and not
/// another's, members on one node each, nodes with CPU and memory for all their leases, and
/// nodes and racks within their power caps.
///
/// # Errors
/// The first rule that does not hold.
pub fn state(catalog: &Catalog, state: &State) -> Result<(), Violation> {
    let catalog = catalog_of(catalog, state)?;
    load(&catalog, state).map(|_| ())
}

/// Reads and checks a state.
pub(super) fn load<'a>(catalog: &'a Catalog, state: &'a State) -> Result<Image<'a>, Violation> {
    let mut image = Image::bare(catalog, &state.nodes)?;
    power::load(&mut image, &state.racks)?;
    for (i, node) in state.nodes.iter().enumerate() {
        let at = alloc::format!("nodes[{i}]");
        load_node(&mut image, i, node).map_err(|v| v.within(&at))?;
    }
    let mut names = BTreeSet::new();
    for (i, lease) in state.leases.iter().enumerate() {
        if !names.insert(lease.name.as_str()) {
            let text = alloc::format!("`{}` is used twice", lease.name);
            return Err(Violation::new(Rule::Duplicate, alloc::format!("leases[{i}].name"), text));
        }
        load_lease(&mut image, i, lease).map_err(|v| v.within(&alloc::format!("leases[{i}]")))?;
    }
    for gpu in 0..image.gpus.len() {
        if let (Some(found), Some(kind)) = (image.gpus.get(gpu), image.kind(gpu)) {
            found.on.check_all(kind).map_err(|(rule, text)| Violation::new(rule, image.say(gpu), text))?;
        }
    }
    count_found(&mut image);
    power::check_all(&image)?;
    Ok(image)
}

fn load_node(image: &mut Image<'_>, position: usize, node: &Node) -> Result<(), Violation> {
    if node.name.is_empty() {
        return Err(Violation::new(Rule::Document, "name", "a node needs a name"));
    }
    check_links(node)?;
    let Some(range) = image.nodes.get(position).map(|n| n.gpus.clone()) else { return Ok(()) };
    for (j, (gpu, document)) in range.zip(&node.gpus).enumerate() {
        let at = alloc::format!("gpus[{j}]");
        let Some(kind) = image.kind(gpu) else { continue };
        let on = load_instances(kind, document).map_err(|v| v.within(&at))?;
        if let Some(found) = image.gpus.get_mut(gpu) {
            found.on = on;
        }
    }
    Ok(())
}

fn check_links(node: &Node) -> Result<(), Violation> {
    let gpu = |j: usize, g: &Gpu| g.index.unwrap_or(u32::try_from(j).unwrap_or(u32::MAX));
    let indices: Vec<u32> = node.gpus.iter().enumerate().map(|(j, g)| gpu(j, g)).collect();
    let known = |end: &str| {
        let of_gpu = end.strip_prefix("GPU").and_then(|n| n.parse().ok()).is_some_and(|n: u32| indices.contains(&n));
        of_gpu || node.nics.iter().any(|n| n.name == end)
    };
    let mut pairs = BTreeSet::new();
    for (i, link) in node.links.iter().enumerate() {
        let at = alloc::format!("links[{i}]");
        if !known(&link.a) || !known(&link.b) {
            return Err(Violation::new(Rule::Unknown, at, alloc::format!("no such end: {}-{}", link.a, link.b)));
        }
        if link.a == link.b || !pairs.insert((link.a.as_str().min(&link.b), link.a.as_str().max(&link.b))) {
            return Err(Violation::new(Rule::Duplicate, at, alloc::format!("{}-{}", link.a, link.b)));
        }
    }
    for (i, set) in node.fabric_partitions.iter().enumerate() {
        let distinct: BTreeSet<u32> = set.iter().copied().collect();
        if distinct.len() != set.len() || !distinct.iter().all(|n| indices.contains(n)) {
            let text = "a partition lists GPUs of its node, each once";
            return Err(Violation::new(Rule::Document, alloc::format!("fabric_partitions[{i}]"), text));
        }
    }
    Ok(())
}

fn load_instances(kind: &Kind<'_>, gpu: &Gpu) -> Result<On, Violation> {
    if gpu.mode.space() != SpaceKind::Grid {
        return match gpu.instances.first() {
            Some(_) => {
                Err(Violation::new(Rule::NotOffered, "instances", "only a GPU that is cut into instances has any"))
            }
            None => Ok(On::empty(gpu.mode)),
        };
    }
    let mut pieces = Vec::new();
    for (k, instance) in gpu.instances.iter().enumerate() {
        let at = alloc::format!("instances[{k}]");
        let Some(Thing::Instance(profile)) = kind.named(&instance.profile) else {
            let text = alloc::format!("`{}` here has no `{}`", kind.model.id, instance.profile);
            return Err(Violation::new(Rule::NotOffered, at, text));
        };
        let hold = load_hold(kind, profile, instance).map_err(|v| v.within(&at))?;
        pieces.push(Piece { start: instance.start, profile, hold, owner: None, listed: Some(k) });
    }
    Ok(On::Grid(pieces))
}

/// Who uses an instance of the document. The default compute instance over the whole
/// instance says nothing more than the instance itself.
fn load_hold(kind: &Kind<'_>, profile: usize, instance: &Instance) -> Result<Hold, Violation> {
    let plain = if instance.usage == Usage::Idle { Hold::Idle } else { Hold::Busy };
    let known = kind.profile(profile).map_or(&[][..], |p| &p.compute_instances);
    if known.is_empty() || instance.compute_instances.iter().all(|c| c.profile == instance.profile) {
        return Ok(plain);
    }
    let mut inside: Vec<Inner> = Vec::new();
    for (k, compute) in instance.compute_instances.iter().enumerate() {
        let at = alloc::format!("compute_instances[{k}]");
        let Some(position) = known.iter().position(|c| c.name == compute.profile) else {
            return Err(Violation::new(Rule::Unknown, at, alloc::format!("no `{}`", compute.profile)));
        };
        let facts = known.get(position).filter(|_| compute.usage == Usage::Busy);
        let Some(facts) = facts else { continue };
        // Older drivers do not print the start: the first legal one stands for it.
        let starts = facts.placements.as_ref().map_or(&[][..], |p| &p.starts);
        let free = |s: &u16| {
            compute.start.is_none_or(|own| own == *s) && check_inner(kind, profile, &inside, facts, *s).is_ok()
        };
        let Some(start) = starts.iter().copied().find(free) else {
            return Err(Violation::new(Rule::Overlap, at, "no such start is free inside the instance"));
        };
        inside.push(Inner { start, profile: position, owner: None });
    }
    Ok(if inside.is_empty() { plain } else { Hold::Shared(inside) })
}

fn load_lease<'a>(image: &mut Image<'a>, position: usize, lease: &'a Lease) -> Result<(), Violation> {
    if lease.placements.is_empty() {
        return Err(Violation::new(Rule::Document, "placements", "a lease holds at least one placement"));
    }
    let mut members: BTreeMap<u32, usize> = BTreeMap::new();
    for (i, placement) in lease.placements.iter().enumerate() {
        let at = alloc::format!("placements[{i}]");
        let located = image.locate(placement).map_err(|v| v.within(&at))?;
        if *members.entry(placement.member).or_insert(located.node) != located.node {
            let text = alloc::format!("member {} is on two nodes", placement.member);
            return Err(Violation::new(Rule::Members, at, text));
        }
        if let Some((gpu, place)) = located.on {
            own(image, gpu, place, (position, placement.member))
                .map_err(|(rule, text)| Violation::new(rule, at, alloc::format!("{text} on {}", image.say(gpu))))?;
        }
    }
    let resident = Resident { name: &lease.name, labels: &lease.labels, keeps_away: &lease.keeps_away };
    for node in members.into_values() {
        let charged = image.charge(node, lease.cpu_milli, lease.memory_mib);
        charged.map_err(|(rule, text)| Violation::new(rule, "placements", text))?;
        image.reside(node, resident);
    }
    Ok(())
}

/// Gives a lease its part. What the document lists as busy on the same cells, and nobody
/// has yet, is the lease's own; nothing may have to go for it.
fn own(image: &mut Image<'_>, gpu: usize, place: Place, owner: Owner) -> Result<(), (Rule, String)> {
    if let Some(On::Grid(pieces)) = image.gpus.get_mut(gpu).map(|g| &mut g.on) {
        match place {
            Place::Instance { profile, start } => {
                let found = pieces.iter_mut().find(|p| p.start == start && p.profile == profile);
                if let Some(found) = found.filter(|p| p.hold == Hold::Busy && p.owner.is_none()) {
                    found.owner = Some(owner);
                    return Ok(());
                }
            }
            Place::Compute { profile, start, inner, inner_start } => {
                let host = pieces.iter_mut().find(|p| p.start == start && p.profile == profile);
                if let Some(Piece { hold: Hold::Shared(inside), .. }) = host
                    && let Some(found) = inside.iter_mut().find(|i| i.start == inner_start && i.profile == inner)
                    && found.owner.is_none()
                {
                    found.owner = Some(owner);
                    return Ok(());
                }
            }
            _ => {}
        }
    }
    let gone = image.put(gpu, place, Some(owner))?;
    if gone.is_empty() { Ok(()) } else { Err((Rule::Overlap, String::from("an idle instance is in its way"))) }
}

/// Instances that no lease has use their node too.
fn count_found(image: &mut Image<'_>) {
    for gpu in &image.gpus {
        let On::Grid(pieces) = &gpu.on else { continue };
        let found = |p: &&Piece| match &p.hold {
            Hold::Idle => false,
            Hold::Busy => p.owner.is_none(),
            Hold::Shared(inside) => inside.iter().all(|i| i.owner.is_none()),
        };
        let count = pieces.iter().filter(found).count();
        if let Some(node) = image.nodes.get_mut(gpu.node) {
            node.users = node.users.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }
}
