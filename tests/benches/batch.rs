//! Batches: the plan by patterns against the natural integer program, which has one
//! variable for each member and place. Each is timed once, on the same fleet.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::float_arithmetic, reason = "times are shown in milliseconds")]

mod ground;

use std::error::Error;
use std::time::Instant;

use slicewise_core::plan::Objective;
use slicewise_solver::natural::natural;
use slicewise_solver::{Backend, PlanBudget, plan};

use ground::Kind;

const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];

/// GPUs up to which the natural program is tried.
const NATURAL_MAX: usize = 1_000;

/// Members asked for each GPU, times ten: more than fits, so that the plan must choose.
const MEMBERS_TENTHS: usize = 26;

fn main() -> Result<(), Box<dyn Error>> {
    let limit = |name: &str, default| std::env::var(name).map_or(Ok(default), |text| text.parse());
    let (largest, natural_max) = (limit("BATCH_GPUS_MAX", 100_000)?, limit("BATCH_NATURAL_MAX", NATURAL_MAX)?);
    println!(
        "{:>7} {:>8} {:>9} {:>10} {:>10} {:>8} {:>10}",
        "GPUs", "members", "program", "value", "bound", "gap ppm", "ms"
    );
    for gpus in SIZES.into_iter().filter(|gpus| *gpus <= largest) {
        let ledger = ground::ledger(&ground::half_full(Kind::Mig, gpus))?;
        let workloads = ground::batch(gpus * MEMBERS_TENTHS / 10);
        let members: u32 = workloads.iter().map(|w| w.count).sum();
        let start = Instant::now();
        let found = plan(&ledger, &workloads, Objective::MostValue, PlanBudget::default())?;
        let time = start.elapsed().as_secs_f64() * 1000.0;
        println!(
            "{gpus:>7} {members:>8} {:>9} {:>10} {:>10} {:>8} {time:>10.1}",
            "patterns", found.value, found.bound, found.gap_ppm
        );
        if gpus > natural_max {
            continue;
        }
        let start = Instant::now();
        let found = natural(&ledger, &workloads, Objective::MostValue, PlanBudget::default(), Backend::default())?;
        let time = start.elapsed().as_secs_f64() * 1000.0;
        let value = found.map_or_else(|| "none".into(), |natural| natural.value.to_string());
        println!("{gpus:>7} {members:>8} {:>9} {value:>10} {:>10} {:>8} {time:>10.1}", "natural", "", "");
    }
    Ok(())
}
