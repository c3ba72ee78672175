//! The JSON Schema of the wire, made from the types that read it.

use schemars::generate::SchemaSettings;
use slicewise_core::decision::{Decision, Explanation};
use slicewise_core::perf::advise::{Advice, AdviseAsk};
use slicewise_core::perf::memory::{SizeAnswer, SizeAsk};
use slicewise_core::perf::recommend::{RecommendAsk, Recommendation};
use slicewise_core::perf::timeshare::{Choice, Refusal, Timeshare};

use super::envelope::{Document, SCHEMA};

/// The JSON Schema of [`Document`], [`Decision`], [`Explanation`], of [`Timeshare`] and its
/// [`Choice`] or [`Refusal`], and of the questions to the performance model and their
/// answers, as indented JSON.
pub fn schema() -> String {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let roots = [
        generator.subschema_for::<Document>(),
        generator.subschema_for::<Decision>(),
        generator.subschema_for::<Explanation>(),
        generator.subschema_for::<Timeshare>(),
        generator.subschema_for::<Choice>(),
        generator.subschema_for::<Refusal>(),
        generator.subschema_for::<SizeAsk>(),
        generator.subschema_for::<SizeAnswer>(),
        generator.subschema_for::<RecommendAsk>(),
        generator.subschema_for::<Recommendation>(),
        generator.subschema_for::<AdviseAsk>(),
        generator.subschema_for::<Advice>(),
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
