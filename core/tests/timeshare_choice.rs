//! Choosing how to share a GPU: against every slice, and against the checker.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use proptest::prelude::*;
use rstest::rstest;
use slicewise_core::perf::timeshare::{
    Answer, Choice, Failing, Limit, P99, Refusal, Resident, Scheduler, Search, Setting, Sla, Timeshare, bounds, choose,
    keeps, overhead_ppm,
};
use slicewise_core::verify::{Rule, timeshare as verify};

fn sla() -> impl Strategy<Value = Sla> {
    let share = prop::option::weighted(0.5, 20_000u64..450_000);
    let worst = prop::option::weighted(0.4, 500u64..25_000);
    let p99 = prop::option::weighted(0.2, 500u64..25_000);
    (share, worst, p99).prop_map(|(least_share_ppm, wait_worst_us, wait_p99_us)| Sla {
        least_share_ppm,
        wait_p99_us,
        wait_worst_us,
    })
}

fn residents() -> impl Strategy<Value = Vec<Resident>> {
    let demand = prop::option::weighted(0.75, (100u64..12_000, 4_000u64..60_000));
    let one = (demand, sla(), 1u64..3, 0u32..3).prop_map(|(demand, sla, shares, priority)| {
        let one = demand.map_or(Resident::busy(""), |(burst, period)| Resident::periodic("", burst, period));
        Resident { sla, shares, priority, ..one }
    });
    prop::collection::vec(one, 1..5).prop_map(|mut all| {
        for (i, one) in all.iter_mut().enumerate() {
            one.name = format!("r{i}");
        }
        all
    })
}

fn document(residents: Vec<Resident>, from: u64, to: u64, schedulers: &[Scheduler]) -> Timeshare {
    let search = Search { schedulers: schedulers.to_vec(), slice_min_us: Some(from), slice_max_us: Some(to) };
    Timeshare { residents, choose: Some(search), averaging_factor: Some(4), ..Timeshare::default() }
}

fn all_kept(document: &Timeshare, setting: &Setting) -> bool {
    let bounds = bounds(&document.residents, setting);
    bounds.iter().zip(&document.residents).all(|(b, r)| keeps(b, &r.sla))
}

/// The longest slice that works, by trying them all.
fn by_trying(document: &Timeshare, scheduler: Scheduler, from: u64, to: u64) -> Option<u64> {
    let base = document.setting(scheduler);
    let range = if scheduler == Scheduler::BestEffort { base.slice_us..=base.slice_us } else { from..=to };
    range.rev().find(|q| all_kept(document, &Setting { slice_us: *q, ..base.clone() }))
}

