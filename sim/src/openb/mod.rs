//! Replay of the openb cluster trace: pods arrive in a given order, each is placed or
//! dropped, none leaves.

mod cluster;
mod curve;
mod engine;
mod fragmentation;
mod replay;
mod trace;

pub use cluster::{Cluster, Node, Spot, resident};
pub use curve::{Curve, PERCENT_MAX};
pub use engine::Product;
pub use fragmentation::Typical;
pub use replay::{Arrival, Placer, ReplayError, replay};
pub use trace::{KindId, ModelId, Models, Pod, Trace, TraceError};
