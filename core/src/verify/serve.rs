//! Whether what a member has is what its alternative asks, and the placing of a member.

use alloc::vec::Vec;

use super::ask::{Asked, named, ones};
use super::image::{Image, Located};
use super::kind::Kind;
use super::node::{Guest, Spot, are_joined, is_near, is_partition};
use super::put::{Hold, On, Owner, Piece, Place, Refused};
use super::{Rule, Violation};
use crate::fleet::Placement;
use crate::workload::{Ask, InstancesOn, MpsPriority, WholeGpus};

/// The placements of one member.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) number: u32,
    pub(super) alternative: u32,
    pub(super) mps_priority: MpsPriority,
    pub(super) node: usize,
    pub(super) parts: Vec<(usize, Place)>,
}

impl Member {
    pub(super) fn spot(&self) -> Spot {
        Spot { node: self.node, gpus: self.parts.iter().map(|(gpu, _)| *gpu).collect() }
    }
}

/// Placements by member, rising; each member has one alternative and one node.
pub(super) fn members(image: &Image<'_>, placements: &[Placement]) -> Result<Vec<Member>, Violation> {
    let mut located: Vec<(&Placement, Located, usize)> = Vec::new();
    for (i, placement) in placements.iter().enumerate() {
        let found = image.locate(placement).map_err(|v| v.within(&alloc::format!("placements[{i}]")))?;
        located.push((placement, found, i));
    }
    // Stable: the parts of a member stay in the order of the document.
    located.sort_by_key(|(p, ..)| p.member);
    let mut members: Vec<Member> = Vec::new();
    for (placement, found, i) in located {
        let at = || alloc::format!("placements[{i}]");
        match members.last_mut().filter(|m| m.number == placement.member) {
            Some(member) => {
                let Some(on) = found.on else {
                    return Err(Violation::new(Rule::Members, at(), "a member without a GPU has one placement"));
                };
                if member.parts.is_empty()
                    || member.node != found.node
                    || member.alternative != placement.alternative
                    || member.mps_priority != placement.mps_priority
                {
                    let text = alloc::format!("member {} has one node, alternative and priority", placement.member);
                    return Err(Violation::new(Rule::Members, at(), text));
                }
                member.parts.push(on);
            }
            None => members.push(Member {
                number: placement.member,
                alternative: placement.alternative,
                mps_priority: placement.mps_priority,
                node: found.node,
                parts: found.on.into_iter().collect(),
            }),
        }
    }
    Ok(members)
}

/// Puts a member on its node and GPUs; returns the idle instances that go for it.
pub(super) fn seat<'a>(
    image: &mut Image<'a>,
    asked: &Asked<'a>,
    member: &Member,
    owner: Option<Owner>,
) -> Result<Vec<(usize, Piece)>, Violation> {
    let workload = asked.workload;
    let at = alloc::format!("member {}", member.number);
    let broken = |(rule, text): Refused| Violation::new(rule, at.clone(), text);
    let guest = Guest {
        name: &workload.name,
        labels: &workload.labels,
        keeps_away: &workload.anti_affinity,
        nodes: &workload.nodes,
    };
    if let Some(node) = image.nodes.get(member.node) {
        guest.may_enter(node).map_err(broken)?;
    }
    serves(image, asked, member).map_err(broken)?;
    image.charge(member.node, workload.cpu_milli, workload.memory_mib).map_err(broken)?;
    let mut gone = Vec::new();
    for (gpu, place) in &member.parts {
        if let Some(rule) = image.closed(*gpu) {
            return Err(broken((rule, alloc::format!("{} takes nothing new", image.say(*gpu)))));
        }
        let removed = image
            .put(*gpu, *place, owner)
            .map_err(|(rule, text)| broken((rule, alloc::format!("{text} on {}", image.say(*gpu)))))?;
        gone.extend(removed.into_iter().map(|piece| (*gpu, piece)));
    }
    Ok(gone)
}

