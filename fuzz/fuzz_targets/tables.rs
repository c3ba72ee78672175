//! Tables of measured points and of scenarios for serving.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| slicewise_fuzz::tables(text));
