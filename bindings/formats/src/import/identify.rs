//! Guesses a GPU's model from its profiles, and says so.

use slicewise_core::catalog::{Catalog, Model, Placements, Profile};

use super::ImportFault;

/// What a listing shows of one profile; an absent figure was not shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub name: Option<String>,
    pub id: Option<u32>,
    pub memory_gib: Option<String>,
    pub memory_mib: Option<u32>,
    pub sm: Option<u16>,
    pub copy_engines: Option<u16>,
    pub decoders: Option<u16>,
    pub encoders: Option<u16>,
    pub jpeg: Option<u16>,
    pub ofa: Option<u16>,
    pub size: Option<u16>,
    /// Starts that exist; `all_starts` where these are all.
    pub starts: Vec<u16>,
    pub all_starts: bool,
}

/// How well a model fits; a figure that the catalog lacks neither proves nor refutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    No,
    Possible,
    Exact,
}

/// The model whose profiles are those seen, and the ids of others that could be meant.
///
/// # Errors
/// No model fits, or several do that differ in what these profiles are.
pub(super) fn identify<'c>(catalog: &'c Catalog, seen: &[Seen]) -> Result<(&'c Model, Vec<String>), ImportFault> {
    let fits: Vec<(&Model, Fit)> =
        catalog.models().map(|m| (m, fit(m, seen))).filter(|(_, fit)| *fit > Fit::No).collect();
    let best = fits.iter().map(|(_, fit)| *fit).max().unwrap_or(Fit::No);
    let mut candidates = fits.iter().filter(|(_, fit)| *fit == best).map(|(m, _)| *m);
    let Some(first) = candidates.next() else {
        return Err(ImportFault::ModelNotFound(names(seen)));
    };
    if candidates.any(|other| geometry(other, seen) != geometry(first, seen)) {
        let candidates = fits.iter().filter(|(_, fit)| *fit == best).map(|(m, _)| m.id.clone()).collect();
        return Err(ImportFault::ModelAmbiguous { candidates });
    }
    let others = fits.iter().map(|(m, _)| m.id.clone()).filter(|id| *id != first.id).collect();
    Ok((first, others))
}

/// What to tell people of a guess.
pub(super) fn remark(what: &str, model: &str, others: &[String]) -> String {
    match others {
        [] => format!("{what}: the profiles are those of `{model}`"),
        _ => format!(
            "{what}: taken as `{model}`; {} would fit the listing as well, `--model` decides",
            others.iter().map(|o| format!("`{o}`")).collect::<Vec<_>>().join(", ")
        ),
    }
}

fn fit(model: &Model, seen: &[Seen]) -> Fit {
    if model.profiles.is_empty() || seen.is_empty() {
        return Fit::No;
    }
    seen.iter().map(|s| profile_of(model, s).map_or(Fit::No, |p| fit_profile(p, s))).min().unwrap_or(Fit::No)
}

fn profile_of<'m>(model: &'m Model, seen: &Seen) -> Option<&'m Profile> {
    model.profiles.iter().find(|p| match &seen.name {
        Some(name) => p.name == *name,
        None => seen.id.is_some() && p.id == seen.id,
    })
}

fn fit_profile(profile: &Profile, seen: &Seen) -> Fit {
    let placements = profile.placements.as_ref();
    let memory = match (&seen.memory_gib, &profile.memory_gib) {
        (Some(shown), Some(own)) if shown == own || profile.memory_gib_other.contains(shown) => Fit::Exact,
        (Some(_), Some(_)) => Fit::No,
        (Some(_), None) => Fit::Possible,
        (None, _) => Fit::Exact,
    };
    let starts = match placements {
        _ if seen.starts.is_empty() => Fit::Exact,
        None => Fit::Possible,
        Some(p) if seen.all_starts && p.starts == seen.starts => Fit::Exact,
        Some(p) if !seen.all_starts && seen.starts.iter().all(|s| p.starts.contains(s)) => Fit::Exact,
        Some(_) => Fit::No,
    };
    let figures = [
        known(seen.id, profile.id),
        known(seen.memory_mib, profile.memory_mib),
        known(seen.sm, profile.sm),
        known(seen.copy_engines, profile.copy_engines),
        known(seen.decoders, profile.decoders),
        known(seen.encoders, profile.encoders),
        known(seen.jpeg, profile.jpeg),
        known(seen.ofa, profile.ofa),
        known(seen.size, placements.map(|p| p.size)),
    ];
    figures.into_iter().chain([memory, starts]).min().unwrap_or(Fit::No)
}

fn known<T: PartialEq>(shown: Option<T>, own: Option<T>) -> Fit {
    match (shown, own) {
        (Some(shown), Some(own)) if shown != own => Fit::No,
        (Some(_), None) => Fit::Possible,
        _ => Fit::Exact,
    }
}

type Geometry<'m> = Vec<Option<(u16, Option<u16>, Option<&'m Placements>)>>;

/// What decides where these profiles may lie.
fn geometry<'m>(model: &'m Model, seen: &[Seen]) -> (Option<u16>, Geometry<'m>) {
    let of = |s: &Seen| profile_of(model, s).map(|p| (p.compute_slices, p.memory_slices, p.placements.as_ref()));
    (model.memory_slices, seen.iter().map(of).collect())
}

fn names(seen: &[Seen]) -> String {
    let mut names: Vec<String> = Vec::new();
    for s in seen {
        let name = s.name.clone().unwrap_or_else(|| s.id.map_or("?".to_owned(), |id| format!("ID {id}")));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}
