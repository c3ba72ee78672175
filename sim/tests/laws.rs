//! What holds for every replay, on small made-up traces.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use slicewise::formats::{Arrivals, StreamRequest};
use slicewise::ids::{Id, NodeId};
use slicewise::workload::{Fraction, WholeGpus};
use slicewise::{Ask, Catalog, Gpu, Model, Node, Policy, State, Workload};
use slicewise_sim::mig::{self, Outcome, Stream};
use slicewise_sim::openb::{Cluster, Placer, Product, Spot, Trace, TraceError, replay};
use slicewise_sim::rivals;

fn fraction(milli: u16) -> Ask {
    Ask::Fraction(Fraction { milli, ..Fraction::default() })
}

fn whole(count: u32) -> Ask {
    Ask::Gpus(WholeGpus { count, ..WholeGpus::default() })
}

fn pod(name: &str, ask: Ask, cpu_milli: u64, models: &[&str]) -> Workload {
    let models = models.iter().map(|m| (*m).to_owned()).collect();
    Workload { name: name.into(), count: 1, any_of: vec![ask], cpu_milli, models, ..Workload::default() }
}

/// Node `x` with four GPUs of model A, node `y` with two of model B.
fn trace() -> Trace {
    let node = |name: &str, model: &str, gpus| Node {
        name: name.into(),
        cpu_milli: Some(8_000),
        memory_mib: Some(1_000),
        gpus: (0..gpus).map(|i| Gpu { index: Some(i), model: model.into(), ..Gpu::default() }).collect(),
        ..Node::default()
    };
    let model = |id: &str| Model { id: id.into(), ..Model::default() };
    let state = State {
        models: vec![model("A"), model("B")],
        nodes: vec![node("x", "A", 4), node("y", "B", 2)],
        ..State::default()
    };
    let pods = vec![
        pod("half", fraction(500), 1_000, &[]),
        pod("two", whole(2), 1_000, &["A"]),
        pod("cpu", Ask::NodeOnly {}, 7_500, &[]),
        pod("most", fraction(810), 1_000, &["B"]),
    ];
    Trace::new(state, pods).unwrap()
}

fn order(pods: &[u32], ranks: &[u32]) -> Arrivals {
    Arrivals { seed: 1, pods: pods.to_vec(), ranks: ranks.to_vec() }
}

#[test]
fn every_policy_replays_within_what_there_is() {
    let trace = trace();
    let order = order(&[0, 3, 1, 0, 2, 0, 1, 3, 0, 0, 0], &[1, 0]);
    let product = |policy| -> Box<dyn Placer> { Box::new(Product::new(&trace, &order, policy).unwrap()) };
    let rivals = rivals::openb::NAMES.into_iter().map(|name| rivals::openb::named(name, &trace, &order).unwrap());
    let own = Policy::NAMES.into_iter().map(|name| product(Policy::named(name).unwrap()));
    for mut placer in rivals.chain(own) {
        let curve = replay(&trace, &order, placer.as_mut(), &mut |_, _| {}).unwrap();
        for percent in curve.percents() {
            let (allocated, fragmented) = (curve.allocated(percent).unwrap(), curve.fragmented(percent).unwrap());
            assert!(allocated + fragmented <= 10_000, "{allocated} + {fragmented} at {percent} %");
        }
        // The first pod is half a GPU of six.
        assert_eq!((curve.percents().next(), curve.allocated(8)), (Some(8), Some(833)));
    }
}

#[test]
fn a_pod_is_bound_only_where_it_fits() {
    let trace = trace();
    let mut cluster = Cluster::new(&trace, &order(&[], &[0, 1])).unwrap();
    let kinds: Vec<_> = trace.kinds().iter().map(|(_, pod)| *pod).collect();
    let on = |node: usize, devices: &[usize]| Spot { node: NodeId::from_index(node), devices: devices.to_vec() };
    assert!(!cluster.bind(&kinds[1], &on(0, &[1, 1])), "two GPUs are two");
    assert!(!cluster.bind(&kinds[1], &on(1, &[0, 1])), "of model A");
    assert!(!cluster.bind(&kinds[0], &on(0, &[7])), "there are four");
    assert!(!cluster.bind(&kinds[0], &on(5, &[0])), "there are two nodes");
    assert!(cluster.bind(&kinds[1], &on(0, &[3, 1])));
    assert_eq!(cluster.nodes()[NodeId::from_index(0)].devices, [1000, 0, 1000, 0]);
    assert!(!cluster.bind(&kinds[2], &on(0, &[])), "the CPU is taken");
}

