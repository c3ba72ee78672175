//! The committed header is the one that the library makes. `UPDATE_HEADER=1` rewrites it.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use std::fmt::Write;
use std::path::Path;

use slicewise::{Code, Fault};

/// The table of codes as an enum of C.
fn statuses() -> String {
    let codes = Code::ALL.iter().map(|code| (code.number(), code.name(), code.description()));
    let ok = (0, "ok", "The call did what it says.");
    let mut text = String::from("\n/**\n * Statuses: the table of codes of Slicewise.\n */\nenum {\n");
    for (number, name, meaning) in [ok].into_iter().chain(codes).chain(Fault::TABLE.iter().copied()) {
        let _ = writeln!(text, "  /** {meaning} */\n  SLICEWISE_STATUS_{} = {number},", name.to_uppercase());
    }
    // C99 takes a comma at the end; C++ before 2011 does not.
    let end = text.trim_end().trim_end_matches(',').len();
    text.truncate(end);
    text + "\n};"
}

fn header(root: &Path) -> String {
    let mut config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    config.after_includes = Some(statuses());
    let bindings = cbindgen::Builder::new().with_config(config).with_crate(root).generate().unwrap();
    let mut text = Vec::new();
    bindings.write(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn the_committed_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("include/slicewise.h");
    let made = header(root);
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "include/slicewise.h is not what the library makes: run `cargo xtask header`");
}
