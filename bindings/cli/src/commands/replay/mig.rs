//! `slicewise replay mig`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::value::RawValue;
use slicewise::formats::read_stream;
use slicewise::{Catalog, Policy};
use slicewise_sim::mig::{Placer, Product, Stream, replay};
use slicewise_sim::rivals;

use super::number;
use super::timing::{Micros, Timing};
use crate::commands::parse_policy;
use crate::failure::{BAD_INPUT, Failure};
use crate::io::{self, Text};
use crate::table::{self, decimal};

/// Replay a stream of MIG requests that come and go.
#[derive(Args)]
pub struct Mig {
    /// The stream: CSV with the columns arrival, lifetime and profile, in order of arrival.
    #[arg(long, value_name = "FILE")]
    stream: PathBuf,
    /// GPUs, all empty at first.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    gpus: u32,
    /// Id or product name of their model.
    #[arg(long, default_value = "a100-80gb")]
    model: String,
    /// A policy of the product as `decide` takes it, or one to compare with:
    /// rival-first-fit, rival-best-fit, rival-round-robin, rival-worst-fit, rival-max-cc,
    /// rival-hami, rival-dra, rival-kai.
    #[arg(long, default_value = "default")]
    policy: String,
    /// Leases that may be moved to make room, in parts per million of the requests that came.
    #[arg(long, value_name = "PPM", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    moves_ppm: u32,
    /// Part of the requests that comes first and does not count, percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..100))]
    warm_up: u32,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// A replay as printed.
#[derive(Serialize)]
struct Output<'a> {
    policy: &'a str,
    gpus: u32,
    requests: u64,
    accepted: u64,
    undecided: u64,
    accepted_pct: Option<Box<RawValue>>,
    accepted_slices_pct: Option<Box<RawValue>>,
    moves: u64,
    decide_us: Micros,
    commit_us: Micros,
}

impl Mig {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let stream = self.load()?;
        let mut placer = self.placer(&stream)?;
        let warm_up = stream.requests.len() * self.warm_up as usize / 100;
        let bar = ProgressBar::new(stream.requests.len() as u64);
        let mut timing = Timing::default();
        let mut observe = |moment, _| timing.note(moment, &bar);
        let outcome = replay(&stream, warm_up, self.moves_ppm, placer.as_mut(), &mut observe);
        bar.finish_and_clear();
        let outcome = outcome.map_err(|e| Failure::plain(BAD_INPUT, e.to_string()))?;
        let (accepted, slices) = (outcome.accepted_hundredths(), outcome.accepted_slices_hundredths());
        if self.json {
            io::print_json(&Output {
                policy: &self.policy,
                gpus: self.gpus,
                requests: outcome.requests,
                accepted: outcome.accepted,
                undecided: outcome.undecided,
                accepted_pct: number(accepted),
                accepted_slices_pct: number(slices),
                moves: outcome.moves,
                decide_us: timing.decide(),
                commit_us: timing.apply(),
            })?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut rows =
            table::table(&["policy", "requests", "accepted %", "slices %", "moves", "decide us: p50", "p99", "mean"]);
        let counts = [outcome.requests.to_string(), decimal(accepted), decimal(slices), outcome.moves.to_string()];
        rows.add_row([self.policy.clone()].into_iter().chain(counts).chain(timing.decide().cells()));
        io::print(&format!("{rows}\n"))?;
        Ok(ExitCode::SUCCESS)
    }

    fn load(&self) -> Result<Stream, Failure> {
        let text = Text::read(&self.stream)?;
        let requests = read_stream(&text.name, &text.content).map_err(|e| Failure::read(&text, &e))?;
        let plain = |message: String| Failure::plain(BAD_INPUT, message);
        let catalog = Catalog::built_in().map_err(|e| plain(e.to_string()))?;
        let model = catalog.find(&self.model).ok_or_else(|| plain(format!("no GPU model `{}`", self.model)))?;
        Stream::new(model, &requests).map_err(|e| plain(e.to_string()))
    }

    fn placer<'a>(&self, stream: &'a Stream) -> Result<Box<dyn Placer + 'a>, Failure> {
        let gpus = self.gpus as usize;
        if let Some(rival) = rivals::mig::named(&self.policy, stream, gpus) {
            return Ok(rival);
        }
        let policy = parse_policy(&self.policy).map_err(|e| Failure::plain(2, e))?;
        let mix = if policy.mix.is_empty() { stream.mix() } else { policy.mix };
        let product = Product::new(stream, gpus, Policy { mix, ..policy });
        Ok(Box::new(product.map_err(|e| Failure::plain(BAD_INPUT, e.to_string()))?))
    }
}
