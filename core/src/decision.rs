//! What the engine answers: a verdict with its reasons, its steps and its proof.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

use crate::fleet::{Mode, Placement};
use crate::reason::Code;

/// The answer to one request, made on one version of the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// Name of the request.
    pub workload: String,
    /// The state's version it was made on.
    pub version: u64,
    /// The answer.
    pub verdict: Verdict,
    /// For `admit`: the placement passed the checker. Else: whether the "no" is proved.
    pub proved: bool,
    /// What proves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Each gate that stopped it, with numbers.
    #[serde(default)]
    pub reasons: Vec<Reason>,
    /// What each member gets, when admitted.
    #[serde(default)]
    pub placements: Vec<Placement>,
    /// What to do, in order; every prefix leaves a legal state.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Leases that are moved to make room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
    /// GPUs whose mode is changed first; what is placed on them is in the new mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mode_changes: Vec<ModeChange>,
}

/// A GPU that is given another of its modes. Nothing may use it; idle instances on it go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModeChange {
    /// Name of the node.
    pub node: String,
    /// Index of the GPU on the node.
    pub gpu: u32,
    /// The mode it is in.
    pub from: Mode,
    /// The mode it is given.
    pub to: Mode,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Placed.
    Admit,
    /// Not now; the request asked to queue.
    Wait,
    /// No.
    Reject,
    /// The work budget ended before an answer.
    Undecided,
}

/// What proves a "no".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Every placement was tried.
    ExhaustedSearch,
    /// An upper bound on what fits is below what is asked.
    CountBound,
    /// The independent checker accepted the placement.
    Verified,
}

/// One gate that stopped a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// Which gate.
    pub code: Code,
    /// The gate's stable number.
    pub number: u16,
    /// GPUs (nodes for node gates) that it stopped.
    pub count: u64,
    /// How much was asked, in the gate's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<u64>,
    /// The most any one place has free, in the gate's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_free: Option<u64>,
    /// The sum over all places, which never proves a fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_free: Option<u64>,
    /// For `fragmented`: what stands in the way of each start, on the GPU with fewest blockers.
    /// For `mode_occupied`: what has to leave a GPU before its mode may be changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
    /// What the gate is about, for people: a profile, a label, a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// In one line, for people: `fragmented (121) memory slices: needs 4, most in one place 5 (1 stopped)`.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.code.name(), self.number)?;
        if let Some(subject) = &self.subject {
            write!(f, " {subject}:")?;
        }
        if let Some(needed) = self.needed {
            write!(f, " needs {needed}")?;
        }
        if let Some(free) = self.largest_free {
            write!(f, ", most in one place {free}")?;
        }
        if let Some(total) = self.total_free {
            write!(f, ", {total} in all")?;
        }
        write!(f, " ({} stopped)", self.count)
    }
}

/// What stands in the way of one start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blocker {
    /// Name of the node.
    pub node: String,
    /// Index of the GPU on the node.
    pub gpu: u32,
    /// The start; 0 where the whole GPU is meant.
    pub start: u16,
    /// Names of the instances or leases on its cells.
    pub by: Vec<String>,
}

/// One thing for the host to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// Name of the node.
    pub node: String,
    /// Index of the GPU on the node.
    pub gpu: u32,
    /// What to do.
    #[serde(flatten)]
    pub action: Action,
    /// Leases that stop running while this is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbs: Vec<String>,
}

