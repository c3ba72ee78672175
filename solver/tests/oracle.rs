//! Plans by patterns against the natural program, which knows nothing of patterns, and
//! against their own bounds, on random small fleets.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "shared by all tests; each uses a part")]
mod common;

use common::{Random, ledger, node, occupied, requests};
use proptest::prelude::*;
use slicewise_core::plan::{BoundOf, Objective};
use slicewise_solver::natural::natural;
use slicewise_solver::{Backend, PlanBudget, plan};

#[test]
fn half_full_fleets_are_planned_as_well_as_by_the_natural_program() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let gpus: Vec<_> = (0..6).map(|_| occupied(&mut random, 4)).collect();
        let fleet = ledger(vec![node("a", gpus)]);
        let workloads = requests(&mut random, 4);
        for objective in [Objective::MostValue, Objective::FewestGpus] {
            let ours = plan(&fleet, &workloads, objective, PlanBudget::default()).unwrap();
            let theirs = natural(&fleet, &workloads, objective, PlanBudget::default(), Backend::Microlp).unwrap();
            let theirs = theirs.unwrap();
            match objective {
                Objective::MostValue => assert_eq!(ours.value, theirs.value, "seed {seed}"),
                Objective::FewestGpus => assert_eq!(ours.admitted, theirs.admitted, "seed {seed}"),
            }
            assert!(ours.gpus_opened <= theirs.gpus_opened, "seed {seed}");
            assert!(ours.verified, "seed {seed}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_plan_is_better_than_its_bound(
        seed in any::<u64>(),
        gpus in 1usize..40,
        cells in 0u32..8,
        most in 1usize..30,
        fewest in any::<bool>(),
    ) {
        let mut random = Random(seed);
        let nodes = (0..gpus.div_ceil(4)).map(|i| {
            node(&format!("n{i}"), (0..4).map(|_| occupied(&mut random, cells)).collect())
        });
        let fleet = ledger(nodes.collect());
        let workloads = requests(&mut random, most);
        let objective = if fewest { Objective::FewestGpus } else { Objective::MostValue };
        let plan = plan(&fleet, &workloads, objective, PlanBudget::default()).unwrap();
        match plan.bound_of {
            BoundOf::Value => prop_assert!(plan.value <= plan.bound),
            BoundOf::Members => prop_assert!(plan.admitted <= plan.bound),
            BoundOf::Gpus => prop_assert!(plan.gpus_opened >= plan.bound),
        }
        prop_assert!(plan.verified);
        // What whole numbers may cost: about one member, or one GPU.
        if objective == Objective::MostValue {
            let distance = match plan.bound_of {
                BoundOf::Value => plan.bound - plan.value,
                BoundOf::Members => plan.bound - plan.admitted,
                BoundOf::Gpus => plan.gpus_opened - plan.bound,
            };
            prop_assert!(distance <= 10, "{distance}");
        }
    }
}
