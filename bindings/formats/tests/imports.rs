//! Reads the fixtures, which have the forms of the real tools.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use rstest::rstest;
use slicewise_core::catalog::Catalog;
use slicewise_core::fleet::{LinkKind, Mode, Part, State, Topology, Usage};
use slicewise_core::workload::Ask;
use slicewise_formats::{ImportError, Imported, Kind, Options, Source, import, read_state};

fn read(kind: Kind, text: &str, options: &Options) -> Result<Imported, ImportError> {
    import(kind, &[Source { name: "file", text }], options, &Catalog::built_in().unwrap())
}

fn into(state: State) -> Options {
    Options { into: Some(state), ..Options::default() }
}

const TWO: &str = include_str!("../fixtures/two-gpus.txt");

#[test]
fn a_transcript_gives_everything_at_once() {
    let imported = read(Kind::SmiL, TWO, &Options { idle: true, ..Options::default() }).unwrap();
    let node = &imported.state.nodes[0];
    assert_eq!((node.name.as_str(), node.gpus.len()), ("node-0", 2));
    let [first, second] = &node.gpus[..] else { panic!("two GPUs") };
    assert_eq!((second.mode, second.instances.len()), (Mode::Whole, 0));
    assert_eq!(first.profiles.len(), 3);
    let layout: Vec<_> = first.instances.iter().map(|i| (i.profile.as_str(), i.start, i.id, i.usage)).collect();
    let idle = Usage::Idle;
    assert_eq!(layout, [("3g.40gb", 0, Some(1), idle), ("1g.10gb", 4, Some(11), idle), ("1g.10gb", 6, Some(13), idle)]);
    // The UUID of the only 3g is certain; which of the two 1g has which is not.
    assert!(first.instances[0].uuid.as_deref().unwrap().ends_with("01"));
    assert_eq!(first.instances[1].uuid, None);
    assert!(imported.notes.iter().any(|n| n.contains("2 UUIDs")), "{:?}", imported.notes);
    let computes: Vec<_> = first.instances[0].compute_instances.iter().map(|c| (c.profile.as_str(), c.start)).collect();
    assert_eq!(computes, [("1c.3g.40gb", Some(0)), ("2c.3g.40gb", Some(1))]);
    assert!(first.instances[1].compute_instances.is_empty());
    assert!(imported.notes.iter().any(|n| n.contains("instance 13 holds no compute instance")), "{:?}", imported.notes);
}

#[test]
fn listings_merge_one_after_the_other() {
    let part = |from: &str, to: &str| {
        let start = TWO.find(from).unwrap();
        let end = if to.is_empty() { TWO.len() } else { TWO.find(to).unwrap() };
        &TWO[start..end]
    };
    let devices =
        read(Kind::SmiL, part("GPU 0:", "ops@box:~$ sudo nvidia-smi mig -lgip\n"), &Options::default()).unwrap();
    assert!(devices.notes[0].contains("legal starts were chosen"));
    let found =
        read(Kind::MigLgi, part("| GPU instances:", "ops@box:~$ sudo nvidia-smi mig -lci"), &into(devices.state))
            .unwrap();
    let gpu = &found.state.nodes[0].gpus[0];
    assert_eq!(gpu.instances.iter().map(|i| i.start).collect::<Vec<_>>(), [0, 4, 6]);
    assert!(gpu.instances[0].uuid.is_some());
    let computes = read(Kind::MigLci, part("| Compute instances:", ""), &into(found.state.clone())).unwrap();
    assert_eq!(computes.state.nodes[0].gpus[0].instances[0].compute_instances.len(), 2);
    // The devices again: nothing moves.
    let again =
        read(Kind::SmiL, part("GPU 0:", "ops@box:~$ sudo nvidia-smi mig -lgip\n"), &into(found.state.clone())).unwrap();
    assert_eq!(again.state, found.state);
    let profiles = read(
        Kind::MigLgip,
        part("| GPU instance profiles:", "ops@box:~$ sudo nvidia-smi mig -lgipp"),
        &Options::default(),
    );
    let profiles = profiles.unwrap();
    assert!(profiles.notes.iter().any(|n| n.contains("merge `nvidia-smi mig -lgi`")), "{:?}", profiles.notes);
}

