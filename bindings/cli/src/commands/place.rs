//! `slicewise place`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use slicewise::{Code, Verdict, write_state};

use super::FleetArgs;
use crate::failure::Failure;
use crate::io::{self, Text};
use crate::{draw, table};

/// Requests from which on a progress bar is shown.
const LONG: usize = 1_000;

/// Place requests one by one, in order; what does not fit is left out.
#[derive(Args)]
pub struct Place {
    #[command(flatten)]
    fleet: FleetArgs,
    /// Requests (JSON, YAML or CSV).
    #[arg(long = "requests", alias = "request", value_name = "FILE")]
    requests: PathBuf,
    /// Write the state that results.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print a summary as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Default, Serialize)]
struct Summary {
    requests: usize,
    admitted: usize,
    refused: usize,
    undecided: usize,
    version: u64,
    /// By reason: how many requests it kept out, alone or with others.
    reasons: BTreeMap<&'static str, usize>,
    refusals: Vec<Refused>,
}

#[derive(Serialize)]
struct Refused {
    workload: String,
    verdict: Verdict,
    proved: bool,
    reasons: Vec<Code>,
}

impl Place {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (_, mut engine) = self.fleet.load()?;
        let text = Text::read(&self.requests)?;
        let requests = text.requests()?;
        let before = engine.clone();
        let bar = if requests.len() >= LONG { ProgressBar::new(requests.len() as u64) } else { ProgressBar::hidden() };
        let mut summary = Summary { requests: requests.len(), ..Summary::default() };
        for request in &requests {
            let fail = |e| Failure::engine(&text, e);
            let decision = engine.decide(request).map_err(fail)?;
            bar.inc(1);
            if decision.verdict == Verdict::Admit {
                engine.commit(request, &decision).map_err(fail)?;
                summary.admitted += 1;
                continue;
            }
            if decision.verdict == Verdict::Undecided {
                summary.undecided += 1
            } else {
                summary.refused += 1
            }
            let codes: Vec<Code> = decision.reasons.iter().map(|r| r.code).collect();
            codes.iter().for_each(|code| *summary.reasons.entry(code.name()).or_default() += 1);
            let (workload, verdict, proved) = (request.name.clone(), decision.verdict, decision.proved);
            summary.refusals.push(Refused { workload, verdict, proved, reasons: codes });
        }
        bar.finish_and_clear();
        summary.version = engine.version();
        if let Some(path) = &self.out {
            io::write(path, &write_state(&engine.snapshot()))?;
        }
        if self.json {
            io::print_json(&summary)?;
            return Ok(ExitCode::SUCCESS);
        }
        io::print(&draw::difference(before.ledger(), engine.ledger()))?;
        io::print(&draw::power(before.ledger(), engine.ledger()))?;
        let mut rows = table::table(&["requests", "admitted", "refused", "undecided"]);
        rows.add_row([summary.requests, summary.admitted, summary.refused, summary.undecided].map(|n| n.to_string()));
        io::print(&format!("{rows}\n"))?;
        for (reason, count) in &summary.reasons {
            io::print(&format!("  {count:>6} × {reason}\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
