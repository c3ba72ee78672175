//! Fleet documents in JSON and YAML, loaded into the engine and written again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| slicewise_fuzz::document(text));
