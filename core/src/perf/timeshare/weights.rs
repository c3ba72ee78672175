//! Weights by apportionment: the least turn of each resident first, the rest in equal parts.
//!
//! With `n` residents and slices of `q` the turns add up to `n q`, so the round `T = n (q + c)`
//! and the credit `K` of the others do not depend on the weights, and every limit is a least
//! turn:
//!
//! * share `s`: `⌈s T⌉`,
//! * a wait of at most `w`: `T + K − w`, and for the demand to fit `⌈b (T + K) / p⌉`.
//!
//! There are weights that keep every promise if and only if the least turns add up to at most
//! `n q`; what is left over takes nothing from anyone.

use alloc::vec::Vec;

use super::choose::{Failing, Limit};
use super::demand::Resident;
use super::turns::{credit, switch};
use super::{Setting, WHOLE_PPM};

/// The setting with the longest slice for which there are weights, or what fails for all.
pub(super) fn longest(residents: &[Resident], base: &Setting, from: u64, to: u64) -> Result<Setting, Vec<Failing>> {
    let count = residents.len() as u64;
    let mut closest: Option<(u64, u64, u64)> = None;
    // The sum of the least turns rises and falls with the slice: every slice is tried.
    for slice_us in (from..=to).rev() {
        let setting = Setting { slice_us, ..base.clone() };
        let least: Vec<u64> = (0..residents.len()).map(|at| least(residents, &setting, at)).collect();
        let (needed, there) = (least.iter().fold(0u64, |sum, l| sum.saturating_add(*l)), count * slice_us);
        if let Some(left) = there.checked_sub(needed) {
            return Ok(Setting { weights: spread(&least, left), ..setting });
        }
        let short = needed - there;
        if closest.is_none_or(|(best, ..)| short < best) {
            closest = Some((short, needed, there));
        }
    }
    let (limit, needed, best) = match by_shares(residents, base, to) {
        Some((needed, best)) => (Limit::SumOfSharesPpm, needed, best),
        None => closest.map_or((Limit::SumOfTurnsUs, 0, 0), |(_, needed, best)| (Limit::SumOfTurnsUs, needed, best)),
    };
    Err(alloc::vec![Failing { slice_from_us: from, slice_to_us: to, resident: None, limit, needed, best: Some(best) }])
}

/// The shares promised and the most that the longest slice leaves, where that is less.
fn by_shares(residents: &[Resident], base: &Setting, longest: u64) -> Option<(u64, u64)> {
    let promised = residents.iter().filter_map(|r| r.sla.least_share_ppm).sum();
    let switch = switch(residents, base);
    let left = (longest * WHOLE_PPM).checked_div(longest + switch)?;
    (promised > left).then_some((promised, left))
}

fn least(residents: &[Resident], setting: &Setting, at: usize) -> u64 {
    let Some(resident) = residents.get(at) else { return 0 };
    let round = residents.len() as u64 * (setting.slice_us + switch(residents, setting));
    let mut least = 1;
    if let Some(share) = resident.sla.least_share_ppm {
        least = least.max((share * round).div_ceil(WHOLE_PPM));
    }
    let Some(wait) = [resident.sla.wait_worst_us, resident.sla.wait_p99_us].into_iter().flatten().min() else {
        return least;
    };
    let others = residents.iter().enumerate().filter(|(i, _)| *i != at);
    let stretched = round + others.map(|(_, r)| credit(r, setting)).sum::<u64>();
    least = least.max(stretched.saturating_sub(wait));
    match resident.demand {
        Some(demand) => least.max((demand.burst_us * stretched).div_ceil(demand.period_us.max(1))),
        None => least,
    }
}

/// The least turns and equal parts of what is left, the odd ones to the first.
fn spread(least: &[u64], left: u64) -> Vec<u64> {
    let count = least.len() as u64;
    let each = left.checked_div(count).unwrap_or(0);
    let odd = left.checked_rem(count).unwrap_or(0);
    least.iter().zip(0..).map(|(l, i)| l + each + u64::from(i < odd)).collect()
}
