//! From what people ask to what devices understand: names and least amounts become
//! profiles of each kind of device.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Ask, Fraction, GpuLink, Instances, InstancesOn, MpsShare, Resources, WholeGpus, Workload};
use crate::catalog::{Catalog, Profile};
use crate::error::{Fault, InputError};
use crate::fleet::{Mode, SpaceKind};
use crate::ids::{Id, ProfileId, SpecId};
use crate::ledger::{Ledger, Spec};
use crate::reason::Code;
use crate::space::{DeviceAsk, Fluid, MILLI, PPM, Space, ppm};

/// An alternative in the terms of one kind of device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberAsk {
    /// Only the node's CPU and memory.
    NodeOnly,
    /// Any one of these on one device, the first that can.
    One(Vec<DeviceAsk>),
    /// Whole GPUs of one node.
    Whole(WholeGpus),
    /// Several instances of one node; those that this kind of device does not offer are
    /// `None` and lie on GPUs of another kind.
    Several(Vec<Option<DeviceAsk>>, InstancesOn),
}

/// A workload's alternatives in the terms of every kind of device of the fleet.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The alternatives, in order of preference.
    pub alternatives: Vec<Alternative>,
}

/// One alternative.
#[derive(Clone, Debug)]
pub struct Alternative {
    is_node_only: bool,
    /// By device kind: what it is there, or the gate it fails.
    pub by_spec: Vec<Result<MemberAsk, Code>>,
}

impl Resolved {
    /// Whether an alternative asks for nothing but the node.
    pub fn is_node_only(&self, alternative: usize) -> bool {
        self.alternatives.get(alternative).is_some_and(|a| a.is_node_only)
    }

    /// What an alternative is on a device kind.
    pub fn on(&self, alternative: usize, spec: SpecId) -> Result<&MemberAsk, Code> {
        match self.alternatives.get(alternative).and_then(|a| a.by_spec.get(spec.index())) {
            Some(Ok(ask)) => Ok(ask),
            Some(Err(code)) => Err(*code),
            None => Err(Code::ProfileNotOffered),
        }
    }
}

/// Resolves asks against a ledger.
#[derive(Clone, Copy, Debug)]
pub struct Resolver<'a> {
    ledger: &'a Ledger,
}

impl<'a> Resolver<'a> {
    /// A resolver for this ledger.
    pub fn new(ledger: &'a Ledger) -> Self {
        Self { ledger }
    }

    /// Checks a workload and resolves it.
    ///
    /// # Errors
    /// A name in no catalog and no listing, an amount out of range, or nothing asked.
    pub fn resolve(&self, workload: &Workload) -> Result<Resolved, InputError> {
        if workload.name.is_empty() {
            return Err(InputError::new("name", Fault::Invalid(String::from("a request needs a name"))));
        }
        if workload.profile.is_none() && workload.any_of.is_empty() {
            return Err(InputError::new(
                "any_of",
                Fault::Invalid(String::from("give `profile` or at least one alternative")),
            ));
        }
        if workload.count == 0 {
            return Err(InputError::new("count", Fault::OutOfRange { value: 0, min: 1, max: u32::MAX.into() }));
        }
        let models = self.models(workload)?;
        let offset = usize::from(workload.profile.is_some());
        let mut alternatives = Vec::with_capacity(offset + workload.any_of.len());
        for (i, ask) in workload.asks().enumerate() {
            self.check(&ask).map_err(|e| match i.checked_sub(offset) {
                Some(position) => e.within(&alloc::format!("any_of[{position}]")),
                None => e,
            })?;
            let on = |(_, spec): (SpecId, &Spec)| {
                if !models.is_empty() && !models.contains(&spec.model().id.as_str()) {
                    return Err(Code::ModelNotAllowed);
                }
                self.isolated(workload, spec, on_spec(self.ledger.catalog(), spec, &ask)?)
            };
            let by_spec = self.ledger.specs().iter().map(on).collect();
            alternatives.push(Alternative { is_node_only: *ask == Ask::NodeOnly {}, by_spec });
        }
        Ok(Resolved { alternatives })
    }

