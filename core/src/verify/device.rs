//! The legality of one GPU's instances, fast enough for the engine's hot path: nothing is
//! allocated unless something is wrong.

use alloc::string::String;

use super::{Rule, Violation};
use crate::catalog::{EnginePool, Model, Profile};

/// Cells that the check can tell apart; no catalog has more.
const CELLS: usize = 384;
const WORD: usize = 64;

/// Checks that these instances, each a position in `profiles` and a first cell, can all be
/// on one GPU of the model: legal starts, disjoint cells, the most instances of the GPU and
/// of each profile, compute slices, engine pools (an absent pool is no limit), and what the
/// driver refuses together (an unknown driver refuses nothing).
///
/// The least driver of a profile is not looked at: it bounds what may be created, not what
/// is there.
///
/// # Errors
/// The first rule that does not hold.
pub fn check(
    model: &Model,
    profiles: &[Profile],
    driver_major: Option<u32>,
    max_instances: Option<u16>,
    instances: &[(usize, u16)],
) -> Result<(), Violation> {
    let mut covered = [0u64; CELLS / WORD];
    let mut engines = [0u32; 4];
    let mut compute = 0u32;
    for (i, &(position, start)) in instances.iter().enumerate() {
        let Some(profile) = profiles.get(position) else {
            return fail(Rule::Unknown, i, || alloc::format!("no profile at position {position}"));
        };
        cover(&mut covered, profile, start).map_err(|(rule, text)| broken(rule, i, profile, start, text))?;
        let beside = instances.get(..i).unwrap_or_default();
        let before = beside.iter().filter(|(p, _)| *p == position).count();
        if profile.max_instances.is_some_and(|max| before >= usize::from(max)) {
            return Err(broken(Rule::MaxInstances, i, profile, start, "is one more than the profile allows"));
        }
        compute += u32::from(profile.compute_slices);
        for (sum, n) in engines.iter_mut().zip(engines_of(profile)) {
            *sum += u32::from(n);
        }
    }
    if max_instances.is_some_and(|max| instances.len() > usize::from(max)) {
        return fail(Rule::MaxInstances, instances.len(), || String::from("more instances than the GPU may hold"));
    }
    if model.compute_slices.is_some_and(|slices| compute > u32::from(slices)) {
        return fail(Rule::ComputeSlices, instances.len(), || alloc::format!("{compute} compute slices are too many"));
    }
    let pool = pool_of(model.engine_pool);
    if engines.iter().zip(pool).any(|(n, has)| has.is_some_and(|has| *n > u32::from(has))) {
        return fail(Rule::Engines, instances.len(), || alloc::format!("engines {engines:?} of {pool:?}"));
    }
    if let Some(driver) = driver_major {
        refused(model, profiles, driver, instances)?;
    }
    Ok(())
}

/// Engines of a profile in the order of the pool; what is not known counts as none.
pub(super) fn engines_of(profile: &Profile) -> [u16; 4] {
    [profile.decoders, profile.encoders, profile.jpeg, profile.ofa].map(Option::unwrap_or_default)
}

/// The pool as an array.
pub(super) fn pool_of(pool: EnginePool) -> [Option<u16>; 4] {
    [pool.decoders, pool.encoders, pool.jpeg, pool.ofa]
}

fn cover(covered: &mut [u64; CELLS / WORD], profile: &Profile, start: u16) -> Result<(), (Rule, &'static str)> {
    let Some(places) = &profile.placements else { return Err((Rule::Start, "has no known placements")) };
    if !places.starts.contains(&start) {
        return Err((Rule::Start, "has no such start"));
    }
    let (first, end) = (usize::from(start), usize::from(start) + usize::from(places.size));
    if end > CELLS {
        return Err((Rule::Size, "passes every axis"));
    }
    let mut at = first;
    while at < end {
        let (word, bit) = (at / WORD, at % WORD);
        let run = (WORD - bit).min(end - at);
        let mask = (u64::MAX >> (WORD - run)) << bit;
        let Some(cells) = covered.get_mut(word) else { return Err((Rule::Size, "passes every axis")) };
        if *cells & mask != 0 {
            return Err((Rule::Overlap, "covers a cell that another covers"));
        }
        *cells |= mask;
        at += run;
    }
    Ok(())
}

