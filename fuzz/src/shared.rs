//! Shared GPUs: any text gets an answer; what is chosen or refused passes the checker, and
//! no simulated wait passes its bound.

use slicewise_core::perf::timeshare::simulate::figures;
use slicewise_core::perf::timeshare::{Answer, Setting, Timeshare, bounds, choose, phases_of, simulate};
use slicewise_core::verify;
use slicewise_formats::read_timeshare;

const TEXT_MAX: usize = 4_096;
const RESIDENTS_MAX: usize = 8;
const HORIZON_US: u64 = 300_000;

/// Reads a text as a shared GPU, measures it, or chooses how it is shared.
pub fn timeshare(text: &str) {
    if text.len() > TEXT_MAX {
        return;
    }
    let document = match read_timeshare("f", text) {
        Ok(document) => document,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    if document.residents.len() > RESIDENTS_MAX {
        return;
    }
    if let Some(scheduler) = document.scheduler {
        holds(&document, &document.setting(scheduler));
    }
    match choose(&document) {
        Ok(Answer::Works(choice)) => {
            if let Err(violation) = verify::timeshare::choice(&document, &choice) {
                panic!("{violation}\n{document:?}\n{choice:?}");
            }
            holds(&document, &choice.setting);
        }
        Ok(Answer::Refused(refusals)) => {
            if let Err(violation) = verify::timeshare::refusal(&document, &refusals) {
                panic!("{violation}\n{document:?}\n{refusals:?}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The simulator never sees a wait above its bound.
fn holds(document: &Timeshare, setting: &Setting) {
    let bounds = bounds(&document.residents, setting);
    let phases = phases_of(&document.residents, 0);
    let Ok(run) = simulate(&document.residents, setting, &phases, HORIZON_US) else { return };
    let runs = [run];
    for (at, bound) in bounds.iter().enumerate() {
        if let (Some(most), Some(seen)) = (bound.wait_worst_us, figures(&runs, at).wait_worst_us) {
            assert!(seen <= most, "resident {at} waits {seen} us, at most {most}\n{document:?}\n{setting:?}");
        }
    }
}
