//! What the fuzz targets check. A target fails by a panic: of the code under test, or of
//! an assertion here.

pub mod abi;
pub mod engine;
pub mod shared;
pub mod text;

pub use shared::timeshare;
pub use text::{document, import, requests, tables};
