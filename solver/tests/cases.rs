//! What requests may say, one by one.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use common::{Random, any_of, gpu, ledger, mig, node, occupied, profile, request, requests};
use slicewise_core::catalog::Catalog;
use slicewise_core::fleet::{Mode, Node};
use slicewise_core::ledger::Ledger;
use slicewise_core::plan::{BoundOf, BoundSource, Certificate, Objective, Plan};
use slicewise_core::verify::{self, Admitted, Checked};
use slicewise_core::workload::{
    Ask, Fraction, GpuLink, Instances, InstancesOn, Requirement, Resources, Spread, WholeGpus, Workload,
};
use slicewise_solver::{PlanBudget, PlanError, plan};

fn planned(fleet: &Ledger, workloads: &[Workload]) -> Plan {
    let found = plan(fleet, workloads, Objective::MostValue, PlanBudget::default()).unwrap();
    let catalog = Catalog::built_in().unwrap();
    let checked = verify::plan(&catalog, &fleet.snapshot(), workloads, &found);
    assert_eq!(checked, Ok(Checked::Full));
    assert!(found.verified);
    found
}

fn fraction(milli: u16, memory_mib: u32) -> Ask {
    Ask::Fraction(Fraction { milli, memory_mib, memory_ppm: None })
}

fn whole(count: u32, link: Option<GpuLink>) -> Ask {
    Ask::Gpus(WholeGpus { count, link, ..WholeGpus::default() })
}

#[test]
fn nothing_asked_and_nothing_there_are_plans() {
    let nothing = planned(&ledger(vec![node("a", vec![mig()])]), &[]);
    assert_eq!((nothing.admitted, nothing.refused, nothing.gap_ppm), (0, 0, 0));
    let nowhere = planned(&ledger(Vec::new()), &[request("a", "1g.10gb", 3)]);
    assert_eq!((nowhere.admitted, nowhere.refused, nowhere.refusals.len()), (0, 3, 1));
}

#[test]
fn what_no_gpu_offers_is_refused_with_a_bound_of_zero() {
    let fleet = ledger(vec![node("a", vec![mig(); 2])]);
    let found = planned(&fleet, &[request("a", "1g.5gb", 4)]);
    assert_eq!((found.admitted, found.bound, found.gap_ppm, found.bound_of), (0, 0, 0, BoundOf::Value));
}

#[test]
fn a_wrong_request_is_named_by_its_path() {
    let fleet = ledger(vec![node("a", vec![mig()])]);
    let path = |workloads: &[Workload]| match plan(&fleet, workloads, Objective::MostValue, PlanBudget::default()) {
        Err(PlanError::Input(e)) => e.path().to_string(),
        other => panic!("{other:?}"),
    };
    let good = request("a", "1g.10gb", 1);
    assert_eq!(path(&[good.clone(), request("b", "9g.90gb", 1)]), "requests[1].profile");
    assert_eq!(path(&[good.clone(), good.clone()]), "requests[1].name");
    assert_eq!(path(&[Workload { count: 0, ..good.clone() }]), "requests[0].count");
    assert_eq!(
        path(&[any_of("b", &[profile("1g.10gb"), fraction(1001, 0)], 1)]),
        "requests[0].any_of[1].fraction.milli"
    );
}

#[test]
fn alternatives_are_chosen_so_that_all_fit() {
    // Seven compute slices: two that insist on 3g leave 1g for whoever takes it.
    let fleet = ledger(vec![node("a", vec![mig()])]);
    let flexible = any_of("flexible", &[profile("3g.40gb"), profile("1g.10gb")], 1);
    let found = planned(&fleet, &[flexible, request("firm", "4g.40gb", 1), request("other", "2g.20gb", 1)]);
    assert_eq!((found.admitted, found.gap_ppm), (3, 0));
    let lease = found.leases.iter().find(|l| l.name == "flexible").unwrap();
    assert_eq!(lease.placements[0].alternative, 1);
}

