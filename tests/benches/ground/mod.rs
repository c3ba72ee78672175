//! Fleets and requests of the benchmarks, from a fixed seed.
#![expect(dead_code, reason = "each benchmark uses a part of it")]

use slicewise_core::catalog::Catalog;
use slicewise_core::error::InputError;
use slicewise_core::fleet::{Gpu, Lease, Mode, Node, Part, Placement, State};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::Policy;
use slicewise_core::workload::{Ask, Fraction, Instances, InstancesOn, Workload};

/// GPUs of a node.
pub const PER_NODE: usize = 8;

/// The plain profiles of an A100 with 80 GB: name, cells, legal starts, and how often of a
/// hundred requests it is asked.
pub const PROFILES: [(&str, u16, &[u16], usize); 6] = [
    ("1g.10gb", 1, &[0, 1, 2, 3, 4, 5, 6], 30),
    ("1g.20gb", 2, &[0, 2, 4, 6], 20),
    ("2g.20gb", 2, &[0, 2, 4], 25),
    ("3g.40gb", 4, &[0, 4], 12),
    ("4g.40gb", 4, &[0], 8),
    ("7g.80gb", 8, &[0], 5),
];

/// Fractions that are asked, in thousandths of a GPU.
pub const FRACTIONS: [u16; 6] = [100, 125, 200, 250, 300, 500];

/// Numbers that look random and are the same in every run.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    /// A number from 0 to `n` - 1.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
    /// A profile of the mix.
    pub fn profile(&mut self) -> (&'static str, u16, &'static [u16]) {
        let mut left = self.below(100);
        for (name, size, starts, weight) in PROFILES {
            if left < weight {
                return (name, size, starts);
            }
            left -= weight;
        }
        ("1g.10gb", 1, &[0, 1, 2, 3, 4, 5, 6])
    }
    /// One of a list.
    pub fn of<T: Copy + Default>(&mut self, list: &[T]) -> T {
        list.get(self.below(list.len())).copied().unwrap_or_default()
    }
    /// How many of eight parts of a GPU are to stay used: some GPUs are empty, some full,
    /// four on average.
    fn target(&mut self) -> u16 {
        self.of(&[0, 2, 3, 3, 4, 4, 5, 5, 6, 8])
    }
}

/// What a fleet is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// MIG, nodes without limits.
    Mig,
    /// Software fractions, nodes without limits.
    Fractions,
    /// MIG, no two nodes with the same CPU and memory left.
    MigOnUnlikeNodes,
}

impl Kind {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mig => "mig",
            Self::Fractions => "fractions",
            Self::MigOnUnlikeNodes => "mig-unlike-nodes",
        }
    }
    fn takes_cpu(self) -> bool {
        self == Self::MigOnUnlikeNodes
    }
}

/// The nodes of a fleet, with nothing on them.
pub fn empty(kind: Kind, gpus: usize) -> State {
    let mode = if kind == Kind::Fractions { Mode::Whole } else { Mode::Mig };
    let nodes = (0..gpus.div_ceil(PER_NODE)).map(|i| {
        let room = |least: u64, step: u64| kind.takes_cpu().then_some(least + i as u64 * step);
        let gpu = || Gpu { model: "a100-80gb".into(), mode, ..Gpu::default() };
        Node {
            name: format!("node-{i:06}"),
            // What the leases leave is as unlike as what there is.
            cpu_milli: room(200_000, 1),
            memory_mib: room(1_000_000, 3),
            gpus: (0..PER_NODE.min(gpus - i * PER_NODE)).map(|_| gpu()).collect(),
            ..Node::default()
        }
    });
    State { nodes: nodes.collect(), ..State::default() }
}

/// A fleet that random arrivals filled and random departures left half full.
pub fn half_full(kind: Kind, gpus: usize) -> State {
    let mut state = empty(kind, gpus);
    let mut dice = Dice::new(20_261_130);
    let (cpu_milli, memory_mib) = if kind.takes_cpu() { (1_500, 8_000) } else { (0, 0) };
    for node in &state.nodes {
        for gpu in 0..node.gpus.len() {
            let parts = if kind == Kind::Fractions { fractions(&mut dice) } else { instances(&mut dice) };
            let lease = |(position, part): (usize, Part)| Lease {
                name: format!("{}/{gpu}/{position}", node.name),
                cpu_milli,
                memory_mib,
                placements: vec![Placement {
                    node: node.name.clone(),
                    gpu: u32::try_from(gpu).ok(),
                    part,
                    ..Placement::default()
                }],
                ..Lease::default()
            };
            state.leases.extend(parts.into_iter().enumerate().map(lease));
        }
    }
    state
}

