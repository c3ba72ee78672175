//! Whether a deployment of inference models is right: every GPU legal, every instance at a
//! measured point that is fast enough, every rate reached, the bound proved again.

mod bound;
mod cover;
mod shapes;

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use self::bound::prove;
use self::shapes::Shapes;
use super::device;
use super::{Rule, Violation};
use crate::catalog::{Catalog, Model};
use crate::serving::{Deployment, GpuProof, Point, Segment, Serving, Target, Unservable, UnservableBecause};

const PPM: u128 = 1_000_000;

/// Checks a deployment against what was asked: legal instances on every GPU, latencies and
/// rates, totals, and a bound no tighter than its certificate proves.
///
/// # Errors
/// The first rule that does not hold.
pub fn serving(catalog: &Catalog, request: &Serving, deployment: &Deployment) -> Result<(), Violation> {
    let case = Case::of(catalog, request)?;
    if deployment.gpu != case.model.id {
        let text = alloc::format!("it is for `{}`, `{}` was asked", deployment.gpu, case.model.id);
        return Err(Violation::new(Rule::Model, "gpu", text));
    }
    let mut reached = alloc::vec![0u128; request.targets.len()];
    for (g, gpu) in deployment.deployment.iter().enumerate() {
        let at = alloc::format!("deployment[{g}]");
        let mut placed = Vec::new();
        for (i, segment) in gpu.instances.iter().enumerate() {
            let within = |v: Violation| v.within(&alloc::format!("{at}.instances[{i}]"));
            placed.push((case.profile(segment).map_err(within)?, segment.start));
            let target = case.target(segment).map_err(within)?;
            if let Some(sum) = reached.get_mut(target) {
                *sum = sum.saturating_add(u128::from(segment.throughput_milli));
            }
        }
        device::check(case.model, &case.model.profiles, None, case.model.max_gpu_instances, &placed)
            .map_err(|v| v.within(&at))?;
    }
    for (i, (target, reached)) in request.targets.iter().zip(&reached).enumerate() {
        if *reached < u128::from(target.rate_milli) {
            let text = alloc::format!("`{}` gets {reached} of {} m/s", target.model, target.rate_milli);
            return Err(Violation::new(Rule::Rate, alloc::format!("targets[{i}]"), text));
        }
    }
    let count = u64::try_from(deployment.deployment.len()).unwrap_or(u64::MAX);
    if deployment.gpus != count {
        return Err(Violation::new(Rule::Total, "gpus", alloc::format!("{count} are listed")));
    }
    let proved = prove(&case, &deployment.certificate)?;
    if deployment.bound > proved {
        return Err(Violation::new(Rule::Bound, "bound", alloc::format!("the certificate proves {proved}")));
    }
    if deployment.gpus.checked_sub(deployment.bound) != Some(deployment.gap) {
        let text = alloc::format!("{} GPUs, a bound of {}", deployment.gpus, deployment.bound);
        return Err(Violation::new(Rule::Gap, "gap", text));
    }
    Ok(())
}

/// GPUs that every deployment takes, by a certificate alone. `u64::MAX`: there is none.
///
/// Where the exact search for cheapest segments would be too long, what is proved may be
/// less than the certificate is worth, never more.
///
/// # Errors
/// A request or certificate that cannot be read.
pub fn serving_bound(catalog: &Catalog, request: &Serving, certificate: &GpuProof) -> Result<u64, Violation> {
    prove(&Case::of(catalog, request)?, certificate)
}

/// Checks that nothing can serve these targets, for the reasons given.
///
/// # Errors
/// The first refusal that is not right; a refusal of nothing.
pub fn serving_refusal(catalog: &Catalog, request: &Serving, refused: &[Unservable]) -> Result<(), Violation> {
    let case = Case::of(catalog, request)?;
    if refused.is_empty() {
        return Err(Violation::new(Rule::Refusal, "refused", "nothing is refused"));
    }
    for (i, refusal) in refused.iter().enumerate() {
        let fail = |text: String| Err(Violation::new(Rule::Refusal, alloc::format!("refused[{i}]"), text));
        let Some(target) = request.targets.iter().find(|t| t.model == refusal.model) else {
            return fail(alloc::format!("`{}` is not asked", refusal.model));
        };
        if target.rate_milli == 0 {
            return fail(alloc::format!("`{}` asks nothing", target.model));
        }
        let known = request.points.iter().filter(|p| p.model == target.model && case.can_run(p));
        let least = known.map(|p| p.latency_us).min();
        let below = limit(request, target).div_ceil(PPM);
        let because = if least.is_none() { UnservableBecause::NoPoint } else { UnservableBecause::Latency };
        if least.is_some_and(|l| u128::from(l) < below) {
            return fail(alloc::format!("`{}` has a point that is fast enough", target.model));
        }
        let same = refusal.because == because
            && refusal.latency_us_least == least
            && u128::from(refusal.latency_us_below) == below;
        if !same {
            return fail(alloc::format!("`{}` is refused for {because:?}: {least:?}, {below}", target.model));
        }
    }
    Ok(())
}

