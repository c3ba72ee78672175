//! Small random fleets in legal states, and requests for them.

use std::collections::BTreeMap;

use slicewise_core::catalog::{Catalog, Model, Power, ShareType};
use slicewise_core::fleet::{
    Gpu, Health, Instance, Lease, Link, LinkKind, Mode, Node, Part, Placement, PowerCap, Rack, Sharing, State, Usage,
};
use slicewise_core::place::{MixEntry, Policy};
use slicewise_core::workload::{
    Ask, Fraction, GpuLink, Instances, InstancesOn, MpsPriority, MpsShare, Operator, Requirement, Resources, Spread,
    WholeGpus, Workload,
};

use crate::dice::Dice;
use crate::oracle::World;

/// The model of the tests that is cut into equal shares.
fn shared_model() -> Model {
    let share = |name: &str, max_per_gpu| ShareType { name: name.into(), max_per_gpu, ..ShareType::default() };
    Model {
        id: "shared-48gb".into(),
        memory_mib: Some(49_152),
        share_types: vec![share("shared-12q", 4), share("shared-24q", 2)],
        ..Model::default()
    }
}

/// Profile names that requests ask for: of every model of the tests, by rising size.
pub const PROFILES: [&str; 36] = [
    "1g.10gb",
    "2g.20gb",
    "3g.40gb",
    "1g.6gb",
    "2g.12gb",
    "1g.24gb",
    "shared-12q",
    "shared-24q",
    "4g.40gb",
    "7g.80gb",
    "1g.20gb",
    "1g.10gb+me",
    "4g.24gb",
    "1g.6gb+me",
    "1g.24gb+me.all",
    "1g.24gb-me",
    "2g.48gb",
    "2g.48gb+me.all",
    "1c.3g.40gb",
    "2c.4g.40gb",
    "1c.2g.12gb",
    "3g.40gb",
    "A2-4C",
    "A2-8C",
    "A2-8Q",
    "A2-16Q",
    "A10-12C",
    "A10-6Q",
    "DC-1-12C",
    "DC-1-8Q",
    "DC-2-24C",
    "DC-1-24C",
    "replica",
    "replica",
    "cpx_nps1",
    "dpx_nps1",
];

