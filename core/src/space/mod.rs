//! Every way to share a GPU is one of three kinds of space: a [`Grid`] of cells, a
//! [`Uniform`] set of equal shares, or a [`Fluid`] of divisible amounts. Placement,
//! fragmentation, patterns and explanations are written once against [`Space`].

mod cells;
mod fluid;
mod grid;
mod layouts;
mod uniform;

pub use cells::{CELLS_MAX, Cells};
pub use fluid::{Fluid, FluidState};
pub use grid::{Entry, Grid, Hold, Layout, Obstacle, Put, Row};
pub use layouts::{LayoutCounts, ProfileSet, count_layouts};
pub use uniform::{Uniform, UniformState};

use alloc::vec::Vec;

use crate::ids::ProfileId;

/// Thousandths of a GPU's compute.
pub const MILLI: u16 = 1000;

/// Parts per million.
pub const PPM: u32 = 1_000_000;

/// What is asked of one device, in the device's own terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceAsk {
    /// A GPU instance of this profile.
    Instance(ProfileId),
    /// A compute instance (second) inside a GPU instance of a profile (first).
    Compute(ProfileId, ProfileId),
    /// All of the GPU.
    Whole,
    /// One share of a type, by its position in the model's list.
    Share(u16),
    /// An amount of compute and memory.
    Fraction {
        /// Compute in the device's units: thousandths, but for static MPS partitions.
        milli: u16,
        /// Memory in MiB; 0: not counted.
        mib: u32,
        /// Users that count against the device's limit.
        users: u16,
    },
}

/// What is taken of one device: an ask with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Take {
    /// A GPU instance.
    Instance {
        /// Its profile.
        profile: ProfileId,
        /// Its first cell.
        start: u16,
    },
    /// A compute instance inside a GPU instance.
    Compute {
        /// The GPU instance's profile.
        profile: ProfileId,
        /// The GPU instance's first cell.
        start: u16,
        /// The compute instance's profile.
        inner: ProfileId,
        /// The compute instance's first compute slice.
        inner_start: u16,
    },
    /// All of the GPU.
    Whole,
    /// One share of a type.
    Share(u16),
    /// An amount.
    Fraction {
        /// Compute in the device's units.
        milli: u16,
        /// Memory in MiB.
        mib: u32,
        /// Users that count against the device's limit.
        users: u16,
    },
}

/// What a device offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Space {
    /// Cells and profiles.
    Grid(Grid),
    /// Equal shares of one type at a time.
    Uniform(Uniform),
    /// Divisible amounts.
    Fluid(Fluid),
}

/// What is on a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpaceState {
    /// Instances on a grid.
    Grid(Layout),
    /// Shares taken.
    Uniform(UniformState),
    /// Amounts left.
    Fluid(FluidState),
}

impl Space {
    /// The state of an unused device.
    pub fn empty(&self) -> SpaceState {
        match self {
            Self::Grid(_) => SpaceState::Grid(Layout::default()),
            Self::Uniform(_) => SpaceState::Uniform(UniformState::default()),
            Self::Fluid(fluid) => SpaceState::Fluid(fluid.full()),
        }
    }

