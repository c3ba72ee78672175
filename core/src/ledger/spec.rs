//! Device kinds: what GPUs of one model, mode, driver and listing have in common, with
//! the layouts seen so far and what each offers.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::classes::{ClassKey, Rank};
use crate::catalog::{Catalog, GpuDraw, Mechanism, Model, Offer, Power, Profile};
use crate::error::{Fault, InputError};
use crate::fleet::{Gpu, Mode, Sharing, SpaceKind};
use crate::ids::{Id, IdVec, LayoutId, ProfileId, SpecId};
use crate::place::{DeviceMix, Measures, Surroundings, Term, Worth};
use crate::space::{DeviceAsk, Fluid, FluidState, Grid, Layout, Space, SpaceState, Take, Uniform, UniformState};

/// What is on a device, small enough to keep one per GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateKey {
    /// An interned layout.
    Grid(LayoutId),
    /// Shares taken.
    Uniform(UniformState),
    /// Amounts left.
    Fluid(FluidState),
}

/// A watched ask of a device kind: the class index keeps its classes ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub(super) usize);

/// Asks for amounts that are watched at once. A stream rarely has more sizes; the one that
/// was not asked for longest gives way.
const AMOUNTS_WATCHED: usize = 32;

/// The best place for each profile on one layout, as the policy sees it.
#[derive(Clone, Debug, Default)]
struct LayoutMemo {
    best: Vec<Option<(Measures, Take)>>,
}

/// A kind of device.
#[derive(Clone, Debug)]
pub struct Spec {
    model: Model,
    mode: Mode,
    /// Modes that its GPUs may be in, in their own order; empty: this one only.
    modes: Vec<Mode>,
    /// The same GPUs in their other modes.
    siblings: Vec<SpecId>,
    driver: Option<String>,
    memory_mib: Option<u32>,
    listing: Vec<Profile>,
    sharing: Sharing,
    power: Power,
    power_limit_w: Option<u32>,
    draw: Option<GpuDraw>,
    space: Space,
    names: BTreeMap<String, DeviceAsk>,
    mix: Vec<(DeviceAsk, u32)>,
    /// What room is worth, under a policy that asks.
    worth: Option<Worth>,
    /// The worth of the room on layouts that were measured.
    values: BTreeMap<SpaceState, i64>,
    /// Asks whose ranks the class index keeps, with the version that last saw each. All
    /// profiles and share types from the start; amounts as they come.
    watched: Vec<(DeviceAsk, u64)>,
    layouts: IdVec<LayoutId, SpaceState>,
    memos: IdVec<LayoutId, LayoutMemo>,
    by_layout: BTreeMap<Layout, LayoutId>,
}

impl Spec {
    /// The kind of this GPU.
    ///
    /// # Errors
    /// A model in no catalog, a mode it does not have, or a driver version that is none.
    pub fn of(catalog: &Catalog, gpu: &Gpu) -> Result<Self, InputError> {
        let Offer { model, shares, max_instances, amounts, draw } = catalog.offer(gpu)?;
        let major = gpu.driver.as_deref().map(driver_major).transpose()?;
        let space = match gpu.mode.space() {
            SpaceKind::Grid => Space::Grid(Grid::of(model, &gpu.profiles, major).limited_to(max_instances)),
            SpaceKind::Uniform => Space::Uniform(Uniform::new(shares)),
            SpaceKind::Fluid => Space::Fluid(Fluid::new(amounts)),
        };
        let asks: Vec<DeviceAsk> = match &space {
            Space::Grid(grid) => grid.rows().ids().map(DeviceAsk::Instance).collect(),
            Space::Uniform(uniform) => (0..uniform.types().len()).map(|i| DeviceAsk::Share(i as u16)).collect(),
            Space::Fluid(_) => Vec::from([DeviceAsk::Whole]),
        };
        let mut spec = Self {
            names: names(&space, model, &gpu.profiles),
            model: model.clone(),
            mode: gpu.mode,
            modes: gpu.modes_allowed(),
            siblings: Vec::new(),
            driver: gpu.driver.clone(),
            memory_mib: gpu.memory_mib,
            listing: gpu.profiles.clone(),
            sharing: gpu.sharing.clone(),
            power: gpu.power,
            power_limit_w: gpu.power_limit_w,
            draw,
            space,
            mix: Vec::new(),
            worth: None,
            values: BTreeMap::new(),
            watched: asks.into_iter().map(|ask| (ask, 0)).collect(),
            layouts: IdVec::default(),
            memos: IdVec::default(),
            by_layout: BTreeMap::new(),
        };
        if matches!(spec.space, Space::Grid(_)) {
            spec.intern(&SpaceState::Grid(Layout::default()), &[]);
        }
        Ok(spec)
    }