    /// Ids of the models that a workload allows; none: all.
    fn models(&self, workload: &Workload) -> Result<Vec<&'a str>, InputError> {
        let id = |(i, name): (usize, &String)| {
            let model = self.ledger.catalog().find(name);
            let unknown = || InputError::new(alloc::format!("models[{i}]"), Fault::UnknownModel(name.clone()));
            model.map(|model| model.id.as_str()).ok_or_else(unknown)
        };
        workload.models.iter().enumerate().map(id).collect()
    }

    /// What of an ask keeps the tenant apart as the workload demands.
    fn isolated(&self, workload: &Workload, spec: &Spec, ask: MemberAsk) -> Result<MemberAsk, Code> {
        if workload.confidential && ask != MemberAsk::NodeOnly && !spec.sharing().confidential {
            return Err(Code::ConfidentialOff);
        }
        if workload.isolation.is_any() {
            return Ok(ask);
        }
        let holds =
            |ask: &DeviceAsk| self.ledger.catalog().isolation(spec.mechanism(*ask)).is_at_least(&workload.isolation);
        let kept = match ask {
            MemberAsk::NodeOnly => MemberAsk::NodeOnly,
            MemberAsk::One(asks) => MemberAsk::One(asks.into_iter().filter(holds).collect()),
            MemberAsk::Whole(gpus) if holds(&DeviceAsk::Whole) => MemberAsk::Whole(gpus),
            MemberAsk::Whole(_) => return Err(Code::IsolationTooWeak),
            MemberAsk::Several(asks, on) => MemberAsk::Several(asks.into_iter().map(|a| a.filter(holds)).collect(), on),
        };
        match &kept {
            MemberAsk::One(asks) if asks.is_empty() => Err(Code::IsolationTooWeak),
            // One GPU has to offer them all; several may share them out.
            MemberAsk::Several(asks, on)
                if asks.iter().all(Option::is_none)
                    || (*on == InstancesOn::SameGpu && asks.iter().any(Option::is_none)) =>
            {
                Err(Code::IsolationTooWeak)
            }
            _ => Ok(kept),
        }
    }

    /// Checks one alternative by itself.
    ///
    /// # Errors
    /// See [`Resolver::resolve`].
    pub fn check(&self, ask: &Ask) -> Result<(), InputError> {
        match ask {
            Ask::Profile(name) => self.check_name("profile", name),
            Ask::Instances(set) => {
                if set.profiles.is_empty() {
                    return Err(InputError::new("instances.profiles", Fault::OutOfRange { value: 0, min: 1, max: 64 }));
                }
                let mut names = set.profiles.iter().enumerate();
                names.try_for_each(|(i, n)| self.check_name(&alloc::format!("instances.profiles[{i}]"), n))
            }
            Ask::Gpus(gpus) if gpus.count == 0 => {
                Err(InputError::new("gpus.count", Fault::OutOfRange { value: 0, min: 1, max: u32::MAX.into() }))
            }
            Ask::Fraction(fraction) => check_fraction(fraction),
            Ask::Mps(share) => check_mps(share),
            Ask::AtLeast(least) if *least == Resources::default() => {
                Err(InputError::new("at_least", Fault::Invalid(String::from("asks for nothing"))))
            }
            Ask::Gpus(_) | Ask::AtLeast(_) | Ask::NodeOnly {} => Ok(()),
        }
    }

    fn check_name(&self, path: &str, name: &str) -> Result<(), InputError> {
        let known = self.ledger.catalog().knows_profile(name)
            || self.ledger.specs().iter().any(|(_, spec)| spec.named(name).is_some());
        if known { Ok(()) } else { Err(InputError::new(path, Fault::UnknownProfile(name.into()))) }
    }

    /// The first thing on one device that an ask can be; for demand mixes.
    pub fn device_ask(&self, spec: &Spec, ask: &Ask) -> Option<DeviceAsk> {
        match on_spec(self.ledger.catalog(), spec, ask).ok()? {
            MemberAsk::One(asks) => asks.first().copied(),
            MemberAsk::Several(asks, _) => asks.into_iter().flatten().next(),
            MemberAsk::Whole(_) => Some(DeviceAsk::Whole),
            MemberAsk::NodeOnly => None,
        }
    }
}

fn check_mps(share: &MpsShare) -> Result<(), InputError> {
    let range = |field: &str, value: u16, max: u64| {
        Err(InputError::new(field, Fault::OutOfRange { value: value.into(), min: 1, max }))
    };
    if share.threads_percent == 0 || share.threads_percent > 100 {
        return range("mps.threads_percent", share.threads_percent, 100);
    }
    if share.contexts == 0 {
        return range("mps.contexts", 0, u16::MAX.into());
    }
    Ok(())
}

