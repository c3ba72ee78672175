//! A serving request in the solver's own terms: sizes, shapes and, for every target, the
//! fastest usable point of each size.

use std::collections::{BTreeMap, BTreeSet};

use slicewise_core::catalog::{Catalog, Model};
use slicewise_core::error::{Fault, InputError};
use slicewise_core::ids::{IdVec, ProfileId};
use slicewise_core::serving::{Point, Serving, Target, Unservable, UnservableBecause};
use slicewise_core::space::{Entry, Grid, Hold, Layout};

use crate::ids::{ShapeId, SizeId, TargetId};

/// Rates, throughputs and latencies beyond this are refused: nothing real is near it.
const AMOUNT_MAX: u64 = 1_000_000_000_000;
/// Segments that a target may need at least.
const SEGMENTS_MAX: u64 = 100_000;
/// Placed sets looked at for shapes: far beyond the base profiles of every model.
const SETS_MAX: usize = 200_000;
/// Parts per million.
const PPM: u64 = 1_000_000;

/// Something by size.
pub type BySize<T> = IdVec<SizeId, T>;

/// A base profile.
#[derive(Clone, Debug)]
pub struct Size {
    /// The profile's name.
    pub name: String,
    /// Compute slices.
    pub slices: u16,
}

/// A multiset of sizes that fits on a GPU and to which no size can be added.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How many of each size.
    pub counts: BySize<u64>,
    /// One way to lay them out.
    pub places: Vec<(SizeId, u16)>,
}

/// What a target can run on.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// What is asked.
    pub target: &'a Target,
    /// The fastest usable point of each size.
    pub points: BySize<Option<&'a Point>>,
}

impl Job<'_> {
    /// Throughput of a segment of this size; 0 where no point is usable.
    pub fn throughput(&self, size: SizeId) -> u64 {
        self.points.lookup(size).copied().flatten().map_or(0, |p| p.throughput_milli)
    }
}

/// All of it.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Id of the GPU model.
    pub gpu: &'a str,
    /// Base profiles.
    pub sizes: IdVec<SizeId, Size>,
    /// What GPUs can be cut into.
    pub shapes: IdVec<ShapeId, Shape>,
    /// What is asked.
    pub jobs: IdVec<TargetId, Job<'a>>,
}

impl<'a> Facts<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// A GPU without known layouts, a model or point that is there twice, a number out of
    /// range; with the path of the field.
    pub fn read(catalog: &'a Catalog, request: &'a Serving) -> Result<Self, InputError> {
        let model = catalog
            .find(&request.gpu)
            .ok_or_else(|| InputError::new("gpu", Fault::UnknownModel(request.gpu.clone())))?;
        within("max_processes", u64::from(request.max_processes), 1, u64::from(u32::MAX))?;
        within("slo_share_ppm", u64::from(request.slo_share_ppm), 1, PPM)?;
        check_points(&request.points)?;
        let (sizes, shapes) = cut(model)?;
        let mut names = BTreeSet::new();
        for (i, target) in request.targets.iter().enumerate() {
            let at = |field: &str| format!("targets[{i}].{field}");
            if !names.insert(target.model.as_str()) {
                return Err(InputError::new(at("model"), Fault::Duplicate(target.model.clone())));
            }
            within(&at("rate_milli"), target.rate_milli, 0, AMOUNT_MAX)?;
            within(&at("slo_us"), target.slo_us, 1, AMOUNT_MAX)?;
        }
        let jobs: IdVec<TargetId, Job<'a>> = request.targets.iter().map(|t| job(request, &sizes, t)).collect();
        for (i, (_, job)) in jobs.iter().enumerate() {
            let best = sizes.ids().map(|s| job.throughput(s)).max().unwrap_or(0);
            let most = best.saturating_mul(SEGMENTS_MAX);
            if best > 0 && job.target.rate_milli > most {
                within(&format!("targets[{i}].rate_milli"), job.target.rate_milli, 0, most)?;
            }
        }
        Ok(Self { gpu: &model.id, sizes, shapes, jobs })
    }

    /// The targets that nothing can serve.
    pub fn refused(&self, request: &Serving) -> Vec<Unservable> {
        let jobs = self.jobs.iter().map(|(_, job)| job);
        let hopeless = jobs.filter(|j| j.target.rate_milli > 0 && j.points.iter().all(|(_, p)| p.is_none()));
        hopeless
            .map(|job| {
                let target = job.target;
                let own = request.points.iter().filter(|p| p.model == target.model && self.can_run(request, p));
                let latency_us_least = own.map(|p| p.latency_us).min();
                let because = match latency_us_least {
                    Some(_) => UnservableBecause::Latency,
                    None => UnservableBecause::NoPoint,
                };
                let latency_us_below = latency_below(request, target);
                Unservable { model: target.model.clone(), because, latency_us_least, latency_us_below }
            })
            .collect()
    }

    fn can_run(&self, request: &Serving, point: &Point) -> bool {
        runs(request, point) && self.sizes.iter().any(|(_, s)| s.slices == point.compute_slices)
    }
}

