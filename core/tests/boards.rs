//! The compiled-in vGPU boards and AMD partition modes: what holds of them, and, where the
//! collection they were made from is there, that they equal it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it skips and stops at what it cannot read"
)]

use std::collections::BTreeMap;
use std::path::Path;

use rstest::rstest;
use serde_json::Value;
use slicewise_core::catalog::{Backing, Board, Catalog, VgpuPlacement, VgpuStatus, VgpuType};
use slicewise_core::fleet::{Gpu, Mode, Sharing};

fn catalog() -> Catalog {
    Catalog::built_in().unwrap()
}

fn collection(name: &str) -> Option<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/catalog").join(name);
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: no ../shared/catalog/{name} beside the project");
        return None;
    };
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn holds_45_boards_and_610_types() {
    let catalog = catalog();
    assert_eq!(catalog.boards().count(), 45);
    assert_eq!(catalog.boards().map(|b| b.types.len()).sum::<usize>(), 610);
    let types = || catalog.boards().flat_map(|b| &b.types);
    let uncertain: Vec<&str> =
        types().filter(|t| t.status() == VgpuStatus::Uncertain).map(|t| t.name.as_str()).collect();
    assert_eq!(uncertain.len(), 13);
    assert!(uncertain.contains(&"H200-28C") && uncertain.contains(&"H20-4C"));
    assert_eq!(types().filter(|t| t.status() == VgpuStatus::Unknown).count(), 13);
    for one in types() {
        assert!(!one.sources.is_empty() && one.sources.iter().all(|key| catalog.source(key).is_some()), "{}", one.name);
    }
}

/// Derived ids are legal: inside the region, disjoint among themselves.
#[test]
fn placement_ids_do_not_overlap() {
    for board in catalog().boards() {
        for one in board.time_sliced() {
            let Some(placement) = &one.placement else { continue };
            for ids in [&placement.mixed_size_ids, &placement.equal_size_ids].into_iter().flatten() {
                assert!(ids.windows(2).all(|w| w[0] + placement.size <= w[1]), "{}", one.name);
                assert!(ids.last().is_none_or(|last| last + placement.size <= placement.region), "{}", one.name);
            }
            let equal = placement.equal_size_ids.as_ref().map(Vec::len);
            assert!(equal.is_none_or(|n| n == usize::from(one.max_per_gpu)), "{}", one.name);
            assert!(one.mixed_size_max().is_none_or(|n| n <= one.max_per_gpu), "{}", one.name);
        }
    }
}

#[test]
fn equals_the_collection_it_was_made_from() {
    let Some(source) = collection("vgpu.json") else { return };
    let catalog = catalog();
    let boards = source["boards"].as_array().unwrap();
    assert_eq!(boards.len(), catalog.boards().count());
    let number = |v: &Value| v.as_u64();
    let ids = |v: &Value| v.as_array().map(|a| a.iter().map(|n| n.as_u64().unwrap()).collect::<Vec<_>>());
    let wide = |v: &Option<Vec<u16>>| v.as_ref().map(|v| v.iter().map(|n| u64::from(*n)).collect::<Vec<_>>());
    for (theirs, ours) in boards.iter().zip(catalog.boards()) {
        assert_eq!(theirs["prefix"], ours.prefix);
        assert_eq!(theirs["pci_device"].as_str(), ours.pci_device.as_deref());
        assert_eq!(theirs["mixed_size_supported"], ours.mixed_size);
        let types = theirs["types"].as_array().unwrap();
        assert_eq!(types.len(), ours.types.len());
        for (t, o) in types.iter().zip(&ours.types) {
            assert_eq!(t["name"], o.name);
            assert_eq!(t["series"], o.series);
            assert_eq!(t["backing"] == "mig", o.backing == Backing::Mig);
            assert_eq!(number(&t["framebuffer_mb"]), o.framebuffer_mib.map(u64::from), "{}", o.name);
            let most = if o.backing == Backing::Mig { &t["max_per_gpu"] } else { &t["max_per_gpu_equal_size"] };
            assert_eq!(number(most), Some(o.max_per_gpu.into()), "{}", o.name);
            assert_eq!(number(&t["max_per_gpu_mixed_size"]), o.max_per_gpu_mixed_size.map(u64::from), "{}", o.name);
            assert_eq!(t["gi_profile"].as_str(), o.gi_profile.as_deref());
            assert_eq!(number(&t["max_per_gpu_instance"]), o.max_per_gpu_instance.map(u64::from), "{}", o.name);
            let (place, none) = (&t["placement"], VgpuPlacement::default());
            let own = o.placement.as_ref();
            assert_eq!(number(&place["placement_region_size"]), own.map(|p| p.region.into()), "{}", o.name);
            assert_eq!(number(&place["placement_size"]), own.map(|p| p.size.into()), "{}", o.name);
            assert_eq!(ids(&place["mixed_size_ids"]), wide(&own.unwrap_or(&none).mixed_size_ids), "{}", o.name);
            assert_eq!(ids(&place["equal_size_ids"]), wide(&own.unwrap_or(&none).equal_size_ids), "{}", o.name);
        }
    }
}

