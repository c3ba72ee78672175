//! A whole published cluster trace, placed one request at a time under every policy. The
//! trace is read where it is beside the project; a small one in the same format always is.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at whatever is not as expected")]

use std::path::Path;

use slicewise::formats::{Imported, Kind, Options, Source, import};
use slicewise::{Catalog, Engine, MixEntry, Policy, Verdict, verify};

const NODES: &str = "sn,cpu_milli,memory_mib,gpu,model
a,64000,262144,2,T4
b,96000,393216,8,G2
c,32000,131072,0,
d,128000,786432,8,V100M32
";

/// Pods of every kind: no GPU, parts of one, whole ones, several, bound to models.
fn pods() -> String {
    let mut text = String::from(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n",
    );
    for i in 0..120 {
        let (gpus, milli, spec) = match i % 8 {
            0 => (0, 0, ""),
            1 => (1, 460, ""),
            2 => (1, 1000, ""),
            3 => (1, 250, "T4"),
            4 => (2, 1000, "G2|V100M32"),
            5 => (1, 810, "V100M32"),
            6 => (4, 1000, ""),
            _ => (1, 125, ""),
        };
        text.push_str(&format!("pod-{i},{},8192,{gpus},{milli},{spec},LS,Running,0,1,0\n", 1000 + 500 * (i % 5)));
    }
    text
}

fn imported(nodes: &str, pods: &str) -> Imported {
    let files = [Source { name: "nodes.csv", text: nodes }, Source { name: "pods.csv", text: pods }];
    import(Kind::Openb, &files, &Options::default(), &Catalog::built_in().unwrap()).unwrap()
}

fn policies(trace: &Imported) -> Vec<(&'static str, Policy)> {
    let asks = trace.requests.iter().step_by(97).flat_map(|r| r.alternatives());
    let mix: Vec<MixEntry> = asks.map(|ask| MixEntry { ask, weight: 1 }).collect();
    let named = |name| (name, Policy { mix: mix.clone(), ..Policy::named(name).unwrap() });
    Policy::NAMES.into_iter().map(named).collect()
}

/// Places all requests; checks the state that results, and that what is counted adds up.
fn place(trace: &Imported, policy: Policy) -> usize {
    let mut engine = Engine::builder().policy(policy).build(&trace.state).unwrap();
    let mut admitted = 0;
    for request in &trace.requests {
        let decision = engine.decide(request).unwrap();
        assert!(decision.proved, "{}: {:?}", request.name, decision.reasons);
        match decision.verdict {
            Verdict::Admit => {
                engine.commit(request, &decision).unwrap();
                admitted += 1;
            }
            Verdict::Reject => assert!(!decision.reasons.is_empty(), "{}", request.name),
            other => panic!("{}: {other:?}", request.name),
        }
    }
    let state = engine.snapshot();
    assert_eq!(state.leases.len(), admitted);
    verify::state(engine.ledger().catalog(), &state).unwrap();
    admitted
}

#[test]
fn a_small_trace_is_placed_under_every_policy() {
    let trace = imported(NODES, &pods());
    assert_eq!((trace.state.nodes.len(), trace.requests.len()), (4, 120));
    for (name, policy) in policies(&trace) {
        let admitted = place(&trace, policy);
        assert!((30..120).contains(&admitted), "{name}: {admitted}");
    }
}

#[test]
fn openb_is_placed_whole_under_every_policy() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces/openb");
    let read = |name: &str| std::fs::read_to_string(dir.join(name));
    let (Ok(nodes), Ok(pods)) = (read("openb_node_list_gpu_node.csv"), read("openb_pod_list_default.csv")) else {
        println!("skipped: no ../shared/traces/openb beside the project");
        return;
    };
    let trace = imported(&nodes, &pods);
    let gpus: usize = trace.state.nodes.iter().map(|n| n.gpus.len()).sum();
    assert_eq!((trace.state.nodes.len(), gpus, trace.requests.len()), (1213, 6212, 8152));
    for (name, policy) in policies(&trace) {
        let admitted = place(&trace, policy);
        // The trace asks more than the cluster has; every policy serves most of it.
        assert!((6500..8152).contains(&admitted), "{name}: {admitted}");
    }
}
