//! What a GPU can be cut into, counted by profile: found by trying every placed set with
//! the checker's own rules.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::catalog::Model;
use crate::verify::{Rule, Violation, device};

/// Placed sets looked at before giving up: far beyond the base profiles of every model.
const SETS_MAX: usize = 200_000;

/// The base profiles of a model, one for each number of compute slices, and the maximal
/// multisets of them.
pub(super) struct Shapes {
    /// Positions in the model's list.
    pub(super) profiles: Vec<usize>,
    /// How many of each profile, in the same order. None holds as many of each as another.
    pub(super) layouts: Vec<Vec<u64>>,
}

impl Shapes {
    pub(super) fn of(model: &Model) -> Result<Self, Violation> {
        let mut slices = BTreeSet::new();
        let base = model.profiles.iter().enumerate().filter(|(_, p)| model.is_base(p) && p.placements.is_some());
        let profiles: Vec<usize> = base.filter(|(_, p)| slices.insert(p.compute_slices)).map(|(i, _)| i).collect();
        if profiles.is_empty() {
            let text = alloc::format!("placements of `{}` are not known", model.id);
            return Err(Violation::new(Rule::NotOffered, "gpu", text));
        }
        let starts: Vec<(usize, u16)> = profiles
            .iter()
            .flat_map(|p| {
                let places = model.profiles.get(*p).and_then(|p| p.placements.as_ref());
                places.into_iter().flat_map(|places| &places.starts).map(|s| (*p, *s))
            })
            .collect();
        let mut sets: BTreeSet<Vec<u64>> = BTreeSet::new();
        let mut open: Vec<Vec<(usize, u16)>> = Vec::from([Vec::new()]);
        let mut seen = 0usize;
        while let Some(set) = open.pop() {
            seen += 1;
            if seen > SETS_MAX {
                let text = alloc::format!("`{}` has too many layouts to check", model.id);
                return Err(Violation::new(Rule::Document, "gpu", text));
            }
            let count = |p: &usize| set.iter().filter(|(q, _)| q == p).count() as u64;
            sets.insert(profiles.iter().map(count).collect());
            // Placed from left to right, so that every set is made once.
            let from = set.last().map(|(_, start)| *start);
            for next in starts.iter().filter(|(_, start)| from.is_none_or(|from| *start > from)) {
                let mut larger = set.clone();
                larger.push(*next);
                if device::check(model, &model.profiles, None, model.max_gpu_instances, &larger).is_ok() {
                    open.push(larger);
                }
            }
        }
        let holds = |a: &Vec<u64>, b: &Vec<u64>| a != b && a.iter().zip(b).all(|(a, b)| a >= b);
        let layouts = sets.iter().filter(|b| !sets.iter().any(|a| holds(a, b))).cloned().collect();
        Ok(Self { profiles, layouts })
    }
}
