//! A figure that is not known exactly.

use serde::{Deserialize, Serialize};

use super::fixed::{PPM, scale, share};

/// Low, expected and high value of one figure, in the unit of its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Low end.
    pub low: u64,
    /// Expected value.
    pub expected: u64,
    /// High end.
    pub high: u64,
}

impl Range {
    /// A value known exactly.
    pub const fn exact(value: u64) -> Self {
        Self { low: value, expected: value, high: value }
    }
    /// Whether low ≤ expected ≤ high.
    pub fn is_ordered(&self) -> bool {
        self.low <= self.expected && self.expected <= self.high
    }
    /// Each end through a function that does not fall.
    #[must_use]
    pub fn map(self, f: impl Fn(u64) -> u64) -> Self {
        Self { low: f(self.low), expected: f(self.expected), high: f(self.high) }
    }
    /// Each end through a function that does not rise: the ends change places.
    #[must_use]
    pub fn turned(self, f: impl Fn(u64) -> u64) -> Self {
        Self { low: f(self.high), expected: f(self.expected), high: f(self.low) }
    }
    /// Sum, end by end: the ends of both come together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            low: self.low.saturating_add(other.low),
            expected: self.expected.saturating_add(other.expected),
            high: self.high.saturating_add(other.high),
        }
    }
    /// Product with a share in parts per million, end by end.
    #[must_use]
    pub fn share(self, ppm: Self) -> Self {
        Self {
            low: share(self.low, ppm.low),
            expected: share(self.expected, ppm.expected),
            high: share(self.high, ppm.high),
        }
    }
    /// `value × this ÷ over` at each end.
    #[must_use]
    pub fn scaled(self, value: u64, over: u64) -> Self {
        self.map(|end| scale(value, end, over))
    }
    /// What remains of one, in parts per million.
    #[must_use]
    pub fn rest(self) -> Self {
        self.turned(|end| PPM.saturating_sub(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_range_turns_its_ends() {
        let loss = Range { low: 10_000, expected: 20_000, high: 1_500_000 };
        assert_eq!(loss.rest(), Range { low: 0, expected: 980_000, high: 990_000 });
        assert!(loss.rest().is_ordered());
    }
}
