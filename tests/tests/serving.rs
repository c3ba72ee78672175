//! Serving: the published scenarios where they are beside the project, and small cases
//! always.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at whatever is not as expected"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use proptest::prelude::*;
use slicewise::formats::{read_points, read_scenarios};
use slicewise::serving::{
    Deployment, GpuProof, MAX_PROCESSES, Point, ProfilePrice, SLO_SHARE_PPM, Served, Serving, SplitOn, Target,
    Unservable, UnservableBecause,
};
use slicewise::verify::{Rule, Violation};
use slicewise::{Backend, Catalog, ServeBudget, serve, serve_with, verify};
use slicewise_tests::dice::cases;

fn published(name: &str, max_processes: u32, scale: u64) -> Option<Serving> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces");
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    let points = read("mig_profiles/parvagpu_a100_80gb_inference.csv")?;
    let scenarios = read("parvagpu_slo/scenarios.csv")?;
    let mut targets = read_scenarios("scenarios", &scenarios).unwrap().of(Some(name)).unwrap().to_vec();
    targets.iter_mut().for_each(|t| t.rate_milli *= scale);
    let points = read_points("points", &points).unwrap();
    Some(Serving { gpu: "a100-80gb".into(), max_processes, slo_share_ppm: SLO_SHARE_PPM, points, targets })
}

fn deployed(request: &Serving) -> Deployment {
    match serve(request).unwrap() {
        Served::Deployment(deployment) => deployment,
        Served::Refused(refused) => panic!("{refused:?}"),
    }
}

