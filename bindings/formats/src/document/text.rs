//! JSON and YAML texts into values, with one kind of error for both.

use serde::de::DeserializeOwned;
use serde_saphyr::{MessageFormatter as _, UserMessageFormatter};

use super::error::ReadError;
use super::locate::locate;

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
/// # Errors
/// A text that is not JSON or YAML, or not this type, with line, column and field.
pub fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ReadError> {
    let text = filled(file, text)?;
    match syntax(text) {
        Syntax::Json => read_json(file, text),
        Syntax::Yaml => read_yaml(file, text),
    }
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
        Syntax::Json => Ok(vec![read_json(file, text)?]),
        Syntax::Yaml => serde_saphyr::from_multiple_with_options(text, options())
            .map_err(|e| yaml_error(file, text, &e, String::new())),
    }
}

/// Writes YAML; the only failure of the writer is a type that YAML cannot hold.
pub(crate) fn yaml_text<T: serde::Serialize>(value: &T) -> String {
    serde_saphyr::to_string(value).unwrap_or_default()
}

fn read_json<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ReadError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let path = clean(&e.path().to_string());
        json_error(file, text, e.inner(), path)
    })?;
    reader.end().map_err(|e| json_error(file, text, &e, String::new()))?;
    Ok(value)
}

fn json_error(file: &str, text: &str, error: &serde_json::Error, path: String) -> ReadError {
    let full = error.to_string();
    let message = match full.rfind(" at line ") {
        Some(end) => full.get(..end).unwrap_or(&full),
        None => &full,
    };
    let reached = (error.line() > 0).then(|| (error.line(), column_in_chars(text, error.line(), error.column())));
    // A wrong value is found only once it is read; its beginning is the better place.
    let position = match error.is_data() && !path.is_empty() {
        true => locate(text, &path).or(reached),
        false => reached,
    };
    ReadError::new(file, plain(message)).at(position).in_field(path)
}

fn column_in_chars(text: &str, line: usize, bytes: usize) -> usize {
    let line = text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let before = line.char_indices().take_while(|(at, _)| *at < bytes.saturating_sub(1)).count();
    before + 1
}

fn read_yaml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ReadError> {
    let mut path = String::new();
    let result = serde_saphyr::with_deserializer_from_str_with_options(text, options(), |de| {
        serde_path_to_error::deserialize(de).map_err(|e| {
            path = clean(&e.path().to_string());
            e.into_inner()
        })
    });
    result.map_err(|e| yaml_error(file, text, &e, path))
}

fn yaml_error(file: &str, text: &str, error: &serde_saphyr::Error, path: String) -> ReadError {
    let bare = error.without_snippet();
    let position = bare
        .location()
        .and_then(|l| Some((usize::try_from(l.line()).ok()?, usize::try_from(l.column()).ok()?)))
        .filter(|(line, _)| *line > 0)
        .or_else(|| locate(text, &path));
    let message = plain(&UserMessageFormatter.format_message(bare));
    ReadError::new(file, message).at(position).in_field(path)
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
