//! `slicewise export`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use slicewise::{Lease, ModeChange, Step, formats};

use super::FleetArgs;
use crate::failure::Failure;
use crate::io::{self, Text};

/// Write what other tools take.
#[derive(Args)]
pub struct Export {
    /// What to write.
    #[arg(value_enum)]
    kind: Kind,
    #[command(flatten)]
    fleet: FleetArgs,
    /// The plan or decision to carry out on the state.
    #[arg(long, alias = "decision", value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Print the inverse commands instead, last first.
    #[arg(long)]
    undo: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Commands with explicit starts, destructions first, each with its inverse.
    NvidiaSmi,
    /// A mig-parted configuration per node.
    MigParted,
    /// The state document as JSON.
    Json,
    /// The state document as YAML.
    Yaml,
}

/// What a plan and a decision have that can be carried out.
#[derive(Default, Deserialize)]
struct Orders {
    #[serde(default)]
    leases: Vec<Lease>,
    #[serde(default)]
    mode_changes: Vec<ModeChange>,
    #[serde(default)]
    steps: Vec<Step>,
}

impl Export {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (text, engine) = self.fleet.load()?;
        let orders = self.plan.as_ref().map(|f| Text::read(f)).transpose()?;
        let parsed: Option<Orders> = orders.as_ref().map(Text::json).transpose()?;
        let source = orders.as_ref().unwrap_or(&text);
        let Orders { leases, mode_changes, steps } = parsed.unwrap_or_default();
        if let Kind::NvidiaSmi = self.kind {
            let planned = engine.steps_for(&leases, &mode_changes).map_err(|e| Failure::engine(source, e))?;
            let steps = if leases.is_empty() { steps } else { planned };
            io::print(&commands(&steps, self.undo))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut state = engine.snapshot();
        // A decision has no leases: what it changes is made by committing it.
        if !leases.is_empty() {
            state.change_modes(&mode_changes);
        }
        state.leases.extend(leases);
        let after = slicewise::Engine::new(&state).map_err(|e| Failure::engine(source, e))?;
        match self.kind {
            Kind::MigParted => {
                for config in formats::export::mig_parted(&after.snapshot()) {
                    io::print(&format!("# node {}\n{}", config.node, config.yaml))?;
                }
            }
            Kind::Yaml => io::print(&formats::write_state_yaml(&after.snapshot()))?,
            Kind::Json | Kind::NvidiaSmi => io::print(&formats::write_state(&after.snapshot()))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn commands(steps: &[Step], undo: bool) -> String {
    let mut commands = formats::export::nvidia_smi(steps);
    if undo {
        commands.reverse();
    }
    let mut text = String::new();
    let mut node = None;
    for command in &commands {
        if node != Some(&command.node) {
            text.push_str(&format!("# on {}\n", command.node));
            node = Some(&command.node);
        }
        let (line, other) = if undo { (&command.undo, &command.run) } else { (&command.run, &command.undo) };
        text.push_str(&format!("{line}\n#   undo: {other}\n"));
    }
    text
}
