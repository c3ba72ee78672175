//! JSON and YAML texts into values, with one kind of error for both.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::{MessageFormatter as _, UserMessageFormatter};

use super::error::ReadError;
use super::locate::locate;
use super::value::Unique;

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    Json,
    Yaml,
}

/// Texts that begin with a bracket are JSON, all others YAML.
pub(crate) fn syntax(text: &str) -> Syntax {
    match strip_bom(text).trim_start().chars().next() {
        Some('{' | '[') => Syntax::Json,
        _ => Syntax::Yaml,
    }
}

/// Editors of some systems put a byte order mark first.
pub(crate) fn strip_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Reads one JSON or YAML value of any type.
///
/// The text becomes a plain value first: the readers of the two syntaxes are then compiled
/// once, not once for every type that is read.
///
/// # Errors
/// A text that is not JSON or YAML, or not this type, with line, column and field.
pub fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ReadError> {
    let text = filled(file, text)?;
    let value = match syntax(text) {
        // YAML in flow style begins like JSON; the JSON error is the better one if both fail.
        Syntax::Json => read_json(file, text).or_else(|error| read_yaml(file, text).map_err(|_| error))?,
        Syntax::Yaml => read_yaml(file, text)?,
    };
    typed(file, text, value)
}

/// A type that is written as a mapping.
pub(super) trait Whole: DeserializeOwned {
    /// What an error says was expected.
    const EXPECTED: &'static str;
}

/// A document that is written as a mapping: by itself serde would also take its fields as a
/// list, and so an empty list as an empty fleet.
pub(super) struct Mapping<T>(pub(super) T);

impl<'de, T: Whole> Deserialize<'de> for Mapping<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Whole> Visitor<'de> for Fields<T> {
            type Value = Mapping<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Mapping<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Mapping)
            }
        }
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// A plain value as a type.
pub(super) fn typed<T: DeserializeOwned>(file: &str, text: &str, value: Value) -> Result<T, ReadError> {
    serde_path_to_error::deserialize(value).map_err(|e| {
        let path = clean(&e.path().to_string());
        let message = plain(&e.inner().to_string());
        ReadError::new(file, message).at(locate(text, &path)).in_field(path)
    })
}

/// An empty file would read as an empty fleet, which nobody means.
fn filled<'t>(file: &str, text: &'t str) -> Result<&'t str, ReadError> {
    let text = strip_bom(text);
    match text.trim().is_empty() {
        true => Err(ReadError::new(file, "the text is empty")),
        false => Ok(text),
    }
}

/// Reads every document of a text: one for JSON, any number for YAML.
pub(crate) fn read_all<T: DeserializeOwned>(file: &str, text: &str) -> Result<Vec<T>, ReadError> {
    let text = filled(file, text)?;
    match syntax(text) {
        Syntax::Json => Ok(vec![typed(file, text, read_json(file, text)?)?]),
        Syntax::Yaml => {
            let values: Vec<Value> =
                serde_saphyr::from_multiple_with_options(text, options()).map_err(|e| yaml_error(file, text, &e))?;
            values.into_iter().map(|value| typed(file, text, value)).collect()
        }
    }
}

/// Writes YAML; the only failure of the writer is a type that YAML cannot hold.
pub(crate) fn yaml_text<T: serde::Serialize>(value: &T) -> String {
    serde_saphyr::to_string(value).unwrap_or_default()
}

fn read_json(file: &str, text: &str) -> Result<Value, ReadError> {
    let Unique(value) = serde_json::from_str(text).map_err(|error: serde_json::Error| {
        let full = error.to_string();
        let message = match full.rfind(" at line ") {
            Some(end) => full.get(..end).unwrap_or(&full),
            None => &full,
        };
        let reached = (error.line() > 0).then(|| (error.line(), column_in_chars(text, error.line(), error.column())));
        ReadError::new(file, plain(message)).at(reached)
    })?;
    Ok(value)
}

fn column_in_chars(text: &str, line: usize, bytes: usize) -> usize {
    let line = text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let before = line.char_indices().take_while(|(at, _)| *at < bytes.saturating_sub(1)).count();
    before + 1
}

fn read_yaml(file: &str, text: &str) -> Result<Value, ReadError> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|e| yaml_error(file, text, &e))
}

fn yaml_error(file: &str, text: &str, error: &serde_saphyr::Error) -> ReadError {
    let bare = error.without_snippet();
    let position = bare
        .location()
        .and_then(|l| Some((usize::try_from(l.line()).ok()?, usize::try_from(l.column()).ok()?)))
        .filter(|(line, _)| *line > 0)
        .or_else(|| locate(text, ""));
    ReadError::new(file, plain(&UserMessageFormatter.format_message(bare))).at(position)
}

/// The readers speak of their own types; people know values, lists and mappings.
pub(super) fn plain(message: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("unknown variant", "unknown value"),
        ("mapping start", "a mapping"),
        ("sequence start", "a list"),
        ("string scalar", "a string"),
        ("invalid digit found in string", "not a whole number"),
        ("number too large to fit in target type", "the number is too large"),
        ("invalid type: sequence", "invalid type: list"),
        ("invalid type: map", "invalid type: mapping"),
        ("expected a sequence", "expected a list"),
    ];
    let mut text = message.to_owned();
    for (theirs, ours) in WORDS {
        text = text.replace(theirs, ours);
    }
    for bits in ["8", "16", "32", "64"] {
        let range = format!("a whole number below 2^{bits}");
        text = text.replace(&format!("expected u{bits}"), &format!("expected {range}"));
        text = text.replace(&format!("invalid u{bits}"), &format!("expected {range}"));
    }
    text
}

/// Room for a million GPUs. What aliases may multiply keeps the reader's own limits.
fn options() -> serde_saphyr::Options {
    // YAML 1.2 booleans: a node may be named `n` or `on`.
    let mut options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    if let Some(budget) = &mut options.budget {
        budget.max_nodes = 40_000_000;
        budget.max_events = 100_000_000;
    }
    options
}

/// The root is `.` and unknown steps are `?` in the paths of `serde_path_to_error`.
fn clean(path: &str) -> String {
    let path = path.trim_start_matches('.');
    let known = path.find('?').map_or(path, |at| path.get(..at).unwrap_or_default());
    known.trim_end_matches('.').to_owned()
}
