//! `nvidia-smi -q -x`: the one listing with driver, addresses, memory and processes.

use std::collections::BTreeSet;

use quick_xml::Reader;
use quick_xml::events::Event;
use serde::Deserialize;
use slicewise_core::catalog::{Model, Profile};
use slicewise_core::fleet::{ComputeInstance, Instance, Lease, Mode, Part, Placement};

use super::devices::{Unplaced, place};
use super::draft::{Draft, offered};
use super::smi::carry;
use super::{ImportError, ImportFault, Source};

#[derive(Deserialize)]
struct Log {
    driver_version: Option<String>,
    attached_gpus: Option<usize>,
    #[serde(default)]
    gpu: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    #[serde(rename = "@id")]
    id: Option<String>,
    product_name: Option<String>,
    #[serde(default)]
    mig_mode: MigMode,
    #[serde(default)]
    mig_devices: MigDevices,
    uuid: Option<String>,
    minor_number: Option<String>,
    #[serde(default)]
    pci: Pci,
    #[serde(default)]
    fb_memory_usage: Memory,
    #[serde(default)]
    processes: Processes,
}

#[derive(Default, Deserialize)]
struct MigMode {
    current_mig: Option<String>,
}

/// Holds the word `None` where MIG is off.
#[derive(Default, Deserialize)]
struct MigDevices {
    #[serde(default)]
    mig_device: Vec<MigDevice>,
}

#[derive(Deserialize)]
struct MigDevice {
    gpu_instance_id: u32,
    compute_instance_id: Option<u32>,
    uuid: Option<String>,
    #[serde(default)]
    device_attributes: Attributes,
    #[serde(default)]
    fb_memory_usage: Memory,
}

#[derive(Default, Deserialize)]
struct Attributes {
    #[serde(default)]
    shared: Shared,
}

#[derive(Default, Deserialize)]
struct Shared {
    multiprocessor_count: Option<u16>,
    copy_engine_count: Option<u16>,
    encoder_count: Option<u16>,
    decoder_count: Option<u16>,
    ofa_count: Option<u16>,
    jpg_count: Option<u16>,
}

#[derive(Default, Deserialize)]
struct Pci {
    pci_device_id: Option<String>,
    pci_sub_system_id: Option<String>,
    pci_bus_id: Option<String>,
}

#[derive(Default, Deserialize)]
struct Memory {
    total: Option<String>,
    reserved: Option<String>,
}

#[derive(Default, Deserialize)]
struct Processes {
    #[serde(default)]
    process_info: Vec<Process>,
}

#[derive(Deserialize)]
struct Process {
    gpu_instance_id: Option<String>,
}

/// Reads the XML of one node.
///
/// # Errors
/// See [`super::import`].
pub(super) fn import(files: &[Source<'_>], draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let node = draft.node_name();
    for file in files {
        check(file)?;
        let log: Log = quick_xml::de::from_str(file.text)
            .map_err(|e| ImportError::new(ImportFault::Malformed(e.to_string())).at(file.name, None))?;
        let complete = log.attached_gpus.is_none_or(|n| n == log.gpu.len());
        for (position, device) in (0..).zip(&log.gpu) {
            let minor = device.minor_number.as_deref().and_then(|n| n.parse().ok());
            let index = if complete { position } else { minor.unwrap_or(position) };
            read_device(device, log.driver_version.as_deref(), &node, index, draft)
                .map_err(|e| e.at(file.name, line_of(file.text, device)))?;
        }
    }
    Ok(())
}

/// Checks that the text is well-formed, and what it is, since the reader of values has no lines.
fn check(file: &Source<'_>) -> Result<(), ImportError> {
    let mut reader = Reader::from_str(file.text);
    let mut root: Option<String> = None;
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                root.get_or_insert_with(|| tag.name().as_ref().to_owned());
            }
            Ok(_) => {}
            Err(error) => {
                let at = usize::try_from(reader.error_position()).unwrap_or(usize::MAX);
                let line = 1 + file.text.bytes().take(at).filter(|b| *b == b'\n').count();
                return Err(ImportError::new(ImportFault::Malformed(error.to_string())).at(file.name, Some(line)));
            }
        }
    }
    let found = match root.as_deref() {
        Some("nvidia_smi_log") => return Ok(()),
        Some(other) => format!("an XML document `{other}`"),
        None => "no XML".to_owned(),
    };
    let fault = ImportFault::ListingMissing {
        wanted: "`nvidia_smi_log`".to_owned(),
        found,
        hint: "run `nvidia-smi -q -x`".to_owned(),
    };
    Err(ImportError::new(fault).at(file.name, None))
}

