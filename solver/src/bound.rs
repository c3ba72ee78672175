//! Bounds from prices, in integers. Whatever a solver did, a bound computed here holds:
//! it rests on the exact search for each room's dearest pattern alone.

use slicewise_core::ids::IdVec;
use slicewise_core::plan::BoundOf;

use crate::demand::{Batch, Demand};
use crate::ids::DemandId;
use crate::master::{FINE, PartPrices, slot_prices};
use crate::room::Rooms;

/// Scales that the solver's prices are tried at: prices of small programs are often
/// whole, halves, thirds and so on, and then a coarse scale loses nothing.
const SCALES: [u64; 12] = [1, 2, 3, 4, 6, 12, 60, 420, 840, 2_520, 27_720, FINE];

/// A bound and the prices that prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priced {
    /// The bound.
    pub bound: u64,
    /// Prices are in units of one in this many.
    pub scale: u64,
    /// The prices.
    pub prices: PartPrices,
}

/// What no placement can be worth more than, with each member worth `worth`.
pub fn value_bound(batch: &Batch, rooms: &Rooms, worth: &IdVec<DemandId, u64>, scale: u64, prices: &PartPrices) -> u64 {
    let slots = slot_prices(batch, prices);
    let valuation = rooms.value(&slots);
    let demand: u128 = batch
        .demands
        .iter()
        .map(|(id, d)| {
            let surplus = (u128::from(worth[id]) * u128::from(scale)).saturating_sub(u128::from(cheapest(d, prices)));
            u128::from(d.members) * surplus
        })
        .sum();
    let supply: u128 =
        rooms.rooms.iter().map(|(id, room)| room.gpus.len() as u128 * u128::from(valuation.best(id))).sum();
    whole((demand + supply) / u128::from(scale.max(1)))
}

/// GPUs that have to be opened at least when these members are admitted.
pub fn gpus_bound(
    batch: &Batch,
    rooms: &Rooms,
    members: &IdVec<DemandId, u64>,
    scale: u64,
    prices: &PartPrices,
) -> u64 {
    let slots = slot_prices(batch, prices);
    let valuation = rooms.value(&slots);
    let demand: u128 =
        batch.demands.iter().map(|(id, d)| u128::from(members[id]) * u128::from(cheapest(d, prices))).sum();
    let supply: u128 = rooms
        .rooms
        .iter()
        .map(|(id, room)| {
            let own = if room.unused { scale } else { 0 };
            room.gpus.len() as u128 * u128::from(valuation.best(id).saturating_sub(own))
        })
        .sum();
    whole(demand.saturating_sub(supply).div_ceil(u128::from(scale.max(1))))
}

/// The tightest bound near the solver's prices.
pub fn tightest(
    batch: &Batch,
    rooms: &Rooms,
    of: BoundOf,
    per_demand: &IdVec<DemandId, u64>,
    fine: &PartPrices,
) -> Priced {
    let mut best: Option<Priced> = None;
    for scale in SCALES {
        for half in [FINE / 2, 0, FINE - 1] {
            let round = |price: &u64| (price * scale + half) / FINE;
            let prices: PartPrices = fine.iter().map(|(_, p)| round(p)).collect();
            let bound = match of {
                BoundOf::Value | BoundOf::Members => value_bound(batch, rooms, per_demand, scale, &prices),
                BoundOf::Gpus => gpus_bound(batch, rooms, per_demand, scale, &prices),
            };
            let is_tighter = best.as_ref().is_none_or(|b| match of {
                BoundOf::Value | BoundOf::Members => bound < b.bound,
                BoundOf::Gpus => bound > b.bound,
            });
            if is_tighter {
                best = Some(Priced { bound, scale, prices });
            }
        }
    }
    best.unwrap_or(Priced { bound: 0, scale: 1, prices: PartPrices::default() })
}

/// What the cheapest alternative costs.
fn cheapest(demand: &Demand, prices: &PartPrices) -> u64 {
    let cost = |alternative: &crate::demand::Alternative| {
        let parts = alternative.iter().map(|(part, n)| prices[*part].saturating_mul(u64::from(*n)));
        parts.fold(0, u64::saturating_add)
    };
    demand.alternatives.iter().map(cost).min().unwrap_or(0)
}

fn whole(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
