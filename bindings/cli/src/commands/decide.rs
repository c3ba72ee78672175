//! `slicewise decide`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use slicewise::{Decision, Remedy, Verdict, verify};

use super::{FleetArgs, exit_code};
use crate::failure::{Failure, UNVERIFIED};
use crate::io::{self, Text};
use crate::{commands::explain, draw};

/// Decide requests one by one, each on the state that the ones before it leave.
#[derive(Args)]
pub struct Decide {
    #[command(flatten)]
    fleet: FleetArgs,
    /// Request, or list of requests (JSON, YAML or CSV).
    #[arg(long = "request", alias = "requests", value_name = "FILE")]
    request: PathBuf,
    /// Print the decision as JSON; several are in `decisions`.
    #[arg(long)]
    json: bool,
}

/// A decision with what would help, as printed.
#[derive(Serialize)]
pub struct Answer {
    #[serde(flatten)]
    decision: Decision,
    remedies: Vec<Remedy>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conflict: Vec<String>,
}

#[derive(Serialize)]
struct Answers {
    verdict: Verdict,
    decisions: Vec<Answer>,
}

impl Decide {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (_, mut engine) = self.fleet.load()?;
        let text = Text::read(&self.request)?;
        let requests = text.requests()?;
        let before = engine.clone();
        let mut answers = Vec::new();
        for request in &requests {
            let fail = |e| Failure::engine(&text, e);
            let decision = engine.decide(request).map_err(fail)?;
            // The engine has checked it already; this is the check that any document gets.
            let moves = engine.ledger().policy().allow_moves;
            verify::decision(engine.ledger().catalog(), &engine.snapshot(), request, &decision, moves)
                .map_err(|v| Failure::plain(UNVERIFIED, format!("refused by the checker: {v}")))?;
            let explanation = engine.explain(request).map_err(fail)?;
            if decision.verdict == Verdict::Admit {
                engine.commit(request, &decision).map_err(fail)?;
            }
            let slicewise::Explanation { conflict, remedies, .. } = explanation;
            answers.push(Answer { decision, remedies, conflict });
        }
        let refused = answers.iter().map(|a| a.decision.verdict).find(|v| *v != Verdict::Admit);
        let verdict = refused.unwrap_or(Verdict::Admit);
        if self.json {
            match <[Answer; 1]>::try_from(answers) {
                Ok([answer]) => io::print_json(&answer)?,
                Err(decisions) => io::print_json(&Answers { verdict, decisions })?,
            }
            return Ok(exit_code(verdict));
        }
        for answer in &answers {
            io::print(&explain::render(&answer.decision, &answer.conflict, &answer.remedies))?;
        }
        io::print(&draw::difference(before.ledger(), engine.ledger()))?;
        Ok(exit_code(verdict))
    }
}
