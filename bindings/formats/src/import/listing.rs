//! `mig -lgip` and `mig -lgipp`: what a device itself says it offers.

use slicewise_core::catalog::{Model, Placements, Profile, ProfileStatus, parse_profile_name};
use slicewise_core::fleet::Mode;

use super::draft::{Draft, offered};
use super::identify::{Seen, identify, remark};
use super::transcript::{PlacementRow, ProfileRow};
use super::{ImportError, ImportFault};

/// The model of a GPU: known, else guessed from what was seen of its profiles.
pub(super) fn model_for(node: &str, gpu: u32, seen: &[Seen], draft: &mut Draft<'_>) -> Result<Model, ImportError> {
    if let Some(model) = draft.known_model(node, gpu)? {
        return Ok(model);
    }
    let (model, others) = identify(&draft.catalog, seen)?;
    let model = model.clone();
    draft.note(remark(&format!("{node} GPU {gpu}"), &model.id, &others));
    Ok(model)
}

pub(super) fn device_mode(node: &str, gpu: u32, model: &Model, draft: &mut Draft<'_>) {
    draft.with_gpu(node, gpu, |gpu| {
        gpu.mode = Mode::Mig;
        if gpu.model.is_empty() {
            gpu.model.clone_from(&model.id);
        }
    });
}

/// `-lgip`: the device's own profiles.
pub(super) fn profiles(
    file: &str,
    rows: &[&ProfileRow],
    placements: &[&PlacementRow],
    node: &str,
    draft: &mut Draft<'_>,
) -> Result<(), ImportError> {
    let Some(first) = rows.first() else { return Ok(()) };
    let place = |line: usize| move |e: ImportError| e.at(file, Some(line));
    let seen: Vec<Seen> = rows.iter().map(|r| seen_profile(r)).collect();
    let model = model_for(node, first.gpu, &seen, draft).map_err(place(first.line))?;
    let mut profiles = Vec::new();
    for row in rows {
        let listed = placements.iter().find(|p| p.gpu == row.gpu && p.id == row.id);
        let profile =
            device_profile(row, listed.copied(), &model).map_err(ImportError::new).map_err(place(row.line))?;
        profiles.push(profile);
    }
    device_mode(node, first.gpu, &model, draft);
    draft.with_gpu(node, first.gpu, |gpu| gpu.profiles = profiles);
    Ok(())
}

fn seen_profile(row: &ProfileRow) -> Seen {
    Seen {
        name: Some(row.name.clone()),
        id: Some(row.id),
        memory_gib: Some(row.memory_gib.clone()),
        sm: row.count("SM"),
        copy_engines: row.count("CE"),
        decoders: row.count("DEC"),
        encoders: row.count("ENC"),
        jpeg: row.count("JPEG"),
        ofa: row.count("OFA"),
        ..Seen::default()
    }
}

fn device_profile(row: &ProfileRow, listed: Option<&PlacementRow>, model: &Model) -> Result<Profile, ImportFault> {
    let parts = parse_profile_name(&row.name)
        .ok_or_else(|| ImportFault::Malformed(format!("`{}` is not the name of a profile", row.name)))?;
    let shape = (parts.compute_slices, parts.media, parts.gfx);
    let own = model.profiles.iter().find(|p| {
        let id = p.id.map_or(p.name == row.name, |id| id == row.id);
        id && (p.compute_slices, p.media, p.gfx) == shape
    });
    let placements = listed
        .map(|l| Placements { starts: l.starts.clone(), size: l.size })
        .or_else(|| own.and_then(|p| p.placements.clone()));
    let mut compute_instances = own.map(|p| p.compute_instances.clone()).unwrap_or_default();
    for compute in &mut compute_instances {
        // Compute instances carry the name that this driver gives the profile.
        let prefix = compute.name.split_once("c.").map(|(slices, _)| format!("{slices}c."));
        compute.name = format!("{}{}", prefix.unwrap_or_default(), row.name);
    }
    Ok(Profile {
        name: row.name.clone(),
        id: Some(row.id),
        nvml_id: own.and_then(|p| p.nvml_id),
        compute_slices: parts.compute_slices,
        memory_slices: placements.as_ref().map(|p| p.size).or_else(|| own.and_then(|p| p.memory_slices)),
        memory_gib: Some(row.memory_gib.clone()),
        sm: row.count("SM"),
        copy_engines: row.count("CE"),
        decoders: row.count("DEC"),
        encoders: row.count("ENC"),
        jpeg: row.count("JPEG"),
        ofa: row.count("OFA"),
        media: parts.media,
        gfx: parts.gfx,
        max_instances: Some(row.total),
        placements,
        min_driver: own.and_then(|p| p.min_driver),
        status: ProfileStatus::Device,
        compute_instances,
        ..Profile::default()
    })
}

/// `-lgipp` for devices whose profiles are known from elsewhere, else from the model.
pub(super) fn offer(file: &str, rows: &[&PlacementRow], node: &str, draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let Some(first) = rows.first() else { return Ok(()) };
    let seen: Vec<Seen> = rows
        .iter()
        .map(|r| Seen {
            id: Some(r.id),
            size: Some(r.size),
            starts: r.starts.clone(),
            all_starts: true,
            ..Seen::default()
        })
        .collect();
    let model = model_for(node, first.gpu, &seen, draft).map_err(|e| e.at(file, Some(first.line)))?;
    let known = offered(draft.find_gpu(node, first.gpu), &model);
    let mut profiles = Vec::new();
    for row in rows {
        let Some(profile) = known.iter().find(|p| p.id == Some(row.id)) else {
            draft.note(format!(
                "{file}:{}: profile ID {} has no name here and is left out; import `-lgip` too",
                row.line, row.id
            ));
            continue;
        };
        profiles.push(Profile {
            memory_slices: Some(row.size),
            placements: Some(Placements { starts: row.starts.clone(), size: row.size }),
            status: ProfileStatus::Device,
            ..profile.clone()
        });
    }
    device_mode(node, first.gpu, &model, draft);
    draft.with_gpu(node, first.gpu, |gpu| gpu.profiles = profiles);
    Ok(())
}

/// `-lgip` counts instances that it does not name.
pub(super) fn hidden(rows: &[&ProfileRow], node: &str, draft: &mut Draft<'_>) {
    let mut gpus: Vec<u32> = rows.iter().filter(|r| r.free < r.total).map(|r| r.gpu).collect();
    gpus.dedup();
    for index in gpus {
        let known = draft.find_gpu(node, index).is_some_and(|g| !g.instances.is_empty());
        if !known {
            draft.note(format!(
                "{node} GPU {index}: instances exist there (fewer are free than there can be); \
                 merge `nvidia-smi mig -lgi` to see them"
            ));
        }
    }
}
