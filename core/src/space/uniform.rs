//! Equal shares: a device that holds shares of one size takes no other size until it is
//! empty.

use alloc::vec::Vec;

use super::{DeviceAsk, Take, ppm};
use crate::catalog::ShareType;

/// The share types of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uniform {
    types: Vec<ShareType>,
}

/// The size in use and how many shares of it are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UniformState {
    /// Position of the first type of the size; means nothing while `taken` is 0.
    pub share: u16,
    /// Shares taken.
    pub taken: u16,
}

impl Uniform {
    /// A device with these types.
    pub fn new(types: Vec<ShareType>) -> Self {
        Self { types }
    }
    /// The types, in the order that [`DeviceAsk::Share`] counts.
    pub fn types(&self) -> &[ShareType] {
        &self.types
    }
    /// The first type of the same size, which stands for all of them.
    pub fn size_of(&self, share: u16) -> u16 {
        let size = self.types.get(usize::from(share)).map(ShareType::size_name);
        let first = self.types.iter().position(|t| Some(t.size_name()) == size);
        first.and_then(|f| u16::try_from(f).ok()).unwrap_or(share)
    }
    fn max(&self, share: u16) -> u16 {
        self.types.get(usize::from(share)).map_or(0, |t| t.max_per_gpu)
    }
    fn left(&self, state: UniformState, share: u16) -> u16 {
        if self.is_locked(state, share) { 0 } else { self.max(share).saturating_sub(state.taken) }
    }
    /// Whether the device holds shares of another size.
    pub fn is_locked(&self, state: UniformState, share: u16) -> bool {
        state.taken > 0 && state.share != self.size_of(share)
    }
    /// The one place of a share.
    pub fn option(&self, state: UniformState, ask: DeviceAsk) -> Option<Take> {
        match ask {
            DeviceAsk::Share(share) if self.left(state, share) > 0 => Some(Take::Share(share)),
            _ => None,
        }
    }
    /// The state with one more share.
    pub fn put(&self, state: UniformState, take: Take) -> Option<UniformState> {
        match take {
            Take::Share(share) if self.left(state, share) > 0 => {
                Some(UniformState { share: self.size_of(share), taken: state.taken + 1 })
            }
            _ => None,
        }
    }
    /// The state with one share less.
    pub fn remove(&self, state: UniformState, take: Take) -> Option<UniformState> {
        match take {
            Take::Share(share) if state.taken > 0 && !self.is_locked(state, share) => {
                let taken = state.taken - 1;
                Some(if taken == 0 { UniformState::default() } else { UniformState { taken, ..state } })
            }
            _ => None,
        }
    }
    /// How many more of the ask fit.
    pub fn capacity(&self, state: UniformState, ask: DeviceAsk) -> u32 {
        match ask {
            DeviceAsk::Share(share) => self.left(state, share).into(),
            _ => 0,
        }
    }
    /// Unused part in parts per million of the type in use.
    pub fn free_ppm(&self, state: UniformState) -> u32 {
        if state.taken == 0 {
            return super::PPM;
        }
        ppm(self.left(state, state.share).into(), self.max(state.share).into())
    }
    /// Shares taken, of those that the GPU holds of the size in use.
    pub fn compute_used(&self, state: UniformState) -> (u64, u64) {
        (state.taken.into(), self.max(state.share).into())
    }
    /// Shares that may still be taken, over all types.
    pub fn placements_left(&self, state: UniformState) -> u32 {
        (0..self.types.len()).map(|i| u32::from(self.left(state, i as u16))).sum()
    }
}
