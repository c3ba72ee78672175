//! What is asked.

mod resolve;

pub use resolve::{Alternative, MemberAsk, Resolved, Resolver};

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::catalog::Isolation;
use crate::fleet::LinkKind;

/// A request: `count` members, each of which gets one of the alternatives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Unique name; leases and reasons speak of it.
    pub name: String,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Members. `decide` places all of them or none.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
    /// In a batch: all members or none. Without it, each member counts by itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub gang: bool,
    /// What one admitted member is worth in a batch. Absent: from the first alternative, the
    /// fewest cells that it covers on any kind of GPU of the fleet; 8 per whole GPU; a
    /// fraction's or an MPS share's thousandths over 125, rounded up; 1 where none of these applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// Short for one alternative that is a named profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The alternatives, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Ask>,
    /// CPU that each member takes on its node, thousandths of a core.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_milli: u64,
    /// Memory that each member takes on its node, MiB.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_mib: u64,
    /// Nodes it may go to; every requirement must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Requirement>,
    /// Models it may go to, by id or product name; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The least isolation from other tenants that it accepts.
    #[serde(default, skip_serializing_if = "Isolation::is_any")]
    pub isolation: Isolation,
    /// Only GPUs with confidential computing on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub confidential: bool,
    /// How its members lie to each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<Spread>,
    /// Labels of the lease it becomes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// No node that holds a lease whose labels meet any of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anti_affinity: Vec<Requirement>,
    /// Others may be moved to make room.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_moves: bool,
    /// May itself not be moved once placed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pinned: bool,
    /// Leave idle instances as they are: use them or free space, destroy none.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep_idle: bool,
    /// What cannot be placed now waits instead of being refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub queue: bool,
}

/// One way to serve a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// A named profile or share type: a GPU instance (`3g.40gb`), a compute instance inside
    /// one (`1c.3g.40gb`), or a share.
    Profile(String),
    /// Any MIG profile with at least this much.
    AtLeast(Resources),
    /// Whole GPUs of one node.
    Gpus(WholeGpus),
    /// A software fraction of one GPU.
    Fraction(Fraction),
    /// A share of one GPU under CUDA MPS.
    Mps(MpsShare),
    /// Several MIG instances of one node.
    Instances(Instances),
    /// Nothing but the node's CPU and memory.
    NodeOnly {},
}

/// Least amounts; an absent one does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Compute slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_slices: Option<u16>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Streaming multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm: Option<u16>,
    /// Share of the GPU's memory bandwidth, parts per million; it follows memory slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_ppm: Option<u32>,
    /// Copy engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_engines: Option<u16>,
    /// Video decoders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoders: Option<u16>,
    /// Video encoders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoders: Option<u16>,
    /// JPEG engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jpeg: Option<u16>,
    /// Optical-flow accelerators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ofa: Option<u16>,
    /// Graphics-capable.
    #[serde(default, skip_serializing_if = "is_false")]
    pub gfx: bool,
}

/// Whole GPUs of one model on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WholeGpus {
    /// How many.
    pub count: u32,
    /// What must join every pair of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<GpuLink>,
    /// Each must be at least this near to a network adapter (for GPUDirect RDMA).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_nic: Option<LinkKind>,
    /// Least memory of each in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
}

/// What must join the GPUs of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GpuLink {
    /// The same NUMA node.
    SameNuma,
    /// NVLink between every pair.
    Nvlink,
    /// All members of one offered fabric partition of exactly this size.
    FabricPartition,
    /// At least this kind of path between every pair.
    AtLeast(LinkKind),
}

/// A software fraction of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fraction {
    /// Thousandths of the GPU's compute, 0 to 1000.
    #[serde(default)]
    pub milli: u16,
    /// MiB of its memory; 0: memory is not counted.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub memory_mib: u32,
    /// Parts per million of its memory, resolved per device, instead of MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_ppm: Option<u32>,
}

/// A share of one GPU under CUDA MPS: caps, kept by the MPS server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MpsShare {
    /// Active-thread percentage, 1 to 100.
    pub threads_percent: u16,
    /// Pinned device memory limit in MiB; 0: memory is not counted.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub memory_mib: u32,
    /// Client contexts; a process may open several.
    #[serde(default = "one_context", skip_serializing_if = "is_one_context")]
    pub contexts: u16,
    /// Whose kernels are chosen first; kept in the placement, never a reason to refuse.
    #[serde(default, skip_serializing_if = "MpsPriority::is_normal")]
    pub priority: MpsPriority,
}

/// Priority of an MPS client (`CUDA_MPS_CLIENT_PRIORITY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MpsPriority {
    /// As everybody (0).
    #[default]
    Normal,
    /// Behind those of normal priority (1).
    BelowNormal,
}

impl MpsPriority {
    /// Whether it is the usual one.
    pub fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
}

/// Several MIG instances for one member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Instances {
    /// Profile names, one per instance.
    pub profiles: Vec<String>,
    /// How they lie.
    #[serde(default)]
    pub on: InstancesOn,
}

/// How the instances of one member lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InstancesOn {
    /// Anywhere on the node.
    #[default]
    Any,
    /// All on one GPU.
    SameGpu,
    /// Each on a GPU of its own.
    DistinctGpus,
}

/// How the members of a workload lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// No two on one GPU.
    DistinctGpus,
    /// No two on one node.
    DistinctNodes,
    /// No two in one zone.
    DistinctZones,
    /// All on one node.
    SameNode,
    /// All in one zone.
    SameZone,
}

/// A requirement on labels. `region`, `zone`, `rack` and `name` of a node count as labels
/// `slicewise/region`, `slicewise/zone`, `slicewise/rack` and `slicewise/name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Label key.
    pub key: String,
    /// How the value is compared.
    #[serde(default)]
    pub operator: Operator,
    /// Values for `in` and `not_in`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// Present with one of the values.
    #[default]
    In,
    /// Absent, or with none of the values.
    NotIn,
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
}

impl Requirement {
    /// Whether a label value (or its absence) meets the requirement.
    pub fn accepts(&self, value: Option<&str>) -> bool {
        let listed = |v: &str| self.values.iter().any(|x| x == v);
        match self.operator {
            Operator::In => value.is_some_and(listed),
            Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

impl Workload {
    /// The MPS priority of a member that got this alternative; normal for what is no MPS share.
    pub fn mps_priority(&self, alternative: u32) -> MpsPriority {
        let position = (alternative as usize).checked_sub(usize::from(self.profile.is_some()));
        match position.and_then(|p| self.any_of.get(p)) {
            Some(Ask::Mps(share)) => share.priority,
            _ => MpsPriority::Normal,
        }
    }

    /// The alternatives, with `profile` written out.
    pub fn alternatives(&self) -> Vec<Ask> {
        self.asks().map(Cow::into_owned).collect()
    }

    /// The alternatives one by one.
    pub fn asks(&self) -> impl Iterator<Item = Cow<'_, Ask>> {
        let by_name = self.profile.iter().map(|name| Cow::Owned(Ask::Profile(name.clone())));
        by_name.chain(self.any_of.iter().map(Cow::Borrowed))
    }
}

fn one_context() -> u16 {
    1
}

fn is_one_context(value: &u16) -> bool {
    *value == 1
}

fn one() -> u32 {
    1
}

fn is_one(value: &u32) -> bool {
    *value == 1
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_zero_u32(value: &u32) -> bool {
    *value == 0
}
