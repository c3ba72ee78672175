//! The command as scripts and people use it.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rstest::rstest;
use serde_json::Value;

fn slicewise(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slicewise")).args(args).env("NO_COLOR", "1").output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let out = slicewise(args);
    assert!(out.status.success(), "{args:?}\n{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn scratch(name: &str, text: &str) -> String {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("commands");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().into()
}

#[rstest]
#[case("a100-80gb", "base", 19, 14)]
#[case("a100-80gb", "double", 78, 38)]
#[case("NVIDIA H100 80GB HBM3", "all", 239, 64)]
#[case("a30-24gb", "all", 17, 8)]
#[case("rtx-pro-6000-96gb", "all", 302, 64)]
fn layouts_are_counted(#[case] model: &str, #[case] profiles: &str, #[case] maximal: u64, #[case] multisets: u64) {
    let counts = json(&["layouts", model, "--profiles", profiles, "--json"]);
    assert_eq!((&counts["maximal"], &counts["multisets"]), (&maximal.into(), &multisets.into()));
}

#[rstest]
#[case("uniform", [1651, 1647, 1675, 1617, 1723, 1687], 4394)]
#[case("small", [2966, 2007, 2491, 1258, 760, 518], 3023)]
#[case("large", [479, 505, 1003, 1955, 2471, 3587], 6264)]
#[case("bimodal", [3457, 999, 517, 488, 1462, 3077], 4906)]
fn request_lists_are_planned_to_the_optimum(#[case] name: &str, #[case] counts: [u64; 6], #[case] gpus: u64) {
    let profiles = ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"];
    let rows: String = profiles.iter().zip(counts).map(|(p, n)| format!("{p},{n}\n")).collect();
    let requests = scratch(&format!("{name}.csv"), &format!("profile,count\n{rows}"));
    let fleet = scratch("fleet.json", r#"{"gpus":[{"model":"a100-80gb","count":7000,"mig":true}]}"#);
    let plan = json(&["plan", "--fleet", &fleet, "--requests", &requests, "--json"]);
    let expected = serde_json::json!({
        "verified": true, "admitted": counts.iter().sum::<u64>(), "refused": 0, "gpus_used": gpus, "bound": gpus,
        "gap_ppm": 0, "bound_source": "prices",
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&plan[key], value, "{key}");
    }
    assert_eq!(plan["placements"].as_array().unwrap().len() as u64, counts.iter().sum::<u64>());
}

#[test]
fn a_plan_from_anywhere_is_checked() {
    let fleet = scratch("two.json", r#"{"gpus":[{"model":"a100-80gb","count":2,"mig":true}]}"#);
    let requests = scratch("three.csv", "profile,count\n3g.40gb,3\n");
    let plan_file = scratch("plan.json", "");
    json(&["plan", "--fleet", &fleet, "--requests", &requests, "--json", "--out", &plan_file]);
    let verify = |plan: &str| slicewise(&["verify", "--fleet", &fleet, "--requests", &requests, "--plan", plan]);
    assert!(verify(&plan_file).status.success());
    let text = std::fs::read_to_string(&plan_file).unwrap();
    for (what, from, to) in [("start", "\"start\": 4", "\"start\": 3"), ("bound", "\"bound\": 2", "\"bound\": 3")] {
        assert!(text.contains(from), "{text}");
        let forged = scratch(&format!("forged-{what}.json"), &text.replacen(from, to, 1));
        let out = verify(&forged);
        assert_eq!(out.status.code(), Some(7), "{what}: {}", String::from_utf8_lossy(&out.stdout));
    }
}

/// Each real listing becomes a state that the engine takes, or a refusal that says what to do.
#[test]
fn samples_are_imported_or_refused_with_advice() {
    let samples = root().join("../shared/catalog/samples");
    if !samples.exists() {
        println!("skipped: no ../shared/catalog/samples beside the project");
        return;
    }
    let mut imported = 0;
    for entry in std::fs::read_dir(&samples).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (kind, extra, code): (&str, &[&str], i32) = match name.as_str() {
            "INDEX.md" => continue,
            "lcip-lci-a100-3g.txt" => ("mig-lci", &[], 3),
            "amd-smi-partition-mi300x.txt" | "smi-mig-devices-h100-nvl.txt" => ("smi-l", &[], 3),
            n if n.starts_with("lgipp") => ("mig-lgipp", &[], 0),
            n if n.starts_with("lgip") => ("mig-lgip", &[], 0),
            n if n.starts_with("lgi") || n.starts_with("cgi") => ("mig-lgi", &[], 0),
            n if n.starts_with("smi-L") => ("smi-l", &[], 0),
            n if n.starts_with("smi-q") => ("smi-xml", &[], 0),
            n if n.starts_with("topo") => ("topo", &["--model", "h100-sxm5-80gb"], 0),
            n if n.starts_with("mig-parted") => ("mig-parted", &[], 0),
            n if n.starts_with("node") => ("node", &[], 0),
            n if n.starts_with("resourceslice") => ("resourceslice", &[], 0),
            other => panic!("a sample of a new kind: {other}"),
        };
        let file = path.to_str().unwrap();
        let mut args = vec!["import", kind, file, "--json"];
        args.extend(extra);
        let out = slicewise(&args);
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{name}: {errors}");
        if code != 0 {
            assert!(errors.contains('`'), "{name} is refused without advice: {errors}");
            continue;
        }
        imported += 1;
        let state = scratch(&format!("{name}.json"), std::str::from_utf8(&out.stdout).unwrap());
        let nothing = scratch("nothing.json", r#"[{"name":"r","any_of":[{"node_only":{}}]}]"#);
        let decided = slicewise(&["decide", "--state", &state, "--request", &nothing, "--json"]);
        assert!(decided.status.success(), "{name}: {}", String::from_utf8_lossy(&decided.stderr));
        assert!(slicewise(&["verify", "--fleet", &state]).status.success(), "{name}");
    }
    assert_eq!(imported, 24);
}

/// What the README shows is what is printed.
#[test]
fn the_readme_shows_what_is_printed() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let docs = std::fs::read_to_string(root().join("docs/state.md")).unwrap();
    let block = |text: &str, from: &str| -> String {
        let rest = text.split_once(from).unwrap().1;
        rest.split_once("\n```").unwrap().0.trim_start_matches('\n').to_string()
    };
    let example = block(&docs, "$ cat state.yaml");
    let (state, rest) = example.split_once("$ cat request.yaml\n").unwrap();
    let request = rest.lines().next().unwrap();
    let (state, request) = (scratch("state.yaml", state), scratch("request.yaml", request));
    let out = slicewise(&["decide", "--state", &state, "--request", &request]);
    let shown = block(&readme, "$ slicewise decide --state fleet.yaml --request request.yaml");
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim_end(), shown.trim_end());
}

#[test]
fn the_two_node_example_runs() {
    let example = root().join("examples/two-nodes");
    let file = |name: &str| example.join(name).to_str().unwrap().to_string();
    let (alpha, fleet, plan) = (scratch("alpha.json", ""), scratch("both.json", ""), scratch("both-plan.json", ""));
    let ok = |args: &[&str]| {
        let out = slicewise(args);
        assert!(out.status.success(), "{args:?}\n{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    ok(&["import", "mig-lgip", &file("alpha.txt"), "--node", "alpha", "--out", &alpha]);
    ok(&["import", "topo", &file("beta.txt"), "--node", "beta", "--into", &alpha, "--out", &fleet]);
    let requests = file("requests.yaml");
    let shown = ok(&["plan", "--fleet", &fleet, "--requests", &requests, "--out", &plan]);
    assert!(shown.contains("Checked by the verifier") && shown.contains("gap 0.00 %"), "{shown}");
    ok(&["verify", "--fleet", &fleet, "--requests", &requests, "--plan", &plan]);
    let commands = ok(&["export", "nvidia-smi", "--fleet", &fleet, "--plan", &plan]);
    assert!(commands.contains("nvidia-smi mig -i 1 -cgi 9:4 -C"), "{commands}");
    let parted = ok(&["export", "mig-parted", "--fleet", &fleet, "--plan", &plan]);
    assert!(parted.contains("3g.40gb: 2") || parted.contains("\"3g.40gb\": 2"), "{parted}");
}

#[rstest]
#[case(&["decide", "--state", "/nowhere", "--request", "/nowhere"], 8)]
#[case(&["layouts", "jetson-thor"], 3)]
#[case(&["layouts", "rtx-9999"], 3)]
#[case(&["import", "smi-m", "x"], 2)]
#[case(&["no-such-command"], 2)]
fn failures_have_their_exit_codes(#[case] args: &[&str], #[case] code: i32) {
    assert_eq!(slicewise(args).status.code(), Some(code));
}

fn busy() -> String {
    root().join("examples/timeshare/busy.yaml").to_str().unwrap().into()
}

/// At 85 % load the setting that is chosen keeps promises that best effort does not.
#[test]
fn a_shared_gpu_is_measured_and_chosen() {
    let best_effort = json(&["timeshare", &busy(), "--json"]);
    assert_eq!((&best_effort["scheduler"], &best_effort["slas_kept"]), (&"best_effort".into(), &false.into()));
    let chosen = json(&["timeshare", &busy(), "--choose", "--seed", "7", "--horizon-us", "2000000", "--json"]);
    assert_eq!((&chosen["verdict"], &chosen["slas_kept"]), (&"admit".into(), &true.into()));
    for answer in [&best_effort, &chosen] {
        assert!(answer["load_ppm"].as_u64().unwrap().abs_diff(850_000) < 1_000);
        for row in answer["residents"].as_array().unwrap() {
            for word in ["share_ppm", "wait_p99_us", "wait_worst_us"] {
                assert_eq!(row[word], row["closed_form"][word]);
            }
            let (bound, seen) = (&row["wait_worst_us"], row["simulated"]["wait_worst_us"].as_u64().unwrap());
            assert!(bound.as_u64().is_none_or(|b| seen <= b), "{row}");
        }
    }
    let p99 = |answer: &Value| answer["residents"][0]["simulated"]["wait_p99_us"].as_u64().unwrap();
    assert!(p99(&chosen) < p99(&best_effort), "{chosen}\n{best_effort}");
    let again = json(&["timeshare", &busy(), "--choose", "--seed", "7", "--horizon-us", "2000000", "--json"]);
    assert_eq!(chosen, again);
    let shown = slicewise(&["timeshare", &busy(), "--choose"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.starts_with("chosen: ") && shown.contains("desktop-1") && shown.contains("kept"), "{shown}");
}

/// `docs/timeshare.md` shows what the commands print.
#[test]
fn the_page_on_time_sharing_shows_what_is_printed() {
    let docs = std::fs::read_to_string(root().join("docs/timeshare.md")).unwrap();
    for (file, choose) in [("busy", false), ("busy", true), ("impossible", false)] {
        let path = root().join(format!("examples/timeshare/{file}.yaml"));
        let mut args = vec!["timeshare", path.to_str().unwrap()];
        args.extend(choose.then_some("--choose"));
        let printed = slicewise(&args).stdout;
        let lines: Vec<String> = String::from_utf8_lossy(&printed).lines().map(|l| l.trim_end().to_string()).collect();
        assert!(docs.contains(&lines.join("\n")), "{}", lines.join("\n"));
    }
}

#[test]
fn promises_that_nothing_keeps_are_refused_with_slices() {
    let file = root().join("examples/timeshare/impossible.yaml");
    let out = slicewise(&["timeshare", file.to_str().unwrap(), "--json"]);
    assert_eq!(out.status.code(), Some(5));
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer["refusals"][0]["scheduler"], "equal_share");
    let failing = &answer["refusals"][0]["failing"];
    assert_eq!((&failing[0]["resident"], &failing[0]["slice_to_us"]), (&"train".into(), &1_800.into()));
    assert_eq!((&failing[1]["resident"], &failing[1]["limit"]), (&"chat".into(), &"wait_worst_us".into()));
    let out = slicewise(&["timeshare", file.to_str().unwrap()]);
    let shown = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(shown.contains("train needs a share of 48.00 %, gets at most 47.36 %"), "{shown}");
}

/// What `--json` prints passes the checker; with any figure changed it does not.
#[test]
fn answers_on_shared_gpus_are_checked() {
    let impossible = root().join("examples/timeshare/impossible.yaml").to_str().unwrap().to_string();
    let check = |document: &str, claim: &Value| {
        let file = scratch("timeshare-claim.json", &claim.to_string());
        slicewise(&["timeshare", document, "--check", &file]).status.code()
    };
    let choice = json(&["timeshare", &busy(), "--choose", "--json"]);
    let refusal = slicewise(&["timeshare", &impossible, "--json"]).stdout;
    let refusal: Value = serde_json::from_slice(&refusal).unwrap();
    assert_eq!((check(&busy(), &choice), check(&impossible, &refusal)), (Some(0), Some(0)));
    let changed = |of: &Value, pointer: &str, to: Value| {
        let mut claim = of.clone();
        *claim.pointer_mut(pointer).unwrap() = to;
        claim
    };
    for (pointer, to) in [
        ("/overhead_ppm", 0),
        ("/slice_us", 30_000),
        ("/residents/0/closed_form/share_ppm", 999_999),
        ("/residents/1/closed_form/wait_worst_us", 1),
    ] {
        assert_eq!(check(&busy(), &changed(&choice, pointer, to.into())), Some(7), "{pointer}");
    }
    for (pointer, to) in [("/refusals/0/failing/0/needed", 1), ("/refusals/0/failing/1/slice_from_us", 1_900)] {
        assert_eq!(check(&impossible, &changed(&refusal, pointer, to.into())), Some(7), "{pointer}");
    }
    assert_eq!(check(&busy(), &refusal), Some(7));
}

#[rstest]
#[case::nobody("residents: []", "residents: a shared GPU needs at least one resident")]
#[case::slice("residents: [{ name: a }]\nslice_us: 0", "slice_us: 0 is out of range 1000..=30000")]
#[case::negative("residents: [{ name: a, demand: { burst_us: -1, period_us: 5 } }]", "residents[0].demand.burst_us")]
#[case::field("residents: [{ name: a, wieght: 2 }]", "residents[0].wieght")]
#[case::scheduler("residents: [{ name: a }]\nscheduler: fair", "scheduler: unknown value `fair`")]
#[case::schema("residents: [{ name: a }]\nschema: v2", "schema: unknown schema `v2`")]
#[case::list("[]", "expected a document with `residents`")]
fn shared_gpus_with_faults_are_refused(#[case] text: &str, #[case] says: &str) {
    let file = scratch(&format!("shared-{}.yaml", says.len()), text);
    let out = slicewise(&["timeshare", &file, "--json"]);
    assert_eq!(out.status.code(), Some(3));
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(errors.contains(says), "{errors}");
}

#[test]
fn a_horizon_that_no_run_holds_is_an_error() {
    for horizon in ["0", "99999999999999"] {
        let out = slicewise(&["timeshare", &busy(), "--horizon-us", horizon]);
        assert_eq!(out.status.code(), Some(3));
        assert!(String::from_utf8_lossy(&out.stderr).contains("horizon_us"));
    }
}

#[test]
fn models_are_sized_from_flags_and_files() {
    let flags = ["--parameters", "8.03b", "--layers", "32", "--kv-heads", "8", "--head-dim", "128", "--hidden", "4096"];
    let more = ["--context", "8192", "--concurrency", "16", "--gpu", "a100-80gb", "--json"];
    let by_flags = json(&[&["size"][..], &flags, &more].concat());
    let model =
        "parameters: 8030000000, layers: 32, kv_heads: 8, head_dim: 128, hidden: 4096, context: 8192, concurrency: 16";
    let file = scratch("size.yaml", &format!("schema: slicewise/v1\nmodel: {{{model}}}\ngpu: a100-80gb\n"));
    assert_eq!(by_flags, json(&["size", &file, "--json"]));
    let fit = |name: &str| {
        let all = by_flags["profiles"].as_array().unwrap();
        all.iter().find(|p| p["profile"] == name).map(|p| p["fit"].clone()).unwrap()
    };
    assert_eq!((fit("3g.40gb"), fit("2g.20gb")), ("holds".into(), "too_small".into()));
}

#[test]
fn a_place_is_recommended_and_settings_are_advised() {
    let question = scratch(
        "recommend.yaml",
        "workload:\n  class: inference\n  whole_gpu:\n    - {batch: 1, milli_items_per_s: 200000}\n    \
         - {batch: 8, milli_items_per_s: 1600000}\n    - {batch: 128, milli_items_per_s: 2550000}\n  \
         latency_max_us: 30000\n  rate_min_milli: 500000\ngpu: {model: a100-80gb, micro_per_hour: 3000000}\n",
    );
    let found = json(&["recommend", &question, "--json"]);
    assert_eq!(found["best"]["candidate"], "1g.10gb");
    let human = slicewise(&["recommend", &question]);
    assert!(human.status.success() && String::from_utf8_lossy(&human.stdout).starts_with("1g.10gb"));

    let question =
        scratch("advise.json", r#"{"sharing": "mps", "class": "inference", "tenants": 4, "memory_mib": 40000}"#);
    let advice = json(&["advise", &question, "--json"]);
    assert_eq!((&advice[0]["id"], &advice[0]["value"]), (&"mps-percentage".into(), &"50".into()));

    let slip = scratch("slip.yaml", "sharing: mps\nclass: inference\ntenants: 0\n");
    let out = slicewise(&["advise", &slip]);
    assert_eq!(out.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&out.stderr).contains("tenants"));
}

/// Counts and placement ids of a board, with the status that tells how well they are known.
#[rstest]
#[case("L40S", "L40S-8C", 6, Some(4), &[0, 16, 24, 40], "published")]
#[case("26b9", "L40S-8Q", 6, Some(4), &[0, 16, 24, 40], "derived")]
#[case("H20", "H20-24C", 4, Some(2), &[0, 24, 48, 72], "uncertain")]
#[case("T4", "T4-4C", 4, None, &[], "published")]
#[case("DC", "DC-12C", 8, Some(8), &[0, 12, 24, 36, 48, 60, 72, 84], "derived")]
fn vgpu_types_are_listed(
    #[case] board: &str,
    #[case] name: &str,
    #[case] equal: u64,
    #[case] mixed: Option<u64>,
    #[case] ids: &[u64],
    #[case] status: &str,
) {
    let answer = json(&["vgpu-types", board, "--json"]);
    let types = answer["types"].as_array().unwrap();
    let one = types.iter().find(|t| t["name"] == name).unwrap();
    assert_eq!(one["max_per_gpu_equal_size"].as_u64(), Some(equal));
    assert_eq!(one["max_per_gpu_mixed_size"].as_u64(), mixed);
    let found = one["placement"]["mixed_size_ids"].as_array();
    let found: Vec<u64> = found.into_iter().flatten().map(|id| id.as_u64().unwrap()).collect();
    assert_eq!(found, ids);
    assert_eq!(one["status"], status);
}

#[test]
fn unknown_boards_are_refused() {
    let out = slicewise(&["vgpu-types", "L99"]);
    assert_eq!(out.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&out.stderr).contains("unknown vGPU board `L99`"));
}

#[test]
fn draws_caps_and_who_is_slowed_are_shown() {
    let state = "racks: [{ name: r, power_cap: { limit_w: 60, throttle: true } }]
nodes:
  - { name: n, rack: r, power_cap: { limit_w: 80 }, gpus: [{ model: t4 }] }
leases:
  - { name: a, placements: [{ node: n, gpu: 0, kind: whole }] }
";
    let state = scratch("power.yaml", state);
    let answer = json(&["power", "--state", &state, "--json"]);
    assert_eq!((&answer["nodes"][0]["draw_mw"], &answer["racks"][0]["cap_w"]), (&70_000.into(), &60.into()));
    assert_eq!((&answer["slowed"][0]["name"], &answer["slowed"][0]["share_mw"]), (&"a".into(), &50_000.into()));
    let shown = String::from_utf8_lossy(&slicewise(&["power", "--state", &state]).stdout).into_owned();
    assert!(shown.contains("70.0 W") && shown.contains("83.33 % to 94.10 %"), "{shown}");
    let shown = String::from_utf8_lossy(&slicewise(&["catalog", "t4"]).stdout).into_owned();
    assert!(shown.contains("Power: 10 W idle, 70 W full (published)"), "{shown}");
    let request = scratch("power-request.yaml", "{ name: b, any_of: [node_only: {}] }\n");
    let shown = slicewise(&["place", "--state", &state, "--requests", &request]).stdout;
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(shown.contains("node n draws 70.0 W of 80 W, was 70.0 W"), "{shown}");
}
