//! `advise`: settings that go with a placement, and why. Rules are data, each with its
//! source and status; their numbers are worked out here. Nothing is ever applied by us.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::fixed::{PPM, scale, share};
use super::overhead::Sharing;
use super::params::{Class, Override, Parameters, Status};
use crate::data::table;
use crate::error::{Fault, InputError};
use crate::workload::MpsPriority;

const BUILT_IN: &str = include_str!("../../data/advice.json");

/// The placement that settings are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AdviseAsk {
    /// How the GPU is shared.
    pub sharing: Sharing,
    /// What kind of work.
    pub class: Class,
    /// Tenants on the GPU or instance, this one among them.
    #[serde(default = "one")]
    pub tenants: u32,
    /// Memory of the GPU or instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// Memory of this tenant; absent: an even part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_mib: Option<u64>,
    /// Whether launches set the pace: small batches, many small kernels.
    #[serde(default)]
    pub launch_bound: bool,
    /// Whether steady latency is worth some speed.
    #[serde(default)]
    pub steady: bool,
    /// Priority that the MPS client asked for; absent: the class decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mps_priority: Option<MpsPriority>,
    /// Memory is GDDR: error correction takes a part of it.
    #[serde(default)]
    pub gddr: bool,
    /// Batch that was recommended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// Own figures in place of the table's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Override>,
}

fn one() -> u32 {
    1
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// Stable name of the rule.
    pub id: String,
    /// What to set.
    pub setting: String,
    /// To what.
    pub value: String,
    /// Why.
    pub why: String,
    /// How the rule is known.
    pub status: Status,
    /// Where it is from.
    pub sources: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    id: String,
    when: When,
    setting: String,
    value: String,
    why: String,
    status: Status,
    sources: Vec<String>,
}

/// What must hold; what is absent does not matter.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct When {
    sharing: Vec<Sharing>,
    class: Vec<Class>,
    mps_priority: Vec<Option<MpsPriority>>,
    launch_bound: Option<bool>,
    steady: Option<bool>,
}

impl When {
    fn holds(&self, ask: &AdviseAsk) -> bool {
        (self.sharing.is_empty() || self.sharing.contains(&ask.sharing))
            && (self.class.is_empty() || self.class.contains(&ask.class))
            && (self.mps_priority.is_empty() || self.mps_priority.contains(&ask.mps_priority))
            && self.launch_bound.is_none_or(|wanted| wanted == ask.launch_bound)
            && self.steady.is_none_or(|wanted| wanted == ask.steady)
    }
}

/// The settings for a placement, in the order of the rules. A rule whose value needs a
/// figure that is not given is left out.
///
/// # Errors
/// The field that is not as it should be.
pub fn advise(ask: &AdviseAsk) -> Result<Vec<Advice>, InputError> {
    let rules = table::<Vec<Rule>>("rules", BUILT_IN)?;
    let figures = figures(ask)?;
    let mut all = Vec::new();
    for rule in rules.rows.into_iter().filter(|rule| rule.when.holds(ask)) {
        if let (Some(value), Some(why)) = (filled(&rule.value, &figures), filled(&rule.why, &figures)) {
            let source = |key: &String| rules.sources.get(key).cloned().unwrap_or_default();
            let sources = rule.sources.iter().map(source).collect();
            all.push(Advice { id: rule.id, setting: rule.setting, value, why, status: rule.status, sources });
        }
    }
    Ok(all)
}

