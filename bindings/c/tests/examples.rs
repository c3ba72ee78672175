//! The examples that use the library, built as their READMEs say, with their own tests.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{has, installed, run, scratch, skipped, source};

/// A command in a directory where the installed library is found.
fn with_library(program: &str, prefix: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    command.env("LD_LIBRARY_PATH", prefix.join("lib")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("SLICEWISE_LIBRARY", prefix.join("lib/libslicewise.so.0"));
    command
}

#[test]
fn the_example_is_compiled_as_the_readme_says() {
    if !has("pkg-config", "the example in C is not compiled") {
        return;
    }
    let readme = std::fs::read_to_string(source("../../README.md")).unwrap();
    let line = readme.lines().find(|line| line.starts_with("cc examples/c/decide.c")).unwrap();
    let prefix = installed("readme");
    let directory = scratch("readme");
    let examples = directory.join("examples");
    if !examples.exists() {
        std::os::unix::fs::symlink(source("../../examples").canonicalize().unwrap(), &examples).unwrap();
    }
    let output = run(with_library("sh", &prefix, &directory).arg("-ec").arg(line));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "member 0: 3g.40gb at 4 on node-0 GPU0\nmember 1: 3g.40gb at 0 on node-0 GPU0\n"
    );
}

/// The libvirt hook, or nothing if what it needs is not here.
fn hook(prefix: &Path, directory: &Path) -> Option<PathBuf> {
    let xml = Command::new("pkg-config").args(["--exists", "libxml-2.0"]).status().is_ok_and(|status| status.success());
    if !xml {
        skipped("libxml2 with its headers", "the libvirt hook is not compiled");
    }
    if !xml || !has("make", "the libvirt hook is not compiled") || !has("python3", "the libvirt hook is not tested") {
        return None;
    }
    let program = directory.join("qemu");
    let hook = source("../../examples/libvirt-hook").canonicalize().unwrap();
    for file in std::fs::read_dir(&hook).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|e| e == "c" || e == "h") || path.ends_with("Makefile") {
            std::fs::copy(&path, directory.join(path.file_name().unwrap())).unwrap();
        }
    }
    run(with_library("make", prefix, directory).arg("--silent"));
    Some(program)
}

#[test]
fn the_libvirt_hook_passes_its_tests() {
    let (prefix, directory) = (installed("hook"), scratch("hook"));
    if let Some(program) = hook(&prefix, &directory) {
        for script in ["hook.py", "proxmox.py"] {
            let script = source("../../tests/hypervisor").join(script);
            run(with_library("python3", &prefix, &directory).arg(script).arg(&program));
        }
    }
}

#[test]
fn the_filter_in_python_passes_its_tests() {
    if has("python3", "the example in Python is not run") {
        let prefix = installed("python");
        run(with_library("python3", &prefix, &source("../../examples/python")).args(["-m", "unittest"]));
    }
}
