//! What the engine decides and holds, for the tools that act on it.

mod mig_parted;
mod nvidia_smi;

pub use mig_parted::{NodeConfig, mig_parted};
pub use nvidia_smi::{Command, nvidia_smi};

use slicewise_core::fleet::State;

/// The fleet as a JSON document; the same as [`crate::document::write_state`].
pub fn state_json(state: &State) -> String {
    crate::document::write_state(state)
}
