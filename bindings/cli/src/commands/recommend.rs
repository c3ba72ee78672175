//! `slicewise recommend`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use slicewise::perf::Range;
use slicewise::perf::recommend::{Choice, Loss, Recommendation, recommend};
use slicewise::{Catalog, formats};

use crate::failure::{BAD_INPUT, Failure};
use crate::io::{self, Text};
use crate::table::{self, decimal};

/// Pick the place, batch and number of processes that meet a workload's needs at least cost,
/// with predicted figures. Exit code 5 if none does.
#[derive(Args)]
pub struct Recommend {
    /// Question (JSON or YAML; `-` for standard input).
    file: PathBuf,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

impl Recommend {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let catalog = Catalog::built_in().map_err(|e| Failure::plain(BAD_INPUT, e.to_string()))?;
        let text = Text::read(&self.file)?;
        let ask = formats::read_recommend(&text.name, &text.content).map_err(|e| Failure::read(&text, &e))?;
        let found = recommend(&ask, &catalog).map_err(|e| Failure::input(&text, &e))?;
        if self.json {
            io::print_json(&found)?
        } else {
            io::print(&render(&found))?
        }
        Ok(if found.best.is_some() { ExitCode::SUCCESS } else { ExitCode::from(5) })
    }
}

fn render(found: &Recommendation) -> String {
    let mut rows =
        table::table(&["place", "batch × processes", "items/s", "latency ms", "MiB", "places", "cost/h", "why not"]);
    for choice in found.best.iter().chain(&found.others) {
        rows.add_row(row(choice));
    }
    let mut text = match &found.best {
        Some(best) => format!("{}{}\n", best.candidate, if best.certain { "" } else { " (by expected figures)" }),
        None => "no place meets what is needed\n".into(),
    };
    text.push_str(&format!("{rows}\n"));
    if let Some(steps) = found.accumulate_steps {
        text.push_str(&format!("add gradients over {steps} steps to reach the batch\n"));
    }
    if let Some(c) = found.checkpoint {
        text.push_str(&format!("checkpoint every {} s: {} of the time\n", c.every_s, table::percent(c.loss_ppm)));
    }
    if let (Some(notebooks), Some(idle)) = (found.notebooks_per_place, found.idle_reclaim_s) {
        text.push_str(&format!("{notebooks} notebooks share a place; take it back after {idle} s without work\n"));
    }
    text
}

fn row(choice: &Choice) -> [String; 8] {
    let p = &choice.predicted;
    [
        choice.candidate.clone(),
        format!("{} × {}", p.batch, p.processes),
        thousandths(p.throughput_milli),
        thousandths(p.latency_us),
        p.memory_mib.map_or_else(|| "?".into(), |mib| format!("{} to {}", mib.low, mib.high)),
        p.places.to_string(),
        decimal(p.micro_per_hour / 10_000),
        choice.loses.iter().map(why).collect::<Vec<_>>().join("; "),
    ]
}

/// The expected value and its ends, from thousandths.
fn thousandths(range: Range) -> String {
    let of = |value: u64| format!("{}.{}", value / 1000, value % 1000 / 100);
    format!("{} ({} to {})", of(range.expected), of(range.low), of(range.high))
}

fn why(loss: &Loss) -> String {
    match loss {
        Loss::Memory { needed_mib, there_mib } => format!("needs {needed_mib} MiB of {there_mib}"),
        Loss::Latency { expected_us, max_us } => format!("{expected_us} us, at most {max_us}"),
        Loss::Overhead { expected_ppm, max_ppm } => {
            format!("loses {}, at most {}", table::percent(*expected_ppm), table::percent(*max_ppm))
        }
        Loss::Cost { more_ppm } => format!("costs {} more", table::percent(*more_ppm)),
        Loss::Order => "costs the same".into(),
    }
}
