//! Requests in JSON, YAML and CSV, decided on a small fleet and explained.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| slicewise_fuzz::requests(text));