#[rstest]
#[case::other_product("GPU 0: NVIDIA A30 (UUID: GPU-1)", Kind::SmiL, "contradiction", Some(1))]
#[case::other_devices(
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n  MIG 7g.80gb     Device  0: (UUID: MIG-1)",
    Kind::SmiL,
    "contradiction",
    Some(1)
)]
#[case::too_many(
    "GPU 2: NVIDIA A30 (UUID: GPU-1)\n  MIG 4g.24gb     Device  0: (UUID: MIG-1)\n  MIG 1g.6gb     Device  1: (UUID: MIG-2)",
    Kind::SmiL,
    "no_arrangement",
    Some(1)
)]
#[case::no_such_profile(
    "GPU 2: NVIDIA A30 (UUID: GPU-1)\n  MIG 3g.24gb     Device  0: (UUID: MIG-1)",
    Kind::SmiL,
    "profile_not_on_model",
    Some(1)
)]
#[case::no_gpu_above("  MIG 3g.24gb     Device  0: (UUID: MIG-1)", Kind::SmiL, "malformed", Some(1))]
#[case::cut_row("| GPU instances: |\n|   0  MIG 1g.10gb         19 |", Kind::MigLgi, "malformed", Some(2))]
#[case::other_place(
    "| GPU instances: |\n|   0  MIG 3g.40gb  9  1  2:4 |",
    Kind::MigLgi,
    "placement_not_on_model",
    Some(2)
)]
#[case::other_profile(
    "| GPU instances: |\n|   0  MIG 3g.20gb  9  1  4:4 |",
    Kind::MigLgi,
    "profile_not_on_model",
    Some(2)
)]
#[case::nothing("", Kind::MigLgi, "listing_missing", None)]
#[case::unknown_model("| GPU instances: |\n|   5  MIG 5g.50gb  9  1  4:4 |", Kind::MigLgi, "model_not_found", Some(2))]
#[case::instance_missing(
    "| Compute instances: |\n|   0   77   MIG 1g.10gb   0   0   0:1 |",
    Kind::MigLci,
    "instance_unknown",
    Some(2)
)]
fn faults_name_their_line(#[case] text: &str, #[case] kind: Kind, #[case] code: &str, #[case] line: Option<usize>) {
    let state = read(Kind::SmiL, TWO, &Options::default()).unwrap().state;
    let error = read(kind, text, &into(state)).unwrap_err();
    assert_eq!((error.fault().code(), error.line(), error.file()), (code, line, Some("file")), "{error}");
}

#[test]
fn profiles_that_fit_two_geometries_are_ambiguous() {
    let text = "GPU  0 Profile ID 14 Placements: {0,2}:2\n";
    let mut catalog = Catalog::default();
    for (id, slices) in [("x", 4), ("y", 8)] {
        let model = format!(
            r#"{{"models":[{{"id":"{id}","memory_slices":{slices},"profiles":[{{"name":"2g.10gb","id":14,"compute_slices":2,
            "placements":{{"starts":[0,2],"size":2}}}}]}}]}}"#
        );
        catalog.add(read_state("m", &model).unwrap().models.remove(0)).unwrap();
    }
    let source = [Source { name: "file", text }];
    let error = import(Kind::MigLgipp, &source, &Options::default(), &catalog).unwrap_err();
    assert_eq!(error.fault().code(), "model_ambiguous");
    assert!(error.to_string().contains("x, y; pass `--model`"), "{error}");
    let options = Options { model: Some("y".into()), ..Options::default() };
    assert_eq!(import(Kind::MigLgipp, &source, &options, &catalog).unwrap().state.nodes[0].gpus[0].model, "y");
}

#[test]
fn xml_of_a_mixed_node() {
    let text = include_str!("../fixtures/smi-q.xml");
    let imported = read(Kind::SmiXml, text, &Options { node: Some("a".into()), ..Options::default() }).unwrap();
    let [mig, whole] = &imported.state.nodes[0].gpus[..] else { panic!("two GPUs") };
    let layout: Vec<_> = mig.instances.iter().map(|i| (i.profile.as_str(), i.id, i.usage)).collect();
    assert_eq!(layout, [("3g.40gb", Some(1), Usage::Busy), ("1g.20gb", Some(9), Usage::Busy)]);
    assert_eq!((whole.model.as_str(), whole.mode, whole.memory_mib), ("l40s", Mode::Whole, Some(45466)));
    let lease = &imported.state.leases[0];
    assert_eq!((lease.placements[0].gpu, &lease.placements[0].part), (Some(1), &Part::Whole));
    let idle = read(Kind::SmiXml, text, &Options { idle: true, ..Options::default() }).unwrap();
    let usages: Vec<Usage> = idle.state.nodes[0].gpus[0].instances.iter().map(|i| i.usage).collect();
    // A process runs in the first, whatever the options say.
    assert_eq!(usages, [Usage::Busy, Usage::Idle]);
    let error = read(Kind::SmiXml, "<nvidia_smi_log>\n<gpu>\n</nvidia_smi_log>", &Options::default()).unwrap_err();
    assert_eq!((error.fault().code(), error.line()), ("malformed", Some(3)), "{error}");
}