/// A rule names profiles as the catalog does; a device's own names may differ, so what has
/// the same shape is meant too.
fn refused(model: &Model, profiles: &[Profile], driver: u32, instances: &[(usize, u16)]) -> Result<(), Violation> {
    for rule in model.refused_together.iter().filter(|rule| driver < rule.before_driver) {
        let there =
            |name: &String| instances.iter().any(|(p, _)| profiles.get(*p).is_some_and(|p| is_meant(model, name, p)));
        if !rule.profiles.is_empty() && rule.profiles.iter().all(there) {
            return fail(Rule::RefusedTogether, instances.len(), || {
                alloc::format!("driver {driver} refuses {} together", rule.profiles.join(" and "))
            });
        }
    }
    Ok(())
}

/// Whether a catalog name means this profile of a device.
pub(super) fn is_meant(model: &Model, name: &str, profile: &Profile) -> bool {
    profile.name == name || model.profiles.iter().any(|p| p.name == name && p.shape() == profile.shape())
}

#[cold]
fn fail(rule: Rule, instance: usize, text: impl FnOnce() -> String) -> Result<(), Violation> {
    Err(Violation::new(rule, alloc::format!("instances[{instance}]"), text()))
}

#[cold]
fn broken(rule: Rule, instance: usize, profile: &Profile, start: u16, text: &str) -> Violation {
    let text = alloc::format!("`{}` at {start} {text}", profile.name);
    Violation::new(rule, alloc::format!("instances[{instance}]"), text)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::catalog::Catalog;
    use crate::verify::Rule;
    use rstest::rstest;

    #[rstest]
    #[case(None, &[("4g.40gb", 0), ("3g.40gb", 4)], None)]
    #[case(Some(470), &[("4g.40gb", 0), ("3g.40gb", 4)], Some(Rule::RefusedTogether))]
    #[case(Some(510), &[("4g.40gb", 0), ("3g.40gb", 4)], None)]
    #[case(Some(470), &[("4g.40gb", 0)], None)]
    #[case(None, &[("3g.40gb", 0), ("1g.10gb", 3)], Some(Rule::Overlap))]
    #[case(None, &[("2g.20gb", 6)], Some(Rule::Start))]
    #[case(None, &[("1g.10gb+me", 0), ("1g.10gb+me", 1)], Some(Rule::MaxInstances))]
    #[case(None, &[("1g.10gb+me", 0), ("7g.80gb", 0)], Some(Rule::Overlap))]
    #[case(None, &[], None)]
    fn rules_hold(#[case] driver: Option<u32>, #[case] instances: &[(&str, u16)], #[case] rule: Option<Rule>) {
        let catalog = Catalog::built_in().unwrap();
        let model = catalog.find("a100-80gb").unwrap();
        let at = |name: &str| model.profiles.iter().position(|p| p.name == name).unwrap();
        let instances: alloc::vec::Vec<_> = instances.iter().map(|(n, s)| (at(n), *s)).collect();
        assert_eq!(
            check(model, &model.profiles, driver, model.max_gpu_instances, &instances).err().map(|v| v.rule),
            rule
        );
    }

    #[test]
    fn engines_are_a_pool() {
        let catalog = Catalog::built_in().unwrap();
        let model = catalog.find("rtx-pro-6000-96gb").unwrap();
        let at = |name: &str| model.profiles.iter().position(|p| p.name == name).unwrap();
        let both = [(at("1g.24gb+me.all"), 0), (at("1g.24gb"), 3)];
        assert_eq!(
            check(model, &model.profiles, None, model.max_gpu_instances, &both).unwrap_err().rule,
            Rule::Engines
        );
        let both = [(at("1g.24gb+me.all"), 0), (at("1g.24gb-me"), 3)];
        assert_eq!(check(model, &model.profiles, None, model.max_gpu_instances, &both), Ok(()));
    }
}
