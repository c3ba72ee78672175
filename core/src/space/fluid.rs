//! Divisible amounts: a GPU as a whole, or in software fractions of it.

use super::{DeviceAsk, Take, ppm};
use crate::catalog::Amounts;

/// A device that is used whole or in fractions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fluid {
    amounts: Amounts,
}

/// What is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FluidState {
    /// Compute left, in the device's units.
    pub milli: u16,
    /// MiB of memory left; 0 where the memory is not known.
    pub mib: u32,
    /// Users on it; [`FluidState::WHOLE`] when it is taken whole.
    pub users: u16,
}

impl FluidState {
    /// The number of users of a device that is taken whole.
    pub const WHOLE: u16 = u16::MAX;
}

/// The parts of a device whose room [`Fluid::placements_left`] counts: one over each.
const STANDARD_PARTS: [u16; 4] = [1, 2, 4, 8];

impl Fluid {
    /// A device with these amounts.
    pub fn new(amounts: Amounts) -> Self {
        Self { amounts }
    }
    /// What the device has to divide.
    pub fn amounts(&self) -> Amounts {
        self.amounts
    }
    /// Memory of the device in MiB, where known.
    pub fn memory_mib(&self) -> Option<u32> {
        self.amounts.memory_mib
    }
    /// The state of an unused device.
    pub fn full(&self) -> FluidState {
        FluidState { milli: self.amounts.compute, mib: self.amounts.memory_mib.unwrap_or(0), users: 0 }
    }
    /// The one place of the ask.
    pub fn option(&self, state: FluidState, ask: DeviceAsk) -> Option<Take> {
        let take = match ask {
            DeviceAsk::Whole => Take::Whole,
            DeviceAsk::Fraction { milli, mib, users } => Take::Fraction { milli, mib, users },
            _ => return None,
        };
        self.put(state, take).map(|_| take)
    }
    /// What is left after the take.
    pub fn put(&self, state: FluidState, take: Take) -> Option<FluidState> {
        match take {
            Take::Whole if state == self.full() => Some(FluidState { milli: 0, mib: 0, users: FluidState::WHOLE }),
            Take::Fraction { milli, mib, users } if users <= self.users_left(state) => Some(FluidState {
                milli: state.milli.checked_sub(milli)?,
                mib: if mib == 0 { state.mib } else { state.mib.checked_sub(mib)? },
                users: state.users + users,
            }),
            _ => None,
        }
    }
    /// What is left without the take.
    pub fn remove(&self, state: FluidState, take: Take) -> Option<FluidState> {
        match take {
            Take::Whole if state.users == FluidState::WHOLE => Some(self.full()),
            Take::Fraction { milli, mib, users } if state.users > 0 && state.users != FluidState::WHOLE => {
                let full = self.full();
                let left = FluidState {
                    milli: state.milli.checked_add(milli).filter(|m| *m <= full.milli)?,
                    mib: state.mib.checked_add(mib).filter(|m| *m <= full.mib)?,
                    users: state.users.checked_sub(users)?,
                };
                (left.users > 0 || left == full).then_some(left)
            }
            _ => None,
        }
    }
    /// How many of the ask fit together.
    pub fn capacity(&self, state: FluidState, ask: DeviceAsk) -> u32 {
        match ask {
            DeviceAsk::Whole => u32::from(state == self.full()),
            DeviceAsk::Fraction { milli, mib, users } if state.users != FluidState::WHOLE => {
                let by_milli = state.milli.checked_div(milli).map_or(u32::MAX, u32::from);
                let by_mib = state.mib.checked_div(mib).unwrap_or(u32::MAX);
                let by_users = self.users_left(state).checked_div(users).map_or(u32::MAX, u32::from);
                by_milli.min(by_mib).min(by_users)
            }
            _ => 0,
        }
    }
    /// How many standard fractions still fit, each size counted by itself.
    pub fn placements_left(&self, state: FluidState) -> u32 {
        let room = |parts: &u16| {
            let size = u32::from(self.amounts.compute_of_whole).div_ceil(u32::from(*parts)).max(1);
            u32::from(state.milli).checked_div(size).unwrap_or(0)
        };
        STANDARD_PARTS.iter().map(room).sum()
    }
    /// Compute that nothing uses, in parts per million.
    pub fn free_ppm(&self, state: FluidState) -> u32 {
        ppm(state.milli.into(), self.amounts.compute.into())
    }
    /// Units of compute taken, of those of the whole GPU.
    pub fn compute_used(&self, state: FluidState) -> (u64, u64) {
        if state.users == FluidState::WHOLE {
            return (1, 1);
        }
        (self.amounts.compute.saturating_sub(state.milli).into(), self.amounts.compute_of_whole.into())
    }
    /// Users that may still come.
    pub fn users_left(&self, state: FluidState) -> u16 {
        if state.users == FluidState::WHOLE { 0 } else { self.amounts.users.saturating_sub(state.users) }
    }
}
