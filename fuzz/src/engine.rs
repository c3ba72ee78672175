//! Scripts for the engine: a small fleet and events, with everything that must hold
//! checked after each event.

use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use slicewise_core::catalog::{Model, ShareType};
use slicewise_core::decision::{Decision, Verdict};
use slicewise_core::fleet::{Gpu, Health, Instance, Mode, Node, Sharing, State, Usage};
use slicewise_core::ids::{GpuId, Id, NodeId};
use slicewise_core::ledger::{CommitError, Committed, Ledger};
use slicewise_core::place::{Budget, Policy, decide, explain};
use slicewise_core::reason::Code;
use slicewise_core::verify;
use slicewise_core::workload::{
    Ask, Fraction, GpuLink, Instances, InstancesOn, MpsPriority, MpsShare, Requirement, Resources, Spread, WholeGpus,
    Workload,
};

use crate::text::CATALOG;

const NODES_MAX: usize = 3;
const GPUS_MAX: usize = 3;
const INSTANCES_MAX: usize = 4;
const EVENTS_MAX: usize = 16;
const BUDGET: Budget = Budget { work: 5_000, moves: 2 };

/// Names that requests ask for: all profiles of the models, some compute instances, shares.
const PROFILES: [&str; 38] = [
    "1g.6gb",
    "1g.6gb+me",
    "2g.12gb",
    "2g.12gb+me",
    "4g.24gb",
    "1c.2g.12gb",
    "1c.4g.24gb",
    "1g.10gb",
    "1g.10gb+me",
    "1g.20gb",
    "2g.20gb",
    "3g.40gb",
    "4g.40gb",
    "7g.80gb",
    "1c.2g.20gb",
    "1c.3g.40gb",
    "2c.3g.40gb",
    "1c.7g.80gb",
    "1g.24gb",
    "1g.24gb+me",
    "1g.24gb+gfx",
    "1g.24gb+me.all",
    "1g.24gb-me",
    "2g.48gb",
    "2g.48gb+gfx",
    "4g.96gb",
    "half",
    "slot",
    "A2-4C",
    "A2-8Q",
    "A10-12C",
    "A10-8C",
    "A10-6Q",
    "DC-1-12C",
    "DC-2-48C",
    "replica",
    "cpx_nps1",
    "dpx_nps1",
];

/// A fleet and what happens to it.
#[derive(Debug, Arbitrary)]
pub struct Script {
    policy: u8,
    allow_moves: bool,
    // Arrays, since a vector made from random bytes is mostly short.
    node_count: u8,
    nodes: [NodeSpec; NODES_MAX],
    events: [Event; EVENTS_MAX],
}

#[derive(Debug, Arbitrary)]
struct NodeSpec {
    zone: u8,
    cpu: Option<u8>,
    memory: Option<u8>,
    has_pool: bool,
    has_partition: bool,
    gpu_count: u8,
    gpus: [GpuSpec; GPUS_MAX],
}

#[derive(Debug, Arbitrary)]
struct GpuSpec {
    kind: GpuKind,
    health: u8,
    instance_count: u8,
    instances: [(u8, u8, bool); INSTANCES_MAX],
}

#[derive(Debug, Arbitrary)]
enum GpuKind {
    A30,
    A100,
    Rtx6000,
    Whole,
    Sliced,
    Vgpu,
    VgpuMixed,
    VgpuMig,
    Mps(Option<u8>),
    TimeSlicing,
    Partitions,
}

#[derive(Debug, Arbitrary)]
enum Event {
    Decide(Request),
    Admit(Request),
    Commit(u8),
    Release(u8),
    Undo(u8),
    CordonGpu(u8, bool),
    CordonNode(u8, bool),
    Explain(Request),
}

#[derive(Debug, Arbitrary)]
struct Request {
    asks: [Option<Wish>; 2],
    count: u8,
    cpu: u8,
    memory: u8,
    spread: u8,
    traits: u16,
}

#[derive(Debug, Arbitrary)]
enum Wish {
    Profile(u8),
    AtLeast(u8, u8),
    Gpus(u8, u8),
    Fraction(u8, u8),
    Mps(u8, u8, u8),
    Instances(u8, u8, Option<u8>, u8),
    NodeOnly,
}

fn pick<T: Copy>(from: &[T], by: u8) -> T {
    from[usize::from(by) % from.len()]
}

impl Script {
    fn policy(&self) -> Policy {
        let policy = Policy::named(pick(&Policy::NAMES, self.policy)).expect("a name of the list");
        Policy { allow_moves: self.allow_moves, ..policy }
    }

