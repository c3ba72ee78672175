//! How likely tenants are to want more memory than there is.
//!
//! Each tenant's use is a histogram of whole numbers. Sums are convolved exactly on a grid
//! of MiB: amounts are rounded up to the grid and masses down, and all that is not shown to
//! fit counts as not fitting, so the probability is never understated for tenants that vary
//! independently. Tenants whose peaks come together do worse: the second figure is for
//! those that rise and fall as one.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::error::{Fault, InputError};
use crate::perf::fixed::{PPM, narrow};

/// One bar of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UsageBin {
    /// Memory in use, at most.
    pub mib: u64,
    /// How often it was seen.
    pub count: u64,
}

/// What a tenant uses over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// The histogram.
    pub bins: Vec<UsageBin>,
    /// Tenants alike.
    #[serde(default = "one")]
    pub tenants: u32,
}

fn one() -> u32 {
    1
}

/// How likely it is that there is not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exceed {
    /// Tenants vary independently.
    pub independent_ppm: u64,
    /// Tenants rise and fall together.
    pub together_ppm: u64,
    /// Most they were ever seen to use, all at once.
    pub peak_mib: u64,
    /// Grid of the sum; amounts were rounded up to it.
    pub grid_mib: u64,
}

/// One, as a mass: leaves room for products in 128 bits.
const ONE: u128 = 1 << 62;

/// Cells of the grid that a table may have: bounds the work.
const CELLS_MAX: u64 = 1 << 16;

/// Tenants in one sum.
const TENANTS_MAX: u64 = 4096;

/// Products of masses that one sum may take: some seconds.
const PRODUCTS_MAX: u64 = 1 << 30;

/// The probability that these tenants together pass `limit_mib`, on a grid of `grid_mib`.
/// Without one, the grid is the largest that all amounts lie on, so that nothing is rounded;
/// coarser where that would be too much work.
///
/// # Errors
/// A histogram with nothing in it, a grid of zero or too fine for the limit, too many
/// tenants.
pub fn exceed(usages: &[Usage], limit_mib: u64, grid_mib: Option<u64>) -> Result<Exceed, InputError> {
    let grid_mib = grid_mib.unwrap_or_else(|| common_grid(usages, limit_mib));
    check(usages, limit_mib, grid_mib)?;
    let cells = usize::try_from(limit_mib / grid_mib.max(1)).unwrap_or(usize::MAX).saturating_add(1);
    let mut masses = vec![0_u128; cells];
    if let Some(first) = masses.first_mut() {
        *first = ONE;
    }
    let mut peak_mib = 0_u64;
    for usage in usages {
        let bars = bars(usage, grid_mib);
        for _ in 0..usage.tenants {
            masses = convolved(&masses, &bars);
        }
        let most = usage.bins.iter().filter(|b| b.count > 0).map(|b| b.mib).max().unwrap_or(0);
        peak_mib = peak_mib.saturating_add(most.saturating_mul(usage.tenants.into()));
    }
    let fitting: u128 = masses.iter().sum();
    // What never passes the limit passes it with probability nought, whatever was rounded.
    let missing = if peak_mib <= limit_mib { 0 } else { ONE.saturating_sub(fitting) };
    let independent_ppm = narrow((missing * u128::from(PPM)).div_ceil(ONE)).min(PPM);
    Ok(Exceed { independent_ppm, together_ppm: together(usages, limit_mib), peak_mib, grid_mib })
}

/// The largest grid on which all amounts lie, or one coarse enough for the bounds on work.
fn common_grid(usages: &[Usage], limit_mib: u64) -> u64 {
    let amounts = usages.iter().flat_map(|usage| &usage.bins).map(|bin| bin.mib);
    let exact = amounts.fold(0, gcd).max(1);
    let products = |usage: &Usage| (usage.bins.len() as u64).saturating_mul(usage.tenants.into());
    let each = usages.iter().map(products).fold(1, u64::saturating_add);
    let cells = (PRODUCTS_MAX / each).clamp(2, CELLS_MAX) - 1;
    exact.max(limit_mib.div_ceil(cells))
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a.checked_rem(b).unwrap_or(0));
    }
    a
}

