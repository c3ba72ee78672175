//! Plans the four request lists of the README, and prints what it took.
#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::float_arithmetic, reason = "times are shown in milliseconds")]

use std::time::Instant;

use slicewise_core::catalog::Catalog;
use slicewise_core::fleet::{Gpu, Mode, Node, State};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::Policy;
use slicewise_core::plan::Objective;
use slicewise_core::workload::Workload;
use slicewise_solver::{PlanBudget, plan};

const PROFILES: [&str; 6] = ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"];
const LISTS: [(&str, [u32; 6], u64); 4] = [
    ("uniform", [1651, 1647, 1675, 1617, 1723, 1687], 4394),
    ("small", [2966, 2007, 2491, 1258, 760, 518], 3023),
    ("large", [479, 505, 1003, 1955, 2471, 3587], 6264),
    ("bimodal", [3457, 999, 517, 488, 1462, 3077], 4906),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = Gpu { model: "a100-80gb".into(), mode: Mode::Mig, ..Gpu::default() };
    let node = |i| Node { name: format!("n{i:04}"), gpus: vec![gpu.clone(); 8], ..Node::default() };
    let state = State { nodes: (0..875).map(node).collect(), ..State::default() };
    let ledger = Ledger::new(Catalog::built_in()?, Policy::default(), &state)?;
    for (name, counts, best) in LISTS {
        let workloads: Vec<Workload> = PROFILES
            .iter()
            .zip(counts)
            .map(|(p, count)| Workload { name: (*p).into(), count, profile: Some((*p).into()), ..Workload::default() })
            .collect();
        for objective in [Objective::FewestGpus, Objective::MostValue] {
            let start = Instant::now();
            let plan = plan(&ledger, &workloads, objective, PlanBudget::default())?;
            let ms = start.elapsed().as_secs_f64() * 1000.0;
            println!(
                "{name:8} {objective:?}: {} GPUs (optimum {best}), {} nodes, {} admitted, bound {} of {:?}, gap {} ppm, {:?}, verified {}, {ms:.1} ms",
                plan.gpus_opened,
                plan.nodes_opened,
                plan.admitted,
                plan.bound,
                plan.bound_of,
                plan.gap_ppm,
                plan.method,
                plan.verified
            );
        }
    }
    Ok(())
}
