//! Policies for MIG streams, published or in use elsewhere, on a fleet that is nothing but
//! masks of memory slices.

mod by_mask;
mod templates;

use std::collections::BTreeMap;

use slicewise::ids::{GpuId, IdVec, ProfileId};
use slicewise::space::Grid;

use crate::mig::{Admission, Placer, ReplayError, Request, Stream};

/// Memory slices of a GPU; a set bit is taken.
type Mask = u64;

/// Names of the policies.
pub const NAMES: [&str; 8] = [
    "rival-first-fit",
    "rival-best-fit",
    "rival-round-robin",
    "rival-worst-fit",
    "rival-max-cc",
    "rival-hami",
    "rival-dra",
    "rival-kai",
];

/// The policy of this name, on so many GPUs.
pub fn named(name: &str, stream: &Stream, gpus: usize) -> Option<Box<dyn Placer>> {
    let fleet = Fleet::new(&stream.grid, gpus);
    Some(match name {
        // Where a claim is for one device, the allocator's first solution is the first device
        // in the order of listing that is free: GPU by GPU, placement by placement.
        "rival-first-fit" | "rival-dra" => rival(fleet, by_mask::first_fit),
        "rival-best-fit" => rival(fleet, by_mask::best_fit),
        "rival-round-robin" => rival(fleet, by_mask::RoundRobin::default().into_rule()),
        "rival-worst-fit" => rival(fleet, by_mask::worst_fit),
        "rival-max-cc" => rival(fleet, by_mask::max_cc),
        "rival-hami" => rival(fleet, templates::Templates::of(&stream.grid, gpus).into_rule()),
        "rival-kai" => rival(fleet, by_mask::by_counts),
        _ => return None,
    })
}

/// The GPUs.
struct Fleet {
    gpus: IdVec<GpuId, Mask>,
    profiles: IdVec<ProfileId, Profile>,
    all: Mask,
}

/// A profile: the masks of its placements, by rising start.
struct Profile {
    places: Vec<Mask>,
    /// Counted by policies that count placements over all profiles.
    plain: bool,
}

impl Fleet {
    fn new(grid: &Grid, gpus: usize) -> Self {
        let run = |start: u16, size: u16| ((1 << size) - 1) << start;
        let profile = |(_, row): (ProfileId, &slicewise::space::Row)| Profile {
            places: row.starts.iter().map(|start| run(*start, row.size)).collect(),
            plain: row.plain,
        };
        let profiles = grid.rows().iter().map(profile).collect();
        Self { gpus: (0..gpus).map(|_| 0).collect(), profiles, all: run(0, grid.cells()) }
    }
    /// Free slices of a GPU.
    fn free(&self, gpu: Mask) -> u32 {
        (self.all & !gpu).count_ones()
    }
    /// Free placements of a profile on a GPU, by rising start.
    fn places(&self, gpu: Mask, profile: ProfileId) -> impl Iterator<Item = Mask> {
        self.profiles[profile].places.iter().copied().filter(move |place| gpu & place == 0)
    }
    /// Free placements of all profiles on a GPU.
    fn placements(&self, gpu: Mask) -> usize {
        let plain = self.profiles.iter().filter(|(_, profile)| profile.plain);
        plain.map(|(id, _)| self.places(gpu, id).count()).sum()
    }
}

/// Where a request goes.
type Place = (GpuId, Mask);

fn rival<'a>(fleet: Fleet, choose: impl FnMut(&Fleet, ProfileId) -> Option<Place> + 'a) -> Box<dyn Placer + 'a> {
    Box::new(Rival { fleet, choose, leases: BTreeMap::new(), last: None })
}

/// A rule with the fleet that it decides on.
struct Rival<C> {
    fleet: Fleet,
    choose: C,
    leases: BTreeMap<usize, Place>,
    last: Option<Place>,
}

impl<C: FnMut(&Fleet, ProfileId) -> Option<Place>> Placer for Rival<C> {
    fn decide(&mut self, _: usize, request: &Request, _: u64) -> Result<Admission, ReplayError> {
        self.last = (self.choose)(&self.fleet, request.profile);
        Ok(self.last.map_or(Admission::Refused, |_| Admission::Admitted { moves: 0 }))
    }
    fn apply(&mut self, step: usize) -> Result<(), ReplayError> {
        if let Some((gpu, place)) = self.last.take() {
            self.fleet.gpus[gpu] |= place;
            self.leases.insert(step, (gpu, place));
        }
        Ok(())
    }
    fn release(&mut self, step: usize) -> Result<(), ReplayError> {
        if let Some((gpu, place)) = self.leases.remove(&step) {
            self.fleet.gpus[gpu] &= !place;
        }
        Ok(())
    }
}
