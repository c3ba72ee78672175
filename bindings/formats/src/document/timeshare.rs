//! The document of a GPU shared in time.

use slicewise_core::perf::timeshare::Timeshare;

use super::envelope::SCHEMA;
use super::error::ReadError;
use super::locate::locate;
use super::text::{Mapping, Whole, read};

impl Whole for Timeshare {
    const EXPECTED: &'static str = "a document with `residents`";
}

/// Reads how a GPU is shared in time, in JSON or YAML.
///
/// # Errors
/// A text that is no such document, or one with a number or name that cannot be, with line,
/// column and field.
pub fn read_timeshare(name: &str, text: &str) -> Result<Timeshare, ReadError> {
    let Mapping::<Timeshare>(document) = read(name, text)?;
    let fault = |path: &str, message: String| ReadError::new(name, message).in_field(path).at(locate(text, path));
    if let Some(schema) = document.schema.as_ref().filter(|s| *s != SCHEMA) {
        return Err(fault("schema", format!("unknown schema `{schema}`; this version reads `{SCHEMA}`")));
    }
    document.check().map_err(|e| fault(e.path(), e.fault().to_string()))?;
    Ok(document)
}
