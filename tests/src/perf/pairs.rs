//! Leave one job family out: pressures of the other jobs are fitted to pairs in which the
//! family has no part; then pairs of the family with them are predicted, both ways.

use std::collections::BTreeSet;

use slicewise::perf::interference::{Loads, Pair, Resident, Weights, fit_pairs, rate_ppm};

use super::scaling::Table;
use super::tables::Pairs;
use super::{Errors, PPM, quantile};

const EVEN: Weights = Weights(Loads { sm_ppm: PPM, bandwidth_ppm: PPM, cache_ppm: PPM });

/// `ResNet-50 (batch size 16)` is of the family `ResNet-50`.
pub fn family(job: &str) -> &str {
    job.split(" (").next().unwrap_or(job)
}

fn resident(feels: u64, presses: u64) -> Resident {
    let only = |sm_ppm| Loads { sm_ppm, ..Loads::default() };
    Resident { pressure: only(presses), sensitivity: Some(only(feels)), sm_percent: None }
}

/// Jobs of a table with their fitted numbers, from the pairs that pass a filter.
fn fitted(table: &Pairs, keep: impl Fn(&str) -> bool) -> Vec<(&str, Resident)> {
    let jobs: BTreeSet<&str> = table.rates.keys().map(|(a, _)| a.as_str()).filter(|job| keep(job)).collect();
    let jobs: Vec<&str> = jobs.into_iter().collect();
    let at = |job: &str| jobs.binary_search(&job).ok();
    let pair = |((a, b), rate): (&(String, String), &u64)| Some(Pair { job: at(a)?, beside: at(b)?, rate_ppm: *rate });
    let pairs: Vec<Pair> = table.rates.iter().filter_map(pair).collect();
    let numbers = fit_pairs(jobs.len(), &pairs);
    jobs.into_iter()
        .zip(numbers)
        .filter_map(|(job, n)| n.map(|(feels, presses)| (job, resident(feels, presses))))
        .collect()
}

fn feels(resident: &Resident) -> u64 {
    resident.sensitivity.unwrap().sm_ppm
}

/// The errors on one GPU's pairs.
pub fn evaluate(table: &Pairs) -> Table {
    let mut errors: Table = vec![
        ("each gets half", Errors::default()),
        ("median of all other pairs", Errors::default()),
        ("class only", Errors::default()),
        ("one run beside one known job", Errors::default()),
        ("all pairs known (fit, not a prediction)", Errors::default()),
    ];
    let families: BTreeSet<&str> = table.rates.keys().map(|(a, _)| family(a)).collect();
    for left_out in families {
        one_family(table, left_out, &mut errors);
    }
    let all = fitted(table, |_| true);
    let of = |job: &str| all.iter().find(|(name, _)| *name == job).unwrap().1;
    for ((a, b), truth) in &table.rates {
        errors[4].1.add(rate_ppm(&EVEN, &of(a), &[of(b)]), *truth);
    }
    errors
}

fn one_family(table: &Pairs, left_out: &str, errors: &mut Table) {
    let known = fitted(table, |job| family(job) != left_out);
    let others: Vec<u64> = table
        .rates
        .iter()
        .filter(|((a, b), _)| family(a) != left_out && family(b) != left_out)
        .map(|(_, rate)| *rate)
        .collect();
    let median = quantile(&others, 50);
    let middle = |of: fn(&Resident) -> u64| quantile(&known.iter().map(|(_, r)| of(r)).collect::<Vec<_>>(), 50);
    let typical = resident(middle(feels), middle(|r| r.pressure.sm_ppm));
    let jobs: BTreeSet<&str> =
        table.rates.keys().map(|(a, _)| a.as_str()).filter(|job| family(job) == left_out).collect();
    let rate = |a: &str, b: &str| table.rates.get(&(a.to_owned(), b.to_owned())).copied();
    for job in jobs {
        // The reference: of the jobs that ran beside most others, the most typical.
        let partners = |name: &str| table.rates.keys().filter(|(_, b)| b == name).count();
        let off =
            |r: &Resident| feels(r).abs_diff(feels(&typical)) + r.pressure.sm_ppm.abs_diff(typical.pressure.sm_ppm);
        let reference = known
            .iter()
            .filter(|(name, _)| rate(job, name).is_some())
            .min_by_key(|(name, r)| (usize::MAX - partners(name), off(r)));
        let probed = reference
            .map(|(name, r)| (*name, typical.probed(&EVEN, r, rate(job, name).unwrap(), rate(name, job).unwrap())));
        for (name, other) in &known {
            let (Some(own), Some(theirs)) = (rate(job, name), rate(name, job)) else { continue };
            for (truth, of_half, of_median) in [(own, PPM / 2, median), (theirs, PPM / 2, median)] {
                errors[0].1.add(of_half, truth);
                errors[1].1.add(of_median, truth);
            }
            errors[2].1.add(rate_ppm(&EVEN, &typical, &[*other]), own);
            errors[2].1.add(rate_ppm(&EVEN, other, &[typical]), theirs);
            if let Some((_, probed)) = probed.filter(|(reference, _)| reference != name) {
                errors[3].1.add(rate_ppm(&EVEN, &probed, &[*other]), own);
                errors[3].1.add(rate_ppm(&EVEN, other, &[probed]), theirs);
            }
        }
    }
}
