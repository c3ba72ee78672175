//! Readers and writers of what GPU operators already have, and of the
//! `slicewise/v1` documents.
//!
//! * [`document`]: fleets and requests as JSON, YAML or CSV, with errors that point
//!   into the text.
//! * [`mod@import`]: listings of `nvidia-smi`, mig-parted, Kubernetes and traces become a
//!   [`State`](slicewise_core::fleet::State).
//! * [`export`]: decisions and fleets become commands and configurations.
//! * [`serving`]: tables of measured inference points and of scenarios.
//! * [`trace`]: in which order the pods of a trace arrive, and streams of MIG requests.
//!
//! ```
//! use slicewise_core::catalog::Catalog;
//! use slicewise_formats::{Kind, Options, Source, import, read_state, write_state};
//!
//! let listing = "GPU 0: NVIDIA A30 (UUID: GPU-0)\n  MIG 2g.12gb     Device  0: (UUID: MIG-0)\n";
//! let source = Source { name: "smi.txt", text: listing };
//! let imported = import(Kind::SmiL, &[source], &Options::default(), &Catalog::built_in()?)?;
//! assert_eq!(imported.state.nodes[0].gpus[0].instances[0].profile, "2g.12gb");
//!
//! let text = write_state(&imported.state);
//! assert_eq!(read_state("state.json", &text)?, imported.state);
//!
//! let error = read_state("state.json", "{\"nodes\": [{\"name\": 1}]}").unwrap_err();
//! assert_eq!((error.path(), error.line(), error.column()), ("nodes[0].name", Some(1), Some(21)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here decides anything and nothing here touches files: texts come in, values
//! and texts go out.

pub mod document;
pub mod export;
pub mod import;
mod quantity;
pub mod serving;
mod table;
pub mod trace;

pub use document::{
    Document, GpuRow, ReadError, locate, read, read_advise, read_recommend, read_requests, read_size, read_state,
    read_timeshare, schema, write_document, write_state, write_state_yaml,
};
pub use import::{ImportError, ImportFault, Imported, Kind, Options, Source, import};
pub use serving::{Scenarios, read_points, read_scenarios};
pub use trace::{Arrivals, StreamRequest, read_arrivals, read_stream};
