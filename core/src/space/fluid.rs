//! Divisible amounts: a GPU as a whole, or in software fractions of it.

use super::{DeviceAsk, MILLI, Take};

/// A device that is used whole or in fractions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fluid {
    memory_mib: Option<u32>,
}

/// What is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FluidState {
    /// Thousandths of compute left.
    pub milli: u16,
    /// MiB of memory left; 0 where the memory is not known.
    pub mib: u32,
    /// Fractions on it; [`FluidState::WHOLE`] when it is taken whole.
    pub users: u16,
}

impl FluidState {
    /// The number of users of a device that is taken whole.
    pub const WHOLE: u16 = u16::MAX;
}

/// The fractions whose room [`Fluid::placements_left`] counts.
const STANDARD_MILLI: [u16; 4] = [1000, 500, 250, 125];

impl Fluid {
    /// A device with this much memory, where known.
    pub fn new(memory_mib: Option<u32>) -> Self {
        Self { memory_mib }
    }
    /// Memory of the device in MiB, where known.
    pub fn memory_mib(&self) -> Option<u32> {
        self.memory_mib
    }
    /// The state of an unused device.
    pub fn full(&self) -> FluidState {
        FluidState { milli: MILLI, mib: self.memory_mib.unwrap_or(0), users: 0 }
    }
    /// The one place of the ask.
    pub fn option(&self, state: FluidState, ask: DeviceAsk) -> Option<Take> {
        let take = match ask {
            DeviceAsk::Whole => Take::Whole,
            DeviceAsk::Fraction { milli, mib } => Take::Fraction { milli, mib },
            _ => return None,
        };
        self.put(state, take).map(|_| take)
    }
    /// What is left after the take.
    pub fn put(&self, state: FluidState, take: Take) -> Option<FluidState> {
        match take {
            Take::Whole if state == self.full() => Some(FluidState { milli: 0, mib: 0, users: FluidState::WHOLE }),
            Take::Fraction { milli, mib } if state.users < FluidState::WHOLE - 1 => Some(FluidState {
                milli: state.milli.checked_sub(milli)?,
                mib: if mib == 0 { state.mib } else { state.mib.checked_sub(mib)? },
                users: state.users + 1,
            }),
            _ => None,
        }
    }
    /// What is left without the take.
    pub fn remove(&self, state: FluidState, take: Take) -> Option<FluidState> {
        match take {
            Take::Whole if state.users == FluidState::WHOLE => Some(self.full()),
            Take::Fraction { milli, mib } if state.users > 0 && state.users != FluidState::WHOLE => {
                let full = self.full();
                let left = FluidState {
                    milli: state.milli.checked_add(milli).filter(|m| *m <= full.milli)?,
                    mib: state.mib.checked_add(mib).filter(|m| *m <= full.mib)?,
                    users: state.users - 1,
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
            DeviceAsk::Fraction { milli, mib } if state.users != FluidState::WHOLE => {
                let by_milli = state.milli.checked_div(milli).map_or(u32::MAX, u32::from);
                let by_mib = state.mib.checked_div(mib).unwrap_or(u32::MAX);
                let by_users = u32::from(FluidState::WHOLE - 1 - state.users);
                by_milli.min(by_mib).min(by_users)
            }
            _ => 0,
        }
    }
    /// How many standard fractions still fit, each size counted by itself.
    pub fn placements_left(&self, state: FluidState) -> u32 {
        STANDARD_MILLI.iter().map(|&m| u32::from(state.milli / m)).sum()
    }
}
