//! The steps, in the order in which a tier runs them.

use std::path::Path;

use crate::c;
use crate::command::Cmd;
use crate::context::{Context, Stop, apt, has_target};
use crate::workspace::locked_version;

const WASM: &str = "wasm32-unknown-unknown";
const BARE: &str = "thumbv7m-none-eabi";
const HIGHSPY: &str = "highspy==1.16.0";
const ORACLE: &str = "tests/oracle/highs.py";
const CARGO_FUZZ: &str = "0.13.2";
const CARGO_DENY: &str = "0.20.2";

/// A set of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Before every push, and in CI.
    Test,
    /// Before a release.
    Full,
}

/// One check.
#[derive(Debug)]
pub struct Step {
    /// As typed after `cargo xtask`.
    pub name: &'static str,
    /// One line for the help.
    pub about: &'static str,
    /// The tiers that run it.
    pub tiers: &'static [Tier],
    /// Returns a remark for the summary, empty if there is nothing to say.
    pub run: fn(&Context) -> Result<String, Stop>,
}

const BOTH: &[Tier] = &[Tier::Test, Tier::Full];
const FULL: &[Tier] = &[Tier::Full];

/// All steps. What is cheap and often broken comes first; the test runner comes last, so that a log ends with its count.
#[rustfmt::skip]
pub const STEPS: &[Step] = &[
    Step { name: "fmt", about: "formatting", tiers: BOTH, run: fmt },
    Step { name: "clippy", about: "lints of all targets, warnings denied", tiers: BOTH, run: clippy },
    Step { name: "features", about: "each crate alone: without features, with each, with all", tiers: BOTH, run: features },
    Step { name: "wasm", about: "core and solver build for wasm32-unknown-unknown", tiers: BOTH, run: wasm },
    Step { name: "no-std", about: "core builds for a target that has no std", tiers: BOTH, run: no_std },
    Step { name: "docs", about: "documentation, warnings denied", tiers: BOTH, run: docs },
    Step { name: "deny", about: "licences, banned crates, sources", tiers: FULL, run: deny },
    Step { name: "fuzz-smoke", about: "each fuzz target for 20 s", tiers: &[Tier::Test], run: fuzz_smoke },
    Step { name: "fuzz", about: "each fuzz target for 120 s", tiers: FULL, run: fuzz_long },
    Step { name: "oracle", about: "the solver against highspy", tiers: BOTH, run: oracle },
    Step { name: "highs", about: "the solver with feature `highs`: lints and tests", tiers: FULL, run: highs },
    Step { name: "hypervisor", about: "the libvirt hook under libvirtd and QEMU, as root", tiers: FULL, run: c::hypervisor },
    Step { name: "asan", about: "the C library under the address sanitizer", tiers: FULL, run: c::asan },
    Step { name: "miri", about: "tests of core and of the C interface under Miri", tiers: FULL, run: miri },
    Step { name: "replay", about: "published traces beside the project, all seeds", tiers: FULL, run: replay },
    Step { name: "ir", about: "instruction counts", tiers: FULL, run: ir },
    Step { name: "header", about: "writes bindings/c/include/slicewise.h", tiers: &[], run: c::header },
    Step { name: "c", about: "tests of the C library", tiers: &[], run: c::test },
    Step { name: "c-tools", about: "tools that tests of the C library use", tiers: BOTH, run: c::tools },
    Step { name: "doctests", about: "examples in documentation", tiers: BOTH, run: doctests },
    Step { name: "run-tests", about: "unit and integration tests", tiers: BOTH, run: run_tests },
];

fn fmt(context: &Context) -> Result<String, Stop> {
    component(context, "rustfmt", "cargo fmt --version")?;
    context.run(&Cmd::words("cargo fmt --all --check"))?;
    if context.at("fuzz/Cargo.toml").is_file() {
        context.run(&Cmd::words("cargo fmt --manifest-path fuzz/Cargo.toml --check"))?;
    }
    Ok(String::new())
}

fn clippy(context: &Context) -> Result<String, Stop> {
    component(context, "clippy", "cargo clippy --version")?;
    context.run(&Cmd::words("cargo clippy --workspace --all-targets -- -D warnings"))?;
    Ok(String::new())
}

