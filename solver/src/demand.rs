//! What is asked, counted: requests become demands (members that are asked for alike),
//! alternatives become parts, and parts name the slots that can serve them.

use std::collections::{BTreeMap, BTreeSet};

use slicewise_core::error::{Fault, InputError};
use slicewise_core::ids::{IdVec, SpecId};
use slicewise_core::ledger::Ledger;
use slicewise_core::space::{DeviceAsk, SpaceState};
use slicewise_core::workload::{
    Ask, GpuLink, Instances, InstancesOn, MemberAsk, Resolved, Resolver, WholeGpus, Workload,
};

use crate::ids::{DemandId, PartId, SlotId};

/// Something of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// As it is asked.
    pub ask: Ask,
    /// Ids of the models it may be on, rising; empty: any.
    pub models: Vec<String>,
    /// Slots that serve it, rising.
    pub slots: Vec<SlotId>,
}

/// What one kind of device can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// Kind of device.
    pub spec: SpecId,
    /// What of it.
    pub ask: DeviceAsk,
}

/// One way to serve a member: parts with how often each.
pub type Alternative = Vec<(PartId, u32)>;

/// Members that are asked for alike.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Worth of one member.
    pub value: u64,
    /// Members.
    pub members: u64,
    /// Members that come together: a gang's, else 1.
    pub lot: u64,
    /// The ways to serve a member, best first.
    pub alternatives: Vec<Alternative>,
    /// Positions of the requests.
    pub requests: Vec<usize>,
}

/// All that is asked.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Parts.
    pub parts: IdVec<PartId, Part>,
    /// Slots.
    pub slots: IdVec<SlotId, Slot>,
    /// Demands.
    pub demands: IdVec<DemandId, Demand>,
    /// By request: its worth and how it resolves.
    pub requests: Vec<Request>,
    /// By shape of request: what its asks are on each kind of device.
    pub shapes: Vec<Resolved>,
    /// What patterns cannot express, by name.
    pub relaxed: Vec<String>,
}

/// What is known of one request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Worth of one member.
    pub value: u64,
    /// What one member takes, by the measure that worth defaults to.
    pub size: u64,
    /// Its shape in [`Batch::shapes`].
    pub shape: usize,
    /// Patterns express all that it asks.
    pub plain: bool,
}

impl Batch {
    /// Reads the requests.
    ///
    /// # Errors
    /// A request that is not well formed, or a name that is used twice; paths begin with
    /// `requests[i]`.
    pub fn read(ledger: &Ledger, workloads: &[Workload]) -> Result<Self, InputError> {
        let mut reader = Reader::new(ledger, workloads);
        for (i, workload) in workloads.iter().enumerate() {
            reader.request(i, workload).map_err(|e| e.within(&format!("requests[{i}]")))?;
        }
        let mut batch = reader.batch;
        batch.relaxed = reader.relaxed.into_iter().map(String::from).collect();
        Ok(batch)
    }
    /// Members asked for.
    pub fn members(&self) -> u64 {
        self.demands.iter().map(|(_, d)| d.members).sum()
    }
    /// Worth of all that is asked.
    pub fn value(&self) -> u64 {
        self.demands.iter().fold(0, |sum, (_, d)| sum.saturating_add(d.members.saturating_mul(d.value)))
    }
    /// Whether patterns express everything.
    pub fn is_plain(&self) -> bool {
        self.requests.iter().all(|r| r.plain)
    }
    /// How a request resolves.
    pub fn resolved(&self, request: usize) -> Option<&Resolved> {
        self.shapes.get(self.requests.get(request)?.shape)
    }
}

/// What requests of one shape share.
#[derive(Clone)]
struct Shape {
    position: usize,
    value: u64,
    alternatives: Vec<Alternative>,
    relaxed: BTreeSet<&'static str>,
}

struct Reader<'a> {
    ledger: &'a Ledger,
    batch: Batch,
    relaxed: BTreeSet<&'static str>,
    shapes: BTreeMap<String, Shape>,
    slots: BTreeMap<Slot, SlotId>,
    parts: BTreeMap<String, PartId>,
    demands: BTreeMap<(usize, u64, u64), DemandId>,
    names: BTreeSet<&'a str>,
    /// Some node limits CPU or memory.
    limits: bool,
    /// Placements keep to a power cap somewhere.
    power_caps: bool,
    /// Somebody keeps away from labels.
    dislikes: bool,
    /// Idle instances lie about, and some request wants them kept.
    idle: bool,
}

