//! What GPUs, nodes and racks draw, counted from what is on each GPU, and the caps that
//! they must keep to.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::image::{Image, NodeImage};
use super::kind::{Kind, cells_of};
use super::put::{Hold, On, Piece, Refused};
use super::{Rule, Violation};
use crate::fleet::{PowerCap, Rack};

/// Milliwatts in a watt, thousandths in a slice.
const THOUSAND: u128 = 1000;

/// A rack: what its nodes must keep to together, in watts, and which they are.
#[derive(Clone, Debug)]
pub(super) struct RackImage<'a> {
    name: &'a str,
    cap: Option<PowerCap>,
    nodes: Vec<usize>,
}

/// Reads the racks, and checks that the watts of every GPU under a cap are known.
pub(super) fn load<'a>(image: &mut Image<'a>, racks: &'a [Rack]) -> Result<(), Violation> {
    let mut names = BTreeSet::new();
    for (i, rack) in racks.iter().enumerate() {
        if !names.insert(rack.name.as_str()) {
            let text = alloc::format!("`{}` is used twice", rack.name);
            return Err(Violation::new(Rule::Duplicate, alloc::format!("racks[{i}].name"), text));
        }
        image.racks.push(RackImage { name: &rack.name, cap: rack.power_cap, nodes: Vec::new() });
    }
    for position in 0..image.nodes.len() {
        let Some(node) = image.nodes.get_mut(position) else { continue };
        let mut cap = node.document.power_cap;
        if let (Some(name), false) = (&node.document.rack, racks.is_empty()) {
            let Some(rack) = image.racks.iter_mut().find(|r| r.name == name) else {
                let at = alloc::format!("nodes[{position}].rack");
                return Err(Violation::new(Rule::Unknown, at, alloc::format!("no rack `{name}`")));
            };
            rack.nodes.push(position);
            node.rack = racks.iter().position(|r| r.name == *name);
            cap = cap.or(rack.cap);
        }
        let mut gpus = node.gpus.clone();
        if let Some(gpu) = cap.and_then(|_| gpus.find(|g| image.kind(*g).is_some_and(|k| k.draw.is_none()))) {
            let text = "it is under a power cap and its watts are not known";
            return Err(Violation::new(Rule::Document, image.say(gpu), text));
        }
    }
    Ok(())
}

/// Checks every node and rack.
pub(super) fn check_all(image: &Image<'_>) -> Result<(), Violation> {
    let nodes = image.nodes.iter().enumerate().filter(|(_, n)| kept_to(n.document.power_cap).is_some());
    nodes
        .map(|(i, _)| i)
        .try_for_each(|node| check_node(image, node))
        .and_then(|()| image.racks.iter().try_for_each(|rack| check_rack(image, rack)))
        .map_err(|(rule, text)| Violation::new(rule, "power_cap", text))
}

/// Checks a node and its rack.
pub(super) fn check(image: &Image<'_>, node: usize) -> Result<(), Refused> {
    check_node(image, node)?;
    let rack = image.nodes.get(node).and_then(|n| image.racks.get(n.rack?));
    rack.map_or(Ok(()), |rack| check_rack(image, rack))
}

fn check_node(image: &Image<'_>, node: usize) -> Result<(), Refused> {
    let Some(found) = image.nodes.get(node) else { return Ok(()) };
    let Some(cap) = kept_to(found.document.power_cap) else { return Ok(()) };
    within("node", &found.document.name, node_draw(image, found), cap)
}

fn check_rack(image: &Image<'_>, rack: &RackImage<'_>) -> Result<(), Refused> {
    let Some(cap) = kept_to(rack.cap) else { return Ok(()) };
    let draw = rack.nodes.iter().filter_map(|n| image.nodes.get(*n)).map(|n| node_draw(image, n)).sum();
    within("rack", rack.name, draw, cap)
}

/// A cap in milliwatts, unless GPUs are slowed down to keep to it.
fn kept_to(cap: Option<PowerCap>) -> Option<u128> {
    let cap = cap?;
    if cap.throttle { None } else { Some(u128::from(cap.limit_w) * THOUSAND) }
}

fn within(what: &str, name: &str, draw: u128, cap: u128) -> Result<(), Refused> {
    if draw <= cap {
        return Ok(());
    }
    Err((Rule::PowerCap, alloc::format!("{what} `{name}` draws {draw} mW, more than its cap of {cap}")))
}

/// A node's CPU and GPUs, in milliwatts.
fn node_draw(image: &Image<'_>, node: &NodeImage<'_>) -> u128 {
    let gpus = node.gpus.clone().filter_map(|gpu| Some(gpu_draw(image.kind(gpu)?, &image.gpus.get(gpu)?.on)));
    let cpu = node.document.cpu_milli.map_or(0, |has| {
        let (idle, full) = (u128::from(node.cpu.idle_w), u128::from(node.cpu.full_w));
        let (has, taken) = (u128::from(has), u128::from(node.cpu_milli.min(has)));
        (taken * full + (has - taken) * idle).div_ceil(u128::from(node.cpu.cores))
    });
    cpu + gpus.sum::<u128>()
}

/// What a GPU draws, in milliwatts; nothing where its watts are not known.
fn gpu_draw(kind: &Kind<'_>, on: &On) -> u128 {
    let Some(draw) = kind.draw else { return 0 };
    if on.is_unused() {
        return draw.idle_mw.into();
    }
    let (used, of) = in_use(kind, on);
    let (active, full) = (u128::from(draw.active_mw), u128::from(draw.full_mw));
    let used = used.min(of);
    // Between active and full as the used part is between none and all, rounded up.
    let mixed = if of == 0 { active } else { (active * (of - used) + full * used).div_ceil(of) };
    mixed.min(draw.limit_mw.into())
}

/// Compute in use, and of how much.
fn in_use(kind: &Kind<'_>, on: &On) -> (u128, u128) {
    match on {
        On::Fluid { whole: true, .. } => (1, 1),
        On::Fluid { milli, .. } => (u128::from(*milli), kind.amounts.compute_of_whole.into()),
        On::Shares { share, taken } => {
            let first = (0..kind.shares.len()).find(|other| kind.is_one_size(*other, *share));
            let most = first.and_then(|f| kind.shares.get(f)).map_or(0, |t| t.max_per_gpu);
            (u128::from(*taken), most.into())
        }
        On::Grid(pieces) => {
            let used = pieces.iter().filter(|p| p.hold != Hold::Idle);
            match kind.model.compute_slices {
                Some(slices) => (used.map(|p| slices_of(kind, p)).sum(), u128::from(slices) * THOUSAND),
                None => {
                    let cells = used.filter_map(|p| kind.profile(p.profile)).map(|p| u128::from(cells_of(p)));
                    (cells.sum(), kind.cells().into())
                }
            }
        }
    }
}

/// Thousandths of compute slices of a piece; where users share it, of what they have.
fn slices_of(kind: &Kind<'_>, piece: &Piece) -> u128 {
    let all = u128::from(kind.profile(piece.profile).map_or(0, |p| p.compute_slices)) * THOUSAND;
    let Hold::Shared(inside) = &piece.hold else { return all };
    let own = inside.iter().filter_map(|inner| kind.compute(piece.profile, inner.profile)).map(|facts| {
        match (facts.compute_slices, facts.max_instances) {
            (0, Some(most)) => all.div_ceil(u128::from(most.max(1))),
            (0, None) => all.div_ceil(u128::from(u16::MAX)),
            (slices, _) => u128::from(slices) * THOUSAND,
        }
    });
    own.sum()
}
