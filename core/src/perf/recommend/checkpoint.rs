//! How often to write a checkpoint: Young's interval, `√(2 · cost · time between stops)`,
//! to which Daly's expansion comes down where the cost is small against that time.

use serde::{Deserialize, Serialize};

use crate::perf::fixed::{PPM, narrow, scale};

/// A checkpoint interval and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// Work between two checkpoints.
    pub every_s: u64,
    /// Share of time lost to writing and to work done twice.
    pub loss_ppm: u64,
}

const THOUSAND_HOURS_S: u64 = 3_600_000;

/// The interval for a cost and a number of stops in a thousand hours; `None` where it is
/// never stopped.
pub fn checkpoint(cost_s: u64, stops_per_1000_h: u64) -> Option<Checkpoint> {
    let between_s = THOUSAND_HOURS_S.checked_div(stops_per_1000_h)?.max(1);
    let root = narrow((2 * u128::from(cost_s) * u128::from(between_s)).isqrt());
    // Stops faster than checkpoints leave no time for work: then as often as they take.
    let every_s = root.max(cost_s).max(1);
    let writing = scale(cost_s, PPM, every_s);
    let again = scale(every_s, PPM, between_s.saturating_mul(2));
    Some(Checkpoint { every_s, loss_ppm: writing.saturating_add(again).min(PPM) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_and_a_stop_a_day() {
        // One stop in 24 h (41 in 1000 h), a checkpoint of 60 s: every 54 minutes.
        let c = checkpoint(60, 41).unwrap();
        assert_eq!((c.every_s, c.loss_ppm), (3245, 36_967));
        // No other interval loses less.
        let loss = |t: u64| 60 * PPM / t + t * PPM / (2 * (THOUSAND_HOURS_S / 41));
        assert!((100..20_000).all(|t| loss(t) + 2 >= c.loss_ppm));
        assert_eq!(checkpoint(60, 0), None);
        assert!(checkpoint(u64::MAX, u64::MAX).is_some());
    }
}
