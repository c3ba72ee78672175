//! What one candidate would deliver at one batch with so many processes.
//!
//! ```text
//! throughput = whole GPU's · rate on the slice · (1 − overhead) · rate beside others
//! latency    = batch · processes ÷ throughput
//! ```

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::ask::{BatchRate, Candidate, Demand, RecommendAsk};
use crate::error::InputError;
use crate::perf::fixed::{PPM, narrow, scale};
use crate::perf::interference::{self, Knowledge, Resident};
use crate::perf::memory::{self, Fit, ModelMemory};
use crate::perf::overhead::{Shared, Sharing, overhead};
use crate::perf::params::Parameters;
use crate::perf::range::Range;
use crate::perf::scaling::{Curve, Known, Shape};

/// Predicted figures of one way to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Predicted {
    /// Items of a step.
    pub batch: u64,
    /// MPS processes.
    pub processes: u32,
    /// Items in a thousand seconds, all processes of one place.
    pub throughput_milli: Range,
    /// Time of one batch.
    pub latency_us: Range,
    /// Share lost to the way of sharing.
    pub overhead_ppm: Range,
    /// Share of its speed alone that co-residents leave.
    pub beside_ppm: Range,
    /// Memory needed; absent: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<Range>,
    /// Whether it goes in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_fit: Option<Fit>,
    /// Places needed for the rate that is asked.
    pub places: u64,
    /// Money an hour for all of them.
    pub micro_per_hour: u64,
    /// Money for a million items.
    pub micro_per_million_items: u64,
    /// What the prediction rests on.
    pub known: Known,
}

/// Figures that candidates share.
pub(super) struct Basis<'a> {
    demand: &'a Demand,
    parameters: &'a Parameters,
    shape: Shape,
}

impl<'a> Basis<'a> {
    pub(super) fn new(ask: &'a RecommendAsk, parameters: &'a Parameters) -> Result<Self, InputError> {
        let shape = Shape::of(ask.workload.class, parameters)?;
        Ok(Self { demand: &ask.workload, parameters, shape })
    }

    /// The best known curve at a batch.
    fn curve(&self, point: BatchRate) -> Curve {
        let own = self.demand.slices.iter().filter(|s| s.batch == point.batch);
        let rates: Vec<_> = own.map(|s| (s.slice, scale(s.milli_items_per_s, PPM, point.milli_items_per_s))).collect();
        let by_slices = Curve::of_rates(self.shape, &rates);
        by_slices.unwrap_or_else(|| {
            let step = |p: &BatchRate| (p.batch, scale(p.batch, 1_000_000_000_000, p.milli_items_per_s));
            let all = self.demand.whole_gpu.iter();
            match (all.clone().min_by_key(|p| p.batch), all.max_by_key(|p| p.batch)) {
                (Some(one), Some(other)) => Curve::of_batches(self.shape, point.batch, step(one), step(other)),
                _ => Curve::of_batch(self.shape, point.batch),
            }
        })
    }

    fn memory(&self, batch: u64, processes: u32) -> Result<Option<Range>, InputError> {
        match (&self.demand.memory_mib, &self.demand.model) {
            (Some(one), _) => Ok(Some(one.map(|mib| mib.saturating_mul(processes.into())))),
            (None, Some(model)) => {
                let model =
                    ModelMemory { concurrency: Some(batch), processes: Some(processes.into()), ..model.clone() };
                let size = memory::size(&model, self.parameters).map_err(|e| e.within("workload.model"))?;
                Ok(Some(size.total_mib))
            }
            _ => Ok(None),
        }
    }

    fn beside(&self, candidate: &Candidate) -> Result<Range, InputError> {
        // Hardware keeps instances apart; a whole GPU has nobody else.
        if matches!(candidate.sharing, Sharing::Mig | Sharing::Whole) {
            return Ok(Range::exact(PPM));
        }
        let (me, known) = match self.demand.pressure {
            Some(own) => (own, Knowledge::Probe),
            None => (Resident::of(self.demand.class, self.parameters)?, Knowledge::Class),
        };
        let others: Result<Vec<_>, _> = candidate.beside.iter().map(|c| Resident::of(*c, self.parameters)).collect();
        interference::rate(self.parameters, &me, &others?, known)
    }

    pub(super) fn predict(
        &self,
        candidate: &Candidate,
        point: BatchRate,
        processes: u32,
    ) -> Result<Predicted, InputError> {
        let curve = self.curve(point);
        let rate = curve.rate(self.demand.class, &candidate.slice, processes, self.parameters)?;
        let shared = Shared {
            sharing: candidate.sharing,
            era: candidate.driver_era,
            tenants: u32::try_from(candidate.beside.len()).unwrap_or(u32::MAX).saturating_add(1),
            slice_us: candidate.time_slice_us,
            launch_bound_ppm: curve.launch_bound_ppm(),
        };
        let overhead_ppm = overhead(self.parameters, &shared)?.loss_ppm;
        let beside_ppm = self.beside(candidate)?;
        let throughput_milli = rate.scaled(point.milli_items_per_s, PPM).share(overhead_ppm.rest()).share(beside_ppm);
        let items_in_flight = point.batch.saturating_mul(processes.into());
        let latency_us = throughput_milli.turned(|milli| scale(items_in_flight, 1_000_000_000, milli));
        let memory_mib = self.memory(point.batch, processes)?;
        let expected = throughput_milli.expected.max(1);
        let places = self.demand.rate_min_milli.map_or(1, |rate| rate.div_ceil(expected).max(1));
        let hour = u128::from(expected) * 3600;
        let million = (u128::from(candidate.micro_per_hour) * 1_000_000_000).div_ceil(hour);
        Ok(Predicted {
            batch: point.batch,
            processes,
            throughput_milli,
            latency_us,
            overhead_ppm,
            beside_ppm,
            memory_mib,
            memory_fit: memory_mib.map(|size| Fit::of(size, candidate.memory_mib)),
            places,
            micro_per_hour: candidate.micro_per_hour.saturating_mul(places),
            micro_per_million_items: narrow(million),
            known: curve.known,
        })
    }
}