fn line_of(text: &str, device: &Device) -> Option<usize> {
    let needle = format!("\"{}\"", device.id.as_deref()?);
    text.lines().position(|l| l.contains("<gpu ") && l.contains(&needle)).map(|at| at + 1)
}

fn read_device(
    device: &Device,
    driver: Option<&str>,
    node: &str,
    index: u32,
    draft: &mut Draft<'_>,
) -> Result<(), ImportError> {
    let known = draft.find_gpu(node, index).map(|g| g.model.clone()).filter(|m| !m.is_empty());
    let model = match (model(device, draft), known, device.product_name.as_deref()) {
        (Some(model), ..) | (None, Some(model), _) => model,
        (None, None, Some(product)) => draft.product(product)?,
        (None, None, None) => draft
            .given_model()?
            .map(|m| m.id)
            .ok_or_else(|| ImportFault::ModelNeeded("a GPU without `product_name`".to_owned()))?,
    };
    let mig = device.mig_mode.current_mig.as_deref() == Some("Enabled");
    draft.with_gpu(node, index, |gpu| {
        gpu.model = model;
        gpu.uuid = device.uuid.clone().or(gpu.uuid.take());
        gpu.pci_address = device.pci.pci_bus_id.clone().or(device.id.clone()).or(gpu.pci_address.take());
        gpu.driver = driver.map(str::to_owned).or(gpu.driver.take());
        gpu.memory_mib = usable(&device.fb_memory_usage).or(gpu.memory_mib);
        gpu.mode = if mig { Mode::Mig } else { Mode::Whole };
    });
    if mig {
        return instances(device, node, index, draft);
    }
    draft.with_gpu(node, index, |gpu| gpu.instances.clear());
    occupied(device, node, index, draft);
    Ok(())
}

fn model(device: &Device, draft: &Draft<'_>) -> Option<String> {
    let id =
        |text: &Option<String>| text.as_deref().and_then(|t| t.trim_start_matches("0x").get(..4).map(str::to_owned));
    let by_name = device.product_name.as_deref().and_then(|name| draft.catalog.find(name));
    let by_pci =
        || draft.catalog.find_pci(&id(&device.pci.pci_device_id)?, id(&device.pci.pci_sub_system_id).as_deref());
    by_name.or_else(by_pci).map(|m| m.id.clone())
}

/// What is left when the driver has taken its part; older drivers print it so at once.
fn usable(memory: &Memory) -> Option<u32> {
    let total = mib(memory.total.as_deref())?;
    Some(total.saturating_sub(mib(memory.reserved.as_deref()).unwrap_or(0)))
}

fn mib(text: Option<&str>) -> Option<u32> {
    text?.strip_suffix("MiB")?.trim().parse().ok()
}

/// Processes on a GPU outside MIG hold all of it, so that it is not handed out.
fn occupied(device: &Device, node: &str, index: u32, draft: &mut Draft<'_>) {
    let number = device.processes.process_info.len();
    let leased = |l: &Lease| l.placements.iter().any(|p| p.node == node && p.gpu == Some(index));
    if number == 0 || draft.options.idle || draft.state.leases.iter().any(leased) {
        return;
    }
    let name = format!("{node}-gpu-{index}-processes");
    draft.note(format!("{node} GPU {index}: {number} processes run there; lease `{name}` holds it"));
    let place = Placement {
        node: node.to_owned(),
        gpu: Some(index),
        uuid: device.uuid.clone(),
        part: Part::Whole,
        ..Placement::default()
    };
    draft.state.leases.push(Lease { name, placements: vec![place], ..Lease::default() });
}

