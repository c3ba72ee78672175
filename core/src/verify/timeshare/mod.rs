//! Checks how a GPU is shared in time: that a setting keeps every promise, or that no setting
//! does. The formulas are written again in code of its own; a refusal is tried slice by slice.

mod forms;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use super::{Rule, Violation};
use crate::perf::timeshare::{Choice, Failing, Limit, P99, Refusal, Resident, Scheduler, Setting, Timeshare};
use forms::Form;

/// How many schedulers there are.
const SCHEDULERS: usize = 6;

/// A choice keeps every promise, may be chosen, and its figures are right.
///
/// # Errors
/// The first thing that does not hold.
pub fn choice(document: &Timeshare, choice: &Choice) -> Result<(), Violation> {
    let said = |at: &str, text: String| Err(Violation::new(Rule::Setting, at, text));
    check_document(document)?;
    let setting = &choice.setting;
    if !may(document, setting.scheduler) {
        return said("setting.scheduler", format!("`{}` is not among the schedulers", setting.scheduler.name()));
    }
    let (from, to) = slices(document, setting.scheduler);
    if !(from..=to).contains(&setting.slice_us) {
        return said("setting.slice_us", format!("{} is not in {from}..={to}", setting.slice_us));
    }
    let given = document.setting(setting.scheduler);
    let same = (setting.switch_us, setting.averaging_factor, setting.max_vgpus)
        == (given.switch_us, given.averaging_factor, given.max_vgpus);
    if !same {
        return said("setting", "switch, averaging factor or slots are not the document's".into());
    }
    let weighted = setting.scheduler == Scheduler::WeightedFair;
    let weights = if weighted { setting.weights.iter().all(|w| *w > 0) } else { setting.weights == given.weights };
    if !weights || setting.weights.len() != document.residents.len() {
        return said(
            "setting.weights",
            "one weight above zero for each resident is needed, the document's own but for weighted fair".into(),
        );
    }
    if choice.bounds.len() != document.residents.len() {
        return Err(Violation::new(Rule::Figure, "bounds", "one entry for each resident is needed"));
    }
    if choice.overhead_ppm != forms::overhead(&document.residents, setting) {
        return Err(Violation::new(Rule::Figure, "overhead_ppm", "not what the switches cost"));
    }
    for (i, (resident, claimed)) in document.residents.iter().zip(&choice.bounds).enumerate() {
        let form = forms::of(&document.residents, setting, i);
        let exact = claimed.p99 == P99::Exact;
        let claims = Form {
            share_ppm: claimed.share_ppm,
            worst: claimed.wait_worst_us,
            p99: claimed.wait_p99_us,
            band: claimed.p99_band_us,
            exact,
            response: claimed.response_worst_us,
        };
        if claims != form {
            let text = format!("`{}`: the formulas give {form:?}", resident.name);
            return Err(Violation::new(Rule::Figure, format!("bounds[{i}]"), text));
        }
        for limit in [Limit::LeastSharePpm, Limit::WaitWorstUs, Limit::WaitP99Us] {
            if let Some((needed, had)) = missed(resident, &form, limit) {
                let text = format!("`{}` needs {limit:?} {needed}, has {had:?}", resident.name);
                return Err(Violation::new(Rule::Promise, format!("bounds[{i}]"), text));
            }
        }
    }
    Ok(())
}

/// Every scheduler that may be chosen fails with every slice, for the reasons given.
///
/// # Errors
/// The first thing that does not hold.
pub fn refusal(document: &Timeshare, refusals: &[Refusal]) -> Result<(), Violation> {
    check_document(document)?;
    let mut seen = BTreeSet::new();
    for (i, refusal) in refusals.iter().enumerate() {
        let at = format!("refusals[{i}]");
        if !may(document, refusal.scheduler) || !seen.insert(refusal.scheduler) {
            return Err(Violation::new(Rule::Refusal, at, "the scheduler is not asked for, or is there twice"));
        }
        let (from, to) = slices(document, refusal.scheduler);
        let mut next = from;
        for (k, failing) in refusal.failing.iter().enumerate() {
            let at = format!("{at}.failing[{k}]");
            if failing.slice_from_us != next || failing.slice_to_us < next || failing.slice_to_us > to {
                return Err(Violation::new(Rule::Refusal, at, format!("slices from {next} are not covered")));
            }
            fails(document, refusal.scheduler, failing).map_err(|text| Violation::new(Rule::Refusal, at, text))?;
            next = failing.slice_to_us + 1;
        }
        if next <= to {
            return Err(Violation::new(Rule::Refusal, at, format!("slices from {next} are not covered")));
        }
    }
    let asked = document.choose.as_ref().map_or(0, |c| c.schedulers.iter().collect::<BTreeSet<_>>().len());
    let asked = if asked == 0 { SCHEDULERS } else { asked };
    match seen.len() == asked {
        true => Ok(()),
        false => Err(Violation::new(Rule::Refusal, "refusals", format!("{asked} schedulers are to be refused"))),
    }
}