/// Whether tenants are admitted within a stated probability: by the figure for independent
/// tenants, or for those that may peak together.
pub fn admitted(exceed: &Exceed, at_most_ppm: u64, may_peak_together: bool) -> bool {
    let ppm = if may_peak_together { exceed.independent_ppm.max(exceed.together_ppm) } else { exceed.independent_ppm };
    ppm <= at_most_ppm
}

fn check(usages: &[Usage], limit_mib: u64, grid_mib: u64) -> Result<(), InputError> {
    if grid_mib == 0 || limit_mib / grid_mib >= CELLS_MAX {
        let min = limit_mib / CELLS_MAX + 1;
        return Err(InputError::new("grid_mib", Fault::OutOfRange { value: grid_mib, min, max: limit_mib.max(min) }));
    }
    let mut tenants = 0_u64;
    let mut products = 0_u64;
    for (i, usage) in usages.iter().enumerate() {
        let sum = usage.bins.iter().fold(0_u128, |sum, bin| sum + u128::from(bin.count));
        if sum == 0 || sum > u128::from(u64::MAX) {
            let fault = Fault::Invalid(String::from("a histogram needs counts, and fewer than 2^64 in sum"));
            return Err(InputError::new(format!("[{i}].bins"), fault));
        }
        tenants += u64::from(usage.tenants);
        if usage.tenants == 0 || tenants > TENANTS_MAX {
            let fault = Fault::OutOfRange { value: usage.tenants.into(), min: 1, max: TENANTS_MAX };
            return Err(InputError::new(format!("[{i}].tenants"), fault));
        }
        let cells = limit_mib / grid_mib + 1;
        let each = cells.saturating_mul(usage.bins.len() as u64);
        products = products.saturating_add(each.saturating_mul(usage.tenants.into()));
        if products > PRODUCTS_MAX {
            let text =
                format!("{products} products of masses are more than {PRODUCTS_MAX}; a coarser grid takes fewer");
            return Err(InputError::new("grid_mib", Fault::Invalid(text)));
        }
    }
    Ok(())
}

fn sum_of(usage: &Usage) -> u128 {
    usage.bins.iter().map(|bin| u128::from(bin.count)).sum::<u128>().max(1)
}

/// Cells and masses; amounts up, masses down.
fn bars(usage: &Usage, grid_mib: u64) -> Vec<(usize, u128)> {
    let sum = sum_of(usage);
    let bar = |bin: &UsageBin| {
        let cell = usize::try_from(bin.mib.div_ceil(grid_mib.max(1))).unwrap_or(usize::MAX);
        (cell, u128::from(bin.count) * ONE / sum)
    };
    usage.bins.iter().map(bar).collect()
}

/// One tenant more; what passes the last cell is left out.
fn convolved(masses: &[u128], bars: &[(usize, u128)]) -> Vec<u128> {
    let mut next = vec![0_u128; masses.len()];
    for (cell, weight) in bars {
        for (to, from) in next.iter_mut().skip(*cell).zip(masses) {
            *to += from * weight / ONE;
        }
    }
    next
}

