//! `slicewise decide`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use slicewise::{Answer, Answers, Verdict, verify};

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
            answers.push(Answer::new(decision, explanation));
        }
        let answers = Answers::from(answers);
        if self.json {
            io::print_json(&answers)?;
            return Ok(exit_code(answers.verdict()));
        }
        for answer in answers.iter() {
            io::print(&explain::render(&answer.decision, &answer.conflict, &answer.remedies))?;
        }
        io::print(&draw::difference(before.ledger(), engine.ledger()))?;
        Ok(exit_code(answers.verdict()))
    }
}
