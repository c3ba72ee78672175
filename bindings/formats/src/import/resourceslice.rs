//! Kubernetes ResourceSlice objects of NVIDIA's DRA driver: GPUs and the MIG devices that
//! they offer. What is allocated is not in them, so no instances come of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use slicewise_core::catalog::{Placements, Profile, ProfileStatus, parse_profile_name};
use slicewise_core::fleet::Mode;

use super::draft::Draft;
use super::identify::{Seen, identify, remark};
use super::{ImportError, ImportFault, Source};
use crate::document::{Syntax, read_all, syntax};
use crate::quantity;

/// A ResourceSlice, a list of them, a `spec` or what a `spec` holds.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    kind: Option<String>,
    items: Vec<Object>,
    spec: Option<Spec>,
    devices: Option<Vec<Device>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
    devices: Vec<Device>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Device {
    name: String,
    attributes: Option<BTreeMap<String, Attribute>>,
    capacity: Option<BTreeMap<String, Amount>>,
    consumes_counters: Vec<Consumption>,
    /// Where `v1beta1` keeps the three above.
    basic: Option<Box<Device>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Attribute {
    string: Option<String>,
    int: Option<u32>,
    version: Option<String>,
}

#[derive(Deserialize)]
struct Amount {
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Consumption {
    counter_set: String,
    #[serde(default)]
    counters: BTreeMap<String, Amount>,
}

/// Reads the devices of every slice.
///
/// # Errors
/// See [`super::import`].
pub(super) fn import(files: &[Source<'_>], draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let mut nodes: BTreeMap<String, Vec<Device>> = BTreeMap::new();
    for file in files {
        let found = specs(file)?;
        if found.iter().all(|spec| spec.devices.is_empty()) {
            let fault = ImportFault::ListingMissing {
                wanted: "device of a ResourceSlice".to_owned(),
                found: "no `devices`".to_owned(),
                hint: "give the output of `kubectl get resourceslices -o yaml`".to_owned(),
            };
            return Err(ImportError::new(fault).at(file.name, None));
        }
        for spec in found {
            let node = spec.node_name.unwrap_or_else(|| draft.node_name());
            nodes.entry(node).or_default().extend(spec.devices.into_iter().map(Device::flat));
        }
    }
    let file = match files {
        [only] => Some(only.name),
        _ => None,
    };
    for (node, devices) in nodes {
        let result = read_node(&node, &devices, draft);
        result.map_err(|e| match file {
            Some(file) => e.at(file, None),
            None => e,
        })?;
    }
    Ok(())
}

fn specs(file: &Source<'_>) -> Result<Vec<Spec>, ImportError> {
    let text = without_ellipses(file.text);
    if is_list(&text) {
        let lists: Vec<Vec<Device>> = read_all(file.name, &text)?;
        return Ok(lists.into_iter().map(|devices| Spec { node_name: None, devices }).collect());
    }
    let objects: Vec<Object> = read_all(file.name, &text)?;
    let mut found = Vec::new();
    for object in objects.into_iter().flat_map(|mut o| std::mem::take(&mut o.items).into_iter().chain([o])) {
        if object.kind.as_deref().is_some_and(|kind| kind != "ResourceSlice") {
            continue;
        }
        found.extend(object.spec);
        found.extend(object.devices.map(|devices| Spec { node_name: None, devices }));
    }
    Ok(found)
}

/// A list of devices, as documentation shows them, begins with a dash or a bracket.
fn is_list(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#') && *l != "---");
    match syntax(text) {
        Syntax::Json => text.trim_start_matches('\u{feff}').trim_start().starts_with('['),
        Syntax::Yaml => first.is_some_and(|l| l.starts_with("- ")),
    }
}

/// Documentation leaves attributes out as a line of `...`. Flush left that ends a YAML
/// document; indented it stands for nothing, and nothing is put in its place.
fn without_ellipses(text: &str) -> String {
    let lines = text.split('\n').map(|l| match l.trim() == "..." && l.starts_with([' ', '\t']) {
        true => "",
        false => l,
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl Device {
    fn flat(self) -> Self {
        match self.basic {
            Some(basic) => Self { name: self.name, ..*basic },
            None => self,
        }
    }
    /// An attribute, whatever domain its name is in.
    fn attribute(&self, name: &str) -> Option<&Attribute> {
        let attributes = self.attributes.as_ref()?;
        attributes.iter().find(|(key, _)| key.rsplit('/').next() == Some(name)).map(|(_, value)| value)
    }
    fn string(&self, name: &str) -> Option<&str> {
        self.attribute(name)?.string.as_deref()
    }
    /// The profile, by attribute or from a name such as `gpu-0-mig-1g.5gb-0`.
    fn profile(&self) -> Option<&str> {
        self.string("profile").or_else(|| {
            let (_, rest) = self.name.split_once("mig-")?;
            let name = rest.split('-').next()?;
            parse_profile_name(name).map(|_| name)
        })
    }
    fn is_mig(&self) -> bool {
        self.string("type") == Some("mig") || (self.string("type").is_none() && self.profile().is_some())
    }
    /// The GPU's index, in names such as `gpu-0` and `gpu-0-counter-set`.
    fn gpu_index(&self) -> Option<u32> {
        let by_attribute = self.attribute("index").filter(|_| !self.is_mig()).and_then(|a| a.int);
        let names = std::iter::once(&self.name).chain(self.consumes_counters.iter().map(|c| &c.counter_set));
        by_attribute.or_else(|| names.filter_map(|n| index_in(n)).next())
    }
    /// An amount by any spelling of its name: `copy-engines` and `copyEngines` are one.
    fn amount(&self, name: &str) -> Option<&str> {
        let counters = self.consumes_counters.iter().flat_map(|c| &c.counters);
        let all = self.capacity.iter().flatten().chain(counters);
        all.into_iter().find(|(key, _)| folded(key) == name).map(|(_, amount)| amount.value.as_str())
    }
    fn number(&self, name: &str) -> Result<Option<u16>, ImportFault> {
        let Some(text) = self.amount(name) else { return Ok(None) };
        let value = quantity::count(text).and_then(|n| u16::try_from(n).ok());
        value
            .map(Some)
            .ok_or_else(|| ImportFault::Malformed(format!("`{text}` is not a number of {name} in `{}`", self.name)))
    }
    fn memory_mib(&self) -> Result<Option<u32>, ImportFault> {
        let Some(text) = self.amount("memory") else { return Ok(None) };
        let value = quantity::mib(text).and_then(|n| u32::try_from(n).ok());
        value
            .map(Some)
            .ok_or_else(|| ImportFault::Malformed(format!("`{text}` is not a memory size in `{}`", self.name)))
    }
    /// First cell and number of cells, from the memory slices it consumes.
    fn cells(&self) -> Result<Option<(u16, u16)>, ImportFault> {
        let mut cells = BTreeSet::new();
        for (key, amount) in self.consumes_counters.iter().flat_map(|c| &c.counters) {
            let folded = folded(key);
            let cell = folded.strip_prefix("memoryslice").and_then(|n| n.parse::<u16>().ok());
            if let Some(cell) = cell.filter(|_| quantity::milli(&amount.value) != Some(0)) {
                cells.insert(cell);
            }
        }
        let (Some(&first), Some(&last)) = (cells.first(), cells.last()) else { return Ok(None) };
        let size = cells.len();
        if usize::from(last - first) + 1 != size {
            let text = format!("`{}` consumes memory slices that do not lie side by side", self.name);
            return Err(ImportFault::Malformed(text));
        }
        Ok(Some((first, u16::try_from(size).unwrap_or(u16::MAX))))
    }
}

fn folded(key: &str) -> String {
    let name = key.rsplit('/').next().unwrap_or_default();
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn index_in(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("gpu-")?;
    rest.split('-').next()?.parse().ok()
}

/// The devices of one node, GPU by GPU.
fn read_node(node: &str, devices: &[Device], draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let parents: Vec<(&str, u32)> =
        devices.iter().filter(|d| !d.is_mig()).filter_map(|d| Some((d.string("uuid")?, d.gpu_index()?))).collect();
    let mut gpus: BTreeMap<u32, Vec<&Device>> = BTreeMap::new();
    for device in devices {
        let parent = device.string("parentUUID").and_then(|uuid| parents.iter().find(|(u, _)| *u == uuid));
        let Some(index) = parent.map(|(_, index)| *index).or_else(|| device.gpu_index()) else {
            draft.note(format!("{node}: device `{}` names no GPU and is left out", device.name));
            continue;
        };
        gpus.entry(index).or_default().push(device);
    }
    for (index, devices) in gpus {
        read_gpu(node, index, &devices, draft)?;
    }
    Ok(())
}

fn read_gpu(node: &str, index: u32, devices: &[&Device], draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let (mig, whole): (Vec<&Device>, Vec<&Device>) = devices.iter().partition(|d| d.is_mig());
    let profiles = profiles(&mig)?;
    let known = draft.find_gpu(node, index).map(|g| g.model.clone()).filter(|m| !m.is_empty());
    let product = devices.iter().find_map(|d| d.string("productName"));
    let model = match (product, known, draft.given_model()?) {
        (Some(product), ..) => draft.product(product)?,
        (None, Some(model), _) => model,
        (None, None, Some(model)) => model.id,
        (None, None, None) => {
            let seen: Vec<Seen> = profiles.iter().map(seen).collect();
            let (model, others) = identify(&draft.catalog, &seen)?;
            let id = model.id.clone();
            draft.note(remark(&format!("{node} GPU {index}"), &id, &others));
            id
        }
    };
    let model = draft.model(&model)?;
    let completed: Vec<Profile> = profiles.into_iter().map(|p| complete(p, &model.profiles)).collect();
    let uuid = whole.iter().find_map(|d| d.string("uuid")).or_else(|| mig.iter().find_map(|d| d.string("parentUUID")));
    let address = devices.iter().find_map(|d| d.string("pciBusID"));
    let driver = devices.iter().find_map(|d| d.attribute("driverVersion")?.version.as_deref());
    let memory = whole.iter().find_map(|d| d.memory_mib().transpose()).transpose()?;
    draft.with_gpu(node, index, |gpu| {
        gpu.model.clone_from(&model.id);
        gpu.uuid = uuid.map(str::to_owned).or(gpu.uuid.take());
        gpu.pci_address = address.map(str::to_owned).or(gpu.pci_address.take());
        gpu.driver = driver.map(str::to_owned).or(gpu.driver.take());
        if model.memory_mib_least().is_none() {
            gpu.memory_mib = memory.or(gpu.memory_mib);
        }
        if !mig.is_empty() {
            gpu.mode = Mode::Mig;
        }
        // A profile without placements would hide the ones that the catalog has.
        let placed: Vec<Profile> = completed.into_iter().filter(|p| p.placements.is_some()).collect();
        if !placed.is_empty() {
            gpu.profiles = placed;
        }
    });
    for device in mig.iter().filter(|d| d.string("uuid").is_some()) {
        draft.note(format!(
            "{node} GPU {index}: MIG device `{}` exists, but where it lies is not said; merge `nvidia-smi mig -lgi`",
            device.name
        ));
    }
    Ok(())
}

/// One profile for all devices of a name; each device adds its start.
fn profiles(devices: &[&Device]) -> Result<Vec<Profile>, ImportFault> {
    let mut found: Vec<Profile> = Vec::new();
    for device in devices {
        let name = device.profile().unwrap_or_default();
        let parts = parse_profile_name(name).ok_or_else(|| {
            ImportFault::Malformed(format!("device `{}` has no profile that can be read", device.name))
        })?;
        let cells = device.cells()?;
        if let Some(profile) = found.iter_mut().find(|p| p.name == name) {
            match (cells, &mut profile.placements) {
                (Some((start, size)), Some(own)) if own.size == size => {
                    own.starts.push(start);
                    own.starts.sort_unstable();
                    own.starts.dedup();
                }
                (None, None) => {}
                _ => {
                    let text = format!("devices of profile `{name}` consume different numbers of memory slices");
                    return Err(ImportFault::Malformed(text));
                }
            }
            continue;
        }
        found.push(Profile {
            name: name.to_owned(),
            compute_slices: parts.compute_slices,
            memory_slices: cells.map(|(_, size)| size),
            memory_mib: device.memory_mib()?,
            sm: device.number("multiprocessors")?,
            copy_engines: device.number("copyengines")?,
            decoders: device.number("decoders")?,
            encoders: device.number("encoders")?,
            jpeg: device.number("jpegengines")?,
            ofa: device.number("ofaengines")?,
            media: parts.media,
            gfx: parts.gfx,
            placements: cells.map(|(start, size)| Placements { starts: vec![start], size }),
            status: ProfileStatus::Device,
            ..Profile::default()
        });
    }
    Ok(found)
}

fn seen(profile: &Profile) -> Seen {
    Seen {
        name: Some(profile.name.clone()),
        memory_mib: profile.memory_mib,
        sm: profile.sm,
        copy_engines: profile.copy_engines,
        decoders: profile.decoders,
        encoders: profile.encoders,
        jpeg: profile.jpeg,
        ofa: profile.ofa,
        size: profile.memory_slices,
        starts: profile.placements.as_ref().map(|p| p.starts.clone()).unwrap_or_default(),
        ..Seen::default()
    }
}

/// Ids, maxima and compute instances are not in a ResourceSlice; the catalog has them.
fn complete(profile: Profile, known: &[Profile]) -> Profile {
    let Some(own) = known.iter().find(|p| p.name == profile.name) else { return profile };
    Profile {
        id: own.id,
        nvml_id: own.nvml_id,
        max_instances: own.max_instances,
        min_driver: own.min_driver,
        compute_instances: own.compute_instances.clone(),
        ..profile
    }
}
