//! Questions to the performance model: one mapping each, in the same envelope as fleets.

use serde::de::DeserializeOwned;
use serde_json::Value;
use slicewise_core::perf::advise::AdviseAsk;
use slicewise_core::perf::memory::SizeAsk;
use slicewise_core::perf::recommend::RecommendAsk;

use super::envelope::SCHEMA;
use super::error::ReadError;
use super::locate::locate;
use super::text::{read, typed};

/// Reads a question of `size` in JSON or YAML.
///
/// # Errors
/// A text that is no such document, with line, column and field.
pub fn read_size(name: &str, text: &str) -> Result<SizeAsk, ReadError> {
    question(name, text)
}

/// Reads a question of `recommend` in JSON or YAML.
///
/// # Errors
/// A text that is no such document, with line, column and field.
pub fn read_recommend(name: &str, text: &str) -> Result<RecommendAsk, ReadError> {
    question(name, text)
}

/// Reads a question of `advise` in JSON or YAML.
///
/// # Errors
/// A text that is no such document, with line, column and field.
pub fn read_advise(name: &str, text: &str) -> Result<AdviseAsk, ReadError> {
    question(name, text)
}

/// The envelope is the `schema`, which may be left out when writing by hand. Anything but a
/// mapping is refused: by itself serde would also take a list of the fields.
fn question<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ReadError> {
    let Value::Object(mut fields) = read(name, text)? else {
        return Err(ReadError::new(name, "expected a mapping").at(locate(text, "")));
    };
    if let Some(schema) = fields.shift_remove("schema").filter(|s| s.as_str() != Some(SCHEMA)) {
        let message = format!("unknown schema {schema}; this version reads `{SCHEMA}`");
        return Err(ReadError::new(name, message).in_field("schema").at(locate(text, "schema")));
    }
    typed(name, text, Value::Object(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_strictly() {
        let size = read_size("q", "schema: slicewise/v1\nmodel: {parameters: 7000000000}\ngpu: a30-24gb\n").unwrap();
        assert_eq!(size.model.unwrap().parameters, 7_000_000_000);
        let at = |text: &str| {
            let error = read_size("q", text).unwrap_err();
            (error.path().to_owned(), error.line())
        };
        assert_eq!(at("model: {parameters: 1}\ncolour: red\n"), ("colour".into(), Some(2)));
        assert_eq!(at("model:\n  parameters: many\n"), ("model.parameters".into(), Some(2)));
        assert_eq!(at("schema: other\nmodel: {parameters: 1}\n").0, "schema");
        assert_eq!(at("[]").0, "");
        assert_eq!(read_advise("q", "{\"sharing\": \"mps\", \"class\": \"inference\"}").unwrap().tenants, 1);
        assert_eq!(read_recommend("q", "workload: {class: training}").unwrap_err().path(), "workload");
    }
}
