//! Carries out the steps of an admission one by one: each must be legal where it stands,
//! and together they must end at exactly what the decision says.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::ask::Asked;
use super::image::Image;
use super::kind::{Kind, Thing, cells_of};
use super::moves::{Moved, is_from, pieces};
use super::put::{Hold, Inner, On, Owner, Piece, Place, Refused, check_inner, overlaps};
use super::serve::Member;
use super::{Rule, Violation};
use crate::decision::{Action, Decision, Step};
use crate::fleet::{Mode, SpaceKind, Usage};

/// Marks what a step made and nobody has yet.
const FRESH: Owner = (usize::MAX, u32::MAX);

/// Who a step disturbs, and whether a step before has disturbed it already.
type Disturbed = Option<(String, bool)>;

/// Checks the steps from `before` to `after`.
pub(super) fn check(
    before: &Image<'_>,
    after: &Image<'_>,
    asked: &Asked<'_>,
    decision: &Decision,
    placed: &[Member],
    moved: &[Moved<'_>],
) -> Result<(), Violation> {
    let handed = placed.iter().flat_map(|m| m.parts.iter().map(|(gpu, place)| (m.number, *gpu, *place)));
    let mut run = Run {
        image: before,
        after,
        asked,
        moved,
        gpus: BTreeMap::new(),
        open: handed.collect(),
        arrived: alloc::vec![false; moved.len()],
        left: alloc::vec![false; moved.len()],
    };
    for (i, step) in decision.steps.iter().enumerate() {
        run.step(step).map_err(|v| v.within(&alloc::format!("steps[{i}]")))?;
    }
    run.end()
}

struct Run<'a> {
    image: &'a Image<'a>,
    after: &'a Image<'a>,
    asked: &'a Asked<'a>,
    moved: &'a [Moved<'a>],
    /// GPUs that steps have touched, each with its kind. A fresh or detached instance is idle
    /// until attached.
    gpus: BTreeMap<usize, (usize, On)>,
    /// What is still to be handed to members.
    open: Vec<(u32, usize, Place)>,
    /// By move: whether its lease has the new instance, and whether it has left the old.
    arrived: Vec<bool>,
    left: Vec<bool>,
}

fn bad<T>(text: impl Into<String>) -> Result<T, Violation> {
    Err(Violation::new(Rule::Step, "", text))
}

fn broken((rule, text): Refused) -> Violation {
    Violation::new(rule, "", text)
}

/// The instance that a step speaks of.
#[derive(Clone, Copy)]
struct Said<'a> {
    profile: &'a str,
    profile_id: Option<u32>,
    start: u16,
    size: u16,
}