/// What a step does. Each action is the inverse of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Change the mode of a GPU that has nothing on it. Inverse: the same, back.
    SetMode {
        /// The mode it is in.
        from: Mode,
        /// The mode it is given.
        to: Mode,
    },
    /// Create a GPU instance at an explicit start. Inverse: `destroy_instance`.
    CreateInstance {
        /// Profile name.
        profile: String,
        /// The ID column of `mig -lgip`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile_id: Option<u32>,
        /// First cell.
        start: u16,
        /// Cells covered.
        size: u16,
    },
    /// Destroy an idle GPU instance and what is in it. Inverse: `create_instance`.
    DestroyInstance {
        /// Profile name.
        profile: String,
        /// The ID column of `mig -lgip`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile_id: Option<u32>,
        /// The driver's instance id, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instance_id: Option<u32>,
        /// First cell.
        start: u16,
        /// Cells covered.
        size: u16,
    },
    /// Create a compute instance at an explicit start. Inverse: `destroy_compute`.
    CreateCompute {
        /// Profile name.
        profile: String,
        /// The ID column of `mig -lcip`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile_id: Option<u32>,
        /// First cell of the GPU instance it is in.
        instance_start: u16,
        /// First compute slice inside it.
        start: u16,
    },
    /// Destroy a compute instance. Inverse: `create_compute`.
    DestroyCompute {
        /// Profile name.
        profile: String,
        /// The ID column of `mig -lcip`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile_id: Option<u32>,
        /// First cell of the GPU instance it is in.
        instance_start: u16,
        /// First compute slice inside it.
        start: u16,
    },
    /// Create a vGPU of a type. Inverse: `destroy_vgpu`.
    CreateVgpu {
        /// vGPU type.
        vgpu: String,
        /// Placement id: where it lies in the framebuffer of the GPU, or of the GPU instance.
        placement_id: u16,
        /// First cell of the GPU instance it is in, for MIG-backed types.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instance_start: Option<u16>,
    },
    /// Destroy a vGPU. Inverse: `create_vgpu`.
    DestroyVgpu {
        /// vGPU type.
        vgpu: String,
        /// Placement id.
        placement_id: u16,
        /// First cell of the GPU instance it is in, for MIG-backed types.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instance_start: Option<u16>,
    },
    /// Hand what is now there to the member. Inverse: `detach`.
    Attach {
        /// Name of the lease.
        lease: String,
        /// Position of the member in the lease.
        member: u32,
    },
    /// Take it away from the member. Inverse: `attach`.
    Detach {
        /// Name of the lease.
        lease: String,
        /// Position of the member in the lease.
        member: u32,
    },
}

/// One lease's part that goes elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Move {
    /// Name of the lease or instance.
    pub lease: String,
    /// Position of the member in the lease.
    pub member: u32,
    /// Where it is.
    pub from: Site,
    /// Where it goes.
    pub to: Site,
}

/// A place on a GPU's axis.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Site {
    /// Name of the node.
    pub node: String,
    /// Index of the GPU on the node.
    pub gpu: u32,
    /// Profile name.
    pub profile: String,
    /// First cell.
    pub start: u16,
}

/// Something that would make a refused request fit, checked by the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "remedy", rename_all = "snake_case")]
pub enum Remedy {
    /// Move these; `fewest` says whether fewer moves were proved not to do.
    Move {
        /// The moves, in order.
        moves: Vec<Move>,
        /// No smaller number of moves does it.
        fewest: bool,
    },
    /// Add one node with this many empty GPUs.
    AddGpus {
        /// Model id.
        model: String,
        /// Mode name.
        mode: String,
        /// How many; fewer do not do.
        count: u32,
    },
    /// Change the mode of this GPU, once nothing is on it.
    ChangeMode {
        /// Name of the node.
        node: String,
        /// Index of the GPU on the node.
        gpu: u32,
        /// Mode name.
        mode: String,
        /// Leases that have to leave first; none on an unused GPU.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        leave: Vec<String>,
    },
    /// Let this GPU take work again.
    Uncordon {
        /// Name of the node.
        node: String,
        /// Index of the GPU on the node; absent: the whole node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gpu: Option<u32>,
    },
    /// Ask for fewer members.
    FewerMembers {
        /// How many fit.
        count: u32,
    },
    /// Ask for this profile instead.
    OtherProfile {
        /// Profile name.
        profile: String,
    },
    /// Drop this requirement.
    Relax {
        /// Field of the request.
        field: String,
    },
}

/// The second answer to a refused request: the smallest causes and what would help.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// Constraints that cannot all stay: dropping any one field makes it fit, or none does.
    pub conflict: Vec<String>,
    /// Checked remedies, cheapest first.
    pub remedies: Vec<Remedy>,
    /// Work budget used up before everything was tried.
    pub budget_exhausted: bool,
}
