//! The compiled-in catalog against what is known of it, and, where it is there, against
//! the collection that it was made from.

use slicewise_core::catalog::{Catalog, Media, Model, PlacementsStatus};
use std::path::Path;

#[test]
fn holds_24_models_and_155_profiles() {
    let catalog = Catalog::built_in().unwrap();
    let mig: Vec<&Model> = catalog.models().take(24).collect();
    assert!(catalog.models().skip(24).all(|m| m.profiles.is_empty()), "the models with MIG come first");
    assert_eq!(mig.iter().map(|m| m.profiles.len()).sum::<usize>(), 155);
    let unknown: Vec<&str> =
        mig.iter().filter(|m| m.placements_status == PlacementsStatus::Unknown).map(|m| m.id.as_str()).collect();
    assert_eq!(
        unknown,
        ["rtx-pro-5000-48gb", "rtx-pro-5000-72gb", "rtx-pro-4500-32gb", "rtx-6000d-84gb", "jetson-thor"]
    );
    for model in mig {
        for key in model.sources.iter().chain(model.profiles.iter().flat_map(|p| &p.sources)) {
            assert!(catalog.source(key).is_some(), "{}: no source `{key}`", model.id);
        }
        let known = model.profiles.iter().all(|p| p.placements.is_some());
        assert_eq!(known && !model.profiles.is_empty(), model.placements_status != PlacementsStatus::Unknown);
    }
}

#[test]
fn finds_models_however_tools_write_them() {
    let catalog = Catalog::built_in().unwrap();
    let id = |name: &str| catalog.find(name).map(|m| m.id.as_str());
    assert_eq!(id("NVIDIA H100 80GB HBM3"), Some("h100-sxm5-80gb"));
    assert_eq!(id("NVIDIA-H100-80GB-HBM3"), Some("h100-sxm5-80gb"));
    assert_eq!(id("A100-SXM4-40GB"), Some("a100-40gb"));
    assert_eq!(id("a100-80gb"), Some("a100-80gb"));
    assert_eq!(id("RTX 9999"), None);
    assert_eq!(catalog.find_pci("20B0", Some("134F")).map(|m| m.id.as_str()), Some("a100-40gb"));
}

/// Reads the collection as plain JSON, so that nothing of the catalog's own reader is used.
#[test]
fn equals_the_collection_it_was_made_from() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/catalog/mig.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: no ../shared/catalog/mig.json beside the project");
        return;
    };
    let source: serde_json::Value = serde_json::from_str(&text).unwrap();
    let catalog = Catalog::built_in().unwrap();
    let models = source["models"].as_array().unwrap();
    assert_eq!(models.len(), 24);
    let number = |v: &serde_json::Value| v.as_u64();
    for model in models {
        let ours = catalog.find(model["id"].as_str().unwrap()).unwrap();
        assert_eq!(number(&model["compute_slices"]), ours.compute_slices.map(Into::into), "{}", ours.id);
        assert_eq!(number(&model["memory_slices"]), ours.memory_slices.map(Into::into), "{}", ours.id);
        assert_eq!(number(&model["max_gpu_instances"]), ours.max_gpu_instances.map(Into::into), "{}", ours.id);
        let pool = &model["engine_pool"];
        let ours_pool =
            [ours.engine_pool.decoders, ours.engine_pool.encoders, ours.engine_pool.jpeg, ours.engine_pool.ofa];
        for (key, has) in ["decoders", "encoders", "jpeg", "ofa"].iter().zip(ours_pool) {
            assert_eq!(number(&pool[key]), has.map(Into::into), "{} {key}", ours.id);
        }
        let profiles = model["gi_profiles"].as_array().unwrap();
        assert_eq!(profiles.len(), ours.profiles.len());
        for (profile, mine) in profiles.iter().zip(&ours.profiles) {
            assert_eq!(profile["name"], mine.name);
            let figures = [
                ("profile_id", mine.id.map(u64::from)),
                ("nvml_gi_profile", mine.nvml_id.map(u64::from)),
                ("compute_slices", Some(mine.compute_slices.into())),
                ("memory_slices", mine.memory_slices.map(u64::from)),
                ("memory_mib", mine.memory_mib.map(u64::from)),
                ("sm", mine.sm.map(u64::from)),
                ("copy_engines", mine.copy_engines.map(u64::from)),
                ("decoders", mine.decoders.map(u64::from)),
                ("encoders", mine.encoders.map(u64::from)),
                ("jpeg", mine.jpeg.map(u64::from)),
                ("ofa", mine.ofa.map(u64::from)),
                ("max_instances", mine.max_instances.map(u64::from)),
            ];
            for (key, has) in figures {
                assert_eq!(number(&profile[key]), has, "{} {} {key}", ours.id, mine.name);
            }
            let media = serde_json::to_value(mine.media).unwrap();
            assert_eq!(profile["media"], media);
            assert_eq!(profile["gfx"].as_bool().unwrap_or(false), mine.gfx);
            let gib = profile["memory_gib"].as_f64().map(|gib| format!("{gib:.2}"));
            assert_eq!(gib, mine.memory_gib);
            match (&mine.placements, profile["placements"].as_object()) {
                (Some(places), Some(theirs)) => {
                    let starts: Vec<u64> = theirs["starts"].as_array().unwrap().iter().filter_map(number).collect();
                    assert_eq!(starts, places.starts.iter().map(|s| u64::from(*s)).collect::<Vec<_>>());
                    assert_eq!(number(&theirs["size"]), Some(places.size.into()));
                }
                (None, None) => {}
                _ => panic!("{} {}: placements differ", ours.id, mine.name),
            }
            assert_eq!(profile["ci_profiles"].as_array().map_or(0, Vec::len), mine.compute_instances.len());
        }
    }
    assert!(catalog.models().any(|m| m.profiles.iter().any(|p| p.media == Media::All)));
}
