//! `slicewise plan`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use slicewise::{BoundOf, BoundSource, Objective, Plan, PlanAnswer, Progress};

use super::FleetArgs;
use super::explain::mode_change;
use crate::failure::Failure;
use crate::io::{self, Text};
use crate::{draw, table};

/// Changes of mode, and refused requests, that are listed one by one.
const LISTED_MAX: usize = 20;

/// Plan a batch of requests at once.
#[derive(Args)]
pub struct PlanBatch {
    #[command(flatten)]
    fleet: FleetArgs,
    /// Requests (JSON, YAML or CSV with the header `profile,count`).
    #[arg(long = "requests", alias = "request", value_name = "FILE")]
    requests: PathBuf,
    /// What to plan for first.
    #[arg(long, value_enum, default_value = "most-value")]
    objective: Goal,
    /// Print the plan as JSON.
    #[arg(long)]
    json: bool,
    /// Write the plan to a file, for `verify` and `export`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Goal {
    /// The most value admitted.
    MostValue,
    /// As many members as possible, then the fewest GPUs.
    FewestGpus,
}

impl PlanBatch {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (_, engine) = self.fleet.load()?;
        let text = Text::read(&self.requests)?;
        let requests = text.requests()?;
        let objective = match self.objective {
            Goal::MostValue => Objective::MostValue,
            Goal::FewestGpus => Objective::FewestGpus,
        };
        let bar = if self.json { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        let plan = engine.plan_with(&requests, objective, &mut |progress| {
            bar.set_message(say(progress));
            bar.tick();
        });
        bar.finish_and_clear();
        let plan = plan.map_err(|e| Failure::engine(&text, e))?;
        if let Some(path) = &self.out {
            let json = serde_json::to_string_pretty(&plan).unwrap_or_default();
            io::write(path, &format!("{json}\n"))?;
        }
        if self.json {
            io::print_json(&PlanAnswer::from(&plan))?;
            return Ok(ExitCode::SUCCESS);
        }
        io::print(&render(&plan))?;
        let mut after = engine.clone();
        after.adopt(&plan).map_err(|e| Failure::engine(&text, e))?;
        io::print(&draw::difference(engine.ledger(), after.ledger()))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// How far a plan is, in words.
fn say(progress: Progress) -> String {
    match progress {
        Progress::Read { demands, rooms } => format!("{demands} kinds of request, {rooms} kinds of free room"),
        Progress::Columns { columns } => format!("{columns} patterns"),
        Progress::Bound { bound } => format!("no plan is better than {bound}"),
        Progress::Found { value, gpus_opened } => format!("found value {value}, opening {gpus_opened} GPUs"),
        _ => String::new(),
    }
}

/// A plan in words.
fn render(plan: &Plan) -> String {
    let mut rows =
        table::table(&["admitted", "refused", "value", "GPUs used", "GPUs opened", "nodes opened", "method"]);
    let numbers = [plan.admitted, plan.refused, plan.value, plan.gpus_used, plan.gpus_opened, plan.nodes_opened];
    let method = serde_json::to_value(plan.method).ok().and_then(|v| v.as_str().map(String::from)).unwrap_or_default();
    rows.add_row(numbers.map(|n| n.to_string()).into_iter().chain([method]));
    let (what, side) = match plan.bound_of {
        BoundOf::Value => ("value", "No plan is worth more than"),
        BoundOf::Members => ("members", "No plan admits more than"),
        BoundOf::Gpus => ("GPUs opened", "No plan for all of this opens fewer than"),
    };
    let source = match plan.bound_source {
        BoundSource::Prices => "proved from prices, in integers",
        BoundSource::Demand => "proved: it is all that was asked",
        BoundSource::Solver => "by the solver's word, not proved",
    };
    let mut text = format!("{rows}\n{side} {} ({what}; {source}); gap {}.\n", plan.bound, table::percent(plan.gap_ppm));
    if !plan.relaxed.is_empty() {
        text.push_str(&format!("The bound leaves out: {}.\n", plan.relaxed.join(", ")));
    }
    text.push_str(if plan.verified { "Checked by the verifier.\n" } else { "NOT VERIFIED.\n" });
    for change in plan.mode_changes.iter().take(LISTED_MAX) {
        text.push_str(&format!("  {}\n", mode_change(change)));
    }
    if plan.mode_changes.len() > LISTED_MAX {
        text.push_str(&format!("  … and of {} more GPUs\n", plan.mode_changes.len() - LISTED_MAX));
    }
    for refusal in plan.refusals.iter().take(LISTED_MAX) {
        text.push_str(&format!("  refused: {} of {}\n", refusal.members, refusal.workload));
    }
    if plan.refusals.len() > LISTED_MAX {
        text.push_str(&format!("  … and {} more requests\n", plan.refusals.len() - LISTED_MAX));
    }
    text
}
