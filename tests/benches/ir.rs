//! Instruction counts, which do not depend on how busy the machine is.
#![expect(missing_docs, reason = "the macros make public items")]
#![expect(clippy::expect_used, reason = "without a fleet there is nothing to measure")]

mod ground;

use std::hint::black_box;

use gungraun::prelude::*;
use slicewise_core::decision::Decision;
use slicewise_core::ledger::Ledger;
use slicewise_core::place::{Budget, decide};
use slicewise_core::plan::{Objective, Plan};
use slicewise_core::workload::Workload;
use slicewise_solver::{PlanBudget, plan};

use ground::Kind;

fn ledger(kind: Kind, gpus: usize) -> Ledger {
    ground::ledger(&ground::half_full(kind, gpus)).expect("a legal state")
}

fn asked(kind: Kind, gpus: usize) -> (Ledger, Workload) {
    (ledger(kind, gpus), ground::requests(kind, 1).remove(0))
}

fn decided(kind: Kind, gpus: usize) -> (Ledger, Workload, Decision) {
    let (ledger, workload) = asked(kind, gpus);
    let decision = decide(&ledger, &workload, Budget::default()).expect("a legal request");
    (ledger, workload, decision)
}

fn batch(gpus: usize) -> (Ledger, Vec<Workload>) {
    (ledger(Kind::Mig, gpus), ground::batch(gpus * 2))
}

fn document(gpus: usize) -> String {
    slicewise_formats::write_state(&ground::half_full(Kind::Mig, gpus))
}

#[library_benchmark]
#[bench::mig(args = (Kind::Mig, 1_000), setup = asked)]
#[bench::mig_of_many(args = (Kind::Mig, 20_000), setup = asked)]
#[bench::fraction(args = (Kind::Fractions, 1_000), setup = asked)]
#[bench::mig_with_cpu(args = (Kind::MigOnUnlikeNodes, 1_000), setup = asked)]
fn decision((ledger, workload): (Ledger, Workload)) -> (Ledger, Decision) {
    let decision = decide(black_box(&ledger), black_box(&workload), Budget::default()).expect("a legal request");
    // The ledger goes out, or its end would be counted.
    (ledger, decision)
}

#[library_benchmark]
#[bench::mig(args = (Kind::Mig, 1_000), setup = decided)]
#[bench::fraction(args = (Kind::Fractions, 1_000), setup = decided)]
fn commit_and_undo((mut ledger, workload, decision): (Ledger, Workload, Decision)) -> Ledger {
    let change = ledger.commit(black_box(&workload), black_box(&decision)).expect("a fresh decision");
    ledger.undo(&change).expect("the last change");
    ledger
}

#[library_benchmark]
#[bench::thousand(args = (1_000), setup = document)]
fn read_document(text: String) -> slicewise_core::fleet::State {
    slicewise_formats::read_state("state.json", black_box(&text)).expect("a document")
}

#[library_benchmark]
#[bench::hundred(args = (100), setup = batch)]
fn small_plan((ledger, workloads): (Ledger, Vec<Workload>)) -> (Ledger, Plan) {
    let plan = plan(&ledger, black_box(&workloads), Objective::MostValue, PlanBudget::default());
    (ledger, plan.expect("legal requests"))
}

library_benchmark_group!(name = online, benchmarks = [decision, commit_and_undo]);
library_benchmark_group!(name = offline, benchmarks = [read_document, small_plan]);
main!(library_benchmark_groups = [online, offline]);
