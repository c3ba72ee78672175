//! Power: what is drawn, what caps refuse, who is slowed, and the policy of least power.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at whatever is not as expected")]

use rstest::rstest;
use serde_json::json;
use slicewise_core::catalog::{Catalog, PowerStatus};
use slicewise_core::decision::{Decision, Verdict};
use slicewise_core::fleet::State;
use slicewise_core::ids::{GpuId, NodeId};
use slicewise_core::ledger::{CommitError, Ledger};
use slicewise_core::perf::power::slowed;
use slicewise_core::place::{Budget, Policy, decide};
use slicewise_core::verify;
use slicewise_core::workload::Workload;

fn load(policy: &str, state: serde_json::Value) -> Result<Ledger, (String, &'static str)> {
    let state: State = serde_json::from_value(state).unwrap();
    let ledger = Ledger::new(Catalog::built_in().unwrap(), Policy::named(policy).unwrap(), &state);
    let checked = verify::state(&Catalog::built_in().unwrap(), &state);
    assert_eq!(ledger.is_ok(), checked.is_ok(), "{checked:?}");
    ledger.map_err(|e| (e.path().to_owned(), e.fault().code()))
}

fn request(name: &str, ask: serde_json::Value) -> Workload {
    serde_json::from_value(json!({ "name": name, "any_of": [ask] })).unwrap()
}

fn answer(ledger: &Ledger, workload: &Workload) -> Decision {
    let decision = decide(ledger, workload, Budget::default()).unwrap();
    verify::decision(ledger.catalog(), &ledger.snapshot(), workload, &decision, false).unwrap();
    decision
}

fn admit(ledger: &mut Ledger, name: &str, ask: serde_json::Value) -> String {
    let workload = request(name, ask);
    let decision = answer(ledger, &workload);
    ledger.commit(&workload, &decision).unwrap();
    format!("{}:{}", decision.placements[0].node, decision.placements[0].gpu.unwrap())
}

#[test]
fn every_figure_has_its_source_and_rises() {
    let catalog = Catalog::built_in().unwrap();
    let ids = catalog.models().map(|m| m.id.as_str());
    for id in ids {
        let row = catalog.power_row(id).unwrap_or_else(|| panic!("`{id}` has no row"));
        assert_eq!(row.status == PowerStatus::Unknown, row.power.full_w.is_none(), "{id}");
        assert_eq!(row.status == PowerStatus::Unknown, row.sources.is_empty(), "{id}");
        assert!(row.sources.iter().all(|key| catalog.source(key).is_some()), "{id}");
        assert!(row.power.idle_w.is_none_or(|idle| Some(idle) < row.power.full_w), "{id}");
    }
}

/// A GPU of 30 W idle and 300 W full, with one thing on it.
#[rstest]
#[case(json!({}), json!(null), 30_000)]
#[case(json!({ "model": "a100-80gb" }), json!({ "kind": "whole" }), 300_000)]
#[case(json!({ "model": "a100-80gb", "power_limit_w": 250 }), json!({ "kind": "whole" }), 250_000)]
#[case(json!({ "model": "a100-80gb" }), json!({ "kind": "fraction", "milli": 1, "memory_mib": 0 }), 30_270)]
#[case(json!({ "power": { "idle_w": 30, "active_w": 90, "full_w": 300 } }), json!({ "kind": "fraction", "milli": 500, "memory_mib": 0 }), 195_000)]
#[case(json!({ "mode": "mig" }), json!({ "kind": "instance", "profile": "3g.40gb", "start": 0, "size": 4 }), 145_715)]
#[case(json!({ "mode": "mig" }), json!({ "kind": "compute", "profile": "3g.40gb", "start": 0, "size": 4, "compute_profile": "1c.3g.40gb", "compute_start": 0 }), 68_572)]
#[case(json!({ "mode": "mps" }), json!({ "kind": "fraction", "milli": 250, "memory_mib": 0 }), 97_500)]
#[case(json!({ "mode": "mps", "sharing": { "threads_percent_max": 200 } }), json!({ "kind": "fraction", "milli": 1500, "memory_mib": 0 }), 300_000)]
#[case(json!({ "mode": "time_slicing", "sharing": { "replicas": 4 } }), json!({ "kind": "share", "share": "replica" }), 97_500)]
#[case(json!({ "model": "a2", "mode": "vgpu" }), json!({ "kind": "share", "share": "A2-8Q" }), 165_000)]
#[case(json!({ "model": "a2", "mode": "vgpu_mixed" }), json!({ "kind": "instance", "profile": "A2-4C", "start": 0, "size": 4 }), 97_500)]
fn a_gpu_draws_by_the_compute_in_use(
    #[case] gpu: serde_json::Value,
    #[case] part: serde_json::Value,
    #[case] draw_mw: u64,
) {
    let mut document = json!({ "model": "a100-80gb", "power": { "idle_w": 30, "full_w": 300 } });
    document.as_object_mut().unwrap().extend(gpu.as_object().unwrap().clone());
    let mut state = json!({ "nodes": [{ "name": "n", "power_cap": { "limit_w": 1000 }, "gpus": [document] }] });
    if let Some(part) = part.as_object() {
        let mut placement = json!({ "node": "n", "gpu": 0 });
        placement.as_object_mut().unwrap().extend(part.clone());
        state["leases"] = json!([{ "name": "a", "placements": [placement] }]);
    }
    let ledger = load("default", state.clone()).unwrap();
    assert_eq!(ledger.gpu_draw_mw(GpuId(0)), Some(draw_mw));
    // The checker counts the same: it takes a cap of as much, and none of a watt less.
    let most = draw_mw.div_ceil(1000);
    state["nodes"][0]["power_cap"]["limit_w"] = json!(most);
    assert!(load("default", state.clone()).is_ok());
    state["nodes"][0]["power_cap"]["limit_w"] = json!(most - 1);
    assert_eq!(load("default", state).unwrap_err(), ("nodes[0].power_cap".into(), "invalid"));
}