impl Run<'_> {
    fn step(&mut self, step: &Step) -> Result<(), Violation> {
        let node = self.image.node_named(&step.node);
        let Some(gpu) = node.and_then(|n| self.image.gpu_at(n, step.gpu)) else {
            return Err(Violation::new(Rule::Unknown, "", alloc::format!("no GPU {} on `{}`", step.gpu, step.node)));
        };
        let Some(found) = self.image.gpus.get(gpu) else { return bad("no such GPU") };
        let (mut position, mut on) = self.gpus.remove(&gpu).unwrap_or_else(|| (found.kind, found.on.clone()));
        let Some(kind) = self.image.kinds.get(position) else { return bad("no such GPU") };
        speaks_of_mode(kind, &step.action)?;
        let disturbed = match &step.action {
            Action::SetMode { from, to } => {
                position = self.set_mode(kind, gpu, &on, (*from, *to))?;
                on = On::empty(*to);
                None
            }
            Action::CreateInstance { profile, profile_id, start, size } => {
                let said = Said { profile, profile_id: *profile_id, start: *start, size: *size };
                self.create(kind, gpu, &mut on, said)?
            }
            Action::DestroyInstance { profile, profile_id, instance_id, start, size } => {
                let said = Said { profile, profile_id: *profile_id, start: *start, size: *size };
                self.destroy(kind, gpu, &mut on, said, *instance_id)?
            }
            Action::CreateCompute { profile, profile_id, instance_start, start } => {
                self.open_to(kind, gpu)?;
                create_compute(kind, &mut on, (profile, *profile_id), *instance_start, *start)?
            }
            Action::CreateVgpu { vgpu, placement_id, instance_start: None } => {
                let said = vgpu_at(kind, vgpu, *placement_id)?;
                self.create(kind, gpu, &mut on, said)?
            }
            Action::CreateVgpu { vgpu, placement_id, instance_start: Some(start) } => {
                self.open_to(kind, gpu)?;
                create_compute(kind, &mut on, (vgpu, None), *start, *placement_id)?
            }
            Action::DestroyVgpu { vgpu, placement_id, instance_start: None } => {
                let said = vgpu_at(kind, vgpu, *placement_id)?;
                self.destroy(kind, gpu, &mut on, said, None)?
            }
            Action::DestroyVgpu { vgpu, placement_id, instance_start: Some(start) } => {
                self.destroy_compute(kind, gpu, &mut on, vgpu, *start, *placement_id)?
            }
            Action::DestroyCompute { profile, instance_start, start, .. } => {
                self.destroy_compute(kind, gpu, &mut on, profile, *instance_start, *start)?
            }
            Action::Attach { lease, member } => self.attach(kind, gpu, &mut on, lease, *member)?,
            Action::Detach { lease, member } => self.detach(gpu, &mut on, lease, *member)?,
        };
        let right = match &disturbed {
            None => step.disturbs.is_empty(),
            // What was detached no longer runs there; naming it again does no harm.
            Some((name, again)) => step.disturbs == [name.as_str()] || (*again && step.disturbs.is_empty()),
        };
        if !right {
            let who = disturbed.map_or_else(|| String::from("nobody"), |(name, _)| name);
            let text = alloc::format!("the step disturbs {who}, not {:?}", step.disturbs);
            return Err(Violation::new(Rule::Disturbs, "disturbs", text));
        }
        self.gpus.insert(gpu, (position, on));
        Ok(())
    }

    /// The kind that a GPU is of after the change of mode that the decision says for it.
    fn set_mode(&self, kind: &Kind<'_>, gpu: usize, on: &On, (from, to): (Mode, Mode)) -> Result<usize, Violation> {
        if !(on.is_unused() && pieces(on).is_empty()) {
            return bad(alloc::format!("something is on {}", self.image.say(gpu)));
        }
        match self.after.gpus.get(gpu).map(|g| g.kind) {
            Some(new) if kind.mode == from && from != to && self.after.kind(gpu).is_some_and(|k| k.mode == to) => {
                Ok(new)
            }
            _ => {
                bad(alloc::format!("{} does not change from `{}` to `{}`", self.image.say(gpu), from.name(), to.name()))
            }
        }
    }

    fn open_to(&self, kind: &Kind<'_>, gpu: usize) -> Result<(), Violation> {
        match self.image.closed(gpu) {
            Some(rule) => Err(Violation::new(rule, "", alloc::format!("{} takes nothing new", self.image.say(gpu)))),
            None if kind.mode.space() != SpaceKind::Grid => bad("only a GPU that is cut into instances has any"),
            None => Ok(()),
        }
    }

    fn create(&self, kind: &Kind<'_>, gpu: usize, on: &mut On, said: Said<'_>) -> Result<Disturbed, Violation> {
        self.open_to(kind, gpu)?;
        let profile = instance(kind, said)?;
        if !kind.driver_creates(profile) {
            return Err(Violation::new(
                Rule::Driver,
                "",
                alloc::format!("the driver is too old for `{}`", said.profile),
            ));
        }
        let On::Grid(there) = on else { return bad("the GPU has no instances") };
        if let Some(hit) = there.iter().find(|p| overlaps(kind, p, said.start, said.size)) {
            let (own, other) = (said.profile, kind.name(hit.profile));
            let text = alloc::format!("`{own}` at {} meets `{other}` at {}", said.start, hit.start);
            return Err(Violation::new(Rule::Overlap, "", text));
        }
        there.push(Piece { start: said.start, profile, hold: Hold::Idle, owner: Some(FRESH), listed: None });
        on.check_all(kind).map_err(broken)?;
        Ok(None)
    }

    /// Destroys an idle instance, or one that a move takes away.
    fn destroy(
        &mut self,
        kind: &Kind<'_>,
        gpu: usize,
        on: &mut On,
        said: Said<'_>,
        instance_id: Option<u32>,
    ) -> Result<Disturbed, Violation> {
        let profile = instance(kind, said)?;
        let On::Grid(there) = on else { return bad("the GPU has no instances") };
        let Some(position) = there.iter().position(|p| p.start == said.start && p.profile == profile) else {
            return bad(alloc::format!("no `{}` at {}", said.profile, said.start));
        };
        let piece = there.remove(position);
        let listed = piece.listed.and_then(|i| self.image.gpus.get(gpu)?.document.instances.get(i));
        if let (Some(said), Some(known)) = (instance_id, listed.and_then(|i| i.id))
            && said != known
        {
            return bad(alloc::format!("the instance there has id {known}, not {said}"));
        }
        let moved = self.moved.iter().position(|m| is_from(m, gpu, (profile, said.start)));
        match (piece.hold, moved.and_then(|i| Some((i, self.moved.get(i)?)))) {
            // A fresh instance on the same cells is not the one that moved.
            (Hold::Idle, Some((_, moved))) if piece.owner != Some(FRESH) => Ok(Some((moved.name.into(), true))),
            (Hold::Idle, _) if piece.owner == Some(FRESH) => Ok(None),
            (Hold::Idle, _) if self.asked.workload.keep_idle => {
                let text = alloc::format!("idle `{}` at {} is to stay", said.profile, said.start);
                Err(Violation::new(Rule::KeepIdle, "", text))
            }
            (Hold::Idle, _) => Ok(None),
            (Hold::Busy, Some((i, moved))) if moved.owner.is_none() => {
                self.left.get_mut(i).into_iter().for_each(|left| *left = true);
                Ok(Some((moved.name.into(), false)))
            }
            _ => bad(alloc::format!("`{}` at {} is in use", said.profile, said.start)),
        }
    }

    fn destroy_compute(
        &self,
        kind: &Kind<'_>,
        gpu: usize,
        on: &mut On,
        name: &str,
        instance_start: u16,
        start: u16,
    ) -> Result<Disturbed, Violation> {
        let On::Grid(there) = on else { return bad("the GPU has no instances") };
        let Some(piece) = there.iter_mut().find(|p| p.start == instance_start) else {
            return bad(alloc::format!("no instance at {instance_start}"));
        };
        let is = |i: &Inner| i.start == start && kind.compute(piece.profile, i.profile).is_some_and(|c| c.name == name);
        if let Hold::Shared(inside) = &mut piece.hold
            && let Some(position) = inside.iter().position(is)
        {
            if inside.get(position).and_then(|i| i.owner) != Some(FRESH) {
                return bad(alloc::format!("`{name}` at {start} is in use"));
            }
            inside.remove(position);
            return Ok(None);
        }
        // Idle ones of the document are not kept in the image: they are in nobody's way.
        let listed = piece.listed.and_then(|i| self.image.gpus.get(gpu)?.document.instances.get(i));
        let idle = listed.is_some_and(|i| {
            let own = |c: &crate::fleet::ComputeInstance| {
                c.profile == name && c.start == Some(start) && c.usage == Usage::Idle
            };
            i.compute_instances.iter().any(own)
        });
        // The default one is over all of an instance that lists none, and has its name.
        let is_default = piece.hold == Hold::Idle
            && start == 0
            && listed.is_some_and(|i| i.compute_instances.is_empty())
            && kind.profile(piece.profile).is_some_and(|p| p.name == name);
        if idle || is_default {
            Ok(None)
        } else {
            bad(alloc::format!("no idle `{name}` at {start} inside the instance"))
        }
    }

    /// Hands a member of the request its next part there, or a moved lease its new instance.
    fn attach(
        &mut self,
        kind: &Kind<'_>,
        gpu: usize,
        on: &mut On,
        lease: &str,
        member: u32,
    ) -> Result<Disturbed, Violation> {
        if lease == self.asked.workload.name {
            let mut why = Violation::new(Rule::Step, "", alloc::format!("nothing here is for member {member}"));
            for i in 0..self.open.len() {
                let Some((number, at, place)) = self.open.get(i).copied() else { continue };
                if number != member || at != gpu {
                    continue;
                }
                match hand_over(kind, on, place) {
                    Ok(()) => {
                        self.open.remove(i);
                        return Ok(None);
                    }
                    Err(refused) => why = broken(refused),
                }
            }
            return Err(why);
        }
        let arrived = &self.arrived;
        let is = |(i, m): &(usize, &Moved<'_>)| {
            m.name == lease && m.member == member && m.to.0 == gpu && arrived.get(*i) == Some(&false)
        };
        let Some((i, moved)) = self.moved.iter().enumerate().find(|pair| is(pair)) else {
            return bad(alloc::format!("member {member} of `{lease}` does not move here"));
        };
        hand_over(kind, on, Place::Instance { profile: moved.to.1, start: moved.to.2 }).map_err(broken)?;
        self.arrived.get_mut(i).into_iter().for_each(|arrived| *arrived = true);
        Ok(None)
    }

    fn detach(&mut self, gpu: usize, on: &mut On, lease: &str, member: u32) -> Result<Disturbed, Violation> {
        let left = &self.left;
        let is = |(i, m): &(usize, &Moved<'_>)| {
            m.name == lease
                && m.member == member
                && m.from.0 == gpu
                && m.owner.is_some()
                && left.get(*i) == Some(&false)
        };
        let Some((i, moved)) = self.moved.iter().enumerate().find(|pair| is(pair)) else {
            return bad(alloc::format!("member {member} of `{lease}` does not move from here"));
        };
        let On::Grid(there) = on else { return bad("the GPU has no instances") };
        let own = there.iter_mut().find(|p| p.start == moved.from.2 && p.profile == moved.from.1);
        let Some(piece) = own.filter(|p| p.hold == Hold::Busy && p.owner == moved.owner) else {
            return bad(alloc::format!("member {member} of `{lease}` has nothing here"));
        };
        (piece.hold, piece.owner) = (Hold::Idle, None);
        self.left.get_mut(i).into_iter().for_each(|left| *left = true);
        Ok(Some((lease.into(), false)))
    }

    /// The end: everything handed over, nothing made for nobody, and every GPU used as the
    /// decision says.
    fn end(mut self) -> Result<(), Violation> {
        let ends = |text: String| Err(Violation::new(Rule::EndState, "steps", text));
        if let Some((member, gpu, _)) = self.open.first() {
            return ends(alloc::format!("member {member} is not handed its part of {}", self.image.say(*gpu)));
        }
        for (i, moved) in self.moved.iter().enumerate() {
            if self.left.get(i) != Some(&true) {
                return ends(alloc::format!("`{}` does not leave its old place", moved.name));
            }
            if moved.owner.is_some() && self.arrived.get(i) != Some(&true) {
                return ends(alloc::format!("`{}` is not handed its new place", moved.name));
            }
            // What no lease owns is handed over by nobody: its new instance is there.
            if let (None, Some((_, On::Grid(there)))) = (moved.owner, self.gpus.get_mut(&moved.to.0)) {
                let fresh = there.iter_mut().find(|p| p.start == moved.to.2 && p.profile == moved.to.1);
                fresh.into_iter().for_each(|p| (p.hold, p.owner) = (Hold::Busy, None));
            }
        }
        for (gpu, (_, on)) in &self.gpus {
            if pieces(on).iter().any(|p| p.hold == Hold::Idle && p.owner == Some(FRESH)) {
                return ends(alloc::format!("an instance is made on {} for nobody", self.image.say(*gpu)));
            }
        }
        for (gpu, wanted) in self.after.gpus.iter().enumerate() {
            let Some(before) = self.image.gpus.get(gpu) else { continue };
            let (kind, now) = self.gpus.get(&gpu).map_or((before.kind, &before.on), |(kind, on)| (*kind, on));
            let touched = self.gpus.contains_key(&gpu) || before.kind != wanted.kind || before.on != wanted.on;
            if touched && (kind != wanted.kind || now.used() != wanted.on.used()) {
                return ends(alloc::format!("{} ends otherwise than the placements say", self.image.say(gpu)));
            }
        }
        Ok(())
    }
}

