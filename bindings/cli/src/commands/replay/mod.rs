//! `slicewise replay`.

mod mig;
mod openb;
mod plot;
mod timing;

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::table::decimal;

/// Replay a published trace under the product's policies, or under published ones.
#[derive(Subcommand)]
pub enum Replay {
    /// Pods of the openb cluster trace arrive and stay.
    Openb(openb::Openb),
    /// MIG instances arrive and leave.
    Mig(mig::Mig),
}

impl Replay {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Openb(c) => c.run(),
            Self::Mig(c) => c.run(),
        }
    }
}

/// Hundredths as a JSON number with two decimals; no float is on the way.
fn number(hundredths: u64) -> Option<Box<RawValue>> {
    RawValue::from_string(decimal(hundredths)).ok()
}
