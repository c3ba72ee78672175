//! What CI and developers run: `cargo xtask help` lists it.

mod args;
mod c;
mod command;
mod context;
mod report;
mod steps;
mod workspace;

use std::env;
use std::process::ExitCode;

use crate::args::Request;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match args::parse(args.iter().map(String::as_str)) {
        Ok(Request::Help) => {
            say(&args::usage());
            ExitCode::SUCCESS
        }
        Ok(Request::Install(prefix)) => report::install(&prefix),
        Ok(Request::Run(run)) => report::run(&run),
        Err(message) => {
            say(&format!("{message}\n\n{}", args::usage()));
            ExitCode::from(2)
        }
    }
}

/// Prints a line; all output of xtask goes through here.
#[expect(clippy::print_stdout, reason = "a command line tool reports on standard output")]
fn say(line: &str) {
    println!("{line}");
}