/// Whether a step is one of the GPU's mode: vGPUs are not made by MIG commands, nor the
/// other way round.
fn speaks_of_mode(kind: &Kind<'_>, action: &Action) -> Result<(), Violation> {
    let fits = match action {
        Action::CreateInstance { .. } | Action::DestroyInstance { .. } => kind.mode != Mode::VgpuMixed,
        Action::CreateCompute { .. } | Action::DestroyCompute { .. } => kind.mode == Mode::Mig,
        Action::CreateVgpu { instance_start, .. } | Action::DestroyVgpu { instance_start, .. } => {
            kind.mode == if instance_start.is_some() { Mode::VgpuMig } else { Mode::VgpuMixed }
        }
        Action::SetMode { .. } | Action::Attach { .. } | Action::Detach { .. } => true,
    };
    if fits { Ok(()) } else { bad(alloc::format!("not a step on a GPU in mode `{}`", kind.mode.name())) }
}

/// A vGPU of a type at a placement id, in the words of an instance.
fn vgpu_at<'a>(kind: &Kind<'_>, vgpu: &'a str, placement_id: u16) -> Result<Said<'a>, Violation> {
    let Some(Thing::Instance(position)) = kind.named(vgpu) else {
        return Err(Violation::new(Rule::NotOffered, "", alloc::format!("`{}` here has no `{vgpu}`", kind.model.id)));
    };
    let size = kind.profile(position).map_or(0, cells_of);
    Ok(Said { profile: vgpu, profile_id: None, start: placement_id, size })
}

