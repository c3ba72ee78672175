//! MIG devices of which tools print the profile and not the place.

use slicewise_core::catalog::{Profile, parse_profile_name};
use slicewise_core::fleet::{ComputeInstance, Gpu, Instance, Mode, Usage};

use super::arrange::{arrange, major, resolve};
use super::draft::{Draft, offered};
use super::{ImportError, ImportFault};

/// One GPU instance that exists somewhere on a GPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Unplaced {
    /// Everything but the start and the usage.
    pub instance: Instance,
    /// Something is known to run in it.
    pub busy: bool,
}

/// Devices by name become GPU instances: `3g.40gb` is one, while `1c.3g.40gb` shares one
/// with its like, as many as have room in its compute slices.
pub(super) fn group<'n>(names: impl IntoIterator<Item = (&'n str, Option<&'n str>)>) -> Vec<Unplaced> {
    let mut groups: Vec<(Unplaced, u16)> = Vec::new();
    for (name, uuid) in names {
        let parts = parse_profile_name(name);
        let compute = parts.and_then(|p| Some((p.compute_instance_slices?, p.compute_slices)));
        let uuid = uuid.map(str::to_owned);
        let id = uuid.as_deref().and_then(instance_id);
        let Some((slices, room)) = compute else {
            let instance = Instance { profile: name.to_owned(), uuid, id, ..Instance::default() };
            groups.push((Unplaced { instance, busy: false }, 0));
            continue;
        };
        let profile = name.split_once("c.").map_or(name, |(_, rest)| rest);
        let part = ComputeInstance { profile: name.to_owned(), ..ComputeInstance::default() };
        let shared = groups.last_mut().filter(|(g, left)| {
            let same = g.instance.profile == profile && !g.instance.compute_instances.is_empty();
            same && *left >= slices && (id.is_none() || g.instance.id == id)
        });
        if let Some((group, left)) = shared {
            group.instance.compute_instances.push(part);
            *left -= slices;
        } else {
            let compute_instances = vec![part];
            let instance = Instance { profile: profile.to_owned(), id, compute_instances, ..Instance::default() };
            groups.push((Unplaced { instance, busy: false }, room.saturating_sub(slices)));
        }
    }
    groups.into_iter().map(|(group, _)| group).collect()
}

/// Older drivers write `MIG-GPU-<uuid>/<GPU instance>/<compute instance>`.
fn instance_id(uuid: &str) -> Option<u32> {
    let mut parts = uuid.strip_prefix("MIG-GPU-")?.split('/');
    parts.nth(1)?.parse().ok()
}

/// Puts instances of which only the profiles are known onto a GPU, at starts of our choice.
///
/// # Errors
/// A profile that the device lacks, or instances that fit in no order.
pub(super) fn place(
    draft: &mut Draft<'_>,
    node: &str,
    index: u32,
    devices: Vec<Unplaced>,
    source: &str,
) -> Result<(), ImportError> {
    let Some(model) = draft.known_model(node, index)? else {
        return Err(ImportFault::ModelNeeded(source.to_owned()).into());
    };
    let gpu = draft.find_gpu(node, index);
    let profiles = offered(gpu, &model);
    let mut wanted: Vec<&Profile> = Vec::new();
    for device in &devices {
        let name = &device.instance.profile;
        wanted.push(
            resolve(&profiles, name, None)
                .ok_or_else(|| ImportFault::ProfileNotOnModel { profile: name.clone(), model: model.id.clone() })?,
        );
    }
    let starts = arrange(&model, major(gpu.and_then(|g| g.driver.as_deref())), &wanted)?;
    let usage = draft.usage();
    let mut instances: Vec<Instance> = Vec::new();
    for ((device, profile), start) in devices.into_iter().zip(wanted).zip(starts) {
        let usage = if device.busy { Usage::Busy } else { usage };
        let mut instance = Instance { profile: profile.name.clone(), start, usage, ..device.instance };
        for compute in &mut instance.compute_instances {
            compute.usage = usage;
        }
        instances.push(instance);
    }
    instances.sort_by_key(|i| i.start);
    if !instances.is_empty() {
        draft.note(format!(
            "{node} GPU {index}: {source} does not tell where the {} instances lie; legal starts were chosen, \
             merge `nvidia-smi mig -lgi` for the true ones",
            instances.len()
        ));
    }
    draft.with_gpu(node, index, |gpu: &mut Gpu| {
        gpu.mode = Mode::Mig;
        gpu.instances = instances;
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::group;

    #[test]
    fn compute_instances_share_a_gpu_instance() {
        let names = ["1c.3g.20gb", "2c.3g.20gb", "1c.3g.20gb", "3g.20gb"];
        let groups = group(names.map(|n| (n, None)));
        let sizes: Vec<usize> = groups.iter().map(|g| g.instance.compute_instances.len()).collect();
        assert_eq!(sizes, [2, 1, 0]);
        let old = group([("1g.5gb", Some("MIG-GPU-0/7/0"))]);
        assert_eq!(old[0].instance.id, Some(7));
    }
}
