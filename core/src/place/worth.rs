//! What the expected demand may still place on a device, and what a take makes of it.
//!
//! A profile's free starts count by how often it is asked times the square of its size:
//! what is large and in demand is protected first. On a grid the starts are those expected
//! a little later, when some of the present instances may have gone. Each leaves after an
//! exponential time, and one looks ahead by a hundredth of a mean life, so that room which
//! one departure would free is worth more than room which needs two.

use alloc::vec::Vec;

use super::policy::DeviceMix;
use crate::space::{DeviceAsk, Grid, Layout, PPM, Space, SpaceState};

/// The look-ahead ends this many times as often as one instance leaves.
const HORIZON_RATE: i128 = 100;

/// Cells of the largest grid on which one looks ahead. Larger ones hold so many instances
/// that one departure changes little, and there are too many pairs to look at each.
const AHEAD_CELLS_MAX: u16 = 16;

/// What a value is a multiple of.
const SCALE: i128 = 1 << 20;

/// What room for each expected ask is worth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worth {
    asks: Vec<(DeviceAsk, i128)>,
}

impl Worth {
    /// The worth of room to a demand mix; without one every plain profile, share type or
    /// the whole device is asked equally often.
    pub fn of(space: &Space, mix: &DeviceMix) -> Self {
        let even: Vec<(DeviceAsk, u32)>;
        let mix = if mix.is_empty() {
            even = space.standard_asks().into_iter().map(|ask| (ask, 1)).collect();
            &even
        } else {
            mix
        };
        let total: i128 = mix.iter().map(|(_, weight)| i128::from(*weight)).sum();
        let worth = |(ask, weight): &(DeviceAsk, u32)| {
            let size = i128::from(space.size(*ask));
            (*ask, (i128::from(*weight) * i128::from(PPM)).checked_div(total).unwrap_or(0) * size * size)
        };
        Self { asks: mix.iter().map(worth).collect() }
    }

    /// What the room on a device is worth; only differences and their order mean anything.
    pub fn value(&self, space: &Space, state: &SpaceState) -> i64 {
        let value = match (space, state) {
            (Space::Grid(grid), SpaceState::Grid(layout)) if grid.cells() <= AHEAD_CELLS_MAX => {
                self.expected(grid, layout)
            }
            (Space::Grid(grid), SpaceState::Grid(layout)) => self.now(grid, layout) * SCALE,
            _ => {
                let room = |(ask, worth): &(DeviceAsk, i128)| worth * i128::from(space.capacity(state, *ask));
                self.asks.iter().map(room).sum()
            }
        };
        i64::try_from(value).unwrap_or(i64::MAX)
    }

    /// The starts expected when the look-ahead ends. More than two departures until then are
    /// as good as impossible and left out.
    fn expected(&self, grid: &Grid, layout: &Layout) -> i128 {
        let starts: Vec<u16> = layout.used().map(|entry| entry.start).collect();
        // Rates of the next event with all there, one gone, two gone.
        let all = HORIZON_RATE + starts.len() as i128;
        let (one_gone, two_gone) = (all - 1, all - 2);
        let mut sum = self.now(grid, layout) * SCALE * HORIZON_RATE / all;
        for (i, first) in starts.iter().enumerate() {
            let without = layout.without(*first);
            sum += self.now(grid, &without) * SCALE * HORIZON_RATE / (all * one_gone);
            for second in starts.iter().skip(i + 1) {
                let rest = self.now(grid, &without.without(*second));
                sum += 2 * rest * SCALE * HORIZON_RATE / (all * one_gone * two_gone);
            }
        }
        sum
    }

    fn now(&self, grid: &Grid, layout: &Layout) -> i128 {
        let room = |(ask, worth): &(DeviceAsk, i128)| match ask {
            DeviceAsk::Instance(profile) => worth * grid.legal_starts(layout, *profile).count() as i128,
            other => worth * i128::from(grid.capacity(layout, *other)),
        };
        self.asks.iter().map(room).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::space::Take;

    /// An A100 with these instances on it, and the worth of its room to a mix.
    fn valued(mix: &[(&str, u32)], instances: &[(&str, u16)]) -> i64 {
        let grid = Grid::of(Catalog::built_in().unwrap().find("a100-80gb").unwrap(), &[], None);
        let put = |layout: Layout, (name, start): &(&str, u16)| {
            let take = Take::Instance { profile: grid.find(name).unwrap(), start: *start };
            grid.put(&layout, take).unwrap().layout
        };
        let layout = instances.iter().fold(Layout::default(), put);
        let mix: Vec<_> = mix.iter().map(|(n, weight)| (DeviceAsk::Instance(grid.find(n).unwrap()), *weight)).collect();
        let space = Space::Grid(grid);
        Worth::of(&space, &mix).value(&space, &SpaceState::Grid(layout))
    }

    #[test]
    fn small_instances_go_where_they_leave_the_most_room() {
        let at = |start| valued(&[], &[("1g.10gb", start)]);
        assert!((0..6).all(|start| at(start) < at(6)));
        // Beside it: the half of the GPU that no 3g can have any more.
        let beside = |start| valued(&[], &[("1g.10gb", 6), ("1g.10gb", start)]);
        assert_eq!((0..6).max_by_key(|start| beside(*start)), Some(5));
    }

    #[test]
    fn room_that_fewer_departures_free_is_worth_more() {
        let mix = [("7g.80gb", 1)];
        let empty = valued(&mix, &[]);
        let one = valued(&mix, &[("7g.80gb", 0)]);
        let two = valued(&mix, &[("4g.40gb", 0), ("3g.40gb", 4)]);
        let three = valued(&mix, &[("2g.20gb", 0), ("2g.20gb", 2), ("3g.40gb", 4)]);
        assert!(empty > one && one > two && two > three && three == 0, "{empty} {one} {two} {three}");
        // Which of 101 events comes first: the departure, or the end of the look-ahead.
        assert!((empty / one, empty / two) == (101, 101 * 102 / 2), "{empty} {one} {two}");
    }

    #[test]
    fn what_is_not_in_demand_is_not_protected() {
        let used = [("1g.10gb", 0)];
        assert_eq!(valued(&[("1g.20gb", 3)], &used), valued(&[("1g.20gb", 1)], &used));
        assert!(valued(&[("3g.40gb", 1)], &[("1g.10gb", 0)]) == valued(&[("3g.40gb", 1)], &[("1g.10gb", 4)]));
        assert!(valued(&[("4g.40gb", 1)], &[("1g.10gb", 0)]) < valued(&[("4g.40gb", 1)], &[("1g.10gb", 4)]));
    }
}
