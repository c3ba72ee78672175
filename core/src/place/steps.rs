//! What the host has to do to make a decision true, in an order in which every prefix
//! leaves a legal state: moves first, then destructions, changes of mode, creations,
//! hand-overs.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::view::{Piece, Seat, View};
use crate::decision::{Action, Move, Step};
use crate::fleet::{Mode, Usage};
use crate::ids::GpuId;
use crate::ledger::{Ledger, Spec};
use crate::space::{Entry, Hold, Layout, Row, SpaceState, Take};

/// A part of a lease, or a found instance, that goes elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shift {
    /// Name of the lease or instance.
    pub name: String,
    /// Member of the lease.
    pub member: u32,
    /// Whether a lease owns it.
    pub leased: bool,
    /// Where it is.
    pub from: (GpuId, Take),
    /// Where it goes.
    pub to: (GpuId, Take),
}

/// Steps of shifts, each when its target is free, then of admissions, each a lease's name with
/// the places of its members.
pub fn steps(ledger: &Ledger, shifts: &[Shift], admissions: &[(&str, &[Seat])]) -> Vec<Step> {
    let takes: usize = admissions.iter().flat_map(|(_, seats)| *seats).map(|seat| seat.takes.len()).sum();
    let mut plan = Plan { ledger, view: View::new(ledger), steps: Vec::with_capacity(4 * shifts.len() + 2 * takes) };
    plan.shift(shifts);
    let mut made = Made::default();
    for piece in admissions.iter().flat_map(|(_, seats)| *seats).flat_map(|seat| &seat.takes) {
        plan.put(piece, &mut made);
    }
    plan.steps.extend(made.in_order());
    for (name, seats) in admissions {
        for (seat, member) in seats.iter().zip(0..) {
            for piece in &seat.takes {
                plan.push(piece.gpu, Action::Attach { lease: (*name).into(), member });
            }
        }
    }
    plan.steps
}

/// Shifts in the words of documents.
pub fn moves(ledger: &Ledger, shifts: &[Shift]) -> Vec<Move> {
    let site = |(gpu, take): (GpuId, Take)| {
        let record = &ledger.gpus()[gpu];
        let (profile, start) = match take {
            Take::Instance { profile, start } => (ledger.spec(gpu).profile_name(profile).into(), start),
            _ => (String::new(), 0),
        };
        crate::decision::Site { node: ledger.nodes()[record.node].name.clone(), gpu: record.index, profile, start }
    };
    let to_move = |s: &Shift| Move { lease: s.name.clone(), member: s.member, from: site(s.from), to: site(s.to) };
    shifts.iter().map(to_move).collect()
}

/// What has to be done on GPUs before parts of them can be handed over.
#[derive(Default)]
struct Made {
    destroy: Vec<Step>,
    modes: Vec<Step>,
    create: Vec<Step>,
}

impl Made {
    fn in_order(self) -> impl Iterator<Item = Step> {
        self.destroy.into_iter().chain(self.modes).chain(self.create)
    }
}

struct Plan<'a> {
    ledger: &'a Ledger,
    view: View<'a>,
    steps: Vec<Step>,
}