#[test]
fn at_least_takes_any_profile_that_is_enough() {
    let fleet = ledger(vec![node("a", vec![mig(); 2])]);
    let least = Resources { compute_slices: Some(2), ..Resources::default() };
    let found = planned(&fleet, &[any_of("a", &[Ask::AtLeast(least)], 6)]);
    assert_eq!((found.admitted, found.gap_ppm), (6, 0));
}

#[test]
fn models_and_modes_are_planned_together() {
    let fleet = ledger(vec![
        node("a", vec![mig(), mig(), gpu("a30-24gb", Mode::Mig)]),
        node("b", vec![gpu("a100-80gb", Mode::Whole), gpu("a100-80gb", Mode::Whole)]),
    ]);
    let only = Workload { models: vec!["a30-24gb".into()], ..any_of("small", &[profile("2g.12gb")], 3) };
    let workloads = [
        request("large", "3g.40gb", 5),
        only,
        any_of("whole", &[whole(1, None)], 1),
        any_of("half", &[fraction(500, 30_000)], 3),
        any_of("tiny", &[fraction(100, 1_000), profile("1g.10gb")], 4),
    ];
    let found = planned(&fleet, &workloads);
    let admitted = |name: &str| found.leases.iter().find(|l| l.name == name).map_or(0, |l| l.placements.len());
    assert_eq!(["large", "small", "whole", "half"].map(admitted), [4, 2, 1, 2]);
    assert_eq!((found.gap_ppm, found.bound_source), (0, BoundSource::Prices));
}

#[test]
fn gangs_come_whole_or_not_at_all() {
    let fleet = ledger(vec![node("a", vec![mig()]), node("b", vec![mig()])]);
    let gang = |name: &str, count| Workload { gang: true, ..request(name, "3g.40gb", count) };
    let found = planned(&fleet, &[gang("three", 3), gang("two", 2)]);
    assert_eq!((found.admitted, found.gpus_opened), (3, 2));
    let found = planned(&fleet, &[gang("five", 5), request("one", "1g.10gb", 1)]);
    assert_eq!((found.admitted, found.refused), (1, 5));
}

#[test]
fn node_cpu_limits_what_gpus_could_hold() {
    let small = Node { cpu_milli: Some(3_000), ..node("a", vec![mig(); 2]) };
    let large = Node { cpu_milli: Some(9_000), ..node("b", vec![mig(); 1]) };
    let fleet = ledger(vec![small, large]);
    let found = planned(&fleet, &[Workload { cpu_milli: 2_000, ..request("a", "1g.10gb", 10) }]);
    assert_eq!(found.admitted, 5);
    assert_eq!(found.relaxed, ["node_cpu"]);
    let memory = Node { memory_mib: Some(1_000), ..node("a", vec![mig()]) };
    let found = planned(&ledger(vec![memory]), &[Workload { memory_mib: 400, ..request("a", "1g.10gb", 3) }]);
    assert_eq!(found.admitted, 2);
}

#[test]
fn side_constraints_hold_together() {
    let labelled = |name: &str, zone: &str, gpus| Node {
        zone: Some(zone.into()),
        labels: BTreeMap::from([("disk".into(), "ssd".into())]),
        ..node(name, gpus)
    };
    let fleet = ledger(vec![
        labelled("a", "x", vec![mig(); 2]),
        labelled("b", "y", vec![mig(); 2]),
        node("c", vec![gpu("a100-80gb", Mode::Whole); 4]),
    ]);
    let disk = Requirement { key: "disk".into(), values: vec!["ssd".into()], ..Requirement::default() };
    let noisy = Requirement { key: "noise".into(), values: vec!["high".into()], ..Requirement::default() };
    let noise = BTreeMap::from([("noise".into(), "high".into())]);
    let pair = Instances { profiles: vec!["3g.40gb".into(), "3g.40gb".into()], on: InstancesOn::DistinctGpus };
    let workloads = [
        Workload { nodes: vec![disk], members: Some(Spread::DistinctZones), ..request("spread", "1g.10gb", 2) },
        Workload { labels: noise, ..request("noisy", "2g.20gb", 1) },
        Workload { anti_affinity: vec![noisy], ..request("quiet", "2g.20gb", 1) },
        any_of("pair", &[Ask::Instances(pair)], 1),
        any_of("wide", &[whole(3, None)], 1),
        any_of("node", &[Ask::NodeOnly {}], 2),
    ];
    let found = planned(&fleet, &workloads);
    assert_eq!((found.admitted, found.refused), (8, 0));
    let on = |name: &str| found.leases.iter().find(|l| l.name == name).unwrap().placements[0].node.clone();
    assert_ne!(on("noisy"), on("quiet"));
}