    /// Whether a GPU of the document is of this kind.
    pub fn is_of(&self, catalog: &Catalog, gpu: &Gpu) -> bool {
        self.mode == gpu.mode
            && self.memory_mib == gpu.memory_mib
            && self.driver == gpu.driver
            && (self.model.id == gpu.model || catalog.find(&gpu.model).is_some_and(|m| m.id == self.model.id))
            && self.listing == gpu.profiles
            && self.sharing == gpu.sharing
            && self.power == gpu.power
            && self.power_limit_w == gpu.power_limit_w
            && (if gpu.modes.is_empty() { self.modes.is_empty() } else { self.modes == gpu.modes_allowed() })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }
    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }
    /// The kinds that its GPUs are of in the other modes that they may be changed to.
    pub fn siblings(&self) -> &[SpecId] {
        &self.siblings
    }
    pub(super) fn set_siblings(&mut self, siblings: Vec<SpecId>) {
        self.siblings = siblings;
    }
    /// Driver version, where known.
    pub fn driver(&self) -> Option<&str> {
        self.driver.as_deref()
    }
    /// Driver major version, where known.
    pub fn driver_major(&self) -> Option<u32> {
        self.driver.as_deref().and_then(|d| driver_major(d).ok())
    }
    /// The document's own figure for the device's memory.
    pub fn declared_memory_mib(&self) -> Option<u32> {
        self.memory_mib
    }
    /// The device's own profile listing.
    pub fn listing(&self) -> &[Profile] {
        &self.listing
    }
    /// How its mode is set up.
    pub fn sharing(&self) -> &Sharing {
        &self.sharing
    }
    /// The profiles in force: the listing, else the model's.
    pub fn profiles(&self) -> &[Profile] {
        if self.listing.is_empty() { &self.model.profiles } else { &self.listing }
    }
    /// What the device draws, where known.
    pub fn draw(&self) -> Option<GpuDraw> {
        self.draw
    }
    /// What the device offers.
    pub fn space(&self) -> &Space {
        &self.space
    }
    /// The grid of a device in MIG mode.
    pub fn grid(&self) -> Option<&Grid> {
        match &self.space {
            Space::Grid(grid) => Some(grid),
            _ => None,
        }
    }
    /// What a name means on this device.
    pub fn named(&self, name: &str) -> Option<DeviceAsk> {
        self.names.get(name).copied()
    }
    /// The demand mix in this device's terms.
    pub fn mix(&self) -> &DeviceMix {
        &self.mix
    }
    /// Sets the demand mix and forgets what was measured with the old one.
    pub(crate) fn set_mix(&mut self, mix: Vec<(DeviceAsk, u32)>, terms: &[Term]) {
        self.worth = terms.contains(&Term::ExpectedLoss).then(|| Worth::of(&self.space, &mix));
        self.mix = mix;
        self.values.clear();
        let ids: Vec<LayoutId> = self.layouts.ids().collect();
        for id in ids {
            self.value_around(id);
            self.memos[id] = self.memo(id, terms);
        }
    }

    /// The state behind a key.
    pub fn state(&self, key: StateKey) -> Cow<'_, SpaceState> {
        match key {
            StateKey::Grid(id) => Cow::Borrowed(&self.layouts[id]),
            StateKey::Uniform(state) => Cow::Owned(SpaceState::Uniform(state)),
            StateKey::Fluid(state) => Cow::Owned(SpaceState::Fluid(state)),
        }
    }

    /// The key of a state; new layouts are measured once, here.
    pub(crate) fn intern(&mut self, state: &SpaceState, terms: &[Term]) -> StateKey {
        match state {
            SpaceState::Uniform(state) => StateKey::Uniform(*state),
            SpaceState::Fluid(state) => StateKey::Fluid(*state),
            SpaceState::Grid(layout) => {
                if let Some(id) = self.by_layout.get(layout) {
                    return StateKey::Grid(*id);
                }
                let id = self.layouts.push(state.clone());
                self.by_layout.insert(layout.clone(), id);
                self.value_around(id);
                let memo = self.memo(id, terms);
                self.memos.push(memo);
                StateKey::Grid(id)
            }
        }
    }

    /// The key of an unused device.
    pub fn empty(&self) -> StateKey {
        match self.space.empty() {
            SpaceState::Grid(_) => StateKey::Grid(LayoutId(0)),
            SpaceState::Uniform(state) => StateKey::Uniform(state),
            SpaceState::Fluid(state) => StateKey::Fluid(state),
        }
    }

    /// Values a layout and what one more instance makes of it, so that each is valued once.
    fn value_around(&mut self, id: LayoutId) {
        let Some(worth) = &self.worth else { return };
        let state = &self.layouts[id];
        let asks = self.watched.iter().map(|(ask, _)| *ask);
        let takes = asks.flat_map(|ask| self.space.options(state, ask));
        let after = takes.filter_map(|take| self.space.put(state, take));
        for state in after.chain([state.clone()]) {
            self.values.entry(state).or_insert_with_key(|state| worth.value(&self.space, state));
        }
    }

    /// What the room on a device is worth.
    fn value(&self, state: &SpaceState) -> i64 {
        let Some(worth) = &self.worth else { return 0 };
        self.values.get(state).copied().unwrap_or_else(|| worth.value(&self.space, state))
    }

    fn memo(&self, id: LayoutId, terms: &[Term]) -> LayoutMemo {
        let Space::Grid(grid) = &self.space else { return LayoutMemo::default() };
        let state = &self.layouts[id];
        let best = grid.rows().ids().map(|p| self.measure_best(state, DeviceAsk::Instance(p), terms, |_| true));
        LayoutMemo { best: best.collect() }
    }

    /// The best place for an ask on a state, and what it does.
    pub fn measure_best(
        &self,
        state: &SpaceState,
        ask: DeviceAsk,
        terms: &[Term],
        allowed: impl Fn(Take) -> bool,
    ) -> Option<(Measures, Take)> {
        let takes = self.space.options(state, ask).into_iter().filter(|t| allowed(*t));
        let measured = takes.filter_map(|take| Some((self.measure(state, take)?, take)));
        measured.min_by_key(|(m, take)| (m.key(terms, Surroundings::default()), *take))
    }

    /// What a take does; `None` if it is not legal on the state.
    pub fn measure(&self, state: &SpaceState, take: Take) -> Option<Measures> {
        let after = self.space.put(state, take)?;
        Some(self.measure_change(state, &after, take))
    }

    /// What a take does where others make way for it: `before` still has them.
    pub fn measure_change(&self, before: &SpaceState, after: &SpaceState, take: Take) -> Measures {
        let loss = self.value(before).saturating_sub(self.value(after));
        let growth = self.draw_mw(after).zip(self.draw_mw(before)).map(|(after, before)| after.saturating_sub(before));
        Measures::of(&self.space, &self.mix, before, after, take).with_loss(loss).drawing(growth)
    }

    /// [`Spec::measure_best`] of a key, from memory where it is there.
    pub fn best(&self, key: StateKey, ask: DeviceAsk, terms: &[Term]) -> Option<(Measures, Take)> {
        match (key, ask) {
            (StateKey::Grid(id), DeviceAsk::Instance(profile)) => {
                self.memos[id].best.get(profile.index()).copied().flatten()
            }
            _ => self.measure_best(&self.state(key), ask, terms, |_| true),
        }
    }

    /// How this kind of device shares what is asked.
    pub fn mechanism(&self, ask: DeviceAsk) -> Mechanism {
        match (self.mode, ask) {
            (Mode::Whole, DeviceAsk::Whole) => Mechanism::Whole,
            (Mode::Whole, _) => Mechanism::Fraction,
            (Mode::Mig, DeviceAsk::Compute(..)) => Mechanism::MigCompute,
            (Mode::Mig, _) => Mechanism::Mig,
            (Mode::Vgpu | Mode::VgpuMixed, _) => Mechanism::Vgpu,
            (Mode::VgpuMig, DeviceAsk::Compute(outer, inner)) => {
                let row = self.grid().and_then(|g| g.rows().lookup(outer)?.inner()?.rows().lookup(inner));
                match row {
                    Some(row) if row.max_instances == 1 => Mechanism::VgpuMig,
                    _ => Mechanism::VgpuMigShared,
                }
            }
            (Mode::VgpuMig, _) => Mechanism::VgpuMigShared,
            (Mode::Mps, _) if self.sharing.static_chunks.is_some() => Mechanism::MpsStatic,
            (Mode::Mps, _) => Mechanism::Mps,
            (Mode::TimeSlicing, _) => Mechanism::TimeSlicing,
            (Mode::Shares, _) => Mechanism::Shares,
            (Mode::Partitions, DeviceAsk::Share(share)) => {
                let name = match &self.space {
                    Space::Uniform(uniform) => uniform.types().get(usize::from(share)).map_or("", |t| &t.name),
                    _ => "",
                };
                if name.ends_with("_nps1") { Mechanism::Partition } else { Mechanism::PartitionNuma }
            }
            (Mode::Partitions, _) => Mechanism::Partition,
        }
    }
    /// Cells that an ask for an instance covers; 0 for anything else.
    pub fn cells_of(&self, ask: DeviceAsk) -> u16 {
        match (ask, self.grid()) {
            (DeviceAsk::Instance(p) | DeviceAsk::Compute(p, _), Some(grid)) => {
                grid.rows().lookup(p).map_or(0, |row| row.size)
            }
            _ => 0,
        }
    }
    /// The best take for an ask on a class, as the policy ranks it.
    pub fn rank(&self, key: ClassKey, ask: DeviceAsk, terms: &[Term]) -> Rank {
        let (measures, take) = self.best(key.state, ask, terms)?;
        Some((measures.key(terms, key.around), take))
    }
    /// An unused GPU of this kind as a document says it.
    pub fn document(&self) -> Gpu {
        Gpu {
            model: self.model.id.clone(),
            mode: self.mode,
            modes: self.modes.clone(),
            driver: self.driver.clone(),
            memory_mib: self.memory_mib,
            profiles: self.listing.clone(),
            sharing: self.sharing.clone(),
            power: self.power,
            power_limit_w: self.power_limit_w,
            ..Gpu::default()
        }
    }
    /// The slot of an ask, if it is watched.
    pub fn slot(&self, ask: DeviceAsk) -> Option<Slot> {
        let position = match ask {
            DeviceAsk::Instance(profile) => profile.index(),
            DeviceAsk::Share(share) => share.into(),
            DeviceAsk::Whole => 0,
            DeviceAsk::Compute(..) => return None,
            DeviceAsk::Fraction { .. } => self.watched.iter().position(|(watched, _)| *watched == ask)?,
        };
        self.watched.get(position).is_some_and(|(watched, _)| *watched == ask).then_some(Slot(position))
    }
    /// The watched asks, slot by slot.
    pub fn watched(&self) -> impl Iterator<Item = DeviceAsk> {
        self.watched.iter().map(|(ask, _)| *ask)
    }
    /// Watches an amount that was asked; the slot if it has to be ranked.
    pub(super) fn watch(&mut self, ask: DeviceAsk, version: u64) -> Option<Slot> {
        if !matches!((ask, &self.space), (DeviceAsk::Fraction { .. }, Space::Fluid(_))) {
            return None;
        }
        if let Some((_, seen)) = self.watched.iter_mut().find(|(watched, _)| *watched == ask) {
            *seen = version;
            return None;
        }
        if self.watched.len() <= AMOUNTS_WATCHED {
            self.watched.push((ask, version));
            return Some(Slot(self.watched.len() - 1));
        }
        let (position, oldest) = self.watched.iter_mut().enumerate().skip(1).min_by_key(|(_, (_, seen))| *seen)?;
        *oldest = (ask, version);
        Some(Slot(position))
    }

    /// Layouts seen so far.
    pub fn layouts_seen(&self) -> usize {
        self.layouts.len()
    }

    /// The name of a profile on this device.
    pub fn profile_name(&self, profile: ProfileId) -> &str {
        self.grid().and_then(|g| g.rows().lookup(profile)).map_or("", |r| &r.name)
    }
}

