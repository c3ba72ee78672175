//! Why a listing was not taken.

use std::fmt;

use thiserror::Error;

use crate::document::ReadError;

/// A listing that cannot become a fleet, with the file and line that say so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ImportError {
    file: Option<String>,
    line: Option<usize>,
    #[source]
    fault: ImportFault,
}

impl ImportError {
    /// A fault with no place yet.
    pub fn new(fault: ImportFault) -> Self {
        Self { file: None, line: None, fault }
    }
    /// The same fault in a file, at a 1-based line where known.
    #[must_use]
    pub fn at(mut self, file: &str, line: Option<usize>) -> Self {
        self.file.get_or_insert_with(|| file.to_owned());
        self.line = self.line.or(line);
        self
    }
    /// Name of the file, where one file is to blame.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }
    /// Line, from 1, where known.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
    /// What is wrong.
    pub fn fault(&self) -> &ImportFault {
        &self.fault
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: {}", self.fault),
            (Some(file), None) => write!(f, "{file}: {}", self.fault),
            _ => self.fault.fmt(f),
        }
    }
}

impl From<ImportFault> for ImportError {
    fn from(fault: ImportFault) -> Self {
        Self::new(fault)
    }
}

impl From<ReadError> for ImportError {
    fn from(error: ReadError) -> Self {
        let message = match error.path() {
            "" => error.message().to_owned(),
            path => format!("{path}: {}", error.message()),
        };
        Self::new(ImportFault::Malformed(message)).at(error.file(), error.line())
    }
}

/// The kinds of fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImportFault {
    /// The text breaks the form of its format.
    #[error("{0}")]
    Malformed(String),
    /// The listing that the kind names is not in the text.
    #[error("no {wanted} here: this is {found}; {hint}")]
    ListingMissing {
        /// The listing that was wanted.
        wanted: String,
        /// What was found instead.
        found: String,
        /// What to run or give instead.
        hint: String,
    },
    /// The model is in no catalog and no document.
    #[error("unknown model `{0}`; pass `--model` with an id or product name of the catalog")]
    ModelUnknown(String),
    /// The text does not say the model, nor does anything else.
    #[error("{0} does not tell the model; pass `--model`, or merge into a state that has the GPUs")]
    ModelNeeded(String),
    /// Several models fit and differ where it matters.
    #[error("several models have these profiles and differ in them: {}; pass `--model`", .candidates.join(", "))]
    ModelAmbiguous {
        /// Ids of the models that fit.
        candidates: Vec<String>,
    },
    /// No model of the catalog fits.
    #[error("no model of the catalog has these profiles ({0}); pass `--model`, or declare the model under `models`")]
    ModelNotFound(String),
    /// The profile is not one of the device.
    #[error("`{model}` has no profile `{profile}`; is `--model` right?")]
    ProfileNotOnModel {
        /// The profile that was listed.
        profile: String,
        /// The device's model.
        model: String,
    },
    /// An instance lies where its profile cannot.
    #[error("`{profile}` cannot lie at {start}:{size} on `{model}`; is `--model` right?")]
    PlacementNotOnModel {
        /// The profile that was listed.
        profile: String,
        /// First cell.
        start: u16,
        /// Cells covered.
        size: u16,
        /// The device's model.
        model: String,
    },
    /// The instances fit on the model in no order.
    #[error("{counts} have no legal arrangement on `{model}`")]
    NoArrangement {
        /// How many of which profile.
        counts: String,
        /// The device's model.
        model: String,
    },
    /// The placements that an arrangement needs are not published.
    #[error(
        "placements of `{profile}` on `{model}` are not published; import the device's own `mig -lgipp` listing first"
    )]
    PlacementsUnknown {
        /// The profile.
        profile: String,
        /// The device's model.
        model: String,
    },
    /// Compute instances of a GPU instance that is not known.
    #[error(
        "GPU instance {instance} of GPU {gpu} is not known: give its `nvidia-smi mig -lgi` listing too, or merge into a state that has it"
    )]
    InstanceUnknown {
        /// Index of the GPU.
        gpu: u32,
        /// The driver's GPU instance id.
        instance: u32,
    },
    /// The listing and the state it is merged into disagree.
    #[error("{0}")]
    Contradiction(String),
    /// Several configurations are in the text and none was chosen.
    #[error("which configuration? pass `--config` with one of: {}", .0.join(", "))]
    ConfigNeeded(Vec<String>),
    /// The configuration is not in the text.
    #[error("no configuration named `{name}`; there are: {}", .known.join(", "))]
    ConfigUnknown {
        /// The name given.
        name: String,
        /// The names in the text.
        known: Vec<String>,
    },
    /// A configuration that names no GPU there is.
    #[error("configuration `{0}` applies to none of the GPUs")]
    NothingMatches(String),
}

impl ImportFault {
    /// The stable name of this kind of fault.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::ListingMissing { .. } => "listing_missing",
            Self::ModelUnknown(_) => "model_unknown",
            Self::ModelNeeded(_) => "model_needed",
            Self::ModelAmbiguous { .. } => "model_ambiguous",
            Self::ModelNotFound(_) => "model_not_found",
            Self::ProfileNotOnModel { .. } => "profile_not_on_model",
            Self::PlacementNotOnModel { .. } => "placement_not_on_model",
            Self::NoArrangement { .. } => "no_arrangement",
            Self::PlacementsUnknown { .. } => "placements_unknown",
            Self::InstanceUnknown { .. } => "instance_unknown",
            Self::Contradiction(_) => "contradiction",
            Self::ConfigNeeded(_) => "config_needed",
            Self::ConfigUnknown { .. } => "config_unknown",
            Self::NothingMatches(_) => "nothing_matches",
        }
    }
}