/// What rules may name.
fn figures(ask: &AdviseAsk) -> Result<BTreeMap<&'static str, u64>, InputError> {
    let tenants = u64::from(ask.tenants);
    if tenants == 0 {
        return Err(InputError::new("tenants", Fault::OutOfRange { value: 0, min: 1, max: u32::MAX.into() }));
    }
    let parameters = Parameters::built_in()?.with(&ask.parameters).map_err(|e| e.within("parameters"))?;
    let mut figures = BTreeMap::from([
        // Twice the even share, as the manual has it.
        ("sm_percent", (200 / tenants).clamp(1, 100)),
        ("idle_reclaim_s", parameters.value("class.interactive.idle_reclaim_s")?),
        ("notebooks", scale(1, PPM, parameters.value("class.interactive.active_ppm")?.max(1)).max(1)),
    ]);
    figures.extend(ask.batch.map(|batch| ("batch", batch)));
    if let Some(memory) = ask.memory_mib {
        let limit = ask.memory_limit_mib.unwrap_or(memory / tenants);
        if limit > memory {
            return Err(InputError::new("memory_limit_mib", Fault::OutOfRange { value: limit, min: 0, max: memory }));
        }
        let ecc = if ask.gddr { parameters.range("memory.ecc_ppm")?.high } else { 0 };
        figures.extend([
            ("memory_limit_mib", limit),
            ("memory_fraction_ppm", scale(limit, PPM, memory.max(1))),
            ("ecc_mib", share(memory, ecc)),
        ]);
    }
    Ok(figures)
}

/// A text with its `{names}` replaced; `None` if one has no figure.
fn filled(text: &str, figures: &BTreeMap<&str, u64>) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        out.push_str(before);
        out.push_str(&figures.get(name)?.to_string());
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ask: &AdviseAsk) -> Vec<String> {
        advise(ask).unwrap().into_iter().map(|a| a.id).collect()
    }

    #[test]
    fn every_rule_is_sourced_and_can_be_reached() {
        let document = table::<Vec<Rule>>("rules", BUILT_IN).unwrap();
        let mut reached = Vec::new();
        let sharings = [Sharing::Whole, Sharing::Mig, Sharing::Mps, Sharing::TimeSliced, Sharing::Software];
        for sharing in sharings {
            let priorities = [None, Some(MpsPriority::Normal), Some(MpsPriority::BelowNormal)];
            for (class, mps_priority) in Class::ALL.into_iter().flat_map(|class| priorities.map(|p| (class, p))) {
                let ask = AdviseAsk {
                    sharing,
                    class,
                    mps_priority,
                    tenants: 4,
                    memory_mib: Some(40_000),
                    batch: Some(8),
                    launch_bound: true,
                    steady: true,
                    ..AdviseAsk::default()
                };
                reached.extend(ids(&ask));
            }
        }
        for rule in &document.rows {
            assert!(reached.contains(&rule.id), "{}: no placement meets it, or it names no figure", rule.id);
            assert!(rule.status == Status::Assumed || !rule.sources.is_empty(), "{}", rule.id);
            assert!(rule.sources.iter().all(|key| document.sources.contains_key(key)), "{}", rule.id);
        }
    }

    #[test]
    fn four_clients_get_twice_their_even_share() {
        let ask = AdviseAsk {
            sharing: Sharing::Mps,
            class: Class::Inference,
            tenants: 4,
            memory_mib: Some(40_000),
            ..AdviseAsk::default()
        };
        let advice = advise(&ask).unwrap();
        let value = |id: &str| advice.iter().find(|a| a.id == id).map(|a| a.value.as_str());
        assert_eq!(value("mps-percentage"), Some("50"));
        assert_eq!(value("mps-memory"), Some("0=10000M"));
        // No batch was given, so nothing is said of it.
        assert_eq!(value("batching"), None);
        // The class asks for 0, the client itself for 1.
        let priorities = |ask: &AdviseAsk| {
            let all = advise(ask).unwrap().into_iter();
            all.filter(|a| a.setting == "CUDA_MPS_CLIENT_PRIORITY").map(|a| a.value).collect::<Vec<_>>()
        };
        assert_eq!(priorities(&ask), ["0"]);
        let below = AdviseAsk { mps_priority: Some(MpsPriority::BelowNormal), ..ask.clone() };
        assert_eq!(priorities(&below), ["1"]);
        let error = advise(&AdviseAsk { tenants: 0, ..ask.clone() }).unwrap_err();
        assert_eq!(error.path(), "tenants");
        let error = advise(&AdviseAsk { memory_limit_mib: Some(50_000), ..ask }).unwrap_err();
        assert_eq!(error.path(), "memory_limit_mib");
    }
}
