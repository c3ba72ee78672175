//! Reads the published tool outputs that lie beside the repository. A checkout without
//! them passes: the fixtures of `tests/imports.rs` have the same forms.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a helper that fails fails its test")]

use rstest::rstest;
use slicewise_core::catalog::Catalog;
use slicewise_core::fleet::{Gpu, LinkKind, Mode, Node, Usage};
use slicewise_core::workload::Ask;
use slicewise_formats::{ImportError, Imported, Kind, Options, Source, import, write_state};

fn text(path: &str) -> Option<String> {
    std::fs::read_to_string(format!("{}/../../../shared/{path}", env!("CARGO_MANIFEST_DIR"))).ok()
}

fn sample_with(kind: Kind, name: &str, options: &Options) -> Option<Result<Imported, ImportError>> {
    let text = text(&format!("catalog/samples/{name}"))?;
    Some(import(kind, &[Source { name, text: &text }], options, &Catalog::built_in().unwrap()))
}

fn sample(kind: Kind, name: &str) -> Option<Imported> {
    sample_with(kind, name, &Options::default()).map(Result::unwrap)
}

fn model(name: &str) -> Options {
    Options { model: Some(name.to_owned()), ..Options::default() }
}

fn node(imported: &Imported) -> &Node {
    assert_eq!(imported.state.nodes.len(), 1);
    &imported.state.nodes[0]
}

fn layout(gpu: &Gpu) -> Vec<(&str, u16, Option<u32>)> {
    gpu.instances.iter().map(|i| (i.profile.as_str(), i.start, i.id)).collect()
}

#[rstest]
#[case("lgip-a100-sxm4-40gb.txt", "a100-40gb", 7)]
#[case("lgip-gh200-96gb.txt", "gh200-96gb", 7)]
#[case("lgip-h100-80gb-hbm3.txt", "h100-sxm5-80gb", 7)]
#[case("lgip-h100-nvl.txt", "h100-nvl-94gb", 7)]
#[case("lgip-h100-pcie.txt", "h100-pcie-80gb", 7)]
#[case("lgip-lgipp-lgi-a30.txt", "a30-24gb", 4)]
#[case("lgip-lgipp-lgi-rtx-pro-6000-se.txt", "rtx-pro-6000-96gb", 11)]
fn profiles_tell_the_model(#[case] name: &str, #[case] model: &str, #[case] profiles: usize) {
    let Some(imported) = sample(Kind::MigLgip, name) else { return };
    let gpu = &node(&imported).gpus[0];
    assert_eq!((gpu.model.as_str(), gpu.mode, gpu.profiles.len()), (model, Mode::Mig, profiles));
    let catalog = Catalog::built_in().unwrap();
    for profile in &gpu.profiles {
        let own = catalog.find(model).unwrap().profiles.iter().find(|p| p.name == profile.name).unwrap();
        assert_eq!(profile.placements, own.placements, "{}", profile.name);
        assert_eq!((profile.id, profile.sm, profile.max_instances), (own.id, own.sm, own.max_instances));
        assert_eq!((profile.decoders, profile.jpeg, profile.ofa), (own.decoders, own.jpeg, own.ofa));
        assert_eq!((profile.memory_mib, &profile.memory_gib), (None, &own.memory_gib));
        assert_eq!(profile.compute_instances, own.compute_instances);
    }
}

#[test]
fn instances_lie_where_the_listing_says() {
    let Some(imported) = sample(Kind::MigLgi, "lgip-lgipp-lgi-rtx-pro-6000-se.txt") else { return };
    let gpu = &node(&imported).gpus[0];
    assert_eq!(layout(gpu), [("2g.48gb", 0, Some(1)), ("1g.24gb", 6, Some(5)), ("1g.24gb", 9, Some(6))]);
    let Some(imported) = sample(Kind::MigLgi, "lgip-lgipp-lgi-a30.txt") else { return };
    assert_eq!(layout(&node(&imported).gpus[0])[3], ("1g.6gb", 3, Some(6)));
    let Some(imported) = sample(Kind::MigLgi, "cgi-order-a100-3-2-1-1.txt") else { return };
    let gpu = &node(&imported).gpus[0];
    assert_eq!(gpu.model, "a100-40gb");
    let rest = [("1g.5gb", 0, Some(7)), ("1g.5gb", 1, Some(8)), ("2g.10gb", 2, Some(4)), ("3g.20gb", 4, Some(2))];
    assert_eq!(layout(gpu), rest);
    assert!(imported.notes.iter().any(|n| n.contains("Insufficient Resources")), "{:?}", imported.notes);
}