fn check_fraction(fraction: &Fraction) -> Result<(), InputError> {
    let range = |path: &str, value: u64, max: u64| InputError::new(path, Fault::OutOfRange { value, min: 0, max });
    if fraction.milli > MILLI {
        return Err(range("fraction.milli", fraction.milli.into(), MILLI.into()));
    }
    if let Some(share) = fraction.memory_ppm.filter(|share| *share > PPM) {
        return Err(range("fraction.memory_ppm", share.into(), PPM.into()));
    }
    if fraction.memory_ppm.is_some() && fraction.memory_mib > 0 {
        let text = "give `memory_mib` or `memory_ppm`, not both";
        return Err(InputError::new("fraction.memory_ppm", Fault::Invalid(String::from(text))));
    }
    if fraction.milli == 0 && fraction.memory_mib == 0 && fraction.memory_ppm.unwrap_or(0) == 0 {
        return Err(InputError::new("fraction", Fault::Invalid(String::from("asks for nothing"))));
    }
    Ok(())
}

fn on_spec(catalog: &Catalog, spec: &Spec, ask: &Ask) -> Result<MemberAsk, Code> {
    match ask {
        Ask::NodeOnly {} => Ok(MemberAsk::NodeOnly),
        Ask::Profile(name) => Ok(MemberAsk::One(Vec::from([named(catalog, spec, name)?]))),
        Ask::AtLeast(least) => {
            let fit = profiles_with(spec, least);
            if fit.is_empty() { Err(not_offered(spec)) } else { Ok(MemberAsk::One(fit)) }
        }
        Ask::Gpus(gpus) => whole(spec, gpus),
        Ask::Fraction(fraction) => Ok(MemberAsk::One(Vec::from([fraction_on(spec, fraction)?]))),
        Ask::Mps(share) => Ok(MemberAsk::One(Vec::from([mps_on(spec, share)?]))),
        Ask::Instances(Instances { profiles, on }) => {
            let asks: Vec<Result<DeviceAsk, Code>> = profiles.iter().map(|name| named(catalog, spec, name)).collect();
            let missing = asks.iter().find_map(|ask| ask.err());
            match missing {
                // One GPU has to offer them all; several may share them out.
                Some(code) if *on == InstancesOn::SameGpu || asks.iter().all(Result::is_err) => Err(code),
                _ => Ok(MemberAsk::Several(asks.into_iter().map(Result::ok).collect(), *on)),
            }
        }
    }
}

/// A GPU in another mode could offer it after a change of mode; that is another reason
/// than a model that never does.
fn not_offered(spec: &Spec) -> Code {
    if spec.mode().space() == SpaceKind::Grid { Code::ProfileNotOffered } else { Code::ModeMismatch }
}

fn named(catalog: &Catalog, spec: &Spec, name: &str) -> Result<DeviceAsk, Code> {
    if let Some(ask) = spec.named(name) {
        // Where vGPUs stand on GPU instances, nobody is given a bare instance.
        if spec.mode() == Mode::VgpuMig && matches!(ask, DeviceAsk::Instance(_)) {
            return Err(Code::ModeMismatch);
        }
        return driver_allows(spec, ask).map(|()| ask);
    }
    // A name of the model in another mode: the GPU would have to change.
    let is_elsewhere = catalog.offers_beside(&spec.model().id, spec.mode(), name);
    Err(if is_elsewhere { Code::ModeMismatch } else { Code::ProfileNotOffered })
}

fn driver_allows(spec: &Spec, ask: DeviceAsk) -> Result<(), Code> {
    let (DeviceAsk::Instance(profile) | DeviceAsk::Compute(profile, _)) = ask else { return Ok(()) };
    let Some(facts) = spec.profiles().get(profile.index()) else { return Err(Code::ProfileNotOffered) };
    match (facts.min_driver, spec.driver_major()) {
        (Some(least), Some(driver)) if driver < least => Err(Code::DriverTooOld),
        _ => Ok(()),
    }
}

/// Profiles with at least these amounts, smallest first. A figure that is not known does
/// not satisfy.
fn profiles_with(spec: &Spec, least: &Resources) -> Vec<DeviceAsk> {
    if spec.grid().is_none() || spec.mode() == Mode::VgpuMig {
        return Vec::new();
    }
    let mut fit: Vec<((u16, u16, u32), DeviceAsk)> = Vec::new();
    for (i, profile) in spec.profiles().iter().enumerate() {
        let ask = DeviceAsk::Instance(ProfileId::from_index(i));
        if has_at_least(spec, profile, least) && driver_allows(spec, ask).is_ok() {
            fit.push((size(profile), ask));
        }
    }
    fit.sort_by_key(|(size, ask)| (*size, *ask));
    fit.into_iter().map(|(_, ask)| ask).collect()
}

