//! The C library under any sequence of calls.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slicewise_fuzz::abi::{Call, run};

fuzz_target!(|calls: Vec<Call>| run(&calls));
