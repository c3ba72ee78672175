//! What calls take and give: the structures and values of the header.

use std::ffi::c_char;
use std::mem::size_of;

use slicewise::Part;

use crate::sized::Structure;
use crate::status::Status;
use crate::text::Text;

/// No GPU, where an index of one stands.
pub const NONE: u32 = u32::MAX;

/// The answer to a request.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Placed.
    Admit = 0,
    /// Not now; the request asked to queue.
    Wait = 1,
    /// No.
    Reject = 2,
    /// The work budget ended before an answer.
    Undecided = 3,
}

/// What a request asks for.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskKind {
    /// `profile`: a MIG profile, a compute instance profile, a vGPU type, a replica, a partition.
    Profile = 0,
    /// `milli` thousandths of a GPU and `gpu_memory_mib` of its memory.
    Fraction = 1,
    /// `gpus` whole GPUs of one node.
    Gpus = 2,
    /// `threads_percent`, `gpu_memory_mib` and `contexts` under CUDA MPS.
    Mps = 3,
}

/// What of a GPU a placement has.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// No GPU: only the node's CPU and memory.
    NodeOnly = 0,
    /// All of the GPU.
    Whole = 1,
    /// A GPU instance, or a vGPU among several sizes: `profile`, `start`, `size`.
    Instance = 2,
    /// A compute instance, or a vGPU, inside a GPU instance: besides `compute_profile`, `compute_start`.
    Compute = 3,
    /// A share of type `profile`.
    Share = 4,
    /// A fraction: `milli`, `gpu_memory_mib`, `contexts`.
    Fraction = 5,
}

/// What a batch is planned for.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The most value admitted.
    MostValue = 0,
    /// As many members as possible, then the fewest GPUs.
    FewestGpus = 1,
}

/// Bits of `flags` in a request.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// Others may be moved to make room.
    AllowMoves = 1,
    /// May itself not be moved once placed.
    Pinned = 2,
    /// Leave idle instances as they are.
    KeepIdle = 4,
    /// What cannot be placed now waits instead of being refused.
    Queue = 8,
}

/// A request. Set `struct_size`, `name` and what is asked; everything that is left zero is not asked.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// `sizeof(slicewise_request)`.
    pub struct_size: usize,
    /// Unique name; the lease will have it.
    pub name: *const c_char,
    /// Whose it is, or null.
    pub tenant: *const c_char,
    /// The only node that it may go to, or null.
    pub node: *const c_char,
    /// For `SLICEWISE_ASK_PROFILE`: the name; else null.
    pub profile: *const c_char,
    /// CPU that each member takes on its node, thousandths of a core.
    pub cpu_milli: u64,
    /// Memory that each member takes on its node, MiB.
    pub memory_mib: u64,
    /// A `slicewise_ask`: what each member gets.
    pub ask: u32,
    /// Members, all of which are placed or none; 0 is 1.
    pub count: u32,
    /// For a fraction: thousandths of a GPU's compute.
    pub milli: u32,
    /// For a fraction, for MPS and for whole GPUs: least memory of the GPU in MiB; 0: not counted.
    pub gpu_memory_mib: u32,
    /// For whole GPUs: how many.
    pub gpus: u32,
    /// For MPS: active-thread percentage.
    pub threads_percent: u32,
    /// For MPS: client contexts; 0 is 1.
    pub contexts: u32,
    /// Bits of `slicewise_flag`.
    pub flags: u32,
}

/// A decision in short.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// `sizeof(slicewise_summary)`, set by the caller.
    pub struct_size: usize,
    /// The version of the state that it was made on.
    pub version: u64,
    /// A `slicewise_verdict`.
    pub verdict: u32,
    /// The number of the first reason; 0 if there is none.
    pub reason: Status,
    /// 1 if the placement passed the checker, or the "no" is proved; else 0.
    pub proved: u32,
    /// How many placements there are.
    pub placements: u32,
    /// How many reasons there are.
    pub reasons: u32,
    /// How many leases' parts are moved to make room.
    pub moves: u32,
}

