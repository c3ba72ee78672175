//! Policies: what makes one legal place better than another.
//!
//! A policy is a list of terms in falling order of weight; the place with the least
//! tuple wins. What is still equal is decided by the node's CPU left (least that
//! suffices, if CPU is asked), then by the GPU's position in the fleet, then by the
//! lowest start.

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::space::{DeviceAsk, Space, SpaceState, Take};
use crate::workload::Ask;

/// Terms that a policy can have at most; further ones are ignored.
pub const TERMS_MAX: usize = 6;

/// One aim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// The first GPU of the fleet that can; what follows this term decides nothing.
    FirstFit,
    /// Least of the GPU left free.
    BestFit,
    /// A GPU that is already in use before an empty one.
    Pack,
    /// Most of the GPU left free.
    Spread,
    /// Fewest placements lost, over all starts of the plain profiles.
    FewestLostPlacements,
    /// Least growth of the expected part of the GPU that the demand mix cannot use
    /// (the gradient of fragmentation).
    ExpectedFragmentation,
    /// Least loss of room for the demand mix, expected over the departures of what is there
    /// (see [`Worth`](super::Worth)).
    ExpectedLoss,
    /// A node that is already in use before an empty one.
    FewestNodesOpened,
    /// On the node with the fewest wholly free GPUs, so that big holes stay.
    KeepNodesWhole,
    /// Fewest instances created and destroyed: use idle ones as they are.
    FewestReconfigurations,
    /// Least growth of the GPU's power draw; GPUs whose watts are not known come last.
    LeastPower,
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The terms, the weightiest first.
    pub terms: Vec<Term>,
    /// The demand expected, for [`Term::ExpectedFragmentation`] and [`Term::ExpectedLoss`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<MixEntry>,
    /// Others may be moved for any request, not only for those that allow it.
    #[serde(default)]
    pub allow_moves: bool,
}

/// A part of the expected demand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MixEntry {
    /// What is asked.
    pub ask: Ask,
    /// How often, against the other entries.
    pub weight: u32,
}

impl Default for Policy {
    /// Reuse idle instances, lose the fewest placements, fill nodes and GPUs up.
    fn default() -> Self {
        Self::of(&[
            Term::FewestReconfigurations,
            Term::FewestLostPlacements,
            Term::FewestNodesOpened,
            Term::KeepNodesWhole,
            Term::BestFit,
        ])
    }
}

impl Policy {
    /// A policy of these terms, without a demand mix.
    pub fn of(terms: &[Term]) -> Self {
        Self { terms: terms.to_vec(), mix: Vec::new(), allow_moves: false }
    }

    /// The policies that have a name of one term.
    pub fn named(name: &str) -> Option<Self> {
        Some(Self::of(match name {
            "default" => return Some(Self::default()),
            "first-fit" => &[Term::FirstFit],
            "best-fit" => &[Term::BestFit],
            "pack" => &[Term::FewestNodesOpened, Term::Pack, Term::BestFit],
            "spread" => &[Term::Spread],
            "fewest-lost-placements" => &[Term::FewestLostPlacements, Term::BestFit],
            "expected-fragmentation" => &[Term::ExpectedFragmentation, Term::BestFit],
            "least-power" => &[Term::LeastPower, Term::Pack, Term::FewestNodesOpened, Term::BestFit],
            "value" => &[
                Term::ExpectedLoss,
                Term::BestFit,
                Term::FewestReconfigurations,
                Term::FewestNodesOpened,
                Term::KeepNodesWhole,
            ],
            "fewest-nodes-opened" => &[Term::FewestNodesOpened, Term::KeepNodesWhole, Term::BestFit],
            _ => return None,
        }))
    }

    /// The names that [`Policy::named`] knows.
    pub const NAMES: [&'static str; 10] = [
        "default",
        "first-fit",
        "best-fit",
        "pack",
        "spread",
        "fewest-lost-placements",
        "expected-fragmentation",
        "value",
        "fewest-nodes-opened",
        "least-power",
    ];
}

