//! The bound of a certificate, leaf by leaf.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::Case;
use super::cover::{Kind, cheapest};
use crate::serving::{GpuProof, ProfilePrice, SplitOn};
use crate::verify::{Rule, Violation};

/// Deepest tree that is read.
const DEPTH_MAX: usize = 100;
/// Larger prices are refused: sums of them must not overflow.
const PRICE_MAX: u64 = 1 << 40;
/// Steps of all searches for cheapest segments together.
const WORK_MAX: u64 = 20_000_000;

/// At least and at most.
type Range = (u64, u64);

const FREE: Range = (0, u64::MAX);

/// What the splits above a leaf say.
#[derive(Clone, Default)]
struct Ranges {
    /// Segments, by target and profile (a position in the shapes).
    segments: BTreeMap<(usize, usize), Range>,
    /// GPUs, by layout.
    gpus: BTreeMap<usize, Range>,
}

/// GPUs that every deployment takes; `u64::MAX` if there is none.
pub(super) fn prove(case: &Case<'_>, proof: &GpuProof) -> Result<u64, Violation> {
    let fastest = |target| case.shapes.profiles.iter().map(move |p| case.fastest(target, *p)).collect();
    let prover = Prover { case, throughputs: case.request.targets.iter().map(fastest).collect() };
    let mut work = WORK_MAX;
    prover.tree(proof, &Ranges::default(), 0, &mut work).map_err(|v| v.within("certificate"))
}

struct Prover<'a> {
    case: &'a Case<'a>,
    /// By target and profile.
    throughputs: Vec<Vec<u64>>,
}

impl Prover<'_> {
    fn tree(&self, proof: &GpuProof, ranges: &Ranges, depth: usize, work: &mut u64) -> Result<u64, Violation> {
        if depth > DEPTH_MAX {
            return Err(Violation::new(Rule::Document, "", "the tree is too deep"));
        }
        let (on, most, fewer, more) = match proof {
            GpuProof::Prices(prices) => return self.leaf(&self.read(prices)?, ranges, work),
            GpuProof::Split { on, most, fewer, more } => (on, *most, fewer, more),
        };
        let Some(next) = most.checked_add(1) else {
            return Err(Violation::new(Rule::Document, "most", "there is nothing on the other side"));
        };
        let (mut low, mut high) = (ranges.clone(), ranges.clone());
        let (at_most, at_least) = match on {
            SplitOn::Segments { model, profile } => {
                let key = (self.target(model)?, self.profile(profile)?);
                (low.segments.entry(key).or_insert(FREE), high.segments.entry(key).or_insert(FREE))
            }
            SplitOn::Gpus { layout } => {
                let key = self.layout(layout)?;
                (low.gpus.entry(key).or_insert(FREE), high.gpus.entry(key).or_insert(FREE))
            }
        };
        at_most.1 = at_most.1.min(most);
        at_least.0 = at_least.0.max(next);
        let fewer = self.tree(fewer, &low, depth + 1, work)?;
        Ok(fewer.min(self.tree(more, &high, depth + 1, work)?))
    }

    fn leaf(&self, prices: &[u64], ranges: &Ranges, work: &mut u64) -> Result<u64, Violation> {
        let mut worth = 0u128;
        for (t, (target, throughputs)) in self.case.request.targets.iter().zip(&self.throughputs).enumerate() {
            let kinds: Vec<Kind> = throughputs
                .iter()
                .zip(prices)
                .enumerate()
                .map(|(p, (throughput, price))| {
                    let (least, most) = ranges.segments.get(&(t, p)).copied().unwrap_or(FREE);
                    // Nothing runs where no point is usable.
                    let most = if *throughput == 0 { 0 } else { most };
                    Kind { price: *price, throughput: *throughput, least, most }
                })
                .collect();
            let Some(cheapest) = cheapest(&kinds, target.rate_milli, work) else { return Ok(u64::MAX) };
            worth = worth.saturating_add(cheapest);
        }
        Ok(self.fewest(prices, ranges, worth))
    }

    /// The fewest GPUs that are worth that much together.
    fn fewest(&self, prices: &[u64], ranges: &Ranges, worth: u128) -> u64 {
        let mut gpus = 0u128;
        let mut lacking = worth;
        let mut room: Vec<(u128, u128)> = Vec::new();
        for (i, layout) in self.case.shapes.layouts.iter().enumerate() {
            let each: u128 = layout.iter().zip(prices).map(|(n, p)| u128::from(*n) * u128::from(*p)).sum();
            let (least, most) = ranges.gpus.get(&i).copied().unwrap_or(FREE);
            let Some(more) = most.checked_sub(least) else { return u64::MAX };
            gpus += u128::from(least);
            lacking = lacking.saturating_sub(u128::from(least).saturating_mul(each));
            room.push((each, u128::from(more)));
        }
        room.sort_unstable();
        for (each, most) in room.into_iter().rev() {
            if lacking == 0 || each == 0 {
                break;
            }
            let taken = lacking.div_ceil(each).min(most);
            gpus = gpus.saturating_add(taken);
            lacking = lacking.saturating_sub(taken.saturating_mul(each));
        }
        if lacking > 0 { u64::MAX } else { u64::try_from(gpus).unwrap_or(u64::MAX) }
    }

    /// Prices by profile.
    fn read(&self, prices: &[ProfilePrice]) -> Result<Vec<u64>, Violation> {
        let mut all: Vec<Option<u64>> = self.case.shapes.profiles.iter().map(|_| None).collect();
        for price in prices {
            let position = self.profile(&price.profile)?;
            if price.price > PRICE_MAX {
                return Err(Violation::new(Rule::Document, "prices", alloc::format!("{} is too much", price.price)));
            }
            let slot = all.get_mut(position).filter(|slot| slot.is_none());
            let Some(slot) = slot else {
                let text = alloc::format!("`{}` has two prices", price.profile);
                return Err(Violation::new(Rule::Duplicate, "prices", text));
            };
            *slot = Some(price.price);
        }
        Ok(all.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn profile(&self, name: &str) -> Result<usize, Violation> {
        let is_it = |p: &usize| self.case.model.profiles.get(*p).is_some_and(|p| p.name == name);
        let found = self.case.shapes.profiles.iter().position(is_it);
        found.ok_or_else(|| Violation::new(Rule::Unknown, "profile", alloc::format!("no base profile `{name}`")))
    }

    fn target(&self, name: &str) -> Result<usize, Violation> {
        let found = self.case.request.targets.iter().position(|t| t.model == name);
        found.ok_or_else(|| Violation::new(Rule::Unknown, "model", alloc::format!("`{name}` is not asked")))
    }

    fn layout(&self, names: &[String]) -> Result<usize, Violation> {
        let mut counts: Vec<u64> = self.case.shapes.profiles.iter().map(|_| 0).collect();
        for name in names {
            if let Some(count) = counts.get_mut(self.profile(name)?) {
                *count += 1;
            }
        }
        let found = self.case.shapes.layouts.iter().position(|l| *l == counts);
        found.ok_or_else(|| Violation::new(Rule::Unknown, "layout", "it is no maximal layout of the GPU"))
    }
}
