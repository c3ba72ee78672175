//! Divisible amounts: the dearest set of fractions for every amount that can be left, in
//! steps of the greatest common divisor of what is asked.

use slicewise_core::ids::IdVec;
use slicewise_core::space::{DeviceAsk, Fluid, FluidState};

use super::SlotPrices;
use crate::ids::SlotId;

/// What is left of a device, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amounts {
    milli: u32,
    mib: u32,
    full: bool,
}

/// A kind of device that is used in fractions.
#[derive(Clone, Debug)]
pub struct Table {
    fluid: Fluid,
    whole: Option<SlotId>,
    /// Slot with its compute and memory in steps.
    fractions: Vec<(SlotId, u32, u32)>,
    step_milli: u32,
    step_mib: u32,
    /// Steps of the largest device seen.
    milli_max: u32,
    mib_max: u32,
}

impl Table {
    /// A table for these slots.
    pub fn new(fluid: &Fluid, asks: &[(SlotId, DeviceAsk)]) -> Self {
        let mut whole = None;
        let mut sizes = Vec::new();
        for (slot, ask) in asks {
            match ask {
                DeviceAsk::Whole => whole = Some(*slot),
                DeviceAsk::Fraction { milli, mib, .. } if *milli > 0 || *mib > 0 => {
                    sizes.push((*slot, u32::from(*milli), *mib))
                }
                _ => {}
            }
        }
        let step_milli = sizes.iter().fold(0, |d, (_, m, _)| divisor(d, *m)).max(1);
        let step_mib = sizes.iter().fold(0, |d, (.., m)| divisor(d, *m)).max(1);
        let counts_memory = sizes.iter().any(|(.., mib)| *mib > 0);
        let fractions = sizes.into_iter().map(|(s, milli, mib)| (s, milli / step_milli, mib / step_mib)).collect();
        let mib = if counts_memory { fluid.memory_mib().unwrap_or(0) / step_mib } else { 0 };
        let milli = u32::from(fluid.amounts().compute) / step_milli;
        Self { fluid: fluid.clone(), whole, fractions, step_milli, step_mib, milli_max: milli, mib_max: mib }
    }

    /// Whether a table of all amounts has at most `limit` entries.
    pub fn is_small(&self, limit: usize) -> bool {
        let entries = (self.milli_max as usize + 1).saturating_mul(self.mib_max as usize + 1);
        self.fractions.is_empty() || entries.saturating_mul(self.fractions.len()) <= limit
    }

    /// What is left in a state. What no fraction can tell apart is the same.
    pub fn amounts(&self, state: FluidState) -> Amounts {
        let full = state == self.fluid.full() && self.whole.is_some();
        if state.users == FluidState::WHOLE || self.fractions.is_empty() {
            return Amounts { milli: 0, mib: 0, full };
        }
        let milli = (u32::from(state.milli) / self.step_milli).min(self.milli_max);
        Amounts { milli, mib: (state.mib / self.step_mib).min(self.mib_max), full }
    }

    /// The dearest set of fractions, by amount.
    pub fn values(&self, prices: &SlotPrices) -> Vec<u64> {
        let width = self.mib_max as usize + 1;
        if self.fractions.is_empty() || !self.is_small(1 << 26) {
            return Vec::new();
        }
        let mut values = Vec::with_capacity((self.milli_max as usize + 1) * width);
        for milli in 0..=self.milli_max {
            for mib in 0..=self.mib_max {
                let worth = |(slot, m, b): &(SlotId, u32, u32)| {
                    let rest = self.at(&values, milli.checked_sub(*m)?, mib.checked_sub(*b)?);
                    Some(price(prices, *slot).saturating_add(rest))
                };
                let best = self.fractions.iter().filter_map(worth).max().unwrap_or(0);
                values.push(best);
            }
        }
        values
    }

    fn at(&self, values: &[u64], milli: u32, mib: u32) -> u64 {
        let width = self.mib_max as usize + 1;
        values.get(milli as usize * width + mib as usize).copied().unwrap_or(0)
    }

    fn whole_price(&self, prices: &SlotPrices, at: Amounts) -> u64 {
        if at.full { self.whole.map_or(0, |slot| price(prices, slot)) } else { 0 }
    }

    /// The dearest pattern's price.
    pub fn best(&self, values: &[u64], prices: &SlotPrices, at: Amounts) -> u64 {
        self.at(values, at.milli, at.mib).max(self.whole_price(prices, at))
    }

    /// The slots of a dearest pattern.
    pub fn trace(&self, values: &[u64], prices: &SlotPrices, from: Amounts) -> Vec<SlotId> {
        let (mut milli, mut mib) = (from.milli, from.mib);
        if self.whole_price(prices, from) > self.at(values, milli, mib) {
            return self.whole.into_iter().collect();
        }
        let mut slots = Vec::new();
        while self.at(values, milli, mib) > 0 {
            let value = self.at(values, milli, mib);
            let step = self.fractions.iter().find_map(|(slot, m, b)| {
                let (m, b) = (milli.checked_sub(*m)?, mib.checked_sub(*b)?);
                let worth = price(prices, *slot).saturating_add(self.at(values, m, b));
                (worth == value && price(prices, *slot) > 0).then_some((*slot, m, b))
            });
            let Some((slot, m, b)) = step else { break };
            slots.push(slot);
            (milli, mib) = (m, b);
        }
        slots
    }
}

fn price(prices: &IdVec<SlotId, u64>, slot: SlotId) -> u64 {
    prices.lookup(slot).copied().unwrap_or(0)
}

fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}