fn features(context: &Context) -> Result<String, Stop> {
    component(context, "clippy", "cargo clippy --version")?;
    let (mut sets, mut left_out) = (0_usize, Vec::new());
    for package in &context.workspace.packages {
        for set in package.feature_sets() {
            let mut cmd = Cmd::words("cargo clippy --no-default-features -p").arg(&package.name);
            if !set.is_empty() {
                cmd = cmd.arg("--features").arg(set.join(","));
            }
            context.run(&cmd.arg("--").arg("-D").arg("warnings"))?;
            sets += 1;
        }
        left_out.extend(package.native_features().iter().map(|feature| format!("{}/{feature}", package.name)));
    }
    Ok(match left_out.as_slice() {
        [] => format!("{sets} sets"),
        left_out => format!("{sets} sets; left to step `highs`: {}", left_out.join(", ")),
    })
}

fn wasm(context: &Context) -> Result<String, Stop> {
    target(context, WASM)?;
    for package in ["slicewise-core", "slicewise-solver"] {
        context.run(&Cmd::words(&format!("cargo build -p {package} --target {WASM}")))?;
    }
    Ok(String::new())
}

fn no_std(context: &Context) -> Result<String, Stop> {
    // The one target that a machine may do without: not every rustup mirror has it.
    target(context, BARE).map_err(Stop::or_skip)?;
    context.run(&Cmd::words(&format!("cargo build -p slicewise-core --no-default-features --target {BARE}")))?;
    Ok(String::new())
}

