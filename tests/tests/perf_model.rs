//! The performance model against measured tables that it was not fitted to, and against
//! the simplest guess. Prints the error tables of `docs/performance-model.md`:
//!
//! ```text
//! cargo test -p slicewise-tests --test perf_model -- --nocapture
//! ```
//!
//! The measured tables are read where they are beside the project; made-up ones in the
//! same format always are.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at whatever is not as expected")]
#![expect(clippy::print_stdout, reason = "the tables are what this test is for")]

use std::path::Path;

use slicewise::perf::interference::{Resident, Weights, rate_ppm};
use slicewise::perf::scaling::Shape;
use slicewise::perf::{Class, Parameters};
use slicewise_tests::perf::scaling::{self, Table};
use slicewise_tests::perf::tables::{self, Case};
use slicewise_tests::perf::{Errors, pairs, quantile};

const MADE_UP_TRAINING: &str = include_str!("../perf/made_up_training.csv");
const MADE_UP_INFERENCE: &str = include_str!("../perf/made_up_inference.csv");
const MADE_UP_PAIRS: &str = include_str!("../perf/made_up_pairs.csv");

/// A measured table, or `None` with a note.
fn measured(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces").join(name);
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        println!("skipped: no ../shared/traces/{name} beside the project");
    }
    text
}

fn print(title: &str, of: &str, table: &Table) {
    println!("\n{title}\n\n{}", Errors::heading(of));
    for (name, errors) in table {
        println!("{}", errors.row(name));
    }
}

/// The shape that the table of parameters has.
fn built_in(class: Class) -> Shape {
    Shape::of(class, &Parameters::built_in().unwrap()).unwrap()
}

/// Slices and processes of one table; returns the tables and the shape fitted to all of it.
fn evaluate(title: &str, cases: &[Case]) -> (Table, Option<Table>, Shape) {
    let start = built_in(cases[0].class);
    let by_family = scaling::fit(cases, scaling::family, start);
    let table = scaling::slices(cases, scaling::family, &by_family);
    print(&format!("{title}: throughput on slices, each family left out in turn"), "known of the model", &table);
    let mut shapes = scaling::fit(cases, scaling::itself, start);
    let table = scaling::slices(cases, scaling::itself, &shapes);
    print(&format!("{title}: throughput on slices, each model left out in turn"), "known of the model", &table);
    let several = cases.iter().any(|c| c.rates.keys().any(|(_, n)| *n > 1));
    let processes = several.then(|| {
        shapes = scaling::fit_processes(cases, &shapes);
        let table = scaling::processes(cases, &shapes);
        print(&format!("{title}: several MPS processes, each model left out in turn"), "known of the model", &table);
        table
    });
    println!("\nfitted to all models: {:?}", shapes[&None]);
    (table, processes, shapes[&None])
}

/// Known slices and whole-GPU batches must halve the error of the simplest guess.
fn beats_proportional(table: &Table) {
    let [proportional, _, whole, slice] = [0, 1, 2, 3].map(|i| table[i].1.median_ppm());
    assert!(2 * whole < proportional, "two batches: {whole} against {proportional}");
    assert!(2 * slice < proportional, "one slice: {slice} against {proportional}");
    assert!(2 * slice < table[4].1.median_ppm() && 2 * slice < table[5].1.median_ppm());
    assert!(2 * table[3].1.p90_ppm() < table[0].1.p90_ppm());
}

/// The batch alone helps little: it must only not be worse than the simplest guess.
fn batch_alone_is_no_worse(table: &Table) {
    let [proportional, class] = [0, 1].map(|i| table[i].1.median_ppm());
    assert!(class < proportional, "batch only: {class} against {proportional}");
}

#[test]
fn made_up_tables() {
    let training = tables::training(MADE_UP_TRAINING);
    beats_proportional(&evaluate("made-up training", &training).0);
    let inference = tables::inference(MADE_UP_INFERENCE);
    let (slices, processes, _) = evaluate("made-up inference", &inference);
    beats_proportional(&slices);
    let processes = processes.unwrap();
    assert!(2 * processes[3].1.median_ppm() < processes[0].1.median_ppm());
    for (gpu, table) in tables::pairs(MADE_UP_PAIRS) {
        let errors = pairs::evaluate(&table);
        print(&format!("made-up pairs on {gpu}"), "method", &errors);
        assert!(2 * errors[3].1.median_ppm() < errors[0].1.median_ppm());
        assert_eq!(table.out_of_memory.len(), 1);
    }
}

#[test]
fn training_on_mig_slices() {
    let Some(text) = measured("mig_profiles/miso_a100_40gb_training.csv") else { return };
    let cases = tables::training(&text);
    assert_eq!(cases[0].class, Class::Training);
    let (table, _, fitted) = evaluate("training, A100-40GB (MISO)", &cases);
    assert_eq!(fitted, built_in(Class::Training));
    beats_proportional(&table);
    batch_alone_is_no_worse(&table);
}

#[test]
fn inference_on_mig_slices() {
    let Some(text) = measured("mig_profiles/parvagpu_a100_80gb_inference.csv") else { return };
    let cases = tables::inference(&text);
    let (slices, processes, fitted) = evaluate("inference, A100-80GB (ParvaGPU)", &cases);
    assert_eq!(fitted, built_in(Class::Inference));
    beats_proportional(&slices);
    batch_alone_is_no_worse(&slices);
    let processes = processes.unwrap();
    assert!(3 * processes[3].1.median_ppm() < processes[0].1.median_ppm());
}

#[test]
fn pairs_of_training_jobs() {
    let Some(text) = measured("colocation/gavel_pairs.csv") else { return };
    let mut all: Table = Vec::new();
    let mut rates = Vec::new();
    for (gpu, table) in tables::pairs(&text) {
        let errors = pairs::evaluate(&table);
        print(&format!("pairs on {gpu}, each family left out in turn"), "method", &errors);
        println!("out of memory: {} pairs; the table has no footprints to predict them by", table.out_of_memory.len());
        let [half, median, class, probe] = [0, 1, 2, 3].map(|i| errors[i].1.median_ppm());
        assert!(class < half.min(median), "{gpu}: {class} against {half} and {median}");
        assert!(probe < half.min(median), "{gpu}: {probe} against {half} and {median}");
        if !gpu.contains("unconsolidated") {
            if all.is_empty() {
                all = errors.iter().map(|(name, _)| (*name, Errors::default())).collect();
            }
            rates.extend(table.rates.values().copied());
            for (sum, (_, one)) in all.iter_mut().zip(&errors) {
                sum.1.extend(one);
            }
        }
    }
    print("pairs on k80, p100 and v100 together", "method", &all);
    // What the table of parameters holds of training is the measured median.
    let parameters = Parameters::built_in().unwrap();
    let job = Resident::of(Class::Training, &parameters).unwrap();
    let built_in = rate_ppm(&Weights::of(&parameters).unwrap(), &job, &[job]);
    assert!(built_in.abs_diff(quantile(&rates, 50)) < 5000, "{built_in}");
}
