//! The four request lists whose optima are known: each must be met and proved.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "shared by all tests; each uses a part")]
mod common;

use common::{PROFILES, ledger, mig, node, request};
use slicewise_core::plan::{BoundOf, BoundSource, Method, Objective};
use slicewise_core::workload::Workload;
use slicewise_solver::{PlanBudget, plan};

const LISTS: [(&str, [u32; 6], u64); 4] = [
    ("uniform", [1651, 1647, 1675, 1617, 1723, 1687], 4394),
    ("small", [2966, 2007, 2491, 1258, 760, 518], 3023),
    ("large", [479, 505, 1003, 1955, 2471, 3587], 6264),
    ("bimodal", [3457, 999, 517, 488, 1462, 3077], 4906),
];

#[test]
fn known_lists_are_planned_to_their_optimum_with_proof() {
    let fleet = ledger((0..875).map(|i| node(&format!("n{i}"), vec![mig(); 8])).collect());
    for (name, counts, optimum) in LISTS {
        let workloads: Vec<Workload> =
            PROFILES.iter().zip(counts).map(|((profile, ..), count)| request(profile, profile, count)).collect();
        for objective in [Objective::FewestGpus, Objective::MostValue] {
            let plan = plan(&fleet, &workloads, objective, PlanBudget::default()).unwrap();
            let found = (plan.admitted, plan.gpus_opened, plan.bound, plan.gap_ppm, plan.nodes_opened);
            assert_eq!(found, (10_000, optimum, optimum, 0, optimum.div_ceil(8)), "{name}");
            assert_eq!((plan.bound_of, plan.bound_source), (BoundOf::Gpus, BoundSource::Prices), "{name}");
            assert_eq!((plan.method, plan.verified), (Method::ClassPattern, true), "{name}");
        }
    }
}
