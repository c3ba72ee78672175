//! Links between the GPUs and network adapters of a node: a petgraph graph to build
//! and check, a flat table for decisions.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use petgraph::graph::{NodeIndex, UnGraph};
use serde::{Deserialize, Serialize};

use super::Node;
use crate::error::{Fault, InputError};

/// A network adapter of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Nic {
    /// Name in the topology, `NIC0`.
    pub name: String,
    /// Device name, `mlx5_0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// A link between two ends of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// One end: `GPU<index>` or an adapter's name.
    pub a: String,
    /// The other end.
    pub b: String,
    /// What joins them.
    pub kind: LinkKind,
}

/// What joins two ends, worst first, so that "at least" is `>=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKind {
    /// Across the interconnect between NUMA nodes.
    #[default]
    Sys,
    /// Between PCIe host bridges inside one NUMA node.
    Node,
    /// Across one PCIe host bridge.
    Phb,
    /// Across several PCIe bridges, no host bridge.
    Pxb,
    /// Across at most one PCIe bridge.
    Pix,
    /// A bonded set of this many NVLinks.
    NvLink(u8),
}

impl LinkKind {
    /// Reads the code that `nvidia-smi topo -m` prints.
    pub fn parse(code: &str) -> Option<Self> {
        Some(match code {
            "SYS" => Self::Sys,
            "NODE" => Self::Node,
            "PHB" => Self::Phb,
            "PXB" => Self::Pxb,
            "PIX" => Self::Pix,
            _ => match code.strip_prefix("NV")?.parse().ok()? {
                0 => return None,
                count => Self::NvLink(count),
            },
        })
    }
    /// The code that `nvidia-smi topo -m` prints.
    pub fn code(self) -> String {
        match self {
            Self::Sys => "SYS".into(),
            Self::Node => "NODE".into(),
            Self::Phb => "PHB".into(),
            Self::Pxb => "PXB".into(),
            Self::Pix => "PIX".into(),
            Self::NvLink(count) => alloc::format!("NV{count}"),
        }
    }
}

impl Serialize for LinkKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.code())
    }
}

impl<'de> Deserialize<'de> for LinkKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        Self::parse(&code).ok_or_else(|| {
            serde::de::Error::custom(alloc::format!(
                "unknown link `{code}`; expected SYS, NODE, PHB, PXB, PIX or NV<count>"
            ))
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for LinkKind {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "LinkKind".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "What joins two ends, as `nvidia-smi topo -m` prints it.",
            "type": "string",
            "pattern": "^(SYS|NODE|PHB|PXB|PIX|NV[1-9][0-9]*)$"
        })
    }
}

/// The links of one node, looked up by position in the node's lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    gpus: usize,
    pair: Vec<LinkKind>,
    best_nic: Vec<LinkKind>,
    linked_any: bool,
    /// Offered fabric partitions, each as positions in the node's GPU list, rising.
    pub partitions: Vec<Vec<u16>>,
}

impl Topology {
    /// Builds and checks the links of a node.
    ///
    /// # Errors
    /// A link or partition that names no GPU or adapter of the node, or a pair given twice.
    pub fn of(node: &Node) -> Result<Self, InputError> {
        let mut graph: UnGraph<End, LinkKind> = UnGraph::default();
        let mut ends: Vec<(String, NodeIndex)> = Vec::new();
        for (position, gpu) in node.gpus.iter().enumerate() {
            let index = gpu.index.unwrap_or(position as u32);
            ends.push((alloc::format!("GPU{index}"), graph.add_node(End::Gpu(position))));
        }
        for nic in &node.nics {
            ends.push((nic.name.clone(), graph.add_node(End::Nic)));
        }
        let find = |name: &str, path: String| {
            ends.iter().find(|(n, _)| n == name).map(|(_, i)| *i).ok_or_else(|| {
                InputError::new(path, Fault::Unknown { kind: "GPU or adapter of the node", name: name.into() })
            })
        };
        for (i, link) in node.links.iter().enumerate() {
            let a = find(&link.a, alloc::format!("links[{i}].a"))?;
            let b = find(&link.b, alloc::format!("links[{i}].b"))?;
            if a == b || graph.find_edge(a, b).is_some() {
                return Err(InputError::new(
                    alloc::format!("links[{i}]"),
                    Fault::Duplicate(alloc::format!("{}-{}", link.a, link.b)),
                ));
            }
            graph.add_edge(a, b, link.kind);
        }
        Ok(Self::flatten(&graph, node.gpus.len(), partitions(node)?))
    }

    fn flatten(graph: &UnGraph<End, LinkKind>, gpus: usize, partitions: Vec<Vec<u16>>) -> Self {
        let mut flat = Self {
            gpus,
            pair: vec![LinkKind::Sys; gpus * gpus],
            best_nic: vec![LinkKind::Sys; gpus],
            linked_any: graph.edge_count() > 0,
            partitions,
        };
        for edge in graph.edge_indices() {
            let Some((a, b)) = graph.edge_endpoints(edge) else { continue };
            let (Some(a), Some(b), Some(kind)) = (graph.node_weight(a), graph.node_weight(b), graph.edge_weight(edge))
            else {
                continue;
            };
            match (*a, *b) {
                (End::Gpu(a), End::Gpu(b)) => {
                    for cell in [a * gpus + b, b * gpus + a] {
                        if let Some(slot) = flat.pair.get_mut(cell) {
                            *slot = *kind;
                        }
                    }
                }
                (End::Gpu(g), End::Nic) | (End::Nic, End::Gpu(g)) => {
                    if let Some(slot) = flat.best_nic.get_mut(g) {
                        *slot = (*slot).max(*kind);
                    }
                }
                (End::Nic, End::Nic) => {}
            }
        }
        flat
    }

    /// What joins two GPUs, by position in the node's list.
    pub fn between(&self, a: usize, b: usize) -> LinkKind {
        self.pair.get(a * self.gpus + b).copied().unwrap_or_default()
    }

    /// The best link of a GPU to any adapter.
    pub fn to_nic(&self, gpu: usize) -> LinkKind {
        self.best_nic.get(gpu).copied().unwrap_or_default()
    }

    /// Whether any link is known; where none is, nothing can be said of NVLink or adapters.
    pub fn is_known(&self) -> bool {
        self.linked_any
    }
}

#[derive(Clone, Copy, Debug)]
enum End {
    Gpu(usize),
    Nic,
}

fn partitions(node: &Node) -> Result<Vec<Vec<u16>>, InputError> {
    let mut offered = Vec::new();
    for (i, set) in node.fabric_partitions.iter().enumerate() {
        let mut members = Vec::new();
        for (j, index) in set.iter().enumerate() {
            let path = alloc::format!("fabric_partitions[{i}][{j}]");
            let position =
                node.gpus.iter().enumerate().position(|(p, g)| g.index.unwrap_or(p as u32) == *index).ok_or_else(
                    || InputError::new(&*path, Fault::Unknown { kind: "GPU index", name: alloc::format!("{index}") }),
                )?;
            let position = position as u16;
            if members.contains(&position) {
                return Err(InputError::new(path, Fault::Duplicate(alloc::format!("{index}"))));
            }
            members.push(position);
        }
        members.sort_unstable();
        offered.push(members);
    }
    Ok(offered)
}
