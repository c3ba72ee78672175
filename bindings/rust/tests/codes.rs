//! The committed table of codes is the one in the code. `UPDATE_CODES=1` rewrites it.

use std::fmt::Write;
use std::path::Path;

use slicewise::{Code, Fault};

fn table() -> String {
    let mut text = String::from(
        "# Codes\n\nStable names and numbers: 1xx are reasons of a verdict, 5xx failures of a call, 9xx faults of \
         an input.\nA number is never used again for something else.\n\n| number | code | meaning |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        let _ = writeln!(text, "| {} | `{}` | {} |", code.number(), code.name(), code.description());
    }
    let s = String::new;
    let faults = [
        (Fault::UnknownModel(s()), "The model is in no catalog and no document."),
        (Fault::UnknownProfile(s()), "The profile name is in no catalog and in no device listing."),
        (
            Fault::UnknownPlacement { profile: s(), start: 0, model: s(), legal: s() },
            "The profile exists but has no such start on this device.",
        ),
        (Fault::UnknownPlacements { profile: s(), model: s() }, "The device's profile has no published placements."),
        (Fault::ModeNotOffered { model: s(), mode: s() }, "The model cannot be in this mode."),
        (Fault::Overlap(s(), s()), "Two things claim the same space."),
        (Fault::Duplicate(s()), "A name is used twice."),
        (Fault::Unknown { kind: "", name: s() }, "A name that must exist does not."),
        (Fault::OutOfRange { value: 0, min: 0, max: 0 }, "A number is out of its range."),
        (Fault::Invalid(s()), "The document breaks a rule that has no narrower name."),
        (Fault::UnknownPower { model: s() }, "A GPU is under a power limit or cap and its watts are not known."),
    ];
    for (fault, meaning) in faults {
        let _ = writeln!(text, "| {} | `{}` | {meaning} |", fault.number(), fault.code());
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
