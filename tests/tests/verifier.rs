//! The checker must refuse what is false: right answers of the engine, each made wrong in
//! one place.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at whatever is not as expected")]

use proptest::prelude::*;
use slicewise_core::catalog::Catalog;
use slicewise_core::decision::{Action, Decision, Proof, Verdict};
use slicewise_core::fleet::{Gpu, Lease, Mode, Node, Part, Placement, PowerCap, Rack, State, Usage};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::{Budget, decide};
use slicewise_core::plan::{BoundOf, BoundSource, Certificate, Method, Objective, Plan, Price, Refusal};
use slicewise_core::verify::{self, Admitted, Checked, Rule, Violation};
use slicewise_core::workload::{Ask, MpsPriority, Workload};
use slicewise_tests::dice::{Dice, cases};
use slicewise_tests::fleets::{fleet, policy, request};
use slicewise_tests::oracle::World;

fn catalog() -> Catalog {
    Catalog::built_in().unwrap()
}

fn profile(name: &str, count: u32, profile: &str) -> Workload {
    Workload { name: name.into(), count, profile: Some(profile.into()), ..Workload::default() }
}

fn mig(model: &str) -> Gpu {
    Gpu { model: model.into(), mode: Mode::Mig, ..Gpu::default() }
}

fn one_node(gpus: Vec<Gpu>) -> State {
    State { nodes: vec![Node { name: "n0".into(), gpus, ..Node::default() }], ..State::default() }
}

fn answer(state: &State, workload: &Workload) -> Decision {
    let ledger = Ledger::new(catalog(), policy("default"), state).unwrap();
    decide(&ledger, workload, Budget::default()).unwrap()
}

fn check(state: &State, workload: &Workload, decision: &Decision) -> Result<Checked, Violation> {
    verify::decision(&catalog(), state, workload, decision, false)
}

