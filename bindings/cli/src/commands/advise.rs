//! `slicewise advise`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use slicewise::formats;
use slicewise::perf::advise::advise;

use crate::failure::Failure;
use crate::io::{self, Text};
use crate::table;

/// Settings that go with a placement, and why. Nothing is applied.
#[derive(Args)]
pub struct Advise {
    /// Question (JSON or YAML; `-` for standard input).
    file: PathBuf,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

impl Advise {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let text = Text::read(&self.file)?;
        let ask = formats::read_advise(&text.name, &text.content).map_err(|e| Failure::read(&text, &e))?;
        let advice = advise(&ask).map_err(|e| Failure::input(&text, &e))?;
        if self.json {
            io::print_json(&advice)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut rows = table::table(&["setting", "value", "why", "status"]);
        for a in &advice {
            rows.add_row([a.setting.clone(), a.value.clone(), a.why.clone(), table::word(&a.status)]);
        }
        io::print(&format!("{rows}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}
