//! Readers of the measured tables. Decimals become whole millionths.

use std::collections::BTreeMap;

use slicewise::perf::Class;
use slicewise::perf::scaling::Slice;

/// One model at one batch: millionths of items per second by compute slices and processes.
#[derive(Clone, Debug)]
pub struct Case {
    /// What kind of work.
    pub class: Class,
    /// Name of the model.
    pub model: String,
    /// Items of a step.
    pub batch: u64,
    /// Throughput of all processes, by (compute slices, processes).
    pub rates: BTreeMap<(u16, u32), u64>,
}

impl Case {
    /// Throughput of one process on the whole GPU.
    pub fn whole(&self) -> Option<u64> {
        self.rates.get(&(7, 1)).copied()
    }
    /// Throughput of one process by compute slices, the whole GPU left out.
    pub fn slices(&self) -> impl Iterator<Item = (u16, u64)> {
        self.rates.iter().filter(|((g, n), _)| *n == 1 && *g != 7).map(|((g, _), rate)| (*g, *rate))
    }
    /// Nanoseconds of a step on the whole GPU.
    pub fn step_ns(&self) -> Option<u64> {
        let rate = u128::from(self.whole().filter(|r| *r > 0)?);
        u64::try_from(u128::from(self.batch) * 1_000_000_000_000_000 / rate).ok()
    }
}

/// A slice of an A100 by its compute slices.
pub fn slice(compute: u16) -> Slice {
    let memory = match compute {
        1 => 1,
        2 => 2,
        3 | 4 => 4,
        _ => 8,
    };
    Slice { compute, compute_total: 7, memory, memory_total: 8, sm_percent: None }
}

/// A decimal in millionths.
pub fn millionths(text: &str) -> u64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{fraction:0<6}");
    whole.parse::<u64>().unwrap() * 1_000_000 + digits[..6].parse::<u64>().unwrap()
}

/// Rows of a CSV text without quotes, by column name.
pub fn rows(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| names.iter().copied().zip(line.split(',')).collect()).collect()
}

/// Training step times (MISO's columns).
pub fn training(text: &str) -> Vec<Case> {
    let of = |row: &BTreeMap<&str, &str>| {
        let compute: u16 = row["mig_profile"][..1].parse().unwrap();
        (row["model"].to_owned(), row["batch"].parse().unwrap(), (compute, 1), millionths(row["samples_per_s"]))
    };
    gathered(Class::Training, rows(text).iter().map(of))
}

/// Inference throughput (ParvaGPU's columns).
pub fn inference(text: &str) -> Vec<Case> {
    let of = |row: &BTreeMap<&str, &str>| {
        let at = (row["mig_gpcs"].parse().unwrap(), row["mps_procs"].parse().unwrap());
        (row["model"].to_owned(), row["batch"].parse().unwrap(), at, millionths(row["throughput_total"]))
    };
    gathered(Class::Inference, rows(text).iter().map(of))
}

fn gathered(class: Class, rows: impl Iterator<Item = (String, u64, (u16, u32), u64)>) -> Vec<Case> {
    let mut cases: BTreeMap<(String, u64), Case> = BTreeMap::new();
    for (model, batch, at, rate) in rows {
        let new = Case { class, model: model.clone(), batch, rates: BTreeMap::new() };
        cases.entry((model, batch)).or_insert(new).rates.insert(at, rate);
    }
    cases.into_values().filter(|case| case.whole().is_some()).collect()
}

/// Pairs of jobs by GPU: what each had left of its speed beside the other. Pairs without a
/// measured speed are counted apart: both rates nought means out of memory.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// (job, beside) → rate in parts per million of that alone.
    pub rates: BTreeMap<(String, String), u64>,
    /// Pairs that ran out of memory.
    pub out_of_memory: Vec<(String, String)>,
}

/// Pairs of training jobs (Gavel's columns), by GPU.
pub fn pairs(text: &str) -> BTreeMap<String, Pairs> {
    let mut tables: BTreeMap<String, Pairs> = BTreeMap::new();
    for row in rows(text) {
        let (a, b) = (row["job_a"].to_owned(), row["job_b"].to_owned());
        let of = |name: &str| millionths(row[name]);
        let (alone_a, alone_b) = (of("steps_per_s_a_alone"), of("steps_per_s_b_alone"));
        let (shared_a, shared_b) = (of("steps_per_s_a_shared"), of("steps_per_s_b_shared"));
        let table = tables.entry(row["gpu"].to_owned()).or_default();
        if shared_a == 0 && shared_b == 0 {
            table.out_of_memory.push((a, b));
        } else if alone_a > 0 && alone_b > 0 && shared_a > 0 && shared_b > 0 {
            table.rates.insert((a.clone(), b.clone()), shared_a * super::PPM / alone_a);
            table.rates.insert((b, a), shared_b * super::PPM / alone_b);
        }
    }
    tables
}
