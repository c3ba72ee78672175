//! The engine against an oracle that tries everything, on small random fleets.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use proptest::prelude::*;
use slicewise_core::catalog::Catalog;
use slicewise_core::decision::{Action, Decision, Verdict};
use slicewise_core::fleet::{Gpu, Node, State};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::{Budget, Policy, decide};
use slicewise_core::verify;
use slicewise_core::workload::{Ask, Workload};
use slicewise_tests::dice::{Dice, cases};
use slicewise_tests::fleets::{fleet, policy, request};
use slicewise_tests::oracle::World;

fn catalog() -> Catalog {
    Catalog::built_in().unwrap()
}

fn ledger(state: &State, policy: Policy) -> Ledger {
    Ledger::new(catalog(), policy, state).unwrap()
}

fn bytes(state: &State) -> String {
    serde_json::to_string(state).unwrap()
}

/// The snapshot as it would be at version zero.
fn content(ledger: &Ledger) -> String {
    bytes(&State { version: 0, ..ledger.snapshot() })
}

fn tape() -> impl Strategy<Value = Vec<u16>> {
    proptest::collection::vec(any::<u16>(), 0..160)
}

fn answer(ledger: &Ledger, workload: &Workload) -> Decision {
    decide(ledger, workload, Budget::default()).unwrap()
}

/// What a decision says apart from the version it was made on.
fn gist(decision: &Decision) -> String {
    format!("{:?}", Decision { version: 0, ..decision.clone() })
}

