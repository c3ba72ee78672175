//! Runs steps one after the other and says how each went.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::args::Run;
use crate::c;
use crate::context::{Context, Stop};
use crate::say;
use crate::steps::Step;

/// How a step went.
#[derive(Debug)]
struct Line {
    name: &'static str,
    outcome: &'static str,
    time: Duration,
    remark: String,
}

/// Runs the steps up to the first that fails, then prints the summary.
pub fn run(run: &Run) -> ExitCode {
    let context = match Context::new(run.install) {
        Ok(context) => context,
        Err(stop) => {
            say(&failure("xtask", &stop));
            return ExitCode::FAILURE;
        }
    };
    let mut lines = Vec::new();
    let mut failed = None;
    for step in &run.steps {
        let (line, stop) = run_step(&context, step);
        let end = format!("== {} {}, {}: {}", line.name, seconds(line.time), line.outcome, line.remark);
        say(end.trim_end_matches(": "));
        lines.push(line);
        if stop.is_some() {
            failed = stop.map(|stop| failure(step.name, &stop));
            break;
        }
    }
    let names: Vec<&str> = run.steps.iter().map(|step| step.name).collect();
    say(&summary(&lines, &names));
    match failed {
        None => ExitCode::SUCCESS,
        Some(text) => {
            say(&text);
            ExitCode::FAILURE
        }
    }
}

/// Installs the C library.
pub fn install(prefix: &Path) -> ExitCode {
    match Context::new(false).and_then(|context| c::install(&context, prefix)) {
        Ok(()) => {
            say(&format!("installed below {}", prefix.display()));
            ExitCode::SUCCESS
        }
        Err(stop) => {
            say(&failure("xtask", &stop));
            ExitCode::FAILURE
        }
    }
}

fn run_step(context: &Context, step: &Step) -> (Line, Option<Stop>) {
    say(&format!("\n== {}: {}", step.name, step.about));
    let start = Instant::now();
    let result = (step.run)(context);
    let (outcome, remark, stop) = match result {
        Ok(remark) => ("passed", remark, None),
        Err(Stop::Skip(remark)) => ("skipped", remark, None),
        Err(stop) => ("FAILED", String::new(), Some(stop)),
    };
    (Line { name: step.name, outcome, time: start.elapsed(), remark }, stop)
}

/// What to read after a failure: what happened, and the commands that show it again.
fn failure(step: &str, stop: &Stop) -> String {
    let Stop::Fail { what, repeat } = stop else { return String::new() };
    let mut text = format!("FAILED {step}: {what}");
    if let Some(repeat) = repeat {
        text.push_str(&format!("\nrepeat: {repeat}"));
    }
    if step != "xtask" {
        text.push_str(&format!("\n    or: cargo xtask {step}"));
    }
    text
}

/// One row for each step that ran, then the count and the steps that did not run.
fn summary(lines: &[Line], names: &[&str]) -> String {
    let mut text = String::from("\n== summary\n");
    for line in lines {
        let row = format!("  {:<11} {:<8} {:>9}  {}", line.name, line.outcome, seconds(line.time), line.remark);
        text.push_str(row.trim_end());
        text.push('\n');
    }
    let count = |outcome| lines.iter().filter(|line| line.outcome == outcome).count();
    let total = lines.iter().map(|line| line.time).sum();
    text.push_str(&format!("{} passed, {} skipped, {} failed", count("passed"), count("skipped"), count("FAILED")));
    if let Some(left) = names.get(lines.len()..).filter(|left| !left.is_empty()) {
        text.push_str(&format!(", not run: {}", left.join(" ")));
    }
    text.push_str(&format!("; {}", seconds(total)));
    text
}

fn seconds(time: Duration) -> String {
    format!("{}.{} s", time.as_secs(), time.subsec_millis() / 100)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Line, failure, seconds, summary};
    use crate::context::Stop;

    fn line(name: &'static str, outcome: &'static str, remark: &str) -> Line {
        Line { name, outcome, time: Duration::from_millis(1250), remark: remark.into() }
    }

    #[test]
    fn the_summary_counts_and_names_what_did_not_run() {
        let lines = [line("fmt", "passed", ""), line("wasm", "skipped", "needs x: y"), line("docs", "FAILED", "")];
        let expected = "\n== summary\n  \
            fmt         passed       1.2 s\n  \
            wasm        skipped      1.2 s  needs x: y\n  \
            docs        FAILED       1.2 s\n\
            1 passed, 1 skipped, 1 failed, not run: deny run-tests; 3.7 s";
        assert_eq!(summary(&lines, &["fmt", "wasm", "docs", "deny", "run-tests"]), expected);
    }

    #[test]
    fn a_clean_summary_names_nothing_more() {
        assert!(summary(&[line("fmt", "passed", "")], &["fmt"]).ends_with("1 passed, 0 skipped, 0 failed; 1.2 s"));
    }

    #[test]
    fn a_failure_prints_the_command_to_repeat() {
        let stop = Stop::Fail { what: "`cargo` ended with 101".into(), repeat: Some("cargo doc".into()) };
        let expected = "FAILED docs: `cargo` ended with 101\nrepeat: cargo doc\n    or: cargo xtask docs";
        assert_eq!(failure("docs", &stop), expected);
    }

    #[test]
    fn seconds_have_one_digit() {
        assert_eq!(seconds(Duration::from_millis(61_999)), "61.9 s");
    }
}