#[test]
fn xml_keeps_known_starts() {
    let state = r#"{"nodes":[{"name":"node-0","gpus":[{"model":"h100-sxm5-80gb","mode":"mig","instances":[
        {"profile":"1g.20gb","start":0,"id":9},{"profile":"3g.40gb","start":4,"id":1}]}]}]}"#;
    let options = into(read_state("s", state).unwrap());
    let imported = read(Kind::SmiXml, include_str!("../fixtures/smi-q.xml"), &options).unwrap();
    let starts: Vec<_> = imported.state.nodes[0].gpus[0].instances.iter().map(|i| (i.start, i.id)).collect();
    assert_eq!(starts, [(0, Some(9)), (4, Some(1))]);
}

#[test]
fn matrices_with_every_trap() {
    let options = Options { model: Some("a100-40gb".into()), ..Options::default() };
    let imported = read(Kind::Topo, include_str!("../fixtures/topo.txt"), &options).unwrap();
    let node = &imported.state.nodes[0];
    assert_eq!(node.gpus.iter().map(|g| g.numa_node).collect::<Vec<_>>(), [Some(0), None, Some(1)]);
    assert!(imported.notes[0].contains("`0-7`"), "{:?}", imported.notes);
    assert_eq!(node.nics[1].device.as_deref(), Some("mlx5_bond_0"));
    let links: Vec<_> = node.links.iter().map(|l| (l.a.as_str(), l.b.as_str(), l.kind.code())).collect();
    assert_eq!(links.len(), 6);
    assert!(links.contains(&("GPU1", "NIC1", "PXB".to_owned())));
    let topology = Topology::of(node).unwrap();
    assert_eq!((topology.between(1, 0), topology.to_nic(2)), (LinkKind::NvLink(4), LinkKind::Sys));
    let old = read(Kind::Topo, include_str!("../fixtures/topo-old.txt"), &into(imported.state)).unwrap();
    let node = &old.state.nodes[0];
    assert_eq!((node.gpus.len(), node.nics.len(), node.links.len()), (3, 1, 2));
    assert_eq!(node.nics[0].device.as_deref(), Some("mlx5_0"));
    let cut = read(Kind::Topo, "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV?\t0\n", &options).unwrap_err();
    assert_eq!((cut.fault().code(), cut.line()), ("malformed", Some(2)));
}

#[test]
fn configurations_apply_by_index_and_filter() {
    let text = include_str!("../fixtures/mig-parted.yaml");
    let unsure = read(Kind::MigParted, text, &Options::default()).unwrap_err();
    assert_eq!(unsure.fault().code(), "config_needed");
    assert!(unsure.to_string().contains("half, none"), "{unsure}");
    let state = r#"{"gpus":[{"model":"h100-sxm5-80gb","count":3,"node":"a"},{"model":"a30-24gb","node":"a"}]}"#;
    let with = |config: &str| Options { config: Some(config.into()), ..into(read_state("s", state).unwrap()) };
    let half = read(Kind::MigParted, text, &with("half")).unwrap();
    let counts: Vec<_> = half.state.nodes[0].gpus.iter().map(|g| (g.mode, g.instances.len())).collect();
    assert_eq!(counts, [(Mode::Mig, 3), (Mode::Whole, 0), (Mode::Mig, 3), (Mode::Mig, 4)]);
    assert!(half.state.nodes[0].gpus[0].instances.iter().all(|i| i.usage == Usage::Idle));
    let none = read(Kind::MigParted, text, &Options { config: Some("none".into()), ..into(half.state) }).unwrap();
    assert!(none.state.nodes[0].gpus.iter().all(|g| g.mode == Mode::Whole && g.instances.is_empty()));
    assert!(none.notes[0].contains("replaces the 3 instances"), "{:?}", none.notes);
    assert_eq!(read(Kind::MigParted, text, &with("third")).unwrap_err().fault().code(), "config_unknown");
    let full = text.replace("\"1g.6gb\": 4", "\"1g.6gb\": 5");
    let error = read(Kind::MigParted, &full, &with("half")).unwrap_err();
    assert_eq!((error.fault().code(), error.line()), ("no_arrangement", Some(11)), "{error}");
    assert!(error.to_string().contains("5 x 1g.6gb"), "{error}");
}