/// Whether the parts are what the alternative asks.
fn serves(image: &Image<'_>, asked: &Asked<'_>, member: &Member) -> Result<(), Refused> {
    let wrong = |text: &str| Err((Rule::Alternative, alloc::format!("alternative {}: {text}", member.alternative)));
    let position = usize::try_from(member.alternative).unwrap_or(usize::MAX);
    let Some(ask) = asked.alternatives.get(position) else { return wrong("the request has no such alternative") };
    let priority = if let Ask::Mps(share) = ask { share.priority } else { MpsPriority::Normal };
    if member.mps_priority != priority {
        return wrong("the MPS priority is another");
    }
    for (gpu, place) in &member.parts {
        let Some(kind) = image.kind(*gpu) else { return wrong("no such GPU") };
        asked.keeps_apart(kind, *place)?;
        if !asked.allows(kind) {
            return Err((Rule::Model, alloc::format!("model `{}` is not allowed", kind.model.id)));
        }
        if let Place::Instance { profile, .. } | Place::Compute { profile, .. } = place
            && !kind.driver_creates(*profile)
        {
            return Err((Rule::Driver, alloc::format!("the driver is too old for `{}`", kind.name(*profile))));
        }
    }
    match (ask, member.parts.as_slice()) {
        (Ask::NodeOnly {}, []) => Ok(()),
        (Ask::Profile(_) | Ask::AtLeast(_) | Ask::Fraction(_) | Ask::Mps(_), [(gpu, place)]) => {
            let met = image.kind(*gpu).is_some_and(|kind| ones(kind, ask).iter().any(|one| one.is_at(*place)));
            if met { Ok(()) } else { wrong("the part is another") }
        }
        (Ask::Gpus(whole), parts) => whole_gpus(image, whole, parts),
        (Ask::Instances(set), parts) => {
            let mut open: Vec<(usize, Place)> = parts.to_vec();
            for name in &set.profiles {
                let is = |(gpu, place): &(usize, Place)| {
                    image.kind(*gpu).and_then(|kind| named(kind, name)).is_some_and(|one| one.is_at(*place))
                };
                let Some(found) = open.iter().position(is) else { return wrong("an instance is missing") };
                open.remove(found);
            }
            if !open.is_empty() {
                return wrong("there is an instance too many");
            }
            let gpus: Vec<usize> = parts.iter().map(|(gpu, _)| *gpu).collect();
            if lie_as_asked(set.on, &gpus) { Ok(()) } else { wrong("the instances are not on GPUs as asked") }
        }
        _ => wrong("the number of parts is another"),
    }
}

/// Whether the instances of a member are on one GPU, or each on its own.
pub(super) fn lie_as_asked(on: InstancesOn, gpus: &[usize]) -> bool {
    let mut distinct = gpus.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    match on {
        InstancesOn::Any => true,
        InstancesOn::SameGpu => distinct.len() <= 1,
        InstancesOn::DistinctGpus => distinct.len() == gpus.len(),
    }
}

fn whole_gpus(image: &Image<'_>, ask: &WholeGpus, parts: &[(usize, Place)]) -> Result<(), Refused> {
    let wrong = |text: &str| Err((Rule::Alternative, alloc::string::String::from(text)));
    let gpus: Vec<usize> = parts.iter().map(|(gpu, _)| *gpu).collect();
    if gpus.len() != usize::try_from(ask.count).unwrap_or(usize::MAX) || !lie_as_asked(InstancesOn::DistinctGpus, &gpus)
    {
        return wrong("the number of GPUs is another");
    }
    if parts.iter().any(|(_, place)| *place != Place::Whole) {
        return wrong("not a whole GPU");
    }
    let model = |gpu: &usize| image.kind(*gpu).map(|k| &k.model.id);
    if gpus.iter().any(|g| model(g) != gpus.first().and_then(model)) {
        return wrong("the GPUs are not of one model");
    }
    let enough = |gpu: &usize| image.kind(*gpu).is_some_and(|kind| offers_whole(kind, ask));
    if !gpus.iter().all(enough) {
        return Err((Rule::Amount, alloc::string::String::from("a GPU has too little memory")));
    }
    let pairs = gpus.iter().enumerate().flat_map(|(i, a)| gpus.iter().skip(i + 1).map(move |b| (*a, *b)));
    let joined = pairs.into_iter().all(|(a, b)| are_joined(image, ask.link, a, b));
    let partition = ask.link != Some(crate::workload::GpuLink::FabricPartition) || is_partition(image, &gpus);
    if joined && partition && gpus.iter().all(|g| is_near(image, ask, *g)) {
        return Ok(());
    }
    Err((Rule::Link, alloc::string::String::from("the GPUs are not joined as asked")))
}

/// Whether a GPU of this kind can be given whole and has the memory asked.
pub(super) fn offers_whole(kind: &Kind<'_>, ask: &WholeGpus) -> bool {
    kind.mode == crate::fleet::Mode::Whole
        && ask.memory_mib.is_none_or(|least| kind.memory_mib.is_some_and(|has| has >= least))
}

/// Whether every idle instance of `before` is still there, or in use, and has room beside
/// what is used now.
pub(super) fn keeps_idle(image: &Image<'_>, gpu: usize, before: &On) -> Result<(), Refused> {
    let (Some(found), Some(kind)) = (image.gpus.get(gpu), image.kind(gpu)) else { return Ok(()) };
    let (On::Grid(old), On::Grid(new)) = (before, &found.on) else { return Ok(()) };
    let stays = |p: &Piece| new.iter().any(|q| q.start == p.start && q.profile == p.profile);
    if let Some(gone) = old.iter().find(|p| p.hold == Hold::Idle && !stays(p)) {
        let text =
            alloc::format!("idle `{}` at {} would go on {}", kind.name(gone.profile), gone.start, image.say(gpu));
        return Err((Rule::KeepIdle, text));
    }
    found.on.check_all(kind).map_err(|(_, text)| (Rule::KeepIdle, alloc::format!("an idle instance must go: {text}")))
}
