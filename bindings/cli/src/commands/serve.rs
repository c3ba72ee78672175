//! `slicewise serve`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use slicewise::serving::{MAX_PROCESSES, SLO_SHARE_PPM, Target, Unservable, UnservableBecause};
use slicewise::{Catalog, Deployment, Error, PlanError, Served, Serving, formats, verify};

use crate::failure::{BAD_INPUT, Failure, UNVERIFIED};
use crate::io::{self, Text};
use crate::table;

/// Find the fewest GPUs, and how to cut them, that serve inference models in time.
///
/// A measured point is usable if its latency is below a share of the model's objective,
/// by default 0.45: 0.9 of half, because a request can wait for one batch before its own.
/// Of each model and size of instance the usable point of highest throughput counts.
#[derive(Args)]
pub struct Serve {
    /// Measured points: CSV with the columns model, mig_gpcs, batch, mps_procs,
    /// throughput_total (items/s) and latency_s.
    #[arg(long, value_name = "FILE")]
    points: PathBuf,
    /// What to serve: CSV with the columns scenario, model, request_rate_per_s and
    /// slo_latency_ms.
    #[arg(long, value_name = "FILE")]
    scenarios: PathBuf,
    /// Which scenario; may be left out where there is only one.
    #[arg(long)]
    name: Option<String>,
    /// Id or product name of the GPU model, cut into base profiles.
    #[arg(long, default_value = "a100-80gb")]
    gpu: String,
    /// Most processes that share an instance.
    #[arg(long, value_name = "N", default_value_t = MAX_PROCESSES, value_parser = clap::value_parser!(u32).range(1..))]
    max_processes: u32,
    /// Share of the latency objective that a batch must stay below, in parts per million.
    #[arg(long, value_name = "PPM", default_value_t = SLO_SHARE_PPM, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    slo_share_ppm: u32,
    /// Multiply all rates by this.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    scale: u64,
    /// Print the deployment as JSON.
    #[arg(long)]
    json: bool,
    /// Do not search: check a deployment that `--json` printed before, or that anyone
    /// claims, with code that shares nothing with the search.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    check: Option<PathBuf>,
}

/// A refusal as printed.
#[derive(Serialize)]
struct Refused<'a> {
    verdict: &'static str,
    refused: &'a [Unservable],
}

impl Serve {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let points = Text::read(&self.points)?;
        let scenarios = Text::read(&self.scenarios)?;
        let request = self.request(&points, &scenarios)?;
        if let Some(path) = &self.check {
            let deployment: Deployment = Text::read(path)?.json()?;
            let catalog = Catalog::built_in().map_err(|e| Failure::plain(BAD_INPUT, e.to_string()))?;
            verify::serving(&catalog, &request, &deployment)
                .map_err(|e| Failure::plain(UNVERIFIED, format!("refused: {e}")))?;
            io::print(&format!(
                "the deployment serves everything on {} GPUs; at least {} are proved to be needed\n",
                deployment.gpus, deployment.bound
            ))?;
            return Ok(ExitCode::SUCCESS);
        }
        match slicewise::serve(&request) {
            Ok(Served::Deployment(deployment)) => {
                if self.json {
                    io::print_json(&deployment)?;
                } else {
                    io::print(&render(&request, &deployment))?;
                }
                Ok(ExitCode::SUCCESS)
            }
            Ok(Served::Refused(refused)) => {
                if self.json {
                    io::print_json(&Refused { verdict: "reject", refused: &refused })?;
                } else {
                    io::print(&refused.iter().map(say).collect::<String>())?;
                }
                Ok(ExitCode::from(5))
            }
            // The paths of the request are not those of a file: its fields come from two tables and the options.
            Err(Error::Plan(e @ PlanError::NotVerified(_))) => Err(Failure::plain(UNVERIFIED, e.to_string())),
            Err(e) => Err(Failure::plain(BAD_INPUT, e.to_string())),
        }
    }

    fn request(&self, points: &Text, scenarios: &Text) -> Result<Serving, Failure> {
        let table = formats::read_scenarios(&scenarios.name, &scenarios.content);
        let table = table.map_err(|e| Failure::read(scenarios, &e))?;
        let targets = table.of(self.name.as_deref()).map_err(|e| Failure::read(scenarios, &e))?;
        let scaled = |target: &Target| {
            let rate_milli = target.rate_milli.checked_mul(self.scale)?;
            Some(Target { rate_milli, ..target.clone() })
        };
        let targets: Option<Vec<Target>> = targets.iter().map(scaled).collect();
        let targets =
            targets.ok_or_else(|| Failure::plain(BAD_INPUT, format!("--scale {} is too large", self.scale)))?;
        let points = formats::read_points(&points.name, &points.content).map_err(|e| Failure::read(points, &e))?;
        Ok(Serving {
            gpu: self.gpu.clone(),
            max_processes: self.max_processes,
            slo_share_ppm: self.slo_share_ppm,
            points,
            targets,
        })
    }
}

/// A refusal in words.
fn say(refused: &Unservable) -> String {
    let Unservable { model, latency_us_below, .. } = refused;
    match (refused.because, refused.latency_us_least) {
        (UnservableBecause::Latency, Some(least)) => format!(
            "{model}: reject, proved: its least latency is {} ms, a usable one is below {} ms\n",
            thousandths(least),
            thousandths(*latency_us_below)
        ),
        _ => format!("{model}: reject, proved: no point of it was measured on this GPU with so few processes\n"),
    }
}

/// A deployment in words: what each model gets, then the GPUs.
fn render(request: &Serving, found: &Deployment) -> String {
    let all = || found.deployment.iter().flat_map(|gpu| &gpu.instances);
    let mut models = table::table(&["model", "rate/s", "served/s", "latency ms", "of ms", "instances"]);
    for target in &request.targets {
        let own = || all().filter(|i| i.model == target.model);
        let served: u64 = own().map(|i| i.throughput_milli).sum();
        let slowest = own().map(|i| i.latency_us).max().unwrap_or(0);
        models.add_row([
            target.model.clone(),
            thousandths(target.rate_milli),
            thousandths(served),
            thousandths(slowest),
            thousandths(target.slo_us),
            own().count().to_string(),
        ]);
    }
    let mut gpus = table::table(&["GPU", "profile", "start", "model", "batch", "processes", "latency ms", "items/s"]);
    for (g, gpu) in found.deployment.iter().enumerate() {
        for (i, instance) in gpu.instances.iter().enumerate() {
            gpus.add_row([
                if i == 0 { g.to_string() } else { String::new() },
                instance.profile.clone(),
                instance.start.to_string(),
                instance.model.clone(),
                instance.batch.to_string(),
                instance.processes.to_string(),
                thousandths(instance.latency_us),
                thousandths(instance.throughput_milli),
            ]);
        }
    }
    let bound = match found.gap {
        0 => "proved, in integers, that fewer do not do".to_owned(),
        gap => format!("at least {} are needed; gap {gap}", found.bound),
    };
    let checked = if found.verified { "Checked by the verifier.\n" } else { "NOT VERIFIED.\n" };
    format!("{gpus}\n{models}\n{} × {}: {bound}.\n{checked}", found.gpus, found.gpu)
}

/// Thousandths as a decimal number.
fn thousandths(number: u64) -> String {
    let text = format!("{}.{:03}", number / 1000, number % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