/// Memory cells, compute slices, and engines: what a profile takes from the others.
fn size(profile: &Profile) -> (u16, u16, u32) {
    let engines = [profile.decoders, profile.encoders, profile.jpeg, profile.ofa];
    let engines: u32 = engines.iter().map(|n| u32::from(n.unwrap_or(0))).sum();
    (profile.memory_slices.unwrap_or(u16::MAX), profile.compute_slices, engines + u32::from(profile.gfx))
}

fn has_at_least(spec: &Spec, profile: &Profile, least: &Resources) -> bool {
    let cells = spec.grid().map_or(0, |g| g.cells());
    let bandwidth = profile.memory_slices.map(|slices| ppm(slices.into(), cells.into()));
    let enough = |has: Option<u16>, least: Option<u16>| least.is_none_or(|n| has.is_some_and(|h| h >= n));
    let enough_wide = |has: Option<u32>, least: Option<u32>| least.is_none_or(|n| has.is_some_and(|h| h >= n));
    enough(Some(profile.compute_slices), least.compute_slices)
        && enough_wide(profile.memory_mib_least(), least.memory_mib)
        && enough(profile.sm, least.sm)
        && enough_wide(bandwidth, least.bandwidth_ppm)
        && enough(profile.copy_engines, least.copy_engines)
        && enough(profile.decoders, least.decoders)
        && enough(profile.encoders, least.encoders)
        && enough(profile.jpeg, least.jpeg)
        && enough(profile.ofa, least.ofa)
        && (profile.gfx || !least.gfx)
}

fn whole(spec: &Spec, gpus: &WholeGpus) -> Result<MemberAsk, Code> {
    if spec.grid().is_some() {
        return Err(Code::ParentPartitioned);
    }
    let fluid = fluid_in(spec, Mode::Whole)?;
    match (gpus.memory_mib, fluid.memory_mib()) {
        (Some(_), None) => Err(Code::MemoryUnknown),
        (Some(least), Some(has)) if has < least => Err(Code::InsufficientMemory),
        // One GPU needs no node to be searched for a set.
        _ if gpus.count == 1 && gpus.near_nic.is_none() && gpus.link != Some(GpuLink::FabricPartition) => {
            Ok(MemberAsk::One(Vec::from([DeviceAsk::Whole])))
        }
        _ => Ok(MemberAsk::Whole(gpus.clone())),
    }
}

fn fraction_on(spec: &Spec, fraction: &Fraction) -> Result<DeviceAsk, Code> {
    let fluid = fluid_in(spec, Mode::Whole)?;
    let asks_memory = fraction.memory_mib > 0 || fraction.memory_ppm.is_some();
    let mib = match (fluid.memory_mib(), fraction.memory_ppm) {
        (None, _) if asks_memory => return Err(Code::MemoryUnknown),
        (Some(total), Some(share)) => {
            let scaled = u64::from(total) * u64::from(share);
            u32::try_from(scaled.div_ceil(u64::from(PPM))).unwrap_or(u32::MAX)
        }
        _ => fraction.memory_mib,
    };
    if fluid.memory_mib().is_some_and(|total| mib > total) {
        return Err(Code::InsufficientMemory);
    }
    Ok(DeviceAsk::Fraction { milli: fraction.milli, mib, users: 1 })
}

/// A share of an MPS server; the percentage is resolved on the device, rounded up.
fn mps_on(spec: &Spec, share: &MpsShare) -> Result<DeviceAsk, Code> {
    let fluid = fluid_in(spec, Mode::Mps)?;
    match fluid.memory_mib() {
        None if share.memory_mib > 0 => Err(Code::MemoryUnknown),
        Some(total) if share.memory_mib > total => Err(Code::InsufficientMemory),
        _ => {
            let milli = fluid.amounts().units(share.threads_percent * 10);
            Ok(DeviceAsk::Fraction { milli, mib: share.memory_mib, users: share.contexts })
        }
    }
}

fn fluid_in(spec: &Spec, mode: Mode) -> Result<&Fluid, Code> {
    match spec.space() {
        Space::Fluid(fluid) if spec.mode() == mode => Ok(fluid),
        _ => Err(Code::ModeMismatch),
    }
}
