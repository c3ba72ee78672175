//! A row of cells on which profiles cover runs: MIG GPU instances, and compute
//! instances inside them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Cells, DeviceAsk, Take};
use crate::catalog::{ComputeProfile, EnginePool, Model, Profile};
use crate::ids::{Id, IdVec, ProfileId};

const ENGINES: usize = 4;

/// Thousandths in a compute slice.
const MILLI: u64 = 1000;

/// The profiles of a device and what they may take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    cells: u16,
    compute_slices: Option<u16>,
    max_instances: Option<u16>,
    pool: [Option<u16>; ENGINES],
    rows: IdVec<ProfileId, Row>,
    refused_together: Vec<Vec<ProfileId>>,
}

/// One profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Display name on this device.
    pub name: String,
    /// The driver's profile id.
    pub id: Option<u32>,
    /// Legal first cells, rising; empty where the placements are not known.
    pub starts: Vec<u16>,
    /// Cells covered.
    pub size: u16,
    /// Compute slices.
    pub compute_slices: u16,
    /// Most instances at once.
    pub max_instances: u16,
    /// Whether [`Grid::placements_left`] counts its starts: default engines, no graphics.
    pub plain: bool,
    /// Whether no plain profile of the same compute slices has less memory.
    pub base: bool,
    engines: [u16; ENGINES],
    inner: Option<Box<Grid>>,
}

impl Row {
    /// What is inside an instance of this profile: compute instances, or vGPUs.
    pub fn inner(&self) -> Option<&Grid> {
        self.inner.as_deref()
    }
    fn run(&self, start: u16) -> Cells {
        Cells::run(start, self.size)
    }
    /// Thousandths of compute slices that one of these has inside an instance: its own
    /// slices, or an equal share of the instance's, rounded up.
    fn milli_slices_inside(&self, one: &Self) -> u64 {
        match one.compute_slices {
            0 => (u64::from(self.compute_slices) * MILLI).div_ceil(u64::from(one.max_instances).max(1)),
            slices => u64::from(slices) * MILLI,
        }
    }
}

/// The instances on a grid, by rising start.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout {
    entries: Vec<Entry>,
}

/// One instance on a grid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// First cell.
    pub start: u16,
    /// Profile.
    pub profile: ProfileId,
    /// Who uses it.
    pub hold: Hold,
}

/// Who uses an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// Nobody: it may be handed out or destroyed.
    Idle,
    /// One user has all of it.
    Busy,
    /// Users of compute instances share it.
    Shared(Layout),
}

/// What a take does to a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// The layout afterwards.
    pub layout: Layout,
    /// An existing instance was taken as it is.
    pub reused: bool,
    /// Idle instances that have to be destroyed first.
    pub destroyed: Vec<Entry>,
}

impl Put {
    /// Driver operations on GPU instances: creations and destructions.
    pub fn operations(&self) -> u32 {
        u32::from(!self.reused) + self.destroyed.len() as u32
    }
}

/// Why a profile has no legal start on a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// No placements are known for the profile.
    PlacementsUnknown,
    /// Too few compute slices or cells are free, wherever they lie.
    TooFewSlices,
    /// Enough are free, no start is.
    Fragmented,
    /// The most instances of the profile are there.
    MaxInstances,
    /// Too few engines are left.
    Engines,
    /// The driver refuses it beside what is there.
    RefusedTogether,
}

impl Obstacle {
    /// What it means for an instance that is said to be there.
    pub fn text(self) -> &'static str {
        match self {
            Self::PlacementsUnknown => "its placements are not known",
            Self::TooFewSlices => "the GPU has too few compute slices",
            Self::Fragmented => "another instance is on its cells",
            Self::MaxInstances => "the GPU holds no more of them",
            Self::Engines => "the GPU has too few media engines",
            Self::RefusedTogether => "the driver refuses it beside another instance",
        }
    }
}

