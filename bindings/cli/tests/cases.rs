//! The case files through the command: the same bytes as through the Rust API.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use slicewise::{Engine, formats};
use slicewise_tests::cases::{Case, answer, request};

fn slicewise(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slicewise")).args(args).output().unwrap()
}

fn scratch(name: &str, text: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cases");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Decisions before the state changes, so that the command sees the same state.
#[test]
fn decisions_are_the_same_bytes_as_in_rust() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut compared = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let case: Case = formats::read(&stem, &std::fs::read_to_string(&path).unwrap()).unwrap();
        let state = formats::read_state("state", &case.state.to_string()).unwrap();
        let engine = Engine::new(&state).unwrap();
        let state_file = scratch(&format!("{stem}-state.json"), &case.state.to_string());
        for (i, step) in case.steps.iter().enumerate() {
            let Some(value) = step.decide.as_ref().or(step.admit.as_ref()) else { break };
            let request_file = scratch(&format!("{stem}-{i}.json"), &value.to_string());
            let (state_arg, request_arg) = (state_file.to_str().unwrap(), request_file.to_str().unwrap());
            let out = slicewise(&["decide", "--state", state_arg, "--request", request_arg, "--json"]);
            let workload = request(value).unwrap();
            match engine.decide(&workload) {
                Ok(decision) => {
                    let expected = answer(&engine, &workload, &decision).unwrap();
                    let actual: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
                    assert_eq!(actual, expected, "{stem} step {i}");
                    // The C library is compared with these bytes.
                    let bytes = serde_json::to_string_pretty(&engine.answer(&[workload]).unwrap()).unwrap() + "\n";
                    assert_eq!(String::from_utf8_lossy(&out.stdout), bytes, "{stem} step {i}");
                    let verdict = expected["verdict"].as_str().unwrap();
                    let code = match verdict {
                        "admit" => 0,
                        "wait" => 4,
                        "reject" => 5,
                        _ => 6,
                    };
                    assert_eq!(out.status.code(), Some(code), "{stem} step {i}");
                }
                Err(error) => {
                    assert_eq!(out.status.code(), Some(3), "{stem} step {i}");
                    let message = String::from_utf8_lossy(&out.stderr).into_owned();
                    assert!(message.contains("unknown_profile"), "{message}\n{error}");
                }
            }
            compared += 1;
            if step.admit.is_some() {
                break;
            }
        }
    }
    assert!(compared >= 12, "only {compared} decisions compared");
}
