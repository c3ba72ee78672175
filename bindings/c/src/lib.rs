//! The C library. `include/slicewise.h` is generated from this crate and is its contract;
//! `docs/c.md` explains it. Nothing is decided here: every call hands on to the facade.
//!
//! All unsafe code of the workspace is in this crate: `text` and `sized` read and write
//! through the caller's pointers, `handle` keeps handles to one thread at a time, and the
//! exported functions turn pointers into references.
//!
//! Every exported function relies on the same contract of its caller, which the head of the
//! header states: a handle is null or from its `_new` and not freed, a text is null or ends
//! with a NUL, a structure is null or as large as it says, an output is null or writable.
#![expect(unsafe_code, reason = "pointers come from C")]
#![expect(clippy::missing_safety_doc, reason = "one contract for all calls, stated above and in the header")]

mod calls;
mod decision;
mod engine;
mod handle;
mod request;
mod sized;
mod status;
mod text;
mod types;

pub use calls::{
    slicewise_engine_adopt_json, slicewise_engine_commit_json, slicewise_engine_decide_json,
    slicewise_engine_explain_json, slicewise_engine_plan_json, slicewise_engine_snapshot,
};
pub use decision::{
    Decision, slicewise_decision_free, slicewise_decision_new, slicewise_decision_placement, slicewise_decision_reason,
    slicewise_engine_commit, slicewise_engine_decide, slicewise_engine_undo,
};
pub use engine::{
    Engine, slicewise_engine_free, slicewise_engine_last_error, slicewise_engine_load, slicewise_engine_new,
    slicewise_engine_placement, slicewise_engine_query, slicewise_engine_release,
};
pub use status::{Status, slicewise_status_name, slicewise_status_text};
pub use text::{Text, slicewise_string_free};
pub use types::{AskKind, Flags, Info, NONE, Objective, PartKind, Placement, Request, Summary, Verdict};

/// The version of this interface. It grows when a call or a structure changes its meaning or goes;
/// new calls and new fields at the end of a structure leave it as it is.
pub const ABI_VERSION: u32 = 1;

/// The version of the interface that the library has; compare it with `SLICEWISE_ABI_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn slicewise_abi_version() -> u32 {
    ABI_VERSION
}

/// The version of the library, `MAJOR.MINOR.PATCH`. Static.
#[unsafe(no_mangle)]
pub extern "C" fn slicewise_version() -> Text {
    Text::lent(env!("CARGO_PKG_VERSION"))
}
