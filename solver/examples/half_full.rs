//! Plans 2.6 requests for each GPU of a fleet of half-full A100s, and prints what it took.
//! Arguments: GPUs, and how many of them are empty in a hundred.
#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::float_arithmetic, reason = "times are shown in milliseconds")]

use std::time::Instant;

use slicewise_core::catalog::Catalog;
use slicewise_core::fleet::{Gpu, Instance, Mode, Node, State};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::Policy;
use slicewise_core::plan::Objective;
use slicewise_core::workload::Workload;
use slicewise_solver::{Backend, PlanBudget, plan_with};

/// Profile, cells and starts.
const PROFILES: [(&str, u16, &[u16]); 6] = [
    ("1g.10gb", 1, &[0, 1, 2, 3, 4, 5, 6]),
    ("1g.20gb", 2, &[0, 2, 4, 6]),
    ("2g.20gb", 2, &[0, 2, 4]),
    ("3g.40gb", 4, &[0, 4]),
    ("4g.40gb", 4, &[0]),
    ("7g.80gb", 8, &[0]),
];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

fn half_full(random: &mut Random, empty: usize) -> Gpu {
    let mut gpu = Gpu { model: "a100-80gb".into(), mode: Mode::Mig, ..Gpu::default() };
    let (mut taken, wanted) = (0u16, if random.below(100) < empty { 0 } else { 4 });
    for _ in 0..20 {
        let Some((name, size, starts)) = PROFILES.get(random.below(5)) else { continue };
        let Some(start) = starts.get(random.below(starts.len())) else { continue };
        let run = ((1 << size) - 1) << start;
        if taken & run == 0 && (taken | run).count_ones() <= wanted {
            taken |= run;
            gpu.instances.push(Instance { profile: (*name).into(), start: *start, ..Instance::default() });
        }
    }
    gpu
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let gpus: usize = arguments.next().map_or(Ok(100_000), |a| a.parse())?;
    let empty: usize = arguments.next().map_or(Ok(0), |a| a.parse())?;
    let single = arguments.next().is_some();
    let mut random = Random(7);
    let nodes = (0..gpus.div_ceil(8)).map(|i| Node {
        name: format!("n{i:05}"),
        gpus: (0..8).map(|_| half_full(&mut random, empty)).collect(),
        ..Node::default()
    });
    let state = State { nodes: nodes.collect(), ..State::default() };
    let start = Instant::now();
    let ledger = Ledger::new(Catalog::built_in()?, Policy::default(), &state)?;
    println!("ledger in {:.2} s", start.elapsed().as_secs_f64());
    let weights = [30, 20, 25, 12, 8, 5];
    let requests = gpus * 26 / 10;
    let workload = |i: usize, name: &str, count: usize| Workload {
        name: format!("{name}/{i}"),
        count: u32::try_from(count).unwrap_or(u32::MAX),
        profile: Some(name.into()),
        ..Workload::default()
    };
    let mut workloads = Vec::new();
    for ((name, ..), weight) in PROFILES.iter().zip(weights) {
        let count = requests * weight / 100;
        if single {
            workloads.extend((0..count).map(|i| workload(i, name, 1)));
        } else {
            workloads.push(workload(0, name, count));
        }
    }
    for objective in [Objective::MostValue, Objective::FewestGpus] {
        let start = Instant::now();
        let mut said = |progress| println!("  {:8.1} ms {progress:?}", start.elapsed().as_secs_f64() * 1000.0);
        let plan = plan_with(&ledger, &workloads, objective, PlanBudget::default(), Backend::default(), &mut said)?;
        println!(
            "{objective:?}: value {}, bound {} of {:?}, gap {} ppm, {} admitted, {} refused, {} GPUs opened, {:?}, verified {}, {:.1} ms",
            plan.value,
            plan.bound,
            plan.bound_of,
            plan.gap_ppm,
            plan.admitted,
            plan.refused,
            plan.gpus_opened,
            plan.method,
            plan.verified,
            start.elapsed().as_secs_f64() * 1000.0
        );
    }
    Ok(())
}