/// Feasibility, the checker's opinion, commit, undo, reload and release of one request.
fn one_request(state: &State, workload: &Workload, name: &str) -> Result<(), TestCaseError> {
    let possible = World::of(&catalog(), state).has_place(workload);
    let mut ledger = ledger(state, policy(name));
    prop_assert_eq!(verify::state(&catalog(), state), Ok(()));
    prop_assert_eq!(verify::state(&catalog(), &ledger.snapshot()), Ok(()));
    let decision = answer(&ledger, workload);
    let why = || {
        let shown = State { models: Vec::new(), ..state.clone() };
        let texts = [serde_json::to_string(workload), serde_json::to_string(&shown), serde_json::to_string(&decision)];
        let [asked, on, gives] = texts.map(Result::unwrap);
        format!("{name}: {asked}\non {on}\ngives {gives}")
    };
    let checked = verify::decision(&catalog(), state, workload, &decision, false);
    prop_assert!(checked.is_ok(), "{} but {}", why(), checked.unwrap_err());
    match decision.verdict {
        Verdict::Admit => prop_assert!(possible, "{}", why()),
        Verdict::Wait | Verdict::Reject => prop_assert!(decision.proved && !possible, "{}", why()),
        Verdict::Undecided => return Ok(()),
    }
    prop_assert_eq!(&decision, &answer(&ledger, workload), "the same input gives the same answer");
    if decision.verdict != Verdict::Admit {
        return Ok(());
    }
    let later = [request(&mut Dice::new(vec![1]), "x", 1), request(&mut Dice::new(vec![0, 7]), "y", 1)];
    let before = (content(&ledger), later.clone().map(|w| gist(&answer(&ledger, &w))));
    let done = ledger.commit(workload, &decision).unwrap();
    prop_assert_eq!(verify::state(&catalog(), &ledger.snapshot()), Ok(()), "after the commit: {}", why());

    // A reload is the same state and decides alike.
    let reloaded = self::ledger(&ledger.snapshot(), policy(name));
    prop_assert_eq!(bytes(&reloaded.snapshot()), bytes(&ledger.snapshot()), "reload: {}", why());
    for w in &later {
        prop_assert_eq!(gist(&answer(&reloaded, w)), gist(&answer(&ledger, w)), "after a reload: {}", why());
    }

    let mut undone = ledger.clone();
    undone.undo(&done).unwrap();
    let after = (content(&undone), later.clone().map(|w| gist(&answer(&undone, &w))));
    prop_assert_eq!(&after, &before, "undo: {}", why());
    prop_assert_eq!(gist(&answer(&undone, workload)), gist(&decision), "undone, it decides alike: {}", why());

    ledger.release(&workload.name).unwrap();
    let destroys =
        decision.steps.iter().any(|s| matches!(s.action, Action::DestroyInstance { .. } | Action::DestroyVgpu { .. }));
    if !destroys && decision.mode_changes.is_empty() {
        prop_assert_eq!(content(&ledger), before.0, "release: {}", why());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(120), max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_member(tape in tape()) {
        let mut dice = Dice::new(tape);
        let workload = request(&mut dice, "new", 1);
        let policy = dice.pick(&Policy::NAMES).unwrap();
        let state = fleet(&mut dice, 3, 3);
        one_request(&state, &Workload { count: 1, ..workload }, policy)?;
    }

    #[test]
    fn every_policy_finds_a_place_alike(tape in tape()) {
        let mut dice = Dice::new(tape);
        let workload = request(&mut dice, "new", 1);
        let state = fleet(&mut dice, 2, 2);
        for name in Policy::NAMES {
            one_request(&state, &workload, name)?;
        }
    }

    #[test]
    fn adding_a_gpu_takes_no_place_away(tape in tape()) {
        let mut dice = Dice::new(tape);
        let workload = request(&mut dice, "new", 2);
        let name = dice.pick(&Policy::NAMES).unwrap();
        let state = fleet(&mut dice, 2, 2);
        let extra = fleet(&mut dice, 1, 1).nodes[0].gpus[0].clone();
        prop_assume!(!workload.any_of.iter().any(|ask| matches!(ask, Ask::Instances(_))));
        let decision = answer(&ledger(&state, policy(name)), &workload);
        let gpu = Gpu { instances: Vec::new(), ..extra };
        let mut more = state.clone();
        // An idle GPU draws power too, which under a cap is a place less.
        let is_capped = more.nodes[0].power_cap.is_some() || more.nodes[0].rack.is_some();
        if dice.once_in(2) && !is_capped {
            more.nodes[0].gpus.push(gpu);
        } else {
            more.nodes.push(Node { name: "more".into(), gpus: vec![gpu], ..Node::default() });
        }
        let after = answer(&ledger(&more, policy(name)), &workload);
        if decision.verdict == Verdict::Admit {
            prop_assert_ne!(after.verdict, Verdict::Reject, "{:?} on {:?}", workload, more);
        }
    }

    #[test]
    fn nodes_in_another_order_answer_alike(tape in tape()) {
        let mut dice = Dice::new(tape);
        let workload = request(&mut dice, "new", 2);
        let name = dice.pick(&Policy::NAMES).unwrap();
        let state = fleet(&mut dice, 3, 2);
        let mut turned = state.clone();
        turned.nodes.reverse();
        let (a, b) = (answer(&ledger(&state, policy(name)), &workload), answer(&ledger(&turned, policy(name)), &workload));
        prop_assert_eq!(a.verdict, b.verdict);
        prop_assert_eq!(verify::decision(&catalog(), &turned, &workload, &b, false).err(), None);
    }

    /// Alike nodes under other names: the same places by position.
    #[test]
    fn names_do_not_decide(tape in tape()) {
        let mut dice = Dice::new(tape);
        let workload = request(&mut dice, "new", 2);
        let name = dice.pick(&Policy::NAMES).unwrap();
        let state = fleet(&mut dice, 3, 2);
        let rename = |n: &str| format!("z{}", 9 - n.trim_start_matches('n').parse::<u32>().unwrap());
        let mut renamed = state.clone();
        renamed.nodes.iter_mut().for_each(|n| n.name = rename(&n.name));
        renamed.leases.iter_mut().flat_map(|l| &mut l.placements).for_each(|p| p.node = rename(&p.node));
        let a = answer(&ledger(&state, policy(name)), &workload);
        let b = answer(&ledger(&renamed, policy(name)), &workload);
        let places: Vec<_> = a.placements.iter().cloned().map(|p| slicewise_core::fleet::Placement { node: rename(&p.node), ..p }).collect();
        prop_assert_eq!(places, b.placements);
        prop_assert_eq!(a.verdict, b.verdict);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(80), max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn several_members(tape in tape()) {
        let mut dice = Dice::new(tape);
        let workload = request(&mut dice, "new", 3);
        let policy = dice.pick(&Policy::NAMES).unwrap();
        let state = fleet(&mut dice, 2, 2);
        one_request(&state, &workload, policy)?;
    }
}
