//! From the engine's form back to the document.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::{LeaseRecord, Ledger, PartRecord, Spec};
use crate::fleet::{ComputeInstance, Gpu, Instance, Lease, Node, Part, Placement, State, Usage};
use crate::ids::{GpuId, NodeId, ProfileId, SpecId};
use crate::space::{Entry, Grid, Hold, SpaceState, Take};

impl Ledger {
    /// The state as a document; reading it gives the same state.
    pub fn snapshot(&self) -> State {
        State {
            version: self.version,
            models: self.models.clone(),
            boards: self.boards.clone(),
            racks: self.racks.iter().map(|(_, rack)| rack.document.clone()).collect(),
            nodes: self.nodes.ids().map(|id| self.snapshot_node(id)).collect(),
            leases: self.leases.values().map(|lease| self.snapshot_lease(lease)).collect(),
        }
    }

    fn snapshot_node(&self, id: NodeId) -> Node {
        let record = &self.nodes[id];
        let gpus = record.gpus().enumerate().map(|(position, gpu)| self.snapshot_gpu(position, gpu)).collect();
        Node { gpus, labels: record.labels.clone(), cordoned: record.cordoned, ..(*record.document).clone() }
    }

    fn snapshot_gpu(&self, position: usize, id: GpuId) -> Gpu {
        let record = &self.gpus[id];
        let spec = self.spec(id);
        let names = record.names.as_deref();
        Gpu {
            index: (record.index as usize != position).then_some(record.index),
            uuid: names.and_then(|n| n.uuid.clone()),
            pci_address: names.and_then(|n| n.pci_address.clone()),
            health: record.health,
            cordoned: record.cordoned,
            numa_node: record.numa_node,
            instances: self.snapshot_instances(id),
            ..spec.document()
        }
    }

    /// Instances that no lease has; those of leases are in the leases.
    fn snapshot_instances(&self, id: GpuId) -> Vec<Instance> {
        let state = self.state(id);
        let (SpaceState::Grid(layout), Some(grid)) = (&*state, self.spec(id).grid()) else { return Vec::new() };
        let listed = layout
            .entries()
            .iter()
            .filter(|e| self.found.contains_key(&(id, e.start)) || !self.owners.contains_key(&(id, e.start)));
        listed.map(|entry| self.snapshot_instance(id, grid, entry)).collect()
    }

    fn snapshot_instance(&self, id: GpuId, grid: &Grid, entry: &Entry) -> Instance {
        let row = &grid.rows()[entry.profile];
        let found = self.found.get(&(id, entry.start)).cloned().unwrap_or_default();
        // What a lease uses is said by the lease; the instance itself came as it was found.
        let usage = if entry.hold == Hold::Idle || self.owners.contains_key(&(id, entry.start)) {
            Usage::Idle
        } else {
            Usage::Busy
        };
        let compute_instances = match (&entry.hold, row.inner()) {
            (Hold::Shared(inside), Some(inner)) if !self.owners.contains_key(&(id, entry.start)) => inside
                .entries()
                .iter()
                .map(|e| ComputeInstance {
                    profile: inner.rows()[e.profile].name.clone(),
                    start: Some(e.start),
                    id: found.compute.iter().find(|c| c.start == Some(e.start)).and_then(|c| c.id),
                    usage: Usage::Busy,
                })
                .collect(),
            _ => found.compute,
        };
        Instance {
            name: found.name,
            profile: row.name.clone(),
            start: entry.start,
            id: found.id,
            uuid: found.uuid,
            usage,
            pinned: found.pinned,
            compute_instances,
        }
    }

    fn snapshot_lease(&self, lease: &LeaseRecord) -> Lease {
        Lease {
            name: lease.name.clone(),
            tenant: lease.tenant.clone(),
            labels: lease.labels.clone(),
            pinned: lease.pinned,
            keeps_away: lease.keeps_away.clone(),
            nodes: lease.allowed_nodes.clone(),
            cpu_milli: lease.cpu_milli,
            memory_mib: lease.memory_mib,
            placements: lease.parts.iter().map(|part| self.placement(part)).collect(),
        }
    }

    /// A part as documents say it.
    pub fn placement(&self, part: &PartRecord) -> Placement {
        self.write(part, |gpu| self.spec(gpu))
    }

    /// A part of a GPU that is given this kind, as documents say it.
    pub fn placement_as(&self, part: &PartRecord, spec: SpecId) -> Placement {
        self.write(part, |_| &self.specs[spec])
    }

    fn write<'a>(&'a self, part: &PartRecord, kind: impl Fn(GpuId) -> &'a Spec) -> Placement {
        let on = part.on.map(|(gpu, take)| (gpu, part_of(kind(gpu), take)));
        Placement {
            member: part.member,
            alternative: part.alternative,
            node: self.nodes[part.node].name.clone(),
            gpu: on.as_ref().map(|(gpu, _)| self.gpus[*gpu].index),
            uuid: on.as_ref().and_then(|(gpu, _)| self.uuid(*gpu)).map(ToString::to_string),
            mps_priority: part.mps_priority,
            part: on.map_or(Part::NodeOnly, |(_, part)| part),
        }
    }
}

/// What a take has of a device of this kind.
fn part_of(spec: &Spec, take: Take) -> Part {
    let row = |profile: ProfileId| spec.grid().and_then(|g| g.rows().lookup(profile));
    let name = |profile| row(profile).map_or_else(Default::default, |r| r.name.clone());
    let size = |profile| row(profile).map_or(0, |r| r.size);
    match take {
        Take::Whole => Part::Whole,
        Take::Fraction { milli, mib, users } => Part::Fraction { milli, memory_mib: mib, contexts: users },
        Take::Share(share) => Part::Share {
            share: match spec.space() {
                crate::space::Space::Uniform(u) => {
                    u.types().get(usize::from(share)).map_or_else(Default::default, |t| t.name.clone())
                }
                _ => Default::default(),
            },
        },
        Take::Instance { profile, start } => Part::Instance { profile: name(profile), start, size: size(profile) },
        Take::Compute { profile, start, inner, inner_start } => Part::Compute {
            profile: name(profile),
            start,
            size: size(profile),
            compute_profile: row(profile)
                .and_then(|r| r.inner()?.rows().lookup(inner))
                .map_or_else(Default::default, |r| r.name.clone()),
            compute_start: inner_start,
        },
    }
}
