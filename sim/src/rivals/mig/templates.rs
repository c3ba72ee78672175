//! GPUs cut by templates, as HAMi does: an empty GPU takes the first template that has the
//! profile and keeps it until it is empty again; GPUs are filled in order, each before the
//! next is opened.

use slicewise::ids::{GpuId, IdVec, ProfileId};
use slicewise::space::Grid;

use super::{Fleet, Mask, Place};

/// A way to cut a GPU: profiles with their masks.
type Template = Vec<(ProfileId, Mask)>;

/// The templates, and which of them each GPU has.
pub(super) struct Templates {
    templates: Vec<Template>,
    chosen: IdVec<GpuId, usize>,
}

impl Templates {
    /// For each plain profile a template of as many of it as fit, the rest filled with the
    /// next smaller ones.
    pub(super) fn of(grid: &Grid, gpus: usize) -> Self {
        let fleet = Fleet::new(grid, 0);
        let mut plain: Vec<ProfileId> = grid.rows().iter().filter(|(_, row)| row.plain).map(|(id, _)| id).collect();
        plain.sort_by_key(|id| {
            (std::cmp::Reverse(grid.rows()[*id].size), std::cmp::Reverse(grid.rows()[*id].compute_slices))
        });
        let cut = |first: usize| {
            let (mut taken, mut template) = (0, Template::new());
            for id in plain.iter().skip(first) {
                while let Some(place) = fleet.places(taken, *id).next() {
                    taken |= place;
                    template.push((*id, place));
                }
            }
            template
        };
        Self { templates: (0..plain.len()).map(cut).rev().collect(), chosen: (0..gpus).map(|_| 0).collect() }
    }

    pub(super) fn into_rule(mut self) -> impl FnMut(&Fleet, ProfileId) -> Option<Place> {
        move |fleet, profile| {
            for (id, gpu) in fleet.gpus.iter() {
                let free = |template: &Template| {
                    template.iter().find(|(own, place)| *own == profile && gpu & place == 0).map(|(_, place)| *place)
                };
                if *gpu == 0 {
                    let with = self.templates.iter().enumerate().find_map(|(i, template)| Some((i, free(template)?)));
                    let (chosen, place) = with?;
                    self.chosen[id] = chosen;
                    return Some((id, place));
                }
                if let Some(place) = self.templates.get(self.chosen[id]).and_then(free) {
                    return Some((id, place));
                }
            }
            None
        }
    }
}