fn accepted(document: &Timeshare, answer: &Answer) {
    match answer {
        Answer::Works(choice) => verify::choice(document, choice).unwrap(),
        Answer::Refused(refusals) => verify::refusal(document, refusals).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_longest_slice_is_found(residents in residents(), from in 1_000u64..4_000, width in 0u64..2_500) {
        for scheduler in Scheduler::ALL.into_iter().filter(|s| *s != Scheduler::WeightedFair) {
            let document = document(residents.clone(), from, from + width, &[scheduler]);
            let answer = choose(&document).unwrap();
            let tried = by_trying(&document, scheduler, from, from + width);
            let found = match &answer {
                Answer::Works(choice) => Some(choice.setting.slice_us),
                Answer::Refused(_) => None,
            };
            prop_assert_eq!(found, tried, "{:?}", scheduler);
            accepted(&document, &answer);
        }
    }

    /// Two residents have few weights: all of them are tried.
    #[test]
    fn weights_are_found_if_there_are_any(mut residents in residents(), from in 1_000u64..2_000) {
        residents.truncate(2);
        let document = document(residents.clone(), from, from + 3, &[Scheduler::WeightedFair]);
        let answer = choose(&document).unwrap();
        let base = document.setting(Scheduler::WeightedFair);
        let splits = |q: u64| match residents.len() {
            1 => vec![vec![q]],
            _ => (1..2 * q).map(|x| vec![x, 2 * q - x]).collect(),
        };
        let works = |q: u64| {
            splits(q).into_iter().any(|weights| all_kept(&document, &Setting { slice_us: q, weights, ..base.clone() }))
        };
        let tried = (from..=from + 3).rev().find(|q| works(*q));
        let found = match &answer {
            Answer::Works(choice) => Some(choice.setting.slice_us),
            Answer::Refused(_) => None,
        };
        prop_assert_eq!(found, tried);
        accepted(&document, &answer);
    }

    /// The least overhead of all schedulers, then the longest slice, then the order.
    #[test]
    fn the_least_overhead_is_chosen(residents in residents()) {
        let each = |s: Scheduler| choose(&document(residents.clone(), 1_000, 9_000, &[s])).unwrap();
        let works: Vec<Choice> = Scheduler::ALL.into_iter().filter_map(|s| match each(s) {
            Answer::Works(choice) => Some(choice),
            Answer::Refused(_) => None,
        }).collect();
        let least = works.iter().min_by_key(|c| (c.overhead_ppm, std::cmp::Reverse(c.setting.slice_us), c.setting.scheduler));
        let document = document(residents.clone(), 1_000, 9_000, &[]);
        let answer = choose(&document).unwrap();
        match &answer {
            Answer::Works(choice) => prop_assert_eq!(Some(choice), least),
            Answer::Refused(refusals) => {
                prop_assert!(works.is_empty());
                prop_assert_eq!(refusals.len(), Scheduler::ALL.len());
            }
        }
        accepted(&document, &answer);
    }
}

fn promised(least_share_ppm: u64, wait_worst_us: u64) -> Sla {
    let some = |x: u64| (x > 0).then_some(x);
    Sla { least_share_ppm: some(least_share_ppm), wait_worst_us: some(wait_worst_us), wait_p99_us: None }
}

fn two() -> Vec<Resident> {
    let a = Resident { sla: promised(600_000, 0), ..Resident::busy("train") };
    let b = Resident { sla: promised(150_000, 9_000), ..Resident::periodic("chat", 1_000, 20_000) };
    vec![a, b]
}

/// What is altered, and how.
type Alter<T> = (&'static str, fn(&mut T));

/// A choice that is altered in any way is refused.
#[test]
fn altered_choices_are_refused() {
    for schedulers in [&[Scheduler::WeightedFair][..], &[]] {
        let document = document(two(), 1_000, 30_000, schedulers);
        let Answer::Works(choice) = choose(&document).unwrap() else { panic!("there is a setting") };
        verify::choice(&document, &choice).unwrap();
        let alter: [Alter<Choice>; 14] = [
            ("slice", |c| c.setting.slice_us -= 1),
            ("longer slice", |c| c.setting.slice_us += 1),
            ("far slice", |c| c.setting.slice_us = 40_000),
            ("weight", |c| c.setting.weights[0] += 1_000),
            ("weights", |c| c.setting.weights.truncate(1)),
            ("scheduler", |c| c.setting.scheduler = Scheduler::Priority),
            ("other scheduler", |c| c.setting.scheduler = Scheduler::FixedShare),
            ("switch", |c| c.setting.switch_us = 50),
            ("averaging", |c| c.setting.averaging_factor += 1),
            ("overhead", |c| c.overhead_ppm -= 1),
            ("share", |c| c.bounds[0].share_ppm += 1),
            ("wait", |c| c.bounds[1].wait_worst_us = Some(1)),
            ("p99", |c| c.bounds[1].p99 = P99::Exact),
            ("figures", |c| c.bounds.truncate(1)),
        ];
        for (what, alter) in alter {
            let mut altered = choice.clone();
            alter(&mut altered);
            assert!(verify::choice(&document, &altered).is_err(), "{what} {:?}", choice.setting);
        }
        let mut greedy = document.clone();
        greedy.residents[0].sla.least_share_ppm = Some(choice.bounds[0].share_ppm + 1);
        assert_eq!(verify::choice(&greedy, &choice).unwrap_err().rule, Rule::Promise);
    }
}

/// The refusals; none if there is a setting after all.
fn refused(document: &Timeshare) -> Vec<Refusal> {
    match choose(document).unwrap() {
        Answer::Refused(refusals) => refusals,
        Answer::Works(_) => Vec::new(),
    }
}

/// Which promises fail between which slices can be worked out by hand.
#[test]
fn a_refusal_names_what_fails_where() {
    // Equal share of two: q / (2 (q + 100)) >= 0.48 from q = 2400; q + 200 <= 2000 up to 1800.
    let a = Resident { sla: promised(480_000, 0), ..Resident::busy("train") };
    let b = Resident { sla: promised(0, 2_000), ..Resident::periodic("chat", 500, 20_000) };
    let document = document(vec![a, b], 1_000, 30_000, &[Scheduler::EqualShare]);
    let failing = |from, to, resident: &str, limit, needed, best| Failing {
        slice_from_us: from,
        slice_to_us: to,
        resident: Some(resident.into()),
        limit,
        needed,
        best: Some(best),
    };
    let refusals = refused(&document);
    assert_eq!(
        refusals[0].failing,
        [
            failing(1_000, 1_800, "train", Limit::LeastSharePpm, 480_000, 473_684),
            failing(1_801, 30_000, "chat", Limit::WaitWorstUs, 2_000, 2_001),
        ]
    );
    verify::refusal(&document, &refusals).unwrap();
    let alter: [Alter<Refusal>; 8] = [
        ("gap", |r| r.failing[0].slice_to_us -= 1),
        ("too far", |r| {
            r.failing[0].slice_to_us = 2_500;
            r.failing[1].slice_from_us = 2_501;
        }),
        ("end", |r| r.failing.truncate(1)),
        ("resident", |r| r.failing[0].resident = Some("chat".into())),
        ("limit", |r| r.failing[1].limit = Limit::LeastSharePpm),
        ("needed", |r| r.failing[0].needed += 1),
        ("best", |r| r.failing[0].best = Some(1)),
        ("scheduler", |r| r.scheduler = Scheduler::FixedShare),
    ];
    for (what, alter) in alter {
        let mut altered = refusals.clone();
        alter(&mut altered[0]);
        assert!(verify::refusal(&document, &altered).is_err(), "{what}");
    }
    assert!(verify::refusal(&document, &[]).is_err());
}

/// Shares of 0.6 and 0.4 leave nothing for a switch, whatever the weights.
#[rstest]
#[case(600_000, 0, Limit::SumOfSharesPpm, 1_000_000, 996_677)]
#[case(500_000, 1_000, Limit::SumOfTurnsUs, 2_300, 2_000)]
fn sums_that_do_not_fit(
    #[case] share: u64,
    #[case] wait: u64,
    #[case] limit: Limit,
    #[case] needed: u64,
    #[case] best: u64,
) {
    let a = Resident { sla: promised(share, 0), ..Resident::busy("a") };
    let b = Resident { sla: promised(if wait == 0 { 400_000 } else { 0 }, wait), ..Resident::busy("b") };
    let document = document(vec![a, b], 1_000, 30_000, &[Scheduler::WeightedFair]);
    let refusals = refused(&document);
    let [Failing { limit: is, needed: sum, best: there, resident: None, .. }] = refusals[0].failing.as_slice() else {
        panic!("{refusals:?}")
    };
    assert_eq!((*is, *sum, *there), (limit, needed, Some(best)), "{refusals:?}");
    verify::refusal(&document, &refusals).unwrap();
    for alter in
        [|f: &mut Failing| f.needed += 1, |f: &mut Failing| f.best = None, |f: &mut Failing| f.slice_to_us = 9_000]
    {
        let mut altered = refusals.clone();
        alter(&mut altered[0].failing[0]);
        assert!(verify::refusal(&document, &altered).is_err());
    }
}

/// Unequal shares need weights; the slice is as long as the wait allows.
#[test]
fn weights_make_room_for_unequal_shares() {
    let document = document(two(), 1_000, 30_000, &[Scheduler::EqualShare, Scheduler::WeightedFair]);
    let Answer::Works(choice) = choose(&document).unwrap() else { panic!("there is a setting") };
    assert_eq!(choice.setting.scheduler, Scheduler::WeightedFair);
    assert_eq!(choice.overhead_ppm, overhead_ppm(&document.residents, &choice.setting));
    assert!(choice.bounds[0].share_ppm >= 600_000 && choice.bounds[1].wait_worst_us <= Some(9_000), "{choice:?}");
}

#[rstest]
#[case(Timeshare::default(), "residents")]
#[case(Timeshare { residents: vec![Resident::busy("")], ..Timeshare::default() }, "residents[0].name")]
#[case(Timeshare { residents: vec![Resident::busy("a"), Resident::busy("a")], ..Timeshare::default() }, "residents[1].name")]
#[case(Timeshare { residents: two(), slice_us: Some(0), ..Timeshare::default() }, "slice_us")]
#[case(Timeshare { residents: two(), slice_us: Some(2_000), frequency_hz: Some(480), ..Timeshare::default() }, "frequency_hz")]
#[case(Timeshare { residents: two(), frequency_hz: Some(62), ..Timeshare::default() }, "frequency_hz")]
#[case(Timeshare { residents: two(), averaging_factor: Some(0), ..Timeshare::default() }, "averaging_factor")]
#[case(Timeshare { residents: two(), max_vgpus: Some(1), ..Timeshare::default() }, "max_vgpus")]
#[case(Timeshare { residents: two(), switch_us: Some(20_000), ..Timeshare::default() }, "switch_us")]
#[case(Timeshare { residents: vec![Resident::periodic("a", 0, 5)], ..Timeshare::default() }, "residents[0].demand.burst_us")]
#[case(Timeshare { residents: vec![Resident { weight: 0, ..Resident::busy("a") }], ..Timeshare::default() }, "residents[0].weight")]
#[case(document(two(), 5_000, 4_000, &[]), "choose.slice_max_us")]
fn faults_name_their_field(#[case] document: Timeshare, #[case] path: &str) {
    assert_eq!(document.check().unwrap_err().path(), path);
    assert_eq!(choose(&document).unwrap_err().path(), path);
}

#[test]
fn defaults_are_the_vendors() {
    let with = |residents: Vec<Resident>, hz| Timeshare { residents, frequency_hz: hz, ..Timeshare::default() };
    let many: Vec<Resident> = (0..9).map(|i| Resident::busy(&i.to_string())).collect();
    let slice = |d: &Timeshare| d.setting(Scheduler::EqualShare).slice_us;
    assert_eq!(slice(&with(two(), None)), 2_000);
    assert_eq!(slice(&with(many, None)), 1_000);
    // The inverse of 63 Hz, as the guide has it: 15.873 ms.
    assert_eq!(slice(&with(two(), Some(63))), 15_873);
    let setting = with(two(), None).setting(Scheduler::EqualShare);
    assert_eq!((setting.switch_us, setting.averaging_factor, setting.max_vgpus), (100, 33, 2));
}
