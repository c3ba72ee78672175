//! The fewest moves, against every way to move up to two instances.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at whatever is not as expected")]

use proptest::prelude::*;
use slicewise_core::catalog::Catalog;
use slicewise_core::decision::Verdict;
use slicewise_core::fleet::{Gpu, Instance, Mode, Node, State};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::{Budget, Policy, decide};
use slicewise_core::workload::Workload;
use slicewise_tests::dice::{Dice, cases};
use slicewise_tests::oracle::{At, Device, World};

const MOVES_MAX: usize = 2;
const PROFILES: [&str; 5] = ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb"];

/// One node with one or two GPUs, with instances that mostly may be moved.
fn state(dice: &mut Dice, catalog: &Catalog) -> State {
    let model = catalog.find("a100-80gb").unwrap();
    let gpu = || Gpu { model: model.id.clone(), mode: Mode::Mig, ..Gpu::default() };
    let mut node = Node { name: "n".into(), gpus: vec![gpu()], ..Node::default() };
    if dice.once_in(2) {
        node.gpus.push(gpu());
    }
    let mut state = State { nodes: vec![node], ..State::default() };
    for g in 0..state.nodes[0].gpus.len() {
        for i in 0..1 + dice.roll(4) {
            let name = dice.pick(&PROFILES).unwrap();
            let placements = model.profiles.iter().find(|p| p.name == name).unwrap().placements.clone().unwrap();
            let instance = Instance {
                name: Some(format!("g{g}i{i}")),
                profile: name.into(),
                start: dice.pick(&placements.starts).unwrap(),
                pinned: dice.once_in(6),
                ..Instance::default()
            };
            state.nodes[0].gpus[g].instances.push(instance);
            let world = World::of(catalog, &state);
            if !world.devices[g].may_hold(&world.devices[g].busy) {
                state.nodes[0].gpus[g].instances.pop();
            }
        }
    }
    state
}

/// All ways to put one more instance of a profile.
fn places(devices: &[Device], profile: usize) -> Vec<(usize, At)> {
    let starts = &devices[0].model.profiles[profile].placements.as_ref().unwrap().starts;
    let all = (0..devices.len()).flat_map(|g| starts.iter().map(move |s| (g, (profile, *s))));
    all.filter(|(g, at)| devices[*g].may_hold(&[devices[*g].busy.clone(), vec![*at]].concat())).collect()
}

/// Whether these profiles can all be put.
fn fits(devices: &[Device], profiles: &[usize]) -> bool {
    let Some((first, rest)) = profiles.split_first() else { return true };
    places(devices, *first).into_iter().any(|(g, at)| {
        let mut then = devices.to_vec();
        then[g].busy.push(at);
        fits(&then, rest)
    })
}

/// The fewest of these instances that have to leave their places, up to two.
fn least_moves(devices: &[Device], movable: &[(usize, At)], wanted: &[usize]) -> Option<usize> {
    let without = |gone: &[(usize, At)]| {
        let mut then = devices.to_vec();
        for (g, at) in gone {
            then[*g].busy.retain(|b| b != at);
        }
        let all: Vec<usize> = gone.iter().map(|(_, at)| at.0).chain(wanted.iter().copied()).collect();
        fits(&then, &all)
    };
    let pairs = || movable.iter().enumerate().flat_map(|(i, a)| movable[i + 1..].iter().map(move |b| [*a, *b]));
    if without(&[]) {
        Some(0)
    } else if movable.iter().any(|a| without(&[*a])) {
        Some(1)
    } else {
        pairs().any(|pair| without(&pair)).then_some(2)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(150), ..ProptestConfig::default() })]

    #[test]
    fn no_fewer_moves_do(tape in proptest::collection::vec(any::<u16>(), 80)) {
        let dice = &mut Dice::new(tape);
        let catalog = Catalog::built_in().unwrap();
        let state = state(dice, &catalog);
        let profile = dice.pick(&PROFILES).unwrap();
        let count = 1 + dice.roll(2);
        let workload = Workload {
            name: "new".into(),
            count: count as u32,
            profile: Some(profile.into()),
            allow_moves: true,
            ..Workload::default()
        };
        let ledger = Ledger::new(catalog.clone(), Policy::default(), &state).unwrap();
        let budget = Budget { moves: MOVES_MAX as u32, ..Budget::default() };
        let decision = decide(&ledger, &workload, budget).unwrap();
        let world = World::of(&catalog, &state);
        let position = world.devices[0].model.profiles.iter().position(|p| p.name == profile).unwrap();
        let movable: Vec<(usize, At)> = state.nodes[0]
            .gpus
            .iter()
            .enumerate()
            .flat_map(|(g, gpu)| gpu.instances.iter().map(move |i| (g, i)))
            .filter(|(_, i)| !i.pinned)
            .map(|(g, i)| (g, (world.devices[g].model.profiles.iter().position(|p| p.name == i.profile).unwrap(), i.start)))
            .collect();
        let least = least_moves(&world.devices, &movable, &vec![position; count]);
        match decision.verdict {
            Verdict::Admit => prop_assert_eq!(Some(decision.moves.len()), least),
            Verdict::Reject => prop_assert_eq!(None, least),
            _ => {}
        }
    }
}
