//! Kubernetes Node objects, with the labels of NVIDIA's feature discovery.

use std::collections::BTreeMap;

use serde::Deserialize;
use slicewise_core::catalog::{Model, Profile};
use slicewise_core::fleet::{Mode, Node};

use super::arrange::{arrange, major, resolve};
use super::devices::{group, place};
use super::draft::Draft;
use super::{ImportError, ImportFault, Source};
use crate::document::{ReadError, locate, read_all};
use crate::quantity;

/// A Node, a list of them, or the bare labels of one.
#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    items: Option<Vec<Object>>,
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(default)]
    spec: Option<Spec>,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    unschedulable: bool,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    allocatable: Option<BTreeMap<String, String>>,
    #[serde(default)]
    capacity: Option<BTreeMap<String, String>>,
}

/// More GPUs than a node's label may claim.
const GPUS_MAX: u64 = 1024;

/// Reads nodes.
///
/// # Errors
/// See [`super::import`].
pub(super) fn import(files: &[Source<'_>], draft: &mut Draft<'_>) -> Result<(), ImportError> {
    for file in files {
        let objects: Vec<Object> = read_all(file.name, file.text)?;
        let mut found = 0;
        for (position, mut object) in objects.into_iter().enumerate() {
            let items = object.items.take();
            let listed = items.is_some();
            let nodes = items.unwrap_or_else(|| vec![object]);
            for (at, object) in nodes.into_iter().enumerate() {
                let path = if listed { format!("items[{at}]") } else { String::new() };
                let bare = !listed && object.kind.is_none() && object.metadata.is_none();
                if object.kind.as_deref().is_some_and(|kind| kind != "Node") {
                    continue;
                }
                let labels = if bare { bare_labels(file, position)? } else { None };
                let line = locate(file.text, &path).map(|(line, _)| line);
                node(object, labels, draft).map_err(|e| e.at(file.name, line))?;
                found += 1;
            }
        }
        if found == 0 {
            let fault = ImportFault::ListingMissing {
                wanted: "Node object".to_owned(),
                found: "other objects".to_owned(),
                hint: "give the output of `kubectl get nodes -o json`".to_owned(),
            };
            return Err(ImportError::new(fault).at(file.name, None));
        }
    }
    Ok(())
}

/// A text that is no object at all must be a map of labels.
fn bare_labels(file: &Source<'_>, position: usize) -> Result<Option<BTreeMap<String, String>>, ReadError> {
    Ok(read_all(file.name, file.text)?.into_iter().nth(position))
}

fn node(object: Object, bare: Option<BTreeMap<String, String>>, draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let (name, labels) = match object.metadata {
        Some(metadata) => (metadata.name, metadata.labels.unwrap_or_default()),
        None => (None, bare.unwrap_or_default()),
    };
    let name = name.unwrap_or_else(|| draft.node_name());
    let status = object.status.unwrap_or_default();
    let amounts = Amounts { status: &status };
    let cpu = amounts.read("cpu", quantity::milli)?;
    let memory = amounts.read("memory", quantity::mib)?;
    let gpus = gpus(&labels, &amounts)?;
    draft.with_node(&name, |node: &mut Node| {
        node.zone = labels.get("topology.kubernetes.io/zone").cloned().or(node.zone.take());
        node.region = labels.get("topology.kubernetes.io/region").cloned().or(node.region.take());
        node.cpu_milli = cpu.or(node.cpu_milli);
        node.memory_mib = memory.or(node.memory_mib);
        node.cordoned = object.spec.as_ref().map_or(node.cordoned, |s| s.unschedulable);
        node.labels.extend(labels.clone());
    });
    match gpus {
        Some(gpus) => fill(&name, &labels, gpus, draft),
        None => Ok(()),
    }
}

struct Amounts<'s> {
    status: &'s Status,
}

