//! A request, read for checking.

use alloc::string::String;
use alloc::vec::Vec;

use super::kind::{Kind, Thing};
use super::put::{Place, Refused};
use super::{Rule, Violation};
use crate::catalog::{Catalog, Mechanism};
use crate::fleet::Mode;
use crate::workload::{Ask, Fraction, Workload};

/// A request with its alternatives written out and its models by id.
#[derive(Clone, Debug)]
pub(super) struct Asked<'a> {
    pub(super) workload: &'a Workload,
    pub(super) alternatives: Vec<Ask>,
    /// Ids of the models it may go to, rising; empty: any.
    pub(super) models: Vec<String>,
    /// Ways to share a GPU that are too weak for it.
    too_weak: Vec<Mechanism>,
}

impl<'a> Asked<'a> {
    pub(super) fn of(catalog: &Catalog, workload: &'a Workload) -> Result<Self, Violation> {
        let alternatives = workload.alternatives();
        if workload.name.is_empty() || workload.count == 0 || alternatives.is_empty() {
            return Err(Violation::new(Rule::Document, "", "a request has a name, a count and an alternative"));
        }
        for (i, ask) in alternatives.iter().enumerate() {
            if !is_sound(ask) {
                return Err(Violation::new(Rule::Document, alloc::format!("any_of[{i}]"), "asks for nothing"));
            }
        }
        let weak = |m: &Mechanism| !catalog.isolation(*m).is_at_least(&workload.isolation);
        let too_weak = Mechanism::ALL.into_iter().filter(weak).collect();
        Ok(Self { workload, alternatives, models: model_ids(catalog, &workload.models)?, too_weak })
    }

    /// Whether a place keeps the tenant apart as it demands.
    pub(super) fn keeps_apart(&self, kind: &Kind<'_>, place: Place) -> Result<(), Refused> {
        let mechanism = kind.mechanism(place);
        if self.too_weak.contains(&mechanism) {
            return Err((Rule::Isolation, alloc::format!("{mechanism:?} isolates less than asked")));
        }
        if self.workload.confidential && !kind.is_confidential() {
            return Err((Rule::Isolation, String::from("confidential computing is off")));
        }
        Ok(())
    }

    pub(super) fn allows(&self, kind: &Kind<'_>) -> bool {
        self.models.is_empty() || self.models.contains(&kind.model.id)
    }
}

/// Ids of the models of these names, rising.
pub(super) fn model_ids(catalog: &Catalog, names: &[String]) -> Result<Vec<String>, Violation> {
    let mut ids = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let unknown =
            || Violation::new(Rule::Unknown, alloc::format!("models[{i}]"), alloc::format!("no model `{name}`"));
        ids.push(catalog.find(name).ok_or_else(unknown)?.id.clone());
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

fn is_sound(ask: &Ask) -> bool {
    match ask {
        Ask::Gpus(gpus) => gpus.count > 0,
        Ask::Instances(set) => !set.profiles.is_empty(),
        Ask::Fraction(Fraction { milli, memory_mib, memory_ppm }) => {
            *milli > 0 || *memory_mib > 0 || memory_ppm.is_some_and(|share| share > 0)
        }
        Ask::Mps(share) => (1..=100).contains(&share.threads_percent) && share.contexts > 0,
        Ask::Profile(_) | Ask::AtLeast(_) | Ask::NodeOnly {} => true,
    }
}

/// What a thing of one device is where an ask for one thing may be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum One {
    Thing(Thing),
    Fraction { milli: u16, mib: u32, users: u16 },
}

impl One {
    /// Whether a place is one of this.
    pub(super) fn is_at(self, place: Place) -> bool {
        match (self, place) {
            (Self::Thing(Thing::Instance(own)), Place::Instance { profile, .. }) => own == profile,
            (Self::Thing(Thing::Compute(own, inside)), Place::Compute { profile, inner, .. }) => {
                own == profile && inside == inner
            }
            (Self::Thing(Thing::Share(own)), Place::Share(share)) => own == share,
            (Self::Fraction { milli: m, mib: b, users: n }, Place::Fraction { milli, mib, users }) => {
                (m, b, n) == (milli, mib, users)
            }
            _ => false,
        }
    }

    /// Every place that this could have on a device, whatever is on it.
    pub(super) fn places(self, kind: &Kind<'_>) -> Vec<Place> {
        let starts = |profile: usize| {
            let placements = kind.profile(profile).and_then(|p| p.placements.as_ref());
            placements.map_or(&[][..], |p| &p.starts)
        };
        match self {
            Self::Fraction { milli, mib, users } => Vec::from([Place::Fraction { milli, mib, users }]),
            Self::Thing(Thing::Share(share)) => Vec::from([Place::Share(share)]),
            Self::Thing(Thing::Instance(profile)) => {
                starts(profile).iter().map(|start| Place::Instance { profile, start: *start }).collect()
            }
            Self::Thing(Thing::Compute(profile, inner)) => {
                let own = kind.compute(profile, inner).and_then(|c| c.placements.as_ref());
                let own = own.map_or(&[][..], |p| &p.starts);
                let at = |start: &u16| {
                    let start = *start;
                    own.iter().map(move |s| Place::Compute { profile, start, inner, inner_start: *s })
                };
                starts(profile).iter().flat_map(at).collect()
            }
        }
    }
}

/// What a named profile is on a device that can create it.
pub(super) fn named(kind: &Kind<'_>, name: &str) -> Option<One> {
    let thing = kind.named(name)?;
    // Where vGPUs stand on GPU instances, nobody is given a bare instance.
    if kind.mode == Mode::VgpuMig && matches!(thing, Thing::Instance(_)) {
        return None;
    }
    let creates = match thing {
        Thing::Instance(profile) | Thing::Compute(profile, _) => kind.driver_creates(profile),
        Thing::Share(_) => true,
    };
    creates.then_some(One::Thing(thing))
}

/// What meets an ask for one thing of one device there; empty for other asks.
pub(super) fn ones(kind: &Kind<'_>, ask: &Ask) -> Vec<One> {
    match ask {
        Ask::Profile(name) => named(kind, name).into_iter().collect(),
        Ask::AtLeast(least) => kind.meeting(least).into_iter().map(|p| One::Thing(Thing::Instance(p))).collect(),
        Ask::Fraction(fraction) => {
            kind.amounts(fraction).map(|(milli, mib)| One::Fraction { milli, mib, users: 1 }).into_iter().collect()
        }
        Ask::Mps(share) => {
            let clients = kind.clients(share);
            clients.map(|(milli, mib, users)| One::Fraction { milli, mib, users }).into_iter().collect()
        }
        Ask::Gpus(_) | Ask::Instances(_) | Ask::NodeOnly {} => Vec::new(),
    }
}
