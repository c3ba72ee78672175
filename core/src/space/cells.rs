//! A set of cells on a placement axis.

/// Most cells an axis may have.
pub const CELLS_MAX: usize = 384;

const WORDS: usize = CELLS_MAX / 64;

/// A set of cells, each below [`CELLS_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cells([u64; WORDS]);

impl Cells {
    /// The cells `start .. start + size`; those past the last cell are left out.
    pub fn run(start: u16, size: u16) -> Self {
        let (start, end) = (u32::from(start), u32::from(start) + u32::from(size));
        let mut words = [0; WORDS];
        for (w, word) in words.iter_mut().enumerate() {
            let low = 64 * w as u32;
            *word = below(end.saturating_sub(low)) & !below(start.saturating_sub(low));
        }
        Self(words)
    }
    /// Whether the sets share a cell.
    pub fn overlaps(self, other: Self) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }
    /// Cells of either.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let mut words = self.0;
        words.iter_mut().zip(other.0).for_each(|(a, b)| *a |= b);
        Self(words)
    }
    /// Cells of this one that are not in the other.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        let mut words = self.0;
        words.iter_mut().zip(other.0).for_each(|(a, b)| *a &= !b);
        Self(words)
    }
    /// How many cells.
    pub fn count(self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }
    /// Whether the cell is in the set.
    pub fn contains(self, cell: u16) -> bool {
        self.overlaps(Self::run(cell, 1))
    }
}

/// A word with the lowest `n` bits set.
fn below(n: u32) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

#[cfg(test)]
mod tests {
    use super::Cells;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_behave_as_sets(a in 0u16..384, n in 0u16..384, b in 0u16..384, m in 0u16..384) {
            let in_run = |c: u16, s: u16, n: u16| c >= s && c < s.saturating_add(n);
            let (x, y) = (Cells::run(a, n), Cells::run(b, m));
            let cells = 0u16..384;
            prop_assert_eq!(x.count() as usize, cells.clone().filter(|&c| in_run(c, a, n)).count());
            prop_assert_eq!(x.overlaps(y), cells.clone().any(|c| in_run(c, a, n) && in_run(c, b, m)));
            for c in cells {
                prop_assert_eq!(x.with(y).contains(c), in_run(c, a, n) || in_run(c, b, m));
                prop_assert_eq!(x.without(y).contains(c), in_run(c, a, n) && !in_run(c, b, m));
            }
        }
    }
}
