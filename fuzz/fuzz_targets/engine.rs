//! The engine on small fleets under any sequence of events.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slicewise_fuzz::engine::{Script, run};

fuzz_target!(|script: Script| run(&script));
