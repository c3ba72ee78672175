//! Finds legal starts for instances of which only the profiles are known.

use std::collections::BTreeMap;

use slicewise_core::catalog::{Model, Profile, parse_profile_name};

use super::ImportFault;

/// Placements tried before the search gives up; GPUs of today need a few hundred.
const TRIES_MAX: u32 = 1_000_000;

/// Starts for each of `wanted`, in their order: the largest first, each at its lowest
/// start that leaves room for the others.
///
/// # Errors
/// No such starts, or a profile whose placements nobody knows.
pub(super) fn arrange(model: &Model, driver: Option<u32>, wanted: &[&Profile]) -> Result<Vec<u16>, ImportFault> {
    for profile in wanted {
        if profile.placements.is_none() {
            return Err(ImportFault::PlacementsUnknown { profile: profile.name.clone(), model: model.id.clone() });
        }
    }
    let refused = || ImportFault::NoArrangement { counts: counts(wanted), model: model.id.clone() };
    if !within_pools(model, driver, wanted) {
        return Err(refused());
    }
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&i| wanted.get(i).map(|p| (std::cmp::Reverse(p.memory_slices), p.id, p.name.clone())));
    let mut search = Search { wanted, order: &order, placed: Vec::new(), tries: 0 };
    if !search.place() {
        return Err(refused());
    }
    let mut starts = vec![0; wanted.len()];
    for (&at, &(start, _)) in order.iter().zip(&search.placed) {
        if let Some(slot) = starts.get_mut(at) {
            *slot = start;
        }
    }
    Ok(starts)
}

struct Search<'s> {
    wanted: &'s [&'s Profile],
    order: &'s [usize],
    placed: Vec<(u16, u16)>,
    tries: u32,
}

impl Search<'_> {
    fn place(&mut self) -> bool {
        let depth = self.placed.len();
        let Some(profile) = self.order.get(depth).and_then(|&i| self.wanted.get(i)) else { return true };
        let Some(placements) = &profile.placements else { return false };
        // Alike instances stand in rising order: any other order is the same layout.
        let before = depth.checked_sub(1).and_then(|d| self.order.get(d)).and_then(|&i| self.wanted.get(i));
        let least = match before {
            Some(other) if other.name == profile.name => {
                self.placed.last().map_or(0, |&(start, size)| start.saturating_add(size))
            }
            _ => 0,
        };
        for &start in placements.starts.iter().filter(|&&s| s >= least) {
            self.tries += 1;
            if self.tries > TRIES_MAX {
                return false;
            }
            let end = start.saturating_add(placements.size);
            if self.placed.iter().any(|&(s, size)| start < s.saturating_add(size) && s < end) {
                continue;
            }
            self.placed.push((start, placements.size));
            if self.place() {
                return true;
            }
            self.placed.pop();
        }
        false
    }
}

/// Per-profile maxima, media engines, the number of instances, and pairs that old drivers refuse.
fn within_pools(model: &Model, driver: Option<u32>, wanted: &[&Profile]) -> bool {
    let sum =
        |amount: fn(&Profile) -> Option<u16>| -> u64 { wanted.iter().map(|p| u64::from(amount(p).unwrap_or(0))).sum() };
    let pool = &model.engine_pool;
    let fits = |have: Option<u16>, used: u64| have.is_none_or(|have| used <= u64::from(have));
    let number = |name: &str| wanted.iter().filter(|p| p.name == name).count();
    let together = |names: &[String]| names.iter().all(|n| number(n) > 0);
    fits(pool.decoders, sum(|p| p.decoders))
        && fits(pool.encoders, sum(|p| p.encoders))
        && fits(pool.jpeg, sum(|p| p.jpeg))
        && fits(pool.ofa, sum(|p| p.ofa))
        && fits(model.memory_slices, sum(|p| p.placements.as_ref().map(|x| x.size)))
        && model.max_gpu_instances.is_none_or(|most| wanted.len() <= usize::from(most))
        && wanted.iter().all(|p| p.max_instances.is_none_or(|most| number(&p.name) <= usize::from(most)))
        && !model.refused_together.iter().any(|r| driver.is_some_and(|d| d < r.before_driver) && together(&r.profiles))
}

/// `2 x 1g.10gb, 1 x 3g.40gb`.
fn counts(wanted: &[&Profile]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for profile in wanted {
        *counts.entry(&profile.name).or_default() += 1;
    }
    counts.iter().map(|(name, n)| format!("{n} x {name}")).collect::<Vec<_>>().join(", ")
}

/// The profile that a tool means: by name and, where both are known, by id. Drivers round
/// the gigabytes in names differently, so a name that nobody has still matches by its
/// other parts.
pub(super) fn resolve<'p>(profiles: &'p [Profile], name: &str, id: Option<u32>) -> Option<&'p Profile> {
    let same_id = |p: &Profile| id.is_none() || p.id.is_none() || p.id == id;
    if let Some(found) = profiles.iter().find(|p| p.name == name && same_id(p)) {
        return Some(found);
    }
    let parts = parse_profile_name(name)?;
    let mut alike = profiles.iter().filter(|p| {
        let known = (p.compute_slices, p.media, p.gfx) == (parts.compute_slices, parts.media, parts.gfx);
        let label = parse_profile_name(&p.name).map_or(0, |own| own.label_gb);
        let near = label.abs_diff(parts.label_gb) <= 1 + parts.label_gb / 32;
        known && near && same_id(p)
    });
    match (alike.next(), alike.next()) {
        (Some(one), None) => Some(one),
        _ => None,
    }
}

/// The major version of a driver, `550` of `550.54.15`.
pub(super) fn major(driver: Option<&str>) -> Option<u32> {
    driver?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use slicewise_core::catalog::Catalog;

    #[rstest]
    #[case("h100-sxm5-80gb", &["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"], Some(&[4, 0, 2, 3][..]))]
    #[case("a100-40gb", &["3g.20gb", "4g.20gb"], Some(&[4, 0][..]))]
    #[case("a100-40gb", &["2g.10gb", "2g.10gb", "2g.10gb", "1g.5gb", "1g.5gb"], None)]
    #[case("a100-40gb", &["1g.5gb+me", "1g.5gb+me"], None)]
    #[case("rtx-pro-6000-96gb", &["1g.24gb", "2g.48gb"], Some(&[6, 0][..]))]
    #[case("a30-24gb", &[], Some(&[][..]))]
    fn starts_are_legal_or_refused(#[case] model: &str, #[case] names: &[&str], #[case] starts: Option<&[u16]>) {
        let catalog = Catalog::built_in().unwrap();
        let model = catalog.find(model).unwrap();
        let wanted: Vec<&Profile> = names.iter().map(|n| resolve(&model.profiles, n, None).unwrap()).collect();
        assert_eq!(arrange(model, None, &wanted).ok().as_deref(), starts);
    }

    #[test]
    fn names_of_other_drivers_resolve_by_their_parts() {
        let catalog = Catalog::built_in().unwrap();
        let a100 = &catalog.find("a100-80gb").unwrap().profiles;
        assert_eq!(resolve(a100, "3g.39gb", None).unwrap().name, "3g.40gb");
        assert_eq!(resolve(a100, "1g.10gb", Some(15)), None);
        assert_eq!(resolve(a100, "9g.10gb", None), None);
        assert_eq!(major(Some("550.54.15")), Some(550));
    }
}