impl Plan<'_> {
    fn step(&self, gpu: GpuId, action: Action) -> Step {
        let record = &self.ledger.gpus()[gpu];
        Step { node: self.ledger.nodes()[record.node].name.clone(), gpu: record.index, action, disturbs: Vec::new() }
    }

    fn push(&mut self, gpu: GpuId, action: Action) {
        let step = self.step(gpu, action);
        self.steps.push(step);
    }

    /// Moves one after the other while the next target is free, so that nobody is without an
    /// instance; what only frees each other's target comes last and is taken down together.
    fn shift(&mut self, shifts: &[Shift]) {
        let mut rest = shifts;
        while let Some((next, more)) = rest.split_first()
            && self.view.clone().put(next.to.0, next.to.1)
        {
            self.bring_up(next);
            self.take_down(next);
            rest = more;
        }
        rest.iter().for_each(|s| self.take_down(s));
        rest.iter().for_each(|s| self.bring_up(s));
    }

    fn take_down(&mut self, shift: &Shift) {
        let (gpu, take) = shift.from;
        let disturbs = Vec::from([shift.name.clone()]);
        if shift.leased {
            let action = Action::Detach { lease: shift.name.clone(), member: shift.member };
            let step = Step { disturbs: disturbs.clone(), ..self.step(gpu, action) };
            self.steps.push(step);
        }
        if let Some(action) = self.destroy(gpu, self.view.spec(gpu), take) {
            let step = Step { disturbs, ..self.step(gpu, action) };
            self.steps.push(step);
        }
        let after = self.ledger.spec(gpu).space().remove(&self.view.state(gpu), take);
        if let Some(after) = after {
            self.view.set(gpu, after);
        }
    }

    fn bring_up(&mut self, shift: &Shift) {
        let (gpu, take) = shift.to;
        let mut made = Made::default();
        self.put(&Piece { gpu, spec: self.view.spec_id(gpu), take }, &mut made);
        self.steps.extend(made.in_order());
        if shift.leased {
            self.push(gpu, Action::Attach { lease: shift.name.clone(), member: shift.member });
        }
    }

    /// Makes a take on the view: the idle instances that go, the change of mode and the
    /// instances that come.
    fn put(&mut self, piece: &Piece, made: &mut Made) {
        let Piece { gpu, spec, take } = *piece;
        let kind = &self.ledger.specs()[spec];
        let Some(before) = self.view.state_in(gpu, spec, false) else { return };
        if self.view.spec_id(gpu) != spec {
            made.destroy.extend(self.clear(gpu));
            let action = Action::SetMode { from: self.view.spec(gpu).mode(), to: kind.mode() };
            made.modes.push(self.step(gpu, action));
        }
        if let (SpaceState::Grid(layout), Some(grid)) = (&*before, kind.grid()) {
            let Some(put) = grid.put(layout, take) else { return };
            made.destroy.extend(self.destroyed(gpu, kind, &put.destroyed));
            self.create(gpu, kind, layout, take, put.reused, &mut made.create);
        }
        drop(before);
        self.view.make(piece);
    }

    /// Idle instances that have to go before a change of mode.
    fn clear(&self, gpu: GpuId) -> Vec<Step> {
        match &*self.view.state(gpu) {
            SpaceState::Grid(layout) => self.destroyed(gpu, self.view.spec(gpu), layout.entries()),
            SpaceState::Uniform(_) | SpaceState::Fluid(_) => Vec::new(),
        }
    }

    fn destroyed(&self, gpu: GpuId, kind: &Spec, entries: &[Entry]) -> Vec<Step> {
        let step = |entry: &Entry| {
            let take = Take::Instance { profile: entry.profile, start: entry.start };
            Some(self.step(gpu, self.destroy(gpu, kind, take)?))
        };
        entries.iter().filter_map(step).collect()
    }

    /// Instances to create for a take on a layout, with what gives way inside a reused one.
    fn create(&self, gpu: GpuId, kind: &Spec, layout: &Layout, take: Take, reused: bool, create: &mut Vec<Step>) {
        let Some(grid) = kind.grid() else { return };
        let (Take::Instance { profile, start } | Take::Compute { profile, start, .. }) = take else { return };
        let row = &grid.rows()[profile];
        if !reused {
            let vgpu = row.name.clone();
            let action = if kind.mode() == Mode::VgpuMixed {
                Action::CreateVgpu { vgpu, placement_id: start, instance_start: None }
            } else {
                Action::CreateInstance { profile: vgpu, profile_id: row.id, start, size: row.size }
            };
            create.push(self.step(gpu, action));
        }
        if let Take::Compute { inner, inner_start, .. } = take
            && let Some(compute) = row.inner().and_then(|g| g.rows().lookup(inner))
        {
            if reused && kind.mode() == Mode::Mig {
                let was_idle = layout.at(start).is_some_and(|e| e.hold == Hold::Idle);
                let slices = inner_start..inner_start.saturating_add(compute.size);
                create.extend(self.give_way(gpu, row, start, was_idle, &slices));
            }
            let name = compute.name.clone();
            let action = if kind.mode() == Mode::VgpuMig {
                Action::CreateVgpu { vgpu: name, placement_id: inner_start, instance_start: Some(start) }
            } else {
                Action::CreateCompute {
                    profile: name,
                    profile_id: compute.id,
                    instance_start: start,
                    start: inner_start,
                }
            };
            create.push(self.step(gpu, action));
        }
    }

    /// Idle compute instances of an existing instance that stand on these slices: those
    /// listed, or the default one over all of an idle instance.
    fn give_way(&self, gpu: GpuId, row: &Row, start: u16, was_idle: bool, slices: &Range<u16>) -> Vec<Step> {
        let Some(grid) = row.inner() else { return Vec::new() };
        let listed = self.ledger.listed_compute(gpu, start);
        let by_default = (was_idle && listed.is_empty()).then_some((row.name.as_str(), 0));
        let idle =
            listed.iter().filter(|c| c.usage == Usage::Idle).filter_map(|c| Some((c.profile.as_str(), c.start?)));
        let gone = idle.chain(by_default).filter_map(|(name, at)| {
            let compute = &grid.rows()[grid.find(name)?];
            let hit = at < slices.end && slices.start < at.saturating_add(compute.size);
            hit.then(|| Action::DestroyCompute {
                profile: compute.name.clone(),
                profile_id: compute.id,
                instance_start: start,
                start: at,
            })
        });
        gone.map(|action| self.step(gpu, action)).collect()
    }

    fn destroy(&self, gpu: GpuId, kind: &Spec, take: Take) -> Option<Action> {
        let Take::Instance { profile, start } = take else { return None };
        let row = kind.grid()?.rows().lookup(profile)?;
        if kind.mode() == Mode::VgpuMixed {
            return Some(Action::DestroyVgpu { vgpu: row.name.clone(), placement_id: start, instance_start: None });
        }
        Some(Action::DestroyInstance {
            profile: row.name.clone(),
            profile_id: row.id,
            instance_id: self.ledger.instance_id(gpu, start),
            start,
            size: row.size,
        })
    }
}

impl Action {
    /// What takes this action back, where it is one that can be.
    pub fn inverse(&self) -> Self {
        match self.clone() {
            Self::SetMode { from, to } => Self::SetMode { from: to, to: from },
            Self::CreateInstance { profile, profile_id, start, size } => {
                Self::DestroyInstance { profile, profile_id, instance_id: None, start, size }
            }
            Self::DestroyInstance { profile, profile_id, start, size, .. } => {
                Self::CreateInstance { profile, profile_id, start, size }
            }
            Self::CreateCompute { profile, profile_id, instance_start, start } => {
                Self::DestroyCompute { profile, profile_id, instance_start, start }
            }
            Self::DestroyCompute { profile, profile_id, instance_start, start } => {
                Self::CreateCompute { profile, profile_id, instance_start, start }
            }
            Self::CreateVgpu { vgpu, placement_id, instance_start } => {
                Self::DestroyVgpu { vgpu, placement_id, instance_start }
            }
            Self::DestroyVgpu { vgpu, placement_id, instance_start } => {
                Self::CreateVgpu { vgpu, placement_id, instance_start }
            }
            Self::Attach { lease, member } => Self::Detach { lease, member },
            Self::Detach { lease, member } => Self::Attach { lease, member },
        }
    }
}
