//! Calls of the C library in any order, with null pointers, short buffers, odd sizes, and decisions that are stale
//! or of another engine. No call may panic, write past a buffer, or leave a state that cannot be loaded.

use std::ffi::{CStr, CString, c_char};
use std::mem::{size_of, zeroed};
use std::ptr::{null, null_mut};

use arbitrary::Arbitrary;
use slicewise_c::*;

const STATES: [&CStr; 4] = [
    c"gpus: [{model: a100-80gb, count: 2, mig: true}]",
    c"nodes: [{name: n, cpu_milli: 4000, gpus: [{model: a100-80gb}, {model: a100-80gb, mode: mps}]}]",
    c"nodes: [{name: n, gpus: [{model: l40s, mode: vgpu}, {model: a100-80gb, mode: mig}]}]",
    c"nodes: [{name: \xff}]",
];
const NAMES: [&CStr; 4] = [c"a", c"b", c"", c"\xc3"];
const PROFILES: [&CStr; 6] = [c"1g.10gb", c"3g.40gb", c"7g.80gb", c"L40S-12Q", c"9g.1gb", c"\xff"];
const REQUESTS: [&CStr; 4] =
    [c"{name: a, profile: 2g.20gb}", c"profile,count\n1g.10gb,3\n", c"[{name: a, any_of: [{gpus: {count: 2}}]}]", c"{"];
const FORBIDDEN: [i32; 3] = [603, 604, 606];

/// Picks one of a list, or null where the byte is past its end.
fn pick(list: &[&CStr], at: u8) -> *const c_char {
    list.get(usize::from(at) % (list.len() + 1)).map_or(null(), |text| text.as_ptr())
}

/// A request in bytes of the fuzzer.
#[derive(Arbitrary, Debug)]
pub struct Asked {
    texts: [u8; 4],
    size: Option<u16>,
    ask: u8,
    count: u8,
    amounts: [u16; 5],
    cpu_milli: u16,
    flags: u8,
}

impl Asked {
    fn request(&self) -> Request {
        let [name, tenant, node, profile] = self.texts;
        let [milli, gpu_memory_mib, gpus, threads_percent, contexts] = self.amounts.map(u32::from);
        Request {
            // Larger ones would be a promise of memory that is not there.
            struct_size: self.size.map_or(size_of::<Request>(), |size| usize::from(size) % size_of::<Request>()),
            name: pick(&NAMES, name),
            tenant: pick(&NAMES, tenant),
            node: pick(&[c"n", c"node-0"], node),
            profile: pick(&PROFILES, profile),
            cpu_milli: self.cpu_milli.into(),
            memory_mib: 0,
            ask: u32::from(self.ask % 5),
            count: u32::from(self.count % 5),
            milli,
            gpu_memory_mib,
            gpus: gpus % 4,
            threads_percent,
            contexts,
            flags: u32::from(self.flags % 32),
        }
    }
}

/// One call; bytes pick handles and texts.
#[derive(Arbitrary, Debug)]
pub enum Call {
    /// Loads a state.
    Load(u8, u8),
    /// Asks for numbers.
    Query(u8, Option<u16>),
    /// Decides.
    Decide(u8, u8, Asked, bool),
    /// Commits.
    Commit(u8, u8),
    /// Undoes.
    Undo(u8, u8),
    /// Releases.
    Release(u8, u8),
    /// Looks at a placement of a decision.
    Look(u8, u8),
    /// Looks at a placement of a lease.
    LookAt(u8, u8, u8),
    /// Asks for a reason, with a buffer of this capacity.
    Reason(u8, u8, u8),
    /// Decides by JSON, and commits what came out.
    DecideJson(u8, u8),
    /// Explains by JSON.
    ExplainJson(u8, u8),
    /// Saves, and loads what was saved.
    Snapshot(u8),
}

struct Handles {
    engines: [*mut Engine; 2],
    decisions: [*mut Decision; 2],
}

impl Handles {
    fn engine(&self, at: u8) -> *mut Engine {
        self.engines.get(usize::from(at % 3)).copied().unwrap_or(null_mut())
    }
    fn decision(&self, at: u8) -> *mut Decision {
        self.decisions.get(usize::from(at % 3)).copied().unwrap_or(null_mut())
    }
}

/// Makes the calls.
pub fn run(calls: &[Call]) {
    let handles = Handles {
        engines: std::array::from_fn(|_| slicewise_engine_new()),
        decisions: std::array::from_fn(|_| slicewise_decision_new()),
    };
    for call in calls.iter().take(24) {
        // SAFETY: handles are null or live, texts are null or end with a NUL, structures are as large as they say.
        let status = unsafe { make(&handles, call) };
        assert!(!FORBIDDEN.contains(&status.0), "{status:?} from {call:?}");
    }
    // SAFETY: each is freed once.
    unsafe {
        handles.engines.iter().for_each(|engine| slicewise_engine_free(*engine));
        handles.decisions.iter().for_each(|decision| slicewise_decision_free(*decision));
    }
}

