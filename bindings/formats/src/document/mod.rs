//! The `slicewise/v1` documents: one envelope for fleets and requests; questions to the
//! performance model.

mod envelope;
mod error;
mod locate;
mod questions;
mod requests;
mod schema;
mod text;
mod timeshare;
mod value;

pub use envelope::{Document, GpuRow, SCHEMA, Schema, read_state, write_document, write_state, write_state_yaml};
pub use error::ReadError;
pub use locate::locate;
pub use questions::{read_advise, read_recommend, read_size};
pub(crate) use requests::csv_error;
pub use requests::{Request, read_requests};
pub use schema::schema;
pub use text::read;
pub(crate) use text::{Syntax, read_all, strip_bom, syntax, yaml_text};
pub use timeshare::read_timeshare;
