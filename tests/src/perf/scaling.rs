//! Leave one model out: shared parameters are fitted to the other models; of the one left
//! out only what a user knows beforehand is used.

use std::collections::{BTreeMap, BTreeSet};

use slicewise::perf::scaling::{Curve, Known, Shape};

use super::tables::{Case, slice};
use super::{Errors, PPM};

/// Methods and their errors, in the order of the printed table.
pub type Table = Vec<(&'static str, Errors)>;

const SERIAL_PPM: [u64; 5] = [50_000, 100_000, 150_000, 200_000, 250_000];
const COMPUTE_PPM: [u64; 6] = [300_000, 400_000, 450_000, 500_000, 550_000, 600_000];
const SHARPNESS: [u8; 3] = [1, 2, 4];
const OFFSETS: [u64; 6] = [0, 1, 2, 4, 8, 16];
const FLOORS: [u64; 16] =
    [0, 500, 1000, 2000, 4000, 6000, 8000, 10_000, 12_000, 14_000, 16_000, 20_000, 30_000, 60_000, 120_000, 240_000];
const OVERLAPS: [u64; 4] = [0, 500_000, 700_000, 1_000_000];
const LOSSES: [u64; 4] = [0, 20_000, 30_000, 50_000];

/// What is left out together with a model.
pub type Group = fn(&str) -> &str;

/// The model alone.
pub fn itself(model: &str) -> &str {
    model
}

/// The model and its siblings of other sizes: `resnet50` is of the family `resnet`.
pub fn family(model: &str) -> &str {
    model.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Errors of one shape with so much known, group by group.
fn by_group(cases: &[Case], group: Group, shape: Shape, known: Known) -> BTreeMap<&str, Errors> {
    let mut errors: BTreeMap<&str, Errors> = BTreeMap::new();
    for case in cases {
        errors.entry(group(&case.model)).or_default().extend(&of_case(cases, case, shape, known));
    }
    errors
}

/// The curve of a case from what is known of it, and the slice that was measured for that.
fn curve(cases: &[Case], case: &Case, shape: Shape, known: Known) -> Option<(Curve, Option<u16>)> {
    match known {
        Known::Class => Some((Curve::of_batch(shape, case.batch), None)),
        Known::WholeGpu => {
            let same = cases.iter().filter(|c| c.model == case.model);
            let steps: Vec<(u64, u64)> = same.filter_map(|c| Some((c.batch, c.step_ns()?))).collect();
            let (one, other) = (*steps.iter().min()?, *steps.iter().max()?);
            Some((Curve::of_batches(shape, case.batch, one, other), None))
        }
        Known::Slice => {
            let (least, rate) = case.slices().next()?;
            Some((Curve::of_rate(shape, &slice(least), relative(rate, case.whole()?)), Some(least)))
        }
    }
}

fn relative(rate: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(rate) * u128::from(PPM) / u128::from(whole)).unwrap()
}

fn of_case(cases: &[Case], case: &Case, shape: Shape, known: Known) -> Errors {
    let mut errors = Errors::default();
    if let Some((curve, measured)) = curve(cases, case, shape, known) {
        for (g, rate) in case.slices().filter(|(g, _)| Some(*g) != measured) {
            errors.add(curve.rate_ppm(&slice(g), 1), relative(rate, case.whole().unwrap()));
        }
    }
    errors
}

/// The candidate with the least cost over all groups but one.
fn fitted<T: Copy>(candidates: &[(T, BTreeMap<&str, Errors>)], left_out: Option<&str>) -> T {
    let cost = |errors: &BTreeMap<&str, Errors>| -> u64 {
        errors.iter().filter(|(model, _)| Some(**model) != left_out).map(|(_, e)| e.cost()).sum()
    };
    candidates.iter().min_by_key(|(_, errors)| cost(errors)).unwrap().0
}

/// Shapes fitted to all groups but one, for every group and for none left out.
///
/// In stages, so that each parameter is settled by the measurements that show it: how a
/// step's time splits by calibrated curves, the offset by batches on the whole GPU, the
/// floor by the batch alone.
pub fn fit(cases: &[Case], group: Group, start: Shape) -> BTreeMap<Option<&str>, Shape> {
    let models: BTreeSet<&str> = cases.iter().map(|c| group(&c.model)).collect();
    let mut splits = Vec::new();
    for serial_ppm in SERIAL_PPM {
        for compute_ppm in COMPUTE_PPM {
            for sharpness in SHARPNESS {
                let shape = Shape { serial_ppm, compute_ppm, sharpness, ..start };
                splits.push((shape, by_group(cases, group, shape, Known::Slice)));
            }
        }
    }
    let out = models.iter().copied().map(Some).chain([None]);
    out.map(|left_out| {
        let split = fitted(&splits, left_out);
        let at = |batch_offset| {
            let shape = Shape { batch_offset, ..split };
            (shape, by_group(cases, group, shape, Known::WholeGpu))
        };
        let offset = fitted(&OFFSETS.map(at), left_out);
        let at = |floor_batch_milli| {
            let shape = Shape { floor_batch_milli, ..offset };
            (shape, by_group(cases, group, shape, Known::Class))
        };
        (left_out, fitted(&FLOORS.map(at), left_out))
    })
    .collect()
}

/// Throughput on slices, one process: the model with each amount of knowledge, and what it
/// has to beat.
pub fn slices(cases: &[Case], group: Group, shapes: &BTreeMap<Option<&str>, Shape>) -> Table {
    let known = [
        ("class and batch", Known::Class),
        ("two batches on the whole GPU", Known::WholeGpu),
        ("smallest slice and whole GPU", Known::Slice),
    ];
    let mut table: Table = vec![("proportional to compute slices", Errors::default())];
    table.extend(known.iter().map(|(name, _)| (*name, Errors::default())));
    table.push(("proportional, from the smallest slice", Errors::default()));
    table.push(("straight line, smallest slice to whole GPU", Errors::default()));
    for case in cases {
        let (whole, shape) = (case.whole().unwrap(), shapes[&Some(group(&case.model))]);
        let smallest = case.slices().next();
        for (g, rate) in case.slices() {
            let truth = relative(rate, whole);
            table[0].1.add(u64::from(g) * PPM / 7, truth);
            let Some((least, at_least)) = smallest.filter(|(least, _)| *least != g) else { continue };
            let start = relative(at_least, whole);
            table[4].1.add(start * u64::from(g) / u64::from(least), truth);
            let along = PPM.abs_diff(start) * u64::from(g - least) / u64::from(7 - least);
            table[5].1.add(if start <= PPM { start + along } else { start - along }, truth);
        }
        for (i, (_, known)) in known.iter().enumerate() {
            table[i + 1].1.extend(&of_case(cases, case, shape, *known));
        }
    }
    table
}

/// Overlap and loss of MPS processes fitted to all models but one.
pub fn fit_processes<'c>(
    cases: &'c [Case],
    shapes: &BTreeMap<Option<&'c str>, Shape>,
) -> BTreeMap<Option<&'c str>, Shape> {
    let one = |left_out: &Option<&'c str>, shape: &Shape| {
        let mut tried = Vec::new();
        for overlap_ppm in OVERLAPS {
            for process_loss_ppm in LOSSES {
                let shape = Shape { overlap_ppm, process_loss_ppm, ..*shape };
                let mut errors: BTreeMap<&str, Errors> = BTreeMap::new();
                for case in cases.iter().filter(|c| Some(c.model.as_str()) != *left_out) {
                    errors.entry(&case.model).or_default().extend(&processes_of(cases, case, shape, Known::Slice));
                }
                tried.push((shape, errors));
            }
        }
        (*left_out, fitted(&tried, None))
    };
    shapes.iter().map(|(left_out, shape)| one(left_out, shape)).collect()
}