/// Changes that no admission survives.
fn mutations(decision: &Decision) -> Vec<(&'static str, Decision)> {
    let mut all = Vec::new();
    let mut push = |name, change: &dyn Fn(&mut Decision)| {
        let mut changed = decision.clone();
        change(&mut changed);
        all.push((name, changed));
    };
    push("version", &|d| d.version += 1);
    push("request", &|d| d.workload.push('x'));
    push("a member twice", &|d| d.placements.push(d.placements[0].clone()));
    push("a member less", &|d| {
        let last = d.placements.last().unwrap().member;
        d.placements.retain(|p| p.member != last);
    });
    push("a member too many", &|d| {
        let last = d.placements.last().unwrap().clone();
        d.placements.push(Placement { member: last.member + 1, ..last });
    });
    push("alternative", &|d| d.placements.iter_mut().for_each(|p| p.alternative += 7));
    push("MPS priority", &|d| d.placements[0].mps_priority = MpsPriority::BelowNormal);
    push("node", &|d| d.placements[0].node.push('x'));
    if decision.placements[0].gpu.is_some() {
        push("gpu", &|d| d.placements[0].gpu = Some(77));
    }
    if decision.placements[0].uuid.is_some() {
        push("uuid", &|d| d.placements.iter_mut().for_each(|p| p.uuid = Some("no".into())));
    }
    for i in 0..decision.placements.len() {
        push("start", &|d| {
            if let Part::Instance { start, .. } | Part::Compute { start, .. } = &mut d.placements[i].part {
                *start += 1;
            } else {
                d.placements[i].member += 1;
            }
        });
        push("size", &|d| match &mut d.placements[i].part {
            Part::Instance { size, .. } | Part::Compute { size, .. } => *size += 1,
            Part::Fraction { milli, .. } => *milli += 1,
            Part::Share { share } => share.push('x'),
            Part::Whole => d.placements[i].part = Part::Fraction { milli: 1000, memory_mib: 0, contexts: 1 },
            Part::NodeOnly => d.placements[i].part = Part::Whole,
        });
    }
    for i in 0..decision.steps.len() {
        push("a step less", &|d| {
            d.steps.remove(i);
        });
        push("a step twice", &|d| d.steps.insert(i, d.steps[i].clone()));
        push("disturbs", &|d| d.steps[i].disturbs.push("somebody".into()));
        push("step on another GPU", &|d| d.steps[i].gpu += 50);
    }
    for i in 0..decision.mode_changes.len() {
        push("a change of mode less", &|d| {
            d.mode_changes.remove(i);
        });
        push("a change of mode twice", &|d| d.mode_changes.push(d.mode_changes[i].clone()));
        push("a change from another mode", &|d| d.mode_changes[i].from = d.mode_changes[i].to);
        push("a change to another mode", &|d| d.mode_changes[i].to = d.mode_changes[i].from);
        push("a change of another GPU", &|d| d.mode_changes[i].gpu += 50);
        push("steps to another mode", &|d| {
            for step in &mut d.steps {
                if let Action::SetMode { from, to } = &mut step.action {
                    std::mem::swap(from, to);
                }
            }
        });
        push("the change of mode last", &|d| {
            let (set, mut rest): (Vec<_>, Vec<_>) =
                d.steps.drain(..).partition(|s| matches!(s.action, Action::SetMode { .. }));
            rest.extend(set);
            d.steps = rest;
        });
    }
    let made = |d: &Decision| d.steps.iter().any(|s| !matches!(s.action, Action::Attach { .. }));
    if made(decision) && decision.steps.len() > 1 {
        push("steps in reverse", &|d| d.steps.reverse());
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(150), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_false_decision_passes(tape in proptest::collection::vec(any::<u16>(), 0..120)) {
        let mut dice = Dice::new(tape);
        let workload = request(&mut dice, "new", 2);
        let state = fleet(&mut dice, 2, 2);
        let decision = answer(&state, &workload);
        if decision.verdict == Verdict::Admit {
            for (name, changed) in mutations(&decision) {
                let checked = check(&state, &workload, &changed);
                prop_assert!(checked.is_err(), "{name} passes: {workload:?} on {state:?}: {changed:?}");
            }
            let refusal = Decision {
                verdict: Verdict::Reject,
                proved: true,
                proof: Some(Proof::ExhaustedSearch),
                placements: Vec::new(),
                steps: Vec::new(),
                mode_changes: Vec::new(),
                ..decision
            };
            let checked = check(&state, &workload, &refusal);
            prop_assert!(matches!(checked, Err(_) | Ok(Checked::Partial)), "a false no passes: {workload:?} on {state:?}");
            if workload.count == 1 && !matches!(workload.any_of[0], Ask::Instances(_) | Ask::Gpus(_)) {
                prop_assert_eq!(checked.unwrap_err().rule, Rule::Refusal);
            }
        }
    }

    /// Instances put anywhere: the state passes exactly if the oracle's plain rules hold.
    #[test]
    fn states_pass_if_the_oracle_says_so(tape in proptest::collection::vec(any::<u16>(), 0..40)) {
        let mut dice = Dice::new(tape);
        let model = dice.pick(&["a100-80gb", "a30-24gb", "rtx-pro-6000-96gb"]).unwrap();
        let mut state = one_node(vec![mig(model)]);
        let catalog = catalog();
        let profiles = &catalog.find(model).unwrap().profiles;
        let mut there = Vec::new();
        for _ in 0..=dice.roll(5) {
            let profile = dice.roll(profiles.len());
            let start = u16::try_from(dice.roll(12)).unwrap();
            let usage = dice.pick(&[Usage::Busy, Usage::Idle]).unwrap();
            let instance = slicewise_core::fleet::Instance { profile: profiles[profile].name.clone(), start, usage, ..Default::default() };
            state.nodes[0].gpus[0].instances.push(instance);
            there.push((profile, start));
        }
        let bare = one_node(vec![mig(model)]);
        let legal = World::of(&catalog, &bare).devices[0].may_hold(&there);
        prop_assert_eq!(verify::state(&catalog, &state).is_ok(), legal, "{:?}", state);
        prop_assert_eq!(Ledger::new(catalog.clone(), policy("default"), &state).is_ok(), legal, "{:?}", state);
        let own = catalog.find(model).unwrap();
        prop_assert_eq!(verify::device::check(own, &own.profiles, None, own.max_gpu_instances, &there).is_ok(), legal);
    }
}

#[test]
fn what_is_busy_is_not_destroyed() {
    let mut state = one_node(vec![mig("a100-80gb")]);
    let instance = |profile: &str, start, usage| slicewise_core::fleet::Instance {
        profile: profile.into(),
        start,
        usage,
        ..Default::default()
    };
    state.nodes[0].gpus[0].instances = vec![instance("4g.40gb", 0, Usage::Busy), instance("2g.20gb", 4, Usage::Idle)];
    let workload = profile("new", 2, "1g.10gb");
    let decision = answer(&state, &workload);
    assert_eq!(check(&state, &workload, &decision), Ok(Checked::Full));
    state.nodes[0].gpus[0].instances[1].usage = Usage::Busy;
    assert_eq!(check(&state, &workload, &decision).unwrap_err().rule, Rule::Overlap);
}

#[test]
fn moves_are_checked() {
    let mut state = one_node(vec![mig("a100-80gb")]);
    let place = |name: &str, start| Lease {
        name: name.into(),
        placements: vec![Placement {
            node: "n0".into(),
            gpu: Some(0),
            part: Part::Instance { profile: "1g.10gb".into(), start, size: 1 },
            ..Placement::default()
        }],
        ..Lease::default()
    };
    state.leases = vec![place("a", 0), place("b", 1), place("c", 5)];
    let workload = Workload { allow_moves: true, ..profile("new", 1, "3g.40gb") };
    let decision = answer(&state, &workload);
    assert_eq!((decision.verdict, decision.moves.len()), (Verdict::Admit, 1));
    assert_eq!(check(&state, &workload, &decision), Ok(Checked::Full));
    let refused = |decision: &Decision| check(&state, &workload, decision).unwrap_err().rule;
    assert_eq!(
        check(&state, &Workload { allow_moves: false, ..workload.clone() }, &decision).unwrap_err().rule,
        Rule::Move
    );
    let change = |f: &dyn Fn(&mut Decision)| {
        let mut changed = decision.clone();
        f(&mut changed);
        refused(&changed)
    };
    assert_eq!(change(&|d| d.moves[0].lease = "a".into()), Rule::Move);
    assert_eq!(change(&|d| d.moves[0].to.start = 4), Rule::Overlap);
    assert_eq!(change(&|d| d.moves[0].to.profile = "1g.20gb".into()), Rule::Move);
    assert_eq!(change(&|d| d.moves.clear()), Rule::Overlap);
    assert_eq!(change(&|d| d.steps.iter_mut().for_each(|s| s.disturbs.clear())), Rule::Disturbs);
    for i in 0..decision.steps.len() {
        change(&|d| d.steps[i].disturbs = vec!["a".into()]);
        change(&|d| {
            d.steps.remove(i);
        });
    }
    for pin in [true, false] {
        let mut pinned = state.clone();
        pinned.leases[2].pinned = pin;
        assert_eq!(check(&pinned, &workload, &decision).is_err(), pin);
    }
}

/// A plan by hand: each request decided after the other.
fn plan_of(state: &State, workloads: &[Workload], of: BoundOf, prices: &[(&str, u64)], scale: u64) -> Plan {
    let mut ledger = Ledger::new(catalog(), policy("pack"), state).unwrap();
    let (mut leases, mut refusals, mut admitted, mut value) = (Vec::new(), Vec::new(), 0, 0);
    for workload in workloads {
        let decision = decide(&ledger, workload, Budget::default()).unwrap();
        if decision.verdict != Verdict::Admit {
            refusals.push(Refusal { workload: workload.name.clone(), members: workload.count.into() });
            continue;
        }
        ledger.commit(workload, &decision).unwrap();
        leases.push(ledger.snapshot().leases.last().unwrap().clone());
        admitted += u64::from(workload.count);
        value += u64::from(workload.count) * verify::value_of(&catalog(), state, workload).unwrap();
    }
    let all: u64 = workloads.iter().map(|w| u64::from(w.count)).sum();
    let mut gpus: Vec<_> =
        leases.iter().flat_map(|l: &Lease| l.placements.iter().map(|p| (p.node.clone(), p.gpu))).collect();
    gpus.sort();
    gpus.dedup();
    let mut nodes: Vec<_> = gpus.iter().map(|(n, _)| n.clone()).collect();
    nodes.dedup();
    let price =
        |(name, price): &(&str, u64)| Price { part: Ask::Profile((*name).into()), models: Vec::new(), price: *price };
    let certificate = Certificate { scale, prices: prices.iter().map(price).collect() };
    let bound = verify::recompute_bound(&catalog(), state, workloads, &certificate, of, Admitted::All).unwrap();
    let count = gpus.len() as u64;
    let distance = match of {
        BoundOf::Value => bound - value,
        BoundOf::Members => bound - admitted,
        BoundOf::Gpus => count - bound,
    };
    Plan {
        version: state.version,
        objective: Objective::MostValue,
        method: Method::FewestLostPlacements,
        relaxed: Vec::new(),
        verified: false,
        admitted,
        refused: all - admitted,
        value,
        gpus_used: count,
        gpus_opened: count,
        nodes_opened: nodes.len() as u64,
        bound_of: of,
        bound,
        gap_ppm: (distance * 1_000_000).div_ceil(bound.max(1)),
        bound_source: BoundSource::Prices,
        certificate: Some(certificate),
        leases,
        mode_changes: Vec::new(),
        refusals,
        budget_exhausted: false,
    }
}

#[test]
fn false_plans_do_not_pass() {
    let state = one_node(vec![mig("a100-80gb"), mig("a100-80gb")]);
    let workloads = [profile("a", 2, "3g.40gb"), profile("b", 3, "2g.20gb"), profile("c", 1, "7g.80gb")];
    // With cells as prices, no GPU is worth more than its cells.
    let prices = [("3g.40gb", 4), ("2g.20gb", 2), ("7g.80gb", 8)];
    let plan = plan_of(&state, &workloads, BoundOf::Value, &prices, 1);
    assert_eq!((plan.admitted, plan.refused, plan.value, plan.bound), (5, 1, 14, 16));
    assert_eq!(verify::plan(&catalog(), &state, &workloads, &plan), Ok(Checked::Full));
    let change = |f: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        f(&mut changed);
        verify::plan(&catalog(), &state, &workloads, &changed).unwrap_err().rule
    };
    let tighter = |p: &mut Plan| {
        p.bound -= 1;
        p.gap_ppm = ((p.bound - p.value) * 1_000_000).div_ceil(p.bound);
    };
    assert_eq!(change(&tighter), Rule::Bound);
    assert_eq!(change(&|p| p.certificate.as_mut().unwrap().prices[0].price += 1), Rule::Bound);
    assert_eq!(change(&|p| p.certificate.as_mut().unwrap().prices[0].price -= 1), Rule::Bound);
    assert_eq!(change(&|p| p.certificate.as_mut().unwrap().scale = 0), Rule::Document);
    assert_eq!(change(&|p| p.certificate = None), Rule::Bound);
    assert_eq!(change(&|p| p.bound_source = BoundSource::Demand), Rule::Bound);
    assert_eq!(change(&|p| p.bound_of = BoundOf::Gpus), Rule::Bound);
    assert_eq!(change(&|p| p.gap_ppm -= 1), Rule::Gap);
    assert_eq!(change(&|p| p.value += 1), Rule::Total);
    assert_eq!(change(&|p| p.admitted += 1), Rule::Total);
    assert_eq!(change(&|p| p.gpus_used += 1), Rule::Total);
    assert_eq!(change(&|p| p.gpus_opened -= 1), Rule::Total);
    assert_eq!(change(&|p| p.nodes_opened += 1), Rule::Total);
    assert_eq!(change(&|p| p.refusals.clear()), Rule::Total);
    assert_eq!(change(&|p| p.refusals[0].members += 1), Rule::Total);
    assert_eq!(change(&|p| p.leases[1] = p.leases[0].clone()), Rule::Unknown);
    assert_eq!(change(&|p| p.leases[0].pinned = true), Rule::Terms);
    assert_eq!(change(&|p| p.leases[0].placements[0] = p.leases[0].placements[1].clone()), Rule::Alternative);
    assert_eq!(change(&|p| p.leases[0].placements[0].gpu = Some(9)), Rule::Unknown);
    let mut solver = plan.clone();
    solver.bound_source = BoundSource::Solver;
    assert_eq!(verify::plan(&catalog(), &state, &workloads, &solver), Ok(Checked::Partial));
}