const INSTANCES: [&str; 8] = ["1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "1g.6gb", "2g.12gb", "1g.24gb", "2g.48gb"];

/// A policy by name, with a demand mix.
pub fn policy(name: &str) -> Policy {
    let mix = [("1g.10gb", 3), ("3g.40gb", 2), ("2g.12gb", 1)];
    let entry = |(profile, weight): (&str, u32)| MixEntry { ask: Ask::Profile(profile.into()), weight };
    let whole = MixEntry { ask: Ask::Gpus(WholeGpus { count: 1, ..WholeGpus::default() }), weight: 1 };
    Policy { mix: mix.into_iter().map(entry).chain([whole]).collect(), ..Policy::named(name).unwrap() }
}

/// A fleet of up to `nodes` nodes with up to `gpus` GPUs each, in a legal state.
pub fn fleet(dice: &mut Dice, nodes: usize, gpus: usize) -> State {
    let mut state = State { version: 7, models: vec![shared_model()], ..State::default() };
    for n in 0..=dice.roll(nodes) {
        state.nodes.push(node(dice, n, gpus));
    }
    fill(dice, &mut state);
    if dice.roll(3) == 2 {
        cap(dice, &mut state);
    }
    state
}

/// Gives every GPU watts, and some nodes and racks caps that what is there keeps to.
fn cap(dice: &mut Dice, state: &mut State) {
    for gpu in state.nodes.iter_mut().flat_map(|n| &mut n.gpus) {
        let active_w = dice.pick(&[None, Some(60), Some(300)]).flatten();
        gpu.power = Power { idle_w: Some(30), active_w, full_w: Some(300) };
        gpu.power_limit_w = dice.pick(&[None, None, Some(200)]).flatten();
    }
    for node in &mut state.nodes {
        node.rack = dice.pick(&[None, Some("r0"), Some("r1")]).flatten().map(String::from);
    }
    let catalog = Catalog::built_in().unwrap();
    let draws: Vec<u64> = {
        let world = World::of(&catalog, state);
        (0..state.nodes.len()).map(|n| world.draw(n)).collect()
    };
    let mut over = |draw_mw: u64| {
        let spare = dice.pick(&[None, Some(0), Some(40), Some(100), Some(270)]).flatten()?;
        let limit_w = u32::try_from(draw_mw.div_ceil(1000)).unwrap() + spare;
        Some(PowerCap { limit_w, throttle: dice.once_in(9) })
    };
    for name in ["r0", "r1"] {
        let own = state.nodes.iter().zip(&draws).filter(|(n, _)| n.rack.as_deref() == Some(name));
        let power_cap = over(own.map(|(_, draw)| draw).sum());
        state.racks.push(Rack { name: name.into(), power_cap });
    }
    for (node, draw) in state.nodes.iter_mut().zip(&draws) {
        node.power_cap = over(*draw);
    }
}

fn node(dice: &mut Dice, number: usize, gpus: usize) -> Node {
    let mut node = Node {
        name: format!("n{number}"),
        zone: dice.pick(&[None, Some("a"), Some("b")]).flatten().map(String::from),
        cpu_milli: dice.pick(&[None, Some(3000), Some(8000)]).flatten(),
        memory_mib: dice.pick(&[None, None, Some(9000)]).flatten(),
        cordoned: dice.once_in(16),
        ..Node::default()
    };
    if dice.once_in(3) {
        node.labels.insert("disk".into(), "fast".into());
    }
    // Nodes hold GPUs of one kind more often than not.
    let usual = dice.roll(48);
    for i in 0..=dice.roll(gpus) {
        let kind = if dice.once_in(5) { dice.roll(48) } else { usual };
        node.gpus.push(gpu(dice, kind, i));
    }
    for a in 0..node.gpus.len() {
        for b in a + 1..node.gpus.len() {
            if dice.once_in(2) {
                let kind = dice.pick(&[LinkKind::NvLink(4), LinkKind::Pix, LinkKind::Node]).unwrap();
                node.links.push(Link { a: format!("GPU{a}"), b: format!("GPU{b}"), kind });
            }
        }
    }
    if node.gpus.len() > 1 && dice.once_in(3) {
        node.fabric_partitions = vec![vec![0, 1]];
    }
    node
}

fn gpu(dice: &mut Dice, kind: usize, position: usize) -> Gpu {
    let (model, mode) = match kind % 16 {
        8 => ("a2", Mode::Vgpu),
        9 => ("a10", Mode::VgpuMixed),
        10 => ("rtx-pro-6000-96gb", Mode::VgpuMig),
        11 => ("a30-24gb", Mode::Mps),
        12 => ("a2", Mode::TimeSlicing),
        13 => ("mi300x", Mode::Partitions),
        14 => ("a10", Mode::Vgpu),
        15 => ("a2", Mode::VgpuMixed),
        old => MIG_AND_WHOLE[old],
    };
    // Few: every mode of every GPU is tried.
    let modes = if dice.once_in(4) { other_modes(dice, model) } else { Vec::new() };
    let may_be = |other| mode == other || modes.contains(&other);
    let sharing = Sharing {
        replicas: may_be(Mode::TimeSlicing).then_some(3),
        static_chunks: (may_be(Mode::Mps) && kind.is_multiple_of(3)).then_some(7),
        virtual_functions: (mode == Mode::VgpuMixed && kind.is_multiple_of(3)).then_some(2),
        ..Sharing::default()
    };
    Gpu {
        model: model.into(),
        mode,
        modes,
        sharing,
        health: if dice.once_in(14) { Health::Degraded } else { Health::Healthy },
        cordoned: dice.once_in(14),
        driver: (kind % 16 == 5).then(|| String::from("470.57.02")),
        numa_node: dice.pick(&[None, Some(0), Some(1)]).flatten(),
        uuid: dice.once_in(4).then(|| format!("GPU-{position}-{}", dice.roll(1000))),
        ..Gpu::default()
    }
}

/// Modes that an operator may allow for a GPU of the model.
fn other_modes(dice: &mut Dice, model: &str) -> Vec<Mode> {
    let all: &[Mode] = match model {
        "a100-80gb" | "a30-24gb" => &[Mode::Mig, Mode::Whole, Mode::Mps, Mode::TimeSlicing],
        "rtx-pro-6000-96gb" => &[Mode::Mig, Mode::VgpuMig, Mode::Whole],
        "shared-48gb" => &[Mode::Shares, Mode::Whole],
        "mi300x" => &[Mode::Partitions, Mode::Whole],
        _ => &[Mode::Vgpu, Mode::VgpuMixed, Mode::Whole],
    };
    (0..=dice.roll(2)).filter_map(|_| dice.pick(all)).collect()
}

const MIG_AND_WHOLE: [(&str, Mode); 8] = [
    ("a100-80gb", Mode::Mig),
    ("a30-24gb", Mode::Mig),
    ("rtx-pro-6000-96gb", Mode::Mig),
    ("a100-80gb", Mode::Whole),
    ("shared-48gb", Mode::Shares),
    ("a100-80gb", Mode::Mig),
    ("shared-48gb", Mode::Whole),
    ("a30-24gb", Mode::Whole),
];

/// Puts things on the GPUs wherever the oracle's rules let them be.
fn fill(dice: &mut Dice, state: &mut State) {
    let catalog = Catalog::built_in().unwrap();
    let world = World::of(&catalog, state);
    let devices = world.devices;
    let mut leases: Vec<Lease> = Vec::new();
    let mut lease = |dice: &mut Dice, node: &str, gpu: usize, part: Part| {
        let mut labels = BTreeMap::new();
        if dice.once_in(3) {
            labels.insert(String::from("app"), dice.pick(&["web", "batch"]).unwrap().to_string());
        }
        let keeps_away = if dice.once_in(8) { vec![requirement("app", &["loud"])] } else { Vec::new() };
        leases.push(Lease {
            name: format!("old{}", leases.len()),
            labels,
            keeps_away,
            pinned: dice.once_in(5),
            cpu_milli: dice.pick(&[0, 500]).unwrap(),
            placements: vec![Placement { node: node.into(), gpu: Some(gpu as u32), part, ..Placement::default() }],
            ..Lease::default()
        });
    };
    for device in &devices {
        let node = &mut state.nodes[device.node];
        let name = node.name.clone();
        let gpu = &mut node.gpus[device.index as usize];
        let at = device.index as usize;
        match device.mode {
            Mode::Mig | Mode::VgpuMixed => {
                let mut there: Vec<(usize, u16)> = Vec::new();
                for _ in 0..dice.roll(4) {
                    let profile = dice.roll(device.model.profiles.len());
                    let facts = &device.model.profiles[profile];
                    let Some(placements) = facts.placements.clone().filter(|p| !p.starts.is_empty()) else { continue };
                    let start = dice.pick(&placements.starts).unwrap();
                    let all: Vec<(usize, u16)> = there.iter().copied().chain([(profile, start)]).collect();
                    if !device.may_hold(&all) {
                        continue;
                    }
                    there = all;
                    let own = Part::Instance { profile: facts.name.clone(), start, size: placements.size };
                    let listed = |usage| Instance { profile: facts.name.clone(), start, usage, ..Instance::default() };
                    match dice.roll(5) {
                        0 | 1 => gpu.instances.push(listed(Usage::Idle)),
                        2 => gpu.instances.push(Instance { pinned: dice.once_in(3), ..listed(Usage::Busy) }),
                        3 => lease(dice, &name, at, own),
                        _ => {
                            let usage = dice.pick(&[Usage::Busy, Usage::Idle]).unwrap();
                            gpu.instances.push(listed(usage));
                            lease(dice, &name, at, own);
                        }
                    }
                }
            }
            Mode::Whole => match dice.roll(4) {
                0 | 1 => {}
                2 => lease(dice, &name, at, Part::Whole),
                _ => {
                    let memory_mib = dice.pick(&[0, 8192]).unwrap();
                    lease(dice, &name, at, Part::Fraction { milli: 400, memory_mib, contexts: 1 });
                }
            },
            Mode::Mps => {
                for contexts in [1, 40].into_iter().take(dice.roll(3)) {
                    lease(dice, &name, at, Part::Fraction { milli: 2, memory_mib: 4096, contexts });
                }
            }
            Mode::VgpuMig => {
                let inside = |start, compute_start| Part::Compute {
                    profile: "1g.24gb".into(),
                    start,
                    size: 3,
                    compute_profile: "DC-1-12C".into(),
                    compute_start,
                };
                [inside(0, 12), inside(6, 0)].into_iter().take(dice.roll(3)).for_each(|p| lease(dice, &name, at, p));
            }
            Mode::Shares | Mode::Vgpu | Mode::TimeSlicing | Mode::Partitions => {
                let share = dice.pick(&device.types).unwrap();
                for _ in 0..dice.roll(3).min(usize::from(share.max_per_gpu)) {
                    let share = share.name.clone();
                    lease(dice, &name, at, Part::Share { share });
                }
            }
        }
    }
    // Nodes must have the CPU for what is on them.
    for node in &mut state.nodes {
        let used: u64 = leases.iter().filter(|l| l.placements[0].node == node.name).map(|l| l.cpu_milli).sum();
        node.cpu_milli = node.cpu_milli.map(|has| has.max(used));
    }
    state.leases = leases;
}

fn requirement(key: &str, values: &[&str]) -> Requirement {
    let values = values.iter().map(|v| v.to_string()).collect();
    Requirement { key: key.into(), operator: Operator::In, values }
}

/// A request for up to `members` members.
pub fn request(dice: &mut Dice, name: &str, members: usize) -> Workload {
    let mut workload = Workload { name: name.into(), count: 1, ..Workload::default() };
    if dice.once_in(2) {
        workload.count += dice.roll(members) as u32;
    }
    workload.any_of.push(ask(dice));
    if dice.once_in(3) {
        workload.any_of.push(ask(dice));
    }
    workload.cpu_milli = dice.pick(&[0, 0, 1000, 2500]).unwrap();
    workload.memory_mib = dice.pick(&[0, 0, 0, 4000]).unwrap();
    workload.keep_idle = dice.once_in(5);
    workload.queue = dice.once_in(4);
    workload.gang = dice.once_in(3);
    if dice.once_in(4) {
        let all =
            [Spread::DistinctGpus, Spread::DistinctNodes, Spread::DistinctZones, Spread::SameNode, Spread::SameZone];
        workload.members = dice.pick(&all);
    }
    if dice.once_in(5) {
        workload.labels.insert("app".into(), dice.pick(&["loud", "web"]).unwrap().into());
    }
    if dice.once_in(5) {
        workload.anti_affinity.push(requirement("app", &["web"]));
    }
    if dice.once_in(6) {
        workload.nodes.push(requirement("disk", &["fast"]));
    }
    // What a member without a GPU means by a model is not said anywhere.
    if dice.once_in(6) && !workload.any_of.contains(&(Ask::NodeOnly {})) {
        workload.models.push(dice.pick(&["a100-80gb", "rtx-pro-6000-96gb", "a30-24gb"]).unwrap().into());
    }
    workload
}

fn ask(dice: &mut Dice) -> Ask {
    match dice.roll(13) {
        0..=5 => Ask::Profile(dice.pick(&PROFILES).unwrap().into()),
        6 => Ask::AtLeast(Resources {
            compute_slices: dice.pick(&[None, Some(1), Some(2), Some(3)]).flatten(),
            memory_mib: Some(dice.pick(&[5_000, 20_000, 40_000]).unwrap()),
            jpeg: dice.pick(&[None, None, Some(1)]).flatten(),
            ..Resources::default()
        }),
        7 => {
            let links = [
                None,
                None,
                Some(GpuLink::Nvlink),
                Some(GpuLink::SameNuma),
                Some(GpuLink::FabricPartition),
                Some(GpuLink::AtLeast(LinkKind::Pix)),
            ];
            let memory_mib = dice.pick(&[None, None, Some(60_000)]).flatten();
            Ask::Gpus(WholeGpus {
                count: 1 + dice.roll(2) as u32,
                link: dice.pick(&links).flatten(),
                near_nic: None,
                memory_mib,
            })
        }
        8 | 9 => {
            let (memory_mib, memory_ppm) = dice.pick(&[(0, None), (16_384, None), (0, Some(400_000))]).unwrap();
            Ask::Fraction(Fraction {
                milli: dice.pick(&[300, 500, 1000, 0]).unwrap().max(u16::from(memory_mib == 0)),
                memory_mib,
                memory_ppm,
            })
        }
        10 => {
            let profiles = (0..=1 + dice.roll(2)).map(|_| dice.pick(&INSTANCES).unwrap().into()).collect();
            Ask::Instances(Instances {
                profiles,
                on: dice.pick(&[InstancesOn::Any, InstancesOn::SameGpu, InstancesOn::DistinctGpus]).unwrap(),
            })
        }
        11 => Ask::Mps(MpsShare {
            threads_percent: dice.pick(&[1, 30, 50, 100]).unwrap(),
            memory_mib: dice.pick(&[0, 8192]).unwrap(),
            contexts: dice.pick(&[1, 1, 10, 48]).unwrap(),
            priority: MpsPriority::default(),
        }),
        _ => Ask::NodeOnly {},
    }
}
