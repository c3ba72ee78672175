//! What `nvidia-smi -q -x` prints.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slicewise_formats::Kind;

fuzz_target!(|text: &str| slicewise_fuzz::import(&[Kind::SmiXml], text));