#[test]
fn a_gang_in_part_does_not_pass() {
    let state = one_node(vec![mig("a100-80gb")]);
    let workloads = [Workload { gang: true, ..profile("a", 2, "3g.40gb") }];
    let mut plan = plan_of(&state, &workloads, BoundOf::Value, &[], 1);
    assert_eq!(verify::plan(&catalog(), &state, &workloads, &plan), Ok(Checked::Full));
    plan.leases[0].placements.pop();
    assert_eq!(verify::plan(&catalog(), &state, &workloads, &plan).unwrap_err().rule, Rule::Gang);
}

#[test]
fn gpus_are_bounded_from_below() {
    let state = one_node(vec![mig("a100-80gb"), mig("a100-80gb"), mig("a100-80gb")]);
    let workloads = [profile("a", 3, "3g.40gb")];
    // Two fit on one GPU: half a GPU each.
    let plan = plan_of(&state, &workloads, BoundOf::Gpus, &[("3g.40gb", 1)], 2);
    assert_eq!((plan.gpus_opened, plan.bound, plan.gap_ppm), (2, 2, 0));
    assert_eq!(verify::plan(&catalog(), &state, &workloads, &plan), Ok(Checked::Full));
    let mut tighter = plan.clone();
    tighter.certificate.as_mut().unwrap().prices[0].price = 0;
    assert_eq!(verify::plan(&catalog(), &state, &workloads, &tighter).unwrap_err().rule, Rule::Bound);
}

