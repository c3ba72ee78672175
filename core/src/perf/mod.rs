//! What sharing a GPU costs and delivers, predicted in integers.

pub mod timeshare;
