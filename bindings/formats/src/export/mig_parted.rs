//! Layouts as a configuration of mig-parted.

use std::collections::BTreeMap;

use serde::Serialize;
use slicewise_core::fleet::{ComputeInstance, Gpu, Instance, Lease, Mode, Node, Part, Placement, State};

use crate::document::yaml_text;

/// The configuration of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Name of the node.
    pub node: String,
    /// The YAML document, which holds one configuration named `slicewise`.
    pub yaml: String,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Document {
    version: &'static str,
    mig_configs: BTreeMap<&'static str, Vec<Entry>>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    devices: Vec<u32>,
    mig_enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    mig_devices: Option<BTreeMap<String, u32>>,
}

/// One document per node with GPUs: an entry for each layout that differs. Starts are not
/// in it, since mig-parted chooses them itself.
pub fn mig_parted(state: &State) -> Vec<NodeConfig> {
    let nodes = state.nodes.iter().filter(|n| !n.gpus.is_empty());
    let config = |node: &Node| {
        let mut node = node.clone();
        add_leased(&mut node, &state.leases);
        NodeConfig { node: node.name, yaml: yaml_text(&document(&node.gpus)) }
    };
    nodes.map(config).collect()
}

/// Instances that leases have and the GPUs' own lists do not name.
fn add_leased(node: &mut Node, leases: &[Lease]) {
    let here: Vec<&Placement> = leases.iter().flat_map(|l| &l.placements).filter(|p| p.node == node.name).collect();
    for (gpu, position) in node.gpus.iter_mut().zip(0..) {
        let index = gpu.index.unwrap_or(position);
        for placement in here.iter().filter(|p| p.gpu == Some(index)) {
            let (profile, start, compute) = match &placement.part {
                Part::Instance { profile, start, .. } => (profile, *start, None),
                Part::Compute { profile, start, compute_profile, compute_start, .. } => {
                    let inner = ComputeInstance {
                        profile: compute_profile.clone(),
                        start: Some(*compute_start),
                        ..ComputeInstance::default()
                    };
                    (profile, *start, Some(inner))
                }
                _ => continue,
            };
            match gpu.instances.iter_mut().find(|i| i.start == start) {
                Some(instance) => {
                    let known = |c: &ComputeInstance| instance.compute_instances.iter().any(|k| k.start == c.start);
                    if let Some(inner) = compute.filter(|c| !known(c)) {
                        instance.compute_instances.push(inner);
                    }
                }
                None => gpu.instances.push(Instance {
                    profile: profile.clone(),
                    start,
                    compute_instances: compute.into_iter().collect(),
                    ..Instance::default()
                }),
            }
        }
    }
}

fn document(gpus: &[Gpu]) -> Document {
    let mut entries: Vec<Entry> = Vec::new();
    for (gpu, position) in gpus.iter().zip(0..) {
        let index = gpu.index.unwrap_or(position);
        let layout = (gpu.mode == Mode::Mig).then(|| counts(gpu));
        match entries.iter_mut().find(|e| e.mig_devices == layout) {
            Some(entry) => entry.devices.push(index),
            None => entries.push(Entry { devices: vec![index], mig_enabled: layout.is_some(), mig_devices: layout }),
        }
    }
    Document { version: "v1", mig_configs: BTreeMap::from([("slicewise", entries)]) }
}

/// MIG devices by name: a GPU instance with its default compute instance is one, else
/// each compute instance is.
fn counts(gpu: &Gpu) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for instance in &gpu.instances {
        let parts = instance.compute_instances.iter().map(|c| &c.profile);
        let whole = instance.compute_instances.is_empty().then_some(&instance.profile);
        for name in parts.chain(whole) {
            *counts.entry(name.clone()).or_default() += 1;
        }
    }
    counts
}