fn docs(context: &Context) -> Result<String, Stop> {
    // Libraries only: the binary `slicewise` and the library `slicewise` would write to the same place.
    context.run(&Cmd::words("cargo doc --workspace --no-deps --lib").env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(String::new())
}

fn doctests(context: &Context) -> Result<String, Stop> {
    context.run(&Cmd::words("cargo test --workspace --doc"))?;
    Ok(String::new())
}

fn run_tests(context: &Context) -> Result<String, Stop> {
    context.run(&tests(context, "--workspace --no-fail-fast"))?;
    Ok(String::new())
}

/// The test command with what the machine has; nextest runs no doctests, so neither does the other.
fn tests(context: &Context, args: &str) -> Cmd {
    let run = if context.has("cargo nextest --version") {
        "cargo nextest run"
    } else {
        "cargo test --lib --bins --tests --examples"
    };
    Cmd::words(&format!("{run} {args}"))
}

fn deny(context: &Context) -> Result<String, Stop> {
    let present = || context.has("cargo deny --version");
    context.need("cargo-deny", present, &[context.cargo_install("cargo-deny", CARGO_DENY)])?;
    context.run(&Cmd::words("cargo deny check licenses bans sources").with_tools())?;
    Ok(String::new())
}

fn fuzz_smoke(context: &Context) -> Result<String, Stop> {
    fuzz_for(context, 20)
}

fn fuzz_long(context: &Context) -> Result<String, Stop> {
    fuzz_for(context, 120)
}

fn fuzz_for(context: &Context, seconds: u32) -> Result<String, Stop> {
    if !context.at("fuzz/Cargo.toml").is_file() {
        return Ok("nothing to do: there is no fuzz/Cargo.toml".into());
    }
    nightly(context)?;
    let present = || context.has("cargo fuzz --version");
    context.need("cargo-fuzz", present, &[context.cargo_install("cargo-fuzz", CARGO_FUZZ)])?;
    let present = || context.has("c++ --version");
    context.need("a C++ compiler", present, &[apt("install --no-install-recommends g++")])?;
    let list = context.output(&Cmd::words("cargo +nightly fuzz list").with_tools())?;
    let into = context.in_target("fuzz");
    let fuzz = |verb| Cmd::words("cargo +nightly fuzz").arg(verb).arg("--target-dir").arg(&into).with_tools();
    context.run(&fuzz("build"))?;
    for name in list.lines() {
        // New inputs go to the first folder; the committed ones are where it begins.
        let found = context.in_target(&format!("fuzz/corpus/{name}"));
        context.run(&Cmd::words("mkdir -p").arg(&found))?;
        let run = fuzz("run").arg(name).arg(found).arg(format!("fuzz/seeds/{name}"));
        context.run(&run.arg("--").arg(format!("-max_total_time={seconds}")))?;
    }
    Ok(format!("{} targets, {seconds} s each", list.lines().count()))
}

fn oracle(context: &Context) -> Result<String, Stop> {
    if !context.at(ORACLE).is_file() {
        return Ok(format!("nothing to do: there is no {ORACLE}"));
    }
    let has_highspy = |python: &str| context.probe(&Cmd::words(python).arg("-c").arg("import highspy")).is_some();
    let own = context.in_target("venv/bin/python");
    if has_highspy("python3") {
        context.run(&Cmd::words("python3").arg(ORACLE))?;
        return Ok(String::new());
    }
    let venv_module = || context.probe(&Cmd::words("python3 -c").arg("import venv, ensurepip")).is_some();
    context.need("python3 with venv", venv_module, &[apt("install --no-install-recommends python3 python3-venv")])?;
    let install = [
        Cmd::words("python3 -m venv").arg(context.in_target("venv")),
        Cmd::words(&format!("{own} -m pip install --quiet {HIGHSPY}")),
    ];
    context.need("highspy", || has_highspy(&own), &install)?;
    context.run(&Cmd::words(&own).arg(ORACLE))?;
    Ok(String::new())
}

fn highs(context: &Context) -> Result<String, Stop> {
    let solver = context.workspace.package("slicewise-solver");
    if !solver.is_some_and(|package| package.features.contains_key("highs")) {
        return Ok("nothing to do: slicewise-solver has no feature `highs`".into());
    }
    let present = || context.has("cmake --version") && has_libclang(context);
    let install = [apt("install --no-install-recommends cmake g++ clang libclang-dev")];
    context.need("cmake, clang and libclang", present, &install)?;
    let lints = "cargo clippy -p slicewise-solver --features highs --all-targets -- -D warnings";
    context.run(&Cmd::words(lints))?;
    context.run(&tests(context, "-p slicewise-solver --features highs --no-fail-fast"))?;
    Ok(String::new())
}

/// Whether libclang lies beside clang: its resource directory is `<lib>/clang/<version>`.
fn has_libclang(context: &Context) -> bool {
    let resources = context.probe(&Cmd::words("clang -print-resource-dir")).unwrap_or_default();
    Path::new(resources.trim()).ancestors().nth(2).is_some_and(|lib| lib.join("libclang.so").exists())
}

fn miri(context: &Context) -> Result<String, Stop> {
    nightly(context)?;
    let present = || context.has("cargo +nightly miri --version");
    context.need("Miri", present, &[Cmd::words("rustup component add --toolchain nightly miri rust-src")])?;
    let cmd = Cmd::words("cargo +nightly miri test -p slicewise-core --lib --tests")
        .env("PROPTEST_CASES", "8")
        .env("MIRIFLAGS", "-Zmiri-disable-isolation")
        // Else insta starts cargo to find the root, which Miri cannot do.
        .env("INSTA_WORKSPACE_ROOT", context.workspace.root.to_string_lossy());
    context.run(&cmd)?;
    context.run(&Cmd::words("cargo +nightly miri test -p slicewise-c --lib"))?;
    Ok(String::new())
}

fn replay(context: &Context) -> Result<String, Stop> {
    let cmd = Cmd::words("cargo test --release -p slicewise-tests --test replay").env("SLICEWISE_FULL", "1");
    context.run(&cmd)?;
    Ok(String::new())
}

fn ir(context: &Context) -> Result<String, Stop> {
    let has_bench = |benches: &[String]| benches.iter().any(|name| name == "ir");
    let Some(package) = context.workspace.packages.iter().find(|package| has_bench(&package.benches)) else {
        return Ok("nothing to do: no crate has a bench `ir`".into());
    };
    // The runner and the library talk to each other: their versions must be the same.
    let metadata = context.output(&Cmd::words("cargo metadata --format-version 1"))?;
    let version = locked_version(&metadata, "gungraun")
        .ok_or_else(|| Stop::fail(format!("bench `ir` of {} does not use gungraun", package.name)))?;
    let present = || context.has("valgrind --version");
    context.need("valgrind", present, &[apt("install --no-install-recommends valgrind")])?;
    let present =
        || context.probe(&Cmd::words("gungraun-runner --version")).is_some_and(|text| text.contains(&version));
    context.need("gungraun-runner", present, &[context.cargo_install("gungraun-runner", &version)])?;
    context.run(&Cmd::words("cargo bench --bench ir -p").arg(&package.name).with_tools())?;
    Ok(String::new())
}

fn component(context: &Context, name: &str, check: &str) -> Result<(), Stop> {
    let install = [Cmd::words("rustup component add").arg(name)];
    context.need(name, || context.has(check), &install)
}

fn target(context: &Context, name: &str) -> Result<(), Stop> {
    let install = [Cmd::words("rustup target add").arg(name)];
    context.need(name, || has_target(context, name), &install)
}

/// Makes sure of a nightly toolchain.
///
/// # Errors
/// See [`Context::need`].
pub fn nightly(context: &Context) -> Result<(), Stop> {
    let install = [Cmd::words("rustup toolchain install nightly --profile minimal")];
    context.need("a nightly toolchain", || context.has("cargo +nightly --version"), &install)
}
