//! Engines: one state with what runs on it.

use std::ffi::c_char;
use std::mem::size_of;
use std::sync::atomic::{AtomicU64, Ordering};

use slicewise::{Code, CommitError, Error, Fault, formats};

use crate::handle::{Handle, caught};
use crate::sized;
use crate::status::{Failure, Status};
use crate::text::borrowed;
use crate::types::{Info, Placement};

/// A fleet with what runs on it. One thread at a time; different engines are independent.
#[derive(Debug)]
pub struct Engine(pub(crate) Handle<Option<Loaded>>);

/// What an engine holds once a state was loaded.
#[derive(Debug)]
pub struct Loaded {
    /// The engine.
    pub engine: slicewise::Engine,
    /// No other load of any engine has this number.
    pub epoch: u64,
    /// The placement whose texts were lent last.
    lent: slicewise::Placement,
}

/// What the engine holds.
///
/// # Errors
/// Nothing was loaded yet.
pub fn loaded(slot: &mut Option<Loaded>) -> Result<&mut Loaded, Failure> {
    slot.as_mut().ok_or_else(|| Failure::new(Code::EmptyHandle, "no state was loaded into the engine"))
}

/// Runs a call on the engine.
///
/// # Safety
/// `engine` is null or a handle that is not freed.
pub unsafe fn call(engine: *mut Engine, body: impl FnOnce(&mut Option<Loaded>) -> Result<(), Failure>) -> Status {
    // SAFETY: as the caller promises; handles are reached through shared references only.
    match unsafe { engine.as_ref() } {
        Some(engine) => engine.0.call(body),
        None => Status::of(Code::NullPointer),
    }
}

/// Writes a number to the caller who wants it.
///
/// # Safety
/// `out` is null or writable.
pub unsafe fn tell<T>(value: T, out: *mut T) {
    if !out.is_null() {
        // SAFETY: as the caller promises.
        unsafe { out.write(value) };
    }
}

/// An engine without a state. Null only if memory ran out.
#[unsafe(no_mangle)]
pub extern "C" fn slicewise_engine_new() -> *mut Engine {
    caught(|| Box::into_raw(Box::new(Engine(Handle::new(None))))).unwrap_or(std::ptr::null_mut())
}

/// Frees an engine; no call on it may be running. Null is nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_free(engine: *mut Engine) {
    if !engine.is_null() {
        // SAFETY: it is from `slicewise_engine_new` and freed once.
        let _ = caught(|| drop(unsafe { Box::from_raw(engine) }));
    }
}

/// What the last call on the engine said when it failed; empty if it did not. Lent until the next call on the
/// engine. Never null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_last_error(engine: *mut Engine) -> *const c_char {
    // SAFETY: `engine` is null or a handle that is not freed.
    unsafe { engine.as_ref() }.and_then(|engine| engine.0.last_error()).unwrap_or(c"".as_ptr())
}

/// Loads a state document, JSON or YAML, in the place of what the engine held. On failure it keeps what it held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_load(engine: *mut Engine, state: *const c_char) -> Status {
    static EPOCH: AtomicU64 = AtomicU64::new(0);
    let load = |slot: &mut Option<Loaded>| {
        // SAFETY: `state` is null or ends with a NUL.
        let state = formats::read_state("state", unsafe { borrowed(state, "state") }?)?;
        let engine = slicewise::Engine::new(&state)?;
        let epoch = EPOCH.fetch_add(1, Ordering::Relaxed);
        *slot = Some(Loaded { engine, epoch, lent: slicewise::Placement::default() });
        Ok(())
    };
    // SAFETY: `engine` is null or a handle that is not freed.
    unsafe { call(engine, load) }
}

