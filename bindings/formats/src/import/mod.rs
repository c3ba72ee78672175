//! Listings of tools become a fleet. Each kind has a module; what they share is the
//! `draft` that they fill, the search for legal starts in `arrange`, and the guess of the
//! model in `identify`.

mod arrange;
mod devices;
mod draft;
mod error;
mod identify;
mod listing;
mod mig_parted;
mod node;
mod openb;
mod resourceslice;
mod smi;
mod smi_xml;
mod topo;
mod transcript;

pub use error::{ImportError, ImportFault};

use std::fmt;
use std::str::FromStr;

use slicewise_core::catalog::Catalog;
use slicewise_core::fleet::State;
use slicewise_core::workload::Workload;
use thiserror::Error;

use draft::Draft;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// What a text is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $variant,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

kinds! {
    /// `nvidia-smi -L`.
    SmiL = "smi-l";
    /// `nvidia-smi mig -lgip`.
    MigLgip = "mig-lgip";
    /// `nvidia-smi mig -lgipp`.
    MigLgipp = "mig-lgipp";
    /// `nvidia-smi mig -lgi`.
    MigLgi = "mig-lgi";
    /// `nvidia-smi mig -lci`.
    MigLci = "mig-lci";
    /// `nvidia-smi -q -x`.
    SmiXml = "smi-xml";
    /// `nvidia-smi topo -m`.
    Topo = "topo";
    /// A configuration of mig-parted.
    MigParted = "mig-parted";
    /// Kubernetes ResourceSlice objects.
    ResourceSlice = "resourceslice";
    /// Kubernetes Node objects, or the labels of one.
    Node = "node";
    /// Node and pod tables of the Alibaba GPU traces.
    Openb = "openb";
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A kind that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown kind `{0}`; there are: {names}", names = Kind::ALL.iter().map(|k| k.name()).collect::<Vec<_>>().join(", "))]
pub struct UnknownKind(String);

impl FromStr for Kind {
    type Err = UnknownKind;
    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        Self::ALL.iter().copied().find(|k| k.name() == name).ok_or_else(|| UnknownKind(name.to_owned()))
    }
}

/// One text and the name to speak of it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// Name of the file.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// What the texts alone do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The node that a listing is of, where it names none; `node-0` if absent.
    pub node: Option<String>,
    /// Id or product name of the model, where the text does not tell.
    pub model: Option<String>,
    /// Which configuration of a mig-parted document.
    pub config: Option<String>,
    /// Merge into this state: the same node and GPU index get what the listing adds.
    pub into: Option<State>,
    /// Take instances as idle. Without it they are busy, since nothing here says otherwise.
    pub idle: bool,
}

/// What the texts became.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The fleet.
    pub state: State,
    /// Requests, from traces only.
    pub requests: Vec<Workload>,
    /// What was assumed, for people to read.
    pub notes: Vec<String>,
}

/// Reads texts of one kind.
///
/// # Errors
/// A text without the listing that the kind names, one that breaks its own form, or one
/// that fits to no model; with file and line where one is to blame.
pub fn import(kind: Kind, files: &[Source<'_>], options: &Options, catalog: &Catalog) -> Result<Imported, ImportError> {
    let mut draft = Draft::new(options, catalog)?;
    match kind {
        Kind::SmiL | Kind::MigLgip | Kind::MigLgipp | Kind::MigLgi | Kind::MigLci | Kind::Topo => {
            smi::import(kind, files, &mut draft)?;
        }
        Kind::SmiXml => smi_xml::import(files, &mut draft)?,
        Kind::MigParted => mig_parted::import(files, &mut draft)?,
        Kind::ResourceSlice => resourceslice::import(files, &mut draft)?,
        Kind::Node => node::import(files, &mut draft)?,
        Kind::Openb => openb::import(files, &mut draft)?,
    }
    Ok(draft.finish())
}
