//! The pure core of Slicewise: what GPUs can be cut into, who gets which part, and
//! why not. No clock, no I/O, no randomness, no threads, no floating point.
#![no_std]

extern crate alloc;

pub mod catalog;
mod data;
pub mod decision;
pub mod error;
pub mod fleet;
pub mod ids;
pub mod ledger;
pub mod perf;
pub mod place;
pub mod plan;
pub mod reason;
pub mod serving;
pub mod space;
pub mod verify;
pub mod workload;
