//! How fast a workload is on a part of a GPU.
//!
//! A step takes the larger of two times that partly hide each other: what the host needs to
//! launch it, which no slice changes, and what the GPU needs. The latter has a part that
//! no slice changes, a part that shrinks with compute and a part that shrinks with memory:
//!
//! ```text
//! h(slice) = serial + compute · C/c + memory · M/m       serial + compute + memory = 1
//! time     = ( floor^p + (1 + stretch · (h − 1))^p )^(1/p)
//! rate     = time on the whole GPU ÷ time on the slice
//! ```
//!
//! `serial`, `compute`, `memory` and `p` are the same for all workloads of a class: the
//! [`Shape`]. A workload has one number of its own, `floor`: the host's time in units of
//! the whole GPU's. It comes from the batch size, from the step times of two batches on the
//! whole GPU, or from one measurement on a slice ([`Curve`]). Processes under MPS launch
//! side by side: the floor is shared by their number, and so is the serial part.

mod calibrate;
#[cfg(test)]
mod tests;

use alloc::format;
use alloc::string::String;
use serde::{Deserialize, Serialize};

use super::fixed::{PPM, RATIO_MAX, Sharpness, joined, scale, share};
use super::params::{Class, Parameters};
use super::range::Range;
use crate::error::{Fault, InputError};

/// A part of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// Compute slices of it.
    pub compute: u16,
    /// Compute slices of the whole GPU.
    pub compute_total: u16,
    /// Memory slices of it.
    pub memory: u16,
    /// Memory slices of the whole GPU.
    pub memory_total: u16,
    /// Percentage of its multiprocessors that MPS lets one client use; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_percent: Option<u8>,
}

impl Slice {
    /// All of a GPU.
    pub const WHOLE: Self = Self { compute: 1, compute_total: 1, memory: 1, memory_total: 1, sm_percent: None };

    /// Checks that it is a part of something.
    ///
    /// # Errors
    /// No slices, more than there are, or a percentage outside 1 to 100.
    pub fn check(&self) -> Result<(), InputError> {
        let within = |path: &str, value: u16, max: u16| {
            let fault = Fault::OutOfRange { value: value.into(), min: 1, max: max.into() };
            if value == 0 || value > max { Err(InputError::new(path, fault)) } else { Ok(()) }
        };
        within("compute_total", self.compute_total, u16::MAX)?;
        within("memory_total", self.memory_total, u16::MAX)?;
        within("compute", self.compute, self.compute_total)?;
        within("memory", self.memory, self.memory_total)?;
        within("sm_percent", self.sm_percent.unwrap_or(100).into(), 100)
    }

    /// The larger of its shares of compute and memory: what the owner cannot sell again.
    pub fn share_ppm(&self) -> u64 {
        let of = |part: u16, total: u16| scale(part.into(), PPM, total.into()).min(PPM);
        let compute = share(of(self.compute, self.compute_total), self.percent_ppm());
        compute.max(of(self.memory, self.memory_total))
    }

    fn percent_ppm(&self) -> u64 {
        u64::from(self.sm_percent.unwrap_or(100).min(100)) * (PPM / 100)
    }
}

/// What all workloads of a class share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Part of the whole GPU's time that no slice changes.
    pub serial_ppm: u64,
    /// Part that shrinks with compute slices; the rest shrinks with memory slices.
    pub compute_ppm: u64,
    /// The power `p`: 1, 2 or 4.
    pub sharpness: u8,
    /// Items that a step costs the GPU on top of its batch.
    pub batch_offset: u64,
    /// Thousandths of an item at which the host's time equals the GPU's, where nothing but
    /// the batch is known.
    pub floor_batch_milli: u64,
    /// Part of the serial time that other processes fill.
    pub overlap_ppm: u64,
    /// What each further process adds to the host's time of all.
    pub process_loss_ppm: u64,
}

impl Shape {
    /// The shape of a class.
    ///
    /// # Errors
    /// A user's parameters that make no shape.
    pub fn of(class: Class, parameters: &Parameters) -> Result<Self, InputError> {
        let named = |name: &str| format!("scaling.{}.{name}", class.name());
        let of = |name: &str| parameters.value(&named(name));
        let sharpness = of("sharpness")?;
        let shape = Self {
            serial_ppm: of("serial_ppm")?,
            compute_ppm: of("compute_ppm")?,
            sharpness: u8::try_from(sharpness).unwrap_or(0),
            batch_offset: of("batch_offset")?,
            floor_batch_milli: of("floor_batch_milli")?,
            overlap_ppm: parameters.value("scaling.mps.overlap_ppm")?,
            process_loss_ppm: parameters.value("scaling.mps.process_loss_ppm")?,
        };
        let invalid = |name: String, text: &str| Err(InputError::new(name, Fault::Invalid(String::from(text))));
        if shape.serial_ppm.saturating_add(shape.compute_ppm) > PPM {
            return invalid(named("compute_ppm"), "`serial_ppm` and `compute_ppm` are more than one in sum");
        }
        if !matches!(sharpness, 1 | 2 | 4) {
            return invalid(named("sharpness"), "`sharpness` is 1, 2 or 4");
        }
        if shape.overlap_ppm > PPM {
            return invalid(String::from("scaling.mps.overlap_ppm"), "a share is at most 1000000");
        }
        Ok(shape)
    }