impl<'a> Reader<'a> {
    fn new(ledger: &'a Ledger, workloads: &'a [Workload]) -> Self {
        let keeps_idle = workloads.iter().any(|w| w.keep_idle);
        Self {
            ledger,
            batch: Batch::default(),
            relaxed: BTreeSet::new(),
            shapes: BTreeMap::new(),
            slots: BTreeMap::new(),
            parts: BTreeMap::new(),
            demands: BTreeMap::new(),
            names: BTreeSet::new(),
            limits: ledger.nodes().iter().any(|(_, n)| n.cpu_milli.is_some() || n.memory_mib.is_some()),
            power_caps: ledger.has_power_caps(),
            dislikes: workloads.iter().any(|w| !w.anti_affinity.is_empty())
                || ledger.leases().any(|(_, l)| !l.keeps_away.is_empty()),
            idle: keeps_idle && has_idle(ledger),
        }
    }

    fn request(&mut self, position: usize, workload: &'a Workload) -> Result<(), InputError> {
        let shape = self.shape(workload)?;
        if self.ledger.lease(&workload.name).is_some() || !self.names.insert(&workload.name) {
            return Err(InputError::new("name", Fault::Duplicate(workload.name.clone())));
        }
        let value = workload.value.unwrap_or(shape.value);
        let own = self.side_constraints(workload);
        let plain = own.is_empty() && shape.relaxed.is_empty();
        self.relaxed.extend(own.into_iter().chain(shape.relaxed));
        let members = u64::from(workload.count);
        let lot = if workload.gang { members } else { 1 };
        let demand = match self.demands.get(&(shape.position, value, lot)) {
            Some(id) => *id,
            None => {
                let alternatives = shape.alternatives;
                let demand = Demand { value, members: 0, lot, alternatives, requests: Vec::new() };
                let id = self.batch.demands.push(demand);
                self.demands.insert((shape.position, value, lot), id);
                id
            }
        };
        let entry = &mut self.batch.demands[demand];
        entry.members = entry.members.saturating_add(members);
        entry.requests.push(position);
        self.batch.requests.push(Request { value, size: shape.value, shape: shape.position, plain });
        Ok(())
    }

