//! Shared GPUs: formulas, choice and refusal against the checker and the simulator.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| slicewise_fuzz::timeshare(text));
