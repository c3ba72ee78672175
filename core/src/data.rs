//! Tables that are compiled in: rows, with the sources that they cite.

use alloc::collections::BTreeMap;
use alloc::string::String;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::{Fault, InputError};

/// A table of `core/data`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table<T> {
    #[serde(rename = "schema")]
    _schema: String,
    #[serde(rename = "kind")]
    _kind: String,
    /// What the keys of the rows' sources stand for.
    pub(crate) sources: BTreeMap<String, String>,
    /// The rows, under the name that each table has for them.
    #[serde(
        alias = "models",
        alias = "boards",
        alias = "mechanisms",
        alias = "parameters",
        alias = "rules",
        alias = "figures"
    )]
    pub(crate) rows: T,
}

/// Reads a table; `path` is what an error calls it.
pub(crate) fn table<T: DeserializeOwned>(path: &str, text: &str) -> Result<Table<T>, InputError> {
    serde_json::from_str(text).map_err(|e| InputError::new(path, Fault::Invalid(alloc::format!("{e}"))))
}