    fn state(&self) -> State {
        let shares = [("half", 2), ("slot", 4)].map(|(name, max_per_gpu)| ShareType {
            name: name.into(),
            max_per_gpu,
            ..ShareType::default()
        });
        let sliced =
            Model { id: "sliced".into(), memory_mib: Some(16_384), share_types: shares.to_vec(), ..Model::default() };
        let nodes = self
            .nodes
            .iter()
            .take(usize::from(self.node_count) % NODES_MAX + 1)
            .enumerate()
            .map(|(i, node)| node.build(i));
        State { models: vec![sliced], nodes: nodes.collect(), ..State::default() }
    }
}

impl NodeSpec {
    fn build(&self, position: usize) -> Node {
        let gpus: Vec<Gpu> =
            self.gpus.iter().take(usize::from(self.gpu_count) % (GPUS_MAX + 1)).map(GpuSpec::build).collect();
        Node {
            name: format!("n{position}"),
            zone: pick(&[None, Some("y"), Some("z")], self.zone).map(Into::into),
            cpu_milli: self.cpu.map(|c| u64::from(c % 9) * 1000),
            memory_mib: self.memory.map(|m| u64::from(m % 9) * 1024),
            labels: self.has_pool.then(|| ("pool".into(), "x".into())).into_iter().collect(),
            fabric_partitions: (self.has_partition && gpus.len() >= 2).then(|| vec![0, 1]).into_iter().collect(),
            gpus,
            ..Node::default()
        }
    }
}

impl GpuSpec {
    fn build(&self) -> Gpu {
        let (model, mode) = match self.kind {
            GpuKind::A30 => ("a30-24gb", Mode::Mig),
            GpuKind::A100 => ("a100-80gb", Mode::Mig),
            GpuKind::Rtx6000 => ("rtx-pro-6000-96gb", Mode::Mig),
            GpuKind::Whole => ("a100-80gb", Mode::Whole),
            GpuKind::Sliced => ("sliced", Mode::Shares),
            GpuKind::Vgpu => ("a2", Mode::Vgpu),
            GpuKind::VgpuMixed => ("a10", Mode::VgpuMixed),
            GpuKind::VgpuMig => ("rtx-pro-6000-96gb", Mode::VgpuMig),
            GpuKind::Mps(_) => ("a30-24gb", Mode::Mps),
            GpuKind::TimeSlicing => ("t4", Mode::TimeSlicing),
            GpuKind::Partitions => ("mi300x", Mode::Partitions),
        };
        let sharing = Sharing {
            replicas: (mode == Mode::TimeSlicing).then_some(3),
            static_chunks: match self.kind {
                GpuKind::Mps(chunks) => chunks.map(|n| u16::from(n) + 1),
                _ => None,
            },
            virtual_functions: (mode == Mode::VgpuMixed && self.health % 2 == 0).then_some(2),
            ..Sharing::default()
        };
        let health = if self.health > 240 { Health::Degraded } else { Health::Healthy };
        let others: &[Mode] = match model {
            "a30-24gb" | "a100-80gb" => &[Mode::Whole, Mode::Mig, Mode::Mps],
            "rtx-pro-6000-96gb" => &[Mode::Mig, Mode::VgpuMig, Mode::Whole],
            "a2" | "a10" => &[Mode::Vgpu, Mode::VgpuMixed],
            _ => &[Mode::Whole],
        };
        // A bit for each.
        let modes = others.iter().zip(0..).filter(|(_, bit)| self.health >> bit & 1 != 0).map(|(mode, _)| *mode);
        let mut gpu = Gpu { model: model.into(), mode, modes: modes.collect(), health, sharing, ..Gpu::default() };
        let profiles = CATALOG.find(model).map(|m| m.profiles.as_slice()).unwrap_or_default();
        if mode == Mode::Mig {
            for (profile, start, is_idle) in
                self.instances.iter().take(usize::from(self.instance_count) % (INSTANCES_MAX + 1))
            {
                let profile = &profiles[usize::from(*profile) % profiles.len()];
                let starts = profile.placements.as_ref().map(|p| p.starts.as_slice()).unwrap_or_default();
                let usage = if *is_idle { Usage::Idle } else { Usage::Busy };
                let instance = Instance {
                    profile: profile.name.clone(),
                    start: pick(starts, *start),
                    usage,
                    ..Instance::default()
                };
                gpu.instances.push(instance);
                if !is_legal(&gpu) {
                    gpu.instances.pop();
                }
            }
        }
        gpu
    }
}

fn is_legal(gpu: &Gpu) -> bool {
    let node = Node { name: "n".into(), gpus: vec![gpu.clone()], ..Node::default() };
    Ledger::new(CATALOG.clone(), Policy::default(), &State { nodes: vec![node], ..State::default() }).is_ok()
}

