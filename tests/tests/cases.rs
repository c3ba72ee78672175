//! Runs every case file of `tests/cases` through the Rust API.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let trial = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Trial::test(name, move || {
            let text = std::fs::read_to_string(&path).unwrap();
            slicewise_tests::cases::run(&text).map_err(Into::into)
        })
    };
    libtest_mimic::run(&Arguments::from_args(), paths.into_iter().map(trial).collect()).exit_code()
}
