//! The document of a GPU shared in time.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use slicewise_core::perf::timeshare::Timeshare;

use super::envelope::SCHEMA;
use super::error::ReadError;
use super::locate::locate;
use super::text::read;

/// A document that is written as a mapping: serde would take its fields as a list too.
struct Whole(Timeshare);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Whole;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a document with `residents`")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Whole, A::Error> {
                Timeshare::deserialize(MapAccessDeserializer::new(map)).map(Whole)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Reads how a GPU is shared in time, in JSON or YAML.
///
/// # Errors
/// A text that is no such document, or one with a number or name that cannot be, with line,
/// column and field.
pub fn read_timeshare(name: &str, text: &str) -> Result<Timeshare, ReadError> {
    let Whole(document) = read(name, text)?;
    let fault = |path: &str, message: String| ReadError::new(name, message).in_field(path).at(locate(text, path));
    if let Some(schema) = document.schema.as_ref().filter(|s| *s != SCHEMA) {
        return Err(fault("schema", format!("unknown schema `{schema}`; this version reads `{SCHEMA}`")));
    }
    document.check().map_err(|e| fault(e.path(), e.fault().to_string()))?;
    Ok(document)
}
