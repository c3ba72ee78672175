//! The JSON Schema of the wire, made from the types that read it.

use schemars::generate::SchemaSettings;
use slicewise_core::decision::{Decision, Explanation};
use slicewise_core::perf::timeshare::{Choice, Refusal, Timeshare};

use super::envelope::{Document, SCHEMA};

/// The JSON Schema of [`Document`], [`Decision`], [`Explanation`], [`Timeshare`] and its
/// [`Choice`] or [`Refusal`], as indented JSON.
pub fn schema() -> String {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let roots = [
        generator.subschema_for::<Document>(),
        generator.subschema_for::<Decision>(),
        generator.subschema_for::<Explanation>(),
        generator.subschema_for::<Timeshare>(),
        generator.subschema_for::<Choice>(),
        generator.subschema_for::<Refusal>(),
    ];
    let defs = generator.take_definitions(true);
    let whole = serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        "anyOf": roots,
        "$defs": defs,
    });
    let mut text = serde_json::to_string_pretty(&whole).unwrap_or_default();
    text.push('\n');
    text
}