#[rstest]
#[case(json!({ "nodes": [{ "name": "n", "power_cap": { "limit_w": 900 }, "gpus": [{ "model": "l4" }] }] }), "nodes[0].gpus[0].power", "unknown_power")]
#[case(json!({ "racks": [{ "name": "r", "power_cap": { "limit_w": 900 } }], "nodes": [{ "name": "n", "rack": "r", "gpus": [{ "model": "l4" }] }] }), "nodes[0].gpus[0].power", "unknown_power")]
#[case(json!({ "nodes": [{ "name": "n", "gpus": [{ "model": "l4", "power_limit_w": 60 }] }] }), "nodes[0].gpus[0].power", "unknown_power")]
#[case(json!({ "nodes": [{ "name": "n", "gpus": [{ "model": "t4", "power_limit_w": 9 }] }] }), "nodes[0].gpus[0].power_limit_w", "out_of_range")]
#[case(json!({ "nodes": [{ "name": "n", "gpus": [{ "model": "t4", "power": { "idle_w": 80 } }] }] }), "nodes[0].gpus[0].power", "invalid")]
#[case(json!({ "nodes": [{ "name": "n", "cpu_power": { "cores": 0, "idle_w": 1, "full_w": 2 } }] }), "nodes[0].cpu_power", "invalid")]
#[case(json!({ "racks": [{ "name": "r" }], "nodes": [{ "name": "n", "rack": "s" }] }), "nodes[0].rack", "unknown_name")]
#[case(json!({ "racks": [{ "name": "r" }, { "name": "r" }], "nodes": [] }), "racks[1].name", "duplicate")]
#[case(json!({ "racks": [{ "name": "r", "power_cap": { "limit_w": 9 } }], "nodes": [{ "name": "n", "rack": "r", "gpus": [{ "model": "t4" }] }] }), "racks[0].power_cap", "invalid")]
fn what_cannot_be_is_said_with_its_path(#[case] state: serde_json::Value, #[case] path: &str, #[case] code: &str) {
    assert_eq!(load("default", state).unwrap_err(), (path.to_owned(), code));
}

#[test]
fn cpu_counts_where_the_node_says_how_much_it_has() {
    let mut state =
        json!({ "nodes": [{ "name": "n", "cpu_milli": 16_000, "power_cap": { "limit_w": 70 }, "gpus": [] }] });
    let mut ledger = load("default", state.clone()).unwrap();
    assert_eq!(ledger.node_draw_mw(NodeId(0)), Some(15_000));
    let ask = |cpu: u64| Workload { cpu_milli: cpu, ..request("a", json!({ "node_only": {} })) };
    // 6.5625 W a core: 8 cores are 52.5 W, 9 are 59.1 W.
    let refused = answer(&ledger, &ask(9_000));
    let reason = &refused.reasons[0];
    assert_eq!(
        (reason.code.name(), reason.needed, reason.largest_free),
        ("power_cap_node", Some(59_063), Some(55_000))
    );
    let decision = answer(&ledger, &ask(8_000));
    ledger.commit(&ask(8_000), &decision).unwrap();
    assert_eq!(ledger.node_draw_mw(NodeId(0)), Some(67_500));
    state["nodes"][0]["cpu_power"] = json!({ "cores": 32, "idle_w": 100, "full_w": 300 });
    assert_eq!(load("default", state).unwrap().node_draw_mw(NodeId(0)), Some(50_000));
}