fn instances(device: &Device, node: &str, index: u32, draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let gpu = draft.find_gpu(node, index);
    let Some(model) = draft.known_model(node, index)? else { return Ok(()) };
    let profiles = offered(gpu, &model);
    let devices = &device.mig_devices.mig_device;
    let ids: BTreeSet<u32> = devices.iter().map(|d| d.gpu_instance_id).collect();
    let mut found = Vec::new();
    for id in ids {
        let parts: Vec<&MigDevice> = devices.iter().filter(|d| d.gpu_instance_id == id).collect();
        found.push(instance(id, &parts, device, &profiles, &model)?);
    }
    let existing = gpu.map(|g| g.instances.clone()).unwrap_or_default();
    let mut merged: Vec<Instance> = existing;
    let ids_known = merged.len() == found.len()
        && found.iter().all(|f| merged.iter().any(|m| m.id == f.instance.id && m.profile == f.instance.profile));
    if !ids_known || merged.is_empty() {
        draft.with_gpu(node, index, |gpu| gpu.instances.clear());
        return place(draft, node, index, found, "`nvidia-smi -q -x`");
    }
    // The state knows where they lie; this listing adds the rest.
    let usages: Vec<_> = found.iter().map(|f| (f.instance.id, f.busy)).collect();
    let known: Vec<Instance> = found.into_iter().map(|f| f.instance).collect();
    carry(&mut merged, &known);
    let idle = draft.usage();
    for instance in &mut merged {
        let busy = usages.iter().any(|(id, busy)| *id == instance.id && *busy);
        instance.usage = if busy { slicewise_core::fleet::Usage::Busy } else { idle };
    }
    draft.with_gpu(node, index, |gpu| gpu.instances = merged);
    Ok(())
}

fn instance(
    id: u32,
    parts: &[&MigDevice],
    device: &Device,
    profiles: &[Profile],
    model: &Model,
) -> Result<Unplaced, ImportFault> {
    let profile = profile_of(parts, profiles)
        .ok_or_else(|| ImportFault::ProfileNotOnModel { profile: described(parts), model: model.id.clone() })?;
    let wanted = id.to_string();
    let busy = device.processes.process_info.iter().any(|p| p.gpu_instance_id.as_deref() == Some(&wanted));
    let uuid = parts.first().and_then(|p| p.uuid.clone()).filter(|_| parts.len() == 1);
    let mut instance = Instance { profile: profile.name.clone(), id: Some(id), uuid, ..Instance::default() };
    let whole =
        parts.len() == 1 && parts.iter().all(|p| sm(p).is_none() || sm(p) == profile.sm || profile.sm.is_none());
    if !whole {
        for part in parts {
            let Some(compute) = profile.compute_instances.iter().find(|c| c.sm.is_some() && c.sm == sm(part)) else {
                return Err(ImportFault::ProfileNotOnModel { profile: described(&[part]), model: model.id.clone() });
            };
            let part =
                ComputeInstance { profile: compute.name.clone(), id: part.compute_instance_id, ..Default::default() };
            instance.compute_instances.push(part);
        }
    }
    Ok(Unplaced { instance, busy })
}

fn sm(part: &MigDevice) -> Option<u16> {
    part.device_attributes.shared.multiprocessor_count
}

/// The profile with these multiprocessors and engines; memory, which drivers count
/// differently, only chooses between those.
fn profile_of<'p>(parts: &[&MigDevice], profiles: &'p [Profile]) -> Option<&'p Profile> {
    let first = parts.first()?;
    let shared = &first.device_attributes.shared;
    let agrees = |shown: Option<u16>, own: Option<u16>| shown.is_none() || own.is_none() || shown == own;
    let engines = |p: &&Profile| {
        agrees(shared.copy_engine_count, p.copy_engines)
            && agrees(shared.decoder_count, p.decoders)
            && agrees(shared.encoder_count, p.encoders)
            && agrees(shared.jpg_count, p.jpeg)
            && agrees(shared.ofa_count, p.ofa)
    };
    let sum: u32 = parts.iter().filter_map(|p| sm(p)).map(u32::from).sum();
    let memory = mib(first.fb_memory_usage.total.as_deref());
    let apart = |p: &&Profile| match (memory, p.memory_mib_least()) {
        (Some(shown), Some(own)) => shown.abs_diff(own),
        _ => u32::MAX,
    };
    let near =
        |p: &&Profile| p.memory_mib_least().zip(memory).is_none_or(|(own, shown)| shown.abs_diff(own) <= own / 8);
    let fits = |exact: bool| {
        profiles
            .iter()
            .filter(|p| match (p.sm, exact) {
                (Some(own), true) => parts.len() == 1 && (sum == 0 || sum == u32::from(own)),
                (Some(own), false) => sum <= u32::from(own),
                (None, _) => !exact,
            })
            .filter(engines)
            .filter(near)
            .min_by_key(apart)
    };
    fits(true).or_else(|| fits(false))
}

fn described(parts: &[&MigDevice]) -> String {
    let memory = parts.first().and_then(|p| p.fb_memory_usage.total.clone()).unwrap_or_default();
    let sm: u32 = parts.iter().filter_map(|p| sm(p)).map(u32::from).sum();
    format!("{sm} SM, {memory}")
}
