//! `slicewise timeshare`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::{Deserialize, Serialize};
use slicewise::perf::timeshare::simulate::{Figures, figures};
use slicewise::perf::timeshare::{
    self, Answer, Bounds, Choice, Failing, Limit, P99, Refusal, Resident, Run, Setting, Timeshare, keeps,
};
use slicewise::{Verdict, verify};

use super::exit_code;
use crate::failure::{Failure, UNVERIFIED};
use crate::io::{self, Text};
use crate::table::{percent, table};

/// Runs with different first arrivals; the first has all at once.
const RUNS: u64 = 8;

/// What each resident of a shared GPU is guaranteed and measures; or which scheduler, slice
/// and weights keep every promise.
#[derive(Args)]
pub struct TimeshareArgs {
    /// Residents, scheduler and slice (JSON or YAML; `-` for standard input).
    file: PathBuf,
    /// Choose scheduler, slice and weights, even if the document says them.
    #[arg(long)]
    choose: bool,
    /// Seed of the first arrivals.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long each of the simulated runs is.
    #[arg(long, value_name = "US", default_value_t = 10_000_000)]
    horizon_us: u64,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
    /// Do not search: check a choice or refusal that `--json` printed before, or that anyone
    /// claims, with code that shares nothing with the search.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["choose", "json"])]
    check: Option<PathBuf>,
}

/// A refusal as `--json` prints it.
#[derive(Deserialize)]
struct ClaimedRefusal {
    refusals: Option<Vec<Refusal>>,
}

/// A choice as `--json` prints it; the simulation is not part of the claim.
#[derive(Deserialize)]
struct ClaimedChoice {
    #[serde(flatten)]
    setting: Setting,
    overhead_ppm: u64,
    residents: Vec<ClaimedRow>,
}

#[derive(Deserialize)]
struct ClaimedRow {
    closed_form: Bounds,
}

#[derive(Serialize)]
struct Output<'a> {
    /// Of a choice; figures alone are no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    chosen: bool,
    #[serde(flatten)]
    setting: &'a Setting,
    overhead_ppm: u64,
    /// What the jobs ask of the GPU, switches apart; absent if someone is always busy.
    load_ppm: Option<u64>,
    slas_kept: bool,
    residents: Vec<Row<'a>>,
    simulation: Simulation,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    share_ppm: u64,
    wait_p99_us: Option<u64>,
    wait_worst_us: Option<u64>,
    sla_kept: bool,
    closed_form: Bounds,
    simulated: Figures,
}

#[derive(Serialize)]
struct Simulation {
    runs: u64,
    seed: u64,
    horizon_us: u64,
    /// Time spent in switches, over all runs.
    overhead_ppm: u64,
    switches: u64,
}

#[derive(Serialize)]
struct Refused<'a> {
    verdict: Verdict,
    chosen: bool,
    slas_kept: bool,
    refusals: &'a [Refusal],
}

impl TimeshareArgs {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let text = Text::read(&self.file)?;
        let document = text.timeshare()?;
        if let Some(path) = &self.check {
            return check(&document, &Text::read(path)?);
        }
        let choice = match document.scheduler.filter(|_| !self.choose) {
            Some(scheduler) => {
                let setting = document.setting(scheduler);
                let overhead_ppm = timeshare::overhead_ppm(&document.residents, &setting);
                Choice { overhead_ppm, bounds: timeshare::bounds(&document.residents, &setting), setting }
            }
            None => match timeshare::choose(&document).map_err(|e| Failure::input(&text, &e))? {
                Answer::Works(choice) => {
                    verify::timeshare::choice(&document, &choice).map_err(unverified)?;
                    choice
                }
                Answer::Refused(refusals) => {
                    verify::timeshare::refusal(&document, &refusals).map_err(unverified)?;
                    return self.refused(&refusals);
                }
            },
        };
        let runs = self.simulated(&document, &choice.setting).map_err(|e| Failure::input(&text, &e))?;
        let output = self.output(&document, &choice, &runs);
        if self.json {
            io::print_json(&output)?
        } else {
            io::print(&render(&document, &output))?
        }
        Ok(ExitCode::SUCCESS)
    }

    fn simulated(&self, document: &Timeshare, setting: &Setting) -> Result<Vec<Run>, slicewise::InputError> {
        let seeds = std::iter::once(0).chain((0..RUNS - 1).map(|i| self.seed.wrapping_add(i)));
        let run = |seed| {
            let phases = timeshare::phases_of(&document.residents, seed);
            timeshare::simulate(&document.residents, setting, &phases, self.horizon_us)
        };
        seeds.map(run).collect()
    }

    fn output<'a>(&self, document: &'a Timeshare, choice: &'a Choice, runs: &[Run]) -> Output<'a> {
        let row = |(at, (resident, bounds)): (usize, (&'a Resident, &Bounds))| Row {
            name: &resident.name,
            share_ppm: bounds.share_ppm,
            wait_p99_us: bounds.wait_p99_us,
            wait_worst_us: bounds.wait_worst_us,
            sla_kept: keeps(bounds, &resident.sla),
            closed_form: *bounds,
            simulated: figures(runs, at),
        };
        let residents: Vec<Row<'_>> = document.residents.iter().zip(&choice.bounds).enumerate().map(row).collect();
        let slas_kept = residents.iter().all(|r| r.sla_kept);
        let load = |r: &Resident| r.demand.map(|d| (d.burst_us * 1_000_000).checked_div(d.period_us).unwrap_or(0));
        let chosen = self.choose || document.scheduler.is_none();
        let switching: u64 = runs.iter().map(|r| r.switching_us).sum();
        let time: u64 = runs.iter().map(|r| r.horizon_us).sum();
        Output {
            verdict: chosen.then_some(Verdict::Admit),
            chosen,
            setting: &choice.setting,
            overhead_ppm: choice.overhead_ppm,
            load_ppm: document.residents.iter().map(load).sum(),
            slas_kept,
            residents,
            simulation: Simulation {
                runs: RUNS,
                seed: self.seed,
                horizon_us: self.horizon_us,
                overhead_ppm: (switching.saturating_mul(1_000_000)).checked_div(time).unwrap_or(0),
                switches: runs.iter().map(|r| r.switches).sum(),
            },
        }
    }

    fn refused(&self, refusals: &[Refusal]) -> Result<ExitCode, Failure> {
        if self.json {
            io::print_json(&Refused { verdict: Verdict::Reject, chosen: true, slas_kept: false, refusals })?;
        } else {
            let mut text = String::from("reject, proved: no scheduler keeps every promise with any slice\n");
            for refusal in refusals {
                let _ = writeln!(text, "  {}", refusal.scheduler.name());
                for failing in &refusal.failing {
                    let _ = writeln!(text, "    {}", why(failing));
                }
            }
            io::print(&text)?;
        }
        Ok(exit_code(Verdict::Reject))
    }
}