    /// Where the ask may go, in rising order of place.
    pub fn options(&self, state: &SpaceState, ask: DeviceAsk) -> Vec<Take> {
        match (self, state) {
            (Self::Grid(grid), SpaceState::Grid(layout)) => grid.options(layout, ask),
            (Self::Uniform(uniform), SpaceState::Uniform(state)) => uniform.option(*state, ask).into_iter().collect(),
            (Self::Fluid(fluid), SpaceState::Fluid(state)) => fluid.option(*state, ask).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// What the device is like afterwards; `None` if the take is not legal there.
    pub fn put(&self, state: &SpaceState, take: Take) -> Option<SpaceState> {
        Some(match (self, state) {
            (Self::Grid(grid), SpaceState::Grid(layout)) => SpaceState::Grid(grid.put(layout, take)?.layout),
            (Self::Uniform(uniform), SpaceState::Uniform(state)) => SpaceState::Uniform(uniform.put(*state, take)?),
            (Self::Fluid(fluid), SpaceState::Fluid(state)) => SpaceState::Fluid(fluid.put(*state, take)?),
            _ => return None,
        })
    }

    /// What the device is like without the take; `None` if it is not there. Idle
    /// instances that the take replaced do not come back.
    pub fn remove(&self, state: &SpaceState, take: Take) -> Option<SpaceState> {
        Some(match (self, state) {
            (Self::Grid(grid), SpaceState::Grid(layout)) => SpaceState::Grid(grid.remove(layout, take)?),
            (Self::Uniform(uniform), SpaceState::Uniform(state)) => SpaceState::Uniform(uniform.remove(*state, take)?),
            (Self::Fluid(fluid), SpaceState::Fluid(state)) => SpaceState::Fluid(fluid.remove(*state, take)?),
            _ => return None,
        })
    }

    /// How many of the ask still fit together, when nothing else is placed.
    pub fn capacity(&self, state: &SpaceState, ask: DeviceAsk) -> u32 {
        match (self, state) {
            (Self::Grid(grid), SpaceState::Grid(layout)) => grid.capacity(layout, ask),
            (Self::Uniform(uniform), SpaceState::Uniform(state)) => uniform.capacity(*state, ask),
            (Self::Fluid(fluid), SpaceState::Fluid(state)) => fluid.capacity(*state, ask),
            _ => 0,
        }
    }

    /// The part of the device that nothing uses, in parts per million. Idle instances
    /// count as unused.
    pub fn free_ppm(&self, state: &SpaceState) -> u32 {
        match (self, state) {
            (Self::Grid(grid), SpaceState::Grid(layout)) => {
                ppm(grid.cells_free(layout).into(), u64::from(grid.cells()))
            }
            (Self::Uniform(uniform), SpaceState::Uniform(state)) => uniform.free_ppm(*state),
            (Self::Fluid(fluid), SpaceState::Fluid(state)) => fluid.free_ppm(*state),
            _ => 0,
        }
    }

    /// Compute in use, of how much: what a power draw goes by. GPU instances count by their
    /// compute slices, and by what is taken inside where users share them; shares by what
    /// the GPU holds of them; where a device has no compute slices, cells stand for them.
    pub fn compute_used(&self, state: &SpaceState) -> (u64, u64) {
        match (self, state) {
            (Self::Grid(grid), SpaceState::Grid(layout)) => grid.compute_used(layout),
            (Self::Uniform(uniform), SpaceState::Uniform(state)) => uniform.compute_used(*state),
            (Self::Fluid(fluid), SpaceState::Fluid(state)) => fluid.compute_used(*state),
            _ => (0, 1),
        }
    }

    /// How many placements are still legal: starts of the plain profiles, shares, or
    /// standard fractions. What a placement makes of this number is what it loses.
    pub fn placements_left(&self, state: &SpaceState) -> u32 {
        match (self, state) {
            (Self::Grid(grid), SpaceState::Grid(layout)) => grid.placements_left(layout),
            (Self::Uniform(uniform), SpaceState::Uniform(state)) => uniform.placements_left(*state),
            (Self::Fluid(fluid), SpaceState::Fluid(state)) => fluid.placements_left(*state),
            _ => 0,
        }
    }

    /// What is asked where nothing is known of the demand: plain profiles, share types, or
    /// the whole.
    pub fn standard_asks(&self) -> Vec<DeviceAsk> {
        match self {
            Self::Grid(grid) => {
                grid.rows().iter().filter(|(_, row)| row.plain).map(|(id, _)| DeviceAsk::Instance(id)).collect()
            }
            Self::Uniform(uniform) => (0..uniform.types().len()).map(|i| DeviceAsk::Share(i as u16)).collect(),
            Self::Fluid(_) => Vec::from([DeviceAsk::Whole]),
        }
    }

    /// How large an ask is, in the device's own cells, shares or thousandths.
    pub fn size(&self, ask: DeviceAsk) -> u16 {
        match (self, ask) {
            (Self::Grid(grid), DeviceAsk::Instance(profile) | DeviceAsk::Compute(profile, _)) => {
                grid.rows().lookup(profile).map_or(0, |row| row.size)
            }
            (Self::Fluid(fluid), DeviceAsk::Whole) => fluid.amounts().compute,
            (Self::Fluid(_), DeviceAsk::Fraction { milli, .. }) => milli,
            (Self::Uniform(_), DeviceAsk::Share(_)) => 1,
            _ => 0,
        }
    }

    /// Whether nothing uses the device.
    pub fn is_unused(&self, state: &SpaceState) -> bool {
        match (self, state) {
            (Self::Fluid(fluid), SpaceState::Fluid(state)) => *state == fluid.full(),
            (_, SpaceState::Uniform(state)) => state.taken == 0,
            (_, SpaceState::Grid(layout)) => layout.is_unused(),
            _ => false,
        }
    }

    /// Idle instances that the take would reuse, and destroy.
    pub fn reconfiguration(&self, state: &SpaceState, take: Take) -> u32 {
        match (self, state) {
            (Self::Grid(grid), SpaceState::Grid(layout)) => grid.put(layout, take).map_or(0, |put| put.operations()),
            _ => 0,
        }
    }
}

/// `part` of `whole` in parts per million, rounded down.
pub fn ppm(part: u64, whole: u64) -> u32 {
    let scaled = part.saturating_mul(u64::from(PPM)).checked_div(whole).unwrap_or(0);
    u32::try_from(scaled).unwrap_or(u32::MAX)
}
