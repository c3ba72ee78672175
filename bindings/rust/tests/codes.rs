//! The committed table of codes is the one in the code. `UPDATE_CODES=1` rewrites it.

use std::fmt::Write;
use std::path::Path;

use slicewise::{Code, Fault};

fn table() -> String {
    let mut text = String::from(
        "# Codes\n\nStable names and numbers: 1xx are reasons of a verdict, 5xx failures of a call, 6xx failures \
         of a call through the C library, 9xx faults of an input.\nA number is never used again for something else.\n\n| number | code | meaning |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        let _ = writeln!(text, "| {} | `{}` | {} |", code.number(), code.name(), code.description());
    }
    for (number, name, meaning) in Fault::TABLE {
        let _ = writeln!(text, "| {number} | `{name}` | {meaning} |");
    }
    text
}

#[test]
fn the_committed_table_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/codes.md");
    if std::env::var_os("UPDATE_CODES").is_some() {
        std::fs::write(&path, table()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), table(), "run with UPDATE_CODES=1");
}

#[test]
fn the_table_of_faults_says_what_faults_say() {
    let s = String::new;
    let faults = [
        Fault::UnknownModel(s()),
        Fault::UnknownProfile(s()),
        Fault::UnknownPlacement { profile: s(), start: 0, model: s(), legal: s() },
        Fault::UnknownPlacements { profile: s(), model: s() },
        Fault::ModeNotOffered { model: s(), mode: s() },
        Fault::Overlap(s(), s()),
        Fault::Duplicate(s()),
        Fault::Unknown { kind: "", name: s() },
        Fault::OutOfRange { value: 0, min: 0, max: 0 },
        Fault::Invalid(s()),
        Fault::UnknownPower { model: s() },
    ];
    let said: Vec<_> = faults.iter().map(|fault| (fault.number(), fault.code())).collect();
    let table: Vec<_> = Fault::TABLE.iter().map(|(number, name, _)| (*number, *name)).collect();
    assert_eq!(said, table);
}
