//! Fleets and requests for the tests.

use slicewise_core::catalog::Catalog;
use slicewise_core::fleet::{Gpu, Instance, Mode, Node, State, Usage};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::Policy;
use slicewise_core::workload::{Ask, Workload};

/// The plain profiles of an A100 80 GB: name, cells and starts.
pub const PROFILES: [(&str, u16, &[u16]); 6] = [
    ("1g.10gb", 1, &[0, 1, 2, 3, 4, 5, 6]),
    ("1g.20gb", 2, &[0, 2, 4, 6]),
    ("2g.20gb", 2, &[0, 2, 4]),
    ("3g.40gb", 4, &[0, 4]),
    ("4g.40gb", 4, &[0]),
    ("7g.80gb", 8, &[0]),
];

/// A deterministic source of numbers.
pub struct Random(pub u64);

impl Random {
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

pub fn gpu(model: &str, mode: Mode) -> Gpu {
    Gpu { model: model.into(), mode, ..Gpu::default() }
}

pub fn mig() -> Gpu {
    gpu("a100-80gb", Mode::Mig)
}

pub fn node(name: &str, gpus: Vec<Gpu>) -> Node {
    Node { name: name.into(), gpus, ..Node::default() }
}

pub fn ledger(nodes: Vec<Node>) -> Ledger {
    let state = State { version: 7, nodes, ..State::default() };
    Ledger::new(Catalog::built_in().unwrap(), Policy::default(), &state).unwrap()
}

/// A GPU on which about `cells` cells are taken; some instances lie idle.
#[expect(clippy::indexing_slicing, reason = "numbers below the length")]
pub fn occupied(random: &mut Random, cells: u32) -> Gpu {
    let mut gpu = mig();
    let mut taken = 0u16;
    for _ in 0..20 {
        let (name, size, starts) = PROFILES[random.below(6)];
        let start = starts[random.below(starts.len())];
        let run = ((1u16 << size) - 1) << start;
        if taken & run == 0 && (taken | run).count_ones() <= cells {
            taken |= run;
            let usage = if random.below(6) == 0 { Usage::Idle } else { Usage::Busy };
            gpu.instances.push(Instance { profile: name.into(), start, usage, ..Instance::default() });
        }
    }
    gpu
}

pub fn request(name: &str, profile: &str, count: u32) -> Workload {
    Workload { name: name.into(), count, profile: Some(profile.into()), ..Workload::default() }
}

pub fn any_of(name: &str, asks: &[Ask], count: u32) -> Workload {
    Workload { name: name.into(), count, any_of: asks.to_vec(), ..Workload::default() }
}

pub fn profile(name: &str) -> Ask {
    Ask::Profile(name.into())
}

/// Random requests by profile, worth what their size says or something else.
pub fn requests(random: &mut Random, most: usize) -> Vec<Workload> {
    let each = |(name, ..): &(&str, u16, &[u16])| {
        let count = random.below(most + 1) as u32;
        let value = (random.below(3) == 0).then(|| 1 + random.below(9) as u64);
        (count > 0).then(|| Workload { value, ..request(name, name, count) })
    };
    PROFILES.iter().filter_map(each).collect()
}
