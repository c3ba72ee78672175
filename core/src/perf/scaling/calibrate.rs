//! A curve from what is known of a workload: its batch, its step times on the whole GPU, or
//! rates on slices.

use super::{Curve, Known, PPM, RATIO_MAX, Shape, Slice, joined, scale};
use crate::perf::fixed::least;

impl Curve {
    /// From the class and the batch alone.
    pub fn of_batch(shape: Shape, batch: u64) -> Self {
        let items_milli = batch.saturating_add(shape.batch_offset).max(1).saturating_mul(1000);
        let floor_ppm = scale(shape.floor_batch_milli, PPM, items_milli).min(RATIO_MAX);
        Self { shape, floor_ppm, stretch_ppm: PPM, known: Known::Class }
    }

    /// From the step times (in any one unit) of two batches on the whole GPU: where the
    /// larger batch takes hardly longer, the host sets the pace. `batch` is the one that
    /// the curve is for. The two may come in either order; equal ones say nothing, and the
    /// curve is then [`Curve::of_batch`].
    pub fn of_batches(shape: Shape, batch: u64, one: (u64, u64), other: (u64, u64)) -> Self {
        let (small, large) = if one.0 <= other.0 { (one, other) } else { (other, one) };
        if small.0 == large.0 || large.1 == 0 {
            return Self::of_batch(shape, batch);
        }
        let items = |batch: u64| batch.saturating_add(shape.batch_offset).max(1);
        let smaller = scale(items(small.0), PPM, items(large.0));
        let ratio = scale(small.1, PPM, large.1);
        let power = shape.power();
        let floor_of_large =
            least(RATIO_MAX, |floor| scale(joined(floor, smaller, power), PPM, joined(floor, PPM, power)) >= ratio);
        let floor_ppm = scale(floor_of_large, items(large.0), items(batch)).min(RATIO_MAX);
        Self { shape, floor_ppm, stretch_ppm: PPM, known: Known::WholeGpu }
    }

    /// From the rate of one process on a slice, in units of the whole GPU. A rate above one
    /// counts as one: a part is no faster than the whole, and what measures so is noise.
    pub fn of_rate(shape: Shape, slice: &Slice, rate_ppm: u64) -> Self {
        let rate_ppm = rate_ppm.clamp(1, PPM);
        let time = scale(PPM, PPM, rate_ppm);
        let slowness = shape.slowness_ppm(slice);
        let known = Known::Slice;
        if time > slowness && slowness > PPM {
            // Slower than the GPU's own time explains: all of the step stretches.
            let stretch_ppm = scale(time.saturating_sub(PPM), PPM, slowness.saturating_sub(PPM));
            return Self { shape, floor_ppm: 0, stretch_ppm, known };
        }
        let at = |floor_ppm| Self { shape, floor_ppm, stretch_ppm: PPM, known };
        at(least(RATIO_MAX, |floor| at(floor).rate_ppm(slice, 1) >= rate_ppm))
    }

    /// From rates on several slices: of the curves through each of them, the one that is
    /// nearest to all in sum. `None` without any.
    pub fn of_rates(shape: Shape, rates: &[(Slice, u64)]) -> Option<Self> {
        let off = |curve: &Self| {
            let one = |(slice, rate): &(Slice, u64)| {
                let error = curve.rate_ppm(slice, 1).abs_diff(*rate);
                scale(error, PPM, (*rate).max(1))
            };
            rates.iter().map(one).fold(0_u64, u64::saturating_add)
        };
        rates.iter().map(|(slice, rate)| Self::of_rate(shape, slice, *rate)).min_by_key(off)
    }
}
