//! The text listings of `nvidia-smi`, taken together: devices first, then what they
//! offer, then what exists on them.

use slicewise_core::catalog::{Model, Profile};
use slicewise_core::fleet::{ComputeInstance, Instance, Mode};

use super::arrange::resolve;
use super::devices::{group, place};
use super::draft::{Draft, offered};
use super::identify::Seen;
use super::listing::{device_mode, hidden, model_for, offer, profiles};
use super::transcript::{self, ComputeRow, DeviceRow, InstanceRow, Transcript};
use super::{ImportError, ImportFault, Kind, Source, topo};

/// Reads every listing in the files; the kind says which one must be there.
///
/// # Errors
/// See [`super::import`].
pub(super) fn import(kind: Kind, files: &[Source<'_>], draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let mut read = Vec::new();
    for file in files {
        read.push((file.name, transcript::read(file.name, file.text)?));
    }
    if !read.iter().any(|(_, t)| has(t, kind)) {
        return Err(missing(kind, &read));
    }
    let node = draft.node_name();
    let listed = all(&read, |t| t.instances.as_ref());
    for (file, found) in &read {
        let rows = found.devices.as_deref().unwrap_or_default();
        devices(file, rows, &listed, &node, draft)?;
    }
    let placements = all(&read, |t| t.placements.as_ref());
    for (file, found) in &read {
        for rows in by_gpu(found.profiles.as_deref().unwrap_or_default(), |r| r.gpu) {
            profiles(file, &rows, &placements, &node, draft)?;
        }
    }
    for (file, found) in &read {
        for rows in by_gpu(found.placements.as_deref().unwrap_or_default(), |r| r.gpu) {
            offer(file, &rows, &node, draft)?;
        }
    }
    for (file, found) in &read {
        for rows in by_gpu(found.instances.as_deref().unwrap_or_default(), |r| r.gpu) {
            instances(file, &rows, &node, draft)?;
        }
    }
    for (file, found) in &read {
        computes(file, found.computes.as_deref().unwrap_or_default(), &node, draft)?;
        if let Some(lines) = &found.topo {
            topo::apply(file, lines, &node, draft)?;
        }
        if !found.failures.is_empty() {
            draft.note(format!("{file}: a command failed there: {}", found.failures.join("; ")));
        }
    }
    hidden(&all(&read, |t| t.profiles.as_ref()), &node, draft);
    Ok(())
}

fn all<'r, T>(read: &'r [(&str, Transcript<'_>)], rows: fn(&'r Transcript<'_>) -> Option<&'r Vec<T>>) -> Vec<&'r T> {
    read.iter().filter_map(|(_, t)| rows(t)).flatten().collect()
}

/// Rows of each GPU, in the order in which GPUs appear.
fn by_gpu<T>(rows: &[T], gpu: fn(&T) -> u32) -> Vec<Vec<&T>> {
    let mut groups: Vec<Vec<&T>> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|g| g.first().is_some_and(|first| gpu(first) == gpu(row))) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

fn has(found: &Transcript<'_>, kind: Kind) -> bool {
    match kind {
        Kind::SmiL => found.devices.is_some(),
        Kind::MigLgip => found.profiles.is_some(),
        Kind::MigLgipp => found.placements.is_some(),
        Kind::MigLgi => found.instances.is_some(),
        Kind::MigLci => found.computes.is_some(),
        Kind::Topo => found.topo.is_some(),
        _ => false,
    }
}

fn missing(kind: Kind, read: &[(&str, Transcript<'_>)]) -> ImportError {
    let command = match kind {
        Kind::MigLgip => "nvidia-smi mig -lgip",
        Kind::MigLgipp => "nvidia-smi mig -lgipp",
        Kind::MigLgi => "nvidia-smi mig -lgi",
        Kind::MigLci => "nvidia-smi mig -lci",
        Kind::Topo => "nvidia-smi topo -m",
        _ => "nvidia-smi -L",
    };
    let found = read.iter().map(|(_, t)| t.described()).collect::<Vec<_>>().join("; ");
    let hint = if found.contains("amd-smi") {
        "AMD partitions are not read yet".to_owned()
    } else if found.contains("plain `nvidia-smi`") {
        "run `nvidia-smi -L` for the devices and `nvidia-smi mig -lgi` for where they lie".to_owned()
    } else if found.contains("-q -x") {
        "import it as `smi-xml`".to_owned()
    } else {
        format!("run `{command}`")
    };
    let fault = ImportFault::ListingMissing {
        wanted: format!("`{command}`"),
        found: if found.is_empty() { "no text at all".to_owned() } else { found },
        hint,
    };
    let error = ImportError::new(fault);
    match read {
        [(file, _)] => error.at(file, None),
        _ => error,
    }
}

/// `-L`: products, UUIDs and MIG devices without their places.
fn devices(
    file: &str,
    rows: &[DeviceRow],
    listed: &[&InstanceRow],
    node: &str,
    draft: &mut Draft<'_>,
) -> Result<(), ImportError> {
    let mut rows = rows.iter().peekable();
    while let Some(row) = rows.next() {
        let Some(index) = row.gpu else { continue };
        let model = draft.product(&row.name).map_err(|e| e.at(file, Some(row.line)))?;
        let has = draft.find_gpu(node, index).map(|g| g.model.clone()).filter(|m| !m.is_empty());
        if let Some(has) = has
            && draft.model(&has).is_ok_and(|m| m.id != model)
        {
            let text = format!("{node} GPU {index} is a `{has}` in the state and a `{model}` in the listing");
            return Err(ImportError::new(ImportFault::Contradiction(text)).at(file, Some(row.line)));
        }
        draft.with_gpu(node, index, |gpu| {
            gpu.model = model;
            gpu.uuid = row.uuid.clone().or(gpu.uuid.take());
        });
        let mut parts = Vec::new();
        while let Some(part) = rows.next_if(|r| r.gpu.is_none()) {
            parts.push((part.name.as_str(), part.uuid.as_deref()));
        }
        if parts.is_empty() {
            continue;
        }
        let groups = group(parts);
        let existing = draft.find_gpu(node, index).map_or(0, |g| g.instances.len());
        if listed.iter().any(|r| r.gpu == index) {
            // Their places follow in the `-lgi` of the same files; keep what only `-L` knows.
            let usage = draft.usage();
            draft.with_gpu(node, index, |gpu| {
                gpu.mode = Mode::Mig;
                gpu.instances = groups.into_iter().map(|g| Instance { usage, ..g.instance }).collect();
            });
        } else if existing > 0 {
            let merged: Vec<Instance> = groups.into_iter().map(|g| g.instance).collect();
            adopt(file, row.line, node, index, &merged, draft)?;
        } else {
            place(draft, node, index, groups, "`nvidia-smi -L`").map_err(|e| e.at(file, Some(row.line)))?;
        }
    }
    Ok(())
}

/// Gives instances of the state the UUIDs of a later `-L`.
fn adopt(
    file: &str,
    line: usize,
    node: &str,
    index: u32,
    found: &[Instance],
    draft: &mut Draft<'_>,
) -> Result<(), ImportError> {
    let mut names: Vec<&str> = found.iter().map(|i| i.profile.as_str()).collect();
    names.sort_unstable();
    let (same, open) = draft.with_gpu(node, index, |gpu| {
        let mut own: Vec<&str> = gpu.instances.iter().map(|i| i.profile.as_str()).collect();
        own.sort_unstable();
        let same = own == names;
        let open = if same { carry(&mut gpu.instances, found) } else { 0 };
        (same, open)
    });
    if !same {
        let text =
            format!("the MIG devices of {node} GPU {index} are others than in the state; import `nvidia-smi mig -lgi`");
        return Err(ImportError::new(ImportFault::Contradiction(text)).at(file, Some(line)));
    }
    if open > 0 {
        draft.note(format!(
            "{node} GPU {index}: {open} UUIDs belong to instances of equal profile and are left out; \
             `nvidia-smi -q -x` tells which is which"
        ));
    }
    Ok(())
}

/// Copies what is known of instances to their new descriptions: by id, or where only one
/// of its profile is there. Returns how many UUIDs found no place.
pub(super) fn carry(instances: &mut [Instance], known: &[Instance]) -> usize {
    let number = |list: &[Instance], profile: &str| list.iter().filter(|i| i.profile == profile).count();
    let single: Vec<bool> = instances.iter().map(|i| number(instances, &i.profile) == 1).collect();
    let mut used = 0;
    for (instance, single) in instances.iter_mut().zip(single) {
        let by_id = known.iter().find(|k| k.id.is_some() && k.id == instance.id && k.profile == instance.profile);
        let alone = || {
            let other = known.iter().find(|k| k.profile == instance.profile)?;
            let contradicted = other.id.is_some() && instance.id.is_some() && other.id != instance.id;
            (single && number(known, &instance.profile) == 1 && !contradicted).then_some(other)
        };
        let Some(other) = by_id.or_else(alone) else { continue };
        used += usize::from(other.uuid.is_some());
        instance.uuid = instance.uuid.take().or_else(|| other.uuid.clone());
        instance.name = instance.name.take().or_else(|| other.name.clone());
        instance.id = instance.id.or(other.id);
        instance.pinned |= other.pinned;
        if instance.compute_instances.is_empty() {
            instance.compute_instances = other.compute_instances.clone();
        }
    }
    known.iter().filter(|k| k.uuid.is_some()).count().saturating_sub(used)
}

/// `-lgi`: the instances of a GPU, which replace those of the state.
fn instances(file: &str, rows: &[&InstanceRow], node: &str, draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let Some(first) = rows.first() else { return Ok(()) };
    let seen: Vec<Seen> = rows
        .iter()
        .map(|r| Seen {
            name: Some(r.name.clone()),
            id: Some(r.profile_id),
            size: Some(r.size),
            starts: vec![r.start],
            ..Seen::default()
        })
        .collect();
    let model = model_for(node, first.gpu, &seen, draft).map_err(|e| e.at(file, Some(first.line)))?;
    let known = offered(draft.find_gpu(node, first.gpu), &model);
    let usage = draft.usage();
    let mut instances = Vec::new();
    for row in rows {
        let profile = on_device(row, &known, &model).map_err(|f| ImportError::new(f).at(file, Some(row.line)))?;
        instances.push(Instance { profile, start: row.start, id: Some(row.id), usage, ..Instance::default() });
    }
    instances.sort_by_key(|i| i.start);
    device_mode(node, first.gpu, &model, draft);
    let open = draft.with_gpu(node, first.gpu, |gpu| {
        let open = carry(&mut instances, &gpu.instances);
        gpu.instances = instances;
        open
    });
    if open > 0 {
        draft.note(format!(
            "{node} GPU {}: {open} UUIDs belong to instances of equal profile and are left out; \
             `nvidia-smi -q -x` tells which is which",
            first.gpu
        ));
    }
    Ok(())
}

/// The name of a listed instance's profile on its device, where it may lie there.
fn on_device(row: &InstanceRow, known: &[Profile], model: &Model) -> Result<String, ImportFault> {
    let Some(profile) = resolve(known, &row.name, Some(row.profile_id)) else {
        return Err(ImportFault::ProfileNotOnModel { profile: row.name.clone(), model: model.id.clone() });
    };
    if profile.placements.as_ref().is_some_and(|p| p.size != row.size || !p.starts.contains(&row.start)) {
        return Err(ImportFault::PlacementNotOnModel {
            profile: row.name.clone(),
            start: row.start,
            size: row.size,
            model: model.id.clone(),
        });
    }
    Ok(profile.name.clone())
}

/// `-lci`: compute instances, into the GPU instances that hold them.
fn computes(file: &str, rows: &[ComputeRow], node: &str, draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let mut touched: Vec<(u32, u32)> = Vec::new();
    for row in rows {
        let holder =
            draft.find_gpu(node, row.gpu).and_then(|g| g.instances.iter().find(|i| i.id == Some(row.instance)));
        if holder.is_none() {
            let fault = ImportFault::InstanceUnknown { gpu: row.gpu, instance: row.instance };
            return Err(ImportError::new(fault).at(file, Some(row.line)));
        }
        let fresh = !touched.contains(&(row.gpu, row.instance));
        if fresh {
            touched.push((row.gpu, row.instance));
        }
        with_instance(draft, node, (row.gpu, row.instance), |instance| {
            if fresh {
                instance.compute_instances.clear();
            }
            let usage = instance.usage;
            let part = ComputeInstance { profile: row.name.clone(), start: row.start, id: Some(row.id), usage };
            instance.compute_instances.push(part);
        });
    }
    for &at in &touched {
        with_instance(draft, node, at, |instance| {
            // The one that `-C` makes goes without saying.
            if let [only] = instance.compute_instances.as_slice()
                && only.profile == instance.profile
                && only.start.unwrap_or(0) == 0
                && only.id.unwrap_or(0) == 0
            {
                instance.compute_instances.clear();
            }
        });
    }
    for (gpu, id) in without_computes(&touched, node, draft) {
        draft.note(format!(
            "{node} GPU {gpu}: GPU instance {id} holds no compute instance, so nothing can run in it yet"
        ));
    }
    Ok(())
}

/// GPU instances that a listing of their GPU's compute instances does not mention.
fn without_computes(touched: &[(u32, u32)], node: &str, draft: &Draft<'_>) -> Vec<(u32, u32)> {
    let gpus = draft.find_node(node).map(|n| n.gpus.as_slice()).unwrap_or_default();
    let ids = gpus.iter().flat_map(|g| g.instances.iter().filter_map(move |i| Some((g.index?, i.id?))));
    let listed = |gpu: u32| touched.iter().any(|(g, _)| *g == gpu);
    ids.filter(|(gpu, id)| listed(*gpu) && !touched.contains(&(*gpu, *id))).collect()
}

fn with_instance(draft: &mut Draft<'_>, node: &str, (gpu, id): (u32, u32), change: impl FnOnce(&mut Instance)) {
    draft.with_gpu(node, gpu, |gpu| {
        if let Some(instance) = gpu.instances.iter_mut().find(|i| i.id == Some(id)) {
            change(instance);
        }
    });
}