/// The engine in numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_query(engine: *mut Engine, info: *mut Info) -> Status {
    let query = |slot: &mut Option<Loaded>| {
        let ledger = loaded(slot)?.engine.ledger();
        let info_now = Info {
            struct_size: size_of::<Info>(),
            version: ledger.version(),
            nodes: ledger.nodes().len() as u64,
            gpus: ledger.gpus().len() as u64,
            leases: ledger.leases().len() as u64,
        };
        // SAFETY: `info` is null or as large as it says.
        unsafe { sized::write(&info_now, info) }
    };
    // SAFETY: `engine` is null or a handle that is not freed.
    unsafe { call(engine, query) }
}

/// Placement `index`, from 0, of a lease. Its texts are lent until the next call on the engine.
/// `SLICEWISE_STATUS_UNKNOWN_LEASE` if there is no lease of that name, `SLICEWISE_STATUS_OUT_OF_RANGE` after the
/// last placement.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_placement(
    engine: *mut Engine,
    lease: *const c_char,
    index: u32,
    placement: *mut Placement,
) -> Status {
    let find = |slot: &mut Option<Loaded>| {
        let loaded = loaded(slot)?;
        // SAFETY: `lease` is null or ends with a NUL.
        let name = unsafe { borrowed(lease, "lease") }?;
        let ledger = loaded.engine.ledger();
        let unknown = || Error::Commit(CommitError::UnknownLease(name.into()));
        let parts = &ledger.lease(name).ok_or_else(unknown)?.parts;
        let part = parts.get(index as usize).ok_or_else(|| no_such_index(index, parts.len()))?;
        loaded.lent = ledger.placement(part);
        // SAFETY: `placement` is null or as large as it says.
        unsafe { sized::write(&Placement::lent(&loaded.lent), placement) }
    };
    // SAFETY: `engine` is null or a handle that is not freed.
    unsafe { call(engine, find) }
}

/// An index after the last entry of a list.
pub fn no_such_index(index: u32, length: usize) -> Failure {
    let max = (length as u64).saturating_sub(1);
    Failure::input("index", Fault::OutOfRange { value: index.into(), min: 0, max })
}

/// Ends a lease. `version`, if not null, gets the new version of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_release(
    engine: *mut Engine,
    lease: *const c_char,
    version: *mut u64,
) -> Status {
    let release = |slot: &mut Option<Loaded>| {
        // SAFETY: `lease` is null or ends with a NUL.
        let now = loaded(slot)?.engine.release(unsafe { borrowed(lease, "lease") }?)?;
        // SAFETY: `version` is null or writable.
        unsafe { tell(now, version) };
        Ok(())
    };
    // SAFETY: `engine` is null or a handle that is not freed.
    unsafe { call(engine, release) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{slicewise_decision_free, slicewise_decision_new, slicewise_engine_decide};
    use crate::sized::read;
    use crate::types::{Request, Summary};
    use std::ffi::CStr;
    use std::mem::zeroed;
    use std::ptr::{null, null_mut};

    /// Without a state, so that Miri gets through it.
    #[test]
    fn an_empty_engine_says_so() {
        let (engine, decision) = (slicewise_engine_new(), slicewise_decision_new());
        // SAFETY: handles are live until they are freed, once; structures are as large as they say and valid as zeros.
        unsafe {
            let mut info = Info { struct_size: size_of::<Info>(), ..zeroed() };
            assert_eq!(slicewise_engine_query(engine, &raw mut info), Status::of(Code::EmptyHandle));
            let said = CStr::from_ptr(slicewise_engine_last_error(engine)).to_str();
            assert_eq!(said, Ok("no state was loaded into the engine"));
            assert_eq!(slicewise_engine_load(engine, null()), Status::of(Code::NullPointer));
            assert_eq!(slicewise_engine_load(null_mut(), null()), Status::of(Code::NullPointer));
            let request = Request { struct_size: size_of::<Request>(), ..zeroed() };
            let mut summary = Summary { struct_size: size_of::<Summary>(), ..zeroed() };
            let status = slicewise_engine_decide(engine, &raw const request, decision, &raw mut summary);
            assert_eq!(status, Status::of(Code::EmptyHandle));
            assert!(read(&raw const request).is_ok());
            slicewise_decision_free(decision);
            slicewise_engine_free(engine);
        }
    }
}