impl Request {
    fn build(&self, number: usize) -> Workload {
        let has = |bit: u16| self.traits & (1 << bit) != 0;
        let app = |on: bool| {
            on.then(|| Requirement { key: "app".into(), values: vec!["db".into()], ..Requirement::default() })
        };
        let pool = Requirement { key: "pool".into(), values: vec!["x".into()], ..Requirement::default() };
        let mut any_of: Vec<Ask> = self.asks.iter().flatten().map(Wish::build).collect();
        if any_of.is_empty() {
            any_of.push(Ask::NodeOnly {});
        }
        let spreads = [
            None,
            None,
            None,
            Some(Spread::DistinctGpus),
            Some(Spread::DistinctNodes),
            Some(Spread::DistinctZones),
            Some(Spread::SameNode),
            Some(Spread::SameZone),
        ];
        Workload {
            name: format!("w{number}"),
            count: pick(&[1, 1, 1, 2, 3, 4], self.count),
            any_of,
            cpu_milli: pick(&[0, 0, 500, 1000, 3000], self.cpu),
            memory_mib: pick(&[0, 0, 512, 2048], self.memory),
            members: pick(&spreads, self.spread),
            labels: has(0).then(|| ("app".into(), "db".into())).into_iter().collect(),
            anti_affinity: app(has(1) && has(2)).into_iter().collect(),
            nodes: (has(3) && has(4)).then_some(pool).into_iter().collect(),
            keep_idle: has(5),
            allow_moves: has(6),
            pinned: has(7) && has(8),
            queue: has(9),
            models: (has(10) && has(11)).then(|| "a100-80gb".into()).into_iter().collect(),
            ..Workload::default()
        }
    }
}

impl Wish {
    fn build(&self) -> Ask {
        let name = |by: u8| String::from(pick(&PROFILES, by));
        match self {
            Self::Profile(by) => Ask::Profile(name(*by)),
            Self::AtLeast(slices, memory) => Ask::AtLeast(Resources {
                compute_slices: Some(u16::from(slices % 8)),
                memory_mib: (*memory > 0).then(|| u32::from(*memory) * 512),
                ..Resources::default()
            }),
            Self::Gpus(count, link) => {
                let links = [None, Some(GpuLink::SameNuma), Some(GpuLink::Nvlink), Some(GpuLink::FabricPartition)];
                Ask::Gpus(WholeGpus {
                    count: u32::from(count % 3) + 1,
                    link: pick(&links, *link),
                    ..WholeGpus::default()
                })
            }
            Self::Mps(percent, memory, contexts) => Ask::Mps(MpsShare {
                threads_percent: u16::from(percent % 100) + 1,
                memory_mib: u32::from(memory % 4) * 4096,
                contexts: u16::from(contexts % 50) + 1,
                priority: MpsPriority::default(),
            }),
            Self::Fraction(milli, memory) => Ask::Fraction(Fraction {
                milli: pick(&[1, 100, 125, 250, 300, 500, 1000], *milli),
                memory_mib: pick(&[0, 0, 1000, 10_000], *memory),
                memory_ppm: None,
            }),
            Self::Instances(first, second, third, on) => Ask::Instances(Instances {
                profiles: [Some(*first), Some(*second), *third].into_iter().flatten().map(name).collect(),
                on: pick(&[InstancesOn::Any, InstancesOn::SameGpu, InstancesOn::DistinctGpus], *on),
            }),
            Self::NodeOnly => Ask::NodeOnly {},
        }
    }
}

struct Run {
    ledger: Ledger,
    numbers: usize,
    decided: Vec<(Workload, Decision)>,
    committed: Vec<(Committed, State, String)>,
}

/// Runs a script and checks after each event.
pub fn run(script: &Script) {
    let state = script.state();
    let ledger = Ledger::new(CATALOG.clone(), script.policy(), &state).expect("built to be legal");
    let mut run = Run { ledger, numbers: 0, decided: Vec::new(), committed: Vec::new() };
    run.check();
    for event in &script.events {
        let version = run.ledger.version();
        run.event(event);
        assert!(run.ledger.version() >= version, "versions only grow");
        if run.ledger.version() > version {
            run.check();
        }
    }
}

