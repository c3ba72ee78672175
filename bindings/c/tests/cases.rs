//! The case files through a program in C: the same bytes as through the Rust API, which are those of the command.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

mod common;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Linkage, compile, installed, scratch, source};
use slicewise::{Engine, Error, Verdict, formats};
use slicewise_tests::cases::{Case, request};

/// What is to be done, one line each, and what must come out.
struct Script {
    engine: Engine,
    lines: String,
    expected: String,
}

impl Script {
    /// Decides and explains; commits if `commit`. False if there is nothing to commit.
    fn decide(&mut self, file: &Path, text: &str, commit: bool) {
        fs::write(file, text).unwrap();
        let _ = writeln!(self.lines, "decide {0}\nexplain {0}", file.display());
        let workload = request(&formats::read("request", text).unwrap()).unwrap();
        match self.engine.answer(std::slice::from_ref(&workload)) {
            Ok(answers) => {
                self.expect(&answers);
                self.expect(&self.engine.explain(&workload).unwrap());
                let answer = answers.iter().next().unwrap();
                if commit && answer.decision.verdict == Verdict::Admit {
                    self.engine.commit(&workload, &answer.decision).unwrap();
                    self.lines.push_str("commit\n");
                    let _ = writeln!(self.expected, "0 {}", self.engine.version());
                }
            }
            Err(error) => (0..2).for_each(|_| self.fail(&error)),
        }
    }

    fn expect(&mut self, value: &impl serde::Serialize) {
        self.expected += &serde_json::to_string_pretty(value).unwrap();
        self.expected.push('\n');
    }

    fn fail(&mut self, error: &Error) {
        let _ = writeln!(self.expected, "{} {error}", error.number());
    }
}

fn script(path: &Path, scratch: &Path) -> Script {
    let stem = path.file_stem().unwrap().to_string_lossy();
    let case: Case = formats::read(&stem, &fs::read_to_string(path).unwrap()).unwrap();
    let state = formats::read_state("state", &case.state.to_string()).unwrap();
    fs::write(scratch.join("state.json"), case.state.to_string()).unwrap();
    let mut script = Script { engine: Engine::new(&state).unwrap(), lines: String::new(), expected: String::new() };
    let mut named = 0;
    for (i, step) in case.steps.iter().enumerate() {
        let file = scratch.join(format!("{i}.json"));
        if let Some(asked) = step.decide.as_ref().or(step.admit.as_ref()) {
            script.decide(&file, &asked.to_string(), step.admit.is_some());
        } else if let Some(each) = &step.admit_each {
            for _ in 0..each.count {
                let mut asked = each.request.clone();
                asked.as_object_mut().unwrap().insert("name".into(), format!("each-{named}").into());
                named += 1;
                script.decide(&scratch.join(format!("each-{named}.json")), &asked.to_string(), true);
            }
        } else if let Some(name) = &step.release {
            script.engine.release(name).unwrap();
            let _ = writeln!(script.lines, "release {name}");
            let _ = writeln!(script.expected, "0 {}", script.engine.version());
        }
    }
    script.lines.push_str("snapshot\n");
    script.expected += &formats::write_state(&script.engine.snapshot());
    script
}

#[test]
fn cases_give_the_same_bytes_as_in_rust() {
    let program = compile(&installed("replay"), &[source("tests/c/replay.c")], Linkage::Shared, &[]);
    let mut compared = 0;
    for entry in fs::read_dir(source("../../tests/cases")).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let scratch = scratch(&format!("replay/{stem}"));
        let script = script(&path, &scratch);
        let lines = scratch.join("lines");
        fs::write(&lines, &script.lines).unwrap();
        let mut command = Command::new(&program);
        command.arg(scratch.join("state.json")).stdin(Stdio::from(fs::File::open(lines).unwrap()));
        let output = common::run(&mut command);
        let actual = String::from_utf8(output.stdout).unwrap();
        if actual != script.expected {
            let differs = actual.lines().zip(script.expected.lines()).find(|(actual, expected)| actual != expected);
            panic!("{stem}: the first line that differs, C and Rust: {differs:?}");
        }
        compared += 1;
    }
    assert!(compared >= 31, "only {compared} cases compared");
}
