//! `slicewise verify`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use slicewise::{Decision, Plan, verify};

use super::FleetArgs;
use crate::failure::{BAD_INPUT, Failure, UNVERIFIED};
use crate::io::{self, Text};

/// Check a state, and a plan or decision made on it, with code that shares nothing with
/// the engine.
#[derive(Args)]
pub struct Verify {
    #[command(flatten)]
    fleet: FleetArgs,
    /// The requests that the plan or decision answers.
    #[arg(long = "requests", alias = "request", value_name = "FILE")]
    requests: Option<PathBuf>,
    /// A plan, from anywhere.
    #[arg(long, value_name = "FILE", requires = "requests")]
    plan: Option<PathBuf>,
    /// A decision, from anywhere.
    #[arg(long, value_name = "FILE", requires = "requests", conflicts_with = "plan")]
    decision: Option<PathBuf>,
}

/// A decision as `decide --json` prints it: with what is not part of the decision.
#[derive(Deserialize)]
struct Answer {
    #[serde(flatten)]
    decision: Decision,
}

impl Verify {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (text, engine) = self.fleet.load()?;
        let state = text.state()?;
        let catalog = engine.ledger().catalog();
        let refused = |e: verify::Violation| Failure::plain(UNVERIFIED, format!("refused: {e}"));
        verify::state(catalog, &state).map_err(refused)?;
        let requests = self.requests.as_ref().map(|f| Text::read(f)?.requests()).transpose()?.unwrap_or_default();
        if let Some(path) = &self.plan {
            let plan: Plan = Text::read(path)?.json()?;
            let checked = verify::plan(catalog, &state, &requests, &plan).map_err(refused)?;
            let proof = match checked {
                verify::Checked::Full => "its bound is proved",
                verify::Checked::Partial => "its bound is not proved",
            };
            io::print(&format!("the plan is legal; {proof}\n"))?;
        } else if let Some(path) = &self.decision {
            let Answer { decision } = Text::read(path)?.json()?;
            let workload = requests
                .iter()
                .find(|w| w.name == decision.workload)
                .ok_or_else(|| Failure::plain(BAD_INPUT, format!("no request named `{}`", decision.workload)))?;
            let moves = engine.ledger().policy().allow_moves;
            let checked = verify::decision(catalog, &state, workload, &decision, moves).map_err(refused)?;
            let how = match checked {
                verify::Checked::Full => "checked in full",
                verify::Checked::Partial => "legal; the refusal was too large to search again",
            };
            io::print(&format!("the decision is right: {how}\n"))?;
        } else {
            io::print("the state is legal\n")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