unsafe fn make(handles: &Handles, call: &Call) -> Status {
    match call {
        Call::Load(e, state) => unsafe { slicewise_engine_load(handles.engine(*e), pick(&STATES, *state)) },
        Call::Query(e, size) => {
            let struct_size = size.map_or(size_of::<Info>(), |size| usize::from(size) % size_of::<Info>());
            let mut info = Info { struct_size, ..unsafe { zeroed() } };
            unsafe { slicewise_engine_query(handles.engine(*e), &raw mut info) }
        }
        Call::Decide(e, d, asked, with_summary) => {
            let mut summary = Summary { struct_size: size_of::<Summary>(), ..unsafe { zeroed() } };
            let out = if *with_summary { &raw mut summary } else { null_mut() };
            let request = asked.request();
            unsafe { slicewise_engine_decide(handles.engine(*e), &raw const request, handles.decision(*d), out) }
        }
        Call::Commit(e, d) => unsafe { slicewise_engine_commit(handles.engine(*e), handles.decision(*d), null_mut()) },
        Call::Undo(e, d) => unsafe { slicewise_engine_undo(handles.engine(*e), handles.decision(*d), null_mut()) },
        Call::Release(e, name) => unsafe {
            slicewise_engine_release(handles.engine(*e), pick(&NAMES, *name), null_mut())
        },
        Call::Look(d, index) => {
            let mut placement = Placement { struct_size: size_of::<Placement>(), ..unsafe { zeroed() } };
            unsafe { slicewise_decision_placement(handles.decision(*d), u32::from(*index % 4), &raw mut placement) }
        }
        Call::LookAt(e, name, index) => {
            let mut placement = Placement { struct_size: size_of::<Placement>(), ..unsafe { zeroed() } };
            let (engine, lease) = (handles.engine(*e), pick(&NAMES, *name));
            unsafe { slicewise_engine_placement(engine, lease, u32::from(*index % 4), &raw mut placement) }
        }
        Call::Reason(d, index, capacity) => unsafe { reason(handles.decision(*d), *index, usize::from(*capacity)) },
        Call::DecideJson(e, requests) => unsafe { decide_json(handles.engine(*e), pick(&REQUESTS, *requests)) },
        Call::ExplainJson(e, requests) => {
            let mut out = null_mut();
            let requests = pick(&REQUESTS, *requests);
            let status = unsafe { slicewise_engine_explain_json(handles.engine(*e), requests, &raw mut out) };
            unsafe { slicewise_string_free(out) };
            status
        }
        Call::Snapshot(e) => unsafe { round_trip(handles.engine(*e)) },
    }
}

unsafe fn reason(decision: *mut Decision, index: u8, capacity: usize) -> Status {
    let mut buffer = vec![0x55_u8; capacity + 1];
    let (mut length, to) = (0, buffer.as_mut_ptr().cast());
    let status = unsafe { slicewise_decision_reason(decision, u32::from(index % 4), to, capacity, &raw mut length) };
    assert_eq!(buffer.get(capacity), Some(&0x55), "written past the buffer");
    if status == Status::OK {
        assert!(length < capacity && buffer.iter().position(|byte| *byte == 0) == Some(length));
    }
    status
}

unsafe fn decide_json(engine: *mut Engine, requests: *const c_char) -> Status {
    let mut out = null_mut();
    let status = unsafe { slicewise_engine_decide_json(engine, requests, &raw mut out) };
    assert_eq!(status == Status::OK, !out.is_null());
    if out.is_null() {
        return status;
    }
    let status = unsafe { slicewise_engine_commit_json(engine, requests, out, null_mut()) };
    unsafe { slicewise_string_free(out) };
    status
}

/// What is saved loads again, to the same bytes.
unsafe fn round_trip(engine: *mut Engine) -> Status {
    let (mut out, mut again) = (null_mut(), null_mut());
    let status = unsafe { slicewise_engine_snapshot(engine, &raw mut out) };
    if status != Status::OK {
        return status;
    }
    let text: CString = unsafe { CStr::from_ptr(out) }.to_owned();
    let loaded = unsafe { slicewise_engine_load(engine, out) };
    assert_eq!(loaded, Status::OK, "a saved state does not load");
    unsafe { slicewise_string_free(out) };
    let status = unsafe { slicewise_engine_snapshot(engine, &raw mut again) };
    assert_eq!(unsafe { CStr::from_ptr(again) }, text.as_c_str());
    unsafe { slicewise_string_free(again) };
    status
}