    fn power(&self) -> Sharpness {
        match self.sharpness {
            1 => Sharpness::One,
            2 => Sharpness::Two,
            _ => Sharpness::Four,
        }
    }

    /// The GPU's time on a slice, in units of the whole GPU's. Falls with compute and memory.
    pub fn slowness_ppm(&self, slice: &Slice) -> u64 {
        let compute = share(slice.percent_ppm(), scale(slice.compute.into(), PPM, slice.compute_total.into()));
        let memory = scale(slice.memory.into(), PPM, slice.memory_total.into());
        let rest = PPM.saturating_sub(self.serial_ppm).saturating_sub(self.compute_ppm);
        let sum = self.serial_ppm.saturating_add(scale(self.compute_ppm, PPM, compute.min(PPM))).saturating_add(scale(
            rest,
            PPM,
            memory.min(PPM),
        ));
        sum.clamp(PPM, RATIO_MAX)
    }
}

/// How much was known of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// Its class and batch.
    Class,
    /// Step times of two batches on the whole GPU.
    WholeGpu,
    /// A rate on a slice beside that of the whole GPU.
    Slice,
}

impl Known {
    /// Its name in parameter names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::WholeGpu => "whole_gpu",
            Self::Slice => "slice",
        }
    }
}

/// A workload's own curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve {
    /// What its class shares.
    pub shape: Shape,
    /// The host's time in units of the whole GPU's.
    pub floor_ppm: u64,
    /// How much more a smaller slice costs than the shape says; one unless a measurement
    /// lies below all that a floor can explain.
    pub stretch_ppm: u64,
    /// Where it is from.
    pub known: Known,
}

impl Curve {
    /// Throughput of `processes` together on a slice, in units of one process alone on the
    /// whole GPU.
    pub fn rate_ppm(&self, slice: &Slice, processes: u32) -> u64 {
        let power = self.shape.power();
        let alone = joined(self.floor_ppm, PPM, power);
        scale(alone, PPM, self.time_ppm(slice, processes))
    }

    /// Time between two steps done by any of the processes, in units of the whole GPU's own.
    fn time_ppm(&self, slice: &Slice, processes: u32) -> u64 {
        let n = u64::from(processes.max(1));
        let shape = &self.shape;
        let over = shape.slowness_ppm(slice).saturating_sub(PPM);
        let stretched = PPM.saturating_add(share(over, self.stretch_ppm));
        let filled = share(shape.serial_ppm, shape.overlap_ppm);
        let gpu = stretched.saturating_sub(filled.saturating_sub(filled / n));
        let crowd = PPM.saturating_add(shape.process_loss_ppm.saturating_mul(n - 1));
        let host = scale(self.floor_ppm, crowd, n.saturating_mul(PPM));
        joined(host, gpu, shape.power()).max(1)
    }

    /// Part of a step in which the host's time shows: one where launches set the pace.
    pub fn launch_bound_ppm(&self) -> u64 {
        scale(self.floor_ppm, PPM, joined(self.floor_ppm, PPM, Sharpness::One))
    }

    /// [`Curve::rate_ppm`] with the errors that this much knowledge left on measured
    /// workloads: in four of five cases the truth lay within.
    ///
    /// # Errors
    /// A table without the parameter.
    pub fn rate(
        &self,
        class: Class,
        slice: &Slice,
        processes: u32,
        parameters: &Parameters,
    ) -> Result<Range, InputError> {
        let expected = self.rate_ppm(slice, processes);
        if processes <= 1 && self.shape.slowness_ppm(slice) == PPM {
            return Ok(Range::exact(expected));
        }
        let mut errors = parameters.range(&format!("scaling.{}.error.{}_ppm", class.name(), self.known.name()))?;
        if processes > 1 {
            // What one process leaves open and what several add: the wider of both at each end.
            let several = parameters.range(match self.known {
                Known::Slice => "scaling.mps.error.slice_ppm",
                _ => "scaling.mps.error.whole_gpu_ppm",
            })?;
            errors.low = errors.low.min(several.low);
            errors.high = errors.high.max(several.high);
        }
        Ok(Range {
            low: share(expected, errors.low).min(expected),
            expected,
            high: share(expected, errors.high).max(expected),
        })
    }
}
