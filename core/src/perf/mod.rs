//! What a placement is predicted to deliver. Predictions are ranges in integers; they
//! rank and warn, and never decide what is legal: the spaces do that.

mod fixed;
mod params;
mod range;

pub mod advise;
pub mod interference;
pub mod memory;
pub mod overhead;
pub mod power;
pub mod recommend;
pub mod scaling;
pub mod timeshare;

pub use fixed::PPM;
pub use params::{Class, Figure, Override, Parameters, Status};
pub use range::Range;
