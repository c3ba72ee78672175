//! Plans of the solver on small random fleets: the checker takes them and no tighter bound,
//! and the best choice that the oracle finds lies between the plan and its bound.

use proptest::prelude::*;
use slicewise_core::catalog::Catalog;
use slicewise_core::fleet::{Gpu, Mode, Node, PowerCap, State};
use slicewise_core::ledger::Ledger;
use slicewise_core::plan::{BoundOf, BoundSource, Objective, Plan};
use slicewise_core::verify::{self, Checked, Rule};
use slicewise_core::workload::Workload;
use slicewise_solver::{PlanBudget, plan};
use slicewise_tests::dice::{Dice, cases};
use slicewise_tests::fleets::{fleet, policy, request};
use slicewise_tests::oracle::World;

fn gap(plan: &Plan) -> u64 {
    let distance = match plan.bound_of {
        BoundOf::Value => plan.bound.saturating_sub(plan.value),
        BoundOf::Members => plan.bound.saturating_sub(plan.admitted),
        BoundOf::Gpus => plan.gpus_opened.saturating_sub(plan.bound),
    };
    (distance * 1_000_000).div_ceil(plan.bound.max(1))
}

fn requests(dice: &mut Dice, most: usize, members: usize) -> Vec<Workload> {
    let one = |i| Workload { keep_idle: false, ..request(dice, &format!("r{i}"), members) };
    let requests: Vec<Workload> = (0..most).map(one).collect();
    let count = 1 + dice.roll(most);
    requests.into_iter().take(count).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_pass_and_tighter_bounds_do_not(tape in proptest::collection::vec(any::<u16>(), 0..300)) {
        let mut dice = Dice::new(tape);
        let requests = requests(&mut dice, 6, 3);
        let objective = dice.pick(&[Objective::MostValue, Objective::FewestGpus]).unwrap();
        let state = fleet(&mut dice, 2, 3);
        let catalog = Catalog::built_in().unwrap();
        let ledger = Ledger::new(catalog.clone(), policy("default"), &state).unwrap();
        let made = plan(&ledger, &requests, objective, PlanBudget::default()).unwrap();
        let shown = || format!("{} on {}", serde_json::to_string(&requests).unwrap(), serde_json::to_string(&state).unwrap());
        let checked = verify::plan(&catalog, &state, &requests, &made);
        prop_assert!(checked.is_ok(), "{}: {}", shown(), checked.unwrap_err());
        prop_assert_eq!(made.bound_source == BoundSource::Solver, checked == Ok(Checked::Partial));
        if made.bound_source == BoundSource::Solver {
            return Ok(());
        }
        let mut tighter = made;
        match tighter.bound_of {
            BoundOf::Value if tighter.bound > tighter.value => tighter.bound -= 1,
            BoundOf::Members if tighter.bound > tighter.admitted => tighter.bound -= 1,
            BoundOf::Gpus if tighter.bound < tighter.gpus_opened => tighter.bound += 1,
            // A bound that is met: one more would be better than its bound.
            BoundOf::Value | BoundOf::Members => tighter.bound = tighter.bound.saturating_sub(1),
            BoundOf::Gpus => tighter.bound += 1,
        }
        tighter.gap_ppm = gap(&tighter);
        if tighter.bound > 0 {
            let refused = verify::plan(&catalog, &state, &requests, &tighter);
            prop_assert_eq!(refused.err().map(|v| v.rule), Some(Rule::Bound), "{}", shown());
        }
    }

    #[test]
    fn the_best_choice_lies_below_the_bound(tape in proptest::collection::vec(any::<u16>(), 0..200)) {
        let mut dice = Dice::new(tape);
        let requests: Vec<Workload> =
            requests(&mut dice, 3, 1).into_iter().map(|w| Workload { count: 1, anti_affinity: Vec::new(), ..w }).collect();
        let state = fleet(&mut dice, 1, 2);
        let catalog = Catalog::built_in().unwrap();
        let ledger = Ledger::new(catalog.clone(), policy("default"), &state).unwrap();
        let made = plan(&ledger, &requests, Objective::MostValue, PlanBudget::default()).unwrap();
        let valued: Vec<(Workload, u64)> =
            requests.iter().map(|w| (w.clone(), verify::value_of(&catalog, &state, w).unwrap())).collect();
        let best = World::of(&catalog, &state).most_value(&valued);
        let shown = || format!("{} on {}", serde_json::to_string(&requests).unwrap(), serde_json::to_string(&state).unwrap());
        prop_assert!(made.value <= best, "{} is more than the best, {best}: {}", made.value, shown());
        if made.bound_of == BoundOf::Value && made.bound_source != BoundSource::Solver {
            prop_assert!(best <= made.bound, "{best} is more than the bound {}: {}", made.bound, shown());
        }
    }
}

#[test]
fn plans_keep_to_power_caps() {
    let catalog = Catalog::built_in().unwrap();
    let gpu = || Gpu { model: "a100-80gb".into(), mode: Mode::Mig, ..Gpu::default() };
    let state = |limit_w| {
        let power_cap = Some(PowerCap { limit_w, throttle: false });
        let node = Node { name: "n0".into(), power_cap, gpus: vec![gpu(), gpu()], ..Node::default() };
        State { nodes: vec![node], ..State::default() }
    };
    // 100 W idle and 50 W a slice: six of fourteen slices.
    let requests = [Workload { name: "w".into(), count: 14, profile: Some("1g.10gb".into()), ..Workload::default() }];
    let ledger = Ledger::new(catalog.clone(), policy("default"), &state(449)).unwrap();
    let made = plan(&ledger, &requests, Objective::MostValue, PlanBudget::default()).unwrap();
    assert_eq!((made.admitted, made.refused, made.bound), (6, 8, 14));
    assert_eq!(made.relaxed, ["power_cap"]);
    assert_eq!(verify::plan(&catalog, &state(449), &requests, &made), Ok(Checked::Full));
    assert_eq!(verify::plan(&catalog, &state(399), &requests, &made).unwrap_err().rule, Rule::PowerCap);
}
