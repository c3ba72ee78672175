//! Whether a decision is right: what it admits is legal and reached by its steps; what it
//! refuses as proved has no place.

use alloc::vec::Vec;

use super::ask::Asked;
use super::image::Image;
use super::modes;
use super::moves::{self, Moved};
use super::node::may_lie;
use super::put::On;
use super::serve::{Member, keeps_idle, members, seat};
use super::state::load;
use super::{Checked, Rule, Violation, catalog_of, power, refusal, steps};
use crate::catalog::Catalog;
use crate::decision::{Decision, Verdict};
use crate::fleet::State;
use crate::workload::Workload;

/// Checks a decision against the state it was made on. `allow_moves`: others may be moved
/// whatever the request says.
///
/// An admission must be whole: every member placed by one of its alternatives on parts that
/// are free after the moves, within every rule of its nodes, and reached by steps of which
/// every prefix leaves a legal state. A refusal that says it is proved must have no place
/// without moves; where members are several and the search would take too long, the answer
/// is [`Checked::Partial`].
///
/// # Errors
/// The first rule that does not hold.
pub fn decision(
    catalog: &Catalog,
    state: &State,
    workload: &Workload,
    decision: &Decision,
    allow_moves: bool,
) -> Result<Checked, Violation> {
    let catalog = catalog_of(catalog, state)?;
    let before = load(&catalog, state).map_err(|v| v.within("state"))?;
    let asked = Asked::of(&catalog, workload).map_err(|v| v.within("workload"))?;
    if decision.workload != workload.name {
        let text = alloc::format!("it is about `{}`, not `{}`", decision.workload, workload.name);
        return Err(Violation::new(Rule::Document, "workload", text));
    }
    if decision.version != state.version {
        let text = alloc::format!("it was made on {}, the state has {}", decision.version, state.version);
        return Err(Violation::new(Rule::Version, "version", text));
    }
    if decision.verdict == Verdict::Admit {
        return admitted(before, state, &asked, decision, allow_moves);
    }
    let nothing = decision.placements.is_empty() && decision.steps.is_empty();
    if !nothing || !decision.moves.is_empty() || !decision.mode_changes.is_empty() {
        return Err(Violation::new(Rule::Document, "placements", "only an admission places, moves or does anything"));
    }
    if decision.verdict == Verdict::Wait && !workload.queue {
        return Err(Violation::new(Rule::Document, "verdict", "the request does not ask to queue"));
    }
    if decision.verdict == Verdict::Undecided && decision.proved {
        return Err(Violation::new(Rule::Document, "proved", "an undecided request has no proof"));
    }
    if decision.proved { refusal::check(before, &asked) } else { Ok(Checked::Partial) }
}

fn admitted(
    before: Image<'_>,
    state: &State,
    asked: &Asked<'_>,
    decision: &Decision,
    allow_moves: bool,
) -> Result<Checked, Violation> {
    let mut after = before.clone();
    // Before the moves: they empty no GPU for a change of its mode.
    let changed = modes::apply(&mut after, &decision.mode_changes)?;
    if let Some(gpu) = changed.iter().find(|g| before.gpus.get(**g).is_some_and(|g| modes::has_idle(&g.on)))
        && asked.workload.keep_idle
    {
        return Err(Violation::new(Rule::KeepIdle, after.say(*gpu), "an idle instance would go for a change of mode"));
    }
    let moved = moves::apply(&mut after, state, asked, &decision.moves, allow_moves)?;
    if let Some(m) = moved.iter().find(|m| changed.contains(&m.to.0)) {
        let text = alloc::format!("`{}` moves to a GPU whose mode is changed after that", m.name);
        return Err(Violation::new(Rule::Move, "moves", text));
    }
    let placed = members(&after, &decision.placements)?;
    modes::serve_somebody(&after, &changed, placed.iter())?;
    let count = usize::try_from(asked.workload.count).unwrap_or(usize::MAX);
    let all = placed.len() == count && placed.iter().enumerate().all(|(i, m)| u32::try_from(i) == Ok(m.number));
    if !all {
        let text = alloc::format!("{} members are placed of {count}, each once", placed.len());
        return Err(Violation::new(Rule::Members, "placements", text));
    }
    for member in &placed {
        seat(&mut after, asked, member, Some((usize::MAX, member.number)))?;
    }
    check_spread(&after, asked, &placed)?;
    power::check_all(&after)?;
    for gpu in touched(&placed, &moved) {
        let (Some(found), Some(kind)) = (after.gpus.get(gpu), after.kind(gpu)) else { continue };
        found.on.check_used(kind).map_err(|(rule, text)| Violation::new(rule, after.say(gpu), text))?;
        if asked.workload.keep_idle {
            let on = before.gpus.get(gpu).map(|g| without_moved(&g.on, gpu, &moved));
            if let Some(on) = on {
                keeps_idle(&after, gpu, &on).map_err(|(rule, text)| Violation::new(rule, after.say(gpu), text))?;
            }
        }
    }
    steps::check(&before, &after, asked, decision, &placed, &moved)?;
    Ok(Checked::Full)
}

/// Members' own rule about each other.
pub(super) fn check_spread(image: &Image<'_>, asked: &Asked<'_>, members: &[Member]) -> Result<(), Violation> {
    let Some(spread) = asked.workload.members else { return Ok(()) };
    let spots: Vec<_> = members.iter().map(Member::spot).collect();
    for (i, a) in spots.iter().enumerate() {
        if let Some(j) = spots.iter().skip(i + 1).position(|b| !may_lie(image, spread, a, b)) {
            let number = |k: usize| members.get(k).map_or(0, |m| m.number);
            let text = alloc::format!("members {} and {} do not lie as asked", number(i), number(i + 1 + j));
            return Err(Violation::new(Rule::Spread, "placements", text));
        }
    }
    Ok(())
}

fn touched(placed: &[Member], moved: &[Moved<'_>]) -> Vec<usize> {
    let own = placed.iter().flat_map(|m| m.parts.iter().map(|(gpu, _)| *gpu));
    let mut gpus: Vec<usize> = own.chain(moved.iter().flat_map(|m| [m.from.0, m.to.0])).collect();
    gpus.sort_unstable();
    gpus.dedup();
    gpus
}

fn without_moved(on: &On, gpu: usize, moved: &[Moved<'_>]) -> On {
    let mut on = on.clone();
    if let On::Grid(pieces) = &mut on {
        pieces.retain(|p| !moved.iter().any(|m| moves::is_from(m, gpu, (p.profile, p.start))));
    }
    on
}
