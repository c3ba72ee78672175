//! What there is: nodes, GPUs, what is on them, and how they are linked. These are
//! the documents people write; [`crate::ledger`] holds them in the engine's form.

mod topology;

pub use topology::{Link, LinkKind, Nic, Topology};

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::catalog::{Board, CpuPower, Model, Power, Profile};
use crate::decision::ModeChange;
use crate::workload::{MpsPriority, Requirement};

/// A fleet and what runs on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The version that decisions will carry; grows by one with each change.
    #[serde(default)]
    pub version: u64,
    /// Models that add to or override the built-in catalog.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Model>,
    /// vGPU boards that add to or override the built-in ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boards: Vec<Board>,
    /// Racks whose power is capped; nodes name theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub racks: Vec<Rack>,
    /// The nodes, in the order that breaks ties.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// What has been admitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<Lease>,
}

impl State {
    /// The state with these changes of mode made. GPUs that are not there are passed over.
    pub fn change_modes(&mut self, changes: &[ModeChange]) {
        for change in changes {
            let node = self.nodes.iter_mut().find(|n| n.name == change.node);
            let gpus = node.into_iter().flat_map(|n| n.gpus.iter_mut().zip(0..));
            let gpu = gpus.into_iter().find(|(gpu, at)| gpu.index.unwrap_or(*at) == change.gpu);
            if let Some((gpu, _)) = gpu {
                gpu.modes.push(gpu.mode);
                gpu.mode = change.to;
                gpu.instances.clear();
            }
        }
    }
}

/// A rack: nodes that are fed and cooled together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rack {
    /// Unique name.
    pub name: String,
    /// What its nodes may draw together; absent: not a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_cap: Option<PowerCap>,
}

/// How much power a node or rack may draw. What is drawn leaves as heat, so a cap is one of
/// cooling as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PowerCap {
    /// Watts of the GPUs and, where `cpu_milli` says how much there is, of the CPU.
    pub limit_w: u32,
    /// GPUs are slowed down to keep to it, so more may be admitted; without it, nothing is
    /// placed that would draw more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub throttle: bool,
}

impl PowerCap {
    /// The limit in milliwatts.
    pub fn limit_mw(self) -> u64 {
        u64::from(self.limit_w) * 1000
    }
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Unique name.
    pub name: String,
    /// Region, a failure domain above the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Zone, a failure domain above the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Rack, a failure domain of its own; one of the state's `racks` where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<String>,
    /// What it may draw; absent: not a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_cap: Option<PowerCap>,
    /// Watts of its CPU; absent: the built-in ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_power: Option<CpuPower>,
    /// Allocatable CPU in thousandths of a core; absent: not a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_milli: Option<u64>,
    /// Allocatable memory in MiB; absent: not a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// Labels that selectors match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Takes nothing new.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cordoned: bool,
    /// The GPUs, in index order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
    /// Network adapters that GPUs may be near to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<Nic>,
    /// Links between GPUs (`GPU0`) and adapters (`NIC0`); absent pairs are `SYS`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// NVSwitch fabric partitions on offer, each a set of GPU indices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fabric_partitions: Vec<Vec<u32>>,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Index on its node, as the driver counts; absent: the position in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Driver's UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// PCI address, `domain:bus:device.function`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_address: Option<String>,
    /// Id or product name of the model.
    pub model: String,
    /// How the GPU is shared; fixed while anything is on it.
    #[serde(default)]
    pub mode: Mode,
    /// Modes that it may be changed to while nothing is on it; the one it is in is always
    /// among them. Empty: it stays as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,
    /// Health.
    #[serde(default, skip_serializing_if = "Health::is_healthy")]
    pub health: Health,
    /// Takes nothing new.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cordoned: bool,
    /// Driver version, `550.54.15`; some profiles need a least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// NUMA node of the host it hangs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u16>,
    /// Usable memory in MiB; absent: the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Watts; absent ones are the model's.
    #[serde(default, skip_serializing_if = "Power::is_unknown")]
    pub power: Power,
    /// Watts that the GPU keeps itself to (`nvidia-smi -pl`); absent: its full draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<u32>,
    /// The device's own profile listing, which overrides the catalog for this device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profile>,
    /// GPU instances that exist on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<Instance>,
    /// Settings of its mode that are not the model's.
    #[serde(default, skip_serializing_if = "Sharing::is_default")]
    pub sharing: Sharing,
}

impl Gpu {
    /// The modes that it may be in, each once and in their own order; empty where it stays
    /// as it is.
    pub fn modes_allowed(&self) -> Vec<Mode> {
        let allowed = |mode: &Mode| *mode == self.mode || self.modes.contains(mode);
        match self.modes.iter().all(|mode| *mode == self.mode) {
            true => Vec::new(),
            false => Mode::ALL.into_iter().filter(allowed).collect(),
        }
    }
}

/// How a GPU's mode is set up. Each setting belongs to the modes it names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sharing {
    /// vGPU modes: prefix or PCI device id of the board, where the model has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// vGPU modes and `shares`: SR-IOV virtual functions enabled; absent: not a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_functions: Option<u16>,
    /// `time_slicing`: replicas that are advertised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u16>,
    /// `mps`: CUDA version of the driver, `13.1`, which decides how many clients connect;
    /// absent: the older limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// `mps`: sum of active-thread percentages that is accepted; absent: 100. They are caps,
    /// so more is oversubscription, never silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_percent_max: Option<u16>,
    /// `mps`: chunks of SMs under static partitioning; a percentage is rounded up to whole
    /// chunks. Absent: no static partitioning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub static_chunks: Option<u16>,
    /// `partitions`: memory mode in force (`NPS1`); absent: the model's at start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mode: Option<String>,
    /// Confidential computing is on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub confidential: bool,
}