impl<'s> Amounts<'s> {
    /// What pods may use, else what there is.
    fn text(&self, key: &str) -> Option<&'s str> {
        let of = |map: &'s Option<BTreeMap<String, String>>| map.as_ref()?.get(key).map(String::as_str);
        of(&self.status.allocatable).or_else(|| of(&self.status.capacity))
    }
    fn read(&self, key: &str, parse: fn(&str) -> Option<u64>) -> Result<Option<u64>, ImportFault> {
        let Some(text) = self.text(key) else { return Ok(None) };
        match parse(text) {
            Some(value) => Ok(Some(value)),
            None => Err(ImportFault::Malformed(format!("`{text}` is not a quantity of `{key}`"))),
        }
    }
    /// MIG resources of the device plugin, by profile.
    fn instances(&self) -> Result<BTreeMap<String, u64>, ImportFault> {
        let maps = [&self.status.capacity, &self.status.allocatable];
        let keys = maps.into_iter().flatten().flat_map(BTreeMap::keys);
        let mut counts = BTreeMap::new();
        for key in keys {
            let Some(profile) = key.strip_prefix("nvidia.com/mig-") else { continue };
            if let Some(count) = self.read(key, quantity::count)?.filter(|n| *n > 0) {
                counts.insert(of_label(profile), count);
            }
        }
        Ok(counts)
    }
}

/// What the labels say of the GPUs.
struct Gpus {
    count: u64,
    product: Option<String>,
    instances: BTreeMap<String, u64>,
    /// Strategy `single`: the count is of instances, and GPUs follow from it.
    single: Option<String>,
}

fn gpus(labels: &BTreeMap<String, String>, amounts: &Amounts<'_>) -> Result<Option<Gpus>, ImportFault> {
    let number = |key: &str| -> Result<Option<u64>, ImportFault> {
        let Some(text) = labels.get(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| ImportFault::Malformed(format!("label `{key}` is `{text}`, not a number")))
    };
    let labelled = number("nvidia.com/gpu.count")?;
    let resource = amounts.read("nvidia.com/gpu", quantity::count)?;
    let mut instances = BTreeMap::new();
    for key in labels.keys() {
        let profile = key.strip_prefix("nvidia.com/mig-").and_then(|rest| rest.strip_suffix(".count"));
        let Some(profile) = profile else { continue };
        if let Some(count) = number(key)?.filter(|n| *n > 0) {
            instances.insert(of_label(profile), count);
        }
    }
    if instances.is_empty() {
        instances = amounts.instances()?;
    }
    let product = labels.get("nvidia.com/gpu.product").map(|p| p.trim_end_matches("-SHARED").to_owned());
    let (product, single) = match product.as_deref().and_then(|p| p.split_once("-MIG-")) {
        Some((product, profile)) => (Some(product.to_owned()), Some(of_label(profile))),
        None => (product, None),
    };
    let Some(count) = labelled.or(resource).or((!instances.is_empty()).then_some(1)) else { return Ok(None) };
    if count == 0 && instances.is_empty() {
        return Ok(None);
    }
    for count in instances.values().chain([&count]) {
        if *count > GPUS_MAX {
            return Err(ImportFault::Malformed(format!("a node with {count} GPUs or instances")));
        }
    }
    Ok(Some(Gpus { count: count.max(1), product, instances, single }))
}

/// Label keys cannot hold a plus sign: `1g.10gb.me` is `1g.10gb+me`.
fn of_label(profile: &str) -> String {
    match profile.split_once("gb.") {
        Some((size, attribute)) => format!("{size}gb+{attribute}"),
        None => profile.to_owned(),
    }
}

