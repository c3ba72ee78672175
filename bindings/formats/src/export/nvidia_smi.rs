//! Steps as `nvidia-smi` commands for a POSIX shell, each with its inverse.

use std::collections::BTreeSet;

use slicewise_core::decision::{Action, Step};
use slicewise_core::fleet::Mode;

/// What to run for one step, and what takes it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Name of the node to run it on.
    pub node: String,
    /// The command.
    pub run: String,
    /// The command that undoes it.
    pub undo: String,
}

/// Commands for the steps that change instances; handing instances over is the host's.
///
/// The order of the steps is kept, since every prefix of them is legal, but between two
/// handovers what is destroyed goes before what is created. GPU instances are created at
/// explicit starts. The driver gives ids only on creation, so commands that need one ask
/// `-lgi` for what lies at the start, and stop where nothing does: `-dgi` without an id
/// would destroy everything.
pub fn nvidia_smi(steps: &[Step]) -> Vec<Command> {
    let own = own_computes(steps);
    let mut order: Vec<(usize, u8, &Step)> =
        segments(steps).into_iter().zip(steps).map(|(segment, step)| (segment, rank(&step.action), step)).collect();
    order.sort_by_key(|(segment, rank, _)| (*segment, *rank));
    order.into_iter().filter_map(|(.., step)| command(step, &own)).collect()
}

/// Runs of steps that are all handovers, or none.
fn segments(steps: &[Step]) -> Vec<usize> {
    let handover = |s: &Step| matches!(s.action, Action::Attach { .. } | Action::Detach { .. });
    let (mut segment, mut last) = (0, None);
    let number = |step| {
        let this = handover(step);
        segment += usize::from(last.replace(this).is_some_and(|last| last != this));
        segment
    };
    steps.iter().map(number).collect()
}

/// GPU instances, by place, whose compute instances have steps of their own.
type Own<'s> = BTreeSet<(&'s str, u32, u16)>;

fn own_computes(steps: &[Step]) -> Own<'_> {
    let place = |step: &'_ Step| match step.action {
        Action::CreateCompute { instance_start, .. } | Action::DestroyCompute { instance_start, .. } => {
            Some((step.gpu, instance_start))
        }
        _ => None,
    };
    steps.iter().filter_map(|step| place(step).map(|(gpu, start)| (step.node.as_str(), gpu, start))).collect()
}

fn rank(action: &Action) -> u8 {
    match action {
        Action::DestroyCompute { .. } | Action::DestroyVgpu { .. } => 0,
        Action::DestroyInstance { .. } => 1,
        Action::SetMode { .. } => 2,
        Action::CreateInstance { .. } => 3,
        Action::CreateCompute { .. } | Action::CreateVgpu { .. } => 4,
        Action::Attach { .. } | Action::Detach { .. } => 5,
    }
}

fn command(step: &Step, own: &Own<'_>) -> Option<Command> {
    let gpu = step.gpu;
    let default = |start: u16| !own.contains(&(step.node.as_str(), gpu, start));
    let (run, undo) = match &step.action {
        Action::SetMode { from, to } => (set_mode(gpu, *from, *to), set_mode(gpu, *to, *from)),
        Action::CreateInstance { profile, profile_id, start, size } => (
            create(gpu, profile, *profile_id, *start, default(*start)),
            destroy(gpu, None, *start, *size, default(*start)),
        ),
        Action::DestroyInstance { profile, profile_id, instance_id, start, size } => (
            destroy(gpu, *instance_id, *start, *size, default(*start)),
            create(gpu, profile, *profile_id, *start, default(*start)),
        ),
        Action::CreateCompute { profile, profile_id, instance_start, start } => (
            create_compute(gpu, profile, *profile_id, *instance_start, *start),
            destroy_compute(gpu, profile, *instance_start, *start),
        ),
        Action::DestroyCompute { profile, profile_id, instance_start, start } => (
            destroy_compute(gpu, profile, *instance_start, *start),
            create_compute(gpu, profile, *profile_id, *instance_start, *start),
        ),
        // The hypervisor makes vGPUs as it starts a machine.
        Action::CreateVgpu { .. } | Action::DestroyVgpu { .. } | Action::Attach { .. } | Action::Detach { .. } => {
            return None;
        }
    };
    Some(Command { node: step.node.clone(), run, undo })
}

