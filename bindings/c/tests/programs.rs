//! The programs in `tests/c`, linked statically and dynamically, alone and under valgrind.

mod common;

use std::process::Command;

use common::{Linkage, compile, has, installed, run, source};

const PROGRAMS: [&str; 3] = ["decision", "limits", "documents"];

fn under_valgrind(program: &std::path::Path) -> Command {
    let mut command = Command::new("valgrind");
    // A backtrace would keep megabytes of symbols reachable.
    command.env("RUST_BACKTRACE", "0").args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
    command.arg("--errors-for-leak-kinds=definite,indirect,possible").arg(program);
    command
}

#[test]
fn programs_run_with_the_shared_library() {
    let prefix = installed("shared");
    let valgrind = has("valgrind", "leaks and stray accesses are not looked for");
    for name in PROGRAMS {
        let program = compile(&prefix, &[source(&format!("tests/c/{name}.c"))], Linkage::Shared, &[]);
        run(&mut Command::new(&program));
        if valgrind {
            run(&mut under_valgrind(&program));
        }
    }
}

#[test]
fn programs_run_with_the_static_library() {
    let prefix = installed("static");
    for name in PROGRAMS {
        let twice = source("tests/c/twice.c");
        let program = compile(&prefix, &[source(&format!("tests/c/{name}.c")), twice], Linkage::Static, &[]);
        run(&mut Command::new(&program));
    }
}

#[test]
fn the_header_is_also_one_of_cpp() {
    if has("c++", "the header is not compiled as C++17") {
        let prefix = installed("cpp");
        run(&mut Command::new(compile(&prefix, &[source("tests/c/owners.cpp")], Linkage::Shared, &[])));
    }
}

#[test]
fn the_shared_library_has_its_name_and_no_other_symbols() {
    if !has("nm", "symbols are not listed") || !has("readelf", "the name of the library is not read") {
        return;
    }
    let library = installed("symbols").join("lib/libslicewise.so");
    let dynamic = run(Command::new("readelf").arg("-d").arg(&library));
    assert!(String::from_utf8_lossy(&dynamic.stdout).contains("soname: [libslicewise.so.0]"));
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let names: Vec<&str> = symbols.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert!(names.iter().all(|name| name.starts_with("slicewise_")), "{names:?}");
    let header = std::fs::read_to_string(source("include/slicewise.h")).unwrap();
    for name in names {
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
    }
}
