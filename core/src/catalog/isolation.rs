//! How well each way to share a GPU keeps its tenants apart. The strengths are data, in
//! `core/data/isolation.json`, with sources.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::data::Table;

/// How strongly something is kept apart, weakest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// Not at all.
    #[default]
    None,
    /// As long as the tenant's own software keeps to it.
    Cooperative,
    /// By the driver or the hypervisor.
    Enforced,
    /// By the hardware.
    Hardware,
}

/// What is kept apart, each as strongly as said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Isolation {
    /// Memory: nobody reads or fills another's.
    #[serde(skip_serializing_if = "is_none")]
    pub memory: Strength,
    /// Compute: nobody takes another's.
    #[serde(skip_serializing_if = "is_none")]
    pub compute: Strength,
    /// Memory bandwidth.
    #[serde(skip_serializing_if = "is_none")]
    pub bandwidth: Strength,
    /// Last-level cache.
    #[serde(skip_serializing_if = "is_none")]
    pub cache: Strength,
    /// Faults: another's error does not end one's work.
    #[serde(skip_serializing_if = "is_none")]
    pub faults: Strength,
    /// Processes and name spaces.
    #[serde(skip_serializing_if = "is_none")]
    pub process: Strength,
    /// Heat and power: another's load does not throttle.
    #[serde(skip_serializing_if = "is_none")]
    pub thermal: Strength,
}

impl Isolation {
    /// Whether nothing is asked.
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
    /// Whether this is at least as strong in everything.
    pub fn is_at_least(&self, least: &Self) -> bool {
        self.memory >= least.memory
            && self.compute >= least.compute
            && self.bandwidth >= least.bandwidth
            && self.cache >= least.cache
            && self.faults >= least.faults
            && self.process >= least.process
            && self.thermal >= least.thermal
    }
}

/// A way to share a GPU, as far as tenants are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// A GPU of one's own.
    Whole,
    /// A GPU instance of one's own.
    Mig,
    /// A compute instance inside a GPU instance that others share.
    MigCompute,
    /// A time-sliced vGPU.
    Vgpu,
    /// A vGPU that has a GPU instance to itself.
    VgpuMig,
    /// A vGPU among others on one GPU instance.
    VgpuMigShared,
    /// A client of an MPS server.
    Mps,
    /// A client of a static MPS partition.
    MpsStatic,
    /// A time-slicing replica.
    TimeSlicing,
    /// A software fraction.
    Fraction,
    /// A share of another kind.
    Shares,
    /// An AMD partition over interleaved memory.
    Partition,
    /// An AMD partition with memory of its own (NPS2, NPS4).
    PartitionNuma,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Whole,
        Self::Mig,
        Self::MigCompute,
        Self::Vgpu,
        Self::VgpuMig,
        Self::VgpuMigShared,
        Self::Mps,
        Self::MpsStatic,
        Self::TimeSlicing,
        Self::Fraction,
        Self::Shares,
        Self::Partition,
        Self::PartitionNuma,
    ];
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    mechanism: Mechanism,
    memory: Strength,
    compute: Strength,
    bandwidth: Strength,
    cache: Strength,
    faults: Strength,
    process: Strength,
    thermal: Strength,
    #[serde(rename = "status")]
    _status: String,
    source: String,
}

/// The strengths of each mechanism.
pub(super) fn by_mechanism(table: &Table<Vec<Row>>) -> BTreeMap<Mechanism, Isolation> {
    let row = |r: &Row| {
        debug_assert!(table.sources.contains_key(&r.source), "{:?} has a source", r.mechanism);
        let isolation = Isolation {
            memory: r.memory,
            compute: r.compute,
            bandwidth: r.bandwidth,
            cache: r.cache,
            faults: r.faults,
            process: r.process,
            thermal: r.thermal,
        };
        (r.mechanism, isolation)
    };
    table.rows.iter().map(row).collect()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(value: &Strength) -> bool {
    *value == Strength::None
}
