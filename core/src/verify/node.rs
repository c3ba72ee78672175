//! What a node must meet for a request or a lease, and what joins the GPUs on it.

use alloc::collections::BTreeMap;
use alloc::string::String;

use super::Rule;
use super::image::{Image, NodeImage};
use super::put::Refused;
use crate::fleet::LinkKind;
use crate::workload::{GpuLink, Requirement, Spread, WholeGpus};

/// Who wants to be on a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest<'a> {
    /// Its own name: what it already has on a node does not keep it away.
    pub(super) name: &'a str,
    pub(super) labels: &'a BTreeMap<String, String>,
    pub(super) keeps_away: &'a [Requirement],
    pub(super) nodes: &'a [Requirement],
}

impl Guest<'_> {
    /// Whether the node may take it; CPU and memory are counted elsewhere.
    pub(super) fn may_enter(&self, node: &NodeImage<'_>) -> Result<(), Refused> {
        let document = node.document;
        if document.cordoned {
            return Err((Rule::Cordoned, alloc::format!("node `{}` is cordoned", document.name)));
        }
        if let Some(missed) = self.nodes.iter().find(|r| !r.accepts(label(node, &r.key))) {
            let text = alloc::format!("node `{}` does not meet the requirement on `{}`", document.name, missed.key);
            return Err((Rule::NodeSelector, text));
        }
        let others = |name: &str| name != self.name;
        let disliked = node.labelled.iter().find(|r| others(r.name) && meets(self.keeps_away, r.labels));
        let disliking = node.keeping.iter().find(|r| others(r.name) && meets(r.keeps_away, self.labels));
        if let Some(other) = disliked.or(disliking) {
            let text = alloc::format!("`{}` and `{}` keep away from each other", self.name, other.name);
            return Err((Rule::AntiAffinity, text));
        }
        Ok(())
    }
}

/// Whether labels meet any requirement. A label that is not there meets none: else `not_in`
/// would keep away from everything that has no such label.
fn meets(requirements: &[Requirement], labels: &BTreeMap<String, String>) -> bool {
    requirements.iter().any(|r| labels.get(&r.key).is_some_and(|value| r.accepts(Some(value))))
}

fn label<'b>(node: &'b NodeImage<'_>, key: &str) -> Option<&'b str> {
    let document = node.document;
    match key {
        "slicewise/region" => document.region.as_deref(),
        "slicewise/zone" => document.zone.as_deref(),
        "slicewise/rack" => document.rack.as_deref(),
        "slicewise/name" => Some(&document.name),
        _ => document.labels.get(key).map(String::as_str),
    }
}

/// Where one member is: its node and the GPUs that it has there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) node: usize,
    pub(super) gpus: alloc::vec::Vec<usize>,
}

/// Whether two members may lie as they do. Nodes without a zone are each a zone of their own.
pub(super) fn may_lie(image: &Image<'_>, spread: Spread, a: &Spot, b: &Spot) -> bool {
    let zone = |node: usize| image.nodes.get(node).and_then(|n| n.document.zone.as_deref());
    let same_zone = a.node == b.node || (zone(a.node).is_some() && zone(a.node) == zone(b.node));
    match spread {
        Spread::DistinctGpus => a.gpus.iter().all(|g| !b.gpus.contains(g)),
        Spread::DistinctNodes => a.node != b.node,
        Spread::SameNode => a.node == b.node,
        Spread::DistinctZones => !same_zone,
        Spread::SameZone => same_zone,
    }
}

/// Whether two GPUs of a node are joined as asked; partitions are checked as sets.
pub(super) fn are_joined(image: &Image<'_>, link: Option<GpuLink>, a: usize, b: usize) -> bool {
    match link {
        None | Some(GpuLink::FabricPartition) => true,
        Some(GpuLink::SameNuma) => {
            let numa = |gpu: usize| image.gpus.get(gpu).and_then(|g| g.document.numa_node);
            numa(a).is_some() && numa(a) == numa(b)
        }
        Some(GpuLink::Nvlink) => matches!(path(image, a, b), LinkKind::NvLink(_)),
        Some(GpuLink::AtLeast(least)) => path(image, a, b) >= least,
    }
}

/// Whether a GPU is near enough to an adapter.
pub(super) fn is_near(image: &Image<'_>, ask: &WholeGpus, gpu: usize) -> bool {
    let Some(least) = ask.near_nic else { return true };
    let Some(found) = image.gpus.get(gpu) else { return false };
    let Some(node) = image.nodes.get(found.node) else { return false };
    let own = alloc::format!("GPU{}", found.index);
    let is_nic = |end: &str| node.document.nics.iter().any(|n| n.name == end);
    let joins = |a: &str, b: &str| (a == own && is_nic(b)) || (b == own && is_nic(a));
    let best = node.document.links.iter().filter(|l| joins(&l.a, &l.b)).map(|l| l.kind).max();
    best.unwrap_or_default() >= least
}

/// Whether the GPUs are all members of one offered partition, and it has no others.
pub(super) fn is_partition(image: &Image<'_>, gpus: &[usize]) -> bool {
    let Some(first) = gpus.first().and_then(|g| image.gpus.get(*g)) else { return false };
    let Some(node) = image.nodes.get(first.node) else { return false };
    let index = |gpu: &usize| image.gpus.get(*gpu).map(|g| g.index);
    let offered = |set: &alloc::vec::Vec<u32>| {
        set.len() == gpus.len() && gpus.iter().all(|g| index(g).is_some_and(|i| set.contains(&i)))
    };
    node.document.fabric_partitions.iter().any(offered)
}

fn path(image: &Image<'_>, a: usize, b: usize) -> LinkKind {
    let (Some(a), Some(b)) = (image.gpus.get(a), image.gpus.get(b)) else { return LinkKind::default() };
    let Some(node) = image.nodes.get(a.node) else { return LinkKind::default() };
    let (a, b) = (alloc::format!("GPU{}", a.index), alloc::format!("GPU{}", b.index));
    let joins = |x: &str, y: &str| (x == a && y == b) || (x == b && y == a);
    node.document.links.iter().find(|l| joins(&l.a, &l.b)).map(|l| l.kind).unwrap_or_default()
}
