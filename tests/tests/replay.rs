//! Replays of published traces against the numbers that were published for them. The
//! traces are read where they are beside the project; `SLICEWISE_FULL=1` replays all seeds.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at whatever is not as expected")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use slicewise::formats::{Arrivals, Kind, Options, Source, import, read_arrivals, read_stream};
use slicewise::{Catalog, Policy};
use slicewise_sim::mig::{self, Stream};
use slicewise_sim::openb::{Curve, PERCENT_MAX, Trace, Typical, replay};
use slicewise_sim::rivals;

const NODES: &str = "openb_node_list_gpu_node.csv";

fn traces(folder: &str) -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces").join(folder);
    dir.is_dir().then_some(dir)
}

fn is_full() -> bool {
    std::env::var_os("SLICEWISE_FULL").is_some()
}

/// A workload of openb with its orders of arrival.
fn openb(dir: &Path, workload: &str) -> (Trace, Vec<Arrivals>) {
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let (nodes, pods) = (read(NODES), read(&format!("openb_pod_list_{workload}.csv")));
    let files = [Source { name: "nodes", text: &nodes }, Source { name: "pods", text: &pods }];
    let imported = import(Kind::Openb, &files, &Options::default(), &Catalog::built_in().unwrap()).unwrap();
    let arrivals = read(&format!("arrivals/openb_pod_list_{workload}.txt"));
    (Trace::new(imported.state, imported.requests).unwrap(), read_arrivals("arrivals", &arrivals).unwrap())
}

/// `12.3` → 1230.
fn hundredths(text: &str) -> i64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<2}").parse().unwrap()
}

/// A published table: by workload, policy and seed, hundredths of a percent at each percent.
fn published(dir: &Path, name: &str, columns: usize) -> BTreeMap<(String, String, u64), Vec<i64>> {
    let text = fs::read_to_string(dir.join("published").join(name)).unwrap();
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let values = cells[columns..].iter().map(|cell| hundredths(cell)).collect();
        ((cells[0].to_owned(), cells[1].to_owned(), cells[3].parse().unwrap()), values)
    });
    rows.collect()
}

/// The largest distances from the published curves, in hundredths of a percent.
fn distance(curve: &Curve, allocated: &[i64], fragmented: &[i64]) -> (i64, i64) {
    let at = |value: Option<u64>| i64::try_from(value.unwrap()).unwrap();
    let far = |own: &dyn Fn(usize) -> Option<u64>, theirs: &[i64]| {
        (0..=PERCENT_MAX).map(|p| (at(own(p)) - theirs[p]).abs()).max().unwrap()
    };
    (far(&|p| curve.allocated(p), allocated), far(&|p| curve.fragmented(p), fragmented))
}

#[test]
fn published_policies_give_the_published_curves() {
    let Some(dir) = traces("openb") else {
        println!("skipped: no ../shared/traces/openb beside the project");
        return;
    };
    let (trace, orders) = openb(&dir, "default");
    assert_eq!(Typical::of(&trace).len(), 35);
    let allocated = published(&dir, "analysis_allo_discrete.csv", 5);
    let fragmented = published(&dir, "analysis_frag_discrete.csv", 4);
    let seeds = if is_full() { orders.len() } else { 1 };
    for (name, theirs) in [
        ("published-fgd", "06-FGD"),
        ("published-best-fit", "05-BestFit"),
        ("published-dot-product", "02-DotProd"),
        ("published-gpu-packing", "04-GpuPacking"),
        ("published-gpu-clustering", "03-GpuClustering"),
    ] {
        for order in orders.iter().take(seeds) {
            let mut policy = rivals::openb::named(name, &trace, order).unwrap();
            let curve = replay(&trace, order, policy.as_mut(), &mut |_, _| {}).unwrap();
            let key = ("openb_pod_list_default".to_owned(), theirs.to_owned(), order.seed);
            let (allocated, fragmented) = distance(&curve, &allocated[&key], &fragmented[&key]);
            assert!(allocated <= 1 && fragmented <= 1, "{name}, seed {}: {allocated}, {fragmented}", order.seed);
        }
    }
}

/// A stream of MIG requests on A100-80GB.
fn stream(dir: &Path, name: &str) -> Stream {
    let text = fs::read_to_string(dir.join(format!("{name}.csv"))).unwrap();
    let catalog = Catalog::built_in().unwrap();
    Stream::new(catalog.find("a100-80gb").unwrap(), &read_stream(name, &text).unwrap()).unwrap()
}