impl Layout {
    /// The instances, by rising start.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
    /// Whether no instance is used; idle ones may be there.
    pub fn is_unused(&self) -> bool {
        self.used().next().is_none()
    }
    /// The instances that are used.
    pub fn used(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.entries.iter().filter(|e| e.hold != Hold::Idle)
    }
    /// The instance that starts at this cell.
    pub fn at(&self, start: u16) -> Option<&Entry> {
        self.entries.iter().find(|e| e.start == start)
    }
    /// The layout with one more entry, in order. Nothing is checked.
    #[must_use]
    pub fn with(mut self, entry: Entry) -> Self {
        let position = self.entries.partition_point(|e| e.start < entry.start);
        self.entries.insert(position, entry);
        self
    }
    /// The layout without what starts at this cell.
    #[must_use]
    pub fn without(&self, start: u16) -> Self {
        Self { entries: self.entries.iter().filter(|e| e.start != start).cloned().collect() }
    }
}

impl Grid {
    /// The grid of a model, with a device's own profiles if it lists any. A driver's
    /// major version decides which profiles are there and which it refuses together.
    pub fn of(model: &Model, listing: &[Profile], driver: Option<u32>) -> Self {
        let profiles = if listing.is_empty() { &model.profiles } else { listing };
        // A device's own listing is the authority on its axis.
        let cells = model.memory_slices.unwrap_or(0).max(axis_of(profiles));
        let rows: IdVec<ProfileId, Row> = profiles.iter().map(|p| row(model, p)).collect();
        let refused_together = model
            .refused_together
            .iter()
            .filter(|rule| driver.is_some_and(|d| d < rule.before_driver))
            .filter_map(|rule| rule.profiles.iter().map(|name| position(model, profiles, name)).collect())
            .collect();
        Self {
            cells,
            compute_slices: model.compute_slices,
            max_instances: model.max_gpu_instances,
            pool: pool(model.engine_pool),
            rows,
            refused_together,
        }
    }

    /// The same with a device's own limit on its instances.
    #[must_use]
    pub fn limited_to(self, max_instances: Option<u16>) -> Self {
        Self { max_instances, ..self }
    }

    fn of_compute(profiles: &[ComputeProfile], slices: u16) -> Self {
        let rows = profiles
            .iter()
            .map(|c| Row {
                name: c.name.clone(),
                id: c.id,
                starts: c.placements.as_ref().map(|p| p.starts.clone()).unwrap_or_default(),
                size: c.placements.as_ref().map_or(c.compute_slices, |p| p.size),
                compute_slices: c.compute_slices,
                max_instances: c.max_instances.unwrap_or(u16::MAX),
                plain: true,
                base: true,
                ..Row::default()
            })
            .collect();
        Self { cells: slices, compute_slices: Some(slices), rows, ..Self::default() }
    }

    /// Cells of the axis.
    pub fn cells(&self) -> u16 {
        self.cells
    }
    /// Compute slices of the device, where known.
    pub fn compute_slices(&self) -> Option<u16> {
        self.compute_slices
    }
    /// Most instances at once, whatever their profiles.
    pub fn max_instances(&self) -> Option<u16> {
        self.max_instances
    }
    /// The profiles.
    pub fn rows(&self) -> &IdVec<ProfileId, Row> {
        &self.rows
    }
    /// The profile of this name.
    pub fn find(&self, name: &str) -> Option<ProfileId> {
        self.rows.iter().find(|(_, r)| r.name == name).map(|(id, _)| id)
    }
    /// Cells that nothing uses.
    pub fn cells_free(&self, layout: &Layout) -> u16 {
        self.cells.saturating_sub(self.covered(layout).count() as u16)
    }
    /// Compute slices that nothing uses; `None` where the device's number is not known.
    pub fn compute_free(&self, layout: &Layout) -> Option<u16> {
        let used: u16 = layout.used().map(|e| self.rows[e.profile].compute_slices).sum();
        Some(self.compute_slices?.saturating_sub(used))
    }
    /// Thousandths of compute slices in use, of all; of cells where the device has no slices.
    pub fn compute_used(&self, layout: &Layout) -> (u64, u64) {
        let Some(slices) = self.compute_slices else {
            let cells: u64 = layout.used().map(|e| u64::from(self.rows[e.profile].size)).sum();
            return (cells, self.cells.into());
        };
        let used = layout.used().map(|entry| {
            let row = &self.rows[entry.profile];
            match (&entry.hold, row.inner()) {
                (Hold::Shared(inside), Some(inner)) => {
                    inside.used().map(|e| row.milli_slices_inside(&inner.rows[e.profile])).sum()
                }
                _ => u64::from(row.compute_slices) * MILLI,
            }
        });
        (used.sum(), u64::from(slices) * MILLI)
    }
    fn covered(&self, layout: &Layout) -> Cells {
        layout.used().fold(Cells::default(), |cells, e| cells.with(self.rows[e.profile].run(e.start)))
    }

