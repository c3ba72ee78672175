//! The one table of reason codes. Numbers are stable: never reuse one.

use alloc::string::String;
use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $number:literal, $name:literal;)*) => {
        /// Why a request did not get through, with stable numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Code {
            $($(#[doc = $doc])+ $variant = $number,)*
        }

        impl Code {
            /// Every code, by rising number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
            /// The stable number.
            pub fn number(self) -> u16 {
                self as u16
            }
            /// What it means, in one sentence.
            pub fn description(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim(),)* }
            }
            /// The code with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

codes! {
    /// The fleet has no GPU at all.
    NoGpus = 100, "no_gpus";
    /// The GPU's model or mode does not offer what is asked.
    ProfileNotOffered = 101, "profile_not_offered";
    /// The GPU is not in a mode that can serve this.
    ModeMismatch = 102, "mode_mismatch";
    /// A whole GPU is asked of one that is cut into instances.
    ParentPartitioned = 103, "parent_partitioned";
    /// The model is not among those the request allows.
    ModelNotAllowed = 104, "model_not_allowed";
    /// The driver is older than the profile needs.
    DriverTooOld = 105, "driver_too_old";
    /// Placements of the profile are not known for this GPU.
    PlacementsUnknown = 106, "placements_unknown";
    /// The GPU's memory is not known and the request asks memory.
    MemoryUnknown = 107, "memory_unknown";
    /// The GPU's mode isolates less than the request accepts.
    IsolationTooWeak = 108, "isolation_too_weak";
    /// The request asks confidential computing of a GPU where it is off.
    ConfidentialOff = 109, "confidential_off";
    /// The GPU takes no new work because of its health.
    GpuUnhealthy = 110, "gpu_unhealthy";
    /// The GPU or its node is cordoned.
    Cordoned = 111, "cordoned";
    /// The node does not meet the node requirements.
    NodeSelector = 112, "node_selector";
    /// The GPU would have to change its mode, and something is on it.
    ModeOccupied = 113, "mode_occupied";
    /// Fewer free cells or compute slices than asked.
    InsufficientSlices = 120, "insufficient_slices";
    /// Enough free cells and compute slices, no legal start.
    Fragmented = 121, "fragmented";
    /// The instances of the GPU leave too few media engines.
    EnginesExhausted = 122, "engines_exhausted";
    /// The GPU holds the most instances of the profile.
    MaxInstances = 123, "max_instances";
    /// The driver refuses the profile beside one that is there.
    RefusedTogether = 124, "refused_together";
    /// The GPU holds shares of another type.
    LockedToOtherType = 125, "locked_to_other_type";
    /// All shares of the GPU are taken.
    SharesExhausted = 126, "shares_exhausted";
    /// The MPS server takes no more client contexts.
    ClientsExhausted = 127, "clients_exhausted";
    /// Less compute left than the fraction asks.
    InsufficientFraction = 130, "insufficient_fraction";
    /// Less memory left than the fraction or the whole GPU asks.
    InsufficientMemory = 131, "insufficient_memory";
    /// The GPU is not wholly free.
    GpuInUse = 132, "gpu_in_use";
    /// The node has fewer wholly free GPUs than asked.
    TooFewGpus = 133, "too_few_gpus";
    /// The instances asked for do not fit together on the node or GPU.
    InstancesDoNotFit = 134, "instances_do_not_fit";
    /// The node has too little CPU left.
    NodeCpu = 140, "node_cpu";
    /// The node has too little memory left.
    NodeMemory = 141, "node_memory";
    /// The node would draw more than its power cap.
    PowerCapNode = 142, "power_cap_node";
    /// The rack would draw more than its power cap.
    PowerCapRack = 143, "power_cap_rack";
    /// A lease on the node and the request keep away from each other.
    AntiAffinity = 150, "anti_affinity";
    /// The free GPUs are not joined as asked.
    Topology = 151, "topology";
    /// No offered fabric partition of that size is free.
    FabricPartition = 152, "fabric_partition";
    /// No free GPUs near enough to a network adapter.
    NicDistance = 153, "nic_distance";
    /// Members fit one by one but not as they must lie to each other.
    MemberSpread = 154, "member_spread";
    /// Some members fit, not all.
    GangIncomplete = 160, "gang_incomplete";
    /// Moves would make room, more than the budget of moves allows.
    MovesExceeded = 161, "moves_exceeded";
    /// The work budget ended the search.
    BudgetExhausted = 190, "budget_exhausted";
    /// What a decision relied on has changed since.
    Conflict = 500, "conflict";
    /// No lease of that name.
    UnknownLease = 501, "unknown_lease";
    /// The change cannot be undone: something later built on it.
    UndoBlocked = 502, "undo_blocked";
    /// The checker refused what the engine made: a fault of Slicewise.
    VerificationFailed = 503, "verification_failed";
    /// Only an admitting decision can be committed.
    NotAdmitted = 504, "not_admitted";
    /// A pointer is null that must not be.
    NullPointer = 600, "null_pointer";
    /// A text is not UTF-8.
    NotUtf8 = 601, "not_utf8";
    /// A structure has a size that no version has, or sets a field that this one does not know.
    WrongStructSize = 602, "wrong_struct_size";
    /// An earlier call on the handle panicked; all that is left is to free it.
    Poisoned = 603, "poisoned";
    /// The call panicked: a fault of Slicewise.
    Panicked = 604, "panicked";
    /// The buffer is too small; the length that is needed was written.
    BufferTooSmall = 605, "buffer_too_small";
    /// Another call on the handle is running.
    HandleBusy = 606, "handle_busy";
    /// The decision was made by another engine, or on a state that was replaced.
    ForeignHandle = 607, "foreign_handle";
    /// The handle holds nothing yet.
    EmptyHandle = 608, "empty_handle";
    /// A text cannot be read as the document that it should be.
    Unreadable = 609, "unreadable";
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name).ok_or_else(|| serde::de::Error::custom(alloc::format!("unknown reason code `{name}`")))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Code {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "Code".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: alloc::vec::Vec<&str> = Self::ALL.iter().map(|c| c.name()).collect();
        schemars::json_schema!({ "description": "Reason code, by name.", "type": "string", "enum": names })
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn numbers_rise_and_names_return() {
        assert!(Code::ALL.is_sorted_by(|a, b| a.number() < b.number()));
        for &code in Code::ALL {
            assert_eq!(Code::from_name(code.name()), Some(code));
        }
    }
}