/// What one member has, and where.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// `sizeof(slicewise_placement)`, set by the caller.
    pub struct_size: usize,
    /// Name of the node.
    pub node: Text,
    /// UUID of the GPU; empty if not known.
    pub uuid: Text,
    /// Profile of the instance, or type of the share; empty for other kinds.
    pub profile: Text,
    /// Profile of the compute instance; empty for other kinds.
    pub compute_profile: Text,
    /// Position of the member in its request, from 0.
    pub member: u32,
    /// Index of the GPU on the node, or `SLICEWISE_NONE`.
    pub gpu: u32,
    /// A `slicewise_part`: which of the fields below say something; the others are 0.
    pub kind: u32,
    /// First cell of the instance; the placement id of a vGPU.
    pub start: u32,
    /// Cells covered by the instance.
    pub size: u32,
    /// First slice inside the instance.
    pub compute_start: u32,
    /// Thousandths of the GPU's compute.
    pub milli: u32,
    /// Memory of the GPU in MiB; 0 where it is not counted.
    pub gpu_memory_mib: u32,
    /// Client contexts on an MPS server.
    pub contexts: u32,
    /// 0.
    pub reserved: u32,
}

/// An engine in numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// `sizeof(slicewise_info)`, set by the caller.
    pub struct_size: usize,
    /// The version of the state; each change adds one.
    pub version: u64,
    /// Nodes.
    pub nodes: u64,
    /// GPUs.
    pub gpus: u64,
    /// Leases.
    pub leases: u64,
}

macro_rules! structures {
    ($($type:ty, $name:literal, $min:expr;)*) => {
        // SAFETY: integers, pointers and texts, which may all be zero, after a `usize`.
        $(unsafe impl Structure for $type {
            const NAME: &'static str = $name;
            const SIZE_MIN: usize = $min;
        })*
    };
}

structures! {
    Request, "slicewise_request", size_of::<Request>();
    Summary, "slicewise_summary", size_of::<Summary>();
    Placement, "slicewise_placement", size_of::<Placement>();
    Info, "slicewise_info", size_of::<Info>();
}

impl From<slicewise::Verdict> for Verdict {
    fn from(verdict: slicewise::Verdict) -> Self {
        match verdict {
            slicewise::Verdict::Admit => Self::Admit,
            slicewise::Verdict::Wait => Self::Wait,
            slicewise::Verdict::Reject => Self::Reject,
            slicewise::Verdict::Undecided => Self::Undecided,
        }
    }
}

impl Summary {
    /// A decision in short.
    pub fn of(decision: &slicewise::Decision) -> Self {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        Self {
            struct_size: size_of::<Self>(),
            version: decision.version,
            verdict: Verdict::from(decision.verdict) as u32,
            reason: decision.reasons.first().map_or(Status::OK, |reason| Status::of(reason.code)),
            proved: decision.proved.into(),
            placements: count(decision.placements.len()),
            reasons: count(decision.reasons.len()),
            moves: count(decision.moves.len()),
        }
    }
}

impl Placement {
    /// A placement whose texts are lent from `placement`.
    pub fn lent(placement: &slicewise::Placement) -> Self {
        let mut lent = Self {
            struct_size: size_of::<Self>(),
            node: Text::lent(&placement.node),
            uuid: Text::lent(placement.uuid.as_deref().unwrap_or_default()),
            profile: Text::lent(""),
            compute_profile: Text::lent(""),
            member: placement.member,
            gpu: placement.gpu.unwrap_or(NONE),
            kind: PartKind::NodeOnly as u32,
            start: 0,
            size: 0,
            compute_start: 0,
            milli: 0,
            gpu_memory_mib: 0,
            contexts: 0,
            reserved: 0,
        };
        lent.set(&placement.part);
        lent
    }

    fn set(&mut self, part: &Part) {
        let mut instance = |kind, name: &str, at: u16, cells: u16| {
            (self.kind, self.profile) = (kind as u32, Text::lent(name));
            (self.start, self.size) = (at.into(), cells.into());
        };
        match part {
            Part::NodeOnly => {}
            Part::Whole => self.kind = PartKind::Whole as u32,
            Part::Instance { profile, start, size } => instance(PartKind::Instance, profile, *start, *size),
            Part::Compute { profile, start, size, compute_profile, compute_start } => {
                instance(PartKind::Compute, profile, *start, *size);
                self.compute_profile = Text::lent(compute_profile);
                self.compute_start = (*compute_start).into();
            }
            Part::Share { share } => instance(PartKind::Share, share, 0, 0),
            Part::Fraction { milli, memory_mib, contexts } => {
                self.kind = PartKind::Fraction as u32;
                (self.milli, self.gpu_memory_mib, self.contexts) = ((*milli).into(), *memory_mib, (*contexts).into());
            }
        }
    }
}