#[test]
fn orders_of_another_trace_are_refused() {
    let trace = trace();
    for ranks in [&[0][..], &[0, 0], &[0, 1, 2]] {
        assert_eq!(Cluster::new(&trace, &order(&[], ranks)).unwrap_err(), TraceError::Ranks(1, 2));
    }
    let order = order(&[9], &[0, 1]);
    let mut placer = rivals::openb::named("published-fgd", &trace, &order).unwrap();
    let error = replay(&trace, &order, placer.as_mut(), &mut |_, _| {}).unwrap_err();
    assert_eq!(error.to_string(), "pod 9 is not in the table of 4 pods");
}

fn stream(requests: &[(u64, u64, &str)]) -> Stream {
    let request = |(arrival_milli, lifetime_milli, profile): &(u64, u64, &str)| StreamRequest {
        arrival_milli: *arrival_milli,
        lifetime_milli: *lifetime_milli,
        profile: (*profile).to_owned(),
    };
    let requests: Vec<StreamRequest> = requests.iter().map(request).collect();
    Stream::new(Catalog::built_in().unwrap().find("a100-80gb").unwrap(), &requests).unwrap()
}

fn run(stream: &Stream, policy: &str, gpus: usize, moves_ppm: u32) -> Outcome {
    let mut placer = rivals::mig::named(policy, stream, gpus)
        .unwrap_or_else(|| Box::new(mig::Product::new(stream, gpus, Policy::named(policy).unwrap()).unwrap()));
    mig::replay(stream, 0, moves_ppm, placer.as_mut(), &mut |_, _| {}).unwrap()
}

#[test]
fn room_comes_back_when_a_lease_ends() {
    let full = [(0, 10, "7g.80gb"), (9, 10, "1g.10gb"), (10, 10, "7g.80gb")];
    for policy in rivals::mig::NAMES.into_iter().chain(Policy::NAMES) {
        let outcome = run(&stream(&full), policy, 1, 0);
        assert_eq!((outcome.accepted, outcome.accepted_slices, outcome.slices), (2, 16, 17), "{policy}");
    }
}

#[test]
fn counts_lie_and_templates_bind() {
    // After the first 3g is gone a 4g would fit, and does where the GPU has no template.
    let requests = [(0, 5, "3g.40gb"), (1, 99, "3g.40gb"), (6, 99, "4g.40gb")];
    assert_eq!(run(&stream(&requests), "rival-first-fit", 1, 0).accepted, 3);
    assert_eq!(run(&stream(&requests), "rival-hami", 1, 0).accepted, 2);
    // The fullest GPU by count has the slices but no start for a 2g; the other would do.
    let requests = [(0, 99, "4g.40gb"), (1, 99, "1g.20gb"), (2, 99, "2g.20gb")];
    assert_eq!(run(&stream(&requests), "rival-first-fit", 2, 0).accepted, 3);
    assert_eq!(run(&stream(&requests), "rival-kai", 2, 0).accepted, 2);
}

#[test]
fn moves_keep_to_their_part_of_the_requests() {
    // Each 7g needs the single 1g out of its way, which has a second GPU to go to.
    let requests = [(0, 99, "1g.10gb"), (1, 1, "7g.80gb"), (3, 99, "1g.10gb"), (4, 99, "4g.40gb"), (5, 99, "7g.80gb")];
    assert_eq!(run(&stream(&requests), "spread", 2, 0).moves, 0);
    let free = run(&stream(&requests), "spread", 2, 1_000_000);
    assert!(free.moves > 0 && free.accepted == 5, "{free:?}");
    assert_eq!(run(&stream(&requests), "spread", 2, 150_000).moves, 0, "five requests allow no move");
}
