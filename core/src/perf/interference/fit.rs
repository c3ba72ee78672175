//! Pressures and sensitivities from measured pairs: for every pair the slowdown less one is
//! a product of one number of each, so their logarithms add and medians settle them. In
//! integers: the median of quotients is what the logarithms' median would be.

use alloc::vec;
use alloc::vec::Vec;

use super::{LOAD_MAX, PPM, scale};

/// What one job had left of its speed beside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The job, by index.
    pub job: usize,
    /// Its co-resident, by index.
    pub beside: usize,
    /// Its speed in units of that alone.
    pub rate_ppm: u64,
}

/// A slowdown below this is noise, and would make quotients of nothing.
const SLOWDOWN_MIN: u64 = PPM / 50;

/// Rounds of medians; products settle within a few.
const ROUNDS: usize = 40;

/// Sensitivity and pressure of each of `jobs` jobs (`None` for a job in no pair), scaled so
/// that both have the same median.
pub fn fit_pairs(jobs: usize, pairs: &[Pair]) -> Vec<Option<(u64, u64)>> {
    let slowdown = |p: &Pair| scale(PPM, PPM, p.rate_ppm.max(1)).saturating_sub(PPM).clamp(SLOWDOWN_MIN, LOAD_MAX);
    let mut feels = vec![PPM; jobs];
    let mut presses = vec![PPM; jobs];
    for _ in 0..ROUNDS {
        feels = solved(&feels, pairs.iter().map(|p| (p.job, p.beside, slowdown(p))), &presses);
        presses = solved(&presses, pairs.iter().map(|p| (p.beside, p.job, slowdown(p))), &feels);
    }
    let (mid_feels, mid_presses) = (median(feels.clone()), median(presses.clone()));
    // One may grow while the other shrinks: fix it where both medians are the same.
    let even = (u128::from(mid_feels) * u128::from(mid_presses)).isqrt();
    let even = super::super::fixed::narrow(even);
    let mut seen = vec![false; jobs];
    for at in pairs.iter().flat_map(|p| [p.job, p.beside]) {
        if let Some(seen) = seen.get_mut(at) {
            *seen = true;
        }
    }
    let both = feels.iter().zip(&presses).zip(&seen);
    both.map(|((f, p), seen)| seen.then(|| (scale(*f, even, mid_feels.max(1)), scale(*p, even, mid_presses.max(1)))))
        .collect()
}

/// For each job the median of slowdown ÷ what the other side has; as before where it is in
/// no pair.
fn solved(before: &[u64], pairs: impl Iterator<Item = (usize, usize, u64)>, other: &[u64]) -> Vec<u64> {
    let mut quotients: Vec<Vec<u64>> = vec![Vec::new(); before.len()];
    for (job, beside, slowdown) in pairs {
        if let (Some(list), Some(&side)) = (quotients.get_mut(job), other.get(beside)) {
            list.push(scale(slowdown, PPM, side.max(1)).clamp(1, LOAD_MAX));
        }
    }
    let settle = |(list, before): (Vec<u64>, &u64)| if list.is_empty() { *before } else { median(list) };
    quotients.into_iter().zip(before).map(settle).collect()
}

/// Middle value; of two middle ones their geometric mean, as medians of logarithms have it.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    let upper = values.get(values.len() / 2).copied().unwrap_or(PPM);
    let lower = values.len().checked_sub(1).and_then(|last| values.get(last / 2)).copied().unwrap_or(upper);
    super::super::fixed::narrow((u128::from(lower) * u128::from(upper)).isqrt())
}