/// The profile that a step names, with the driver's id and the size that go with it.
fn instance(kind: &Kind<'_>, said: Said<'_>) -> Result<usize, Violation> {
    let name = said.profile;
    let Some(Thing::Instance(position)) = kind.named(name) else {
        return Err(Violation::new(Rule::NotOffered, "", alloc::format!("`{}` here has no `{name}`", kind.model.id)));
    };
    let Some(facts) = kind.profile(position) else { return bad("no such profile") };
    if said.size != cells_of(facts) {
        let text = alloc::format!("`{name}` covers {} cells, not {}", cells_of(facts), said.size);
        return Err(Violation::new(Rule::Size, "", text));
    }
    if said.profile_id != facts.id {
        return bad(alloc::format!("`{name}` has id {:?}, not {:?}", facts.id, said.profile_id));
    }
    Ok(position)
}

/// Makes a compute instance in an instance that nobody has as a whole. The default one of
/// an idle instance gives way.
fn create_compute(
    kind: &Kind<'_>,
    on: &mut On,
    (name, id): (&str, Option<u32>),
    instance_start: u16,
    start: u16,
) -> Result<Disturbed, Violation> {
    let On::Grid(there) = on else { return bad("the GPU has no instances") };
    let Some(piece) = there.iter_mut().find(|p| p.start == instance_start) else {
        return bad(alloc::format!("no instance at {instance_start}"));
    };
    let known = kind.profile(piece.profile).map_or(&[][..], |p| &p.compute_instances);
    let Some((position, facts)) = known.iter().enumerate().find(|(_, c)| c.name == name) else {
        return bad(alloc::format!("the instance at {instance_start} has no `{name}`"));
    };
    if facts.id != id {
        return bad(alloc::format!("`{name}` has id {:?}, not {id:?}", facts.id));
    }
    let mut inside = match &piece.hold {
        Hold::Busy => return bad(alloc::format!("the instance at {instance_start} is in use as a whole")),
        Hold::Idle => Vec::new(),
        Hold::Shared(inside) => inside.clone(),
    };
    check_inner(kind, piece.profile, &inside, facts, start).map_err(broken)?;
    inside.push(Inner { start, profile: position, owner: Some(FRESH) });
    (piece.hold, piece.owner) = (Hold::Shared(inside), None);
    Ok(None)
}

