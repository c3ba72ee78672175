//! The envelope that every `slicewise/v1` document shares.

use serde::{Deserialize, Deserializer, Serialize};
use slicewise_core::catalog::{Board, Model};
use slicewise_core::fleet::{Gpu, Lease, Mode, Node, Rack, Sharing, State};
use slicewise_core::workload::Workload;
use std::collections::BTreeSet;

use super::error::ReadError;
use super::locate::locate;
use super::requests::{self, Request};
use super::text::{Mapping, Whole, read, yaml_text};

/// The schema that this crate reads and writes.
pub const SCHEMA: &str = "slicewise/v1";

/// Most GPUs that the shorthand may invent in one document.
const GPUS_MAX: u64 = 4_000_000;

/// A fleet, the requests to it, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Always `slicewise/v1`; may be left out when writing by hand.
    #[serde(default)]
    pub schema: Schema,
    /// Version of the state; grows by one with each change.
    #[serde(default)]
    pub version: u64,
    /// Models that add to or override the built-in catalog.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Model>,
    /// vGPU boards that add to or override the built-in ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boards: Vec<Board>,
    /// Racks whose power is capped; nodes name theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub racks: Vec<Rack>,
    /// The nodes, in the order that breaks ties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Shorthand for nodes: alike GPUs, counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuRow>,
    /// What has been admitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<Lease>,
    /// What is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "requests::unwrapped")]
    #[schemars(with = "Vec<Request>")]
    pub requests: Vec<Workload>,
}

/// The name of the schema, the only one there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub enum Schema {
    /// `slicewise/v1`.
    #[default]
    #[serde(rename = "slicewise/v1")]
    V1,
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == SCHEMA {
            return Ok(Self::V1);
        }
        Err(serde::de::Error::custom(format!("unknown schema `{name}`; this version reads `{SCHEMA}`")))
    }
}

/// Alike GPUs, counted. Rows of one `node` share it; a row without gets a node of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuRow {
    /// Id or product name of the model.
    pub model: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// Short for `mode: mig`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mig: bool,
    /// How they are shared; absent: as `mig` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Modes that they may be changed to while nothing is on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,
    /// Settings of the mode.
    #[serde(default)]
    pub sharing: Sharing,
    /// Name of the node they are on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Driver version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

fn one() -> u32 {
    1
}

impl Document {
    /// The fleet, with the shorthand written out.
    pub fn into_state(self) -> State {
        let mut nodes = self.nodes;
        let mut taken: BTreeSet<String> = nodes.iter().map(|n| n.name.clone()).collect();
        taken.extend(self.gpus.iter().filter_map(|row| row.node.clone()));
        let mut next = 0;
        for row in self.gpus {
            let name = row.node.clone().unwrap_or_else(|| invented(&mut next, &taken));
            let at = nodes.iter().position(|n| n.name == name).unwrap_or_else(|| {
                nodes.push(Node { name, ..Node::default() });
                nodes.len() - 1
            });
            if let Some(node) = nodes.get_mut(at) {
                extend(node, &row);
            }
        }
        let Self { version, models, boards, racks, leases, .. } = self;
        State { version, models, boards, racks, nodes, leases }
    }
}

fn invented(next: &mut usize, taken: &BTreeSet<String>) -> String {
    loop {
        let name = format!("node-{next}");
        *next += 1;
        if !taken.contains(&name) {
            return name;
        }
    }
}

/// Indices stay unwritten where positions say the same.
fn extend(node: &mut Node, row: &GpuRow) {
    let explicit = node.gpus.iter().any(|g| g.index.is_some());
    let mut free =
        node.gpus.iter().zip(0..).map(|(g, at)| g.index.unwrap_or(at)).max().map_or(0, |i| i.saturating_add(1));
    let mode = row.mode.unwrap_or(if row.mig { Mode::Mig } else { Mode::Whole });
    for _ in 0..row.count {
        let index = explicit.then_some(free);
        free = free.saturating_add(1);
        let (model, driver, sharing) = (row.model.clone(), row.driver.clone(), row.sharing.clone());
        let modes = row.modes.clone();
        let gpu = Gpu { index, model, mode, modes, driver, sharing, ..Gpu::default() };
        node.gpus.push(gpu);
    }
}

impl From<State> for Document {
    fn from(state: State) -> Self {
        let State { version, models, boards, racks, nodes, leases } = state;
        Self { version, models, boards, racks, nodes, leases, ..Self::default() }
    }
}

impl Whole for Document {
    const EXPECTED: &'static str = "a `slicewise/v1` document";
}

/// Reads a fleet from a document in JSON or YAML. Requests in it are checked and left out.
///
/// # Errors
/// A text that is no such document, with line, column and field.
pub fn read_state(name: &str, text: &str) -> Result<State, ReadError> {
    let Mapping::<Document>(document) = read(name, text)?;
    requests::named(name, text, document.requests.clone(), "requests")?;
    if document.gpus.iter().map(|row| u64::from(row.count)).sum::<u64>() > GPUS_MAX {
        return Err(ReadError::new(name, format!("more than {GPUS_MAX} GPUs in one document"))
            .in_field("gpus")
            .at(locate(text, "gpus")));
    }
    Ok(document.into_state())
}

/// Writes a document as indented JSON; equal documents give equal bytes.
pub fn write_document(document: &Document) -> String {
    // All keys are strings and no number is a float: the writer cannot fail.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// Writes a fleet as an indented JSON document; equal fleets give equal bytes.
pub fn write_state(state: &State) -> String {
    write_document(&Document::from(state.clone()))
}

/// Writes a fleet as a YAML document; equal fleets give equal bytes.
pub fn write_state_yaml(state: &State) -> String {
    yaml_text(&Document::from(state.clone()))
}