fn check_document(document: &Timeshare) -> Result<(), Violation> {
    document.check().map_err(|e| Violation::new(Rule::Document, e.path(), format!("{}", e.fault())))
}

fn may(document: &Timeshare, scheduler: Scheduler) -> bool {
    let asked = document.choose.as_ref().map(|c| c.schedulers.as_slice()).unwrap_or_default();
    asked.is_empty() || asked.contains(&scheduler)
}

/// The slices that may be chosen under a scheduler.
fn slices(document: &Timeshare, scheduler: Scheduler) -> (u64, u64) {
    let own = document.setting(scheduler).slice_us;
    match (scheduler, &document.choose) {
        (Scheduler::BestEffort, _) => (own, own),
        (_, Some(search)) => (search.slice_min_us.unwrap_or(1_000), search.slice_max_us.unwrap_or(30_000)),
        (_, None) => (1_000, 30_000),
    }
}

/// What was promised and what there is, if that is less.
fn missed(resident: &Resident, form: &Form, limit: Limit) -> Option<(u64, Option<u64>)> {
    let sla = &resident.sla;
    let (needed, had) = match limit {
        Limit::LeastSharePpm => (sla.least_share_ppm?, Some(form.share_ppm)),
        Limit::WaitWorstUs => (sla.wait_worst_us?, form.worst),
        Limit::WaitP99Us => (sla.wait_p99_us?, form.p99),
        Limit::SumOfSharesPpm | Limit::SumOfTurnsUs => return None,
    };
    let kept = had.is_some_and(|had| if limit == Limit::LeastSharePpm { had >= needed } else { had <= needed });
    (!kept).then_some((needed, had))
}

/// A reason holds with each of its slices.
fn fails(document: &Timeshare, scheduler: Scheduler, failing: &Failing) -> Result<(), String> {
    let residents = &document.residents;
    let base = document.setting(scheduler);
    let with = |slice_us| Setting { slice_us, ..base.clone() };
    let slices = failing.slice_from_us..=failing.slice_to_us;
    let wrong = |what: &str, is: Option<u64>| Err(format!("{what} is {is:?}"));
    if matches!(failing.limit, Limit::SumOfSharesPpm | Limit::SumOfTurnsUs) {
        if scheduler != Scheduler::WeightedFair || failing.resident.is_some() {
            return Err("a sum fails only under weighted fair, and for all".into());
        }
        let (needed, best) = match failing.limit {
            Limit::SumOfSharesPpm => {
                let promised: u64 = residents.iter().filter_map(|r| r.sla.least_share_ppm).sum();
                (promised, forms::usable_ppm(residents, &with(failing.slice_to_us)))
            }
            _ => {
                // Ties go to the longest slice.
                let sums = slices.rev().map(|q| forms::least_turns(residents, &with(q)));
                let lacking = |(needed, there): &(u64, u64)| i128::from(*needed) - i128::from(*there);
                sums.min_by_key(lacking).unwrap_or_default()
            }
        };
        if needed <= best {
            return Err(format!("{needed} is not more than {best}"));
        }
        return match (failing.needed, failing.best) == (needed, Some(best)) {
            true => Ok(()),
            false => Err(format!("the sums are {needed} of {best}")),
        };
    }
    let name = failing.resident.as_deref().unwrap_or_default();
    let Some(at) = residents.iter().position(|r| r.name == name) else {
        return Err(format!("no resident named `{name}`"));
    };
    let mut best: Option<u64> = None;
    for q in slices {
        let form = forms::of(residents, &with(q), at);
        let missed = residents.get(at).and_then(|r| missed(r, &form, failing.limit));
        let Some((needed, had)) = missed else {
            return Err(format!("`{name}` has what it needs with a slice of {q}"));
        };
        if needed != failing.needed {
            return wrong("the promise", Some(needed));
        }
        let both = [best, had].into_iter().flatten();
        best = if failing.limit == Limit::LeastSharePpm { both.max() } else { both.min() };
    }
    if best == failing.best { Ok(()) } else { wrong("the best", best) }
}
