//! Documents: what is read, what is refused and where, and that writing loses nothing.

use proptest::prelude::*;
use rstest::rstest;
use slicewise_core::fleet::{Gpu, Instance, Lease, Link, LinkKind, Mode, Nic, Node, Part, Placement, State, Usage};
use slicewise_formats::{locate, read_requests, read_state, read_timeshare, schema, write_state, write_state_yaml};

const DOCUMENT: &str = include_str!("../fixtures/document.json");

#[test]
fn shorthand_becomes_nodes() {
    let state = read_state("d", DOCUMENT).unwrap();
    let nodes: Vec<_> = state.nodes.iter().map(|n| (n.name.as_str(), n.gpus.len())).collect();
    assert_eq!(nodes, [("alpha", 2), ("node-0", 3), ("beta", 3)]);
    assert_eq!(state.nodes[2].gpus.iter().map(|g| g.mode).collect::<Vec<_>>(), [Mode::Whole, Mode::Mig, Mode::Mig]);
    assert_eq!((state.version, state.leases.len()), (7, 1));
    assert_eq!(state.nodes[1].gpus[2].driver.as_deref(), Some("550.54.15"));
    let many = read_state("d", r#"{"gpus":[{"model":"a100-80gb","count":7000,"mig":true}]}"#).unwrap();
    assert_eq!(many.nodes[0].gpus.len(), 7000);
    let error = read_state("d", r#"{"gpus":[{"model":"x","count":4000000000}]}"#).unwrap_err();
    assert_eq!(error.path(), "gpus");
}

#[rstest]
#[case::unknown_field("{\n  \"nodes\": [\n    {\"name\": \"a\", \"gpu\": 1}\n  ]\n}", "nodes[0].gpu", (3, 26), "unknown field `gpu`")]
#[case::wrong_schema("{\"schema\": \"slicewise/v2\"}", "schema", (1, 12), "unknown schema `slicewise/v2`; this version reads `slicewise/v1`")]
#[case::wrong_type("{\"nodes\": [{\"name\": 1}]}", "nodes[0].name", (1, 21), "invalid type")]
#[case::wrong_link("{\"nodes\": [{\"name\": \"a\", \"links\": [{\"a\": \"GPU0\", \"b\": \"GPU1\", \"kind\": \"NV\"}]}]}", "nodes[0].links[0].kind", (1, 71), "unknown link `NV`")]
#[case::cut("{\"nodes\": [", "", (1, 11), "EOF")]
#[case::trailing("{} x", "", (1, 4), "trailing characters")]
#[case::list("[]", "", (1, 1), "expected a `slicewise/v1` document")]
#[case::yaml_field("nodes:\n- name: a\n  gpus:\n  - modell: x\n", "nodes[0].gpus[0].modell", (4, 13), "modell")]
#[case::yaml_schema("schema: v9\n", "schema", (1, 9), "unknown schema `v9`")]
#[case::empty(" \n", "", (0, 0), "the text is empty")]
#[case::yaml_number("version: -1\n", "version", (1, 10), "expected a whole number below 2^64")]
#[case::yaml_syntax("nodes: [\n", "", (2, 1), "")]
fn faults_have_a_place(#[case] text: &str, #[case] path: &str, #[case] at: (usize, usize), #[case] says: &str) {
    let error = read_state("file", text).unwrap_err();
    let place = (error.line().unwrap_or(0), error.column().unwrap_or(0));
    assert!(error.message().contains(says), "{error}");
    if !says.is_empty() {
        assert_eq!((error.path(), place), (path, at), "{error}");
    }
    assert!(error.to_string().starts_with("file"), "{error}");
    assert!(!error.message().contains(" at line ") && !error.message().contains('\n'), "{error}");
}

#[rstest]
#[case(DOCUMENT, &["request-1", "big"])]
#[case(r#"[{"profile": "1g.10gb"}, {"name": "x", "profile": "2g.20gb", "count": 3}]"#, &["request-1", "x"])]
#[case(r#"{"profile": "1g.10gb"}"#, &["request-1"])]
#[case("profile: 1g.10gb\nnodes:\n- key: zone\n  values: [a]\n", &["request-1"])]
#[case("- any_of:\n  - node_only: {}\n  cpu_milli: 4000\n- name: ''\n  profile: 3g.40gb\n", &["request-1", "request-2"])]
#[case("requests:\n- profile: 1g.10gb\n", &["request-1"])]
#[case(include_str!("../fixtures/requests.csv"), &["1-1g.10gb", "2-3g.40gb"])]
#[case("\u{feff}name, profile\na, 1g.10gb\n", &["a"])]
#[case("requests: []\n", &[])]
fn requests_come_in_four_forms(#[case] text: &str, #[case] names: &[&str]) {
    let requests = read_requests("file", text).unwrap();
    assert_eq!(requests.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), names);
    assert!(requests.iter().all(|r| !r.gang && !r.alternatives().is_empty()));
}

#[test]
fn csv_rows_keep_counts_and_values() {
    let requests = read_requests("file", include_str!("../fixtures/requests.csv")).unwrap();
    assert_eq!(requests.iter().map(|r| (r.count, r.value)).collect::<Vec<_>>(), [(4, Some(3)), (2, None)]);
}

#[rstest]
#[case::twice("[{\"name\":\"a\",\"profile\":\"x\"},\n {\"name\":\"a\",\"profile\":\"y\"}]", "[1].name", (2, 10))]
#[case::in_document("{\"requests\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "requests[1].name", (1, 35))]
#[case::none("{\"version\": 1}", "", (1, 1))]
#[case::unknown("[{\"profil\":\"x\"}]", "[0].profil", (1, 12))]
#[case::csv_number("profile,count\n1g.10gb,many\n", "column 2", (2, 1))]
#[case::csv_cells("profile,count\n1g.10gb\n", "", (2, 1))]
#[case::csv_twice("profile,name\nx,a\nx,a\n", "name", (3, 1))]
#[case::csv_empty("profile,count\n,3\n", "profile", (2, 1))]
fn wrong_requests_have_a_place(#[case] text: &str, #[case] path: &str, #[case] at: (usize, usize)) {
    let error = read_requests("file", text).unwrap_err();
    assert_eq!((error.path(), error.line(), error.column()), (path, Some(at.0), Some(at.1)), "{error}");
}

#[test]
fn faults_found_later_can_be_placed() {
    let (line, column) = locate(DOCUMENT, "nodes[0].gpus[1].model").unwrap();
    let at = DOCUMENT.lines().nth(line - 1).unwrap();
    assert!(at[column - 1..].starts_with("\"a100-80gb\"}"), "{at}");
}

#[rstest]
#[case::nobody("{\"residents\": []}", "residents", (1, 15))]
#[case::range("residents:\n- name: a\n  demand: { burst_us: 0, period_us: 9 }\n", "residents[0].demand.burst_us", (3, 23))]
#[case::unknown("residents:\n- name: a\n  sla: { share: 1 }\n", "residents[0].sla.share", (3, 17))]
#[case::negative("residents:\n- name: a\nslice_us: -1\n", "slice_us", (3, 11))]
#[case::twice("residents: [{ name: a }, { name: a }]", "residents[1].name", (1, 34))]
fn shared_gpus_have_faults_with_a_place(#[case] text: &str, #[case] path: &str, #[case] at: (usize, usize)) {
    let error = read_timeshare("file", text).unwrap_err();
    assert_eq!((error.path(), error.line(), error.column()), (path, Some(at.0), Some(at.1)), "{error}");
}

#[test]
fn shared_gpus_are_read_from_both_syntaxes() {
    let yaml = "residents:\n- { name: a, demand: { burst_us: 1, period_us: 9 } }\nscheduler: weighted_fair\n";
    let json =
        r#"{"residents": [{"name": "a", "demand": {"burst_us": 1, "period_us": 9}}], "scheduler": "weighted_fair"}"#;
    assert_eq!(read_timeshare("y", yaml).unwrap(), read_timeshare("j", json).unwrap());
}

#[test]
fn the_schema_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/slicewise-v1.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, schema()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == schema(), "run the tests with UPDATE_SCHEMA=1 and look at what changed");
}