#[test]
fn ids_do_not_tell_starts() {
    let Some(imported) = sample_with(Kind::MigLgi, "lgi-h100-pcie-swapped-ids.txt", &model("h100-pcie-80gb")) else {
        return;
    };
    let imported = imported.unwrap();
    let gpu = &node(&imported).gpus[0];
    assert_eq!(gpu.model, "h100-pcie-80gb");
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    assert_eq!(gpu.instances.iter().map(|i| i.id.unwrap()).collect::<Vec<_>>(), [11, 12, 13, 14, 7, 8, 9]);
    let Some(imported) = sample(Kind::MigLgi, "lgi-two-gpus-different-ids.txt") else { return };
    let [a, b] = &node(&imported).gpus[..] else { panic!("two GPUs") };
    assert_eq!(
        layout(a).iter().map(|l| (l.0, l.1)).collect::<Vec<_>>(),
        layout(b).iter().map(|l| (l.0, l.1)).collect::<Vec<_>>()
    );
    assert_eq!((a.instances[3].id, b.instances[3].id), (Some(2), Some(1)));
    assert!(imported.notes[0].contains("`h100-sxm5-80gb`, `h100-pcie-80gb`"), "{:?}", imported.notes);
}

#[test]
fn default_compute_instances_go_without_saying() {
    let Some(imported) = sample_with(Kind::MigLci, "lgi-lci-h100-7x1g.txt", &model("h100-sxm5-80gb")) else { return };
    let imported = imported.unwrap();
    let gpu = &node(&imported).gpus[0];
    assert_eq!(gpu.instances.len(), 7);
    assert!(gpu.instances.iter().all(|i| i.compute_instances.is_empty() && i.usage == Usage::Busy));
}

