//! The text listings of `nvidia-smi`: devices, profiles, placements, instances, links.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slicewise_formats::Kind;

fuzz_target!(|text: &str| slicewise_fuzz::import(
    &[Kind::SmiL, Kind::MigLgip, Kind::MigLgipp, Kind::MigLgi, Kind::MigLci, Kind::Topo],
    text
));
