//! GPUs that would serve a refused request in another mode: a mode is changed only on an
//! empty GPU, so what is on it has to leave first.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::explain::Trials;
use crate::decision::Remedy;
use crate::error::InputError;
use crate::fleet::{Gpu, Mode, State, Usage};
use crate::ids::{GpuId, SpecId};
use crate::ledger::{Ledger, Spec};
use crate::workload::{Resolver, Workload};

/// GPUs of one kind that are compared for the one with the fewest leases on it.
const GPUS_COMPARED: usize = 64;

/// For each kind of GPU, the change of one GPU's mode that makes the request fit, with the
/// fewest leases that have to leave. Each change is tried on a copy of the fleet.
pub(super) fn changes(trials: &mut Trials<'_>, workload: &Workload) -> Result<Vec<Remedy>, InputError> {
    let ledger = trials.ledger;
    let mut remedies = Vec::new();
    let specs: Vec<SpecId> = ledger.specs().ids().collect();
    for spec in specs {
        // What it offers in its own mode is a matter of room, not of the mode.
        if offers(ledger, workload, &ledger.specs()[spec]) {
            continue;
        }
        let Some((gpu, leave)) = emptiest(ledger, spec) else { continue };
        for mode in Mode::ALL.into_iter().filter(|mode| *mode != ledger.specs()[spec].mode()) {
            let Some(trial) = changed(ledger, workload, gpu, mode, &leave) else { continue };
            if trials.fits(&trial, workload)? {
                let record = &ledger.gpus()[gpu];
                remedies.push(Remedy::ChangeMode {
                    node: ledger.nodes()[record.node].name.clone(),
                    gpu: record.index,
                    mode: mode.name().to_string(),
                    leave: leave.iter().cloned().collect(),
                });
                break;
            }
        }
    }
    Ok(remedies)
}

/// The GPU of a kind with the fewest leases on it, none pinned and nothing in use that no
/// lease has; with the names of the leases.
fn emptiest(ledger: &Ledger, spec: SpecId) -> Option<(GpuId, BTreeSet<String>)> {
    let classes = ledger.index().of_spec(spec);
    let firsts = classes.flat_map(|(_, class)| class.members.iter().copied()).take(GPUS_COMPARED);
    let movable = firsts.filter_map(|gpu| {
        let leases: Vec<_> = ledger.leases_on(gpu).collect();
        let parts = leases.iter().flat_map(|l| &l.parts).filter(|part| part.is_on(gpu)).count();
        let owned = ledger.used_parts(gpu) == parts && leases.iter().all(|l| !l.pinned);
        owned.then(|| (gpu, leases.iter().map(|l| l.name.clone()).collect::<BTreeSet<_>>()))
    });
    movable.min_by_key(|(gpu, leases)| (leases.len(), *gpu))
}

/// The fleet with one GPU in another mode and these leases gone; `None` where the GPU
/// cannot be in the mode, or would offer nothing that is asked.
fn changed(ledger: &Ledger, workload: &Workload, gpu: GpuId, mode: Mode, leave: &BTreeSet<String>) -> Option<Ledger> {
    let record = &ledger.gpus()[gpu];
    // A copy of the fleet is dear, so what the GPU would offer is looked at first.
    let kind = Spec::of(ledger.catalog(), &Gpu { mode, ..ledger.specs()[record.spec].document() }).ok()?;
    if !offers(ledger, workload, &kind) {
        return None;
    }
    let mut state: State = ledger.snapshot();
    state.leases.retain(|lease| !leave.contains(&lease.name));
    let node = ledger.nodes()[record.node].name.as_str();
    let node = state.nodes.iter_mut().find(|n| n.name == node)?;
    let found = node.gpus.iter_mut().zip(0..).find(|(g, at)| g.index.unwrap_or(*at) == record.index);
    let document: &mut Gpu = found?.0;
    if document.instances.iter().any(|i| i.usage == Usage::Busy) {
        return None;
    }
    document.instances.clear();
    document.mode = mode;
    Ledger::new(ledger.catalog().clone(), ledger.policy().clone(), &state).ok()
}

fn offers(ledger: &Ledger, workload: &Workload, kind: &Spec) -> bool {
    let resolver = Resolver::new(ledger);
    workload.alternatives().iter().any(|ask| resolver.device_ask(kind, ask).is_some())
}
