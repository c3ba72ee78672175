//! Shared helpers of the tests.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: whatever is not as expected must stop the test"
)]

pub mod cases;
pub mod dice;
pub mod fleets;
pub mod oracle;
pub mod perf;
