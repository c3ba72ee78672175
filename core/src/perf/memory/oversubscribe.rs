//! Ways to promise more memory than there is, and what each costs when it is wanted.
//!
//! Memory that is not there has to be moved or packed. With `x` the time that takes for
//! every second of work, the share of throughput lost is `x ÷ (1 + x)`.

use alloc::format;
use serde::{Deserialize, Serialize};

use crate::error::InputError;
use crate::perf::fixed::{PPM, scale, scale_up, share};
use crate::perf::params::{Parameters, Status};
use crate::perf::range::Range;

/// What happens to memory beyond what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mechanism {
    /// Nothing is promised that is not there: beyond it, allocation fails.
    #[default]
    Static,
    /// Taken from a common pool; pages of idle tenants go to the host.
    Dynamic,
    /// Tenants give back memory when asked.
    Balloon,
    /// Packed on the GPU.
    Compressed,
    /// Written to a drive.
    Nvme,
    /// Paged on demand between GPU and host.
    Unified,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Static, Self::Dynamic, Self::Balloon, Self::Compressed, Self::Nvme, Self::Unified];

    /// Its name in documents and parameter names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
            Self::Balloon => "balloon",
            Self::Compressed => "compressed",
            Self::Nvme => "nvme",
            Self::Unified => "unified",
        }
    }
}

/// How much is wanted and how often it moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pressed {
    /// Memory wanted.
    pub wanted_mib: u64,
    /// Memory there is.
    pub there_mib: u64,
    /// Times per thousand seconds that what is beyond gets touched.
    pub touches_per_1000_s: u64,
}

/// What a mechanism comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Relief {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Whether work goes on at all, by the expected figures.
    pub works: bool,
    /// Share of throughput lost.
    pub loss_ppm: Range,
    /// How that is known.
    pub status: Status,
}

/// The penalty of a mechanism. Grows with what is wanted, falls with what is there.
///
/// # Errors
/// A table without a parameter.
pub fn relief(mechanism: Mechanism, pressed: &Pressed, parameters: &Parameters) -> Result<Relief, InputError> {
    let beyond = pressed.wanted_mib.saturating_sub(pressed.there_mib);
    if beyond == 0 {
        return Ok(Relief { mechanism, works: true, loss_ppm: Range::exact(0), status: Status::Published });
    }
    if mechanism == Mechanism::Static {
        return Ok(Relief { mechanism, works: false, loss_ppm: Range::exact(PPM), status: Status::Published });
    }
    let figure = parameters.figure(&format!("oversubscribe.{}.us_per_mib", mechanism.name()))?;
    let mut works = true;
    let mut moved = Range::exact(beyond);
    if mechanism == Mechanism::Compressed {
        let ratio = parameters.range("oversubscribe.compressed.ratio_ppm")?;
        works = share(pressed.wanted_mib, ratio.expected) <= pressed.there_mib;
        // Enough is packed that the rest fits: beyond ÷ (1 − ratio) of it, at most all.
        moved = ratio.map(|r| scale_up(beyond, PPM, PPM.saturating_sub(r)).min(pressed.wanted_mib));
    }
    // One MiB out and one in, for every touch.
    let loss = |mib: u64, us: u64| {
        let us_per_1000_s = mib.saturating_mul(2).saturating_mul(us).saturating_mul(pressed.touches_per_1000_s);
        let x = us_per_1000_s / 1000;
        scale(x, PPM, PPM.saturating_add(x))
    };
    let cost = figure.range();
    let loss_ppm = Range {
        low: loss(moved.low, cost.low),
        expected: loss(moved.expected, cost.expected),
        high: loss(moved.high, cost.high),
    };
    Ok(Relief { mechanism, works, loss_ppm, status: figure.status })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn more_beyond_never_costs_less(at in 0..6_usize, wanted in 0..200_000_u64, there in 0..100_000_u64, touches in 0..100_000_u64) {
            let table = Parameters::built_in().unwrap();
            let loss = |wanted_mib, touches_per_1000_s| {
                let pressed = Pressed { wanted_mib, there_mib: there, touches_per_1000_s };
                relief(Mechanism::ALL[at], &pressed, &table).unwrap().loss_ppm
            };
            let here = loss(wanted, touches);
            prop_assert!(here.is_ordered() && here.high <= PPM);
            for more in [loss(wanted + 1, touches), loss(wanted, touches + 1)] {
                prop_assert!(more.low >= here.low && more.expected >= here.expected && more.high >= here.high);
            }
        }
    }

    #[test]
    fn what_fits_costs_nothing_and_static_fails_beyond() {
        let table = Parameters::built_in().unwrap();
        let of = |mechanism, wanted_mib| {
            let pressed = Pressed { wanted_mib, there_mib: 40_960, touches_per_1000_s: 1000 };
            let relief = relief(mechanism, &pressed, &table).unwrap();
            (relief.works, relief.loss_ppm.expected)
        };
        assert_eq!(of(Mechanism::Nvme, 40_960), (true, 0));
        assert_eq!(of(Mechanism::Static, 40_961), (false, PPM));
        // 10 GiB out and in once a second at 60 us a MiB: 1.23 s for each second of work.
        assert_eq!(of(Mechanism::Dynamic, 51_200), (true, 551_328));
        assert_eq!(of(Mechanism::Compressed, 100_000), (false, 750_000));
    }
}