/// Least whole latency that is no longer allowed.
fn latency_below(request: &Serving, target: &Target) -> u64 {
    let limit = u128::from(target.slo_us) * u128::from(request.slo_share_ppm);
    u64::try_from(limit.div_ceil(u128::from(PPM))).unwrap_or(u64::MAX)
}

fn runs(request: &Serving, point: &Point) -> bool {
    point.processes <= request.max_processes && point.throughput_milli > 0
}

fn within(path: &str, value: u64, min: u64, max: u64) -> Result<(), InputError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(InputError::new(path, Fault::OutOfRange { value, min, max }))
}

fn check_points(points: &[Point]) -> Result<(), InputError> {
    let mut seen = BTreeSet::new();
    for (i, point) in points.iter().enumerate() {
        let key = (point.model.as_str(), point.compute_slices, point.batch, point.processes);
        if !seen.insert(key) {
            let text =
                format!("{} on {} × {} with {}", point.model, point.compute_slices, point.batch, point.processes);
            return Err(InputError::new(format!("points[{i}]"), Fault::Duplicate(text)));
        }
        within(&format!("points[{i}].throughput_milli"), point.throughput_milli, 0, AMOUNT_MAX)?;
        within(&format!("points[{i}].latency_us"), point.latency_us, 0, AMOUNT_MAX)?;
    }
    Ok(())
}

/// The fastest usable points of a target: of equals, the one with the least latency, then
/// the fewest processes and the smallest batch.
fn job<'a>(request: &'a Serving, sizes: &IdVec<SizeId, Size>, target: &'a Target) -> Job<'a> {
    let below = latency_below(request, target);
    let rank = |p: &&Point| (p.throughput_milli, std::cmp::Reverse((p.latency_us, p.processes, p.batch)));
    let usable: Vec<&Point> =
        request.points.iter().filter(|p| p.model == target.model && runs(request, p) && p.latency_us < below).collect();
    let best = |size: &Size| usable.iter().copied().filter(|p| p.compute_slices == size.slices).max_by_key(rank);
    Job { target, points: sizes.iter().map(|(_, size)| best(size)).collect() }
}

/// Sizes and shapes.
type Cuts = (IdVec<SizeId, Size>, IdVec<ShapeId, Shape>);

/// Sizes and shapes of a model.
fn cut(model: &Model) -> Result<Cuts, InputError> {
    let grid = Grid::of(model, &[], None);
    let mut base: BTreeMap<u16, ProfileId> = BTreeMap::new();
    for (id, row) in grid.rows().iter().filter(|(_, row)| row.base && !row.starts.is_empty()) {
        base.entry(row.compute_slices).or_insert(id);
    }
    let profiles: IdVec<SizeId, ProfileId> = base.values().copied().collect();
    if profiles.is_empty() {
        let fault = Fault::UnknownPlacements { profile: "1g".into(), model: model.id.clone() };
        return Err(InputError::new("gpu", fault));
    }
    let mut found: BTreeMap<Vec<u64>, Vec<(SizeId, u16)>> = BTreeMap::new();
    let mut open: Vec<(Layout, Vec<(SizeId, u16)>)> = vec![(Layout::default(), Vec::new())];
    let mut seen = 0_usize;
    while let Some((layout, places)) = open.pop() {
        seen += 1;
        if seen > SETS_MAX {
            return Err(InputError::new("gpu", Fault::Invalid(format!("`{}` has too many layouts", model.id))));
        }
        let from = places.last().map_or(0, |(_, start)| start + 1);
        let mut is_full = true;
        for (size, profile) in profiles.iter() {
            for start in grid.legal_starts(&layout, *profile) {
                is_full = false;
                if start >= from {
                    let entry = Entry { start, profile: *profile, hold: Hold::Busy };
                    let places = places.iter().copied().chain([(size, start)]).collect();
                    open.push((layout.clone().with(entry), places));
                }
            }
        }
        if is_full {
            let count = |size: SizeId| places.iter().filter(|(s, _)| *s == size).count() as u64;
            found.entry(profiles.ids().map(count).collect()).or_insert(places);
        }
    }
    // What fits beside a full layout elsewhere makes it a part of a larger one.
    let holds = |a: &[u64], b: &[u64]| a != b && a.iter().zip(b).all(|(a, b)| a >= b);
    let shapes = found
        .iter()
        .filter(|(counts, _)| !found.keys().any(|other| holds(other, counts)))
        .map(|(counts, places)| Shape { counts: counts.iter().copied().collect(), places: places.clone() })
        .collect();
    let size = |(_, profile): (SizeId, &ProfileId)| {
        let row = &grid.rows()[*profile];
        Size { name: row.name.clone(), slices: row.compute_slices }
    };
    Ok((profiles.iter().map(size).collect(), shapes))
}
