//! Readers: any text gets an answer, and what is accepted can be written, read and loaded.

use std::sync::LazyLock;

use slicewise_core::catalog::Catalog;
use slicewise_core::fleet::State;
use slicewise_core::ledger::Ledger;
use slicewise_core::place::{Budget, Policy, decide, explain};
use slicewise_core::verify;
use slicewise_core::workload::Workload;
use slicewise_formats::{
    Document, Kind, Options, Source, locate, read, read_points, read_requests, read_scenarios, read_state,
    write_document, write_state, write_state_yaml,
};

/// The models that the targets use; the whole catalog is too long to copy each time.
pub static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let all = Catalog::built_in().expect("the built-in catalog is legal");
    let mut some = Catalog::default();
    let models = ["a30-24gb", "a100-80gb", "rtx-pro-6000-96gb", "mi300x", "a2", "a10", "t4"];
    for id in models {
        some.add(all.find(id).expect("a model of the catalog").clone()).expect("a legal model");
    }
    for board in all.boards().filter(|b| models.contains(&b.model.as_str()) && b.model != "a100-80gb") {
        some.add_board(board.clone()).expect("a legal board");
    }
    some
});

static WHOLE_CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::built_in().expect("the built-in catalog is legal"));

/// A fleet with one of everything, on which requests are decided.
static SMALL: LazyLock<Ledger> = LazyLock::new(|| {
    let text = include_str!("small.json");
    let state = read_state("small.json", text).expect("a document");
    Ledger::new(CATALOG.clone(), Policy::default(), &state).expect("a legal state")
});

const TEXT_MAX: usize = 16_384;
const GPUS_MAX: u64 = 256;
const BUDGET: Budget = Budget { work: 5_000, moves: 2 };

/// Reads a text as a document, or as listings of these kinds.
pub fn import(kinds: &[Kind], text: &str) {
    if text.len() > TEXT_MAX {
        return;
    }
    let source = [Source { name: "f", text }];
    for kind in kinds {
        let options = Options { config: Some("half".into()), ..Options::default() };
        let known = Options { model: Some("a100-80gb".into()), idle: true, ..options.clone() };
        // One of the two for each text: speed finds more than both on each.
        let options = if text.len() % 2 == 0 { options } else { known };
        match slicewise_formats::import(*kind, &source, &options, &WHOLE_CATALOG) {
            Ok(imported) => {
                json_round_trip(&imported.state);
                requests_round_trip(&imported.requests);
                load(&imported.state);
                // Once more into what it became.
                let options = Options { into: Some(imported.state), ..options };
                drop(slicewise_formats::import(*kind, &source, &options, &WHOLE_CATALOG));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Reads a text as a document.
pub fn document(text: &str) {
    if text.len() > TEXT_MAX {
        return;
    }
    // The shorthand may ask for millions of GPUs.
    let counts = read::<Document>("f", text).map(|d| d.gpus.iter().map(|row| u64::from(row.count)).sum::<u64>());
    if counts.is_ok_and(|gpus| gpus > GPUS_MAX) {
        return;
    }
    match read_state("f", text) {
        Ok(state) => {
            json_round_trip(&state);
            let yaml = read_state("w.yaml", &write_state_yaml(&state)).expect("a written document can be read");
            assert_eq!(yaml, state);
            load(&state);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            if let Some((line, column)) = locate(text, error.path()) {
                assert!(line >= 1 && column >= 1);
            }
        }
    }
}

/// Reads a text as requests and decides them on a small fleet.
pub fn requests(text: &str) {
    if text.len() > TEXT_MAX {
        return;
    }
    let Ok(all) = read_requests("f", text) else { return };
    requests_round_trip(&all);
    for workload in all.iter().take(4).filter(|w| w.count <= 16) {
        let Ok(decision) = decide(&SMALL, workload, BUDGET) else { continue };
        let checked = verify::decision(SMALL.catalog(), &SMALL.snapshot(), workload, &decision, false);
        if let Err(violation) = checked {
            panic!("{violation}\n{workload:?}\n{decision:?}");
        }
        drop(explain(&SMALL, workload, BUDGET));
    }
}

/// Reads a text as the two tables of serving.
pub fn tables(text: &str) {
    if text.len() > TEXT_MAX {
        return;
    }
    for error in [read_points("f.csv", text).err(), read_scenarios("f.csv", text).err()].into_iter().flatten() {
        assert!(!error.to_string().is_empty());
    }
}

fn json_round_trip(state: &State) {
    let json = read_state("w.json", &write_state(state)).expect("a written document can be read");
    assert_eq!(json, *state);
}

fn requests_round_trip(requests: &[Workload]) {
    if requests.is_empty() {
        return;
    }
    let document = Document { requests: requests.to_vec(), ..Document::default() };
    let again = read_requests("w.json", &write_document(&document)).expect("a written document can be read");
    assert_eq!(again, requests);
}

/// Loads a state. What the ledger takes it must give back, and the checker must accept.
fn load(state: &State) {
    let Ok(ledger) = Ledger::new(CATALOG.clone(), Policy::default(), state) else { return };
    let snapshot = ledger.snapshot();
    if let Err(violation) = verify::state(&CATALOG, &snapshot) {
        panic!("{violation}\n{}", write_state(&snapshot));
    }
    let again = Ledger::new(CATALOG.clone(), Policy::default(), &snapshot);
    let again = again.unwrap_or_else(|e| panic!("{e}\n{}", write_state(&snapshot)));
    assert_eq!(again.snapshot(), snapshot);
}
