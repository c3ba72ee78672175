//! How long decisions take. The simulator has no clock; the command has.

use std::time::Instant;

use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::value::RawValue;
use slicewise_sim::Moment;

use super::number;

/// Time of each decision and of making it true, in nanoseconds.
#[derive(Default)]
pub struct Timing {
    since: Option<Instant>,
    decide: Vec<u64>,
    apply: Vec<u64>,
}

/// Microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Micros {
    p50: Option<Box<RawValue>>,
    p99: Option<Box<RawValue>>,
    mean: Option<Box<RawValue>>,
}

impl Timing {
    /// Notes a moment of a replay.
    pub fn note(&mut self, moment: Moment, bar: &ProgressBar) {
        let elapsed = self.since.map_or(0, |since| u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
        match moment {
            Moment::Deciding => {}
            Moment::Decided => self.decide.push(elapsed),
            Moment::Applied => {
                self.apply.push(elapsed);
                bar.inc(1);
            }
        }
        self.since = Some(Instant::now());
    }

    /// Times of decisions.
    pub fn decide(&self) -> Micros {
        micros(&self.decide)
    }

    /// Times of making decisions true.
    pub fn apply(&self) -> Micros {
        micros(&self.apply)
    }
}

impl Micros {
    /// Median, 99th percentile and mean for people.
    pub fn cells(&self) -> [String; 3] {
        [&self.p50, &self.p99, &self.mean].map(|n| n.as_ref().map_or("?".into(), |n| n.get().to_owned()))
    }
}

fn micros(nanos: &[u64]) -> Micros {
    let mut sorted = nanos.to_vec();
    sorted.sort_unstable();
    let at = |percent: usize| sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied();
    let mean = sorted.iter().sum::<u64>().checked_div(sorted.len() as u64);
    let shown = |nanos: Option<u64>| nanos.and_then(|n| number((n + 5) / 10));
    Micros { p50: shown(at(50)), p99: shown(at(99)), mean: shown(mean) }
}
