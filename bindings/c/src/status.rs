//! Statuses: the numbers of the one table of codes, and what goes with them.

use slicewise::formats::ReadError;
use slicewise::{Code, Error, Fault, InputError};

use crate::text::Text;

/// What became of a call: `SLICEWISE_OK`, or a number of the table of codes. A request that is
/// refused is no failure: the call is then `SLICEWISE_OK` and the verdict says no.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub i32);

impl Status {
    /// Done.
    pub const OK: Self = Self(0);

    /// The number of a code.
    pub fn of(code: Code) -> Self {
        Self(code.number().into())
    }
}

impl From<Result<(), Failure>> for Status {
    fn from(result: Result<(), Failure>) -> Self {
        result.map_or_else(|failure| failure.status, |()| Self::OK)
    }
}

/// Why a call failed: its status, and a sentence for people.
#[derive(Debug)]
pub struct Failure {
    /// The status.
    pub status: Status,
    /// The sentence.
    pub text: String,
}

impl Failure {
    /// A failure of this interface.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { status: Status::of(code), text: text.into() }
    }

    /// An argument with a value that it cannot have.
    pub fn input(path: &str, fault: Fault) -> Self {
        InputError::new(path, fault).into()
    }
}

impl From<Code> for Failure {
    fn from(code: Code) -> Self {
        Self::new(code, code.description())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { status: Status(error.number().into()), text: error.to_string() }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Error::Input(error).into()
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::new(Code::Unreadable, error.to_string())
    }
}

/// Name and meaning of a status.
fn entry(status: Status) -> Option<(&'static str, &'static str)> {
    if status == Status::OK {
        return Some(("ok", "The call did what it says."));
    }
    let code = Code::ALL.iter().find(|code| Status::of(**code) == status).map(|code| (code.name(), code.description()));
    let fault = || Fault::TABLE.iter().find(|(number, ..)| i32::from(*number) == status.0);
    code.or_else(|| fault().map(|(_, name, meaning)| (*name, *meaning)))
}

/// The stable name of a status, `insufficient_slices`; empty if there is none of that number. Static.
#[unsafe(no_mangle)]
pub extern "C" fn slicewise_status_name(status: Status) -> Text {
    Text::lent(entry(status).map_or("", |(name, _)| name))
}

/// What a status means, in one sentence; empty if there is none of that number. Static.
#[unsafe(no_mangle)]
pub extern "C" fn slicewise_status_text(status: Status) -> Text {
    Text::lent(entry(status).map_or("", |(_, meaning)| meaning))
}