/// The demand mix in one device's own terms: each ask with its weight.
pub type DeviceMix = [(DeviceAsk, u32)];

/// What one take does to one device; integers, less is better after [`Measures::key`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    free_ppm_after: u32,
    opens_gpu: bool,
    placements_lost: i32,
    fragmentation: i64,
    loss: i64,
    operations: u32,
    draw_growth_mw: u32,
}

/// What a policy knows of the place around the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Surroundings {
    /// Something runs on the node.
    pub open: bool,
    /// Wholly free GPUs on the node, this one included, up to a cap.
    pub peers: u8,
}

/// A place's rank under a policy: the least is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key([i64; TERMS_MAX]);

impl Key {
    /// The same rank with an extra leading order: `first` decides before the key does.
    pub fn plus(self, other: Self) -> Self {
        let mut sum = self.0;
        sum.iter_mut().zip(other.0).for_each(|(a, b)| *a = a.saturating_add(b));
        Self(sum)
    }
}

impl Measures {
    /// Measures a take that [`Space::put`] turns from `before` into `after`.
    pub fn of(space: &Space, mix: &DeviceMix, before: &SpaceState, after: &SpaceState, take: Take) -> Self {
        let lost = i64::from(space.placements_left(before)) - i64::from(space.placements_left(after));
        Self {
            free_ppm_after: space.free_ppm(after),
            opens_gpu: space.is_unused(before),
            placements_lost: i32::try_from(lost).unwrap_or(i32::MAX),
            fragmentation: fragmentation(space, mix, after) - fragmentation(space, mix, before),
            loss: 0,
            operations: space.reconfiguration(before, take),
            draw_growth_mw: u32::MAX,
        }
    }

    /// The same with what the take adds to the device's draw, in milliwatts, where known.
    #[must_use]
    pub fn drawing(self, growth_mw: Option<u64>) -> Self {
        let known = growth_mw.map(|mw| u32::try_from(mw).unwrap_or(u32::MAX - 1));
        Self { draw_growth_mw: known.unwrap_or(u32::MAX), ..self }
    }
    /// The same with further instances destroyed first.
    #[must_use]
    pub fn after_destroying(self, instances: u32) -> Self {
        Self { operations: self.operations.saturating_add(instances), ..self }
    }
    /// The same with the loss of room that the take means to the expected demand.
    #[must_use]
    pub fn with_loss(self, loss: i64) -> Self {
        Self { loss, ..self }
    }

    /// The rank under the terms.
    pub fn key(&self, terms: &[Term], around: Surroundings) -> Key {
        let mut key = Key::default();
        for (slot, term) in key.0.iter_mut().zip(terms) {
            *slot = match term {
                Term::FirstFit => break,
                Term::BestFit => self.free_ppm_after.into(),
                Term::Pack => self.opens_gpu.into(),
                Term::Spread => -i64::from(self.free_ppm_after),
                Term::FewestLostPlacements => self.placements_lost.into(),
                Term::ExpectedFragmentation => self.fragmentation,
                Term::ExpectedLoss => self.loss,
                Term::FewestNodesOpened => (!around.open).into(),
                Term::KeepNodesWhole => around.peers.into(),
                Term::FewestReconfigurations => self.operations.into(),
                Term::LeastPower => self.draw_growth_mw.into(),
            };
        }
        key
    }
}

/// The free part of a device that the mix cannot use: the free parts per million, weighted
/// by the entries that no longer fit there.
fn fragmentation(space: &Space, mix: &DeviceMix, state: &SpaceState) -> i64 {
    if mix.is_empty() {
        return 0;
    }
    let free = i64::from(space.free_ppm(state));
    let useless = mix.iter().filter(|(ask, _)| space.options(state, *ask).is_empty());
    useless.map(|(_, weight)| i64::from(*weight).saturating_mul(free)).fold(0, i64::saturating_add)
}
