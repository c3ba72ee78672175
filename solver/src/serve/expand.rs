//! A solution as a document: segments get their places on GPUs, model by model.

use std::collections::VecDeque;

use slicewise_core::serving::{Segment, ServingGpu};

use super::facts::{BySize, Facts};
use super::program::Solution;
use crate::ids::{SizeId, TargetId};

/// The GPUs that hold something. Places of a size are filled in the order of the targets,
/// so the segments of a model lie close to each other.
pub fn expand(facts: &Facts<'_>, solution: &Solution) -> Vec<ServingGpu> {
    let queue = |size: SizeId| -> VecDeque<TargetId> {
        let own =
            solution.segments.iter().map(|(id, counts)| (id, usize::try_from(counts[size]).unwrap_or(usize::MAX)));
        own.flat_map(|(id, n)| std::iter::repeat_n(id, n)).collect()
    };
    let mut waiting: BySize<VecDeque<TargetId>> = facts.sizes.ids().map(queue).collect();
    let mut gpus = Vec::new();
    for (id, shape) in facts.shapes.iter() {
        for _ in 0..solution.gpus[id] {
            let mut instances = Vec::new();
            for (size, start) in &shape.places {
                let target = waiting[*size].pop_front();
                instances.extend(target.and_then(|target| segment(facts, target, *size, *start)));
            }
            if !instances.is_empty() {
                gpus.push(ServingGpu { instances });
            }
        }
    }
    gpus
}

fn segment(facts: &Facts<'_>, target: TargetId, size: SizeId, start: u16) -> Option<Segment> {
    let job = &facts.jobs[target];
    let point = job.points[size]?;
    Some(Segment {
        model: job.target.model.clone(),
        profile: facts.sizes[size].name.clone(),
        size: facts.sizes[size].slices,
        start,
        batch: point.batch,
        processes: point.processes,
        latency_us: point.latency_us,
        throughput_milli: point.throughput_milli,
    })
}