#[test]
fn resource_slices_name_their_node() {
    let imported =
        read(Kind::ResourceSlice, include_str!("../fixtures/resourceslice.yaml"), &Options::default()).unwrap();
    let node = &imported.state.nodes[0];
    let gpu = &node.gpus[0];
    assert_eq!((node.name.as_str(), gpu.index, gpu.model.as_str()), ("alpha", Some(1), "a30-24gb"));
    assert_eq!((gpu.mode, gpu.driver.as_deref()), (Mode::Mig, Some("580.126.20")));
    assert_eq!(gpu.profiles.len(), 1);
    let profile = &gpu.profiles[0];
    assert_eq!((profile.id, profile.max_instances, profile.memory_mib), (Some(5), Some(2), Some(11968)));
    assert_eq!(profile.placements.as_ref().unwrap().starts, [0, 2]);
    let error = read(Kind::ResourceSlice, "kind: Pod\n", &Options::default()).unwrap_err();
    assert_eq!(error.fault().code(), "listing_missing");
}

#[test]
fn nodes_of_a_cluster() {
    let imported = read(Kind::Node, include_str!("../fixtures/nodes.yaml"), &Options::default()).unwrap();
    let [alpha, beta, gamma, delta] = &imported.state.nodes[..] else { panic!("four nodes") };
    assert_eq!((alpha.zone.as_deref(), alpha.region.as_deref()), (Some("north-1"), Some("north")));
    assert_eq!((alpha.cpu_milli, alpha.memory_mib, alpha.cordoned), (Some(95_500), Some(1_031_558), true));
    let layouts: Vec<Vec<&str>> =
        alpha.gpus.iter().map(|g| g.instances.iter().map(|i| i.profile.as_str()).collect()).collect();
    assert_eq!(layouts.concat().len(), 6);
    assert_eq!(layouts[0], ["3g.40gb", "3g.40gb"]);
    assert_eq!(alpha.gpus[1].driver.as_deref(), Some("550.54.15"));
    assert_eq!((beta.gpus.len(), beta.gpus[0].model.as_str(), beta.gpus[0].memory_mib), (4, "tesla-t4", Some(15360)));
    assert_eq!(gamma.gpus.iter().map(|g| g.instances.len()).collect::<Vec<_>>(), [7, 7]);
    assert_eq!((delta.gpus.len(), delta.cpu_milli), (0, Some(4000)));
    let error = read(
        Kind::Node,
        r#"{"kind":"Node","metadata":{"name":"x"},"status":{"capacity":{"cpu":"many"}}}"#,
        &Options::default(),
    );
    assert!(error.unwrap_err().to_string().contains("`many` is not a quantity of `cpu`"));
}

#[test]
fn traces_become_nodes_and_requests() {
    let nodes = read(Kind::Openb, include_str!("../fixtures/openb-nodes.csv"), &Options::default()).unwrap();
    assert_eq!(nodes.state.nodes.iter().map(|n| n.gpus.len()).collect::<Vec<_>>(), [2, 8, 0]);
    assert_eq!(nodes.state.models.iter().map(|m| m.id.as_str()).collect::<Vec<_>>(), ["P100", "G2"]);
    let pods = read(Kind::Openb, include_str!("../fixtures/openb-pods.csv"), &into(nodes.state)).unwrap();
    let asks: Vec<_> = pods.requests.iter().map(|r| &r.any_of[0]).collect();
    assert!(matches!(asks[0], Ask::Gpus(g) if g.count == 1));
    assert!(matches!(asks[1], Ask::Fraction(f) if f.milli == 460));
    assert!(matches!(asks[2], Ask::NodeOnly {}));
    assert_eq!(pods.requests[1].models, ["P100", "G2"]);
    let odd = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,2,500\n";
    let error = read(Kind::Openb, odd, &Options::default()).unwrap_err();
    assert_eq!((error.fault().code(), error.line()), ("malformed", Some(2)), "{error}");
    let other = read(Kind::Openb, "a,b\n1,2\n", &Options::default()).unwrap_err();
    assert_eq!(other.fault().code(), "listing_missing");
}

#[test]
fn kinds_have_names() {
    for kind in Kind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(*kind));
    }
    assert!("smi".parse::<Kind>().unwrap_err().to_string().contains("smi-l, mig-lgip"));
}