#[test]
fn written_documents_say_their_schema() {
    let state = read_state("d", DOCUMENT).unwrap();
    let text = write_state(&state);
    assert!(text.starts_with("{\n  \"schema\": \"slicewise/v1\",\n  \"version\": 7,\n"), "{text}");
    assert_eq!(read_state("d", &text).unwrap(), state);
    let yaml = write_state_yaml(&state);
    assert!(yaml.starts_with("schema: slicewise/v1\n"), "{yaml}");
    assert_eq!(read_state("d", &yaml).unwrap(), state, "{yaml}");
}

/// Names that a careless writer of YAML would turn into something else.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9.+/-]{1,12}",
        prop::sample::select(vec![
            "null",
            "yes",
            "~",
            "1.0",
            "0x10",
            "- a",
            "a: b",
            "#x",
            "1e3",
            "true",
            "",
            " a ",
            "2001-01-01"
        ])
        .prop_map(str::to_owned),
        ".{0,10}",
    ]
}

prop_compose! {
    fn gpu()(
        model in name(), uuid in prop::option::of(name()), index in prop::option::of(0u32..9), mig in any::<bool>(),
        instances in prop::collection::vec((name(), 0u16..8, prop::option::of(0u32..14), any::<bool>()), 0..3),
    ) -> Gpu {
        let instances = instances.into_iter().map(|(profile, start, id, idle)| Instance {
            profile, start, id, usage: if idle { Usage::Idle } else { Usage::Busy }, ..Instance::default()
        }).collect();
        Gpu { model, uuid, index, mode: if mig { Mode::Mig } else { Mode::Whole }, instances, ..Gpu::default() }
    }
}