/// Hands over what must be there already and be free.
fn hand_over(kind: &Kind<'_>, on: &mut On, place: Place) -> Result<(), Refused> {
    let missing = |text: String| Err((Rule::Step, text));
    let On::Grid(there) = on else { return on.put(kind, place, None).map(|_| ()) };
    match place {
        Place::Instance { profile, start } => {
            let own = there.iter_mut().find(|p| p.start == start && p.profile == profile);
            match own.filter(|p| p.hold == Hold::Idle) {
                Some(piece) => {
                    (piece.hold, piece.owner) = (Hold::Busy, None);
                    Ok(())
                }
                None => missing(alloc::format!("no free `{}` at {start}", kind.name(profile))),
            }
        }
        Place::Compute { profile, start, inner, inner_start } => {
            let own = there.iter_mut().find(|p| p.start == start && p.profile == profile);
            if let Some(Piece { hold: Hold::Shared(inside), .. }) = own
                && let Some(found) = inside.iter_mut().find(|i| i.start == inner_start && i.profile == inner)
                && found.owner == Some(FRESH)
            {
                found.owner = None;
                return Ok(());
            }
            missing(alloc::format!("no free compute instance at {inner_start} inside {start}"))
        }
        _ => missing(String::from("a GPU that is cut into instances has nothing else")),
    }
}
