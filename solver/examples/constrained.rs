//! Plans requests with CPU, memory, gangs and node selectors on nodes that all differ,
//! and prints what it took. Arguments: nodes, rounds.
#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::float_arithmetic, reason = "times are shown in milliseconds")]

use std::time::Instant;

use slicewise_core::catalog::Catalog;
use slicewise_core::fleet::{Gpu, Mode, Node, State};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::Policy;
use slicewise_core::plan::Objective;
use slicewise_core::workload::{Ask, Fraction, Requirement, WholeGpus, Workload};
use slicewise_solver::{Backend, PlanBudget, plan_with};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

const PROFILES: [(&str, u64); 6] =
    [("1g.10gb", 1), ("1g.20gb", 2), ("2g.20gb", 2), ("3g.40gb", 4), ("4g.40gb", 4), ("7g.80gb", 8)];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let nodes: usize = arguments.next().map_or(Ok(100), |a| a.parse())?;
    let rounds: u32 = arguments.next().map_or(Ok(60), |a| a.parse())?;
    let mut random = Random(11);
    let mut list = Vec::new();
    for i in 0..nodes {
        let mode = if random.below(10) < 6 { Mode::Mig } else { Mode::Whole };
        list.push(Node {
            name: format!("n{i}"),
            zone: Some(format!("z{}", i % 4)),
            cpu_milli: Some(1_000 * (20 + random.below(80) as u64)),
            memory_mib: Some(1_024 * (128 + random.below(512) as u64)),
            gpus: vec![Gpu { model: "a100-80gb".into(), mode, ..Gpu::default() }; 8],
            ..Node::default()
        });
    }
    let state = State { nodes: list, ..State::default() };
    let ledger = Ledger::new(Catalog::built_in()?, Policy::default(), &state)?;
    let mut workloads = Vec::new();
    let (mut asked, supply) = (0, nodes as u64 * 64 * 14 / 10);
    while asked < supply {
        let (ask, size) = match random.below(100) {
            0..60 => {
                PROFILES.get(random.below(6)).map_or((Ask::NodeOnly {}, 1), |(n, s)| (Ask::Profile((*n).into()), *s))
            }
            60..85 => (Ask::Gpus(WholeGpus { count: 1 + random.below(3) as u32, ..WholeGpus::default() }), 8),
            _ => {
                let eighths = 1 + random.below(4) as u16;
                (Ask::Fraction(Fraction { milli: 125 * eighths, memory_mib: 0, memory_ppm: None }), u64::from(eighths))
            }
        };
        let size = if let Ask::Gpus(gpus) = &ask { 8 * u64::from(gpus.count) } else { size };
        let gang = random.below(20) == 0;
        let count = if gang { 2 + random.below(6) as u32 } else { 1 };
        let zone = Requirement {
            key: "slicewise/zone".into(),
            values: vec![format!("z{}", random.below(4))],
            ..Requirement::default()
        };
        workloads.push(Workload {
            name: format!("w{}", workloads.len()),
            count,
            gang,
            any_of: vec![ask],
            value: Some(size * (80 + random.below(50) as u64)),
            cpu_milli: 500 * size + 250 * random.below(8) as u64,
            memory_mib: 2_048 * size,
            nodes: if random.below(4) == 0 { vec![zone] } else { Vec::new() },
            ..Workload::default()
        });
        asked += size * u64::from(count);
    }
    println!("{nodes} nodes, {} requests", workloads.len());
    let start = Instant::now();
    let mut said = |progress| println!("  {:8.1} ms {progress:?}", start.elapsed().as_secs_f64() * 1000.0);
    let mut budget = PlanBudget::default();
    budget.rounds = rounds;
    let plan = plan_with(&ledger, &workloads, Objective::MostValue, budget, Backend::default(), &mut said)?;
    println!(
        "value {}, bound {} of {:?}, gap {} ppm, {} admitted, {} refused, {:?}, verified {}, relaxed {:?}, {:.1} ms",
        plan.value,
        plan.bound,
        plan.bound_of,
        plan.gap_ppm,
        plan.admitted,
        plan.refused,
        plan.method,
        plan.verified,
        plan.relaxed,
        start.elapsed().as_secs_f64() * 1000.0
    );
    Ok(())
}
