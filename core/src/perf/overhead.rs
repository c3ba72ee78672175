//! What a way of sharing costs by itself, before any tenant touches another.
//!
//! Overheads are shares of throughput lost. Losses of different causes follow one another,
//! so what remains is the product of what each leaves: `1 − Π (1 − loss)`. The software
//! layer's own parts (memory management, interception of calls, scheduling) are told apart
//! for the drivers of which they are known; for newer ones only their sum is.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::fixed::{PPM, scale, share};
use super::params::{Figure, Parameters, Status};
use super::range::Range;
use crate::error::InputError;

/// How a GPU is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Not at all.
    #[default]
    Whole,
    /// Cut by the hardware.
    Mig,
    /// Processes of one server, side by side.
    Mps,
    /// Taking turns.
    TimeSliced,
    /// A software layer between the tenant and the driver, taking turns.
    Software,
}

/// What the driver does for a software layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DriverEra {
    /// Every call passes through the layer.
    Classic,
    /// Hardware takes part of the layer's work.
    Accelerated,
    /// The newest drivers.
    #[default]
    Newest,
}

/// A placement as overheads see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// How it is shared.
    pub sharing: Sharing,
    /// What the driver helps with.
    pub era: DriverEra,
    /// Tenants on the GPU, this one among them.
    pub tenants: u32,
    /// Length of a turn; absent: the table's.
    pub slice_us: Option<u64>,
    /// How far launches set the workload's pace.
    pub launch_bound_ppm: u64,
}

/// One cause of loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loss {
    /// Name of the parameter it comes from.
    pub parameter: String,
    /// Share of throughput lost.
    pub loss_ppm: Range,
    /// How that is known.
    pub status: Status,
}

/// The losses of a placement and what they come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overhead {
    /// Share of throughput lost in all.
    pub loss_ppm: Range,
    /// The causes.
    pub parts: Vec<Loss>,
}

/// Tenants at which the table states the cost of scheduling.
const TENANTS_STATED: u64 = 8;

/// The losses of a placement. They grow with the number of tenants, never fall.
///
/// # Errors
/// A table without a parameter.
pub fn overhead(parameters: &Parameters, shared: &Shared) -> Result<Overhead, InputError> {
    let mut sum = Sum { parameters, parts: Vec::new() };
    let further = u64::from(shared.tenants.max(1)) - 1;
    // Linear between one tenant and the number at which it is stated, and beyond.
    let grown = |ppm: u64| scale(ppm, further, TENANTS_STATED - 1).min(PPM);
    match shared.sharing {
        Sharing::Whole => {}
        Sharing::Mig => sum.add("overhead.mig_ppm", |r| r)?,
        Sharing::Mps => sum.add("overhead.mps_ppm", |r| r.map(grown))?,
        Sharing::TimeSliced => sum.switching(shared)?,
        Sharing::Software => {
            match shared.era {
                DriverEra::Classic => {
                    sum.add("overhead.classic.memory_management_ppm", |r| r)?;
                    let bound = shared.launch_bound_ppm.min(PPM);
                    sum.add("overhead.classic.interception_ppm", |r| r.map(|end| share(end, bound)))?;
                    sum.add("overhead.classic.scheduling_at_8_ppm", |r| r.map(grown))?;
                }
                DriverEra::Accelerated => {
                    sum.add("overhead.accelerated.base_ppm", |r| r)?;
                    sum.add("overhead.accelerated.scheduling_at_8_ppm", |r| r.map(grown))?;
                }
                DriverEra::Newest => sum.add("overhead.newest.all_ppm", |r| r)?,
            }
            sum.switching(shared)?;
        }
    }
    let rest = sum.parts.iter().fold(Range::exact(PPM), |rest, part| rest.share(part.loss_ppm.rest()));
    Ok(Overhead { loss_ppm: rest.rest(), parts: sum.parts })
}

struct Sum<'t> {
    parameters: &'t Parameters,
    parts: Vec<Loss>,
}

impl Sum<'_> {
    fn add(&mut self, name: &str, grown: impl Fn(Range) -> Range) -> Result<(), InputError> {
        let figure: &Figure = self.parameters.figure(name)?;
        let loss_ppm = grown(figure.range()).map(|end| end.min(PPM));
        self.parts.push(Loss { parameter: String::from(name), loss_ppm, status: figure.status });
        Ok(())
    }

    /// Turns cost a switch each: `switch ÷ (slice + switch)`. A tenant alone has none.
    fn switching(&mut self, shared: &Shared) -> Result<(), InputError> {
        if shared.tenants <= 1 {
            return Ok(());
        }
        let slice = match shared.slice_us {
            Some(slice) => slice,
            None => self.parameters.value("overhead.time_slice_us")?,
        };
        self.add("overhead.context_switch_us", |switch| {
            switch.map(|us| if us == 0 { 0 } else { scale(us, PPM, slice.saturating_add(us)) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHARINGS: [Sharing; 5] = [Sharing::Whole, Sharing::Mig, Sharing::Mps, Sharing::TimeSliced, Sharing::Software];
    const ERAS: [DriverEra; 3] = [DriverEra::Classic, DriverEra::Accelerated, DriverEra::Newest];

    fn of(shared: Shared) -> Range {
        overhead(&Parameters::built_in().unwrap(), &shared).unwrap().loss_ppm
    }

    proptest! {
        #[test]
        fn more_tenants_never_lose_less(sharing in 0..5_usize, era in 0..3_usize, tenants in 1..40_u32, bound in 0..=PPM, slice in 0..100_000_u64) {
            let shared = Shared { sharing: SHARINGS[sharing], era: ERAS[era], tenants, slice_us: Some(slice), launch_bound_ppm: bound };
            let (fewer, more) = (of(shared), of(Shared { tenants: tenants + 1, ..shared }));
            prop_assert!(fewer.is_ordered() && more.is_ordered() && fewer.high <= PPM);
            prop_assert!(fewer.low <= more.low && fewer.expected <= more.expected && fewer.high <= more.high);
        }
    }

    #[test]
    fn the_stated_figures_come_out() {
        assert_eq!(of(Shared::default()), Range::exact(0));
        assert_eq!(of(Shared { sharing: Sharing::Mig, ..Shared::default() }).high, 30_000);
        // 8 tenants on a classic driver lose about 18 % in all; hardware acceleration leaves 7 %.
        let eight = Shared {
            sharing: Sharing::Software,
            tenants: 8,
            launch_bound_ppm: PPM,
            slice_us: Some(1_000_000),
            ..Shared::default()
        };
        let classic = of(Shared { era: DriverEra::Classic, ..eight });
        assert!((170_000..190_000).contains(&classic.expected), "{classic:?}");
        let accelerated = of(Shared { era: DriverEra::Accelerated, ..eight });
        assert!((65_000..75_000).contains(&accelerated.expected), "{accelerated:?}");
        // A turn of 2 ms with a switch of 50, 100 or 200 us.
        let turns = of(Shared { sharing: Sharing::TimeSliced, tenants: 2, slice_us: Some(2000), ..Shared::default() });
        assert_eq!(turns, Range { low: 24_390, expected: 47_619, high: 90_909 });
    }
}
