//! Laws of interference.

use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

fn loads() -> impl Strategy<Value = Loads> {
    (1..2_000_000_u64, 0..2_000_000_u64, 0..2_000_000_u64).prop_map(|(sm_ppm, bandwidth_ppm, cache_ppm)| Loads {
        sm_ppm,
        bandwidth_ppm,
        cache_ppm,
    })
}

fn residents() -> impl Strategy<Value = Resident> {
    (loads(), prop::option::of(loads()), prop::option::of(1..=100_u8))
        .prop_map(|(pressure, sensitivity, sm_percent)| Resident { pressure, sensitivity, sm_percent })
}

const EVEN: Weights = Weights(Loads { sm_ppm: PPM, bandwidth_ppm: PPM, cache_ppm: PPM });

proptest! {
    #[test]
    fn one_more_tenant_is_never_faster(me in residents(), others in prop::collection::vec(residents(), 0..6), more in residents()) {
        let before = rate_ppm(&EVEN, &me, &others);
        let others: Vec<_> = others.into_iter().chain([more]).collect();
        prop_assert!(rate_ppm(&EVEN, &me, &others) <= before);
        let table = Parameters::built_in().unwrap();
        for known in [Knowledge::Class, Knowledge::Probe] {
            prop_assert!(rate(&table, &me, &others, known).unwrap().is_ordered());
        }
    }

    #[test]
    fn a_probe_gives_back_what_was_measured(own in 50_000..=950_000_u64, theirs in 50_000..=950_000_u64, class in 0..4_usize) {
        let table = Parameters::built_in().unwrap();
        let weights = Weights::of(&table).unwrap();
        let reference = Resident::of(Class::Training, &table).unwrap();
        let probed = Resident::of(Class::ALL[class], &table).unwrap().probed(&weights, &reference, own, theirs);
        prop_assert!(rate_ppm(&weights, &probed, &[reference]).abs_diff(own) <= 50);
        prop_assert!(rate_ppm(&weights, &reference, &[probed]).abs_diff(theirs) <= 50);
    }

    #[test]
    fn products_are_found_again(feels in prop::collection::vec(200_000..2_000_000_u64, 5), presses in prop::collection::vec(200_000..2_000_000_u64, 5)) {
        let pair = |job: usize, beside: usize| Pair {
            job, beside, rate_ppm: scale(PPM, PPM, PPM + share(feels[job], presses[beside])),
        };
        let pairs: Vec<_> = (0..5).flat_map(|a| (0..5).map(move |b| (a, b))).map(|(a, b)| pair(a, b)).collect();
        let found = fit_pairs(6, &pairs);
        prop_assert_eq!(found[5], None);
        for p in &pairs {
            let (f, q) = (found[p.job].unwrap().0, found[p.beside].unwrap().1);
            let wanted = share(feels[p.job], presses[p.beside]);
            prop_assert!(share(f, q).abs_diff(wanted) <= wanted / 500 + 20);
        }
    }
}

#[test]
fn figures_of_users_are_checked() {
    let mut resident = Resident::default();
    resident.pressure.cache_ppm = u64::MAX;
    assert_eq!(resident.check().unwrap_err().path(), "pressure.cache_ppm");
    let capped = Resident { sm_percent: Some(101), ..Resident::default() };
    assert_eq!(capped.check().unwrap_err().path(), "sm_percent");
}