/// Instances of one GPU, after arrivals at random starts and departures.
fn instances(dice: &mut Dice) -> Vec<Part> {
    let target = dice.target();
    let mut placed: Vec<(u16, u16, Part)> = Vec::new();
    let mut slices = 0;
    for _ in 0..12 {
        let (name, size, starts) = dice.profile();
        let start = dice.of(starts);
        let compute = name.bytes().next().map_or(0, |b| u16::from(b - b'0'));
        let is_free = placed.iter().all(|(s, n, _)| start >= s + n || *s >= start + size);
        if is_free && slices + compute <= 7 && size <= target {
            slices += compute;
            placed.push((start, size, Part::Instance { profile: name.into(), start, size }));
        }
    }
    while placed.iter().map(|(_, size, _)| size).sum::<u16>() > target {
        placed.swap_remove(dice.below(placed.len()));
    }
    placed.into_iter().map(|(.., part)| part).collect()
}

/// Fractions of one GPU, after arrivals and departures.
fn fractions(dice: &mut Dice) -> Vec<Part> {
    let target = dice.target() * 125;
    let mut placed: Vec<u16> = Vec::new();
    for _ in 0..10 {
        let milli = dice.of(&FRACTIONS);
        if placed.iter().sum::<u16>() + milli <= 1000 {
            placed.push(milli);
        }
    }
    while placed.iter().sum::<u16>() > target {
        placed.swap_remove(dice.below(placed.len()));
    }
    placed.into_iter().map(|milli| Part::Fraction { milli, memory_mib: 0, contexts: 1 }).collect()
}

/// Requests of one member, as the mix has them.
pub fn requests(kind: Kind, count: usize) -> Vec<Workload> {
    let mut dice = Dice::new(7);
    let request = |i| {
        let ask = match kind {
            Kind::Fractions => Ask::Fraction(Fraction { milli: dice.of(&FRACTIONS), ..Fraction::default() }),
            _ => Ask::Profile(dice.profile().0.into()),
        };
        let (cpu_milli, memory_mib) = if kind.takes_cpu() { (2_000, 16_000) } else { (0, 0) };
        Workload {
            name: format!("request-{i}"),
            count: 1,
            any_of: vec![ask],
            cpu_milli,
            memory_mib,
            ..Workload::default()
        }
    };
    (0..count).map(request).collect()
}

/// A request for all of one GPU.
pub fn largest(kind: Kind, name: &str) -> Workload {
    let ask = match kind {
        Kind::Fractions => Ask::Fraction(Fraction { milli: 1000, ..Fraction::default() }),
        _ => Ask::Profile("7g.80gb".into()),
    };
    Workload { name: name.into(), count: 1, any_of: vec![ask], ..Workload::default() }
}

/// A request for two instances on one node.
pub fn pair() -> Workload {
    let profiles = vec!["3g.40gb".into(), "2g.20gb".into()];
    let ask = Ask::Instances(Instances { profiles, on: InstancesOn::Any });
    Workload { name: "pair".into(), count: 1, any_of: vec![ask], ..Workload::default() }
}

/// A batch of the mix: a request for each profile, with its share of the members.
pub fn batch(members: usize) -> Vec<Workload> {
    let request = |(name, _, _, weight): &(&str, u16, &[u16], usize)| Workload {
        name: (*name).into(),
        count: u32::try_from(members * weight / 100).unwrap_or(u32::MAX).max(1),
        profile: Some((*name).into()),
        ..Workload::default()
    };
    PROFILES.iter().map(request).collect()
}

/// The engine on a state.
pub fn ledger(state: &State) -> Result<Ledger, InputError> {
    Ledger::new(Catalog::built_in()?, Policy::default(), state)
}
