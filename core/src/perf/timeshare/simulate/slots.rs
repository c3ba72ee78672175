//! Slots that stay with their owner: equal and fixed share.

use super::queue::Queues;
use crate::perf::timeshare::Setting;

/// Goes round the slots. Slots of one owner lie together and are one turn; those beyond the
/// residents' belong to nobody.
pub(super) fn run(queues: &mut Queues, setting: &Setting, shares: &[u64], slots: u64) {
    let switch = if slots > 1 { setting.switch_us } else { 0 };
    let slot = setting.slice_us + switch;
    let spare = slots.saturating_sub(shares.iter().sum());
    while !queues.over() {
        for (at, share) in shares.iter().enumerate() {
            if queues.over() {
                break;
            }
            let since = queues.now;
            queues.go(since + switch);
            if slots > 1 {
                queues.switched(since);
            }
            serve(queues, at, since + slot * share);
            queues.lost(at);
        }
        for _ in 0..spare {
            if queues.over() {
                break;
            }
            let since = queues.now;
            queues.go(since + switch);
            queues.switched(since);
            queues.go(since + slot);
        }
    }
}

/// The owner runs what it has until the turn ends.
fn serve(queues: &mut Queues, at: usize, end: u64) {
    while queues.now < end && !queues.over() {
        if !queues.has_work(at) {
            let next = queues.next_arrival().min(end);
            queues.go(next);
            continue;
        }
        let since = queues.now;
        queues.begin(at);
        queues.go(end.min(since.saturating_add(queues.work(at))));
        queues.ran(at, since);
    }
}
