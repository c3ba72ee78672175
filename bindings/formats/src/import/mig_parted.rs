//! Configurations of mig-parted: layouts for GPUs that are named by index and PCI id.

use std::collections::BTreeMap;

use serde::Deserialize;
use slicewise_core::catalog::Model;
use slicewise_core::fleet::{Mode, Usage};

use super::devices::{group, place};
use super::draft::Draft;
use super::{ImportError, ImportFault, Source};
use crate::document::{locate, read_all};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Document {
    #[serde(default)]
    version: Option<String>,
    mig_configs: BTreeMap<String, Vec<Entry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    #[serde(default)]
    device_filter: OneOrMany,
    devices: Devices,
    mig_enabled: bool,
    #[serde(default)]
    mig_devices: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Default for OneOrMany {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl OneOrMany {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Devices {
    Some(Vec<u32>),
    /// The word `all`.
    All(String),
}

impl Entry {
    fn names(&self, index: u32) -> bool {
        match &self.devices {
            Devices::Some(indices) => indices.contains(&index),
            Devices::All(word) => word == "all",
        }
    }
    fn takes(&self, model: &Model) -> bool {
        let filter = self.device_filter.as_slice();
        filter.is_empty()
            || filter
                .iter()
                .filter_map(|id| device_id(id))
                .any(|id| model.pci.iter().any(|p| p.device.eq_ignore_ascii_case(id)))
    }
}

/// The device part of `0x233010DE`, whose last four digits are the vendor.
fn device_id(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches("0x").trim_start_matches("0X");
    (digits.len() == 8).then(|| digits.get(..4)).flatten()
}

/// More instances than any GPU can hold.
const DEVICES_MAX: u64 = 256;

/// Puts the chosen configuration's layouts onto the GPUs.
///
/// # Errors
/// See [`super::import`].
pub(super) fn import(files: &[Source<'_>], draft: &mut Draft<'_>) -> Result<(), ImportError> {
    for file in files {
        let documents: Vec<Document> = read_all(file.name, file.text)?;
        for document in documents {
            if document.version.as_deref().is_some_and(|v| v != "v1") {
                let text = format!("version `{}` of mig-parted is not known", document.version.unwrap_or_default());
                return Err(ImportError::new(ImportFault::Malformed(text)).at(file.name, line(file, "version")));
            }
            let (name, entries) = choose(document, draft).map_err(|e| e.at(file.name, None))?;
            apply(file, &name, &entries, draft)?;
        }
    }
    Ok(())
}

fn choose(mut document: Document, draft: &Draft<'_>) -> Result<(String, Vec<Entry>), ImportError> {
    let known: Vec<String> = document.mig_configs.keys().cloned().collect();
    let name = match (&draft.options.config, known.as_slice()) {
        (Some(name), _) => name.clone(),
        (None, [only]) => only.clone(),
        (None, _) => return Err(ImportFault::ConfigNeeded(known).into()),
    };
    match document.mig_configs.remove(&name) {
        Some(entries) => Ok((name, entries)),
        None => Err(ImportFault::ConfigUnknown { name, known }.into()),
    }
}

fn apply(file: &Source<'_>, config: &str, entries: &[Entry], draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let path = |at: usize| format!("mig-configs.{config}[{at}]");
    for (at, entry) in entries.iter().enumerate() {
        let word = match &entry.devices {
            Devices::All(word) if word != "all" => word,
            _ => continue,
        };
        let text = format!("`{word}` names no devices: give `all` or a list of indices");
        let line = line(file, &format!("{}.devices", path(at)));
        return Err(ImportError::new(ImportFault::Malformed(text)).at(file.name, line));
    }
    let targets = match gpus(draft)? {
        known if known.is_empty() => invent(entries, draft).map_err(|e| e.at(file.name, line(file, &path(0))))?,
        known => known,
    };
    let mut applied = false;
    for (node, index, model) in targets {
        // As in mig-parted, a later entry overrides an earlier one.
        let entry = entries.iter().enumerate().rfind(|(_, e)| e.names(index) && e.takes(&model));
        let Some((at, entry)) = entry else { continue };
        applied = true;
        set(entry, &node, index, draft).map_err(|e| e.at(file.name, line(file, &path(at))))?;
    }
    match applied {
        true => Ok(()),
        false => {
            Err(ImportError::new(ImportFault::NothingMatches(config.to_owned())).at(file.name, line(file, &path(0))))
        }
    }
}

fn line(file: &Source<'_>, path: &str) -> Option<usize> {
    locate(file.text, path).map(|(line, _)| line)
}

type Target = (String, u32, Model);

/// The GPUs of the state, of one node where the options name it.
fn gpus(draft: &Draft<'_>) -> Result<Vec<Target>, ImportError> {
    let mut targets = Vec::new();
    for node in &draft.state.nodes {
        if draft.options.node.as_ref().is_some_and(|wanted| *wanted != node.name) {
            continue;
        }
        for index in node.gpus.iter().filter_map(|g| g.index) {
            if let Some(model) = draft.known_model(&node.name, index)? {
                targets.push((node.name.clone(), index, model));
            }
        }
    }
    Ok(targets)
}

/// GPUs for a configuration without any: of the model asked for, else one per entry.
fn invent(entries: &[Entry], draft: &mut Draft<'_>) -> Result<Vec<Target>, ImportError> {
    let node = draft.node_name();
    let mut targets: Vec<Target> = Vec::new();
    let given = draft.given_model()?;
    for entry in entries {
        let model = match &given {
            Some(model) if !entry.takes(model) => continue,
            Some(model) => model.clone(),
            None => first_of(entry, draft)?,
        };
        let used = targets.iter().map(|(_, index, _)| *index).max();
        let indices = match (&entry.devices, &given) {
            (Devices::Some(indices), _) => indices.clone(),
            // Entries for different boards cannot share an index here.
            (Devices::All(_), None) => vec![used.map_or(0, |u| u.saturating_add(1))],
            (Devices::All(_), Some(_)) => vec![0],
        };
        for index in indices {
            if !targets.iter().any(|(_, i, _)| *i == index) {
                targets.push((node.clone(), index, model.clone()));
            }
        }
    }
    for (node, index, model) in &targets {
        draft.with_gpu(node, *index, |gpu| gpu.model.clone_from(&model.id));
    }
    let models: Vec<String> = targets.iter().map(|(_, index, m)| format!("GPU {index} `{}`", m.id)).collect();
    if !models.is_empty() {
        draft.note(format!("the configuration names no GPUs, so {node} was made up with {}", models.join(", ")));
    }
    Ok(targets)
}

fn first_of(entry: &Entry, draft: &Draft<'_>) -> Result<Model, ImportError> {
    let id = entry.device_filter.as_slice().first();
    let Some(id) = id else {
        return Err(ImportFault::ModelNeeded("an entry without `device-filter`".to_owned()).into());
    };
    let model = device_id(id).and_then(|device| draft.catalog.find_pci(device, None));
    model.cloned().ok_or_else(|| ImportFault::ModelUnknown(id.clone()).into())
}

fn set(entry: &Entry, node: &str, index: u32, draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let replaced = draft.with_gpu(node, index, |gpu| std::mem::take(&mut gpu.instances).len());
    if replaced > 0 {
        draft.note(format!("{node} GPU {index}: the configuration replaces the {replaced} instances that were there"));
    }
    if !entry.mig_enabled {
        draft.with_gpu(node, index, |gpu| gpu.mode = Mode::Whole);
        return Ok(());
    }
    if entry.mig_devices.values().map(|n| u64::from(*n)).sum::<u64>() > DEVICES_MAX {
        let model = draft.find_gpu(node, index).map(|g| g.model.clone()).unwrap_or_default();
        let counts = entry.mig_devices.iter().map(|(name, n)| format!("{n} x {name}")).collect::<Vec<_>>().join(", ");
        return Err(ImportFault::NoArrangement { counts, model }.into());
    }
    let names = entry.mig_devices.iter().flat_map(|(name, n)| (0..*n).map(move |_| (name.as_str(), None)));
    place(draft, node, index, group(names), "a mig-parted configuration")?;
    draft.with_gpu(node, index, |gpu| {
        gpu.mode = Mode::Mig;
        for instance in &mut gpu.instances {
            // Nothing runs in what a configuration only asks for.
            instance.usage = Usage::Idle;
            for compute in &mut instance.compute_instances {
                compute.usage = Usage::Idle;
            }
        }
    });
    Ok(())
}
