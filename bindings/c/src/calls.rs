//! Calls that take and give documents. What they give is, byte for byte, what the command
//! prints with `--json` for the same input.

use std::ffi::c_char;

use serde::Serialize;
use slicewise::{Code, Decision, Explanations, Fault, Plan, PlanAnswer, Workload, formats};

use crate::engine::{Engine, Loaded, call, loaded, tell};
use crate::status::{Failure, Status};
use crate::text::{borrowed, give};
use crate::types::Objective;

/// Runs a call that gives a text.
///
/// # Safety
/// `engine` is null or a handle that is not freed, `out` is null or writable.
unsafe fn call_for_text(
    engine: *mut Engine,
    out: *mut *mut c_char,
    body: impl FnOnce(&mut Loaded) -> Result<String, Failure>,
) -> Status {
    let answer = |slot: &mut Option<Loaded>| {
        if out.is_null() {
            return Err(Failure::new(Code::NullPointer, "`out` is null"));
        }
        let text = body(loaded(slot)?)?;
        // SAFETY: `out` is writable and was seen not to be null.
        unsafe { give(text, out) };
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { call(engine, answer) }
}

/// Indented, with a line break at the end.
fn json(value: &impl Serialize) -> Result<String, Failure> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => Ok(text + "\n"),
        Err(e) => Err(Failure::new(Code::Unreadable, e.to_string())),
    }
}

/// # Safety
/// `text` is null or ends with a NUL.
unsafe fn read_requests(text: *const c_char) -> Result<Vec<Workload>, Failure> {
    // SAFETY: as the caller promises.
    Ok(formats::read_requests("requests", unsafe { borrowed(text, "requests") }?)?)
}

/// The state as a JSON document; loading it gives the same state. `*out` is freed with `slicewise_string_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_snapshot(engine: *mut Engine, out: *mut *mut c_char) -> Status {
    let snapshot = |loaded: &mut Loaded| Ok(formats::write_state(&loaded.engine.snapshot()));
    // SAFETY: `engine` is null or a handle that is not freed, `out` is null or writable.
    unsafe { call_for_text(engine, out, snapshot) }
}

/// Decides requests (JSON, YAML or CSV), each on the state that the ones before it leave, and says what would help;
/// the state of the engine stays as it is. As `slicewise decide --json`. `*out` is freed with `slicewise_string_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_decide_json(
    engine: *mut Engine,
    requests: *const c_char,
    out: *mut *mut c_char,
) -> Status {
    // SAFETY: `requests` is null or ends with a NUL.
    let decide = |loaded: &mut Loaded| json(&loaded.engine.answer(&unsafe { read_requests(requests) }?)?);
    // SAFETY: `engine` is null or a handle that is not freed, `out` is null or writable.
    unsafe { call_for_text(engine, out, decide) }
}

/// Says what keeps each request out and what would help. As `slicewise explain --json`. `*out` is freed with
/// `slicewise_string_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_explain_json(
    engine: *mut Engine,
    requests: *const c_char,
    out: *mut *mut c_char,
) -> Status {
    let explain = |loaded: &mut Loaded| {
        // SAFETY: `requests` is null or ends with a NUL.
        let requests = unsafe { read_requests(requests) }?;
        let all: Vec<_> = requests.iter().map(|request| loaded.engine.explain(request)).collect::<Result<_, _>>()?;
        json(&Explanations::from(all))
    };
    // SAFETY: `engine` is null or a handle that is not freed, `out` is null or writable.
    unsafe { call_for_text(engine, out, explain) }
}

/// Plans a batch of requests at once, for a `slicewise_objective`. As `slicewise plan --json`. `*out` is freed with
/// `slicewise_string_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_plan_json(
    engine: *mut Engine,
    requests: *const c_char,
    objective: u32,
    out: *mut *mut c_char,
) -> Status {
    let plan = |loaded: &mut Loaded| {
        // SAFETY: `requests` is null or ends with a NUL.
        let requests = unsafe { read_requests(requests) }?;
        let objective = match objective {
            0 => slicewise::Objective::MostValue,
            1 => slicewise::Objective::FewestGpus,
            other => {
                let fault = Fault::OutOfRange { value: other.into(), min: 0, max: Objective::FewestGpus as u64 };
                return Err(Failure::input("objective", fault));
            }
        };
        json(&PlanAnswer::from(&loaded.engine.plan(&requests, objective)?))
    };
    // SAFETY: `engine` is null or a handle that is not freed, `out` is null or writable.
    unsafe { call_for_text(engine, out, plan) }
}

/// Takes the leases of a plan, as `slicewise_engine_plan_json` gave it, all or none. `version`, if not null, gets the
/// new version of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_adopt_json(
    engine: *mut Engine,
    plan: *const c_char,
    version: *mut u64,
) -> Status {
    let adopt = |slot: &mut Option<Loaded>| {
        let loaded = loaded(slot)?;
        // SAFETY: `plan` is null or ends with a NUL.
        let plan: Plan = formats::read("plan", unsafe { borrowed(plan, "plan") }?)?;
        let now = loaded.engine.adopt(&plan)?;
        // SAFETY: `version` is null or writable.
        unsafe { tell(now, version) };
        Ok(())
    };
    // SAFETY: `engine` is null or a handle that is not freed.
    unsafe { call(engine, adopt) }
}

/// Makes an admitting decision true, given the request and the decision as `slicewise_engine_decide_json` gave it for
/// that request alone. `SLICEWISE_STATUS_CONFLICT`, and nothing changed, if what it relied on has changed since.
/// `version`, if not null, gets the new version of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_engine_commit_json(
    engine: *mut Engine,
    request: *const c_char,
    decision: *const c_char,
    version: *mut u64,
) -> Status {
    let commit = |slot: &mut Option<Loaded>| {
        let loaded = loaded(slot)?;
        // SAFETY: `request` is null or ends with a NUL.
        let requests = unsafe { read_requests(request) }?;
        let [request] = requests.as_slice() else {
            return Err(Failure::input("", Fault::Invalid("one request is committed at a time".into())));
        };
        // SAFETY: `decision` is null or ends with a NUL.
        let decision: Decision = formats::read("decision", unsafe { borrowed(decision, "decision") }?)?;
        let change = loaded.engine.commit(request, &decision)?;
        // SAFETY: `version` is null or writable.
        unsafe { tell(change.version, version) };
        Ok(())
    };
    // SAFETY: `engine` is null or a handle that is not freed.
    unsafe { call(engine, commit) }
}
