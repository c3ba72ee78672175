//! Readers and writers of what GPU operators already have, and of the
//! `slicewise/v1` documents.
//!
//! * [`document`]: fleets and requests as JSON, YAML or CSV, with errors that point
//!   into the text.
//! * [`import`]: listings of `nvidia-smi`, mig-parted, Kubernetes and traces become a
//!   [`State`](slicewise_core::fleet::State).
//! * [`export`]: decisions and fleets become commands and configurations.
//!
//! Nothing here decides anything and nothing here touches files: texts come in, values
//! and texts go out.

pub mod document;
pub mod export;
pub mod import;
mod quantity;

pub use document::{
    Document, GpuRow, ReadError, locate, read, read_requests, read_state, schema, write_document,
    write_state, write_state_yaml,
};
pub use import::{ImportError, ImportFault, Imported, Kind, Options, Source, import};