#[test]
fn power_that_another_gpu_took_is_a_conflict() {
    let gpu = json!({ "model": "t4" });
    let state = json!({ "nodes": [{ "name": "n", "power_cap": { "limit_w": 100 }, "gpus": [gpu, gpu] }] });
    let mut ledger = load("spread", state).unwrap();
    let (first, second) =
        (request("a", json!({ "gpus": { "count": 1 } })), request("b", json!({ "gpus": { "count": 1 } })));
    let early = answer(&ledger, &first);
    let mut other = answer(&ledger, &second);
    other.placements[0].gpu = Some(1);
    let before = ledger.snapshot();
    let done = ledger.commit(&second, &other).unwrap();
    assert_eq!(early.placements[0].gpu, Some(0));
    let conflict = ledger.commit(&first, &early).unwrap_err();
    assert!(matches!(&conflict, CommitError::Conflict { what, .. } if what == "the power that node `n` has left"));
    assert_eq!(answer(&ledger, &first).verdict, Verdict::Reject);
    ledger.undo(&done).unwrap();
    assert_eq!(State { version: before.version, ..ledger.snapshot() }, before);
    assert_eq!(ledger.nodes()[NodeId(0)].power.draw_mw, 20_000);
    assert_eq!(answer(&ledger, &first).verdict, Verdict::Admit);
}

#[test]
fn members_of_one_request_share_a_racks_cap() {
    let node = |name: &str| json!({ "name": name, "rack": "r", "gpus": [{ "model": "t4" }] });
    let state = json!({
        "racks": [{ "name": "r", "power_cap": { "limit_w": 150 } }],
        "nodes": [node("a"), node("b"), node("c")],
    });
    let ledger = load("default", state).unwrap();
    let gang = |count: u32| Workload { count, gang: true, ..request("g", json!({ "gpus": { "count": 1 } })) };
    assert_eq!(answer(&ledger, &gang(2)).verdict, Verdict::Admit);
    assert_eq!(answer(&ledger, &gang(3)).verdict, Verdict::Reject);
}

#[test]
fn least_power_wakes_the_thriftiest_and_fills_what_is_awake() {
    let state = json!({ "nodes": [
        { "name": "big", "gpus": [{ "model": "a100-80gb" }] },
        { "name": "unknown", "gpus": [{ "model": "l4" }] },
        { "name": "small", "gpus": [{ "model": "t4" }, { "model": "t4" }] },
        { "name": "waking", "gpus": [{ "model": "a10", "power": { "active_w": 150 } }] },
    ] });
    let mut ledger = load("least-power", state).unwrap();
    let half = || json!({ "fraction": { "milli": 500 } });
    let placed: Vec<String> = (0..7).map(|i| admit(&mut ledger, &format!("w{i}"), half())).collect();
    // Halves cost 30 W on a T4, 120 and then nothing on the A10 that wakes to its full watts,
    // 175 on the A100; nobody knows what the L4 draws.
    let expected = ["small:0", "small:0", "small:1", "small:1", "waking:0", "waking:0", "big:0"];
    assert_eq!(placed, expected);
}

#[test]
fn throttling_takes_from_those_who_draw_most() {
    let gpu = json!({ "model": "t4" });
    let state = json!({ "nodes": [{
        "name": "n", "power_cap": { "limit_w": 80, "throttle": true }, "gpus": [gpu, gpu],
    }] });
    let mut ledger = load("first-fit", state).unwrap();
    admit(&mut ledger, "half", json!({ "fraction": { "milli": 500 } }));
    admit(&mut ledger, "whole", json!({ "gpus": { "count": 1 } }));
    assert!(slowed(&load("default", json!({ "nodes": [] })).unwrap()).is_empty());
    // 60 W above idle for wishes of 30 and 60: the small one is served, the large one halved.
    let all = slowed(&ledger);
    let found: Vec<_> = all.iter().map(|s| (s.name.as_str(), s.demand_mw, s.share_mw, s.rate_ppm.low)).collect();
    assert_eq!(found, [("whole", 60_000, 30_000, 500_000)]);
}