impl Run {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Decide(request) => drop(self.decide(request)),
            Event::Admit(request) => {
                if let Some(position) = self.decide(request) {
                    self.commit(position);
                }
            }
            Event::Commit(by) if !self.decided.is_empty() => self.commit(usize::from(*by) % self.decided.len()),
            Event::Release(by) => self.release(*by),
            Event::Undo(by) if !self.committed.is_empty() => self.undo(usize::from(*by) % self.committed.len()),
            Event::CordonGpu(by, on) if !self.ledger.gpus().is_empty() => {
                let gpu = GpuId::from_index(usize::from(*by) % self.ledger.gpus().len());
                self.ledger.set_gpu_cordon(gpu, *on);
            }
            Event::CordonNode(by, on) if !self.ledger.nodes().is_empty() => {
                let node = NodeId::from_index(usize::from(*by) % self.ledger.nodes().len());
                self.ledger.set_node_cordon(node, *on);
            }
            Event::Explain(request) => {
                let workload = request.build(self.numbers);
                self.numbers += 1;
                drop(explain(&self.ledger, &workload, BUDGET));
            }
            _ => {}
        }
    }

    /// Decides; the position of the decision if it admits.
    fn decide(&mut self, request: &Request) -> Option<usize> {
        let workload = request.build(self.numbers);
        self.numbers += 1;
        let decision = decide(&self.ledger, &workload, BUDGET);
        let state = self.ledger.snapshot();
        let reloaded = Ledger::new(CATALOG.clone(), self.ledger.policy().clone(), &state).expect("its own snapshot");
        assert_eq!(decision, decide(&reloaded, &workload, BUDGET), "the way to a state must not matter");
        let decision = decision.ok()?;
        let allow_moves = self.ledger.policy().allow_moves;
        if let Err(violation) = verify::decision(&CATALOG, &state, &workload, &decision, allow_moves) {
            panic!("{violation}\n{workload:?}\n{decision:?}\n{state:?}");
        }
        let own_mistake = decision.reasons.iter().any(|r| r.code == Code::VerificationFailed);
        assert!(!own_mistake, "the engine refuses its own placement\n{workload:?}\n{state:?}");
        let is_admitted = decision.verdict == Verdict::Admit;
        self.decided.push((workload, decision));
        is_admitted.then(|| self.decided.len() - 1)
    }

    fn commit(&mut self, position: usize) {
        let (workload, decision) = &self.decided[position];
        let before = self.ledger.snapshot();
        match self.ledger.commit(workload, decision) {
            Ok(change) => self.committed.push((change, before, workload.name.clone())),
            Err(error) => {
                assert_eq!(before, self.ledger.snapshot(), "a refused commit changes nothing");
                let is_fresh = decision.version == self.ledger.version();
                let refused = matches!(error, CommitError::NotAdmitted | CommitError::Input(_));
                assert!(refused || !is_fresh, "{error}\n{workload:?}\n{decision:?}");
            }
        }
    }

    fn release(&mut self, by: u8) {
        let names: Vec<String> = self.ledger.leases().map(|(_, lease)| lease.name.clone()).collect();
        if !names.is_empty() {
            let name = &names[usize::from(by) % names.len()];
            self.ledger.release(name).expect("a lease that is there");
            assert!(self.ledger.lease(name).is_none());
        }
    }

    fn undo(&mut self, position: usize) {
        let (change, before, name) = &self.committed[position];
        let is_last = change.version == self.ledger.version();
        let names = |ledger: &Ledger| -> BTreeSet<String> { ledger.leases().map(|(_, l)| l.name.clone()).collect() };
        let mut left = names(&self.ledger);
        match self.ledger.undo(change) {
            Ok(version) => {
                assert!(left.remove(name), "undo of a lease that was not there");
                assert_eq!(left, names(&self.ledger), "undo takes back its own lease");
                if is_last {
                    assert_eq!(State { version, ..before.clone() }, self.ledger.snapshot(), "undo restores everything");
                }
            }
            Err(error) => assert!(!is_last, "{error}"),
        }
    }

    /// What holds in every state.
    fn check(&self) {
        let state = self.ledger.snapshot();
        if let Err(violation) = verify::state(&CATALOG, &state) {
            panic!("{violation}\n{state:?}");
        }
        let reloaded = Ledger::new(CATALOG.clone(), self.ledger.policy().clone(), &state)
            .unwrap_or_else(|e| panic!("{e}\n{state:?}"));
        assert_eq!(reloaded.snapshot(), state);
        assert_eq!(reloaded.index().len(), self.ledger.index().len(), "{state:?}");
        for (gpu, record) in self.ledger.gpus().iter() {
            assert_eq!(self.ledger.state(gpu), reloaded.state(gpu));
            assert_eq!(self.ledger.accepts(gpu), reloaded.accepts(gpu));
            let (own, other) = (&self.ledger.nodes()[record.node], &reloaded.nodes()[record.node]);
            assert_eq!((own.cpu_used, own.memory_used), (other.cpu_used, other.memory_used));
            assert_eq!(own.is_open(), other.is_open());
        }
    }
}