/// `550.54.15` → 550.
///
/// # Errors
/// A text that does not begin with a number.
pub fn driver_major(driver: &str) -> Result<u32, InputError> {
    let major = driver.split('.').next().unwrap_or(driver).trim_start_matches(['r', 'R']);
    let fault = || Fault::Invalid(alloc::format!("`{driver}` is not a driver version such as 550.54.15"));
    major.parse().map_err(|_| InputError::new("driver", fault()))
}

/// What each name means on a device: its own names first, then the catalog's names for
/// profiles of the same slices and attributes, since drivers round names differently.
fn names(space: &Space, model: &Model, listing: &[Profile]) -> BTreeMap<String, DeviceAsk> {
    let mut names = BTreeMap::new();
    match space {
        Space::Grid(grid) => {
            for (id, row) in grid.rows().iter() {
                for (inner, compute) in row.inner().into_iter().flat_map(|g| g.rows().iter()) {
                    names.entry(compute.name.clone()).or_insert(DeviceAsk::Compute(id, inner));
                }
            }
            for (id, row) in grid.rows().iter() {
                names.insert(row.name.clone(), DeviceAsk::Instance(id));
            }
            for profile in &model.profiles {
                let twin = listing.iter().position(|p| p.shape() == profile.shape());
                if let Some(position) = twin {
                    names.entry(profile.name.clone()).or_insert(DeviceAsk::Instance(ProfileId::from_index(position)));
                }
            }
        }
        Space::Uniform(uniform) => {
            for (i, share) in uniform.types().iter().enumerate() {
                names.insert(share.name.clone(), DeviceAsk::Share(i as u16));
            }
        }
        Space::Fluid(_) => {}
    }
    names
}
