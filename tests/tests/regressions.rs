//! Faults that the property tests have found, each as small as it gets.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use slicewise_core::catalog::{Catalog, Profile};
use slicewise_core::decision::{Decision, Verdict};
use slicewise_core::fleet::{Gpu, Instance, Mode, Node, Part, State, Usage};
use slicewise_core::ids::NodeId;
use slicewise_core::ledger::Ledger;
use slicewise_core::place::{Budget, Policy, decide};
use slicewise_core::verify;
use slicewise_core::workload::{Ask, Instances, InstancesOn, Spread, Workload};

fn mig(model: &str) -> Gpu {
    Gpu { model: model.into(), mode: Mode::Mig, ..Gpu::default() }
}

fn idle(profile: &str, start: u16) -> Instance {
    Instance { profile: profile.into(), start, usage: Usage::Idle, ..Instance::default() }
}

fn fleet(gpus: Vec<Gpu>) -> State {
    State { nodes: vec![Node { name: "n0".into(), gpus, ..Node::default() }], ..State::default() }
}

fn ledger(state: &State, policy: &str) -> Ledger {
    Ledger::new(Catalog::built_in().unwrap(), Policy::named(policy).unwrap(), state).unwrap()
}

fn answer(state: &State, policy: &str, workload: &Workload) -> Decision {
    let decision = decide(&ledger(state, policy), workload, Budget::default()).unwrap();
    let checked = verify::decision(&Catalog::built_in().unwrap(), state, workload, &decision, false);
    assert!(checked.is_ok(), "{}", checked.unwrap_err());
    decision
}

fn instances(profiles: &[&str], on: InstancesOn) -> Vec<Ask> {
    vec![Ask::Instances(Instances { profiles: profiles.iter().map(|p| p.to_string()).collect(), on })]
}

fn named(name: &str, profile: &str) -> Workload {
    Workload { name: name.into(), count: 1, profile: Some(profile.into()), ..Workload::default() }
}

/// Several instances may lie anywhere on the node; the search looks at GPUs of one kind.
#[test]
fn instances_of_two_models() {
    let state = fleet(vec![mig("a100-80gb"), mig("rtx-pro-6000-96gb")]);
    let any_of = instances(&["1g.10gb", "1g.24gb"], InstancesOn::Any);
    let workload = Workload { name: "new".into(), count: 1, any_of, ..Workload::default() };
    assert_eq!(answer(&state, "default", &workload).verdict, Verdict::Admit);
}

/// Only the first set is looked at for one member, and it destroys an idle instance.
#[test]
fn instances_beside_idle_ones() {
    let gpu = Gpu { instances: vec![idle("2g.20gb", 0)], ..mig("a100-80gb") };
    let any_of = instances(&["1g.10gb", "1g.10gb"], InstancesOn::Any);
    let workload = Workload { name: "new".into(), count: 1, keep_idle: true, any_of, ..Workload::default() };
    assert_eq!(answer(&fleet(vec![gpu]), "first-fit", &workload).verdict, Verdict::Admit);
}

/// All sets that are looked at for the second member hold the first one's GPU.
#[test]
fn instances_of_two_members_on_distinct_gpus() {
    let any_of = instances(&["1g.10gb", "1g.10gb", "1g.10gb"], InstancesOn::Any);
    let members = Some(Spread::DistinctGpus);
    let workload = Workload { name: "new".into(), count: 2, any_of, members, ..Workload::default() };
    assert_eq!(answer(&fleet(vec![mig("a100-80gb"); 5]), "first-fit", &workload).verdict, Verdict::Admit);
}

/// The document that is kept of a node has the cordon it was read with.
#[test]
fn a_cordon_is_in_the_snapshot() {
    let mut ledger = ledger(&fleet(vec![mig("a100-80gb")]), "default");
    ledger.set_node_cordon(NodeId(0), true);
    assert!(ledger.snapshot().nodes[0].cordoned);
}

/// A rule of two profiles of which a device lists one under the rule's name becomes a rule
/// against that one alone.
#[test]
fn a_rule_of_two_needs_two() {
    let catalog = Catalog::built_in().unwrap();
    let own = &catalog.find("a100-80gb").unwrap().profiles;
    let rename = |p: &Profile| Profile { name: p.name.replace("3g.40gb", "3g.39gb"), ..p.clone() };
    let gpu = Gpu { driver: Some("470.57.02".into()), profiles: own.iter().map(rename).collect(), ..mig("a100-80gb") };
    assert_eq!(answer(&fleet(vec![gpu]), "default", &named("new", "4g.40gb")).verdict, Verdict::Admit);
}

/// The other way round: under other names the search lets in a pair that the driver refuses.
#[test]
fn a_rule_of_two_holds_under_other_names() {
    let catalog = Catalog::built_in().unwrap();
    let own = &catalog.find("a100-80gb").unwrap().profiles;
    let rename = |p: &Profile| Profile { name: p.name.replace(".40gb", ".39gb"), ..p.clone() };
    let gpu = Gpu {
        driver: Some("470.57.02".into()),
        profiles: own.iter().map(rename).collect(),
        instances: vec![Instance { profile: "4g.39gb".into(), start: 0, ..Instance::default() }],
        ..mig("a100-80gb")
    };
    assert_eq!(answer(&fleet(vec![gpu]), "default", &named("new", "3g.39gb")).verdict, Verdict::Reject);
}

/// Where there are no GPUs, every alternative is served by the node alone.
#[test]
fn a_profile_is_not_served_by_a_node() {
    let any_of = vec![Ask::Profile("1g.10gb".into()), Ask::NodeOnly {}];
    let workload = Workload { name: "new".into(), count: 1, any_of, ..Workload::default() };
    let decision = answer(&fleet(Vec::new()), "default", &workload);
    assert_eq!((decision.placements[0].alternative, &decision.placements[0].part), (1, &Part::NodeOnly));
}

/// Where there are no GPUs, members are placed one by one without a second thought.
#[test]
fn members_without_gpus_are_searched() {
    let node = |name: &str, zone: &str, cpu| Node {
        name: name.into(),
        zone: Some(zone.into()),
        cpu_milli: Some(cpu),
        ..Node::default()
    };
    // The node with least CPU left is alone in its zone.
    let nodes = vec![node("n0", "a", 1000), node("n1", "b", 2000), node("n2", "b", 2000)];
    let workload = Workload {
        name: "new".into(),
        count: 2,
        cpu_milli: 1000,
        any_of: vec![Ask::NodeOnly {}],
        members: Some(Spread::SameZone),
        ..Workload::default()
    };
    let state = State { nodes, ..State::default() };
    assert_eq!(answer(&state, "default", &workload).verdict, Verdict::Admit);
}

/// A later change that was itself taken back still stands in the way.
#[test]
fn changes_are_taken_back_in_reverse() {
    let mut ledger = ledger(&fleet(vec![mig("a100-80gb")]), "default");
    let mut done = Vec::new();
    for name in ["a", "b"] {
        let workload = named(name, "1g.10gb");
        let decision = decide(&ledger, &workload, Budget::default()).unwrap();
        done.push(ledger.commit(&workload, &decision).unwrap());
    }
    while let Some(change) = done.pop() {
        assert!(ledger.undo(&change).is_ok());
    }
}
