//! What a GPU of a document is and offers, derived from the catalog and its own listing.

use alloc::string::String;
use alloc::vec::Vec;

use super::modes::may_be;
use super::put::Place;
use super::{Rule, Violation};
use crate::catalog::{Amounts, Catalog, ComputeProfile, GpuDraw, Mechanism, Model, Offer, Profile, ShareType};
use crate::error::Fault;
use crate::fleet::{Gpu, Mode, SpaceKind};
use crate::workload::{Fraction, MpsShare, Resources};

/// Thousandths of a GPU.
pub(super) const MILLI: u16 = 1000;
const PPM: u64 = 1_000_000;

/// What alike GPUs have in common.
#[derive(Clone, Debug)]
pub(super) struct Kind<'a> {
    pub(super) model: &'a Model,
    pub(super) mode: Mode,
    /// The kinds, by position, that its GPUs are of in the other modes that they may be in.
    pub(super) siblings: Vec<usize>,
    /// The device's own listing, else the model's.
    pub(super) profiles: &'a [Profile],
    pub(super) driver: Option<u32>,
    /// Usable memory of the GPU, where known.
    pub(super) memory_mib: Option<u32>,
    /// The shares of the mode, and what they may not be beside.
    pub(super) shares: Vec<ShareType>,
    /// Most instances at once.
    pub(super) max_instances: Option<u16>,
    pub(super) amounts: Amounts,
    /// What it draws, where known.
    pub(super) draw: Option<GpuDraw>,
    document: &'a Gpu,
}

/// What a name means on a device; profiles by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thing {
    Instance(usize),
    Compute(usize, usize),
    Share(usize),
}

impl<'a> Kind<'a> {
    /// A GPU of the document in a mode that it may be in.
    pub(super) fn of(catalog: &'a Catalog, gpu: &'a Gpu, mode: Mode) -> Result<Self, Violation> {
        let modes = Mode::ALL.into_iter().filter(|m| may_be(gpu, *m)).collect();
        let offer = catalog.offer(&Gpu { mode, modes, ..gpu.clone() }).map_err(|e| {
            let rule = match e.fault() {
                Fault::UnknownModel(_) => Rule::Unknown,
                Fault::ModeNotOffered { .. } => Rule::NotOffered,
                _ => Rule::Document,
            };
            Violation::new(rule, e.path(), alloc::format!("{}", e.fault()))
        })?;
        let Offer { model, shares, max_instances, amounts, draw } = offer;
        let profiles: &[Profile] = if gpu.profiles.is_empty() { &model.profiles } else { &gpu.profiles };
        let driver = match &gpu.driver {
            None => None,
            Some(text) => Some(major(text).ok_or_else(|| {
                Violation::new(Rule::Document, "driver", alloc::format!("`{text}` is not a driver version"))
            })?),
        };
        let memory_mib = amounts.memory_mib;
        Ok(Self {
            model,
            mode,
            siblings: Vec::new(),
            profiles,
            driver,
            memory_mib,
            shares,
            max_instances,
            amounts,
            draw,
            document: gpu,
        })
    }

    /// Whether another GPU of the document is of this kind.
    pub(super) fn is_of(&self, gpu: &Gpu) -> bool {
        let own = self.document;
        self.mode == gpu.mode
            && Mode::ALL.into_iter().all(|mode| may_be(own, mode) == may_be(gpu, mode))
            && own.model == gpu.model
            && own.driver == gpu.driver
            && own.memory_mib == gpu.memory_mib
            && own.profiles == gpu.profiles
            && own.sharing == gpu.sharing
            && own.power == gpu.power
            && own.power_limit_w == gpu.power_limit_w
    }