#[test]
fn a_big_plan_is_checked_by_states_not_by_gpus() {
    let node = |n: usize| Node { name: format!("n{n}"), gpus: vec![mig("a100-80gb"); 8], ..Node::default() };
    let state = State { nodes: (0..875).map(node).collect(), ..State::default() };
    let workloads = [profile("a", 5000, "3g.40gb"), profile("b", 5000, "2g.20gb")];
    let place = |w: &str, i: u32, name: &str, start, size| Placement {
        member: i,
        node: format!("n{}", if w == "a" { i / 16 } else { 313 + i / 24 }),
        gpu: Some(if w == "a" { i / 2 % 8 } else { i / 3 % 8 }),
        part: Part::Instance { profile: name.into(), start, size },
        ..Placement::default()
    };
    let lease = |w: &Workload, placements| Lease { name: w.name.clone(), placements, ..Lease::default() };
    let leases = vec![
        lease(&workloads[0], (0..5000).map(|i| place("a", i, "3g.40gb", (i % 2 * 4) as u16, 4)).collect()),
        lease(&workloads[1], (0..5000).map(|i| place("b", i, "2g.20gb", (i % 3 * 2) as u16, 2)).collect()),
    ];
    let mut plan = plan_of(&one_node(vec![mig("a100-80gb")]), &[], BoundOf::Value, &[], 1);
    plan.leases = leases;
    (plan.admitted, plan.value, plan.bound, plan.gap_ppm) = (10_000, 30_000, 30_000, 0);
    (plan.gpus_used, plan.gpus_opened, plan.nodes_opened) = (2500 + 1667, 2500 + 1667, 313 + 209);
    assert_eq!(verify::plan(&catalog(), &state, &workloads, &plan), Ok(Checked::Full));
}

