//! No reader panics, whatever the text: fixtures are cut, spliced and overwritten. What
//! is accepted all the same must still be a document that can be written and read.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a helper that fails fails its test")]

use std::sync::LazyLock;

use proptest::prelude::*;
use slicewise_core::catalog::Catalog;
use slicewise_formats::{
    Kind, Options, Source, import, locate, read_requests, read_state, read_timeshare, write_state,
};

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::built_in().unwrap());

const FIXTURES: [(&str, &[Kind]); 10] = [
    (
        include_str!("../fixtures/two-gpus.txt"),
        &[Kind::SmiL, Kind::MigLgip, Kind::MigLgipp, Kind::MigLgi, Kind::MigLci],
    ),
    (include_str!("../fixtures/smi-q.xml"), &[Kind::SmiXml, Kind::SmiL]),
    (include_str!("../fixtures/topo.txt"), &[Kind::Topo]),
    (include_str!("../fixtures/topo-old.txt"), &[Kind::Topo]),
    (include_str!("../fixtures/mig-parted.yaml"), &[Kind::MigParted]),
    (include_str!("../fixtures/resourceslice.yaml"), &[Kind::ResourceSlice]),
    (include_str!("../fixtures/nodes.yaml"), &[Kind::Node]),
    (include_str!("../fixtures/openb-nodes.csv"), &[Kind::Openb]),
    (include_str!("../fixtures/openb-pods.csv"), &[Kind::Openb]),
    (include_str!("../fixtures/document.json"), &[]),
];

#[derive(Clone, Debug)]
enum Change {
    Cut(usize),
    Remove(usize, usize),
    Put(usize, String),
    Repeat(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "0",
            "9",
            "99999",
            "4294967295",
            "-1",
            "|",
            "\t",
            "\n",
            "{",
            "}",
            "]",
            ":",
            ",",
            "\"",
            "MIG ",
            "X",
            "é",
            "\u{1b}[4m",
            "...",
            "- ",
            "*",
            "&a "
        ])
        .prop_map(str::to_owned),
        ".{0,3}",
    ];
    prop_oneof![
        any::<usize>().prop_map(Change::Cut),
        (any::<usize>(), 1usize..20).prop_map(|(at, n)| Change::Remove(at, n)),
        (any::<usize>(), piece).prop_map(|(at, piece)| Change::Put(at, piece)),
        (any::<usize>(), 1usize..60).prop_map(|(at, n)| Change::Repeat(at, n)),
    ]
}

fn mutate(text: &str, changes: &[Change]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for change in changes {
        let place = |at: usize| at % (chars.len() + 1);
        match change {
            Change::Cut(at) => chars.truncate(place(*at)),
            Change::Remove(at, n) => {
                let from = place(*at);
                let to = (from + n).min(chars.len());
                chars.drain(from..to);
            }
            Change::Put(at, piece) => {
                let from = place(*at);
                chars.splice(from..from, piece.chars());
            }
            Change::Repeat(at, n) => {
                let from = place(*at);
                let piece = chars[from..(from + n).min(chars.len())].to_vec();
                chars.splice(from..from, piece);
            }
        }
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn readers_answer_on_any_text(
        which in 0..FIXTURES.len(), changes in prop::collection::vec(change(), 1..4), model in any::<bool>(),
    ) {
        let (text, kinds) = FIXTURES[which];
        let text = mutate(text, &changes);
        let options = Options {
            model: model.then(|| "h100-sxm5-80gb".to_owned()),
            config: Some("half".to_owned()),
            ..Options::default()
        };
        for kind in kinds {
            match import(*kind, &[Source { name: "f", text: &text }], &options, &CATALOG) {
                Ok(imported) => {
                    let written = write_state(&imported.state);
                    prop_assert_eq!(read_state("w", &written).unwrap(), imported.state);
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
        if kinds.is_empty() {
            drop(read_state("f", &text));
            drop(read_timeshare("f", &text));
            if let Err(error) = read_requests("f", &text) {
                let _ = locate(&text, error.path());
            }
        }
    }

    #[test]
    fn places_lie_inside_the_text(path in "(nodes|gpus|\\[[0-9]\\]|\\.|x){0,5}", text in "[\\[\\]{}:, \n\"a-]{0,40}") {
        if let Some((line, column)) = locate(&text, &path) {
            prop_assert!(line >= 1 && column >= 1 && line <= text.split('\n').count());
        }
    }
}