impl Sharing {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How a GPU is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// As a whole, or in software fractions of compute and memory.
    #[default]
    Whole,
    /// Cut into MIG instances.
    Mig,
    /// In equal shares of one of the model's `share_types`.
    Shares,
    /// Time-sliced vGPUs of one size at a time.
    Vgpu,
    /// Time-sliced vGPUs of several sizes.
    VgpuMixed,
    /// vGPUs on GPU instances.
    VgpuMig,
    /// CUDA MPS clients.
    Mps,
    /// Time-slicing replicas of a device plugin.
    TimeSlicing,
    /// Compute partitions of an AMD GPU.
    Partitions,
}

/// The kind of space a mode makes of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceKind {
    /// Cells and profiles.
    Grid,
    /// Equal shares of one size at a time.
    Uniform,
    /// Divisible amounts.
    Fluid,
}

impl Mode {
    /// The name used in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Mig => "mig",
            Self::Shares => "shares",
            Self::Vgpu => "vgpu",
            Self::VgpuMixed => "vgpu_mixed",
            Self::VgpuMig => "vgpu_mig",
            Self::Mps => "mps",
            Self::TimeSlicing => "time_slicing",
            Self::Partitions => "partitions",
        }
    }
    /// All modes.
    pub const ALL: [Self; 9] = [
        Self::Whole,
        Self::Mig,
        Self::Shares,
        Self::Vgpu,
        Self::VgpuMixed,
        Self::VgpuMig,
        Self::Mps,
        Self::TimeSlicing,
        Self::Partitions,
    ];
    /// The kind of space.
    pub fn space(self) -> SpaceKind {
        match self {
            Self::Mig | Self::VgpuMixed | Self::VgpuMig => SpaceKind::Grid,
            Self::Shares | Self::Vgpu | Self::TimeSlicing | Self::Partitions => SpaceKind::Uniform,
            Self::Whole | Self::Mps => SpaceKind::Fluid,
        }
    }
}

/// Health of a GPU; it flows to everything on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Takes work.
    #[default]
    Healthy,
    /// Keeps what it has, takes nothing new.
    Degraded,
    /// What is on it does not run.
    Failed,
}

impl Health {
    fn is_healthy(&self) -> bool {
        *self == Self::Healthy
    }
}

/// A GPU instance that exists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// A name to speak of it by, for example in blockers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Profile name.
    pub profile: String,
    /// First cell of the placement axis.
    pub start: u16,
    /// The driver's GPU instance id, which says nothing of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// MIG device UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Whether something uses it. Only idle instances may be destroyed.
    #[serde(default)]
    pub usage: Usage,
    /// May not be moved even where moves are allowed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pinned: bool,
    /// Compute instances inside it; absent: the default one over the whole instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compute_instances: Vec<ComputeInstance>,
}

/// Whether an instance is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Usage {
    /// Used, or not known to be unused.
    #[default]
    Busy,
    /// Unused: may be handed out or destroyed.
    Idle,
}

/// A compute instance that exists inside a GPU instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ComputeInstance {
    /// Profile name, for example `1c.3g.40gb`.
    pub profile: String,
    /// First compute slice inside the GPU instance; older drivers do not print it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u16>,
    /// The driver's compute instance id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Whether something uses it.
    #[serde(default)]
    pub usage: Usage,
}

/// An admitted workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// Unique name.
    pub name: String,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Labels that other requests' anti-affinity matches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// May not be moved even where moves are allowed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pinned: bool,
    /// What later requests must keep away from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeps_away: Vec<Requirement>,
    /// Nodes it may be on, for moves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Requirement>,
    /// CPU that each member takes on its node, thousandths of a core.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_milli: u64,
    /// Memory that each member takes on its node, MiB.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_mib: u64,
    /// What its members have; at least one entry per member.
    pub placements: Vec<Placement>,
}

/// What one member has, and where. All placements of a member are on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Placement {
    /// Position of the member in its workload, from 0.
    #[serde(default)]
    pub member: u32,
    /// Which of the request's alternatives the member got, from 0.
    #[serde(default)]
    pub alternative: u32,
    /// Name of the node.
    pub node: String,
    /// Index of the GPU on the node; absent for `node_only`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<u32>,
    /// The GPU's UUID, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// MPS clients: their priority.
    #[serde(default, skip_serializing_if = "MpsPriority::is_normal")]
    pub mps_priority: MpsPriority,
    /// What of the GPU.
    #[serde(flatten)]
    pub part: Part,
}

/// What of a GPU a placement has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    /// No GPU: only the node's CPU and memory.
    #[default]
    NodeOnly,
    /// All of the GPU.
    Whole,
    /// A GPU instance.
    Instance {
        /// Profile name.
        profile: String,
        /// First cell.
        start: u16,
        /// Cells covered.
        size: u16,
    },
    /// A compute instance inside a GPU instance that others may share.
    Compute {
        /// Profile name of the GPU instance.
        profile: String,
        /// First cell of the GPU instance.
        start: u16,
        /// Cells covered by the GPU instance.
        size: u16,
        /// Profile name of the compute instance.
        compute_profile: String,
        /// First compute slice inside the GPU instance.
        compute_start: u16,
    },
    /// A share of one type.
    Share {
        /// Share type.
        share: String,
    },
    /// A software fraction.
    Fraction {
        /// Thousandths of the GPU's compute.
        milli: u16,
        /// MiB of its memory; 0 where memory is not counted.
        memory_mib: u32,
        /// Client contexts it may open on an MPS server.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        contexts: u16,
    },
}

fn one() -> u16 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_one(value: &u16) -> bool {
    *value == 1
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
