//! Fragmentation gradient descent: least growth of the expected fragmentation.

use slicewise::ids::NodeId;

use super::Score;
use crate::openb::{Node, Pod, Typical};

/// Fragmentation gradient descent.
pub(super) struct Fgd {
    typical: Typical,
    thresholds: Vec<i128>,
}

/// ln(s / (100 − s)) for s = 51..99, in parts per billion: the score is the greatest s
/// whose logit the gain in whole GPUs reaches.
#[rustfmt::skip]
const LOGITS_PPB: [i64; 49] = [
    40_005_335, 80_042_708, 120_144_312, 160_342_650, 200_670_695, 241_162_057, 281_851_152,
    322_773_392, 363_965_377, 405_465_108, 447_312_218, 489_548_225, 532_216_814, 575_364_145,
    619_039_208, 663_294_217, 708_185_058, 753_771_802, 800_119_300, 847_297_860, 895_384_047,
    944_461_609, 994_622_575, 1_045_968_555, 1_098_612_289, 1_152_679_510, 1_208_311_206, 1_265_666_373,
    1_324_925_415, 1_386_294_361, 1_450_010_176, 1_516_347_489, 1_585_627_264, 1_658_228_077, 1_734_601_055,
    1_815_289_967, 1_900_958_761, 1_992_430_165, 2_090_741_097, 2_197_224_577, 2_313_634_929, 2_442_347_035,
    2_586_689_344, 2_751_535_313, 2_944_438_979, 3_178_053_830, 3_476_098_690, 3_891_820_298, 4_595_119_850,
];

impl Fgd {
    /// The policy that expects these pods.
    pub fn new(typical: Typical) -> Self {
        // The gain comes in thousandths of a GPU, times the sum of counts.
        let unit = 1000 * i128::from(typical.total());
        let above = LOGITS_PPB.iter().map(|logit| i128::from(*logit));
        let below = above.clone().rev().map(|logit| -logit);
        let thresholds = below.chain([0]).chain(above).map(|logit| logit * unit).collect();
        Self { typical, thresholds }
    }

    fn rounded(&self, before: u64, after: u64) -> i64 {
        let gain = (i128::from(before) - i128::from(after)) * 1_000_000_000;
        self.thresholds.partition_point(|threshold| *threshold <= gain) as i64
    }
}

impl Score for Fgd {
    fn score(&self, _: NodeId, node: &Node, pod: &Pod) -> (i64, Option<usize>) {
        let before = self.typical.fragmentation(node);
        if pod.is_shared() {
            // Of GPUs with equal amounts left the first stands for all.
            let is_first = |i: usize, free: &u16| node.devices.iter().position(|other| other == free) == Some(i);
            let devices = node.devices.iter().enumerate();
            let fitting = devices.filter(|(i, free)| **free >= pod.gpu_milli && is_first(*i, free));
            let scored =
                fitting.map(|(i, _)| (self.rounded(before, self.typical.fragmentation(&node.with(pod, &[i]))), i));
            let best = scored.max_by_key(|(score, i)| (*score, std::cmp::Reverse(*i)));
            return best.map_or((0, None), |(score, i)| (score, Some(i)));
        }
        let after = node.with(pod, &node.first_devices(pod));
        (self.rounded(before, self.typical.fragmentation(&after)), None)
    }
}