fn unverified(violation: verify::Violation) -> Failure {
    Failure::plain(UNVERIFIED, format!("refused by the checker: {violation}"))
}

/// Checks what someone says of a document.
fn check(document: &Timeshare, claim: &Text) -> Result<ExitCode, Failure> {
    if let ClaimedRefusal { refusals: Some(refusals) } = claim.json()? {
        verify::timeshare::refusal(document, &refusals).map_err(unverified)?;
        io::print("the refusal is right: no scheduler that may be chosen keeps every promise\n")?;
    } else {
        let ClaimedChoice { setting, overhead_ppm, residents } = claim.json()?;
        let bounds = residents.into_iter().map(|row| row.closed_form).collect();
        verify::timeshare::choice(document, &Choice { setting, overhead_ppm, bounds }).map_err(unverified)?;
        io::print("the setting keeps every promise, and its figures are right\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A failing promise in words.
fn why(failing: &Failing) -> String {
    let Failing { slice_from_us: from, slice_to_us: to, needed, .. } = failing;
    let name = failing.resident.as_deref().unwrap_or("all");
    let us = |wait: Option<u64>| wait.map_or_else(|| "unbounded".into(), |w| format!("at least {w} us"));
    let best = failing.best;
    let what = match failing.limit {
        Limit::LeastSharePpm => {
            format!("{name} needs a share of {}, gets at most {}", percent(*needed), percent(best.unwrap_or(0)))
        }
        Limit::WaitWorstUs => format!("{name} may wait {needed} us, its worst wait is {}", us(best)),
        Limit::WaitP99Us => format!("{name} may wait {needed} us in 99 of 100, its bound is {}", us(best)),
        Limit::SumOfSharesPpm => {
            format!("the shares add up to {}, switching leaves {}", percent(*needed), percent(best.unwrap_or(0)))
        }
        Limit::SumOfTurnsUs => {
            format!("the least turns add up to {needed} us of {} us in a round, at best", best.unwrap_or(0))
        }
    };
    format!("slices {from} to {to} us: {what}")
}

fn render(document: &Timeshare, output: &Output<'_>) -> String {
    let setting = output.setting;
    let mut text = String::new();
    let how = if output.chosen { "chosen: " } else { "" };
    let _ = writeln!(
        text,
        "{how}{}, slice {} us, switch {} us: {} goes into switching with everyone busy",
        setting.scheduler.name(),
        setting.slice_us,
        setting.switch_us,
        percent(output.overhead_ppm)
    );
    if setting.scheduler == timeshare::Scheduler::WeightedFair {
        let weights: Vec<String> = setting.weights.iter().map(u64::to_string).collect();
        let _ = writeln!(text, "weights {}", weights.join(", "));
    }
    if let Some(load) = output.load_ppm {
        let _ = writeln!(text, "the jobs ask for {} of the GPU", percent(load));
    }
    let mut rows =
        table(&["resident", "share", "measured", "p99 wait us", "measured", "worst us", "measured", "promise"]);
    let wait = |bound: Option<u64>| bound.map_or_else(|| "unbounded".to_string(), |w| w.to_string());
    let seen = |wait: Option<u64>| wait.map_or_else(|| "-".to_string(), |w| w.to_string());
    for (row, resident) in output.residents.iter().zip(&document.residents) {
        let sign = if row.closed_form.p99 == P99::Exact { "= " } else { "<= " };
        let promise = match (resident.sla.is_empty(), row.sla_kept) {
            (true, _) => "none",
            (false, true) => "kept",
            (false, false) => "not kept",
        };
        rows.add_row([
            row.name.to_string(),
            format!(">= {}", percent(row.share_ppm)),
            percent(row.simulated.share_ppm),
            format!("{sign}{}", wait(row.wait_p99_us)),
            seen(row.simulated.wait_p99_us),
            wait(row.wait_worst_us),
            seen(row.simulated.wait_worst_us),
            promise.to_string(),
        ]);
    }
    let Simulation { runs, seed, horizon_us, overhead_ppm, .. } = output.simulation;
    let _ = writeln!(
        text,
        "{rows}\nmeasured in {runs} runs of {horizon_us} us from seed {seed}; switching took {}",
        percent(overhead_ppm)
    );
    text
}
