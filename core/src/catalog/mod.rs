//! What GPU models can do. Built in from `core/data`; users add or override models and
//! vGPU boards, and a device's own listing overrides both for that device.

mod isolation;
mod model;
mod names;
mod offer;
mod power;
mod vgpu;

pub use isolation::{Isolation, Mechanism, Strength};
pub use model::{
    ComputeProfile, EnginePool, Media, Model, PartitionMode, PciId, Placements, PlacementsStatus, Profile,
    ProfileStatus, RefusedTogether, ShareType,
};
pub use names::{NameParts, parse_profile_name};
pub use offer::{Amounts, Offer};
pub(crate) use power::unknown as unknown_power;
pub use power::{CpuPower, GpuDraw, Power, PowerRow, PowerStatus};
pub use vgpu::{Backing, Board, VgpuPlacement, VgpuStatus, VgpuType};

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::data::table;
use crate::error::{Fault, InputError};
use crate::space::CELLS_MAX;

/// Documents of models: NVIDIA's with MIG, AMD's with partition modes.
const BUILT_IN: [&str; 2] = [include_str!("../../data/mig.json"), include_str!("../../data/amd.json")];
const BUILT_IN_ISOLATION: &str = include_str!("../../data/isolation.json");
const BUILT_IN_BOARDS: &str = include_str!("../../data/vgpu.json");
const BUILT_IN_POWER: &str = include_str!("../../data/power.json");

/// The models known to an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    models: BTreeMap<String, Model>,
    order: Vec<String>,
    by_product: BTreeMap<String, String>,
    profile_names: BTreeSet<String>,
    sources: BTreeMap<String, String>,
    isolation: Arc<BTreeMap<Mechanism, Isolation>>,
    power: Option<Arc<power::PowerTable>>,
    /// Boards and what they offer, shared by copies of the catalog.
    vgpu: Arc<Vgpu>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Vgpu {
    boards: Vec<Board>,
    /// What each board offers in the vGPU modes, in the words of a model.
    offers: Vec<[Model; 3]>,
}

impl Catalog {
    /// The built-in catalog.
    ///
    /// # Errors
    /// None in a released build: a test reads the data that is compiled in.
    pub fn built_in() -> Result<Self, InputError> {
        let mut catalog = Self::default();
        for text in BUILT_IN {
            let models = table::<Vec<Model>>("catalog", text)?;
            catalog.sources.extend(models.sources);
            for (i, model) in models.rows.into_iter().enumerate() {
                catalog.add(model).map_err(|e| e.within(&alloc::format!("models[{i}]")))?;
            }
        }
        let boards = table::<Vec<Board>>("catalog", BUILT_IN_BOARDS)?;
        catalog.sources.extend(boards.sources);
        for (i, board) in boards.rows.into_iter().enumerate() {
            catalog.add_board(board).map_err(|e| e.within(&alloc::format!("boards[{i}]")))?;
        }
        let mechanisms = table::<Vec<isolation::Row>>("catalog", BUILT_IN_ISOLATION)?;
        catalog.isolation = Arc::new(isolation::by_mechanism(&mechanisms));
        catalog.sources.extend(mechanisms.sources);
        let power = table::<power::PowerTable>("catalog", BUILT_IN_POWER)?;
        catalog.power = Some(Arc::new(power.rows));
        catalog.sources.extend(power.sources);
        Ok(catalog)
    }

    /// Adds a vGPU board, or replaces the one of the same prefix and PCI device. A model
    /// that no catalog has is made from the board's figures.
    ///
    /// # Errors
    /// A board that contradicts itself, see [`Board`]: a type named twice, a count of zero,
    /// placement ids that do not rise or pass the region.
    pub fn add_board(&mut self, board: Board) -> Result<(), InputError> {
        board.check()?;
        if self.find(&board.model).is_none() {
            self.add(Model {
                id: board.model.clone(),
                name: Some(board.name.clone()),
                architecture: Some(board.architecture.clone()),
                product_names: Vec::from([board.name.clone()]),
                memory_gb: Some(board.framebuffer_gb),
                ..Model::default()
            })?;
        }
        let Some(base) = self.find(&board.model) else { return Ok(()) };
        let offers = [board.equal_size(base), board.mixed_size(base), board.on_instances(base)];
        for offer in &offers {
            check(offer)?;
        }
        self.profile_names.extend(board.types.iter().map(|t| t.name.clone()));
        let vgpu = Arc::make_mut(&mut self.vgpu);
        let same = |b: &Board| b.prefix == board.prefix && b.pci_device == board.pci_device;
        match vgpu.boards.iter().position(same) {
            Some(position) => {
                vgpu.boards.get_mut(position).into_iter().for_each(|old| *old = board.clone());
                vgpu.offers.get_mut(position).into_iter().for_each(|old| *old = offers.clone());
            }
            None => {
                vgpu.boards.push(board);
                vgpu.offers.push(offers);
            }
        }
        Ok(())
    }

    /// The vGPU boards, in the order they were added.
    pub fn boards(&self) -> impl Iterator<Item = &Board> {
        self.vgpu.boards.iter()
    }

    /// Boards with this prefix, PCI device id or name (case does not matter). A prefix may
    /// stand for several.
    pub fn find_boards(&self, name: &str) -> impl Iterator<Item = &Board> {
        let is_it = move |b: &&Board| {
            b.prefix.eq_ignore_ascii_case(name)
                || b.name.eq_ignore_ascii_case(name)
                || b.pci_device.as_ref().is_some_and(|pci| pci.eq_ignore_ascii_case(name))
        };
        self.boards().filter(is_it)
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
        self.profile_names.extend(offer::partition_names(&model));
        let id = model.id.clone();
        self.models.insert(id.clone(), model);
        // What its boards offer follows the model.
        let of_model: Vec<Board> = self.boards().filter(|b| b.model == id).cloned().collect();
        of_model.into_iter().try_for_each(|board| self.add_board(board))
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
        name == offer::REPLICA || self.profile_names.contains(name)
    }

    /// How well a way to share a GPU keeps tenants apart; an unknown one not at all.
    pub fn isolation(&self, mechanism: Mechanism) -> Isolation {
        self.isolation.get(&mechanism).copied().unwrap_or_default()
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
    if axis.is_some_and(|n| n == 0 || usize::from(n) > CELLS_MAX) {
        return Err(InputError::new(
            "memory_slices",
            Fault::OutOfRange { value: axis.unwrap_or(0).into(), min: 1, max: CELLS_MAX as u64 },
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
            check_placements(compute.placements.as_ref(), Some(profile.cells_inside()), &path)?;
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
        return Err(InputError::new(
            alloc::format!("{path}.size"),
            Fault::OutOfRange { value: 0, min: 1, max: CELLS_MAX as u64 },
        ));
    }
    for (k, &start) in placements.starts.iter().enumerate() {
        let end = u32::from(start) + u32::from(placements.size);
        let cells = axis.map_or(CELLS_MAX as u32, u32::from);
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
