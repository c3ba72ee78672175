//! What a typed decision costs through C beside the same through Rust: the two in turn, in one run.
#![expect(unsafe_code, reason = "calls as C makes them")]
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::expect_used, reason = "without an engine there is nothing to measure")]

use std::ffi::CString;
use std::hint::black_box;
use std::mem::{size_of, zeroed};
use std::time::Instant;

use slicewise::{Engine, Workload, formats};
use slicewise_c::{Request, Status, Summary};

const PROFILES: [&str; 5] = ["1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"];
const FLEET: &str = "gpus: [{model: a100-80gb, count: 1000, mig: true}]";
const PAIRS: usize = 20;
const ROUNDS: usize = 9;
const CALLS: usize = 5_000;

fn workload(name: String, profile: &str) -> Workload {
    Workload { name, count: 1, profile: Some(profile.into()), ..Workload::default() }
}

/// A thousand GPUs, most of them in use.
fn filled() -> Engine {
    let mut engine = Engine::new(&formats::read_state("fleet", FLEET).expect("a state")).expect("an engine");
    for (i, profile) in PROFILES.iter().cycle().take(1_500).enumerate() {
        let asked = workload(format!("lease-{i}"), profile);
        let decision = engine.decide(&asked).expect("a decision");
        let _ = engine.commit(&asked, &decision);
    }
    engine
}

/// Nanoseconds a call.
fn timed(mut call: impl FnMut(usize)) -> u128 {
    let start = Instant::now();
    (0..CALLS).for_each(&mut call);
    start.elapsed().as_nanos() / CALLS as u128
}

fn median(mut list: Vec<u128>) -> u128 {
    list.sort_unstable();
    list.get(list.len() / 2).copied().unwrap_or_default()
}

/// An engine behind the C interface, with a decision to fill.
struct InC {
    engine: *mut slicewise_c::Engine,
    decision: *mut slicewise_c::Decision,
}

impl InC {
    fn load(text: &str) -> Self {
        let made =
            Self { engine: slicewise_c::slicewise_engine_new(), decision: slicewise_c::slicewise_decision_new() };
        let text = CString::new(text).expect("a text");
        // SAFETY: `engine` is a handle and the text ends with a NUL.
        assert_eq!(unsafe { slicewise_c::slicewise_engine_load(made.engine, text.as_ptr()) }, Status::OK);
        made
    }

    fn decide(&self, request: &Request) -> Status {
        // SAFETY: a summary may be all zeros.
        let mut summary = Summary { struct_size: size_of::<Summary>(), ..unsafe { zeroed() } };
        // SAFETY: both are handles, the structures are as large as they say, and the texts end with a NUL.
        unsafe { slicewise_c::slicewise_engine_decide(self.engine, request, self.decision, &raw mut summary) }
    }
}

impl Drop for InC {
    fn drop(&mut self) {
        // SAFETY: both are handles and freed once.
        unsafe {
            slicewise_c::slicewise_decision_free(self.decision);
            slicewise_c::slicewise_engine_free(self.engine);
        }
    }
}

fn load(text: &str) -> Engine {
    Engine::new(&formats::read_state("fleet", text).expect("a state")).expect("an engine")
}

/// One engine measures differently from the next: many are measured, and each kind is
/// loaded first in turn.
fn main() {
    let text = formats::write_state(&filled().snapshot());
    let workloads = PROFILES.map(|profile| workload("request-0001".into(), profile));
    let profiles = PROFILES.map(|profile| CString::new(profile).expect("a text"));
    let requests = profiles.each_ref().map(|profile| {
        // SAFETY: a request may be all zeros.
        let zero: Request = unsafe { zeroed() };
        let name = c"request-0001".as_ptr();
        Request { struct_size: size_of::<Request>(), name, profile: profile.as_ptr(), ..zero }
    });
    let (mut in_rust, mut in_c) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let early = (pair % 2 == 0).then(|| load(&text));
        let c = InC::load(&text);
        let rust = early.unwrap_or_else(|| load(&text));
        for _ in 0..ROUNDS {
            let asked = |i: usize| workloads.get(i % PROFILES.len()).expect("in range");
            in_rust.push(timed(|i| drop(black_box(rust.decide(black_box(asked(i)))))));
            let asked = |i: usize| requests.get(i % PROFILES.len()).expect("in range");
            in_c.push(timed(|i| assert_eq!(c.decide(black_box(asked(i))), Status::OK)));
        }
    }
    let (rust, c) = (median(in_rust), median(in_c));
    println!(
        "typed decide, median of {PAIRS} engines each: Rust {rust} ns, C {c} ns, difference {} ns",
        c.abs_diff(rust)
    );
}
