//! What GPU models can do. Built in from `core/data/mig.json`; users add or
//! override models, and a device's own listing overrides both for that device.

mod model;
mod names;

pub use model::{
    ComputeProfile, EnginePool, Media, Model, PciId, Placements, PlacementsStatus, Profile, ProfileStatus,
    RefusedTogether, ShareType,
};
pub use names::{NameParts, parse_profile_name};

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use serde::Deserialize;

use crate::error::{Fault, InputError};

const BUILT_IN: &str = include_str!("../../data/mig.json");

/// The models known to an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    models: BTreeMap<String, Model>,
    order: Vec<String>,
    by_product: BTreeMap<String, String>,
    profile_names: BTreeSet<String>,
    sources: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "schema")]
    _schema: String,
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(default)]
    sources: BTreeMap<String, String>,
    models: Vec<Model>,
}

impl Catalog {
    /// The built-in catalog.
    ///
    /// # Errors
    /// None in a released build: a test reads the data that is compiled in.
    pub fn built_in() -> Result<Self, InputError> {
        let document: Document = serde_json::from_str(BUILT_IN)
            .map_err(|e| InputError::new("catalog", Fault::Invalid(alloc::format!("{e}"))))?;
        let mut catalog = Self { sources: document.sources, ..Self::default() };
        for (i, model) in document.models.into_iter().enumerate() {
            catalog.add(model).map_err(|e| e.within(&alloc::format!("models[{i}]")))?;
        }
        Ok(catalog)
    }

    /// Adds a model, or replaces the one with the same id.
    ///
    /// # Errors
    /// A model that contradicts itself: a placement past the axis, a profile named twice,
    /// a size that is zero.
    pub fn add(&mut self, model: Model) -> Result<(), InputError> {
        check(&model)?;
        if !self.models.contains_key(&model.id) {
            self.order.push(model.id.clone());
        }
        for name in &model.product_names {
            self.by_product.insert(fold(name), model.id.clone());
        }
        for profile in &model.profiles {
            self.profile_names.insert(profile.name.clone());
            self.profile_names.extend(profile.compute_instances.iter().map(|c| c.name.clone()));
        }
        self.profile_names.extend(model.share_types.iter().map(|s| s.name.clone()));
        self.models.insert(model.id.clone(), model);
        Ok(())
    }

    /// The model with this id or product name (blanks, dashes and case do not matter in
    /// product names).
    pub fn find(&self, name: &str) -> Option<&Model> {
        self.models.get(name).or_else(|| {
            let folded = fold(name);
            let id = self.by_product.get(&folded).or_else(|| {
                let bare = folded.strip_prefix("nvidia")?;
                self.by_product.get(bare)
            })?;
            self.models.get(id)
        })
    }

    /// The model with this PCI device id and, where the id is shared, subsystem id (four
    /// hex digits each). `None` where the ids leave more than one model.
    pub fn find_pci(&self, device: &str, subsystem: Option<&str>) -> Option<&Model> {
        let mut narrow = self.models().filter(|m| {
            m.pci.iter().any(|p| {
                p.device.eq_ignore_ascii_case(device)
                    && subsystem.is_some_and(|s| p.subsystems.iter().any(|x| x.eq_ignore_ascii_case(s)))
            })
        });
        if let (Some(model), None) = (narrow.next(), narrow.next()) {
            return Some(model);
        }
        let mut wide = self.models().filter(|m| m.pci.iter().any(|p| p.device.eq_ignore_ascii_case(device)));
        match (wide.next(), wide.next()) {
            (Some(model), None) => Some(model),
            _ => None,
        }
    }

    /// All models, in the order they were added.
    pub fn models(&self) -> impl Iterator<Item = &Model> {
        self.order.iter().filter_map(|id| self.models.get(id))
    }

    /// Whether any model has a profile, compute-instance profile or share of this name.
    pub fn knows_profile(&self, name: &str) -> bool {
        self.profile_names.contains(name)
    }

    /// What a source key stands for.
    pub fn source(&self, key: &str) -> Option<&str> {
        self.sources.get(key).map(String::as_str)
    }
}

/// Product names differ in blanks and dashes between tools (`NVIDIA-H100-80GB-HBM3`).
fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}

fn check(model: &Model) -> Result<(), InputError> {
    let invalid = |path: String, text: String| Err(InputError::new(path, Fault::Invalid(text)));
    if model.id.is_empty() {
        return invalid(String::from("id"), String::from("a model needs an id"));
    }
    let axis = model.memory_slices;
    if axis.is_some_and(|n| n == 0 || usize::from(n) > crate::space::CELLS_MAX) {
        return Err(InputError::new(
            "memory_slices",
            Fault::OutOfRange { value: axis.unwrap_or(0).into(), min: 1, max: crate::space::CELLS_MAX as u64 },
        ));
    }
    let mut names = BTreeSet::new();
    for (i, profile) in model.profiles.iter().enumerate() {
        let at = |field: &str| alloc::format!("profiles[{i}].{field}");
        if !names.insert(profile.name.as_str()) {
            return Err(InputError::new(at("name"), Fault::Duplicate(profile.name.clone())));
        }
        check_placements(profile.placements.as_ref(), axis, &at("placements"))?;
        if let (Some(p), Some(slices)) = (&profile.placements, profile.memory_slices)
            && p.size != slices
        {
            return invalid(
                at("placements.size"),
                alloc::format!("covers {} cells but `memory_slices` is {slices}", p.size),
            );
        }
        if profile.placements.is_some() && axis.is_none() {
            return invalid(at("placements"), String::from("the model has placements but no `memory_slices`"));
        }
        for (j, compute) in profile.compute_instances.iter().enumerate() {
            let path = alloc::format!("profiles[{i}].compute_instances[{j}].placements");
            check_placements(compute.placements.as_ref(), Some(profile.compute_slices), &path)?;
        }
    }
    for (i, share) in model.share_types.iter().enumerate() {
        if !names.insert(share.name.as_str()) {
            return Err(InputError::new(alloc::format!("share_types[{i}].name"), Fault::Duplicate(share.name.clone())));
        }
        if share.max_per_gpu == 0 {
            return Err(InputError::new(
                alloc::format!("share_types[{i}].max_per_gpu"),
                Fault::OutOfRange { value: 0, min: 1, max: u16::MAX.into() },
            ));
        }
    }
    Ok(())
}

fn check_placements(placements: Option<&Placements>, axis: Option<u16>, path: &str) -> Result<(), InputError> {
    let Some(placements) = placements else { return Ok(()) };
    if placements.size == 0 {
        return Err(InputError::new(alloc::format!("{path}.size"), Fault::OutOfRange { value: 0, min: 1, max: 256 }));
    }
    for (k, &start) in placements.starts.iter().enumerate() {
        let end = u32::from(start) + u32::from(placements.size);
        let cells = axis.map_or(crate::space::CELLS_MAX as u32, u32::from);
        if end > cells {
            return Err(InputError::new(
                alloc::format!("{path}.starts[{k}]"),
                Fault::Invalid(alloc::format!(
                    "start {start} plus {} cells passes the axis of {cells}",
                    placements.size
                )),
            ));
        }
    }
    if !placements.starts.is_sorted_by(|a, b| a < b) {
        return Err(InputError::new(alloc::format!("{path}.starts"), Fault::Invalid(String::from("starts must rise"))));
    }
    Ok(())
}