fn fill(node: &str, labels: &BTreeMap<String, String>, gpus: Gpus, draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let known = draft.known_model(node, 0)?;
    let model = match (&gpus.product, known) {
        (Some(product), _) => draft.product(product)?,
        (None, Some(model)) => model.id,
        (None, None) => {
            return Err(ImportFault::ModelNeeded("a node without label `nvidia.com/gpu.product`".to_owned()).into());
        }
    };
    let model = draft.model(&model)?;
    let driver = driver(labels);
    let memory = labels.get("nvidia.com/gpu.memory").and_then(|m| m.parse().ok());
    let mut layouts: Vec<Vec<String>> = Vec::new();
    let mut count = gpus.count;
    if let Some(profile) = &gpus.single {
        layouts = single(profile, gpus.count, &model)?;
        count = layouts.len() as u64;
        draft.note(format!("{node}: strategy `single` counts instances; {count} GPUs were taken to hold them"));
    } else if !gpus.instances.is_empty() {
        layouts = spread(&gpus.instances, count, &model, major(driver.as_deref()))?;
        if count > 1 {
            draft.note(format!("{node}: labels count MIG instances over {count} GPUs; which is on which was chosen"));
        }
    }
    for (index, position) in (0..u32::try_from(count).unwrap_or(u32::MAX)).zip(0..) {
        draft.with_gpu(node, index, |gpu| {
            gpu.model.clone_from(&model.id);
            gpu.driver = driver.clone().or(gpu.driver.take());
            if model.memory_mib_least().is_none() {
                gpu.memory_mib = memory.or(gpu.memory_mib);
            }
        });
        let layout: &[String] = layouts.get(position).map(Vec::as_slice).unwrap_or_default();
        // Where the state already knows instances, their true starts are better than chosen ones.
        let has = draft.find_gpu(node, index).is_some_and(|g| !g.instances.is_empty());
        if !layout.is_empty() && !has {
            let names = layout.iter().map(|name| (name.as_str(), None));
            place(draft, node, index, group(names), "a node's labels")?;
        } else if !layouts.is_empty() {
            draft.with_gpu(node, index, |gpu| gpu.mode = Mode::Mig);
        }
    }
    Ok(())
}

fn driver(labels: &BTreeMap<String, String>) -> Option<String> {
    let part = |key: &str| labels.get(&format!("nvidia.com/cuda.driver.{key}"));
    labels.get("nvidia.com/cuda.driver-version.full").cloned().or_else(|| {
        let parts: Vec<&str> =
            [part("major"), part("minor"), part("rev")].into_iter().flatten().map(String::as_str).collect();
        Some(parts.join(".")).filter(|d| !d.is_empty())
    })
}

/// Every GPU cut alike, as full as it goes.
fn single(profile: &str, count: u64, model: &Model) -> Result<Vec<Vec<String>>, ImportFault> {
    let own = profile_of(profile, model)?;
    let most = u64::from(own.max_instances.unwrap_or(1).max(1));
    let gpus = count.div_ceil(most);
    let on = |gpu: u64| (count - gpu * most).min(most);
    Ok((0..gpus).map(|gpu| (0..on(gpu)).map(|_| profile.to_owned()).collect()).collect())
}

/// Which instances are on which GPU: evenly where the counts divide, else the largest first
/// onto the first GPU that still has a legal arrangement.
fn spread(
    instances: &BTreeMap<String, u64>,
    gpus: u64,
    model: &Model,
    driver: Option<u32>,
) -> Result<Vec<Vec<String>>, ImportFault> {
    let names = |per: u64| -> Vec<String> {
        instances.iter().flat_map(|(name, n)| (0..*n / per).map(move |_| name.clone())).collect()
    };
    let fits = |layout: &[String]| -> Result<bool, ImportFault> {
        let wanted: Vec<&Profile> = layout.iter().map(|n| profile_of(n, model)).collect::<Result<_, _>>()?;
        match arrange(model, driver, &wanted) {
            Ok(_) => Ok(true),
            Err(ImportFault::NoArrangement { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    };
    let even = names(gpus);
    if instances.values().all(|n| n % gpus == 0) && fits(&even)? {
        return Ok((0..gpus).map(|_| even.clone()).collect());
    }
    let mut all = names(1);
    all.sort_by_key(|n| std::cmp::Reverse(profile_of(n, model).ok().and_then(|p| p.memory_slices)));
    let mut layouts: Vec<Vec<String>> = (0..gpus).map(|_| Vec::new()).collect();
    for name in all {
        let mut placed = false;
        for layout in &mut layouts {
            layout.push(name.clone());
            if fits(layout)? {
                placed = true;
                break;
            }
            layout.pop();
        }
        if !placed {
            let counts = instances.iter().map(|(n, c)| format!("{c} x {n}")).collect::<Vec<_>>().join(", ");
            return Err(ImportFault::NoArrangement {
                counts: format!("{counts} on {gpus} GPUs"),
                model: model.id.clone(),
            });
        }
    }
    Ok(layouts)
}

fn profile_of<'m>(name: &str, model: &'m Model) -> Result<&'m Profile, ImportFault> {
    resolve(&model.profiles, name, None)
        .ok_or_else(|| ImportFault::ProfileNotOnModel { profile: name.to_owned(), model: model.id.clone() })
}
