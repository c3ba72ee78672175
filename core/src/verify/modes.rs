//! Changes of mode: which are allowed, and the fleet after them.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::image::Image;
use super::put::{Hold, On};
use super::serve::Member;
use super::{Rule, Violation};
use crate::decision::ModeChange;
use crate::fleet::{Gpu, Mode};

fn bad<T>(text: impl Into<String>) -> Result<T, Violation> {
    Err(Violation::new(Rule::Mode, "", text))
}

/// Whether a GPU of a document may be in a mode.
pub(super) fn may_be(gpu: &Gpu, mode: Mode) -> bool {
    gpu.mode == mode || gpu.modes.contains(&mode)
}

/// Whether idle instances are on it.
pub(super) fn has_idle(on: &On) -> bool {
    matches!(on, On::Grid(pieces) if pieces.iter().any(|p| p.hold == Hold::Idle))
}

/// Checks the changes and makes them in the image: each GPU once, from the mode that it is
/// in to one that it may be in, with nothing in use on it. Idle instances go.
pub(super) fn apply(image: &mut Image<'_>, changes: &[ModeChange]) -> Result<BTreeSet<usize>, Violation> {
    let mut changed = BTreeSet::new();
    for (i, change) in changes.iter().enumerate() {
        let gpu = one(image, change).map_err(|v| v.within(&alloc::format!("mode_changes[{i}]")))?;
        if !changed.insert(gpu) {
            let text = alloc::format!("{} changes its mode twice", image.say(gpu));
            return Err(Violation::new(Rule::Duplicate, alloc::format!("mode_changes[{i}]"), text));
        }
    }
    Ok(changed)
}

fn one(image: &mut Image<'_>, change: &ModeChange) -> Result<usize, Violation> {
    let Some(gpu) = image.node_named(&change.node).and_then(|n| image.gpu_at(n, change.gpu)) else {
        return Err(Violation::new(Rule::Unknown, "", alloc::format!("no GPU {} on `{}`", change.gpu, change.node)));
    };
    let who = image.say(gpu);
    if let Some(rule) = image.closed(gpu) {
        return Err(Violation::new(rule, "", alloc::format!("{who} takes nothing new")));
    }
    let Some(kind) = image.kind(gpu) else { return bad("no such GPU") };
    if kind.mode != change.from {
        return bad(alloc::format!("{who} is in mode `{}`, not `{}`", kind.mode.name(), change.from.name()));
    }
    let is_asked = |k: &usize| image.kinds.get(*k).is_some_and(|k| k.mode == change.to);
    let Some(to) = kind.siblings.iter().copied().find(is_asked) else {
        return bad(alloc::format!("{who} may not be changed to mode `{}`", change.to.name()));
    };
    match image.gpus.get_mut(gpu) {
        Some(found) if found.on.is_unused() => {
            (found.kind, found.on) = (to, On::empty(change.to));
            Ok(gpu)
        }
        _ => bad(alloc::format!("{who} is in use")),
    }
}

/// Whether each GPU that changes its mode does so for somebody.
pub(super) fn serve_somebody<'m>(
    image: &Image<'_>,
    changed: &BTreeSet<usize>,
    placed: impl Iterator<Item = &'m Member>,
) -> Result<(), Violation> {
    let used: BTreeSet<usize> = placed.flat_map(|m| m.parts.iter().map(|(gpu, _)| *gpu)).collect();
    let idle: Vec<&usize> = changed.difference(&used).collect();
    match idle.first() {
        Some(gpu) => {
            let text = alloc::format!("{} changes its mode for nobody", image.say(**gpu));
            Err(Violation::new(Rule::Mode, "mode_changes", text))
        }
        None => Ok(()),
    }
}
