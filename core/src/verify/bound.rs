//! Bounds from prices, in integers, by exact search on every distinct state of a GPU.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::ask::{Asked, model_ids};
use super::dearest::{Priced, Prices};
use super::image::Image;
use super::put::On;
use super::state::load;
use super::worth::value;
use super::{Rule, Violation, catalog_of};
use crate::catalog::Catalog;
use crate::fleet::State;
use crate::plan::{BoundOf, Certificate};
use crate::workload::{Ask, WholeGpus, Workload};

/// Whose admission a bound on GPUs is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted<'a> {
    /// All members of all requests.
    All,
    /// This many members, by request.
    Members(&'a [u64]),
}

/// The bound that prices prove, by the formulas of [`Certificate`]: of value or members from
/// above, rounded down, or of the GPUs opened from below, rounded up. One from above is about
/// all that is asked, whatever `admitted` says.
///
/// Parts of a request are looked up among the prices as they are asked; of whole GPUs, a
/// part is one of them with the memory asked, whatever joins them.
///
/// # Errors
/// A fleet, request or certificate that cannot be read: a scale of zero, a price on what is
/// no part of one device, or two prices on one part.
pub fn recompute_bound(
    catalog: &Catalog,
    state: &State,
    workloads: &[Workload],
    certificate: &Certificate,
    of: BoundOf,
    admitted: Admitted<'_>,
) -> Result<u64, Violation> {
    let catalog = catalog_of(catalog, state)?;
    let image = load(&catalog, state).map_err(|v| v.within("state"))?;
    let mut asked = Vec::new();
    for (i, workload) in workloads.iter().enumerate() {
        asked.push(Asked::of(&catalog, workload).map_err(|v| v.within(&alloc::format!("requests[{i}]")))?);
    }
    bound(&catalog, &image, &asked, certificate, of, admitted)
}

/// [`recompute_bound`] on what has been read.
pub(super) fn bound(
    catalog: &Catalog,
    image: &Image<'_>,
    asked: &[Asked<'_>],
    certificate: &Certificate,
    of: BoundOf,
    admitted: Admitted<'_>,
) -> Result<u64, Violation> {
    let scale = u128::from(certificate.scale);
    if scale == 0 {
        return Err(Violation::new(Rule::Document, "certificate.scale", "prices need a scale"));
    }
    let priced = read(catalog, certificate)?;
    let supply = supply(image, &priced, if of == BoundOf::Gpus { certificate.scale } else { 0 });
    let mut demand = 0u128;
    for (i, asked) in asked.iter().enumerate() {
        let cheapest = cheapest(asked, &priced);
        let (members, each) = match (of, admitted) {
            (BoundOf::Value, _) => {
                let worth = u128::from(value(&image.kinds, asked)) * scale;
                (u64::from(asked.workload.count), worth.saturating_sub(cheapest))
            }
            (BoundOf::Members, _) => (u64::from(asked.workload.count), scale.saturating_sub(cheapest)),
            (BoundOf::Gpus, Admitted::All) => (u64::from(asked.workload.count), cheapest),
            (BoundOf::Gpus, Admitted::Members(members)) => (members.get(i).copied().unwrap_or(0), cheapest),
        };
        demand = demand.saturating_add(u128::from(members).saturating_mul(each));
    }
    let bound = match of {
        BoundOf::Value | BoundOf::Members => demand.saturating_add(supply).checked_div(scale),
        BoundOf::Gpus => Some(demand.saturating_sub(supply).div_ceil(scale)),
    };
    Ok(bound.and_then(|b| u64::try_from(b).ok()).unwrap_or(u64::MAX))
}

/// What all GPUs could hold: the dearest set of each; what is over `own` of one that is
/// unused.
fn supply(image: &Image<'_>, priced: &[Priced], own: u64) -> u128 {
    let mut alike: BTreeMap<(usize, On), u64> = BTreeMap::new();
    let open = (0..image.gpus.len()).filter(|gpu| image.closed(*gpu).is_none());
    for found in open.filter_map(|gpu| image.gpus.get(gpu)) {
        *alike.entry((found.kind, found.on.used())).or_default() += 1;
    }
    let all: Vec<Prices> = image.kinds.iter().map(|kind| Prices::of(kind, priced)).collect();
    let mut supply = 0u128;
    for ((kind, on), count) in &alike {
        let (Some(facts), Some(prices)) = (image.kinds.get(*kind), all.get(*kind)) else { continue };
        let mut dearest = prices.dearest(facts, on);
        if on.is_unused() {
            // It may be given another of its modes: one for all that is on it.
            for other in &facts.siblings {
                let (Some(facts), Some(prices)) = (image.kinds.get(*other), all.get(*other)) else { continue };
                dearest = dearest.max(prices.dearest(facts, &On::empty(facts.mode)));
            }
            dearest = dearest.saturating_sub(own);
        }
        supply = supply.saturating_add(u128::from(dearest) * u128::from(*count));
    }
    supply
}

/// The prices of a certificate.
fn read(catalog: &Catalog, certificate: &Certificate) -> Result<Vec<Priced>, Violation> {
    let mut priced: Vec<Priced> = Vec::new();
    for (i, price) in certificate.prices.iter().enumerate() {
        let at = alloc::format!("certificate.prices[{i}]");
        let models = model_ids(catalog, &price.models).map_err(|v| v.within(&at))?;
        let part = match &price.part {
            Ask::Gpus(gpus) if gpus.count == 1 => one_gpu(gpus),
            Ask::Profile(_) | Ask::AtLeast(_) | Ask::Fraction(_) | Ask::Mps(_) => price.part.clone(),
            Ask::Gpus(_) | Ask::Instances(_) | Ask::NodeOnly {} => {
                return Err(Violation::new(Rule::Document, at, "a price is on something of one device"));
            }
        };
        if priced.iter().any(|p| p.part == part && p.models == models) {
            return Err(Violation::new(Rule::Duplicate, at, "the part has a price already"));
        }
        priced.push(Priced { part, models, price: price.price });
    }
    Ok(priced)
}

/// What the cheapest alternative costs.
fn cheapest(asked: &Asked<'_>, priced: &[Priced]) -> u128 {
    let price = |part: &Ask| {
        let found = priced.iter().find(|p| p.part == *part && p.models == asked.models);
        found.map_or(0, |p| u128::from(p.price))
    };
    let cost = |ask: &Ask| match ask {
        Ask::NodeOnly {} => 0,
        Ask::Gpus(gpus) => price(&one_gpu(gpus)) * u128::from(gpus.count),
        Ask::Instances(set) => set.profiles.iter().map(|name: &String| price(&Ask::Profile(name.clone()))).sum(),
        Ask::Profile(_) | Ask::AtLeast(_) | Ask::Fraction(_) | Ask::Mps(_) => price(ask),
    };
    asked.alternatives.iter().map(cost).min().unwrap_or(0)
}

/// One of the whole GPUs of an ask. What joins them is no matter of one device.
fn one_gpu(gpus: &WholeGpus) -> Ask {
    Ask::Gpus(WholeGpus { count: 1, link: None, near_nic: None, memory_mib: gpus.memory_mib })
}
