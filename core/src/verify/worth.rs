//! What a member is worth where the request does not say.

use alloc::vec::Vec;

use super::ask::{Asked, One, named, ones};
use super::image::Image;
use super::kind::{Kind, Thing, cells_of};
use super::{Violation, catalog_of};
use crate::catalog::Catalog;
use crate::fleet::State;
use crate::workload::{Ask, Workload};

const PER_WHOLE_GPU: u64 = 8;
const MILLI_PER_CELL: u16 = 125;

/// The value of one member of a request in a batch: as it says, else as
/// [`Workload::value`] has it for this fleet.
///
/// # Errors
/// A fleet or a request that cannot be read.
pub fn value_of(catalog: &Catalog, state: &State, workload: &Workload) -> Result<u64, Violation> {
    let catalog = catalog_of(catalog, state)?;
    let image = Image::bare(&catalog, &state.nodes)?;
    Ok(value(&image.kinds, &Asked::of(&catalog, workload)?))
}

/// The value of one member on a fleet with these kinds of GPU.
pub(super) fn value(kinds: &[Kind<'_>], asked: &Asked<'_>) -> u64 {
    if let Some(value) = asked.workload.value {
        return value;
    }
    match asked.alternatives.first() {
        Some(Ask::Gpus(gpus)) => PER_WHOLE_GPU * u64::from(gpus.count),
        Some(Ask::Fraction(fraction)) => u64::from(fraction.milli.div_ceil(MILLI_PER_CELL)).max(1),
        Some(Ask::Mps(share)) => (u64::from(share.threads_percent) * 10).div_ceil(MILLI_PER_CELL.into()).max(1),
        Some(Ask::NodeOnly {}) | None => 1,
        Some(ask) => kinds.iter().filter(|k| asked.allows(k)).filter_map(|k| cells(k, ask)).min().unwrap_or(1),
    }
}

/// The fewest cells that an ask covers on a kind of GPU.
fn cells(kind: &Kind<'_>, ask: &Ask) -> Option<u64> {
    let of = |one: &One| match one {
        One::Thing(Thing::Instance(p) | Thing::Compute(p, _)) => kind.profile(*p).map(|p| u64::from(cells_of(p))),
        _ => None,
    };
    match ask {
        Ask::Instances(set) => {
            let each: Option<Vec<u64>> = set.profiles.iter().map(|name| of(&named(kind, name)?)).collect();
            Some(each?.into_iter().sum())
        }
        _ => ones(kind, ask).iter().filter_map(of).min(),
    }
}
