//! Rules that look at nothing but the masks. Where a rule picks a GPU only, the lowest free
//! start on it is taken.

use slicewise::ids::{GpuId, Id, ProfileId};

use super::{Fleet, Mask, Place};

/// Each GPU with room, with its lowest free placement.
fn open(fleet: &Fleet, profile: ProfileId) -> impl Iterator<Item = (GpuId, Mask, Mask)> {
    fleet.gpus.iter().filter_map(move |(id, gpu)| Some((id, *gpu, fleet.places(*gpu, profile).next()?)))
}

/// The first GPU with room.
pub(super) fn first_fit(fleet: &Fleet, profile: ProfileId) -> Option<Place> {
    open(fleet, profile).next().map(|(id, _, place)| (id, place))
}

/// The GPU with the fewest free slices.
pub(super) fn best_fit(fleet: &Fleet, profile: ProfileId) -> Option<Place> {
    open(fleet, profile).min_by_key(|(_, gpu, _)| fleet.free(*gpu)).map(|(id, _, place)| (id, place))
}

/// The GPU with the most free slices.
pub(super) fn worst_fit(fleet: &Fleet, profile: ProfileId) -> Option<Place> {
    let most = open(fleet, profile).min_by_key(|(_, gpu, _)| std::cmp::Reverse(fleet.free(*gpu)));
    most.map(|(id, _, place)| (id, place))
}

/// The placement that takes the fewest placements of all profiles away, then the GPU with
/// the fewest free slices.
pub(super) fn max_cc(fleet: &Fleet, profile: ProfileId) -> Option<Place> {
    let places =
        fleet.gpus.iter().flat_map(|(id, gpu)| fleet.places(*gpu, profile).map(move |place| (id, *gpu, place)));
    let lost = |gpu: Mask, place: Mask| fleet.placements(gpu) - fleet.placements(gpu | place);
    places.min_by_key(|(_, gpu, place)| (lost(*gpu, *place), fleet.free(*gpu))).map(|(id, _, place)| (id, place))
}

/// The fullest GPU that has enough free slices by count, as schedulers that see extended
/// resources do. The count may lie: then the device has no placement, and the request fails.
pub(super) fn by_counts(fleet: &Fleet, profile: ProfileId) -> Option<Place> {
    let size = fleet.profiles[profile].places.first()?.count_ones();
    let enough = fleet.gpus.iter().filter(|(_, gpu)| fleet.free(**gpu) >= size);
    let (id, gpu) = enough.min_by_key(|(_, gpu)| fleet.free(**gpu))?;
    Some((id, fleet.places(*gpu, profile).next()?))
}

/// The next GPU with room after the one that was taken last.
#[derive(Default)]
pub(super) struct RoundRobin {
    next: usize,
}

impl RoundRobin {
    pub(super) fn into_rule(mut self) -> impl FnMut(&Fleet, ProfileId) -> Option<Place> {
        move |fleet, profile| {
            let count = fleet.gpus.len();
            let order = (self.next..count).chain(0..self.next).map(GpuId::from_index);
            let (id, place) =
                order.filter_map(|id| Some((id, fleet.places(fleet.gpus[id], profile).next()?))).next()?;
            self.next = (id.index() + 1) % count;
            Some((id, place))
        }
    }
}
