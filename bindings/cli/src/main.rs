//! The `slicewise` command: listings in, placements, proofs and commands out.

mod commands;
mod draw;
mod failure;
mod io;
mod table;

use std::process::ExitCode;

use clap::Parser;

use commands::Command;

/// Decides who gets which part of which GPU, and proves it.
#[derive(Parser)]
#[command(name = "slicewise", version, about, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done or admitted, 2 wrong usage, 3 bad input, 4 wait, 5 reject, \
6 undecided (budget used up), 7 the checker refused, 8 cannot read or write a file.";

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command.run() {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
