//! `slicewise serve` as scripts use it. The tables beside this file are made up, in the
//! format of the published ones.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use std::path::Path;
use std::process::{Command, Output};

use rstest::rstest;
use serde_json::Value;

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serving");

/// The command on a pair of tables.
fn on(points: &str, scenarios: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicewise"));
    command.args(["serve", "--points", points, "--scenarios", scenarios]).args(args);
    command.env("NO_COLOR", "1").output().unwrap()
}

fn serve(args: &[&str]) -> Output {
    on(&format!("{DIR}/points.csv"), &format!("{DIR}/scenarios.csv"), args)
}

fn json(out: &Output) -> Value {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn scratch(name: &str, text: &str) -> String {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().into()
}

#[rstest]
#[case(&["--name", "calm"], 1)]
#[case(&["--name", "rush"], 12)]
#[case(&["--name", "rush", "--max-processes", "3"], 12)]
#[case(&["--name", "rush", "--scale", "10"], 113)]
fn a_scenario_is_served_on_the_fewest_gpus(#[case] args: &[&str], #[case] gpus: u64) {
    let found = json(&serve(&[args, &["--json"]].concat()));
    assert_eq!((&found["gpus"], &found["bound"], &found["gap"]), (&gpus.into(), &gpus.into(), &0.into()));
    assert_eq!((&found["verified"], found["deployment"].as_array().unwrap().len() as u64), (&true.into(), gpus));
    let instance = &found["deployment"][0]["instances"][0];
    for field in ["model", "profile", "size", "start", "batch", "processes", "latency_us", "throughput_milli"] {
        assert!(!instance[field].is_null(), "{field}");
    }
    // The same question has the same bytes for an answer.
    assert_eq!(found, json(&serve(&[args, &["--json"]].concat())));
}

#[test]
fn options_limit_the_points_that_count() {
    let instances = |args: &[&str]| -> Vec<Value> {
        let found = json(&serve(&[args, &["--name", "rush", "--json"]].concat()));
        let gpus = found["deployment"].as_array().unwrap().clone();
        gpus.iter().flat_map(|gpu| gpu["instances"].as_array().unwrap().clone()).collect()
    };
    assert!(instances(&["--max-processes", "1"]).iter().all(|i| i["processes"] == 1));
    // A twentieth of 400 to 750 ms.
    assert!(instances(&["--slo-share-ppm", "50000"]).iter().all(|i| i["latency_us"].as_u64().unwrap() < 37_500));
    let profiles = instances(&["--gpu", "NVIDIA A30"]);
    assert!(profiles.iter().all(|i| ["1g.6gb", "2g.12gb", "4g.24gb"].contains(&i["profile"].as_str().unwrap())));
}

#[test]
fn people_see_models_and_gpus() {
    let out = serve(&["--name", "calm"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success());
    for part in ["1g.10gb", "wren", "75.5", "1 × a100-80gb: proved", "Checked by the verifier."] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_model_that_nothing_serves_is_refused_with_its_numbers() {
    let out = serve(&["--name", "strict", "--json"]);
    assert_eq!(out.status.code(), Some(5));
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    let expected = serde_json::json!({
        "verdict": "reject",
        "refused": [{"model": "wren", "because": "latency", "latency_us_least": 7000, "latency_us_below": 900}],
    });
    assert_eq!(answer, expected);
    let text = String::from_utf8_lossy(&serve(&["--name", "strict"]).stdout).into_owned();
    assert!(text.contains("wren: reject, proved: its least latency is 7 ms, a usable one is below 0.9 ms"), "{text}");
}

#[test]
fn a_deployment_from_anywhere_is_checked() {
    let out = serve(&["--name", "rush", "--json"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let check = |text: &str| serve(&["--name", "rush", "--check", &scratch("deployment.json", text)]);
    let right = check(&text);
    assert!(right.status.success(), "{}", String::from_utf8_lossy(&right.stderr));
    assert!(String::from_utf8_lossy(&right.stdout).contains("12 GPUs; at least 12"));
    for (from, to) in [("\"gpus\": 12", "\"gpus\": 11"), ("\"batch\": 16", "\"batch\": 4")] {
        assert!(text.contains(from), "{text}");
        assert_eq!(check(&text.replacen(from, to, 1)).status.code(), Some(7), "{to}");
    }
}

#[rstest]
#[case("points.csv", "model,mig_gpcs,batch\n", "no column mps_procs, throughput_total, latency_s")]
#[case("points.csv", "HEAD\nowl,1,1,1,many,0.02\n", "throughput_total: `many`")]
#[case("points.csv", "HEAD\nowl,1,1,1,5,0.02\nowl,1,1,1,6,0.03\n", "line 2 has the same")]
#[case("scenarios.csv", "scenario,model,slo_latency_ms\n", "no column request_rate_per_s")]
#[case(
    "scenarios.csv",
    "scenario,model,request_rate_per_s,slo_latency_ms\ncalm,owl,-3,900\n",
    "request_rate_per_s: `-3`"
)]
#[case(
    "scenarios.csv",
    "scenario,model,request_rate_per_s,slo_latency_ms\nstorm,owl,3,900\n",
    "no scenario `calm`; there are storm"
)]
fn bad_tables_are_refused_where_they_are_wrong(#[case] file: &str, #[case] text: &str, #[case] says: &str) {
    let text = text.replace("HEAD", "model,mig_gpcs,batch,mps_procs,throughput_total,latency_s");
    let bad = scratch(&format!("bad-{}-{}-{file}", text.len(), says.len()), &text);
    let other = |name: &str| if name == file { bad.clone() } else { format!("{DIR}/{name}") };
    let out = on(&other("points.csv"), &other("scenarios.csv"), &["--name", "calm", "--json"]);
    let message = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(3), "{message}");
    assert!(message.split_whitespace().collect::<Vec<_>>().join(" ").contains(says), "{message}");
}

#[rstest]
#[case(&["--name", "calm", "--gpu", "abacus"], 3, "unknown model `abacus`")]
#[case(&["--name", "calm", "--gpu", "jetson-thor"], 3, "not published")]
#[case(&["--name", "calm", "--scale", "99999999999999"], 3, "too large")]
#[case(&["--name", "calm", "--scale", "100000000"], 3, "out of range")]
#[case(&["--json"], 3, "which scenario? there are calm, rush, strict")]
#[case(&["--name", "calm", "--max-processes", "0"], 2, "")]
#[case(&["--name", "calm", "--slo-share-ppm", "1000001"], 2, "")]
fn bad_options_are_refused(#[case] args: &[&str], #[case] code: i32, #[case] says: &str) {
    let out = serve(args);
    let message = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(code), "{message}");
    assert!(message.contains(says), "{message}");
}
