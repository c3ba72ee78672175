//! What can be wrong with an input. A rejection is not an error: see
//! [`crate::decision`].

use alloc::string::String;
use thiserror::Error;

/// A fault in a document or request, with the path of the field that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {fault}")]
pub struct InputError {
    path: String,
    fault: Fault,
}

impl InputError {
    /// A fault found at `path`, for example `nodes[0].gpus[1].model`.
    pub fn new(path: impl Into<String>, fault: Fault) -> Self {
        Self { path: path.into(), fault }
    }
    /// The path of the field, in the form `nodes[0].gpus[1].model`.
    pub fn path(&self) -> &str {
        &self.path
    }
    /// What is wrong there.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }
    /// The same fault seen from the document that holds this one under `prefix`.
    #[must_use]
    pub fn within(self, prefix: &str) -> Self {
        let path = if self.path.is_empty() {
            String::from(prefix)
        } else if self.path.starts_with('[') {
            alloc::format!("{prefix}{}", self.path)
        } else {
            alloc::format!("{prefix}.{}", self.path)
        };
        Self { path, fault: self.fault }
    }
}

/// The kinds of fault. Each has a stable number in the table of codes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The model is in no catalog and no document.
    #[error("unknown model `{0}`; declare it under `models` or use an id or product name of the catalog")]
    UnknownModel(String),
    /// The profile name is in no catalog and in no device listing.
    #[error("unknown profile `{0}`: no model of the catalog and no device listing has it")]
    UnknownProfile(String),
    /// The profile exists but has no such start on this device.
    #[error("profile `{profile}` cannot start at {start} on `{model}`; legal starts are {legal}")]
    UnknownPlacement {
        /// The profile asked for.
        profile: String,
        /// The start asked for.
        start: u16,
        /// The device's model.
        model: String,
        /// The legal starts, as text.
        legal: String,
    },
    /// The device's profile has no published placements.
    #[error("placements of `{profile}` on `{model}` are not published; give the device's own `mig -lgipp` listing")]
    UnknownPlacements {
        /// The profile asked for.
        profile: String,
        /// The device's model.
        model: String,
    },
    /// The model cannot be in this mode.
    #[error("model `{model}` cannot be in mode `{mode}`")]
    ModeNotOffered {
        /// The device's model.
        model: String,
        /// The mode asked for.
        mode: String,
    },
    /// Two things claim the same space.
    #[error("`{0}` does not fit beside what is already there: {1}")]
    Overlap(String, String),
    /// A name is used twice.
    #[error("`{0}` is used twice")]
    Duplicate(String),
    /// A name that must exist does not.
    #[error("no {kind} named `{name}`")]
    Unknown {
        /// What kind of thing is missing.
        kind: &'static str,
        /// The name given.
        name: String,
    },
    /// A number is out of its range.
    #[error("{value} is out of range {min}..={max}")]
    OutOfRange {
        /// The value given.
        value: u64,
        /// Least allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// A GPU is under a power limit or cap and its watts are not known.
    #[error(
        "idle and full watts of `{model}` are not known; give `power: {{ idle_w, full_w }}` on the GPU or its model"
    )]
    UnknownPower {
        /// The device's model.
        model: String,
    },
    /// The document breaks a rule that has no narrower name.
    #[error("{0}")]
    Invalid(String),
}

impl Fault {
    /// Every kind of fault by rising number: number, stable name, meaning.
    pub const TABLE: &'static [(u16, &'static str, &'static str)] = &[
        (901, "unknown_model", "The model is in no catalog and no document."),
        (902, "unknown_profile", "The profile name is in no catalog and in no device listing."),
        (903, "unknown_placement", "The profile exists but has no such start on this device."),
        (904, "unknown_placements", "The device's profile has no published placements."),
        (905, "mode_not_offered", "The model cannot be in this mode."),
        (906, "overlap", "Two things claim the same space."),
        (907, "duplicate", "A name is used twice."),
        (908, "unknown_name", "A name that must exist does not."),
        (909, "out_of_range", "A number is out of its range."),
        (910, "invalid", "The document breaks a rule that has no narrower name."),
        (911, "unknown_power", "A GPU is under a power limit or cap and its watts are not known."),
    ];

    /// The stable number of this kind of fault (900 and up: input faults).
    pub fn number(&self) -> u16 {
        match self {
            Self::UnknownModel(_) => 901,
            Self::UnknownProfile(_) => 902,
            Self::UnknownPlacement { .. } => 903,
            Self::UnknownPlacements { .. } => 904,
            Self::ModeNotOffered { .. } => 905,
            Self::Overlap(..) => 906,
            Self::Duplicate(_) => 907,
            Self::Unknown { .. } => 908,
            Self::OutOfRange { .. } => 909,
            Self::Invalid(_) => 910,
            Self::UnknownPower { .. } => 911,
        }
    }
    /// The stable name that goes with [`Fault::number`].
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownModel(_) => "unknown_model",
            Self::UnknownProfile(_) => "unknown_profile",
            Self::UnknownPlacement { .. } => "unknown_placement",
            Self::UnknownPlacements { .. } => "unknown_placements",
            Self::ModeNotOffered { .. } => "mode_not_offered",
            Self::Overlap(..) => "overlap",
            Self::Duplicate(_) => "duplicate",
            Self::Unknown { .. } => "unknown_name",
            Self::OutOfRange { .. } => "out_of_range",
            Self::Invalid(_) => "invalid",
            Self::UnknownPower { .. } => "unknown_power",
        }
    }
}