/// Of the modes, the driver knows only whether MIG is on; the rest is said for the host.
fn set_mode(gpu: u32, from: Mode, to: Mode) -> String {
    let is_mig = |mode: Mode| matches!(mode, Mode::Mig | Mode::VgpuMig);
    let note = format!("# GPU {gpu}: from mode {} to {}", from.name(), to.name());
    match (is_mig(from), is_mig(to)) {
        (false, true) => format!("nvidia-smi -i {gpu} -mig 1 {note}"),
        (true, false) => format!("nvidia-smi -i {gpu} -mig 0 {note}"),
        _ => format!("{note}; no setting of the driver"),
    }
}

fn create(gpu: u32, profile: &str, id: Option<u32>, start: u16, with_default: bool) -> String {
    let what = id.map_or_else(|| quoted(&format!("{profile}:{start}")), |id| format!("{id}:{start}"));
    let default = if with_default { " -C" } else { "" };
    format!("nvidia-smi mig -i {gpu} -cgi {what}{default}")
}

fn destroy(gpu: u32, id: Option<u32>, start: u16, size: u16, with_default: bool) -> String {
    let both = |id: &str| {
        let computes = if with_default { format!("nvidia-smi mig -i {gpu} -dci -gi {id} && ") } else { String::new() };
        format!("{computes}nvidia-smi mig -i {gpu} -dgi -gi {id}")
    };
    match id {
        Some(id) => both(&id.to_string()),
        None => format!("{} && {}", find_instance(gpu, &format!("== \"{start}:{size}\"")), both("\"$gi\"")),
    }
}

/// Asks for the id of the instance whose `Start:Size` column meets the condition.
fn find_instance(gpu: u32, condition: &str) -> String {
    format!(
        "gi=$(nvidia-smi mig -i {gpu} -lgi | awk '$3 == \"MIG\" && $7 {condition} {{print $6}}') && test -n \"$gi\""
    )
}

fn create_compute(gpu: u32, profile: &str, id: Option<u32>, instance_start: u16, start: u16) -> String {
    let find = find_instance(gpu, &format!("~ /^{instance_start}:/"));
    let what = id.map_or_else(|| quoted(profile), |id| id.to_string());
    format!("{find} && nvidia-smi mig -i {gpu} -gi \"$gi\" -cci {what} # asked at start {start}; the driver chooses")
}

fn destroy_compute(gpu: u32, profile: &str, instance_start: u16, start: u16) -> String {
    let find = find_instance(gpu, &format!("~ /^{instance_start}:/"));
    let name = profile.replace(|c: char| !c.is_ascii_alphanumeric() && !".+-".contains(c), "");
    // Older drivers print no start: then the first of the profile is taken.
    let awk = format!("$4 == \"MIG\" && $5 == \"{name}\" && ($8 == \"|\" || $8 ~ /^{start}:/) {{print $7; exit}}");
    format!(
        "{find} && ci=$(nvidia-smi mig -i {gpu} -gi \"$gi\" -lci | awk '{awk}') && test -n \"$ci\" && \
         nvidia-smi mig -i {gpu} -dci -gi \"$gi\" -ci \"$ci\""
    )
}