    /// Whether one more instance of the profile is within engines, maxima and the
    /// driver's rules, beside these.
    fn allows<'a>(&self, beside: impl Iterator<Item = &'a Entry> + Clone, profile: ProfileId) -> Result<(), Obstacle> {
        let row = &self.rows[profile];
        let count = beside.clone().filter(|e| e.profile == profile).count();
        let full = self.max_instances.is_some_and(|max| beside.clone().count() >= usize::from(max));
        if full || count >= usize::from(row.max_instances) {
            return Err(Obstacle::MaxInstances);
        }
        let compute: u32 = beside.clone().map(|e| u32::from(self.rows[e.profile].compute_slices)).sum();
        if self.compute_slices.is_some_and(|slices| compute + u32::from(row.compute_slices) > u32::from(slices)) {
            return Err(Obstacle::TooFewSlices);
        }
        let mut left = self.pool;
        for engines in beside.clone().map(|e| &self.rows[e.profile].engines).chain([&row.engines]) {
            for (pool, &n) in left.iter_mut().zip(engines) {
                if let Some(pool) = pool {
                    *pool = pool.checked_sub(n).ok_or(Obstacle::Engines)?;
                }
            }
        }
        let refused = self.refused_together.iter().any(|set| {
            set.contains(&profile) && set.iter().all(|p| *p == profile || beside.clone().any(|e| e.profile == *p))
        });
        if refused { Err(Obstacle::RefusedTogether) } else { Ok(()) }
    }

    /// The starts at which a new instance is legal, whatever idle instances are in the way.
    pub fn legal_starts<'a>(&'a self, layout: &'a Layout, profile: ProfileId) -> impl Iterator<Item = u16> + 'a {
        let allowed = self.allows(layout.used(), profile).is_ok();
        let covered = self.covered(layout);
        let row = &self.rows[profile];
        row.starts.iter().copied().filter(move |&s| allowed && !row.run(s).overlaps(covered))
    }

    /// Whether a start is among [`Grid::legal_starts`].
    fn is_legal(&self, layout: &Layout, profile: ProfileId, start: u16) -> bool {
        let row = &self.rows[profile];
        let run = row.run(start);
        let hit = |e: &Entry| self.rows[e.profile].run(e.start).overlaps(run);
        row.starts.contains(&start) && !layout.used().any(hit) && self.allows(layout.used(), profile).is_ok()
    }

    /// The used instances on the cells that an instance of the profile would cover.
    pub fn standing<'a>(&self, layout: &'a Layout, profile: ProfileId, start: u16) -> Vec<&'a Entry> {
        let run = self.rows[profile].run(start);
        layout.used().filter(|e| self.rows[e.profile].run(e.start).overlaps(run)).collect()
    }

    /// Why [`Grid::legal_starts`] is empty; `None` if it is not.
    pub fn obstacle(&self, layout: &Layout, profile: ProfileId) -> Option<Obstacle> {
        let row = &self.rows[profile];
        if row.starts.is_empty() {
            return Some(Obstacle::PlacementsUnknown);
        }
        if self.legal_starts(layout, profile).next().is_some() {
            return None;
        }
        let slices_short = self.compute_free(layout).is_some_and(|free| free < row.compute_slices);
        if slices_short || self.cells_free(layout) < row.size {
            return Some(Obstacle::TooFewSlices);
        }
        Some(self.allows(layout.used(), profile).err().unwrap_or(Obstacle::Fragmented))
    }

    /// Where the ask may go.
    pub fn options(&self, layout: &Layout, ask: DeviceAsk) -> Vec<Take> {
        match ask {
            DeviceAsk::Instance(profile) => {
                self.legal_starts(layout, profile).map(|start| Take::Instance { profile, start }).collect()
            }
            DeviceAsk::Compute(profile, inner) => self.compute_options(layout, profile, inner),
            _ => Vec::new(),
        }
    }

    fn compute_options(&self, layout: &Layout, profile: ProfileId, inner: ProfileId) -> Vec<Take> {
        let Some(grid) = self.rows[profile].inner() else { return Vec::new() };
        let empty = Layout::default();
        let shared = layout.used().filter(|e| e.profile == profile).filter_map(|e| match &e.hold {
            Hold::Shared(inside) => Some((e.start, inside)),
            _ => None,
        });
        let fresh = self.legal_starts(layout, profile).map(|start| (start, &empty));
        let mut takes = Vec::new();
        for (start, inside) in shared.chain(fresh) {
            takes.extend(grid.legal_starts(inside, inner).map(|inner_start| Take::Compute {
                profile,
                start,
                inner,
                inner_start,
            }));
        }
        takes.sort_unstable();
        takes
    }

    /// Puts a take on a layout. Idle instances on its cells go; so do further idle ones,
    /// last start first, that hold engines or a place in a maximum that it needs.
    pub fn put(&self, layout: &Layout, take: Take) -> Option<Put> {
        match take {
            Take::Instance { profile, start } => self.put_instance(layout, profile, start, Hold::Busy),
            Take::Compute { profile, start, inner, inner_start } => {
                let grid = self.rows.lookup(profile)?.inner()?;
                let inside = match layout.at(start) {
                    Some(Entry { profile: p, hold: Hold::Shared(inside), .. }) if *p == profile => Some(inside),
                    _ => None,
                };
                let take = Take::Instance { profile: inner, start: inner_start };
                let after = grid.put(inside.unwrap_or(&Layout::default()), take)?.layout;
                if inside.is_none() {
                    return self.put_instance(layout, profile, start, Hold::Shared(after));
                }
                let entry = Entry { start, profile, hold: Hold::Shared(after) };
                Some(Put { layout: layout.without(start).with(entry), reused: true, destroyed: Vec::new() })
            }
            _ => None,
        }
    }

    fn put_instance(&self, layout: &Layout, profile: ProfileId, start: u16, hold: Hold) -> Option<Put> {
        let row = self.rows.lookup(profile)?;
        if !self.is_legal(layout, profile, start) {
            return None;
        }
        if layout.at(start).is_some_and(|e| e.profile == profile && e.hold == Hold::Idle) {
            let layout = layout.without(start).with(Entry { start, profile, hold });
            return Some(Put { layout, reused: true, destroyed: Vec::new() });
        }
        let run = row.run(start);
        let (mut destroyed, mut kept) = (Vec::new(), Vec::with_capacity(layout.entries.len() + 1));
        for entry in &layout.entries {
            let hit = self.rows[entry.profile].run(entry.start).overlaps(run);
            if hit { destroyed.push(entry.clone()) } else { kept.push(entry.clone()) }
        }
        while self.allows(kept.iter(), profile).is_err() {
            let last = kept.iter().rposition(|e| e.hold == Hold::Idle)?;
            destroyed.push(kept.remove(last));
        }
        let layout = Layout { entries: kept }.with(Entry { start, profile, hold });
        Some(Put { layout, reused: false, destroyed })
    }

    /// The layout without the take; a shared instance goes with its last user.
    pub fn remove(&self, layout: &Layout, take: Take) -> Option<Layout> {
        match take {
            Take::Instance { profile, start } => {
                let entry = layout.at(start)?;
                (entry.profile == profile && entry.hold == Hold::Busy).then(|| layout.without(start))
            }
            Take::Compute { profile, start, inner, inner_start } => {
                let entry = layout.at(start)?;
                let Hold::Shared(inside) = &entry.hold else { return None };
                if entry.profile != profile || inside.at(inner_start).is_none_or(|e| e.profile != inner) {
                    return None;
                }
                let inside = inside.without(inner_start);
                let rest = layout.without(start);
                if inside.entries.is_empty() {
                    return Some(rest);
                }
                Some(rest.with(Entry { start, profile, hold: Hold::Shared(inside) }))
            }
            _ => None,
        }
    }

    /// How many of the ask fit together. Runs of one length on a line: taking the lowest
    /// start each time is best.
    pub fn capacity(&self, layout: &Layout, ask: DeviceAsk) -> u32 {
        let DeviceAsk::Instance(profile) = ask else {
            let mut now = layout.clone();
            let mut count = 0;
            while let Some(put) = self.options(&now, ask).into_iter().find_map(|t| self.put(&now, t)) {
                now = put.layout;
                count += 1;
            }
            return count;
        };
        let size = self.rows[profile].size;
        let (mut count, mut next) = (0u32, 0u16);
        let mut extra: Vec<Entry> = layout.used().cloned().collect();
        for start in self.legal_starts(layout, profile) {
            if start >= next && self.allows(extra.iter(), profile).is_ok() {
                extra.push(Entry { start, profile, hold: Hold::Busy });
                next = start.saturating_add(size);
                count += 1;
            }
        }
        count
    }

    /// Legal starts of all plain profiles.
    pub fn placements_left(&self, layout: &Layout) -> u32 {
        self.rows.iter().filter(|(_, row)| row.plain).map(|(id, _)| self.legal_starts(layout, id).count() as u32).sum()
    }

    /// Checks that the entries can all be there, and returns them as a layout.
    pub fn layout(&self, entries: Vec<Entry>) -> Result<Layout, (Entry, Obstacle)> {
        let mut sorted = entries;
        sorted.sort();
        let mut layout = Layout::default();
        for entry in sorted {
            let row = &self.rows[entry.profile];
            let free = Cells::run(0, self.cells).without(self.covered_by_any(&layout));
            let run = row.run(entry.start);
            let legal = row.starts.contains(&entry.start) && run.without(free).count() == 0;
            if let Err(obstacle) = self.allows(layout.entries.iter(), entry.profile) {
                return Err((entry, obstacle));
            }
            if !legal {
                return Err((entry, Obstacle::Fragmented));
            }
            layout.entries.push(entry);
        }
        Ok(layout)
    }

    fn covered_by_any(&self, layout: &Layout) -> Cells {
        layout.entries.iter().fold(Cells::default(), |cells, e| cells.with(self.rows[e.profile].run(e.start)))
    }
}

