//! Fragmentation as the ATC'23 study measures it: the GPU that a pod drawn from the
//! expected workload could not use.

use std::collections::BTreeMap;

use super::cluster::Node;
use super::trace::{Pod, Trace};

/// Share of the pods that the typical ones cover, percent.
const COVERED_PERCENT: u64 = 95;

/// CPU, thousandths of a GPU, GPUs and models: what tells typical pods apart, in the order
/// of the published tables.
type Shape<'a> = (u64, u16, u16, Vec<&'a str>);

/// The commonest pods of a workload, each with how often it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typical {
    pods: Vec<(Pod, u64)>,
    total: u64,
}

impl Typical {
    /// The commonest pods of a trace, whatever their memory, until they cover 95 % of all.
    pub fn of(trace: &Trace) -> Self {
        let mut counts: BTreeMap<Shape<'_>, (Pod, u64)> = BTreeMap::new();
        for (kind, request) in trace.rows().iter().zip(&trace.requests) {
            let pod = Pod { memory_mib: 0, ..trace.kinds()[*kind] };
            let models = request.models.iter().map(String::as_str).collect();
            counts.entry((pod.cpu_milli, pod.gpu_milli, pod.gpus, models)).or_insert((pod, 0)).1 += 1;
        }
        // Equal counts: the larger one first.
        let mut pods: Vec<(Pod, u64)> = counts.into_values().rev().collect();
        pods.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let all: u64 = pods.iter().map(|(_, count)| count).sum();
        let mut total = 0;
        pods.retain(|(_, count)| {
            let wanted = total * 100 < all * COVERED_PERCENT;
            total += if wanted { *count } else { 0 };
            wanted
        });
        Self { pods, total }
    }

    /// How many typical pods there are.
    pub fn len(&self) -> usize {
        self.pods.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }
    /// What [`Typical::fragmentation`] is a multiple of: the sum of all counts.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The thousandths of GPU on a node that a typical pod cannot use, times
    /// [`Typical::total`].
    pub fn fragmentation(&self, node: &Node) -> u64 {
        let free = node.free_milli();
        if free == 0 {
            return 0;
        }
        let useless = |pod: &Pod| {
            if pod.gpus == 0 || node.cpu_free_milli < pod.cpu_milli || !node.has_gpus_for(pod) {
                return free;
            }
            node.devices.iter().filter(|left| **left < pod.gpu_milli).map(|left| u64::from(*left)).sum()
        };
        self.pods.iter().map(|(pod, count)| useless(pod) * count).sum()
    }
}
