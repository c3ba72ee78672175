//! What can be wrong with a text before the engine sees it.

use std::fmt;

use thiserror::Error;

/// A text that is not what it should be, with the place where reading stopped.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ReadError {
    file: String,
    position: Option<(usize, usize)>,
    path: String,
    message: String,
}

impl ReadError {
    /// An error in `file` with no place yet.
    pub fn new(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self { file: file.into(), position: None, path: String::new(), message: message.into() }
    }
    /// The same error at a 1-based line and column.
    #[must_use]
    pub fn at(mut self, position: Option<(usize, usize)>) -> Self {
        self.position = position;
        self
    }
    /// The same error in the field at `path`.
    #[must_use]
    pub fn in_field(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }
    /// Name of the file, as the caller gave it.
    pub fn file(&self) -> &str {
        &self.file
    }
    /// Line, from 1, where known.
    pub fn line(&self) -> Option<usize> {
        self.position.map(|(line, _)| line)
    }
    /// Column in characters, from 1, where known.
    pub fn column(&self) -> Option<usize> {
        self.position.map(|(_, column)| column)
    }
    /// Path of the field, for example `nodes[0].gpus[1].model`; empty for the whole text.
    pub fn path(&self) -> &str {
        &self.path
    }
    /// What is wrong, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.message)
    }
}
