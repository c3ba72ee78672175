//! What a replay is judged by.

use crate::rounded;

/// What was asked and admitted, over the requests that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Requests.
    pub requests: u64,
    /// Requests admitted.
    pub accepted: u64,
    /// Requests about which the work budget ended before an answer.
    pub undecided: u64,
    /// Memory slices asked.
    pub slices: u64,
    /// Memory slices admitted.
    pub accepted_slices: u64,
    /// Leases moved, over all requests.
    pub moves: u64,
}

impl Outcome {
    /// Requests admitted, hundredths of a percent.
    pub fn accepted_hundredths(&self) -> u64 {
        hundredths(self.accepted, self.requests)
    }
    /// Memory slices admitted, hundredths of a percent.
    pub fn accepted_slices_hundredths(&self) -> u64 {
        hundredths(self.accepted_slices, self.slices)
    }
}

/// A part in hundredths of a percent, to the nearest.
fn hundredths(part: u64, whole: u64) -> u64 {
    u64::try_from(rounded(u128::from(part) * 10_000, whole.into())).unwrap_or(u64::MAX)
}
