//! Errors as people see them: the file, the line, the field, and what to do.

use std::io;
use std::process::ExitCode;

use miette::{GraphicalReportHandler, LabeledSpan, MietteDiagnostic, NamedSource, Report};
use slicewise::formats::{ImportError, ReadError, locate};
use slicewise::{CommitError, Error, InputError, PlanError};

use crate::io::Text;

/// Why a command ended early.
pub struct Failure {
    code: u8,
    report: Box<Report>,
}

/// Exit codes that are not verdicts.
pub const BAD_INPUT: u8 = 3;
pub const UNVERIFIED: u8 = 7;
pub const IO: u8 = 8;

impl Failure {
    /// A failure with a plain message.
    pub fn plain(code: u8, message: impl Into<String>) -> Self {
        Self { code, report: Box::new(Report::new(MietteDiagnostic::new(message))) }
    }

    /// A file that cannot be read or written.
    pub fn io(what: &str, error: &io::Error) -> Self {
        Self::plain(IO, format!("{what}: {error}"))
    }

    /// Prints it, and gives the exit code. A reader that went away is no failure.
    pub fn report(&self) -> ExitCode {
        let mut text = String::new();
        let handler = GraphicalReportHandler::new_themed(if io::IsTerminal::is_terminal(&io::stderr()) {
            miette::GraphicalTheme::unicode()
        } else {
            miette::GraphicalTheme::unicode_nocolor()
        });
        if handler.render_report(&mut text, self.report.as_ref().as_ref()).is_err() {
            text = self.report.to_string();
        }
        crate::io::warn(&text);
        ExitCode::from(self.code)
    }

    /// A fault in a document, shown where it is.
    pub fn in_text(text: &Text, path: &str, code: &str, message: String) -> Self {
        Self::at(text, locate(&text.content, path), code, format!("{path}: {message}"))
    }

    fn at(text: &Text, position: Option<(usize, usize)>, code: &str, message: String) -> Self {
        let mut diagnostic = MietteDiagnostic::new(message).with_code(code);
        if let Some(offset) = position.and_then(|p| offset(&text.content, p)) {
            diagnostic = diagnostic.with_label(LabeledSpan::at(offset, "here"));
        }
        let source = NamedSource::new(&text.name, text.content.clone());
        Self { code: BAD_INPUT, report: Box::new(Report::new(diagnostic).with_source_code(source)) }
    }

    /// A text that could not be read as what it should be.
    pub fn read(text: &Text, error: &ReadError) -> Self {
        let position = error.line().zip(error.column());
        let message = match error.path() {
            "" => error.message().to_string(),
            path => format!("{path}: {}", error.message()),
        };
        Self::at(text, position, "unreadable", message)
    }

    /// A fault that the engine found in a document.
    pub fn input(text: &Text, error: &InputError) -> Self {
        Self::in_text(text, error.path(), error.fault().code(), error.fault().to_string())
    }

    /// A listing that could not be imported.
    pub fn import(texts: &[Text], error: &ImportError) -> Self {
        let text = error.file().and_then(|name| texts.iter().find(|t| t.name == name));
        match text {
            Some(text) => {
                let position = error.line().map(|line| (line, 1));
                Self::at(text, position, error.fault().code(), error.fault().to_string())
            }
            None => Self::plain(BAD_INPUT, error.to_string()),
        }
    }

    /// An error of the engine, about a text if it is one of input.
    pub fn engine(text: &Text, error: Error) -> Self {
        match error {
            Error::Input(e) | Error::Commit(CommitError::Input(e)) | Error::Plan(PlanError::Input(e)) => {
                Self::input(text, &e)
            }
            Error::Plan(e) => Self::plain(UNVERIFIED, e.to_string()),
            other => Self::plain(BAD_INPUT, other.to_string()),
        }
    }
}

/// Byte offset of a 1-based line and column in characters.
fn offset(text: &str, (line, column): (usize, usize)) -> Option<usize> {
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let rest = text.get(start..)?;
    let within = rest.char_indices().nth(column.checked_sub(1)?).map_or(rest.len(), |(i, _)| i);
    Some(start + within)
}
