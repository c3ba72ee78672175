//! One file per command.

mod advise;
mod catalog;
mod decide;
mod explain;
mod export;
mod import;
mod layouts;
mod place;
mod plan;
mod power;
mod recommend;
mod replay;
mod serve;
mod size;
mod timeshare;
mod verify;
mod vgpu_types;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use slicewise::{Engine, Policy, Verdict};

use crate::failure::Failure;
use crate::io::Text;

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Turn listings of nvidia-smi, mig-parted, Kubernetes or traces into a state document.
    Import(import::Import),
    /// Count and draw the layouts of a GPU model.
    Layouts(layouts::Layouts),
    /// Show the models and profiles that are known.
    Catalog(catalog::Show),
    /// Decide requests one by one; print the verdicts and change nothing.
    Decide(decide::Decide),
    /// Place requests one by one and write the new state.
    Place(place::Place),
    /// Plan a batch of requests at once, with a bound on how good any plan could be.
    Plan(plan::PlanBatch),
    /// Find the fewest GPUs that serve inference models within their latency objectives.
    Serve(serve::Serve),
    /// Replay a published trace under the product's policies or published ones.
    #[command(subcommand)]
    Replay(replay::Replay),
    /// Say why a request does not fit and what would help.
    Explain(explain::Explain),
    /// Check a state, a decision or a plan from anywhere.
    Verify(verify::Verify),
    /// Show the vGPU types of a board.
    VgpuTypes(vgpu_types::VgpuTypes),
    /// Show what nodes and racks draw, and who is slowed by power limits and caps.
    Power(power::Power),
    /// Share one GPU in time: what each resident gets, and which scheduler keeps every promise.
    Timeshare(timeshare::TimeshareArgs),
    /// Write nvidia-smi commands, mig-parted configurations or documents.
    Export(export::Export),
    /// Say how much memory a model needs and which profiles hold it.
    Size(size::Size),
    /// Pick a place, batch and number of processes by predicted cost.
    Recommend(recommend::Recommend),
    /// List settings that go with a placement, and why.
    Advise(advise::Advise),
}

impl Command {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Import(c) => c.run(),
            Self::Layouts(c) => c.run(),
            Self::Catalog(c) => c.run(),
            Self::Decide(c) => c.run(),
            Self::Place(c) => c.run(),
            Self::Plan(c) => c.run(),
            Self::Serve(c) => c.run(),
            Self::Replay(c) => c.run(),
            Self::Explain(c) => c.run(),
            Self::Verify(c) => c.run(),
            Self::VgpuTypes(c) => c.run(),
            Self::Power(c) => c.run(),
            Self::Timeshare(c) => c.run(),
            Self::Export(c) => c.run(),
            Self::Size(c) => c.run(),
            Self::Recommend(c) => c.run(),
            Self::Advise(c) => c.run(),
        }
    }
}

/// The fleet that a command works on.
#[derive(Args)]
pub struct FleetArgs {
    /// State document (JSON or YAML; `-` for standard input).
    #[arg(long = "state", alias = "fleet", value_name = "FILE")]
    pub state: PathBuf,
    /// How places are ranked: a policy's name, terms joined by commas, or `@FILE` with a
    /// policy document (terms, demand mix, moves).
    #[arg(long, value_name = "POLICY", default_value = "default", value_parser = parse_policy)]
    pub policy: Policy,
}

impl FleetArgs {
    /// Reads the state.
    pub fn load(&self) -> Result<(Text, Engine), Failure> {
        let text = Text::read(&self.state)?;
        let state = text.state()?;
        let engine = Engine::builder().policy(self.policy.clone()).build(&state);
        let engine = engine.map_err(|e| Failure::engine(&text, e))?;
        Ok((text, engine))
    }
}

/// A policy by name, or terms such as `fewest_lost_placements,best_fit`.
fn parse_policy(name: &str) -> Result<Policy, String> {
    if let Some(path) = name.strip_prefix('@') {
        let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
        return slicewise::formats::read(path, &text).map_err(|e| e.to_string());
    }
    if let Some(policy) = Policy::named(name) {
        return Ok(policy);
    }
    let term = |t: &str| serde_json::from_value(serde_json::Value::String(t.trim().replace('-', "_")));
    let terms: Result<Vec<_>, _> = name.split(',').map(term).collect();
    terms
        .map(|terms| Policy::of(&terms))
        .map_err(|_| format!("no policy or term of that name; policies are {}", Policy::NAMES.join(", ")))
}

/// The exit code of a verdict.
pub fn exit_code(verdict: Verdict) -> ExitCode {
    ExitCode::from(match verdict {
        Verdict::Admit => 0,
        Verdict::Wait => 4,
        Verdict::Reject => 5,
        Verdict::Undecided => 6,
    })
}

/// The name of a verdict.
pub fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Admit => "admit",
        Verdict::Wait => "wait",
        Verdict::Reject => "reject",
        Verdict::Undecided => "undecided",
    }
}
