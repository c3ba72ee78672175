//! The second answer to a refused request: which of its constraints cannot stay together,
//! and what would make it fit. Every remedy is tried before it is named.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::modes;
use super::moves::make_room;
use super::seats::Search;
use super::view::View;
use super::{Budget, decide, steps};
use crate::decision::{Explanation, Remedy, Verdict};
use crate::error::InputError;
use crate::fleet::{Gpu, Mode, Node, State};
use crate::ids::NodeId;
use crate::ledger::{Ledger, Spec};
use crate::workload::{Ask, Resolver, Workload};

/// GPUs of the largest fleet on which remedies that need a trial copy of it are tried.
const TRIAL_FLEET_MAX: usize = 50_000;

/// GPUs that one node of a trial fleet holds: the largest machines that are built.
const TRIAL_GPUS_MAX: u32 = 16;

/// Explains a request that [`decide`] does not admit.
///
/// # Errors
/// A request that is not well formed.
pub fn explain(ledger: &Ledger, workload: &Workload, budget: Budget) -> Result<Explanation, InputError> {
    let mut explanation = Explanation::default();
    if decide(ledger, workload, budget)?.verdict == Verdict::Admit {
        return Ok(explanation);
    }
    let mut trials = Trials { ledger, budget, exhausted: false };
    explanation.conflict = trials.conflict(workload)?;
    let remedies = &mut explanation.remedies;
    remedies.extend(trials.moves(workload)?);
    remedies.extend(trials.relax(workload)?);
    remedies.extend(trials.fewer(workload)?);
    remedies.extend(trials.other_profile(workload)?);
    if ledger.gpus().len() <= TRIAL_FLEET_MAX {
        remedies.extend(trials.uncordon(workload)?);
        remedies.extend(modes::changes(&mut trials, workload)?);
        remedies.extend(trials.add_gpus(workload)?);
    } else {
        trials.exhausted = true;
    }
    explanation.budget_exhausted = trials.exhausted;
    Ok(explanation)
}

pub(super) struct Trials<'a> {
    pub(super) ledger: &'a Ledger,
    budget: Budget,
    exhausted: bool,
}

/// A constraint that can be dropped, by the field that holds it.
struct Constraint {
    field: &'static str,
    drop: fn(&mut Workload),
}

const CONSTRAINTS: [Constraint; 9] = [
    Constraint { field: "nodes", drop: |w| w.nodes.clear() },
    Constraint { field: "models", drop: |w| w.models.clear() },
    Constraint { field: "anti_affinity", drop: |w| w.anti_affinity.clear() },
    Constraint { field: "members", drop: |w| w.members = None },
    Constraint { field: "cpu_milli", drop: |w| w.cpu_milli = 0 },
    Constraint { field: "memory_mib", drop: |w| w.memory_mib = 0 },
    Constraint { field: "keep_idle", drop: |w| w.keep_idle = false },
    Constraint { field: "gpus.link", drop: |w| edit_gpus(w, |g| g.link = None) },
    Constraint { field: "gpus.near_nic", drop: |w| edit_gpus(w, |g| g.near_nic = None) },
];

fn edit_gpus(workload: &mut Workload, edit: impl Fn(&mut crate::workload::WholeGpus)) {
    for ask in &mut workload.any_of {
        if let Ask::Gpus(gpus) = ask {
            edit(gpus);
        }
    }
}