/// A mix, GPUs, and what each baseline accepts of the last 80 %: requests and memory slices,
/// hundredths of a percent.
type Baselines = (&'static str, usize, [(i64, i64); 5]);

const BASELINES: [Baselines; 6] = [
    ("uniform", 118, [(9765, 9585), (9855, 9731), (9373, 8639), (8351, 6590), (9810, 9567)]),
    ("uniform", 100, [(9235, 8571), (9360, 8752), (8870, 7619), (8138, 6201), (9379, 8586)]),
    ("uniform", 87, [(8691, 7546), (8910, 7868), (8444, 6858), (7880, 5784), (8941, 7663)]),
    ("small", 100, [(9495, 8753), (9509, 8803), (9185, 7839), (8716, 6981), (9539, 8650)]),
    ("large", 100, [(8920, 8512), (9106, 8729), (8680, 8003), (7654, 6574), (9255, 8873)]),
    ("bimodal", 100, [(9092, 8372), (9340, 8737), (8597, 7222), (7005, 4598), (9385, 8754)]),
];

#[test]
fn baselines_accept_what_was_measured() {
    let Some(dir) = traces("mig_requests") else {
        println!("skipped: no ../shared/traces/mig_requests beside the project");
        return;
    };
    let names = ["rival-first-fit", "rival-best-fit", "rival-round-robin", "rival-worst-fit", "rival-max-cc"];
    for (mix, gpus, expected) in BASELINES {
        let stream = stream(&dir, &format!("churn_{mix}"));
        for (name, (accepted, slices)) in names.iter().zip(expected) {
            let mut rival = rivals::mig::named(name, &stream, gpus).unwrap();
            let warm_up = stream.requests.len() / 5;
            let outcome = mig::replay(&stream, warm_up, 0, rival.as_mut(), &mut |_, _| {}).unwrap();
            let own = (outcome.accepted_hundredths() as i64, outcome.accepted_slices_hundredths() as i64);
            assert!((own.0 - accepted).abs() <= 5 && (own.1 - slices).abs() <= 5, "{mix} {gpus} {name}: {own:?}");
        }
    }
}

/// The means over the four mixes of what a policy of the product accepts at a load, with a
/// budget of moves: requests and memory slices, hundredths of a percent.
fn means(dir: &Path, policy: &str, gpus: usize, moves_ppm: u32) -> (u64, u64) {
    let mixes = ["uniform", "small", "large", "bimodal"];
    let outcomes = mixes.map(|mix| {
        let stream = stream(dir, &format!("churn_{mix}"));
        let policy = Policy { mix: stream.mix(), ..Policy::named(policy).unwrap() };
        let mut product = mig::Product::new(&stream, gpus, policy).unwrap();
        mig::replay(&stream, stream.requests.len() / 5, moves_ppm, &mut product, &mut |_, _| {}).unwrap()
    });
    let mean = |value: fn(&mig::Outcome) -> u64| outcomes.iter().map(value).sum::<u64>() / 4;
    (mean(mig::Outcome::accepted_hundredths), mean(mig::Outcome::accepted_slices_hundredths))
}

#[test]
fn the_value_policy_accepts_more_than_any_baseline() {
    let Some(dir) = traces("mig_requests") else {
        println!("skipped: no ../shared/traces/mig_requests beside the project");
        return;
    };
    // GPUs, moves allowed, and the least that has to be accepted: requests, memory slices.
    let bars = [
        (118, 0, (9_900, 9_820)),
        (100, 0, (9_410, 8_880)),
        (87, 0, (8_880, 7_910)),
        (100, 10_000, (9_400, 8_920)),
        (118, 10_000, (9_920, 9_860)),
        (87, 10_000, (8_850, 7_950)),
        (118, 50_000, (9_940, 9_900)),
        (100, 50_000, (9_400, 9_050)),
        (87, 50_000, (8_830, 8_030)),
    ];
    for (gpus, moves_ppm, bar) in bars.into_iter().take(if is_full() { bars.len() } else { 4 }) {
        let own = means(&dir, "value", gpus, moves_ppm);
        assert!(own.0 >= bar.0 && own.1 >= bar.1, "{gpus} GPUs, {moves_ppm} ppm moves: {own:?}, not {bar:?}");
    }
}
