//! `slicewise replay openb`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::value::RawValue;
use slicewise::formats::{Arrivals, Kind, Options, Source, import, read_arrivals};
use slicewise::{Catalog, Policy};
use slicewise_sim::openb::{Curve, Placer, Product, Trace, replay};
use slicewise_sim::rivals;

use super::timing::{Micros, Timing};
use super::{number, plot};
use crate::commands::parse_policy;
use crate::failure::{BAD_INPUT, Failure};
use crate::io::{self, Text};
use crate::table::{self, decimal};

const NODES: &str = "openb_node_list_gpu_node.csv";

/// Percents of arrived demand that are shown to people.
const SHOWN: [usize; 5] = [60, 80, 95, 100, 130];

/// Replay the openb cluster trace by the protocol of the ATC'23 fragmentation study.
#[derive(Args)]
pub struct Openb {
    /// Directory with the tables of nodes and pods, and the orders of arrival under
    /// `arrivals/`.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Which table of pods: `openb_pod_list_<WORKLOAD>.csv`.
    #[arg(long, default_value = "default")]
    workload: String,
    /// A policy of the product as `decide` takes it, or a published one: published-fgd,
    /// published-best-fit, published-dot-product, published-gpu-packing,
    /// published-gpu-clustering, published-random. May be given several times.
    #[arg(long = "policy", value_name = "POLICY", default_value = "default", value_parser = parse_contestant)]
    policies: Vec<Contestant>,
    /// Orders of arrival, by their seeds; all that the directory has if absent.
    #[arg(long, value_delimiter = ',')]
    seeds: Vec<u64>,
    /// Print the curves as JSON.
    #[arg(long)]
    json: bool,
    /// Write the curves as a table.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw the means over the seeds.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// A policy with the name that it was asked by.
#[derive(Clone)]
struct Contestant {
    name: String,
    /// `None`: a published one.
    product: Option<Policy>,
}

fn parse_contestant(name: &str) -> Result<Contestant, String> {
    let published = rivals::openb::NAMES.contains(&name);
    let product = if published { None } else { Some(parse_policy(name)?) };
    Ok(Contestant { name: name.to_owned(), product })
}

/// A replay that is over.
struct Run<'a> {
    policy: &'a str,
    seed: u64,
    curve: Curve,
    timing: Timing,
}

/// A replay as printed.
#[derive(Serialize)]
struct Row<'a> {
    policy: &'a str,
    workload: &'a str,
    seed: u64,
    allocated_pct: BTreeMap<usize, Option<Box<RawValue>>>,
    fragmented_pct: BTreeMap<usize, Option<Box<RawValue>>>,
    decide_us: Micros,
    commit_us: Micros,
}

impl Openb {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (trace, orders) = self.load()?;
        let steps: usize = orders.iter().map(|order| order.pods.len()).sum();
        let bar = ProgressBar::new((steps * self.policies.len()) as u64);
        let mut runs = Vec::new();
        for contestant in &self.policies {
            for order in &orders {
                let mut placer = placer(contestant, &trace, order)?;
                let mut timing = Timing::default();
                let curve = replay(&trace, order, placer.as_mut(), &mut |moment, _| timing.note(moment, &bar));
                let curve = curve.map_err(|e| Failure::plain(BAD_INPUT, e.to_string()))?;
                runs.push(Run { policy: &contestant.name, seed: order.seed, curve, timing });
            }
        }
        bar.finish_and_clear();
        if let Some(path) = &self.csv {
            io::write(path, &self.csv(&runs))?;
        }
        if let Some(path) = &self.svg {
            io::write(path, &self.draw(&runs)?)?;
        }
        if self.json {
            let rows: Vec<Row<'_>> = runs.iter().map(|run| self.row(run)).collect();
            io::print_json(&rows)?;
        } else {
            io::print(&self.table(&runs))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn load(&self) -> Result<(Trace, Vec<Arrivals>), Failure> {
        let list = format!("openb_pod_list_{}", self.workload);
        let read = |name: &Path| Text::read(&self.data.join(name));
        let texts = [read(Path::new(NODES))?, read(Path::new(&format!("{list}.csv")))?];
        let catalog = Catalog::built_in().map_err(|e| Failure::plain(BAD_INPUT, e.to_string()))?;
        let sources: Vec<Source<'_>> =
            texts.iter().map(|text| Source { name: &text.name, text: &text.content }).collect();
        let imported = import(Kind::Openb, &sources, &Options::default(), &catalog);
        let imported = imported.map_err(|e| Failure::import(&texts, &e))?;
        let trace = Trace::new(imported.state, imported.requests);
        let trace = trace.map_err(|e| Failure::plain(BAD_INPUT, e.to_string()))?;
        let text = read(&Path::new("arrivals").join(format!("{list}.txt")))?;
        let mut orders = read_arrivals(&text.name, &text.content).map_err(|e| Failure::read(&text, &e))?;
        if let Some(seed) = self.seeds.iter().find(|seed| orders.iter().all(|order| order.seed != **seed)) {
            return Err(Failure::plain(BAD_INPUT, format!("{} has no seed {seed}", text.name)));
        }
        orders.retain(|order| self.seeds.is_empty() || self.seeds.contains(&order.seed));
        Ok((trace, orders))
    }

    fn row<'a>(&'a self, run: &Run<'a>) -> Row<'a> {
        let curve = &run.curve;
        let keyed = |value: &dyn Fn(usize) -> Option<u64>| {
            curve.percents().map(|percent| (percent, value(percent).and_then(number))).collect()
        };
        Row {
            policy: run.policy,
            workload: &self.workload,
            seed: run.seed,
            allocated_pct: keyed(&|percent| curve.allocated(percent)),
            fragmented_pct: keyed(&|percent| curve.fragmented(percent)),
            decide_us: run.timing.decide(),
            commit_us: run.timing.apply(),
        }
    }

    fn csv(&self, runs: &[Run<'_>]) -> String {
        let mut text = String::from("policy,workload,seed,arrived_pct,allocated_pct,fragmented_pct\n");
        for run in runs {
            for percent in run.curve.percents() {
                let value = |value: Option<u64>| value.map(decimal).unwrap_or_default();
                let (allocated, fragmented) = (run.curve.allocated(percent), run.curve.fragmented(percent));
                let cells = [value(allocated), value(fragmented)].join(",");
                text.push_str(&format!("{},{},{},{percent},{cells}\n", run.policy, self.workload, run.seed));
            }
        }
        text
    }

    /// The runs of each policy, in the order in which they were asked.
    fn by_policy<'r, 'a>(&self, runs: &'r [Run<'a>]) -> impl Iterator<Item = &'r [Run<'a>]> {
        runs.chunk_by(|a, b| a.policy == b.policy)
    }