/// Two A100 in MIG mode, on a node or in a rack with this cap.
fn capped(limit_w: u32, of_rack: bool) -> State {
    let mut state = one_node(vec![mig("a100-80gb"), mig("a100-80gb")]);
    let power_cap = Some(PowerCap { limit_w, throttle: false });
    if of_rack {
        state.racks = vec![Rack { name: "r".into(), power_cap }];
        state.nodes[0].rack = Some("r".into());
    } else {
        state.nodes[0].power_cap = power_cap;
    }
    state
}

#[test]
fn no_decision_passes_a_power_cap_and_none_is_invented() {
    // 100 W idle, and 150 W for each of two instances of three slices.
    let workload = profile("w", 2, "3g.40gb");
    for of_rack in [false, true] {
        let (roomy, tight) = (capped(400, of_rack), capped(399, of_rack));
        let admitted = answer(&roomy, &workload);
        assert_eq!(check(&roomy, &workload, &admitted), Ok(Checked::Full));
        assert_eq!(check(&tight, &workload, &admitted).unwrap_err().rule, Rule::PowerCap);
        let refused = answer(&tight, &workload);
        assert_eq!((refused.verdict, refused.proved), (Verdict::Reject, true));
        assert_eq!(check(&tight, &workload, &refused), Ok(Checked::Full));
        assert_eq!(check(&roomy, &workload, &refused).unwrap_err().rule, Rule::Refusal);
        let mut full = Ledger::new(catalog(), policy("default"), &roomy).unwrap();
        full.commit(&workload, &admitted).unwrap();
        let over = State { nodes: full.snapshot().nodes, racks: tight.racks.clone(), ..full.snapshot() };
        let over = State {
            nodes: over.nodes.into_iter().map(|n| Node { power_cap: tight.nodes[0].power_cap, ..n }).collect(),
            ..over
        };
        assert_eq!(verify::state(&catalog(), &over).unwrap_err().rule, Rule::PowerCap);
    }
}
