//! An installed library, and programs in C that use it.
#![allow(dead_code, clippy::allow_attributes, reason = "each test uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at what is not as expected, and says what it skips"
)]

#[path = "../../install.rs"]
mod install;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// How a program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    Static,
    Shared,
}

pub fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A directory of its own for each test: they run side by side.
pub fn scratch(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// What cargo built for this test, laid out as an installed library.
pub fn installed(test: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let prefix = scratch(test).join("prefix");
    let link = |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to);
    install::install(&deps, Path::new(env!("CARGO_MANIFEST_DIR")), &prefix, env!("CARGO_PKG_VERSION"), link).unwrap();
    prefix
}

/// Compiles sources with every warning an error, as C99 or, by their ending, as C++17.
pub fn compile(prefix: &Path, sources: &[PathBuf], linkage: Linkage, flags: &[&str]) -> PathBuf {
    let first = sources.first().unwrap();
    let (compiler, standard) = if first.extension().unwrap() == "cpp" { ("c++", "c++17") } else { ("cc", "c99") };
    let name = format!("{}-{linkage:?}", first.file_stem().unwrap().to_string_lossy()).to_lowercase();
    let program = prefix.with_file_name(name);
    let lib = prefix.join("lib");
    let mut command = Command::new(compiler);
    command.args([&format!("-std={standard}"), "-pedantic", "-Wall", "-Wextra", "-Werror", "-g", "-Wl,-S"]);
    command.arg("-I").arg(prefix.join("include")).args(sources).arg("-o").arg(&program);
    match linkage {
        Linkage::Static => command.arg(lib.join("libslicewise.a")).args(["-lpthread", "-lm", "-ldl"]),
        Linkage::Shared => command.arg("-L").arg(&lib).arg("-lslicewise").arg(format!("-Wl,-rpath,{}", lib.display())),
    };
    let output = command.args(flags).output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs a program that must succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    output
}

/// Whether a tool is there; says what is skipped if it is not.
pub fn has(tool: &str, otherwise: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        skipped(tool, otherwise);
    }
    there
}

/// Says what is skipped, and why.
pub fn skipped(tool: &str, otherwise: &str) {
    println!("skipped: {tool} is missing, so {otherwise}");
}