#[test]
fn links_between_whole_gpus_are_kept() {
    let numa = |n| slicewise_core::fleet::Gpu { numa_node: Some(n), ..gpu("a100-80gb", Mode::Whole) };
    let fleet = ledger(vec![node("a", vec![numa(0), numa(0), numa(1), numa(1)])]);
    let near = any_of("near", &[whole(2, Some(GpuLink::SameNuma))], 2);
    let found = planned(&fleet, &[any_of("one", &[whole(1, None)], 1), near]);
    // Two pairs are worth more than one and a single.
    assert_eq!((found.admitted, found.value), (2, 32));
    let alone = planned(&fleet, &[any_of("near", &[whole(2, Some(GpuLink::SameNuma))], 2)]);
    assert_eq!((alone.admitted, alone.gap_ppm), (2, 0));
}

#[test]
fn the_same_input_gives_the_same_plan() {
    for seed in 0..4 {
        let mut random = Random(seed);
        let nodes = (0..4).map(|i| node(&format!("n{i}"), (0..4).map(|_| occupied(&mut random, 4)).collect()));
        let fleet = ledger(nodes.collect());
        let mut workloads = requests(&mut random, 8);
        for objective in [Objective::MostValue, Objective::FewestGpus] {
            let once = plan(&fleet, &workloads, objective, PlanBudget::default()).unwrap();
            assert_eq!(once, plan(&fleet, &workloads, objective, PlanBudget::default()).unwrap());
        }
        workloads.iter_mut().step_by(2).for_each(|w| w.members = Some(Spread::DistinctGpus));
        let once = planned(&fleet, &workloads);
        assert_eq!(once, planned(&fleet, &workloads));
    }
}

#[test]
fn a_changed_price_changes_the_bound() {
    let mut random = Random(3);
    let fleet = ledger(vec![node("a", (0..8).map(|_| occupied(&mut random, 4)).collect())]);
    let workloads = [request("a", "1g.10gb", 30), request("b", "2g.20gb", 20), request("c", "3g.40gb", 20)];
    let found = planned(&fleet, &workloads);
    assert_eq!(found.bound_source, BoundSource::Prices);
    let catalog = Catalog::built_in().unwrap();
    let certificate = found.certificate.unwrap();
    let bound = |c: &Certificate| {
        verify::recompute_bound(&catalog, &fleet.snapshot(), &workloads, c, BoundOf::Value, Admitted::All).unwrap()
    };
    assert_eq!(bound(&certificate), found.bound);
    for i in 0..certificate.prices.len() {
        let mut mutated = certificate.clone();
        mutated.prices[i].price *= 3;
        assert!(bound(&mutated) > found.bound, "price {i}");
        mutated.prices[i].price = 0;
        assert!(bound(&mutated) > found.bound, "price {i}");
    }
}

#[test]
fn a_small_budget_still_gives_a_legal_plan() {
    let mut random = Random(5);
    let nodes = (0..4).map(|i| node(&format!("n{i}"), (0..4).map(|_| occupied(&mut random, 4)).collect()));
    let fleet = ledger(nodes.collect());
    let workloads = requests(&mut random, 12);
    let full = planned(&fleet, &workloads);
    let mut budget = PlanBudget::default();
    (budget.columns, budget.rows, budget.nodes, budget.work, budget.rounds) = (8, 20, 1, 100, 1);
    let small = plan(&fleet, &workloads, Objective::MostValue, budget).unwrap();
    assert!(small.verified && small.value <= full.value && small.bound >= full.value);
}
