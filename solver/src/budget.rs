//! How much work a plan may take, and who does the linear algebra.

/// Limits on the work of [`crate::plan`]. All are counts, so that the same input gives
/// the same plan everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanBudget {
    /// Patterns in the integer program.
    pub columns: usize,
    /// Distinct states of one kind of device that are looked at for patterns.
    pub rows: usize,
    /// Branch-and-bound nodes of each integer program.
    pub nodes: u64,
    /// Places looked at by the packing fallbacks.
    pub work: u64,
    /// Rounds of column generation, and of neighbourhood search.
    pub rounds: u32,
}

impl Default for PlanBudget {
    fn default() -> Self {
        Self { columns: 6_000, rows: 200_000, nodes: 2_000, work: 20_000_000, rounds: 60 }
    }
}

/// The solver of linear and integer programs. A solver is never trusted: what it says is
/// checked in integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// Pure Rust, deterministic, runs in WASM.
    #[default]
    Microlp,
    /// HiGHS, native only.
    #[cfg(feature = "highs")]
    Highs,
}

/// What a plan has come to, for whoever waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// The requests and the fleet are read.
    Read {
        /// Kinds of member.
        demands: usize,
        /// Kinds of room on GPUs.
        rooms: usize,
    },
    /// A round of column generation ended.
    Columns {
        /// Patterns so far.
        columns: usize,
    },
    /// No plan can be better than this.
    Bound {
        /// The bound.
        bound: u64,
    },
    /// A plan was found.
    Found {
        /// Its value.
        value: u64,
        /// GPUs it opens.
        gpus_opened: u64,
    },
}
