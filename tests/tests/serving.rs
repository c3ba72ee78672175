//! Serving: the published scenarios where they are beside the project, and small cases
//! always.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at whatever is not as expected")]

use std::path::Path;
use std::time::Instant;

use slicewise::formats::{read_points, read_scenarios};
use slicewise::serving::{Deployment, MAX_PROCESSES, SLO_SHARE_PPM, Served, Serving};
use slicewise::{Catalog, serve, verify};

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
