//! The C library: its header, its tests, and how it is installed.

#[path = "../../bindings/c/install.rs"]
mod layout;

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::Cmd;
use crate::context::{Context, Stop, apt};
use crate::steps::nightly;

const HOST: &str = "x86_64-unknown-linux-gnu";
const PROGRAMS: [&str; 3] = ["decision", "limits", "documents"];

/// Writes the header. That it is current is a test of the crate.
pub fn header(context: &Context) -> Result<String, Stop> {
    context.run(&Cmd::words("cargo test -p slicewise-c --test header").env("UPDATE_HEADER", "1"))?;
    Ok(String::new())
}

/// What the tests of the C library use besides a C compiler; they say what they skip.
pub fn tools(context: &Context) -> Result<String, Stop> {
    let xml = || context.has("pkg-config --exists libxml-2.0");
    for (tool, present, package) in [
        ("valgrind", &(|| context.has("valgrind --version")) as &dyn Fn() -> bool, "valgrind"),
        ("a C++ compiler", &|| context.has("c++ --version"), "g++"),
        ("make", &|| context.has("make --version"), "make"),
        ("python3", &|| context.has("python3 --version"), "python3"),
        ("pkg-config and libxml2", &xml, "pkg-config libxml2-dev"),
    ] {
        context.need(tool, present, &[apt(&format!("install --no-install-recommends {package}"))])?;
    }
    Ok(String::new())
}

/// The tests of the C library alone.
pub fn test(context: &Context) -> Result<String, Stop> {
    tools(context)?;
    context.run(&Cmd::words("cargo test -p slicewise-c"))?;
    Ok(String::new())
}

/// `cargo xtask install --prefix DIR`: headers, libraries and pkg-config file, built for release.
pub fn install(context: &Context, prefix: &Path) -> Result<(), Stop> {
    context.run(&Cmd::words("cargo build --release -p slicewise-c"))?;
    lay_out(context, "release", prefix)
}

fn lay_out(context: &Context, profile: &str, prefix: &Path) -> Result<(), Stop> {
    let failed = |error: std::io::Error| Stop::fail(format!("{}: {error}", prefix.display()));
    fs::create_dir_all(prefix).map_err(failed)?;
    let prefix = prefix.canonicalize().map_err(failed)?;
    let version = context.workspace.package("slicewise-c").map(|package| package.version.clone()).unwrap_or_default();
    let built = context.workspace.target_dir.join(profile);
    let copy = |from: &Path, to: &Path| fs::copy(from, to).map(drop);
    layout::install(&built, &context.at("bindings/c"), &prefix, &version, copy).map_err(failed)
}

/// The libvirt hook under libvirtd and QEMU.
pub fn hypervisor(context: &Context) -> Result<String, Stop> {
    tools(context)?;
    let present = || context.has("libvirtd --version") && context.has("qemu-system-x86_64 --version");
    let packages = "libvirt-daemon-system libvirt-clients libvirt-daemon-driver-qemu qemu-system-x86";
    context.need("libvirt and QEMU", present, &[apt(&format!("install --no-install-recommends {packages}"))])?;
    context.run(&Cmd::words("cargo build -p slicewise-c"))?;
    let prefix = context.workspace.target_dir.join("hypervisor");
    lay_out(context, "debug", &prefix)?;
    let make = Cmd::words("make --silent --always-make -C examples/libvirt-hook");
    context.run(&make.env("PKG_CONFIG_PATH", text(prefix.join("lib/pkgconfig"))))?;
    let test = Cmd::words("python3 tests/hypervisor/libvirt.py examples/libvirt-hook/qemu");
    context.run(&test.env("SLICEWISE_LIBRARY", text(prefix.join("lib/libslicewise.so.0"))))?;
    Ok(String::new())
}

/// The programs in C and the library under the address sanitizer, which sees leaks of both.
pub fn asan(context: &Context) -> Result<String, Stop> {
    nightly(context)?;
    let resources = || context.probe(&Cmd::words("clang -print-file-name=libclang_rt.asan-x86_64.a"));
    let present = || resources().is_some_and(|path| Path::new(path.trim()).is_absolute());
    context.need(
        "clang with its sanitizers",
        present,
        &[apt("install --no-install-recommends clang libclang-rt-14-dev")],
    )?;
    let target = context.in_target("asan");
    let build = Cmd::words("cargo +nightly build -p slicewise-c --target").arg(HOST).arg("--target-dir").arg(&target);
    context.run(&build.env("RUSTFLAGS", "-Zsanitizer=address"))?;
    for name in PROGRAMS {
        let program = format!("{target}/{name}");
        let compile = Cmd::words("clang -std=c99 -g -fsanitize=address -I bindings/c/include")
            .arg(format!("bindings/c/tests/c/{name}.c"))
            .arg(format!("{target}/{HOST}/debug/libslicewise_c.a"))
            .arg("-o")
            .arg(&program);
        context.run(&["-lpthread", "-lm", "-ldl"].iter().fold(compile, |cmd, lib| cmd.arg(*lib)))?;
        context.run(&Cmd::words(&program).env("RUST_BACKTRACE", "0"))?;
    }
    Ok(format!("{} programs", PROGRAMS.len()))
}

fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}
