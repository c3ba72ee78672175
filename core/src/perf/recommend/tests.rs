//! Recommendations on a known GPU.

use super::*;
use crate::perf::overhead::{DriverEra, Sharing};
use crate::perf::range::Range;
use crate::perf::scaling::Slice;
use alloc::string::ToString;

fn rate(batch: u64, items_per_s: u64) -> BatchRate {
    BatchRate { batch, milli_items_per_s: items_per_s * 1000 }
}

/// A network of the size of ResNet-50, answering, on A100 slices at 3 an hour.
fn ask() -> RecommendAsk {
    RecommendAsk {
        workload: Demand {
            class: Class::Inference,
            whole_gpu: vec![rate(1, 200), rate(8, 1600), rate(128, 2550)],
            memory_mib: Some(Range { low: 2000, expected: 3000, high: 5000 }),
            latency_max_us: Some(30_000),
            rate_min_milli: Some(500_000),
            ..Demand::default()
        },
        gpu: Some(PricedGpu { model: "a100-80gb".to_string(), micro_per_hour: 3_000_000 }),
        ..RecommendAsk::default()
    }
}

fn answer(ask: &RecommendAsk) -> Recommendation {
    recommend(ask, &Catalog::built_in().unwrap()).unwrap()
}

#[test]
fn the_smallest_place_that_meets_the_need_wins() {
    let found = answer(&ask());
    let best = found.best.unwrap();
    // 1g does about 0.2 of 1600 a second at batch 8: two of them cost less than one 2g.
    assert_eq!((best.candidate.as_str(), best.predicted.batch), ("1g.10gb", 8));
    assert!(best.predicted.latency_us.expected <= 30_000 && best.loses.is_empty());
    assert!(!found.others.is_empty() && found.others.iter().all(|c| !c.loses.is_empty()));
    for choice in &found.others {
        let p = &choice.predicted;
        assert!(p.throughput_milli.is_ordered() && p.latency_us.is_ordered() && p.overhead_ppm.is_ordered());
    }
}

#[test]
fn what_cannot_be_met_says_by_how_much() {
    let mut none = ask();
    none.workload.latency_max_us = Some(10);
    let found = answer(&none);
    assert_eq!(found.best, None);
    assert!(found.others.iter().all(|c| matches!(c.loses[0], Loss::Latency { max_us: 10, .. })));

    let mut large = ask();
    large.workload.memory_mib = Some(Range::exact(30_000));
    let found = answer(&large);
    assert!(found.best.is_some_and(|b| ["3g.40gb", "4g.40gb", "7g.80gb", "a100-80gb"].contains(&b.candidate.as_str())));
    let loses = found.others.iter().find(|c| c.candidate == "1g.10gb").unwrap().loses[0];
    assert!(matches!(loses, Loss::Memory { needed_mib: 30_000, .. }));
}

fn training(sharing: Sharing, era: DriverEra) -> RecommendAsk {
    let candidate = Candidate {
        name: "shared".to_string(),
        sharing,
        slice: Slice::WHOLE,
        memory_mib: 40_000,
        beside: vec![Class::Interactive; 7],
        time_slice_us: Some(100_000),
        driver_era: era,
        micro_per_hour: 1_000_000,
    };
    RecommendAsk {
        workload: Demand {
            class: Class::Training,
            whole_gpu: vec![rate(32, 900)],
            batch_target: Some(256),
            preemptions_per_1000_h: Some(41),
            checkpoint_s: Some(60),
            ..Demand::default()
        },
        candidates: vec![candidate],
        ..RecommendAsk::default()
    }
}

#[test]
fn training_refuses_overhead_above_five_percent() {
    let found = answer(&training(Sharing::Software, DriverEra::Classic));
    assert!(matches!(found.others[0].loses[0], Loss::Overhead { max_ppm: 50_000, .. }));
    let found = answer(&training(Sharing::TimeSliced, DriverEra::Newest));
    assert_eq!((found.best.unwrap().candidate.as_str(), found.accumulate_steps), ("shared", Some(8)));
    assert_eq!(found.checkpoint.unwrap().every_s, 3245);
}

#[test]
fn more_neighbours_are_never_faster() {
    let mut last = u64::MAX;
    for n in 0..10 {
        let mut ask = training(Sharing::Mps, DriverEra::Newest);
        ask.candidates[0].beside = vec![Class::Training; n];
        let found = answer(&ask);
        let choice = found.best.as_ref().unwrap_or_else(|| &found.others[0]);
        let expected = choice.predicted.throughput_milli.expected;
        assert!(expected <= last, "{n}");
        last = expected;
    }
}

#[test]
fn slips_name_their_field() {
    let path = |change: fn(&mut RecommendAsk)| {
        let mut ask = ask();
        change(&mut ask);
        recommend(&ask, &Catalog::built_in().unwrap()).unwrap_err().path().to_string()
    };
    assert_eq!(path(|a| a.workload.whole_gpu.clear()), "workload.whole_gpu");
    assert_eq!(path(|a| a.workload.whole_gpu[1].batch = 0), "workload.whole_gpu[1].batch");
    assert_eq!(path(|a| a.gpu = None), "candidates");
    assert_eq!(path(|a| a.gpu.as_mut().unwrap().model.clear()), "gpu.model");
    assert_eq!(path(|a| a.workload.processes = vec![1, 0]), "workload.processes[1]");
    let slip = |a: &mut RecommendAsk| {
        a.parameters.insert("x".to_string(), crate::perf::Override::Value(1));
    };
    assert_eq!(path(slip), "parameters.x");
}
