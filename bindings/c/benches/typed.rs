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
const ROUNDS: usize = 41;
const CALLS: usize = 20_000;

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

fn main() {
    let rust = filled();
    let state = CString::new(formats::write_state(&rust.snapshot())).expect("a text");
    let engine = slicewise_c::slicewise_engine_new();
    let decision = slicewise_c::slicewise_decision_new();
    // SAFETY: `engine` is a handle and `state` ends with a NUL.
    assert_eq!(unsafe { slicewise_c::slicewise_engine_load(engine, state.as_ptr()) }, Status::OK);
    let workloads = PROFILES.map(|profile| workload("request-0001".into(), profile));
    let name = c"request-0001";
    let profiles = PROFILES.map(|profile| CString::new(profile).expect("a text"));
    let requests = profiles.each_ref().map(|profile| {
        // SAFETY: a request may be all zeros.
        let zero: Request = unsafe { zeroed() };
        Request { struct_size: size_of::<Request>(), name: name.as_ptr(), profile: profile.as_ptr(), ..zero }
    });
    // SAFETY: a summary may be all zeros.
    let mut summary = Summary { struct_size: size_of::<Summary>(), ..unsafe { zeroed() } };
    let (mut in_rust, mut in_c) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        in_rust.push(timed(|i| {
            let asked = workloads.get(i % PROFILES.len()).expect("in range");
            black_box(rust.decide(black_box(asked)).is_ok());
        }));
        in_c.push(timed(|i| {
            let asked = requests.get(i % PROFILES.len()).expect("in range");
            // SAFETY: all are live, and the texts of the request end with a NUL.
            black_box(unsafe {
                slicewise_c::slicewise_engine_decide(engine, black_box(asked), decision, &raw mut summary)
            });
        }));
    }
    let (rust, c) = (median(in_rust), median(in_c));
    println!(
        "typed decide, median of {ROUNDS} rounds of {CALLS}: Rust {rust} ns, C {c} ns, difference {} ns",
        c.abs_diff(rust)
    );
    // SAFETY: both are handles and freed once.
    unsafe {
        slicewise_c::slicewise_decision_free(decision);
        slicewise_c::slicewise_engine_free(engine);
    }
}
