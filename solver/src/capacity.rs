//! What a device has left, as amounts that a linear row can count: cells, instances of a
//! profile, engines, compute and memory.

use std::collections::BTreeMap;

use slicewise_core::catalog::Profile;
use slicewise_core::ids::{Id, ProfileId};
use slicewise_core::ledger::Spec;
use slicewise_core::space::{Grid, Layout, Space, SpaceState, Take, Uniform, UniformState};

/// Something that takes use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// A cell of the axis.
    Cell(u16),
    /// One of the most instances of a profile.
    Instance(ProfileId),
    /// An engine of a kind.
    Engine(u8),
    /// A share of a size, by the first type of it.
    Share(u16),
    /// Thousandths of compute.
    Milli,
    /// Memory in MiB.
    Mib,
    /// Users beside each other.
    Users,
}

/// What a device has left.
pub struct Capacity<'a> {
    spec: &'a Spec,
    left: BTreeMap<Use, i64>,
}

/// More than anything takes.
const PLENTY: i64 = 1_000_000;

impl<'a> Capacity<'a> {
    /// Of a device in this state. `None` where rows cannot say it.
    pub fn of(spec: &'a Spec, state: &SpaceState) -> Option<Self> {
        let mut left = BTreeMap::new();
        match (spec.space(), state) {
            (Space::Grid(grid), SpaceState::Grid(layout)) => of_grid(spec, grid, layout, &mut left),
            (Space::Uniform(uniform), SpaceState::Uniform(state)) => of_uniform(uniform, *state, &mut left),
            (Space::Fluid(fluid), SpaceState::Fluid(state)) => {
                left.insert(Use::Users, i64::from(fluid.users_left(*state)));
                left.insert(Use::Milli, i64::from(state.milli));
                left.insert(Use::Mib, i64::from(state.mib));
            }
            _ => return None,
        }
        Some(Self { spec, left })
    }
    /// How much is left.
    pub fn left(&self, what: Use) -> i64 {
        self.left.get(&what).copied().unwrap_or(0)
    }
    /// Tells what a take uses.
    pub fn uses(&self, take: Take, mut tell: impl FnMut(Use, i64)) {
        match take {
            Take::Instance { profile, start } => {
                let size = self.spec.grid().and_then(|g| g.rows().lookup(profile)).map_or(0, |r| r.size);
                (start..start.saturating_add(size)).for_each(|cell| tell(Use::Cell(cell), 1));
                tell(Use::Instance(profile), 1);
                let engines = self.spec.profiles().get(profile.index()).map(engines).unwrap_or_default();
                for (kind, n) in (0..).zip(engines) {
                    if n > 0 {
                        tell(Use::Engine(kind), i64::from(n));
                    }
                }
            }
            Take::Share(share) => {
                // Types of one size are counted as one.
                let size = match self.spec.space() {
                    Space::Uniform(uniform) => uniform.size_of(share),
                    _ => share,
                };
                tell(Use::Share(size), 1);
            }
            // Nothing is beside a whole GPU.
            Take::Whole => [Use::Milli, Use::Mib, Use::Users].into_iter().for_each(|what| tell(what, self.left(what))),
            Take::Fraction { milli, mib, users } => {
                tell(Use::Milli, i64::from(milli));
                tell(Use::Users, i64::from(users));
                if mib > 0 {
                    tell(Use::Mib, i64::from(mib));
                }
            }
            // Listed by nobody: compute instances are left to the other methods.
            Take::Compute { .. } => {}
        }
    }
}

fn engines(profile: &Profile) -> [u16; 4] {
    [profile.decoders, profile.encoders, profile.jpeg, profile.ofa].map(|n| n.unwrap_or(0))
}

fn of_grid(spec: &Spec, grid: &Grid, layout: &Layout, left: &mut BTreeMap<Use, i64>) {
    (0..grid.cells()).for_each(|cell| {
        left.insert(Use::Cell(cell), 1);
    });
    for (profile, row) in grid.rows().iter() {
        left.insert(Use::Instance(profile), i64::from(row.max_instances));
    }
    let pool = spec.model().engine_pool;
    for (kind, pool) in (0..).zip([pool.decoders, pool.encoders, pool.jpeg, pool.ofa]) {
        left.insert(Use::Engine(kind), pool.map_or(PLENTY, i64::from));
    }
    // Idle instances count as free.
    for entry in layout.used() {
        let size = grid.rows().lookup(entry.profile).map_or(0, |r| r.size);
        (entry.start..entry.start.saturating_add(size)).for_each(|cell| {
            left.insert(Use::Cell(cell), 0);
        });
        let mut take = |what: Use, n: i64| {
            if let Some(left) = left.get_mut(&what) {
                *left -= n;
            }
        };
        take(Use::Instance(entry.profile), 1);
        let engines = spec.profiles().get(entry.profile.index()).map(engines).unwrap_or_default();
        (0..).zip(engines).for_each(|(kind, n)| take(Use::Engine(kind), i64::from(n)));
    }
}

fn of_uniform(uniform: &Uniform, state: UniformState, left: &mut BTreeMap<Use, i64>) {
    for (share, kind) in (0u16..).zip(uniform.types()) {
        let is_locked = uniform.is_locked(state, share);
        let free = if is_locked { 0 } else { kind.max_per_gpu.saturating_sub(state.taken) };
        if uniform.size_of(share) == share {
            left.insert(Use::Share(share), i64::from(free));
        }
    }
}
