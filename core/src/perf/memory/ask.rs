//! The question and the answer of `size`.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::{Exceed, Mechanism, ModelMemory, Pressed, ProfileFit, Relief, Size, Usage};
use crate::catalog::Catalog;
use crate::error::{Fault, InputError};
use crate::perf::params::{Override, Parameters};

/// A model, a GPU model that may hold it, and tenants that may share memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SizeAsk {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelMemory>,
    /// Id or product name of a GPU model: its profiles are looked through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Tenants that are promised more than there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedMemory>,
    /// Memory wanted beyond what there is: what each mechanism would cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressed: Option<Pressed>,
    /// Own figures in place of the table's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Override>,
}

/// Tenants of one memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SharedMemory {
    /// What there is.
    pub limit_mib: u64,
    /// Grid of the sum; absent: one on which all amounts lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid_mib: Option<u64>,
    /// What tenants use.
    pub usages: Vec<Usage>,
    /// Probability of passing the limit that is borne.
    pub at_most_ppm: u64,
    /// Whether tenants may rise and fall together: they are then admitted by that figure.
    #[serde(default)]
    pub may_peak_together: bool,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeAnswer {
    /// Memory of the model, part by part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Which profiles hold it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfileFit>,
    /// How likely the tenants pass the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exceed: Option<Exceed>,
    /// Whether they are admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admitted: Option<bool>,
    /// What each mechanism costs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mechanisms: Vec<Relief>,
}

/// Answers a question of `size`.
///
/// # Errors
/// The field that is not as it should be.
pub fn answer(ask: &SizeAsk, catalog: &Catalog) -> Result<SizeAnswer, InputError> {
    if ask.model.is_none() && ask.shared.is_none() && ask.pressed.is_none() {
        let text = String::from("give a `model`, `shared` memory or what is `pressed`");
        return Err(InputError::new("model", Fault::Invalid(text)));
    }
    let parameters = Parameters::built_in()?.with(&ask.parameters).map_err(|e| e.within("parameters"))?;
    let sized = |model| super::size(model, &parameters).map_err(|e: InputError| e.within("model"));
    let size = ask.model.as_ref().map(sized).transpose()?;
    let gpu = match &ask.gpu {
        Some(name) => {
            Some(catalog.find(name).ok_or_else(|| InputError::new("gpu", Fault::UnknownModel(name.clone())))?)
        }
        None => None,
    };
    let profiles = match (&size, gpu) {
        (Some(size), Some(gpu)) => super::fits(size.total_mib, gpu),
        _ => Vec::new(),
    };
    let within = |e: InputError| match e.path().starts_with('[') {
        true => e.within("shared.usages"),
        false => e.within("shared"),
    };
    let shared = ask.shared.as_ref();
    let exceed = shared.map(|s| super::exceed(&s.usages, s.limit_mib, s.grid_mib).map_err(within)).transpose()?;
    let admitted = shared.zip(exceed).map(|(s, e)| super::admitted(&e, s.at_most_ppm, s.may_peak_together));
    let relieved = |pressed: &Pressed| -> Result<Vec<Relief>, InputError> {
        Mechanism::ALL.iter().map(|m| super::relief(*m, pressed, &parameters)).collect()
    };
    let mechanisms = ask.pressed.as_ref().map(relieved).transpose()?.unwrap_or_default();
    Ok(SizeAnswer { size, profiles, exceed, admitted, mechanisms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_name_their_field() {
        let catalog = Catalog::built_in().unwrap();
        let path = |ask: SizeAsk| String::from(answer(&ask, &catalog).unwrap_err().path());
        assert_eq!(path(SizeAsk::default()), "model");
        let model = ModelMemory { parameters: 1000, ..ModelMemory::default() };
        let with = |model: ModelMemory| SizeAsk { model: Some(model), ..SizeAsk::default() };
        assert_eq!(path(with(ModelMemory { layers: Some(0), ..model.clone() })), "model.layers");
        assert_eq!(path(SizeAsk { gpu: Some(String::from("x")), ..with(model) }), "gpu");
        let usages = alloc::vec![Usage { bins: Vec::new(), tenants: 1 }];
        let shared = SharedMemory { limit_mib: 1000, usages, ..SharedMemory::default() };
        assert_eq!(path(SizeAsk { shared: Some(shared), ..SizeAsk::default() }), "shared.usages[0].bins");
    }
}