/// Total throughput of several processes in one instance. With `Known::Slice`, that of one
/// process in the same instance is known too.
fn processes_of(cases: &[Case], case: &Case, shape: Shape, known: Known) -> Errors {
    let mut errors = Errors::default();
    let found = curve(cases, case, shape, known).or_else(|| curve(cases, case, shape, Known::WholeGpu));
    let Some((curve, _)) = found else { return errors };
    for ((g, n), rate) in case.rates.iter().filter(|((_, n), _)| *n > 1) {
        let several = curve.rate_ppm(&slice(*g), *n);
        let (base, one) = match (known, case.rates.get(&(*g, 1))) {
            (Known::Slice, Some(base)) => (*base, curve.rate_ppm(&slice(*g), 1)),
            (Known::Slice, None) => continue,
            _ => (case.whole().unwrap(), PPM),
        };
        let predicted = u128::from(base) * u128::from(several) / u128::from(one.max(1));
        errors.add(u64::try_from(predicted).unwrap(), *rate);
    }
    errors
}

/// Several processes: the model, and what it has to beat.
pub fn processes(cases: &[Case], shapes: &BTreeMap<Option<&str>, Shape>) -> Table {
    let mut table: Table = vec![
        ("as one process in the same slice", Errors::default()),
        ("times the processes", Errors::default()),
        ("two batches on the whole GPU", Errors::default()),
        ("one process in the same slice", Errors::default()),
    ];
    for case in cases {
        let shape = shapes[&Some(case.model.as_str())];
        for ((g, n), rate) in case.rates.iter().filter(|((_, n), _)| *n > 1) {
            if let Some(one) = case.rates.get(&(*g, 1)) {
                table[0].1.add(*one, *rate);
                table[1].1.add(one * u64::from(*n), *rate);
            }
        }
        table[2].1.extend(&processes_of(cases, case, shape, Known::WholeGpu));
        table[3].1.extend(&processes_of(cases, case, shape, Known::Slice));
    }
    table
}