/// Where a rule's profile stands in a list that may have it under another name.
fn position(model: &Model, profiles: &[Profile], name: &str) -> Option<ProfileId> {
    let own = model.profiles.iter().find(|p| p.name == name);
    let same = |p: &Profile| own.map_or(p.name == name, |own| own.shape() == p.shape());
    profiles.iter().position(same).map(Id::from_index)
}

fn axis_of(profiles: &[Profile]) -> u16 {
    let ends = profiles.iter().filter_map(|p| p.placements.as_ref());
    ends.flat_map(|p| p.starts.iter().map(|s| s.saturating_add(p.size))).max().unwrap_or(0)
}

fn row(model: &Model, profile: &Profile) -> Row {
    let engines = [profile.decoders, profile.encoders, profile.jpeg, profile.ofa].map(|n| n.unwrap_or(0));
    let inner = &profile.compute_instances;
    Row {
        name: profile.name.clone(),
        id: profile.id,
        starts: profile.placements.as_ref().map(|p| p.starts.clone()).unwrap_or_default(),
        size: profile.placements.as_ref().map(|p| p.size).or(profile.memory_slices).unwrap_or(0),
        compute_slices: profile.compute_slices,
        max_instances: profile.max_instances.unwrap_or(u16::MAX),
        plain: model.is_plain(profile),
        base: model.is_base(profile),
        engines,
        inner: (!inner.is_empty()).then(|| Box::new(Grid::of_compute(inner, profile.cells_inside()))),
    }
}

fn pool(pool: EnginePool) -> [Option<u16>; ENGINES] {
    [pool.decoders, pool.encoders, pool.jpeg, pool.ofa]
}