/// Names come from documents, so a shell must not see more in them than a name.
fn quoted(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || ".:+-_".contains(c)) && !text.starts_with('-');
    match plain && !text.is_empty() {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(gpu: u32, action: Action) -> Step {
        Step { node: "n".into(), gpu, action, disturbs: Vec::new() }
    }
    fn create_at(start: u16) -> Action {
        Action::CreateInstance { profile: "3g.40gb".into(), profile_id: Some(9), start, size: 4 }
    }
    fn destroy_at(start: u16, instance_id: Option<u32>) -> Action {
        Action::DestroyInstance { profile: "1g.10gb".into(), profile_id: Some(19), instance_id, start, size: 1 }
    }
    fn hand(attach: bool) -> Action {
        match attach {
            true => Action::Attach { lease: "l".into(), member: 0 },
            false => Action::Detach { lease: "l".into(), member: 0 },
        }
    }

    #[test]
    fn destroys_come_first_and_undo_is_beside_each() {
        let commands = nvidia_smi(&[step(0, create_at(4)), step(0, destroy_at(5, Some(8)))]);
        assert_eq!(commands[0].run, "nvidia-smi mig -i 0 -dci -gi 8 && nvidia-smi mig -i 0 -dgi -gi 8");
        assert_eq!(commands[0].undo, "nvidia-smi mig -i 0 -cgi 19:5 -C");
        assert_eq!(commands[1].run, "nvidia-smi mig -i 0 -cgi 9:4 -C");
        assert_eq!(
            commands[1].undo,
            "gi=$(nvidia-smi mig -i 0 -lgi | awk '$3 == \"MIG\" && $7 == \"4:4\" {print $6}') && test -n \"$gi\" && \
             nvidia-smi mig -i 0 -dci -gi \"$gi\" && nvidia-smi mig -i 0 -dgi -gi \"$gi\""
        );
    }

    #[test]
    fn a_move_creates_before_it_destroys() {
        let steps = [create_at(4), hand(true), hand(false), destroy_at(0, None)].map(|a| step(1, a));
        let commands = nvidia_smi(&steps);
        assert!(commands[0].run.contains("-cgi 9:4"), "{commands:?}");
        assert!(commands[1].run.starts_with("gi=$("), "{commands:?}");
    }

    #[test]
    fn compute_instances_take_the_place_of_the_default() {
        let compute =
            Action::CreateCompute { profile: "1c.3g.40gb".into(), profile_id: None, instance_start: 4, start: 2 };
        let commands = nvidia_smi(&[step(0, create_at(4)), step(0, compute)]);
        assert_eq!(commands[0].run, "nvidia-smi mig -i 0 -cgi 9:4");
        assert!(commands[0].undo.ends_with("test -n \"$gi\" && nvidia-smi mig -i 0 -dgi -gi \"$gi\""));
        assert!(commands[1].run.contains("-gi \"$gi\" -cci 1c.3g.40gb # asked at start 2"));
        assert!(commands[1].undo.contains("$8 ~ /^2:/"));
    }

    #[test]
    fn modes_change_between_what_goes_and_what_comes() {
        let set = |from, to| Action::SetMode { from, to };
        let steps = [set(Mode::Mps, Mode::Mig), create_at(4)].map(|a| step(2, a));
        let commands = nvidia_smi(&[steps[1].clone(), steps[0].clone()]);
        assert_eq!(commands[0].run, "nvidia-smi -i 2 -mig 1 # GPU 2: from mode mps to mig");
        assert_eq!(commands[0].undo, "nvidia-smi -i 2 -mig 0 # GPU 2: from mode mig to mps");
        assert!(commands[1].run.contains("-cgi 9:4"), "{commands:?}");
        let commands = nvidia_smi(&[step(0, set(Mode::Whole, Mode::Mps))]);
        assert_eq!(commands[0].run, "# GPU 0: from mode whole to mps; no setting of the driver");
    }

    #[test]
    fn names_cannot_run_anything() {
        assert_eq!(quoted("1g.10gb+me:3"), "1g.10gb+me:3");
        assert_eq!(quoted("a; rm -rf '~'"), "'a; rm -rf '\\''~'\\'''");
        assert_eq!(quoted(""), "''");
    }
}
