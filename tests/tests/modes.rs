//! Changes of mode: the planner against every choice, and what the checker and the ledger
//! must refuse.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use proptest::prelude::*;
use slicewise_core::catalog::Catalog;
use slicewise_core::decision::{Action, Decision, ModeChange, Verdict};
use slicewise_core::fleet::{Gpu, Lease, Mode, Node, Part, Placement, State};
use slicewise_core::ledger::{CommitError, Ledger};
use slicewise_core::place::{Budget, Policy, decide, steps_for};
use slicewise_core::plan::{Objective, Plan};
use slicewise_core::verify::{self, Checked, Rule};
use slicewise_core::workload::{Ask, Fraction, MpsShare, WholeGpus, Workload};
use slicewise_solver::{PlanBudget, plan};
use slicewise_tests::dice::{Dice, cases};
use slicewise_tests::oracle::World;

const MODES: [Mode; 3] = [Mode::Mig, Mode::Whole, Mode::Mps];

fn catalog() -> Catalog {
    Catalog::built_in().unwrap()
}

fn gpu(mode: Mode, modes: &[Mode]) -> Gpu {
    Gpu { model: "a100-80gb".into(), mode, modes: modes.to_vec(), ..Gpu::default() }
}

fn fleet(gpus: Vec<Gpu>) -> State {
    State { nodes: vec![Node { name: "n".into(), gpus, ..Node::default() }], ..State::default() }
}

fn ledger(state: &State) -> Ledger {
    Ledger::new(catalog(), Policy::default(), state).unwrap()
}

fn asks() -> Vec<Ask> {
    let profile = |name: &str| Ask::Profile(name.into());
    let fraction = |milli| Ask::Fraction(Fraction { milli, ..Fraction::default() });
    let mps = |threads_percent| Ask::Mps(MpsShare { threads_percent, memory_mib: 0, contexts: 1 });
    let whole = Ask::Gpus(WholeGpus { count: 1, ..WholeGpus::default() });
    vec![
        profile("3g.40gb"),
        profile("4g.40gb"),
        profile("2g.20gb"),
        fraction(500),
        fraction(300),
        mps(50),
        mps(40),
        whole,
    ]
}

fn one(name: &str, ask: Ask) -> Workload {
    Workload { name: name.into(), count: 1, any_of: vec![ask], ..Workload::default() }
}

fn planned(state: &State, requests: &[Workload]) -> Plan {
    let found = plan(&ledger(state), requests, Objective::MostValue, PlanBudget::default()).unwrap();
    assert_eq!(verify::plan(&catalog(), state, requests, &found), Ok(Checked::Full));
    found
}

#[test]
fn the_planner_decides_the_modes() {
    let state = fleet(vec![gpu(Mode::Whole, &MODES), gpu(Mode::Whole, &MODES), gpu(Mode::Mig, &MODES)]);
    let many = |name: &str, count, ask| Workload { count, ..one(name, ask) };
    let [three, four, .., half, _, mps, _, whole] = &asks()[..] else { panic!("eight asks") };
    // One GPU each: cut, shared by two clients, and given whole.
    let requests = [
        many("cut", 1, three.clone()),
        many("cut too", 1, four.clone()),
        many("clients", 2, mps.clone()),
        many("all", 1, whole.clone()),
    ];
    let found = planned(&state, &requests);
    assert_eq!((found.admitted, found.refused, found.gpus_opened, found.gap_ppm), (5, 0, 3, 0));
    // The GPU that is cut already is the one that is cut.
    assert_eq!(found.mode_changes.len(), 1);
    assert_eq!((found.mode_changes[0].from, found.mode_changes[0].to), (Mode::Whole, Mode::Mps));
    let steps = steps_for(&ledger(&state), &found.leases, &found.mode_changes).unwrap();
    assert_eq!(steps.iter().filter(|s| matches!(s.action, Action::SetMode { .. })).count(), 1);
    // Halves need a fourth GPU.
    let requests: Vec<Workload> = requests.into_iter().chain([many("halves", 2, half.clone())]).collect();
    let found = planned(&state, &requests);
    assert_eq!((found.value, found.bound, found.gap_ppm), (24, 24, 0));
}

#[test]
fn false_changes_of_mode_in_plans_do_not_pass() {
    let state = fleet(vec![gpu(Mode::Whole, &[Mode::Mig]), gpu(Mode::Whole, &[Mode::Mig])]);
    let requests = [one("a", Ask::Profile("3g.40gb".into()))];
    let found = planned(&state, &requests);
    let change = |f: &dyn Fn(&mut Plan)| {
        let mut changed = found.clone();
        f(&mut changed);
        verify::plan(&catalog(), &state, &requests, &changed).unwrap_err().rule
    };
    assert_eq!(change(&|p| p.mode_changes.clear()), Rule::NotOffered);
    assert_eq!(change(&|p| p.mode_changes[0].to = Mode::Mps), Rule::Mode);
    assert_eq!(change(&|p| p.mode_changes[0].from = Mode::Mps), Rule::Mode);
    assert_eq!(change(&|p| p.mode_changes.push(p.mode_changes[0].clone())), Rule::Mode);
    let other = ModeChange { gpu: 1 - found.mode_changes[0].gpu, ..found.mode_changes[0].clone() };
    assert_eq!(change(&|p| p.mode_changes.push(other.clone())), Rule::Mode);
    let mut used = state.clone();
    used.leases.push(Lease {
        name: "old".into(),
        placements: vec![Placement {
            node: "n".into(),
            gpu: Some(found.mode_changes[0].gpu),
            part: Part::Whole,
            ..Placement::default()
        }],
        ..Lease::default()
    });
    assert_eq!(verify::plan(&catalog(), &used, &requests, &found).unwrap_err().rule, Rule::Mode);
    let mut fixed = state.clone();
    fixed.nodes[0].gpus.iter_mut().for_each(|gpu| gpu.modes.clear());
    assert_eq!(verify::plan(&catalog(), &fixed, &requests, &found).unwrap_err().rule, Rule::Mode);
}