/// Probability that tenants which are always at the same rank of their own histograms pass
/// the limit: walk the ranks from the top, where all use most.
fn together(usages: &[Usage], limit_mib: u64) -> u64 {
    let mut ladders: Vec<(u128, u64, Vec<UsageBin>)> = Vec::new();
    for usage in usages {
        let mut bins: Vec<UsageBin> = usage.bins.iter().copied().filter(|b| b.count > 0).collect();
        bins.sort_by_key(|b| b.mib);
        ladders.push((sum_of(usage), usage.tenants.into(), bins));
    }
    // Probability, in parts of ONE, that is above the current rank; steps are rounded up.
    let mut above = 0_u128;
    loop {
        let total = ladders.iter().fold(0_u64, |sum, (_, tenants, bins)| {
            sum.saturating_add(bins.last().map_or(0, |b| b.mib).saturating_mul(*tenants))
        });
        if total <= limit_mib || ladders.iter().all(|(_, _, bins)| bins.is_empty()) {
            return narrow((above * u128::from(PPM)).div_ceil(ONE)).min(PPM);
        }
        // The next rank at which any tenant steps down: the least reached tail.
        let tail = |sum: u128, bins: &[UsageBin]| {
            let below: u128 = bins.iter().rev().skip(1).map(|b| u128::from(b.count)).sum();
            ((sum - below.min(sum)) * ONE).div_ceil(sum)
        };
        let next = ladders.iter().filter(|l| !l.2.is_empty()).map(|(sum, _, bins)| tail(*sum, bins)).min();
        above = next.unwrap_or(ONE).max(above);
        for (sum, _, bins) in &mut ladders {
            while !bins.is_empty() && tail(*sum, bins) <= above {
                bins.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn usage(bins: &[(u64, u64)], tenants: u32) -> Usage {
        Usage { bins: bins.iter().map(|&(mib, count)| UsageBin { mib, count }).collect(), tenants }
    }

    #[test]
    fn two_coins() {
        // Two tenants, each 4 GiB half the time and 8 GiB the other: above 12 GiB in a quarter.
        let coins = [usage(&[(4096, 1), (8192, 1)], 2)];
        let of = |limit| exceed(&coins, limit, None).unwrap();
        assert_eq!(
            of(12_288),
            Exceed { independent_ppm: 250_000, together_ppm: 500_000, peak_mib: 16_384, grid_mib: 4096 }
        );
        assert_eq!((of(16_384).independent_ppm, of(16_384).together_ppm), (0, 0));
        assert_eq!(of(8191).independent_ppm, 1_000_000);
        // On a grid that amounts do not lie on, the figure is cautious: 3 x 3000 MiB above 12 GiB.
        assert_eq!(exceed(&coins, 12_288, Some(3000)).unwrap().independent_ppm, 750_000);
        assert!(admitted(&of(12_288), 250_000, false) && !admitted(&of(12_288), 250_000, true));
    }

    #[test]
    fn slips_name_their_field() {
        let path = |usages: &[Usage], grid| String::from(exceed(usages, 1 << 30, Some(grid)).unwrap_err().path());
        assert_eq!(path(&[usage(&[(1, 1)], 1)], 0), "grid_mib");
        assert_eq!(path(&[usage(&[(1, 1)], 1)], 1), "grid_mib");
        assert_eq!(path(&[usage(&[(1, 1); 64], 4096)], 1 << 15), "grid_mib");
        assert_eq!(path(&[usage(&[(1, 0)], 1)], 1 << 20), "[0].bins");
        assert_eq!(path(&[usage(&[(1, 1)], 1), usage(&[(1, 1)], 0)], 1 << 20), "[1].tenants");
    }

    /// Every combination, with its exact weight: cases above the limit and all cases.
    fn counted(usages: &[Usage], limit: u64) -> (u128, u128) {
        let mut sums = vec![(0_u64, 1_u128)];
        for usage in usages {
            for _ in 0..usage.tenants {
                sums = sums
                    .iter()
                    .flat_map(|(mib, w)| usage.bins.iter().map(move |b| (mib + b.mib, w * u128::from(b.count))))
                    .collect();
            }
        }
        let above = sums.iter().filter(|s| s.0 > limit).map(|s| s.1).sum();
        (above, sums.iter().map(|s| s.1).sum())
    }

    proptest! {
        #[test]
        fn never_understated_and_exact_on_the_grid(
            histograms in prop::collection::vec((prop::collection::vec((0..40_u64, 1..9_u64), 1..4), 1..3_u32), 1..4),
            limit in 0..200_u64,
            grid in 1..7_u64,
        ) {
            let usages: Vec<Usage> = histograms.iter().map(|(bins, n)| usage(bins, *n)).collect();
            let (above, all) = counted(&usages, limit);
            let truth = narrow((above * u128::from(PPM)).div_ceil(all));
            let exact = exceed(&usages, limit, Some(1)).unwrap();
            prop_assert!(exact.independent_ppm >= truth && exact.independent_ppm <= truth + 1);
            let coarse = exceed(&usages, limit, Some(grid)).unwrap();
            prop_assert!(coarse.independent_ppm >= truth);
            // The grid that is chosen rounds nothing.
            prop_assert_eq!(exceed(&usages, limit, None).unwrap().independent_ppm, exact.independent_ppm);
            let more: Vec<Usage> = usages.iter().cloned().chain([usage(&[(3, 1)], 1)]).collect();
            prop_assert!(exceed(&more, limit, Some(1)).unwrap().independent_ppm >= exact.independent_ppm);
            prop_assert!(exceed(&usages, limit + 1, Some(1)).unwrap().together_ppm <= exact.together_ppm);
        }
    }
}
