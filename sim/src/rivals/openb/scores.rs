//! The policies that score a node by what it has left. The published rules are in floats,
//! and where a value is whole their last bit decides the rounding: so it is kept.
#![expect(clippy::float_arithmetic, reason = "published scores are floats rounded down")]

use slicewise::ids::NodeId;

use super::Score;
use crate::openb::{Node, Pod, resident};

const CPU_MILLI_MAX: f64 = 128_000.0;
const GPU_MILLI_MAX: u64 = 8_000;

/// A number of milli-units as a float; exact, since there are far fewer than 2⁵³.
fn float(milli: u64) -> f64 {
    u32::try_from(milli).map_or(f64::INFINITY, f64::from)
}

/// `100 · score`, rounded down.
fn percent(score: f64) -> i64 {
    (score * 100.0) as i64
}

fn tightest(node: &Node, pod: &Pod) -> Option<usize> {
    pod.is_shared().then(|| node.tightest(pod.gpu_milli)).flatten()
}

/// Least left.
pub(super) struct BestFit;

impl Score for BestFit {
    fn score(&self, _: NodeId, node: &Node, pod: &Pod) -> (i64, Option<usize>) {
        let cpu = float(node.cpu_free_milli - pod.cpu_milli) / CPU_MILLI_MAX * 0.5;
        let gpu = float(node.free_milli() - pod.total_milli()) / float(GPU_MILLI_MAX) * 0.5;
        (percent(1.0 - (cpu + gpu)), tightest(node, pod))
    }
}

/// Least product of what is left and what is asked.
pub(super) struct DotProduct;

impl Score for DotProduct {
    fn score(&self, _: NodeId, node: &Node, pod: &Pod) -> (i64, Option<usize>) {
        let cpu = float(node.cpu_free_milli) / CPU_MILLI_MAX * (float(pod.cpu_milli) / CPU_MILLI_MAX);
        let gpu_max = float(GPU_MILLI_MAX);
        let gpu = float(node.free_milli()) / gpu_max * (float(pod.total_milli()) / gpu_max);
        (percent(1.0 - (cpu + gpu) / 2.0), tightest(node, pod))
    }
}

/// GPUs in use before free ones, nodes in use before idle ones.
pub(super) struct Packing;

impl Score for Packing {
    fn score(&self, _: NodeId, node: &Node, pod: &Pod) -> (i64, Option<usize>) {
        if pod.gpus == 0 {
            return (0, None);
        }
        let device = tightest(node, pod);
        let whole = node.whole_devices() as i64;
        if node.whole_devices() == node.devices.len() {
            return ((33 - whole).max(whole), device);
        }
        let mut fitting: Vec<u16> = node.devices.iter().copied().filter(|free| *free >= pod.gpu_milli).collect();
        fitting.sort_unstable();
        let used = fitting.iter().take(pod.gpus.into());
        let opened = used.clone().filter(|free| **free == 1000).count() as i64;
        if opened > 0 {
            return ((50 - opened).max(33), device);
        }
        let free_percent: i64 = used.map(|free| i64::from(*free) / 10).sum();
        ((100 - free_percent / 10).max(50), device)
    }
}

/// Nodes whose pods are of the same kind: parts of a GPU, or a number of GPUs.
pub(super) struct Clustering;

impl Score for Clustering {
    fn score(&self, _: NodeId, node: &Node, pod: &Pod) -> (i64, Option<usize>) {
        if pod.gpus == 0 {
            return (0, None);
        }
        let fullness = 25 * (GPU_MILLI_MAX - node.free_milli().min(GPU_MILLI_MAX)) / GPU_MILLI_MAX;
        let company = match (node.residents.contains(&resident(pod)), node.residents.len()) {
            (true, 1) => 75,
            (true, _) => 50,
            (false, 0) => 25,
            (false, _) => 0,
        };
        (fullness as i64 + company, tightest(node, pod))
    }
}