prop_compose! {
    fn state()(
        version in any::<u64>(),
        nodes in prop::collection::vec((name(), prop::collection::vec(gpu(), 0..3), prop::collection::btree_map(name(), name(), 0..3)), 0..3),
        leases in prop::collection::vec((name(), name(), any::<u16>(), any::<u32>()), 0..3),
    ) -> State {
        let nodes = nodes.into_iter().map(|(name, gpus, labels)| Node {
            name, gpus, labels,
            nics: vec![Nic { name: "NIC0".into(), device: None }],
            links: vec![Link { a: "GPU0".into(), b: "NIC0".into(), kind: LinkKind::NvLink(4) }],
            ..Node::default()
        }).collect();
        let leases = leases.into_iter().map(|(name, node, milli, memory_mib)| Lease {
            name,
            placements: vec![
                Placement { node: node.clone(), gpu: Some(1), part: Part::Fraction { milli, memory_mib, contexts: 1 }, ..Placement::default() },
                Placement { node, ..Placement::default() },
            ],
            ..Lease::default()
        }).collect();
        State { version, nodes, leases, ..State::default() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn writing_and_reading_gives_the_same(state in state()) {
        let json = write_state(&state);
        prop_assert_eq!(&read_state("json", &json).unwrap(), &state);
        prop_assert_eq!(&write_state(&read_state("json", &json).unwrap()), &json);
        let yaml = write_state_yaml(&state);
        let read = read_state("yaml", &yaml);
        prop_assert_eq!(read.as_ref().ok(), Some(&state), "{:?}\n{}", read, yaml);
    }
}

/// A key that is there twice says two things; neither syntax keeps the last silently.
#[rstest]
#[case("{\"version\": 1, \"version\": 2}")]
#[case("version: 1\nversion: 2\n")]
fn keys_stand_once(#[case] text: &str) {
    assert!(read_state("file", text).unwrap_err().message().contains("duplicate"), "{text}");
}

/// `n`, `on` and `no` are names in YAML 1.2.
#[test]
fn names_are_not_booleans() {
    let state = read_state("file", "nodes:\n- name: n\n- { name: on }\n- name: no\n").unwrap();
    assert_eq!(state.nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["n", "on", "no"]);
}