    /// What the request asks that has nothing to do with the parts of GPUs, and that makes
    /// a difference on this fleet.
    fn side_constraints(&self, workload: &Workload) -> Vec<&'static str> {
        let mut found = Vec::new();
        if self.limits && workload.cpu_milli > 0 {
            found.push("node_cpu");
        }
        if self.limits && workload.memory_mib > 0 {
            found.push("node_memory");
        }
        if self.power_caps {
            found.push("power_cap");
        }
        if !workload.nodes.is_empty() {
            found.push("node_selector");
        }
        if self.dislikes && !(workload.anti_affinity.is_empty() && workload.labels.is_empty()) {
            found.push("anti_affinity");
        }
        if workload.members.is_some() && workload.count > 1 {
            found.push("members");
        }
        if self.idle && workload.keep_idle {
            found.push("keep_idle");
        }
        found
    }

    fn shape(&mut self, workload: &Workload) -> Result<Shape, InputError> {
        let apart = (workload.isolation, workload.confidential);
        let key = format!("{:?}{:?}{:?}{apart:?}", workload.profile, workload.any_of, workload.models);
        // What the shape does not say has to be checked each time.
        if let Some(shape) = self.shapes.get(&key)
            && !workload.name.is_empty()
            && workload.count > 0
        {
            return Ok(shape.clone());
        }
        let resolved = Resolver::new(self.ledger).resolve(workload)?;
        let asks = workload.alternatives();
        let mut relaxed = BTreeSet::new();
        if !workload.isolation.is_any() || workload.confidential {
            relaxed.insert("isolation");
        }
        let mut alternatives = Vec::new();
        for ask in &asks {
            relaxed.extend(ties(ask));
            let mut alternative: BTreeMap<PartId, u32> = BTreeMap::new();
            for (unit, times) in units(ask) {
                let part = self.part(unit, &workload.models)?;
                *alternative.entry(part).or_default() += times;
            }
            alternatives.push(alternative.into_iter().collect());
        }
        let value = asks.first().map_or(1, |ask| self.worth(ask, &resolved));
        let shape = Shape { position: self.batch.shapes.len(), value, alternatives, relaxed };
        self.batch.shapes.push(resolved);
        self.shapes.insert(key, shape.clone());
        Ok(shape)
    }

    fn part(&mut self, ask: Ask, models: &[String]) -> Result<PartId, InputError> {
        let ids = models.iter().filter_map(|name| self.ledger.catalog().find(name).map(|m| m.id.clone()));
        let models: Vec<String> = ids.collect::<BTreeSet<_>>().into_iter().collect();
        let key = format!("{ask:?}{models:?}");
        if let Some(id) = self.parts.get(&key) {
            return Ok(*id);
        }
        let unit = Workload {
            name: String::from("part"),
            count: 1,
            any_of: Vec::from([ask.clone()]),
            models: models.clone(),
            ..Workload::default()
        };
        let resolved = Resolver::new(self.ledger).resolve(&unit)?;
        let mut slots = BTreeSet::new();
        for spec in self.ledger.specs().ids() {
            let asks: &[DeviceAsk] = match resolved.on(0, spec) {
                Ok(MemberAsk::One(asks)) => asks,
                Ok(MemberAsk::Whole(_)) => &[DeviceAsk::Whole],
                _ => &[],
            };
            for ask in asks {
                let slot = Slot { spec, ask: *ask };
                slots.insert(*self.slots.entry(slot).or_insert_with(|| self.batch.slots.push(slot)));
            }
        }
        let id = self.batch.parts.push(Part { ask, models, slots: slots.into_iter().collect() });
        self.parts.insert(key, id);
        Ok(id)
    }

    /// What a member is worth if the request does not say.
    fn worth(&self, ask: &Ask, resolved: &Resolved) -> u64 {
        match ask {
            Ask::Gpus(gpus) => 8 * u64::from(gpus.count),
            Ask::Fraction(fraction) => u64::from(fraction.milli).div_ceil(125).max(1),
            Ask::Mps(share) => (u64::from(share.threads_percent) * 10).div_ceil(125).max(1),
            Ask::NodeOnly {} => 1,
            Ask::Profile(_) | Ask::AtLeast(_) | Ask::Instances(_) => {
                let specs = self.ledger.specs().ids();
                specs.filter_map(|spec| self.cells(spec, resolved.on(0, spec).ok()?)).min().unwrap_or(1)
            }
        }
    }

    /// Fewest cells that an ask covers on a kind of device.
    fn cells(&self, spec: SpecId, ask: &MemberAsk) -> Option<u64> {
        let grid = self.ledger.specs()[spec].grid()?;
        let size = |ask: &DeviceAsk| match ask {
            DeviceAsk::Instance(p) | DeviceAsk::Compute(p, _) => grid.rows().lookup(*p).map(|r| u64::from(r.size)),
            _ => None,
        };
        match ask {
            MemberAsk::One(asks) => asks.iter().filter_map(size).min(),
            MemberAsk::Several(asks, _) => asks.iter().map(|ask| size(ask.as_ref()?)).sum(),
            _ => None,
        }
    }
}

fn has_idle(ledger: &Ledger) -> bool {
    ledger.specs().iter().any(|(id, spec)| {
        ledger.index().of_spec(id).any(|(_, class)| match &*spec.state(class.key.state) {
            SpaceState::Grid(layout) => layout.used().count() < layout.entries().len(),
            _ => false,
        })
    })
}

/// The parts of an alternative, one device each.
fn units(ask: &Ask) -> Vec<(Ask, u32)> {
    match ask {
        Ask::NodeOnly {} => Vec::new(),
        Ask::Gpus(gpus) => {
            let one = WholeGpus { count: 1, memory_mib: gpus.memory_mib, ..WholeGpus::default() };
            Vec::from([(Ask::Gpus(one), gpus.count)])
        }
        Ask::Instances(set) => set.profiles.iter().map(|name| (Ask::Profile(name.clone()), 1)).collect(),
        Ask::Profile(_) | Ask::AtLeast(_) | Ask::Fraction(_) | Ask::Mps(_) => Vec::from([(ask.clone(), 1)]),
    }
}

/// What ties the parts of an alternative to each other or to places.
fn ties(ask: &Ask) -> Vec<&'static str> {
    let mut found = Vec::new();
    match ask {
        Ask::NodeOnly {} => found.push("node_only"),
        Ask::Gpus(gpus) => {
            if gpus.count > 1 {
                found.push("gpus_of_one_node");
                if gpus.link.is_some() {
                    found.push("gpu_link");
                }
            }
            if gpus.link == Some(GpuLink::FabricPartition) {
                found.push("gpu_link");
            }
            if gpus.near_nic.is_some() {
                found.push("near_nic");
            }
        }
        Ask::Instances(Instances { profiles, on }) if profiles.len() > 1 => found.push(match on {
            InstancesOn::Any => "instances_of_one_node",
            InstancesOn::SameGpu => "instances_of_one_gpu",
            InstancesOn::DistinctGpus => "instances_of_distinct_gpus",
        }),
        _ => {}
    }
    found
}
