//! Tables of the Alibaba traces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slicewise_formats::Kind;

fuzz_target!(|text: &str| slicewise_fuzz::import(&[Kind::Openb], text));