#[test]
fn a_bound_counts_every_mode() {
    let state = fleet(vec![gpu(Mode::Whole, &[Mode::Mig])]);
    let requests = [Workload { count: 3, ..one("a", Ask::Profile("3g.40gb".into())) }];
    let found = planned(&state, &requests);
    assert_eq!((found.admitted, found.value, found.bound), (2, 8, 8));
    let mut tighter = found;
    (tighter.bound, tighter.value) = (7, 8);
    assert_eq!(verify::plan(&catalog(), &state, &requests, &tighter).unwrap_err().rule, Rule::Bound);
}

#[test]
fn modes_that_a_model_cannot_be_in_are_named() {
    let bad = |gpu: Gpu| {
        let error = Ledger::new(catalog(), Policy::default(), &fleet(vec![gpu])).unwrap_err();
        (error.path().to_string(), error.fault().code())
    };
    let partitions = gpu(Mode::Mig, &[Mode::Whole, Mode::Partitions]);
    assert_eq!(bad(partitions), ("nodes[0].gpus[0].modes[1]".into(), "mode_not_offered"));
    assert_eq!(bad(gpu(Mode::Mig, &[Mode::TimeSlicing])), ("nodes[0].gpus[0].sharing.replicas".into(), "invalid"));
    assert_eq!(bad(gpu(Mode::Partitions, &[Mode::Mig])), ("nodes[0].gpus[0].mode".into(), "mode_not_offered"));
}

#[test]
fn a_decision_on_a_mode_that_changed_since_is_a_conflict() {
    let mut ledger = ledger(&fleet(vec![gpu(Mode::Mig, &[Mode::Whole])]));
    let admit = |ledger: &Ledger, workload: &Workload| -> Decision {
        let decision = decide(ledger, workload, Budget::default()).unwrap();
        assert_eq!(decision.verdict, Verdict::Admit);
        decision
    };
    let cut = one("cut", Ask::Profile("1g.10gb".into()));
    let all = one("all", Ask::Gpus(WholeGpus { count: 1, ..WholeGpus::default() }));
    let (first, second) = (admit(&ledger, &cut), admit(&ledger, &all));
    let before = ledger.snapshot();
    let done = ledger.commit(&all, &second).unwrap();
    assert_eq!(ledger.snapshot().nodes[0].gpus[0].mode, Mode::Whole);
    assert!(matches!(ledger.commit(&cut, &first), Err(CommitError::Conflict { .. })));
    ledger.undo(&done).unwrap();
    assert_eq!(State { version: 0, ..ledger.snapshot() }, before);
    // What was decided before stays refused: the GPU has changed, and back.
    assert!(matches!(ledger.commit(&all, &second), Err(CommitError::Conflict { .. })));
    // Release leaves the mode as it is.
    let third = admit(&ledger, &all);
    ledger.commit(&all, &third).unwrap();
    ledger.release("all").unwrap();
    assert_eq!(ledger.snapshot().nodes[0].gpus[0].mode, Mode::Whole);
    assert_eq!(admit(&ledger, &cut).mode_changes.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60), failure_persistence: None, ..ProptestConfig::default() })]

    /// On small fleets the plan is as good as the best of all choices, modes included.
    #[test]
    fn plans_are_as_good_as_every_choice(tape in proptest::collection::vec(any::<u16>(), 0..60)) {
        let mut dice = Dice::new(tape);
        let mut gpus = Vec::new();
        for _ in 0..=dice.roll(3) {
            let modes = if dice.once_in(4) { &[][..] } else { &MODES };
            gpus.push(gpu(dice.pick(&MODES).unwrap(), modes));
        }
        let state = fleet(gpus);
        let asks = asks();
        let mut requests = Vec::new();
        for i in 0..=dice.roll(6) {
            let value = Some(1 + dice.roll(9) as u64);
            let mut workload = Workload { value, ..one(&format!("r{i}"), dice.pick(&asks).unwrap()) };
            if dice.once_in(3) {
                workload.any_of.push(dice.pick(&asks).unwrap());
            }
            requests.push(workload);
        }
        let found = planned(&state, &requests);
        let valued: Vec<(Workload, u64)> = requests.iter().map(|w| (w.clone(), w.value.unwrap())).collect();
        let best = World::of(&catalog(), &state).most_value(&valued);
        prop_assert_eq!(found.value, best, "{} on {}", serde_json::to_string(&requests).unwrap(), serde_json::to_string(&state).unwrap());
    }
}
