//! Typed decisions: decide, look, commit, undo, without JSON.

use std::ffi::c_char;

use slicewise::{Code, Committed, Workload};

use crate::engine::{Engine, Loaded, loaded, no_such_index, tell};
use crate::handle::{Handle, caught};
use crate::sized;
use crate::status::{Failure, Status};
use crate::types::{Placement, Request, Summary};

/// A request with the decision on it. Made once and used for any number of decisions, one after the other; as many
/// as there are may wait to be committed. One thread at a time.
#[derive(Debug)]
pub struct Decision(Handle<Held>);

#[derive(Debug, Default)]
struct Held {
    workload: Workload,
    made: Option<Made>,
}

#[derive(Debug)]
struct Made {
    decision: slicewise::Decision,
    /// Of the engine that made it; see [`Loaded`].
    epoch: u64,
    change: Option<Committed>,
}

impl Held {
    fn made(&mut self) -> Result<&mut Made, Failure> {
        self.made.as_mut().ok_or_else(|| Failure::new(Code::EmptyHandle, "no decision was made in this handle"))
    }
}

impl Made {
    fn check_is_of(&self, loaded: &Loaded) -> Result<(), Failure> {
        if self.epoch == loaded.epoch { Ok(()) } else { Err(Code::ForeignHandle.into()) }
    }
}

/// Runs a call on an engine and a decision.
///
/// # Safety
/// Each is null or a handle that is not freed.
unsafe fn call_with(
    engine: *mut Engine,
    decision: *mut Decision,
    body: impl FnOnce(&mut Loaded, &mut Held) -> Result<(), Failure>,
) -> Status {
    // SAFETY: as the caller promises; handles are reached through shared references only.
    match unsafe { (engine.as_ref(), decision.as_ref()) } {
        (Some(engine), Some(decision)) => engine.0.call_with(&decision.0, |slot, held| body(loaded(slot)?, held)),
        _ => Status::of(Code::NullPointer),
    }
}

/// Runs a call on a decision.
///
/// # Safety
/// `decision` is null or a handle that is not freed.
unsafe fn call(decision: *mut Decision, body: impl FnOnce(&mut Held) -> Result<(), Failure>) -> Status {
    // SAFETY: as the caller promises; handles are reached through shared references only.
    match unsafe { decision.as_ref() } {
        Some(decision) => decision.0.call(body),
        None => Status::of(Code::NullPointer),
    }
}

/// A handle for decisions. Null only if memory ran out.
#[unsafe(no_mangle)]
pub extern "C" fn slicewise_decision_new() -> *mut Decision {
    caught(|| Box::into_raw(Box::new(Decision(Handle::new(Held::default()))))).unwrap_or(std::ptr::null_mut())
}

/// Frees a decision; no call on it may be running. Null is nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_decision_free(decision: *mut Decision) {
    if !decision.is_null() {
        // SAFETY: it is from `slicewise_decision_new` and freed once.
        let _ = caught(|| drop(unsafe { Box::from_raw(decision) }));
    }
}

/// Decides a request; the state stays as it is. `decision` gets the decision in the place of the one that it held;
/// `summary`, if not null, gets it in short. A placement has passed the checker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_decide(
    engine: *mut Engine,
    request: *const Request,
    decision: *mut Decision,
    summary: *mut Summary,
) -> Status {
    let decide = |loaded: &mut Loaded, held: &mut Held| {
        held.made = None;
        // SAFETY: `request` is null or as large as it says, and its texts are null or end with a NUL.
        unsafe { sized::read(request)?.write_to(&mut held.workload) }?;
        let decision = loaded.engine.decide(&held.workload)?;
        if !summary.is_null() {
            // SAFETY: `summary` is as large as it says.
            unsafe { sized::write(&Summary::of(&decision), summary) }?;
        }
        held.made = Some(Made { decision, epoch: loaded.epoch, change: None });
        Ok(())
    };
    // SAFETY: both are null or handles that are not freed.
    unsafe { call_with(engine, decision, decide) }
}

/// Placement `index`, from 0, of an admitting decision. Its texts are lent until the decision is made anew or freed.
/// `SLICEWISE_STATUS_OUT_OF_RANGE` after the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_decision_placement(
    decision: *mut Decision,
    index: u32,
    placement: *mut Placement,
) -> Status {
    let look = |held: &mut Held| {
        let all = &held.made()?.decision.placements;
        let found = all.get(index as usize).ok_or_else(|| no_such_index(index, all.len()))?;
        // SAFETY: `placement` is null or as large as it says.
        unsafe { sized::write(&Placement::lent(found), placement) }
    };
    // SAFETY: `decision` is null or a handle that is not freed.
    unsafe { call(decision, look) }
}

/// Reason `index`, from 0, in one line for people, written to `buffer` of `capacity` bytes with a NUL. `length`, if
/// not null, gets the length without the NUL, also with `SLICEWISE_STATUS_BUFFER_TOO_SMALL`, when nothing else is
/// written; `buffer` may be null if `capacity` is 0. `SLICEWISE_STATUS_OUT_OF_RANGE` after the last reason.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_decision_reason(
    decision: *mut Decision,
    index: u32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    let say = |held: &mut Held| {
        let all = &held.made()?.decision.reasons;
        let text = all.get(index as usize).ok_or_else(|| no_such_index(index, all.len()))?.to_string();
        // SAFETY: `length` is null or writable.
        unsafe { tell(text.len(), length) };
        if capacity <= text.len() {
            return Err(Code::BufferTooSmall.into());
        }
        if buffer.is_null() {
            return Err(Failure::new(Code::NullPointer, "`buffer` is null"));
        }
        // SAFETY: `capacity` bytes of `buffer` are writable, which is more than the text has.
        unsafe {
            text.as_ptr().copy_to_nonoverlapping(buffer.cast(), text.len());
            buffer.add(text.len()).write(0);
        }
        Ok(())
    };
    // SAFETY: `decision` is null or a handle that is not freed.
    unsafe { call(decision, say) }
}

/// Makes an admitting decision true. `SLICEWISE_STATUS_CONFLICT`, and nothing changed, if what it relied on has
/// changed since: decide again. `version`, if not null, gets the new version of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_commit(
    engine: *mut Engine,
    decision: *mut Decision,
    version: *mut u64,
) -> Status {
    let commit = |loaded: &mut Loaded, held: &mut Held| {
        let made = held.made.as_mut().ok_or(Code::EmptyHandle)?;
        made.check_is_of(loaded)?;
        let change = loaded.engine.commit(&held.workload, &made.decision)?;
        // SAFETY: `version` is null or writable.
        unsafe { tell(change.version, version) };
        made.change = Some(change);
        Ok(())
    };
    // SAFETY: both are null or handles that are not freed.
    unsafe { call_with(engine, decision, commit) }
}

/// Takes back a commit whose GPUs nothing has touched since. `version`, if not null, gets the new version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_undo(
    engine: *mut Engine,
    decision: *mut Decision,
    version: *mut u64,
) -> Status {
    let undo = |loaded: &mut Loaded, held: &mut Held| {
        let made = held.made()?;
        made.check_is_of(loaded)?;
        let nothing = || Failure::new(Code::EmptyHandle, "the decision is not committed");
        let now = loaded.engine.undo(made.change.as_ref().ok_or_else(nothing)?)?;
        made.change = None;
        // SAFETY: `version` is null or writable.
        unsafe { tell(now, version) };
        Ok(())
    };
    // SAFETY: both are null or handles that are not freed.
    unsafe { call_with(engine, decision, undo) }
}