    pub(super) fn profile(&self, position: usize) -> Option<&'a Profile> {
        self.profiles.get(position)
    }

    pub(super) fn compute(&self, profile: usize, inner: usize) -> Option<&'a ComputeProfile> {
        self.profiles.get(profile)?.compute_instances.get(inner)
    }

    /// What a name means here. The device's own names come first; a name of the catalog
    /// means what has the same shape, since drivers round names differently.
    pub(super) fn named(&self, name: &str) -> Option<Thing> {
        match self.mode.space() {
            SpaceKind::Fluid => None,
            SpaceKind::Uniform => self.shares.iter().position(|s| s.name == name).map(Thing::Share),
            SpaceKind::Grid => {
                if let Some(own) = self.profiles.iter().position(|p| p.name == name) {
                    return Some(Thing::Instance(own));
                }
                let inner = |(p, profile): (usize, &Profile)| {
                    let position = profile.compute_instances.iter().position(|c| c.name == name)?;
                    Some(Thing::Compute(p, position))
                };
                if let Some(found) = self.profiles.iter().enumerate().find_map(inner) {
                    return Some(found);
                }
                let shape = self.model.profiles.iter().find(|p| p.name == name)?.shape();
                self.profiles.iter().position(|p| p.shape() == shape).map(Thing::Instance)
            }
        }
    }

    /// Whether two shares are of one size.
    pub(super) fn is_one_size(&self, a: usize, b: usize) -> bool {
        let size = |i: usize| self.shares.get(i).map(ShareType::size_name);
        size(a) == size(b)
    }

    /// Whether the driver can create the profile.
    pub(super) fn driver_creates(&self, profile: usize) -> bool {
        let least = self.profile(profile).and_then(|p| p.min_driver);
        least.is_none_or(|least| self.driver.is_none_or(|driver| driver >= least))
    }

    /// Whether a profile has at least these amounts. A figure that is not known does not.
    pub(super) fn meets(&self, profile: &Profile, least: &Resources) -> bool {
        let narrow = |has: Option<u16>, least: Option<u16>| least.is_none_or(|n| has.is_some_and(|h| h >= n));
        let wide = |has: Option<u32>, least: Option<u32>| least.is_none_or(|n| has.is_some_and(|h| h >= n));
        let bandwidth = || {
            let part = u64::from(profile.memory_slices?) * PPM;
            u32::try_from(part.checked_div(self.cells())?).ok()
        };
        narrow(Some(profile.compute_slices), least.compute_slices)
            && wide(profile.memory_mib_least(), least.memory_mib)
            && narrow(profile.sm, least.sm)
            && wide(bandwidth(), least.bandwidth_ppm)
            && narrow(profile.copy_engines, least.copy_engines)
            && narrow(profile.decoders, least.decoders)
            && narrow(profile.encoders, least.encoders)
            && narrow(profile.jpeg, least.jpeg)
            && narrow(profile.ofa, least.ofa)
            && (profile.gfx || !least.gfx)
    }

    /// Positions of the profiles with at least these amounts that the driver can create.
    pub(super) fn meeting(&self, least: &Resources) -> Vec<usize> {
        if self.mode.space() != SpaceKind::Grid || self.mode == Mode::VgpuMig {
            return Vec::new();
        }
        let all = self.profiles.iter().enumerate();
        all.filter(|(i, p)| self.meets(p, least) && self.driver_creates(*i)).map(|(i, _)| i).collect()
    }

    /// A fraction in this device's amounts; `None` where the device cannot give it.
    pub(super) fn amounts(&self, fraction: &Fraction) -> Option<(u16, u32)> {
        if self.mode != Mode::Whole || fraction.milli > MILLI {
            return None;
        }
        let mib = match fraction.memory_ppm {
            Some(share) => {
                let scaled = u64::from(self.memory_mib?) * u64::from(share);
                u32::try_from(scaled.div_ceil(PPM)).ok()?
            }
            None => fraction.memory_mib,
        };
        let fits = mib == 0 || self.memory_mib.is_some_and(|has| mib <= has);
        fits.then_some((fraction.milli, mib))
    }

    /// How a place on this device is shared.
    pub(super) fn mechanism(&self, place: Place) -> Mechanism {
        match (self.mode, place) {
            (Mode::Whole, Place::Whole) => Mechanism::Whole,
            (Mode::Whole, _) => Mechanism::Fraction,
            (Mode::Mig, Place::Compute { .. }) => Mechanism::MigCompute,
            (Mode::Mig, _) => Mechanism::Mig,
            (Mode::Vgpu | Mode::VgpuMixed, _) => Mechanism::Vgpu,
            (Mode::VgpuMig, Place::Compute { profile, inner, .. })
                if self.compute(profile, inner).is_some_and(|c| c.max_instances == Some(1)) =>
            {
                Mechanism::VgpuMig
            }
            (Mode::VgpuMig, _) => Mechanism::VgpuMigShared,
            (Mode::Mps, _) if self.document.sharing.static_chunks.is_some() => Mechanism::MpsStatic,
            (Mode::Mps, _) => Mechanism::Mps,
            (Mode::TimeSlicing, _) => Mechanism::TimeSlicing,
            (Mode::Shares, _) => Mechanism::Shares,
            (Mode::Partitions, Place::Share(share))
                if self.shares.get(share).is_some_and(|s| !s.name.ends_with("_nps1")) =>
            {
                Mechanism::PartitionNuma
            }
            (Mode::Partitions, _) => Mechanism::Partition,
        }
    }

    /// Whether confidential computing is on.
    pub(super) fn is_confidential(&self) -> bool {
        self.document.sharing.confidential
    }

    /// A share of an MPS server in this device's amounts: compute rounded up to its units.
    pub(super) fn clients(&self, share: &MpsShare) -> Option<(u16, u32, u16)> {
        if self.mode != Mode::Mps || share.threads_percent > 100 {
            return None;
        }
        let scaled = u32::from(share.threads_percent) * u32::from(self.amounts.compute_of_whole);
        let fits = share.memory_mib == 0 || self.memory_mib.is_some_and(|has| share.memory_mib <= has);
        let compute = u16::try_from(scaled.div_ceil(100)).ok()?;
        fits.then_some((compute, share.memory_mib, share.contexts))
    }

    /// Cells of the placement axis.
    pub(super) fn cells(&self) -> u64 {
        let ends = self.profiles.iter().filter_map(|p| p.placements.as_ref());
        let ends = ends.flat_map(|p| p.starts.iter().map(|s| u64::from(*s) + u64::from(p.size)));
        self.model.memory_slices.map(u64::from).or_else(|| ends.max()).unwrap_or(0)
    }

    /// Name of a profile, for people.
    pub(super) fn name(&self, profile: usize) -> String {
        self.profile(profile).map_or_else(|| alloc::format!("profile {profile}"), |p| p.name.clone())
    }
}

/// Cells that a profile covers.
pub(super) fn cells_of(profile: &Profile) -> u16 {
    profile.placements.as_ref().map(|p| p.size).or(profile.memory_slices).unwrap_or(0)
}

/// `550.54.15` → 550.
fn major(driver: &str) -> Option<u32> {
    driver.split('.').next()?.trim_start_matches(['r', 'R']).parse().ok()
}
