//! `slicewise replay` as scripts use it. The trace and the stream beside this file are made
//! up, in the format of the published ones.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use std::path::Path;
use std::process::{Command, Output};

use rstest::rstest;
use serde_json::Value;

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay");

fn replay(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicewise"));
    command.arg("replay").args(args).env("NO_COLOR", "1").output().unwrap()
}

fn openb(args: &[&str]) -> Output {
    replay(&[&["openb", "--data", &format!("{DIR}/openb"), "--workload", "small"], args].concat())
}

fn mig(args: &[&str]) -> Output {
    replay(&[&["mig", "--stream", &format!("{DIR}/stream.csv"), "--warm-up", "0"], args].concat())
}

fn json(out: &Output) -> Value {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[rstest]
#[case("published-fgd")]
#[case("published-best-fit")]
#[case("published-dot-product")]
#[case("published-gpu-packing")]
#[case("published-gpu-clustering")]
#[case("published-random")]
#[case("default")]
#[case("value")]
#[case("fewest_lost_placements,best_fit")]
fn a_trace_is_replayed_by_seed(#[case] policy: &str) {
    let runs = json(&openb(&["--policy", policy, "--seeds", "8,7", "--json"]));
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect::<Vec<_>>(), [7, 8]);
    for run in runs {
        assert_eq!((run["policy"].as_str(), run["workload"].as_str()), (Some(policy), Some("small")));
        // Six GPUs: 460 thousandths are 7.67 %.
        let first = if run["seed"] == 7 { "8" } else { "17" };
        assert!(run["allocated_pct"][first].as_f64().unwrap() > 7.0, "{run}");
        assert!(run["allocated_pct"]["100"].is_null() || run["fragmented_pct"]["100"].is_number());
        for field in ["decide_us", "commit_us"] {
            assert!(["p50", "p99", "mean"].iter().all(|key| run[field][key].is_number()), "{run}");
        }
    }
}

#[test]
fn numbers_have_two_decimals_and_come_from_the_trace() {
    let out = openb(&["--policy", "published-best-fit", "--seeds", "7", "--json"]);
    let text = String::from_utf8(out.stdout).unwrap();
    // 460 and then 540 thousandths of six GPUs.
    assert!(text.contains("\"8\": 7.67"), "{text}");
    assert!(text.contains("\"17\": 16.67"), "{text}");
}

#[test]
fn curves_are_written_and_drawn() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [csv, svg] = ["curves.csv", "curves.svg"].map(|name| dir.join(name));
    let policies = ["--policy", "published-fgd", "--policy", "value"];
    let files = ["--csv", csv.to_str().unwrap(), "--svg", svg.to_str().unwrap()];
    let out = openb(&[policies.as_slice(), &files].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(String::from_utf8(out.stdout).unwrap().contains("means over 2 seeds"));
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("policy,workload,seed,arrived_pct,allocated_pct,fragmented_pct\npublished-fgd,small,7,"));
    assert!(csv.lines().any(|line| line.starts_with("value,small,8,")));
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("published-fgd") && svg.contains("workload small"));
}

/// First-fit and best-fit end with a 1g in the way of the second 2g and of the last 3g; who
/// puts it to the end of the GPU keeps room for one of them.
#[rstest]
#[case("rival-first-fit", 5)]
#[case("rival-best-fit", 5)]
#[case("rival-max-cc", 6)]
#[case("rival-hami", 4)]
#[case("default", 6)]
#[case("value", 6)]
fn a_stream_comes_and_goes(#[case] policy: &str, #[case] least: u64) {
    let run = json(&mig(&["--gpus", "2", "--policy", policy, "--json"]));
    assert_eq!((&run["policy"], &run["requests"], &run["moves"]), (&policy.into(), &8.into(), &0.into()));
    assert!(run["accepted"].as_u64().unwrap() >= least, "{run}");
    assert!(run["accepted_slices_pct"].as_f64().unwrap() <= run["accepted_pct"].as_f64().unwrap(), "{run}");
}

#[test]
fn moves_are_made_within_their_budget() {
    let moves = |ppm: &str| json(&mig(&["--gpus", "2", "--policy", "first-fit", "--moves-ppm", ppm, "--json"]));
    let (none, some) = (moves("0"), moves("1000000"));
    assert_eq!(none["moves"], 0);
    assert!(some["moves"].as_u64().unwrap() > 0, "{some}");
    assert!(some["accepted"].as_u64() > none["accepted"].as_u64(), "{some}");
}

#[rstest]
#[case(&["openb", "--data", DIR, "--workload", "small"], 8, "openb_node_list_gpu_node.csv")]
#[case(&["openb", "--data", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay/openb"), "--workload", "small", "--seeds", "9"], 3, "no seed 9")]
#[case(&["openb", "--data", DIR, "--policy", "published-none"], 2, "no policy")]
#[case(&["mig", "--stream", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay/stream.csv"), "--gpus", "1", "--model", "a30-24gb"], 3, "no profile `3g.40gb`")]
#[case(&["mig", "--stream", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay/stream.csv"), "--gpus", "1", "--policy", "rival-none"], 2, "no policy")]
fn bad_input_is_told(#[case] args: &[&str], #[case] code: i32, #[case] says: &str) {
    let out = replay(args);
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(code), "{error}");
    assert!(error.contains(says), "{error}");
}