#[test]
fn compute_instances_need_their_gpu_instance() {
    let name = "lcip-lci-a100-3g.txt";
    let Some(refused) = sample_with(Kind::MigLci, name, &Options::default()) else { return };
    let refused = refused.unwrap_err();
    assert_eq!((refused.fault().code(), refused.line()), ("instance_unknown", Some(24)));
    let state = r#"{"nodes":[{"name":"node-0","gpus":[{"model":"a100-40gb","mode":"mig",
        "instances":[{"profile":"3g.20gb","start":4,"id":1}]}]}]}"#;
    let into = Some(slicewise_formats::read_state("state", state).unwrap());
    let merged = sample_with(Kind::MigLci, name, &Options { into, ..Options::default() }).unwrap().unwrap();
    let computes = &node(&merged).gpus[0].instances[0].compute_instances;
    assert_eq!(computes.iter().map(|c| c.id.unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(computes.iter().all(|c| c.profile == "1c.3g.20gb" && c.start.is_none()));
}

#[test]
fn placements_alone_fit_a_whole_family() {
    let Some(imported) = sample(Kind::MigLgipp, "lgipp-7slice.txt") else { return };
    assert_eq!(node(&imported).gpus[0].profiles.len(), 7);
    assert!(imported.notes[0].contains("`gb300`"), "{:?}", imported.notes);
    let Some(given) = sample_with(Kind::MigLgipp, "lgipp-7slice.txt", &model("NVIDIA H200")) else { return };
    let given = given.unwrap();
    assert_eq!(node(&given).gpus[0].profiles[0].name, "1g.18gb");
}

#[rstest]
#[case("smi-L-a100-7x1g.txt", "a100-80gb", &[0, 1, 2, 3, 4, 5, 6])]
#[case("smi-L-h100-mixed.txt", "h100-sxm5-80gb", &[0, 2, 3, 4])]
fn devices_without_places_get_legal_ones(#[case] name: &str, #[case] model: &str, #[case] starts: &[u16]) {
    let Some(imported) = sample(Kind::SmiL, name) else { return };
    let gpu = &node(&imported).gpus[0];
    assert_eq!((gpu.model.as_str(), gpu.mode), (model, Mode::Mig));
    assert_eq!(gpu.instances.iter().map(|i| i.start).collect::<Vec<_>>(), starts);
    assert!(gpu.instances.iter().all(|i| i.uuid.is_some()));
    assert!(imported.notes[0].contains("legal starts were chosen"), "{:?}", imported.notes);
}

#[test]
fn xml_gives_driver_memory_and_devices() {
    let Some(imported) = sample(Kind::SmiXml, "smi-q-x-a100-2x3g.xml") else { return };
    let gpu = &node(&imported).gpus[0];
    assert_eq!((gpu.model.as_str(), gpu.driver.as_deref()), ("a100-40gb", Some("510.47.03")));
    assert_eq!((gpu.memory_mib, gpu.pci_address.as_deref()), (Some(40355), Some("00000000:00:04.0")));
    assert_eq!(layout(gpu), [("3g.20gb", 0, Some(1)), ("3g.20gb", 4, Some(2))]);
}

#[rstest]
#[case(Kind::SmiL, "smi-mig-devices-h100-nvl.txt", "nvidia-smi mig -lgi")]
#[case(Kind::MigLgi, "smi-mig-devices-h100-nvl.txt", "nvidia-smi mig -lgi")]
#[case(Kind::MigLgip, "amd-smi-partition-mi300x.txt", "AMD partitions are not read yet")]
#[case(Kind::SmiL, "smi-q-x-a100-2x3g.xml", "import it as `smi-xml`")]
#[case(Kind::MigLgip, "cgi-order-a100-3-2-1-1.txt", "run `nvidia-smi mig -lgip`")]
#[case(Kind::SmiXml, "mig-parted-all-balanced.yaml", "run `nvidia-smi -q -x`")]
fn other_texts_are_refused_with_what_to_do(#[case] kind: Kind, #[case] name: &str, #[case] hint: &str) {
    let Some(refused) = sample_with(kind, name, &Options::default()) else { return };
    let refused = refused.unwrap_err();
    assert_eq!((refused.fault().code(), refused.file()), ("listing_missing", Some(name)));
    assert!(refused.to_string().contains(hint), "{refused}");
}

/// Links are counted by hand: NVLink pairs, then pairs with adapters, then pairs of adapters.
#[rstest]
#[case("topo-m-dgx-a100.txt", 8, 10, 28 + 16 + 5, Some(3))]
#[case("topo-m-dgx-h100.txt", 8, 12, 28 + 4 * 6 + 4 * 6, Some(0))]
#[case("topo-m-hgx-b200.txt", 8, 8, 28 + 32 + 12, Some(0))]
#[case("topo-m-4x-l40s-pcie.txt", 4, 2, 2 + 4 + 1, Some(0))]
#[case("topo-m-8x-pcie-all-sys.txt", 8, 2, 2 + 1, Some(0))]
fn matrices_give_links(
    #[case] name: &str,
    #[case] gpus: usize,
    #[case] nics: usize,
    #[case] links: usize,
    #[case] numa: Option<u16>,
) {
    let Some(refused) = sample_with(Kind::Topo, name, &Options::default()) else { return };
    assert_eq!(refused.unwrap_err().fault().code(), "model_needed");
    let imported = sample_with(Kind::Topo, name, &model("NVIDIA L40S")).unwrap().unwrap();
    let node = node(&imported);
    assert_eq!((node.gpus.len(), node.nics.len(), node.links.len()), (gpus, nics, links));
    assert_eq!(node.gpus[0].numa_node, numa);
    assert_eq!((node.gpus[0].model.as_str(), imported.state.models.len()), ("l40s", 0));
    slicewise_core::fleet::Topology::of(node).unwrap();
}

#[test]
fn glued_columns_come_apart() {
    let Some(imported) = sample_with(Kind::Topo, "topo-m-dgx-h100.txt", &model("h100-sxm5-80gb")) else { return };
    let imported = imported.unwrap();
    let kind = |a: &str, b: &str| node(&imported).links.iter().find(|l| l.a == a && l.b == b).map(|l| l.kind);
    assert_eq!(kind("GPU5", "NIC8"), Some(LinkKind::Node));
    assert_eq!(kind("GPU5", "NIC9"), Some(LinkKind::Pxb));
    assert_eq!((kind("GPU0", "GPU7"), kind("GPU0", "NIC6")), (Some(LinkKind::NvLink(18)), None));
    assert!(node(&imported).gpus[4].numa_node == Some(1));
}

#[test]
fn configurations_become_layouts() {
    let name = "mig-parted-all-balanced.yaml";
    let Some(imported) = sample(Kind::MigParted, name) else { return };
    let models: Vec<&str> = node(&imported).gpus.iter().map(|g| g.model.as_str()).collect();
    let all = ["gb200-186gb", "b200-180gb", "h200-sxm5-141gb", "h100-pcie-80gb", "h100-nvl-94gb", "b300", "gb300"];
    assert_eq!(models, all);
    assert_eq!(layout(&node(&imported).gpus[4]), [("3g.47gb", 0, None), ("2g.24gb", 4, None), ("1g.12gb", 6, None)]);
    let one = sample_with(Kind::MigParted, name, &model("NVIDIA H100 80GB HBM3")).unwrap().unwrap();
    assert_eq!(node(&one).gpus.len(), 1);
    assert!(node(&one).gpus[0].instances.iter().all(|i| i.usage == Usage::Idle));
    let none = sample_with(Kind::MigParted, name, &model("a30-24gb")).unwrap().unwrap_err();
    assert_eq!(none.fault().code(), "nothing_matches");
}

#[test]
fn labels_of_a_node_count_instances() {
    let Some(imported) = sample(Kind::Node, "node-labels-h100-mixed.json") else { return };
    let node = node(&imported);
    assert_eq!(node.labels.len(), 66);
    let gpu = &node.gpus[0];
    assert_eq!((gpu.model.as_str(), gpu.driver.as_deref()), ("h100-sxm5-80gb", Some("550.54.15")));
    let starts = [("2g.20gb", 0, None), ("1g.10gb", 2, None), ("1g.10gb", 3, None), ("3g.40gb", 4, None)];
    assert_eq!(layout(gpu), starts);
}

#[test]
fn resource_slices_give_profiles_and_no_instances() {
    let Some(imported) = sample(Kind::ResourceSlice, "resourceslice-counters-a100.yaml") else { return };
    let gpu = &node(&imported).gpus[0];
    assert_eq!((gpu.model.as_str(), gpu.mode, gpu.instances.len()), ("a100-40gb", Mode::Mig, 0));
    let offered: Vec<_> = gpu.profiles.iter().map(|p| (p.name.as_str(), p.placements.clone().unwrap())).collect();
    assert_eq!(offered[0].0, "1g.5gb");
    assert_eq!((offered[0].1.starts.as_slice(), offered[0].1.size), (&[0, 1][..], 1));
    assert_eq!((offered[1].1.starts.as_slice(), offered[1].1.size), (&[0][..], 2));
    let Some(imported) = sample(Kind::ResourceSlice, "resourceslice-mig-device.yaml") else { return };
    let gpu = &node(&imported).gpus[0];
    assert_eq!((gpu.model.as_str(), gpu.driver.as_deref()), ("a100-40gb", Some("580.126.20")));
    assert_eq!(gpu.uuid.as_deref(), Some("GPU-00000000-0000-0000-0000-000000000000"));
    assert!(gpu.profiles.is_empty());
}

#[test]
fn the_openb_trace_is_read_whole() {
    let nodes = text("traces/openb/openb_node_list_gpu_node.csv");
    let pods = text("traces/openb/openb_pod_list_default.csv");
    let (Some(nodes), Some(pods)) = (nodes, pods) else { return };
    let files = [Source { name: "nodes.csv", text: &nodes }, Source { name: "pods.csv", text: &pods }];
    let imported = import(Kind::Openb, &files, &Options::default(), &Catalog::built_in().unwrap()).unwrap();
    assert_eq!(imported.state.nodes.len(), 1213);
    assert_eq!(imported.state.nodes.iter().map(|n| n.gpus.len()).sum::<usize>(), 6212);
    assert_eq!(imported.state.nodes.iter().filter_map(|n| n.cpu_milli).sum::<u64>(), 107_018_000);
    assert_eq!(imported.requests.len(), 8152);
    let single = imported.requests.iter().filter(|r| match &r.any_of[0] {
        Ask::Fraction(_) => true,
        Ask::Gpus(gpus) => gpus.count == 1,
        _ => false,
    });
    assert_eq!(single.count(), 6989);
    assert!(write_state(&imported.state).len() > 100_000);
}
