//! What a replay is judged by: what is allocated and what is fragmented, against the part
//! of the cluster's GPUs that has arrived.

use crate::rounded;

/// The last percent of arrived demand that is kept.
pub const PERCENT_MAX: usize = 130;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    steps: u64,
    allocated: u64,
    fragmented: u128,
}

/// Means over the steps at each whole percent of arrived demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    capacity_milli: u64,
    /// What fragmentation is counted in: parts of a thousandth of a GPU.
    parts: u64,
    sums: Vec<Sum>,
}

impl Curve {
    /// An empty curve for a cluster of this many thousandths of GPUs, whose fragmentation
    /// comes times `parts`.
    pub fn new(capacity_milli: u64, parts: u64) -> Self {
        Self { capacity_milli, parts, sums: vec![Sum::default(); PERCENT_MAX + 1] }
    }

    /// Notes the state after a step.
    pub fn note(&mut self, arrived_milli: u64, allocated_milli: u64, fragmented: u64) {
        let percent = rounded(u128::from(arrived_milli) * 100, self.capacity_milli.into());
        let Some(sum) = usize::try_from(percent).ok().and_then(|p| self.sums.get_mut(p)) else { return };
        sum.steps += 1;
        sum.allocated += allocated_milli;
        sum.fragmented += u128::from(fragmented);
    }

    /// Allocated part of all GPUs in hundredths of a percent; `None` where no step fell.
    pub fn allocated(&self, percent: usize) -> Option<u64> {
        let sum = self.sum(percent)?;
        Some(self.hundredths(sum.allocated.into(), u128::from(sum.steps)))
    }

    /// Fragmented part of all GPUs in hundredths of a percent; `None` where no step fell.
    pub fn fragmented(&self, percent: usize) -> Option<u64> {
        let sum = self.sum(percent)?;
        Some(self.hundredths(sum.fragmented, u128::from(sum.steps) * u128::from(self.parts)))
    }

    /// The percents at which a step fell.
    pub fn percents(&self) -> impl Iterator<Item = usize> {
        self.sums.iter().enumerate().filter(|(_, sum)| sum.steps > 0).map(|(percent, _)| percent)
    }

    fn sum(&self, percent: usize) -> Option<&Sum> {
        self.sums.get(percent).filter(|sum| sum.steps > 0)
    }

    fn hundredths(&self, amount: u128, of: u128) -> u64 {
        u64::try_from(rounded(amount * 10_000, of * u128::from(self.capacity_milli))).unwrap_or(u64::MAX)
    }
}