/// What each mode offers in the words of a model agrees with the types: every type is
/// there, as often as its board says.
#[test]
fn every_mode_offers_its_types() {
    let catalog = catalog();
    for board in catalog.boards() {
        let gpu = |mode| Gpu {
            model: board.model.clone(),
            mode,
            sharing: Sharing {
                board: Some(board.pci_device.clone().unwrap_or_else(|| board.prefix.clone())),
                ..Sharing::default()
            },
            ..Gpu::default()
        };
        if board.time_sliced().next().is_some() {
            let shares = catalog.offer(&gpu(Mode::Vgpu)).unwrap().shares;
            for one in board.time_sliced() {
                let share = shares.iter().find(|s| s.name == one.name).unwrap();
                assert_eq!(share.max_per_gpu, one.max_per_gpu, "{}", one.name);
            }
            assert_eq!(catalog.offer(&gpu(Mode::VgpuMixed)).is_ok(), board.mixed_size, "{}", board.prefix);
        }
        let Ok(offer) = catalog.offer(&gpu(Mode::VgpuMig)) else { continue };
        let mut places: BTreeMap<&str, u16> = BTreeMap::new();
        for profile in &offer.model.profiles {
            let most = profile.max_instances.unwrap_or(0);
            for inner in &profile.compute_instances {
                places.insert(&inner.name, most * inner.max_instances.unwrap_or(0));
            }
        }
        for one in board.types.iter().filter(|t| t.backing == Backing::Mig) {
            let Some(most) = places.get(one.name.as_str()) else { continue };
            assert_eq!(*most, one.max_per_gpu, "{}", one.name);
        }
    }
}

#[rstest]
#[case("a100-80gb", Mode::Vgpu, None, Err("sharing.board"))]
#[case("a100-80gb", Mode::Vgpu, Some("A100D"), Ok("A100D-10C"))]
#[case("a100-80gb", Mode::Vgpu, Some("20b2"), Ok("A100DX-10C"))]
#[case("a100-80gb", Mode::Vgpu, Some("L40S"), Err("sharing.board"))]
#[case("l40s", Mode::Vgpu, None, Ok("L40S-12C"))]
#[case("NVIDIA L40S", Mode::Vgpu, None, Ok("L40S-12C"))]
#[case("t4", Mode::VgpuMixed, None, Err("mode"))]
#[case("l40s", Mode::Partitions, None, Err("mode"))]
#[case("mi300x", Mode::Partitions, None, Ok("cpx_nps1"))]
#[case("mi210", Mode::Partitions, None, Err("mode"))]
#[case("l40s", Mode::TimeSlicing, None, Err("sharing.replicas"))]
fn a_mode_needs_its_settings(
    #[case] model: &str,
    #[case] mode: Mode,
    #[case] board: Option<&str>,
    #[case] expected: Result<&str, &str>,
) {
    let sharing = Sharing { board: board.map(Into::into), ..Sharing::default() };
    let gpu = Gpu { model: model.into(), mode, sharing, ..Gpu::default() };
    let catalog = catalog();
    match (catalog.offer(&gpu), expected) {
        (Ok(offer), Ok(name)) => assert!(offer.shares.iter().any(|s| s.name == name)),
        (Err(error), Err(path)) => assert_eq!(error.path(), path, "{error}"),
        (found, _) => panic!("{found:?}"),
    }
}

#[rstest]
#[case(None, 48)]
#[case(Some("12.4"), 48)]
#[case(Some("13.0"), 48)]
#[case(Some("13.1"), 60)]
#[case(Some("14"), 60)]
fn mps_clients_follow_the_cuda_version(#[case] cuda: Option<&str>, #[case] clients: u16) {
    let sharing = Sharing { cuda: cuda.map(Into::into), ..Sharing::default() };
    let gpu = Gpu { model: "a100-80gb".into(), mode: Mode::Mps, sharing, ..Gpu::default() };
    assert_eq!(catalog().offer(&gpu).unwrap().amounts.users, clients);
}

#[test]
fn users_add_boards() {
    let mut catalog = catalog();
    let one =
        VgpuType { name: "X9-4C".into(), series: "C".into(), nominal_gb: 4, max_per_gpu: 2, ..VgpuType::default() };
    let board =
        Board { prefix: "X9".into(), name: "Card X9".into(), model: "x9".into(), types: vec![one], ..Board::default() };
    catalog.add_board(board.clone()).unwrap();
    let gpu = Gpu { model: "x9".into(), mode: Mode::Vgpu, ..Gpu::default() };
    assert_eq!(catalog.offer(&gpu).unwrap().shares[0].max_per_gpu, 2);
    assert!(catalog.knows_profile("X9-4C"));
    let mut twice = board.clone();
    twice.types.push(twice.types[0].clone());
    assert_eq!(catalog.add_board(twice).unwrap_err().path(), "types[1].name");
    let mut none = board;
    none.types[0].max_per_gpu = 0;
    assert_eq!(catalog.add_board(none).unwrap_err().path(), "types[0].max_per_gpu");
}

#[test]
fn partition_modes_equal_the_collection() {
    let Some(source) = collection("amd.json") else { return };
    let catalog = catalog();
    for theirs in source["models"].as_array().unwrap() {
        let ours = catalog.find(theirs["id"].as_str().unwrap()).unwrap();
        let modes = theirs["modes"].as_array().unwrap();
        assert_eq!(modes.len(), ours.partition_modes.len(), "{}", ours.id);
        for (t, o) in modes.iter().zip(&ours.partition_modes) {
            assert_eq!(t["compute_mode"], o.compute_mode);
            assert_eq!(t["partitions"], o.partitions);
            assert_eq!(t["memory_modes"], serde_json::to_value(&o.memory_modes).unwrap());
            assert_eq!(t["memory_gb_per_partition"].as_u64(), o.memory_mib.map(|m| u64::from(m) / 1024), "{}", ours.id);
        }
    }
}
