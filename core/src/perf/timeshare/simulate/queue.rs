//! Work that has arrived and work that will.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Measured, Run};
use crate::perf::timeshare::demand::Resident;

/// All residents' work, the clock, and what has been measured.
pub(super) struct Queues {
    /// Now.
    pub now: u64,
    horizon: u64,
    /// Next arrivals: time, then resident.
    coming: BinaryHeap<Reverse<(u64, usize)>>,
    each: Vec<Queue>,
    switches: u64,
    switching: u64,
}

struct Queue {
    /// Burst and period; `None`: always busy.
    job: Option<(u64, u64)>,
    /// Arrivals of jobs that have not ended.
    pending: VecDeque<u64>,
    /// Left of the first of them.
    left: u64,
    /// When the first that has not run became ready.
    ready: Option<u64>,
    measured: Measured,
}

impl Queues {
    pub fn new(residents: &[Resident], phases: &[u64], horizon: u64) -> Self {
        let mut coming = BinaryHeap::new();
        let mut each = Vec::new();
        for (at, resident) in residents.iter().enumerate() {
            let job = resident.demand.map(|d| (d.burst_us, d.period_us));
            let ready = job.is_none().then_some(0);
            if job.is_some() {
                coming.push(Reverse((phases.get(at).copied().unwrap_or(0), at)));
            }
            each.push(Queue { job, pending: VecDeque::new(), left: 0, ready, measured: Measured::default() });
        }
        let mut queues = Self { now: 0, horizon, coming, each, switches: 0, switching: 0 };
        queues.arrive();
        queues
    }

    pub fn len(&self) -> usize {
        self.each.len()
    }

    pub fn over(&self) -> bool {
        self.now >= self.horizon
    }

    /// When the next job arrives.
    pub fn next_arrival(&self) -> u64 {
        self.coming.peek().map_or(u64::MAX, |Reverse((time, _))| *time)
    }

    /// Goes to a time, or to the horizon, and lets the jobs up to then arrive.
    pub fn go(&mut self, time: u64) {
        self.now = time.min(self.horizon);
        self.arrive();
    }

    fn arrive(&mut self) {
        while let Some(Reverse((time, at))) = self.coming.peek().copied() {
            if time > self.now {
                break;
            }
            self.coming.pop();
            let Some(queue) = self.each.get_mut(at) else { continue };
            let Some((burst, period)) = queue.job else { continue };
            if queue.pending.is_empty() {
                queue.left = burst;
                queue.ready = Some(time);
            }
            queue.pending.push_back(time);
            self.coming.push(Reverse((time.saturating_add(period), at)));
        }
    }

    pub fn has_work(&self, at: usize) -> bool {
        self.each.get(at).is_some_and(|q| q.job.is_none() || !q.pending.is_empty())
    }

    /// Time that it can run without a break.
    pub fn work(&self, at: usize) -> u64 {
        self.each.get(at).map_or(0, |q| if q.job.is_none() { u64::MAX } else { q.left })
    }

    /// It has the GPU from now for some time: a wait ends.
    pub fn begin(&mut self, at: usize) {
        let now = self.now;
        if let Some(queue) = self.each.get_mut(at)
            && let Some(ready) = queue.ready.take()
        {
            queue.measured.waits.push(now - ready);
        }
    }

    /// It has run until now, since `since`. A job may end, and the next one begin.
    pub fn ran(&mut self, at: usize, since: u64) {
        let now = self.now;
        let Some(queue) = self.each.get_mut(at) else { return };
        let time = now - since;
        queue.measured.ran_us += time;
        let Some((burst, _)) = queue.job else { return };
        queue.left = queue.left.saturating_sub(time);
        if queue.left == 0 && time > 0 {
            let response = queue.pending.pop_front().map(|arrival| now - arrival);
            queue.measured.response_worst_us = queue.measured.response_worst_us.max(response);
            if let Some(next) = queue.pending.front() {
                queue.left = burst;
                queue.ready = Some(*next);
            }
        }
    }

    /// It lost the GPU: one that is always busy begins to wait.
    pub fn lost(&mut self, at: usize) {
        let now = self.now;
        if let Some(queue) = self.each.get_mut(at)
            && queue.job.is_none()
        {
            // One that was switched to and did not get to run has waited on.
            queue.ready.get_or_insert(now);
        }
    }

    /// A switch began `since` and has ended.
    pub fn switched(&mut self, since: u64) {
        self.switches += 1;
        self.switching += self.now - since;
    }

    pub fn finish(self) -> Run {
        let end = self.horizon;
        let residents = self.each.into_iter().map(|mut q| {
            let first = q.ready.into_iter();
            let later = q.pending.iter().skip(1).copied();
            q.measured.open = first.chain(later).map(|ready| end.saturating_sub(ready)).collect();
            q.measured
        });
        let residents = residents.collect();
        Run { horizon_us: end, residents, switches: self.switches, switching_us: self.switching }
    }
}