#[test]
fn published_scenarios_take_the_fewest_gpus() {
    let at_most_3 = [("S1", 1, 2), ("S2", 1, 3), ("S3", 1, 5), ("S4", 1, 7), ("S5", 1, 12), ("S6", 1, 16)];
    let scaled = [("S6", 2, 30), ("S6", 5, 74), ("S6", 10, 148), ("S6", 20, 294), ("S6", 50, 735)];
    let at_most_5 = [("S1", 1, 2), ("S2", 1, 3), ("S3", 1, 5), ("S4", 1, 7), ("S5", 1, 12), ("S6", 1, 15)];
    let with = |cases: &[(&'static str, u64, u64)], processes: u32| -> Vec<_> {
        cases.iter().map(|(name, scale, gpus)| (*name, *scale, *gpus, processes)).collect()
    };
    let cases = [with(&at_most_3, 3), with(&scaled, 3), with(&at_most_5, MAX_PROCESSES)].concat();
    for (name, scale, gpus, processes) in cases {
        let Some(request) = published(name, processes, scale) else {
            println!("skipped: no ../shared/traces beside the project");
            return;
        };
        let clock = Instant::now();
        let found = deployed(&request);
        println!(
            "{name} × {scale}, at most {processes}: {} GPUs, bound {}, {:?}, {:?}",
            found.gpus,
            found.bound,
            found.method,
            clock.elapsed()
        );
        assert_eq!((found.gpus, found.bound, found.gap, found.verified), (gpus, gpus, 0, true), "{name} × {scale}");
        verify::serving(&Catalog::built_in().unwrap(), &request, &found).unwrap();
        let too_slow = |model: &str, latency: u64| {
            request.targets.iter().any(|t| t.model == model && u128::from(latency) * 2 >= u128::from(t.slo_us))
        };
        let all = found.deployment.iter().flat_map(|gpu| &gpu.instances);
        assert!(
            all.into_iter().all(|i| !too_slow(&i.model, i.latency_us)),
            "{name}: every latency is within its objective"
        );
    }
}

fn point(model: &str, compute_slices: u16, throughput_milli: u64) -> Point {
    // Larger batches take longer; of each size only these two are there.
    Point { model: model.into(), compute_slices, batch: 8, processes: 2, throughput_milli, latency_us: 40_000 }
}

fn target(model: &str, rate_milli: u64) -> Target {
    Target { model: model.into(), rate_milli, slo_us: 100_000 }
}

/// Points of a model by size, with slower and smaller ones beside them.
fn points(model: &str, by_size: &[(u16, u64)]) -> Vec<Point> {
    let of = |(size, throughput): &(u16, u64)| {
        let best = point(model, *size, *throughput);
        let late = Point { batch: 16, throughput_milli: throughput * 2, latency_us: 45_000, ..best.clone() };
        let crowded = Point { processes: 4, throughput_milli: throughput * 3, ..best.clone() };
        let small = Point { batch: 1, throughput_milli: throughput - 1, latency_us: 9_000, ..best.clone() };
        [best, late, crowded, small]
    };
    by_size.iter().flat_map(of).collect()
}

fn request(points: Vec<Point>, targets: Vec<Target>) -> Serving {
    Serving { gpu: "a100-80gb".into(), max_processes: 3, slo_share_ppm: SLO_SHARE_PPM, points, targets }
}

fn example() -> Serving {
    let sizes = [(1, 100), (2, 210), (3, 330), (4, 410), (7, 700)];
    let slow = [(2, 90), (3, 150), (7, 300)];
    let all = [points("net", &sizes), points("slow", &slow)].concat();
    request(all, vec![target("net", 1_650), target("slow", 240)])
}

fn check(request: &Serving, deployment: &Deployment) -> Result<(), Violation> {
    verify::serving(&Catalog::built_in().unwrap(), request, deployment)
}

#[test]
fn every_latency_is_within_its_objective_and_every_rate_is_reached() {
    let request = example();
    let found = deployed(&request);
    for target in &request.targets {
        let own = || found.deployment.iter().flat_map(|g| &g.instances).filter(|i| i.model == target.model);
        assert!(own().all(|i| i.latency_us * 1_000_000 < target.slo_us * u64::from(SLO_SHARE_PPM)));
        assert!(own().map(|i| i.throughput_milli).sum::<u64>() >= target.rate_milli);
        // A point that meets its limit exactly, or has a process too many, is not used.
        assert!(own().all(|i| (i.batch, i.processes, i.latency_us) == (8, 2, 40_000)));
    }
    let best = oracle(&[([100, 210, 330, 410, 700], 1_650), ([0, 90, 150, 0, 300], 240)]);
    assert_eq!((found.gpus, found.bound, found.verified), (best, best, true));
}

#[test]
fn the_checker_refuses_what_is_false() {
    let request = example();
    let found = deployed(&request);
    check(&request, &found).unwrap();
    let with = |rule: Rule, what: &str, change: &dyn Fn(&mut Deployment)| {
        let mut changed = found.clone();
        change(&mut changed);
        assert_eq!(check(&request, &changed).err().map(|v| v.rule), Some(rule), "{what}");
    };
    for (g, gpu) in found.deployment.iter().enumerate() {
        for (i, instance) in gpu.instances.iter().enumerate() {
            with(Rule::Rate, "a segment less", &|d| drop(d.deployment[g].instances.remove(i)));
            with(Rule::Point, "another batch", &|d| d.deployment[g].instances[i].batch += 1);
            with(Rule::Point, "another number of processes", &|d| d.deployment[g].instances[i].processes -= 1);
            with(Rule::Point, "another latency", &|d| d.deployment[g].instances[i].latency_us -= 1);
            with(Rule::Point, "more throughput", &|d| d.deployment[g].instances[i].throughput_milli += 1);
            with(Rule::Unknown, "another model", &|d| d.deployment[g].instances[i].model.push('x'));
            with(Rule::NotOffered, "another size", &|d| d.deployment[g].instances[i].size += 1);
            with(Rule::NotOffered, "another profile", &|d| d.deployment[g].instances[i].profile = "1g.20gb".into());
            with(Rule::Start, "no such start", &|d| d.deployment[g].instances[i].start = 7);
            with(Rule::Latency, "a point that is too slow", &|d| {
                let own = &mut d.deployment[g].instances[i];
                (own.batch, own.latency_us, own.throughput_milli) = (16, 45_000, own.throughput_milli * 2);
            });
            with(Rule::Point, "a process too many", &|d| {
                let own = &mut d.deployment[g].instances[i];
                (own.processes, own.throughput_milli) = (4, own.throughput_milli * 3);
            });
            if let Some(other) =
                gpu.instances.iter().find(|o| o.profile == instance.profile && o.start != instance.start)
            {
                with(Rule::Overlap, "a start twice", &|d| d.deployment[g].instances[i].start = other.start);
            }
        }
    }
    with(Rule::Total, "a GPU less", &|d| d.gpus -= 1);
    with(Rule::Bound, "a bound too high", &|d| d.bound += 1);
    with(Rule::Gap, "a gap that is not there", &|d| d.gap += 1);
    with(Rule::Model, "another GPU", &|d| d.gpu = "a100-40gb".into());
    with(Rule::Bound, "no prices", &|d| d.certificate = GpuProof::Prices(Vec::new()));
    let free = |name: &str| ProfilePrice { profile: name.into(), price: 1 };
    with(Rule::Unknown, "a price on nothing", &|d| d.certificate = GpuProof::Prices(vec![free("9g")]));
    let twice = vec![free("1g.10gb"), free("1g.10gb")];
    with(Rule::Duplicate, "two prices", &|d| d.certificate = GpuProof::Prices(twice.clone()));
    let split = |on: SplitOn, more: GpuProof| {
        let fewer = Box::new(found.certificate.clone());
        GpuProof::Split { on, most: 1, fewer, more: Box::new(more) }
    };
    let segments = SplitOn::Segments { model: "net".into(), profile: "7g.80gb".into() };
    with(Rule::Bound, "a side without prices", &|d| {
        d.certificate = split(segments.clone(), GpuProof::Prices(Vec::new()));
    });
    let partial = SplitOn::Gpus { layout: vec!["1g.10gb".into()] };
    with(Rule::Unknown, "no maximal layout", &|d| d.certificate = split(partial.clone(), found.certificate.clone()));
    // A needless split proves the same.
    let mut longer = found.clone();
    longer.certificate = split(segments, found.certificate.clone());
    check(&request, &longer).unwrap();

    let asks = |change: &dyn Fn(&mut Serving)| {
        let mut changed = request.clone();
        change(&mut changed);
        check(&changed, &found).err().map(|v| v.rule)
    };
    assert_eq!(asks(&|r| r.targets[0].rate_milli += 1_000), Some(Rule::Rate));
    assert_eq!(asks(&|r| r.targets[0].slo_us = 80_000), Some(Rule::Latency));
    assert_eq!(asks(&|r| r.slo_share_ppm = 400_000), Some(Rule::Latency));
    assert_eq!(asks(&|r| r.max_processes = 1), Some(Rule::Point));
    // The bound rests on the points: faster ones take it away.
    assert_eq!(asks(&|r| r.points.push(Point { batch: 9, ..point("net", 7, 7_000) })), Some(Rule::Bound));
}

#[test]
fn refusals_are_proved_and_checked() {
    let catalog = Catalog::built_in().unwrap();
    let mut request = example();
    request.targets[1].slo_us = 20_000;
    request.targets.push(target("unknown", 1));
    // What asks nothing needs nothing.
    request.targets.push(target("idle", 0));
    let Served::Refused(refused) = serve(&request).unwrap() else { panic!("9 ms is not below 9 ms") };
    let latency = Unservable {
        model: "slow".into(),
        because: UnservableBecause::Latency,
        latency_us_least: Some(9_000),
        latency_us_below: 9_000,
    };
    let nothing = Unservable {
        model: "unknown".into(),
        because: UnservableBecause::NoPoint,
        latency_us_least: None,
        latency_us_below: 45_000,
    };
    assert_eq!(refused, [latency.clone(), nothing]);
    verify::serving_refusal(&catalog, &request, &refused).unwrap();
    request.targets[1].slo_us = 20_001;
    for wrong in [vec![latency.clone()], vec![Unservable { model: "idle".into(), ..latency }], Vec::new()] {
        let violation = verify::serving_refusal(&catalog, &request, &wrong).unwrap_err();
        assert_eq!(violation.rule, Rule::Refusal, "{violation}");
    }
}

#[test]
fn requests_that_are_not_well_formed_name_the_field() {
    let with = |change: &dyn Fn(&mut Serving)| {
        let mut request = example();
        change(&mut request);
        serve(&request).unwrap_err().to_string().split(':').next().unwrap().to_owned()
    };
    assert_eq!(with(&|r| r.gpu = "abacus".into()), "gpu");
    assert_eq!(with(&|r| r.max_processes = 0), "max_processes");
    assert_eq!(with(&|r| r.slo_share_ppm = 1_000_001), "slo_share_ppm");
    assert_eq!(with(&|r| r.points.push(r.points[0].clone())), "points[32]");
    assert_eq!(with(&|r| r.points[3].throughput_milli = u64::MAX), "points[3].throughput_milli");
    assert_eq!(with(&|r| r.targets.push(r.targets[0].clone())), "targets[2].model");
    assert_eq!(with(&|r| r.targets[1].slo_us = 0), "targets[1].slo_us");
    assert_eq!(with(&|r| r.targets[1].rate_milli = 1_000_000_000), "targets[1].rate_milli");
}

/// Fourteen segments that only fit two on a GPU, proved in several ways.
#[test]
fn certificates_prove_what_they_are_worth() {
    let catalog = Catalog::built_in().unwrap();
    let request = request(points("net", &[(3, 100)]), vec![target("net", 1_400)]);
    let prices = |all: &[(&str, u64)]| {
        let price = |(name, price): &(&str, u64)| ProfilePrice { profile: (*name).into(), price: *price };
        GpuProof::Prices(all.iter().map(price).collect())
    };
    let split = |on: &SplitOn, most: u64, fewer: GpuProof, more: GpuProof| GpuProof::Split {
        on: on.clone(),
        most,
        fewer: Box::new(fewer),
        more: Box::new(more),
    };
    let segments = SplitOn::Segments { model: "net".into(), profile: "3g.40gb".into() };
    let pairs = SplitOn::Gpus { layout: vec!["3g.40gb".into(), "3g.40gb".into()] };
    let slices = prices(&[("1g.10gb", 1), ("2g.20gb", 2), ("3g.40gb", 3), ("4g.40gb", 4), ("7g.80gb", 7)]);
    let (threes, nothing) = (prices(&[("3g.40gb", 1)]), prices(&[]));
    let cases = [
        // 14 × 3 ÷ 7, and 14 ÷ 2.
        (slices.clone(), 6),
        (threes.clone(), 7),
        (nothing.clone(), 0),
        // Without the fourteenth the rate is not reached.
        (split(&segments, 13, nothing.clone(), threes.clone()), 7),
        (split(&segments, 13, threes.clone(), nothing.clone()), 0),
        (split(&segments, 14, threes.clone(), threes.clone()), 7),
        // Twelve on six GPUs and two that are alone; or seven GPUs are there already.
        (split(&pairs, 6, threes.clone(), nothing.clone()), 7),
        (split(&pairs, 6, slices.clone(), nothing.clone()), 6),
        (split(&pairs, 5, threes.clone(), nothing.clone()), 6),
        // Five pairs are worth 30 of 42 slices, and 12 ÷ 7 is two more.
        (split(&pairs, 4, threes.clone(), split(&pairs, 7, slices, nothing)), 7),
    ];
    for (certificate, gpus) in cases {
        assert_eq!(verify::serving_bound(&catalog, &request, &certificate), Ok(gpus), "{certificate:?}");
    }
}

/// Maximal layouts, written down by hand: how many of each size.
const A100: ([u16; 5], &[[u64; 5]]) = (
    [1, 2, 3, 4, 7],
    &[
        [0, 0, 0, 0, 1],
        [0, 0, 1, 1, 0],
        [0, 0, 2, 0, 0],
        [0, 2, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 3, 0, 0, 0],
        [2, 1, 1, 0, 0],
        [3, 0, 0, 1, 0],
        [3, 2, 0, 0, 0],
        [4, 0, 1, 0, 0],
        [5, 1, 0, 0, 0],
        [7, 0, 0, 0, 0],
    ],
);

/// The fewest GPUs that have these instances.
fn fewest(demand: [u64; 5], known: &mut BTreeMap<[u64; 5], u64>) -> u64 {
    if demand == [0; 5] {
        return 0;
    }
    if let Some(gpus) = known.get(&demand) {
        return *gpus;
    }
    let after = |layout: &[u64; 5]| std::array::from_fn(|i| demand[i].saturating_sub(layout[i]));
    let useful = A100.1.iter().map(after).filter(|rest| *rest != demand);
    let gpus = 1 + useful.map(|rest| fewest(rest, known)).min().unwrap();
    known.insert(demand, gpus);
    gpus
}

/// Every multiset of segments that reaches the rate and has none to spare.
fn multisets(throughputs: &[u64; 5], rate: u64) -> Vec<[u64; 5]> {
    let mut all = Vec::new();
    let mut open = vec![([0u64; 5], 0usize, 0u64)];
    while let Some((counts, from, reached)) = open.pop() {
        if reached >= rate {
            all.push(counts);
            continue;
        }
        for size in (from..5).filter(|s| throughputs[*s] > 0) {
            let mut more = counts;
            more[size] += 1;
            open.push((more, size, reached + throughputs[size]));
        }
    }
    all
}

fn oracle(models: &[([u64; 5], u64)]) -> u64 {
    let mut known = BTreeMap::new();
    let mut sums = vec![[0u64; 5]];
    for (throughputs, rate) in models {
        let own = multisets(throughputs, *rate);
        let add = |sum: &[u64; 5]| own.iter().map(|m| std::array::from_fn(|i| sum[i] + m[i])).collect::<Vec<_>>();
        sums = sums.iter().flat_map(add).collect();
        sums.sort_unstable();
        sums.dedup();
    }
    sums.into_iter().map(|sum| fewest(sum, &mut known)).min().unwrap()
}

fn model() -> impl Strategy<Value = ([u64; 5], u64)> {
    let some = |most: u64| prop_oneof![1 => Just(0), 3 => 1..=most];
    ((some(4), some(8), some(12), some(14), 2u64..=24), 1u64..=30)
        .prop_map(|((a, b, c, d, e), rate)| ([a, b, c, d, e], rate))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small_cases_take_the_fewest_gpus_of_all_ways(models in proptest::collection::vec(model(), 1..3)) {
        let named = |i: usize| format!("m{i}");
        let points = models.iter().enumerate().flat_map(|(i, (throughputs, _))| {
            let measured = A100.0.iter().zip(throughputs).filter(|(_, t)| **t > 0);
            measured.map(move |(size, t)| point(&named(i), *size, *t)).collect::<Vec<_>>()
        });
        let targets = models.iter().enumerate().map(|(i, (_, rate))| target(&named(i), *rate));
        let request = request(points.collect(), targets.collect());
        let found = deployed(&request);
        let best = oracle(&models);
        prop_assert_eq!((found.gpus, found.bound), (best, best), "{:?}", found.certificate);
        // With next to no work there still is an answer, and its bound still holds.
        let mut budget = ServeBudget::default();
        (budget.nodes, budget.rounds, budget.work, budget.splits) = (1, 1, 3, 0);
        let catalog = Catalog::built_in().unwrap();
        let Served::Deployment(hasty) = serve_with(&catalog, &request, budget, Backend::default()).unwrap() else {
            panic!("nothing is refused")
        };
        prop_assert!(hasty.bound <= best && best <= hasty.gpus && hasty.verified);
        prop_assert_eq!(hasty.gap, hasty.gpus - hasty.bound);
        prop_assert_eq!(hasty.budget_exhausted, hasty.gap > 0);
    }
}