    fn table(&self, runs: &[Run<'_>]) -> String {
        let percents = SHOWN.map(|percent| format!("{percent} %"));
        let headings = ["policy", "of all GPUs"].into_iter().chain(percents.iter().map(String::as_str));
        let headings: Vec<&str> = headings.chain(["decide us: p50", "p99", "mean"]).collect();
        let mut rows = table::table(&headings);
        for own in self.by_policy(runs) {
            let Some(first) = own.first() else { continue };
            let means = |value: &dyn Fn(&Curve, usize) -> Option<u64>| {
                SHOWN.map(|percent| mean(own, |curve| value(curve, percent)).map_or("?".into(), decimal))
            };
            let allocated = means(&|curve, percent| curve.allocated(percent));
            let fragmented = means(&|curve, percent| curve.fragmented(percent));
            let times = first.timing.decide().cells();
            rows.add_row([first.policy.into(), "allocated".into()].into_iter().chain(allocated).chain(times));
            rows.add_row([String::new(), "fragmented".into()].into_iter().chain(fragmented));
        }
        let seeds: std::collections::BTreeSet<u64> = runs.iter().map(|run| run.seed).collect();
        let seeds = seeds.len();
        format!("{rows}\nWorkload {}, means over {seeds} seeds, % of all GPUs at % of arrived demand.\n", self.workload)
    }

    fn draw(&self, runs: &[Run<'_>]) -> Result<String, Failure> {
        let line = |own: &[Run<'_>], value: &dyn Fn(&Curve, usize) -> Option<u64>| {
            let percents = own.first().into_iter().flat_map(|run| run.curve.percents());
            percents.filter_map(|p| Some((p, mean(own, |curve| value(curve, p))?))).collect()
        };
        let curves = self.by_policy(runs).map(|own| plot::Lines {
            name: own.first().map_or("", |run| run.policy),
            allocated: line(own, &|curve, percent| curve.allocated(percent)),
            fragmented: line(own, &|curve, percent| curve.fragmented(percent)),
        });
        plot::draw(&format!("openb, workload {}", self.workload), &curves.collect::<Vec<_>>())
            .map_err(|e| Failure::plain(crate::failure::IO, e))
    }
}

/// The mean over the runs that have the value.
fn mean(runs: &[Run<'_>], value: impl Fn(&Curve) -> Option<u64>) -> Option<u64> {
    let values: Vec<u64> = runs.iter().filter_map(|run| value(&run.curve)).collect();
    let count = values.len() as u64;
    (2 * values.iter().sum::<u64>() + count).checked_div(2 * count)
}

fn placer<'a>(contestant: &Contestant, trace: &'a Trace, order: &Arrivals) -> Result<Box<dyn Placer + 'a>, Failure> {
    let Some(policy) = contestant.product.clone() else {
        let none = || Failure::plain(BAD_INPUT, format!("no policy `{}`", contestant.name));
        return rivals::openb::named(&contestant.name, trace, order).ok_or_else(none);
    };
    let mix = if policy.mix.is_empty() { trace.mix() } else { policy.mix };
    let product = Product::new(trace, order, Policy { mix, ..policy });
    Ok(Box::new(product.map_err(|e| Failure::plain(BAD_INPUT, e.to_string()))?))
}