impl Trials<'_> {
    pub(super) fn fits(&mut self, ledger: &Ledger, workload: &Workload) -> Result<bool, InputError> {
        let verdict = decide(ledger, workload, self.budget)?.verdict;
        self.exhausted |= verdict == Verdict::Undecided;
        Ok(verdict == Verdict::Admit)
    }

    /// The constraints that the request has.
    fn present(workload: &Workload) -> Vec<&'static Constraint> {
        let matters = |c: &&Constraint| {
            let mut without = workload.clone();
            (c.drop)(&mut without);
            without != *workload
        };
        CONSTRAINTS.iter().filter(matters).collect()
    }

    /// The smallest set of constraints that, with the ask itself, does not fit; empty when
    /// the ask alone does not.
    fn conflict(&mut self, workload: &Workload) -> Result<Vec<String>, InputError> {
        let present = Self::present(workload);
        let mut sets: Vec<u32> = (0..1u32 << present.len()).collect();
        sets.sort_by_key(|set| (set.count_ones(), *set));
        for kept in sets {
            let mut trial = workload.clone();
            let mut fields = Vec::new();
            for (i, constraint) in present.iter().enumerate() {
                if kept >> i & 1 == 0 {
                    (constraint.drop)(&mut trial)
                } else {
                    fields.push(constraint.field.to_string())
                }
            }
            if !self.fits(self.ledger, &trial)? {
                return Ok(fields);
            }
        }
        Ok(Vec::new())
    }

    fn moves(&mut self, workload: &Workload) -> Result<Option<Remedy>, InputError> {
        let resolved = Resolver::new(self.ledger).resolve(workload)?;
        let search = Search::new(self.ledger, workload, &resolved);
        let view = View::new(self.ledger);
        let (room, fewest) = make_room(&search, &view, self.budget.moves, self.budget.work, &mut 0);
        Ok(room.map(|room| Remedy::Move { moves: steps::moves(self.ledger, &room.shifts), fewest }))
    }

    fn relax(&mut self, workload: &Workload) -> Result<Vec<Remedy>, InputError> {
        let mut remedies = Vec::new();
        for constraint in Self::present(workload) {
            let mut trial = workload.clone();
            (constraint.drop)(&mut trial);
            if self.fits(self.ledger, &trial)? {
                remedies.push(Remedy::Relax { field: constraint.field.to_string() });
            }
        }
        Ok(remedies)
    }

    /// The largest number of members that fits: fewer members always fit where more do.
    fn fewer(&mut self, workload: &Workload) -> Result<Option<Remedy>, InputError> {
        let (mut fits, mut fails) = (0, workload.count);
        while fails - fits > 1 {
            let count = fits + (fails - fits) / 2;
            if self.fits(self.ledger, &Workload { count, ..workload.clone() })? { fits = count } else { fails = count }
        }
        Ok((fits > 0).then_some(Remedy::FewerMembers { count: fits }))
    }

    /// The largest plain profile that fits instead of the one named.
    fn other_profile(&mut self, workload: &Workload) -> Result<Option<Remedy>, InputError> {
        if workload.profile.is_none() && !workload.any_of.iter().any(|a| matches!(a, Ask::Profile(_))) {
            return Ok(None);
        }
        let mut rows: Vec<(u16, u16, String)> = Vec::new();
        for (_, spec) in self.ledger.specs().iter() {
            let grid = spec.grid().into_iter().flat_map(|g| g.rows().iter());
            rows.extend(grid.filter(|(_, r)| r.plain).map(|(_, r)| (r.compute_slices, r.size, r.name.clone())));
        }
        rows.sort();
        rows.dedup();
        for (_, _, profile) in rows.into_iter().rev() {
            let trial = Workload { profile: Some(profile.clone()), any_of: Vec::new(), ..workload.clone() };
            if self.fits(self.ledger, &trial)? {
                return Ok(Some(Remedy::OtherProfile { profile }));
            }
        }
        Ok(None)
    }

    /// The first cordoned GPU, else node, whose return would do.
    fn uncordon(&mut self, workload: &Workload) -> Result<Option<Remedy>, InputError> {
        let ledger = self.ledger;
        let gpus: Vec<_> = ledger.closed().filter(|g| ledger.gpus()[*g].cordoned).collect();
        for gpu in gpus {
            let record = &ledger.gpus()[gpu];
            let mut trial = ledger.clone();
            trial.set_gpu_cordon(gpu, false);
            if self.fits(&trial, workload)? {
                let node = ledger.nodes()[record.node].name.clone();
                return Ok(Some(Remedy::Uncordon { node, gpu: Some(record.index) }));
            }
        }
        let nodes: Vec<NodeId> = ledger.nodes().iter().filter(|(_, n)| n.cordoned).map(|(id, _)| id).collect();
        for node in nodes {
            let mut trial = ledger.clone();
            trial.set_node_cordon(node, false);
            if self.fits(&trial, workload)? {
                let node = ledger.nodes()[node].name.clone();
                return Ok(Some(Remedy::Uncordon { node, gpu: None }));
            }
        }
        Ok(None)
    }

    /// For each kind of GPU in the fleet, the fewest on one new node that would do.
    fn add_gpus(&mut self, workload: &Workload) -> Result<Vec<Remedy>, InputError> {
        let mut remedies = Vec::new();
        for (_, spec) in self.ledger.specs().iter() {
            let enough = self.with_added(workload, spec, TRIAL_GPUS_MAX)?;
            if !enough {
                continue;
            }
            let (mut fails, mut fits) = (0, TRIAL_GPUS_MAX);
            while fits - fails > 1 {
                let count = fails + (fits - fails) / 2;
                if self.with_added(workload, spec, count)? { fits = count } else { fails = count }
            }
            let remedy =
                Remedy::AddGpus { model: spec.model().id.clone(), mode: spec.mode().name().to_string(), count: fits };
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
        Ok(remedies)
    }

    fn with_added(&mut self, workload: &Workload, spec: &Spec, count: u32) -> Result<bool, InputError> {
        let numa_node = (spec.mode() == Mode::Whole).then_some(0);
        let gpu = Gpu { numa_node, modes: Vec::new(), ..spec.document() };
        let mut name = String::from("new");
        while self.ledger.node_named(&name).is_some() {
            name.push('+');
        }
        let gpus = core::iter::repeat_n(gpu, count as usize).collect();
        let mut state: State = self.ledger.snapshot();
        state.nodes.push(Node { name, gpus, ..Node::default() });
        let trial = Ledger::new(self.ledger.catalog().clone(), self.ledger.policy().clone(), &state)?;
        self.fits(&trial, workload)
    }
}
