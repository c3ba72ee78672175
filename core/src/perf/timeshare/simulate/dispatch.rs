//! Turns for whoever has work: round robin, by weight, by priority.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::queue::Queues;
use crate::perf::timeshare::demand::Resident;
use crate::perf::timeshare::{Scheduler, Setting, turns};

/// Who is next, and how long a turn is.
struct Rota {
    priorities: Vec<u32>,
    /// Who had the last turn, by priority.
    last: BTreeMap<u32, usize>,
    /// Length of a turn, by resident.
    turns: Vec<u64>,
    /// Unused turns of weighted fair, by resident.
    credit: Vec<u64>,
    credit_max: u64,
    averaging: u64,
    /// Left of a turn that was taken away.
    left: BTreeMap<usize, u64>,
}

impl Rota {
    fn new(setting: &Setting, residents: &[Resident]) -> Self {
        let by_priority = matches!(setting.scheduler, Scheduler::Priority | Scheduler::Preemptive);
        let weighted = setting.scheduler == Scheduler::WeightedFair;
        let priorities = residents.iter().map(|r| if by_priority { r.priority } else { 0 }).collect();
        let turns = match weighted {
            // What a weight is worth is the setting's meaning, not a formula about it.
            true => turns::lengths(setting),
            false => alloc::vec![setting.slice_us; residents.len()],
        };
        Self {
            priorities,
            last: BTreeMap::new(),
            turns,
            credit: alloc::vec![0; residents.len()],
            credit_max: if weighted { setting.slice_us } else { 0 },
            averaging: setting.averaging_factor.max(1),
            left: BTreeMap::new(),
        }
    }

    fn priority(&self, at: usize) -> u32 {
        self.priorities.get(at).copied().unwrap_or(0)
    }

    /// The highest priority that has work.
    fn highest(&self, queues: &Queues) -> Option<u32> {
        (0..queues.len()).filter(|at| queues.has_work(*at)).map(|at| self.priority(at)).max()
    }

    /// Who has the next turn. Those who are passed over keep what they did not use.
    fn next(&mut self, queues: &Queues) -> Option<usize> {
        let level = self.highest(queues)?;
        if let Some(at) = self.left.keys().copied().find(|at| self.priority(*at) == level && queues.has_work(*at)) {
            return Some(at);
        }
        let count = queues.len();
        let first = self.last.get(&level).map_or(0, |last| last + 1);
        for at in (first..first + count).filter_map(|i| i.checked_rem(count)) {
            if self.priority(at) != level {
                continue;
            }
            if queues.has_work(at) {
                self.last.insert(level, at);
                return Some(at);
            }
            let unused = self.turns.get(at).copied().unwrap_or(0);
            self.keep(at, unused);
        }
        None
    }

    fn keep(&mut self, at: usize, unused: u64) {
        let most = self.credit_max;
        if let Some(credit) = self.credit.get_mut(at) {
            *credit = (*credit + unused).min(most);
        }
    }

    /// How long its turn is.
    fn turn(&mut self, at: usize) -> u64 {
        if let Some(left) = self.left.remove(&at) {
            return left;
        }
        let averaging = self.averaging;
        let extra = self.credit.get_mut(at).map_or(0, |credit| {
            let extra = *credit / averaging;
            *credit -= extra;
            extra
        });
        self.turns.get(at).copied().unwrap_or(1) + extra
    }
}

/// Goes from turn to turn.
pub(super) fn run(queues: &mut Queues, setting: &Setting, residents: &[Resident]) {
    let mut rota = Rota::new(setting, residents);
    let preempts = setting.scheduler == Scheduler::Preemptive;
    let mut holder = None;
    while !queues.over() {
        let Some(at) = rota.next(queues) else {
            queues.go(queues.next_arrival());
            continue;
        };
        if holder != Some(at) {
            if let Some(before) = holder {
                queues.lost(before);
                let since = queues.now;
                queues.go(since + setting.switch_us);
                queues.switched(since);
            }
            holder = Some(at);
        }
        let length = rota.turn(at);
        let taken = |queues: &Queues| preempts && rota.highest(queues).is_some_and(|h| h > rota.priority(at));
        match serve(queues, at, length, preempts, taken) {
            End::Dry(unused) => rota.keep(at, unused),
            End::Taken(left) => _ = rota.left.insert(at, left),
            End::Used => {}
        }
    }
}

/// How a turn ended.
enum End {
    /// All of it was used.
    Used,
    /// There was no more work; so much was not used.
    Dry(u64),
    /// A higher priority came; so much is left.
    Taken(u64),
}

/// One turn.
fn serve(queues: &mut Queues, at: usize, length: u64, looks: bool, taken: impl Fn(&Queues) -> bool) -> End {
    let mut left = length;
    while !queues.over() && left > 0 {
        if !queues.has_work(at) {
            return End::Dry(left);
        }
        if taken(queues) {
            return End::Taken(left);
        }
        let since = queues.now;
        queues.begin(at);
        let end = since.saturating_add(left.min(queues.work(at)));
        queues.go(if looks { end.min(queues.next_arrival()) } else { end });
        queues.ran(at, since);
        left -= queues.now - since;
    }
    End::Used
}
