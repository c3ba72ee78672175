//! Laws of the model, on random shapes and slices.

use super::*;
use proptest::prelude::*;

fn shapes() -> impl Strategy<Value = Shape> {
    (0..=400_000_u64, 100_000..=600_000_u64, prop::sample::select(&[1_u8, 2, 4][..]), 0..=8_u64, 0..=20_000_u64)
        .prop_map(|(serial_ppm, compute_ppm, sharpness, batch_offset, floor_batch_milli)| Shape {
            serial_ppm,
            compute_ppm,
            sharpness,
            batch_offset,
            floor_batch_milli,
            overlap_ppm: PPM,
            process_loss_ppm: 20_000,
        })
}

fn slices() -> impl Strategy<Value = Slice> {
    (1..=7_u16, 1..=8_u16, prop::option::of(1..=100_u8)).prop_map(|(compute, memory, sm_percent)| Slice {
        compute,
        compute_total: 7,
        memory,
        memory_total: 8,
        sm_percent,
    })
}

fn curves() -> impl Strategy<Value = Curve> {
    (shapes(), 0..=20_000_000_u64, 500_000..=3_000_000_u64).prop_map(|(shape, floor_ppm, stretch_ppm)| Curve {
        shape,
        floor_ppm,
        stretch_ppm,
        known: Known::Slice,
    })
}

proptest! {
    #[test]
    fn more_of_a_gpu_is_never_slower(curve in curves(), slice in slices(), n in 1..=8_u32) {
        let here = curve.rate_ppm(&slice, n);
        let wider = Slice { compute: (slice.compute + 1).min(7), ..slice };
        let deeper = Slice { memory: (slice.memory + 1).min(8), ..slice };
        let freer = Slice { sm_percent: slice.sm_percent.map(|p| (p + 1).min(100)), ..slice };
        for more in [wider, deeper, freer] {
            prop_assert!(curve.rate_ppm(&more, n) >= here);
        }
        prop_assert!(curve.rate_ppm(&Slice::WHOLE, 1) == PPM);
    }

    #[test]
    fn more_processes_never_do_less_in_all(curve in curves(), slice in slices(), n in 1..=8_u32) {
        prop_assert!(curve.rate_ppm(&slice, n + 1) >= curve.rate_ppm(&slice, n));
        // ... and each of them does no more than alone, but for rounding.
        let each = |n: u32| curve.rate_ppm(&slice, n) / u64::from(n);
        prop_assert!(each(n + 1) <= each(n) + 1);
    }

    #[test]
    fn calibration_gives_back_its_own_rate(shape in shapes(), slice in slices(), rate in 20_000..=990_000_u64) {
        prop_assume!(shape.slowness_ppm(&slice) > PPM + 10_000);
        let curve = Curve::of_rate(shape, &slice, rate);
        let back = curve.rate_ppm(&slice, 1);
        // A tiny slice does not come nearer to the whole GPU than the greatest floor lets it.
        let is_greatest = curve.floor_ppm == RATIO_MAX && back <= rate;
        prop_assert!(is_greatest || back.abs_diff(rate) <= rate / 10_000 + 2, "{rate} became {back}");
    }

    #[test]
    fn two_batches_give_back_their_ratio(shape in shapes(), small in 1..=64_u64, times in 2..=16_u64, floor in 0..=3_000_000_u64) {
        // Step times as the model itself would measure them; the large batch is the unit.
        let large = small * times;
        let gpu = |batch: u64| scale(batch + shape.batch_offset, PPM, large + shape.batch_offset);
        let step = |floor: u64, batch: u64| joined(floor, gpu(batch), shape.power());
        let (one, other) = ((small, step(floor, small)), (large, step(floor, large)));
        let curve = Curve::of_batches(shape, large, one, other);
        let ratio = |floor: u64| scale(step(floor, small), PPM, step(floor, large));
        prop_assert!(ratio(curve.floor_ppm).abs_diff(ratio(floor)) <= 10, "{floor} became {}", curve.floor_ppm);
        prop_assert_eq!(curve, Curve::of_batches(shape, large, other, one));
    }

    #[test]
    fn ranges_are_in_order(curve in curves(), slice in slices(), n in 1..=8_u32) {
        let table = Parameters::built_in().unwrap();
        for class in Class::ALL {
            prop_assert!(curve.rate(class, &slice, n, &table).unwrap().is_ordered());
        }
    }
}

#[test]
fn shapes_of_users_are_checked() {
    let table = Parameters::built_in().unwrap();
    for class in Class::ALL {
        Shape::of(class, &table).unwrap();
    }
    let with = |name: &str, value| {
        let own = crate::perf::Override::Value(value);
        let table = table.clone().with(&[(String::from(name), own)].into()).unwrap();
        String::from(Shape::of(Class::Inference, &table).unwrap_err().path())
    };
    assert_eq!(with("scaling.inference.sharpness", 3), "scaling.inference.sharpness");
    assert_eq!(with("scaling.inference.serial_ppm", 900_000), "scaling.inference.compute_ppm");
}

#[test]
fn a_slice_must_be_a_part() {
    let slice = Slice { compute: 8, compute_total: 7, memory: 1, memory_total: 8, sm_percent: None };
    assert_eq!(slice.check().unwrap_err().path(), "compute");
    assert_eq!(Slice { compute: 1, sm_percent: Some(0), ..slice }.check().unwrap_err().path(), "sm_percent");
    assert!(Slice { compute: 1, ..slice }.check().is_ok());
}