/// The objective's share, in millionths of a microsecond.
fn limit(request: &Serving, target: &Target) -> u128 {
    u128::from(target.slo_us) * u128::from(request.slo_share_ppm)
}

/// A request and what its GPU can be cut into.
struct Case<'a> {
    request: &'a Serving,
    model: &'a Model,
    shapes: Shapes,
}

impl<'a> Case<'a> {
    fn of(catalog: &'a Catalog, request: &'a Serving) -> Result<Self, Violation> {
        let Some(model) = catalog.find(&request.gpu) else {
            return Err(Violation::new(Rule::Unknown, "gpu", alloc::format!("no model `{}`", request.gpu)));
        };
        let mut seen = BTreeSet::new();
        for (i, target) in request.targets.iter().enumerate() {
            if !seen.insert(target.model.as_str()) {
                let text = alloc::format!("`{}` is there already", target.model);
                return Err(Violation::new(Rule::Duplicate, alloc::format!("targets[{i}]"), text));
            }
        }
        Ok(Self { request, model, shapes: Shapes::of(model)? })
    }

    /// Whether the point could run on the GPU at all.
    fn can_run(&self, point: &Point) -> bool {
        let sizes = self.shapes.profiles.iter().filter_map(|p| self.model.profiles.get(*p));
        point.throughput_milli > 0
            && point.processes <= self.request.max_processes
            && sizes.into_iter().any(|p| p.compute_slices == point.compute_slices)
    }

    fn is_usable(&self, point: &Point, target: &Target) -> bool {
        point.model == target.model
            && self.can_run(point)
            && u128::from(point.latency_us) * PPM < limit(self.request, target)
    }

    /// The fastest usable point of a target on a profile; 0 if there is none.
    fn fastest(&self, target: &Target, profile: usize) -> u64 {
        let slices = self.model.profiles.get(profile).map(|p| p.compute_slices);
        let usable = self.request.points.iter().filter(|p| Some(p.compute_slices) == slices);
        usable.filter(|p| self.is_usable(p, target)).map(|p| p.throughput_milli).max().unwrap_or(0)
    }

    /// The position of a segment's profile in the model's list.
    fn profile(&self, segment: &Segment) -> Result<usize, Violation> {
        let is_it = |p: &&usize| {
            let profile = self.model.profiles.get(**p);
            profile.is_some_and(|p| p.name == segment.profile && p.compute_slices == segment.size)
        };
        self.shapes.profiles.iter().find(is_it).copied().ok_or_else(|| {
            let text = alloc::format!("`{}` of size {} is no base profile", segment.profile, segment.size);
            Violation::new(Rule::NotOffered, "profile", text)
        })
    }

    /// The position of the target that a segment serves.
    fn target(&self, segment: &Segment) -> Result<usize, Violation> {
        let name = &segment.model;
        let found = self.request.targets.iter().enumerate().find(|(_, t)| t.model == *name);
        let Some((position, target)) = found else {
            return Err(Violation::new(Rule::Unknown, "model", alloc::format!("`{name}` is not asked")));
        };
        let is_it = |p: &&Point| {
            p.model == *name
                && p.compute_slices == segment.size
                && (p.batch, p.processes) == (segment.batch, segment.processes)
                && (p.latency_us, p.throughput_milli) == (segment.latency_us, segment.throughput_milli)
        };
        let Some(point) = self.request.points.iter().find(is_it) else {
            let text = alloc::format!("`{name}` was not measured so on size {}", segment.size);
            return Err(Violation::new(Rule::Point, "", text));
        };
        if point.processes > self.request.max_processes {
            let text = alloc::format!("{} processes, {} allowed", point.processes, self.request.max_processes);
            return Err(Violation::new(Rule::Point, "processes", text));
        }
        if !self.is_usable(point, target) {
            let below = limit(self.request, target).div_ceil(PPM);
            let text = alloc::format!("{} µs is not below {below} µs", point.latency_us);
            return Err(Violation::new(Rule::Latency, "latency_us", text));
        }
        Ok(position)
    }
}
