//! Counting the layouts of a grid.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::grid::{Entry, Grid, Hold, Layout};
use crate::ids::ProfileId;

/// Which profiles a count goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileSet {
    /// The plain profiles with the least memory for their compute slices.
    Base,
    /// Those and the double-memory ones.
    Double,
    /// Every profile.
    All,
}

/// Layouts of an empty grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayoutCounts {
    /// Placed layouts to which nothing can be added.
    pub maximal: u64,
    /// Distinct multisets of profiles among those.
    pub multisets: u64,
    /// Legal placed sets, the empty one left out.
    pub legal: u64,
}

/// Counts by visiting every legal placed set once, in rising order of start. `None` if
/// there are more than `budget` of them.
pub fn count_layouts(grid: &Grid, set: ProfileSet, budget: u64) -> Option<LayoutCounts> {
    let profiles: Vec<ProfileId> = grid
        .rows()
        .iter()
        .filter(|(_, row)| match set {
            ProfileSet::Base => row.base,
            ProfileSet::Double => row.plain,
            ProfileSet::All => true,
        })
        .map(|(id, _)| id)
        .collect();
    let mut count = LayoutCounts::default();
    let mut multisets = BTreeSet::new();
    let mut open = Vec::from([(Layout::default(), 0u16)]);
    while let Some((layout, from)) = open.pop() {
        let mut can_grow = false;
        for &profile in &profiles {
            for start in grid.legal_starts(&layout, profile) {
                can_grow = true;
                if start >= from {
                    let next = layout.clone().with(Entry { start, profile, hold: Hold::Busy });
                    open.push((next, start + 1));
                }
            }
        }
        if !layout.entries().is_empty() {
            count.legal += 1;
            if !can_grow {
                count.maximal += 1;
                let mut multiset: Vec<ProfileId> = layout.entries().iter().map(|e| e.profile).collect();
                multiset.sort_unstable();
                multisets.insert(multiset);
            }
        }
        if count.legal > budget {
            return None;
        }
    }
    count.multisets = multisets.len() as u64;
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use rstest::rstest;

    #[rstest]
    #[case("a100-80gb", [(19, 14), (78, 38), (239, 64)], 2318)]
    #[case("h100-sxm5-80gb", [(19, 14), (78, 38), (239, 64)], 2318)]
    #[case("gb300", [(19, 14), (78, 38), (239, 64)], 2318)]
    #[case("a30-24gb", [(5, 4), (5, 4), (17, 8)], 75)]
    #[case("rtx-pro-6000-96gb", [(5, 4), (5, 4), (302, 64)], 716)]
    fn enumeration_equals_the_catalog(#[case] id: &str, #[case] maximal: [(u64, u64); 3], #[case] legal: u64) {
        let catalog = Catalog::built_in().unwrap();
        let grid = Grid::of(catalog.find(id).unwrap(), &[], None);
        let sets = [ProfileSet::Base, ProfileSet::Double, ProfileSet::All];
        let counts = sets.map(|set| count_layouts(&grid, set, 1_000_000).unwrap());
        assert_eq!(counts.map(|c| (c.maximal, c.multisets)), maximal);
        assert_eq!(counts[2].legal, legal);
    }
}
