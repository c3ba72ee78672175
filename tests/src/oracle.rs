//! An oracle that is slow and obviously right: every member on every node, every
//! alternative at every place, one after the other, with the rules written out plainly.

use std::collections::BTreeSet;

use slicewise_core::catalog::{Catalog, Model, Profile, ShareType};
use slicewise_core::fleet::{Gpu, Health, LinkKind, Mode, Node, Part, PowerCap, SpaceKind, State, Usage};
use slicewise_core::workload::{
    Ask, Fraction, GpuLink, InstancesOn, MpsShare, Requirement, Spread, WholeGpus, Workload,
};

/// An instance: profile and first cell, both by position.
pub type At = (usize, u16);

/// A GPU with what is on it.
#[derive(Clone, Debug)]
pub struct Device {
    /// Position of its node.
    pub node: usize,
    /// Index on the node.
    pub index: u32,
    /// Model, with what its mode offers.
    pub model: Model,
    /// Share types of the mode.
    pub types: Vec<ShareType>,
    /// Most instances at once.
    pub most: Option<u16>,
    /// Compute in thousandths (or chunks), and users at once.
    pub amounts: (u32, usize),
    /// Mode.
    pub mode: Mode,
    /// Driver's major version.
    pub driver: Option<u32>,
    /// Takes nothing new.
    pub closed: bool,
    /// NUMA node.
    pub numa: Option<u16>,
    /// Instances somebody has as a whole.
    pub busy: Vec<At>,
    /// Instances with compute instances that somebody has.
    pub shared: Vec<(At, Vec<At>)>,
    /// Instances that nobody has.
    pub idle: Vec<At>,
    /// Shares taken, by type.
    pub shares: Vec<usize>,
    /// Fractions taken: compute, MiB and users; a whole GPU is one of more than a thousand.
    pub fractions: Vec<(u32, u64, usize)>,
    /// Milliwatts idle, active, full and at most, where the document gives them.
    pub draws: Option<[u64; 4]>,
    /// The GPU with nothing on it, in each mode that it may be in.
    pub modes: Vec<Device>,
}

/// The mark of a GPU that is taken whole.
const WHOLE: (u32, u64, usize) = (1001, 0, 1);

/// What a member may get of one GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bit {
    Instance(At),
    Compute(At, At),
    Share(usize),
    Fraction(u32, u64, usize),
    Whole,
}

impl Device {
    fn profile(&self, position: usize) -> &Profile {
        &self.model.profiles[position]
    }

    fn cells(&self, (profile, start): At) -> BTreeSet<u16> {
        let size = self.profile(profile).placements.as_ref().map_or(0, |p| p.size);
        (start..start + size).collect()
    }

    /// Whether these instances may be on the GPU together.
    pub fn may_hold(&self, all: &[At]) -> bool {
        for (i, a) in all.iter().enumerate() {
            let starts = self.profile(a.0).placements.as_ref().map_or(&[][..], |p| &p.starts);
            if !starts.contains(&a.1) || all[..i].iter().any(|b| !self.cells(*a).is_disjoint(&self.cells(*b))) {
                return false;
            }
        }
        for (p, profile) in self.model.profiles.iter().enumerate() {
            let count = all.iter().filter(|a| a.0 == p).count();
            if profile.max_instances.is_some_and(|max| count > usize::from(max)) {
                return false;
            }
        }
        let sum = |of: fn(&Profile) -> Option<u16>| all.iter().map(|a| of(self.profile(a.0)).unwrap_or(0)).sum::<u16>();
        let pool = self.model.engine_pool;
        let engines = pool.decoders.is_none_or(|n| sum(|p| p.decoders) <= n)
            && pool.encoders.is_none_or(|n| sum(|p| p.encoders) <= n)
            && pool.jpeg.is_none_or(|n| sum(|p| p.jpeg) <= n)
            && pool.ofa.is_none_or(|n| sum(|p| p.ofa) <= n);
        let compute = self.model.compute_slices.is_none_or(|n| sum(|p| Some(p.compute_slices)) <= n);
        let there = |name: &String| all.iter().any(|a| self.profile(a.0).name == *name);
        let refused = self
            .model
            .refused_together
            .iter()
            .any(|r| self.driver.is_some_and(|d| d < r.before_driver) && r.profiles.iter().all(there));
        let few = self.most.is_none_or(|most| all.len() <= usize::from(most));
        engines && compute && few && !refused
    }

    fn inner_cells(&self, profile: usize, (inner, start): At) -> BTreeSet<u16> {
        let compute = &self.profile(profile).compute_instances[inner];
        let size = compute.placements.as_ref().map_or(compute.compute_slices, |p| p.size);
        (start..start + size).collect()
    }

    fn may_hold_inside(&self, profile: usize, all: &[At]) -> bool {
        let own = &self.profile(profile).compute_instances;
        let disjoint = all.iter().enumerate().all(|(i, a)| {
            let starts = own[a.0].placements.as_ref().map_or(&[][..], |p| &p.starts);
            let before = all[..i].iter();
            starts.contains(&a.1)
                && before.clone().all(|b| self.inner_cells(profile, *a).is_disjoint(&self.inner_cells(profile, *b)))
        });
        let maxima = own.iter().enumerate().all(|(c, compute)| {
            let count = all.iter().filter(|a| a.0 == c).count();
            compute.max_instances.is_none_or(|max| count <= usize::from(max))
        });
        disjoint && maxima
    }

    /// One GPU of a document in a mode, with nothing on it.
    fn empty(catalog: &Catalog, position: usize, node: &Node, (index, gpu): (usize, &Gpu), mode: Mode) -> Self {
        let modes = gpu.modes.iter().copied().chain([gpu.mode]).collect();
        let offer = catalog.offer(&Gpu { mode, modes, ..gpu.clone() }).unwrap();
        let clients = if gpu.sharing.cuda.as_deref() == Some("13.1") { 60 } else { 48 };
        let amounts = match mode {
            Mode::Mps => (gpu.sharing.static_chunks.map_or(1000, u32::from), clients),
            _ => (1000, 60_000),
        };
        Self {
            node: position,
            index: index as u32,
            mode,
            driver: gpu.driver.as_ref().map(|d| d.split('.').next().unwrap().parse().unwrap()),
            closed: gpu.cordoned || node.cordoned || gpu.health != Health::Healthy,
            numa: gpu.numa_node,
            busy: Vec::new(),
            shared: Vec::new(),
            idle: Vec::new(),
            shares: Vec::new(),
            fractions: Vec::new(),
            draws: draws(gpu),
            types: offer.shares.clone(),
            most: offer.max_instances,
            amounts,
            model: offer.model.clone(),
            modes: Vec::new(),
        }
    }

    fn is_unused(&self) -> bool {
        self.used().is_empty() && self.shares.is_empty() && self.fractions.is_empty()
    }

    /// The GPU in each mode that it can be given, itself first.
    fn in_every_mode(&self, keep_idle: bool) -> Vec<Self> {
        let may = self.is_unused() && !self.closed && (!keep_idle || self.idle.is_empty());
        let others = self.modes.iter().filter(|d| may && d.mode != self.mode);
        let modes = self.modes.clone();
        std::iter::once(self.clone()).chain(others.map(|d| Self { modes: modes.clone(), ..d.clone() })).collect()
    }

    fn used(&self) -> Vec<At> {
        self.busy.iter().copied().chain(self.shared.iter().map(|(at, _)| *at)).collect()
    }

    fn memory(&self) -> Option<u64> {
        self.model.memory_mib_least().map(u64::from)
    }

    /// Whether everything that is used may be there.
    fn is_legal(&self) -> bool {
        let memory = self.fractions.iter().map(|f| f.1).sum::<u64>();
        let most = |share: &usize| usize::from(self.types[*share].max_per_gpu);
        let size = |share: usize| self.types[share].size.as_ref().unwrap_or(&self.types[share].name);
        self.may_hold(&self.used())
            && self.shared.iter().all(|((p, _), inside)| self.may_hold_inside(*p, inside))
            && self.shares.iter().all(|s| size(*s) == size(self.shares[0]) && self.shares.len() <= most(s))
            && (self.fractions == [WHOLE] || self.fractions.iter().map(|f| f.0).sum::<u32>() <= self.amounts.0)
            && self.fractions.iter().map(|f| f.2).sum::<usize>() <= self.amounts.1
            && (memory == 0 || self.memory().is_some_and(|has| memory <= has))
    }

    /// Compute in use, and of how much.
    fn load(&self) -> (u64, u64) {
        match self.mode.space() {
            SpaceKind::Fluid if self.fractions == [WHOLE] => (1, 1),
            SpaceKind::Fluid => {
                let of = if self.amounts.0.is_multiple_of(1000) { 1000 } else { self.amounts.0 };
                (self.fractions.iter().map(|f| u64::from(f.0)).sum(), of.into())
            }
            SpaceKind::Uniform => {
                let size = |t: &ShareType| t.size.clone().unwrap_or_else(|| t.name.clone());
                let Some(share) = self.shares.first() else { return (0, 1) };
                let first = self.types.iter().find(|t| size(t) == size(&self.types[*share])).unwrap();
                (self.shares.len() as u64, first.max_per_gpu.into())
            }
            SpaceKind::Grid => {
                let Some(slices) = self.model.compute_slices else {
                    let cells: usize = self.busy.iter().map(|at| self.cells(*at).len()).sum();
                    return (cells as u64, self.model.memory_slices.unwrap().into());
                };
                let of = |profile: usize| u64::from(self.profile(profile).compute_slices) * 1000;
                let inside = |profile: usize, inner: usize| {
                    let compute = &self.profile(profile).compute_instances[inner];
                    match compute.compute_slices {
                        0 => of(profile).div_ceil(compute.max_instances.unwrap().into()),
                        own => u64::from(own) * 1000,
                    }
                };
                let busy: u64 = self.busy.iter().map(|at| of(at.0)).sum();
                let shared = self.shared.iter().flat_map(|(at, all)| all.iter().map(|inner| inside(at.0, inner.0)));
                (busy + shared.sum::<u64>(), u64::from(slices) * 1000)
            }
        }
    }

    /// What it draws, in milliwatts.
    fn draw(&self) -> u64 {
        let Some([idle, active, full, most]) = self.draws else { return 0 };
        let nothing = self.used().is_empty() && self.shares.is_empty() && self.fractions.is_empty();
        let (used, of) = self.load();
        if nothing { idle } else { (active + ((full - active) * used.min(of)).div_ceil(of)).min(most) }
    }

    fn put(&mut self, bit: Bit) {
        match bit {
            Bit::Instance(at) => self.busy.push(at),
            Bit::Compute(at, inner) => match self.shared.iter_mut().find(|(own, _)| *own == at) {
                Some((_, inside)) => inside.push(inner),
                None => self.shared.push((at, vec![inner])),
            },
            Bit::Share(share) => self.shares.push(share),
            Bit::Fraction(milli, mib, users) => self.fractions.push((milli, mib, users)),
            Bit::Whole => self.fractions.push(WHOLE),
        }
    }

    fn creates(&self, profile: usize) -> bool {
        let least = self.profile(profile).min_driver;
        least.is_none_or(|least| self.driver.is_none_or(|own| own >= least))
    }

    /// Everything of this name that the GPU could ever give.
    fn named(&self, name: &str) -> Vec<Bit> {
        match self.mode.space() {
            SpaceKind::Fluid => Vec::new(),
            SpaceKind::Uniform => {
                let types = self.types.iter().enumerate();
                types.filter(|(_, t)| t.name == name).map(|(i, _)| Bit::Share(i)).collect()
            }
            SpaceKind::Grid => {
                let own = (0..self.model.profiles.len()).find(|p| self.profile(*p).name == name);
                if self.mode == Mode::VgpuMig && own.is_some() {
                    return Vec::new();
                }
                if let Some(p) = own {
                    return self.instances(p);
                }
                for p in (0..self.model.profiles.len()).filter(|p| self.creates(*p)) {
                    let compute = &self.profile(p).compute_instances;
                    if let Some(c) = compute.iter().position(|c| c.name == name) {
                        let inner = compute[c].placements.as_ref().map_or(Vec::new(), |p| p.starts.clone());
                        let starts = self.profile(p).placements.as_ref().map_or(Vec::new(), |p| p.starts.clone());
                        let each = |s: &u16| inner.iter().map(|i| Bit::Compute((p, *s), (c, *i))).collect::<Vec<_>>();
                        return starts.iter().flat_map(each).collect();
                    }
                }
                Vec::new()
            }
        }
    }

    fn instances(&self, profile: usize) -> Vec<Bit> {
        if !self.creates(profile) {
            return Vec::new();
        }
        let starts = self.profile(profile).placements.as_ref().map_or(Vec::new(), |p| p.starts.clone());
        starts.into_iter().map(|s| Bit::Instance((profile, s))).collect()
    }

    /// Every single thing that meets an ask for one.
    fn meeting(&self, ask: &Ask) -> Vec<Bit> {
        match ask {
            Ask::Profile(name) => self.named(name),
            Ask::AtLeast(least) if matches!(self.mode, Mode::Mig | Mode::VgpuMixed) => {
                let meets = |p: &Profile| {
                    least.compute_slices.is_none_or(|n| p.compute_slices >= n)
                        && least.memory_mib.is_none_or(|n| p.memory_mib_least().is_some_and(|m| m >= n))
                        && least.jpeg.is_none_or(|n| p.jpeg.is_some_and(|m| m >= n))
                };
                let all = 0..self.model.profiles.len();
                all.filter(|p| meets(self.profile(*p))).flat_map(|p| self.instances(p)).collect()
            }
            Ask::Fraction(fraction) if self.mode == Mode::Whole => self.fraction(fraction).into_iter().collect(),
            Ask::Mps(share) if self.mode == Mode::Mps => vec![self.clients(share)],
            _ => Vec::new(),
        }
    }

    fn clients(&self, share: &MpsShare) -> Bit {
        // Of a hundred, or of the chunks of a static partitioning.
        let units = if self.amounts.0.is_multiple_of(1000) { 1000 } else { self.amounts.0 };
        let compute = (u32::from(share.threads_percent) * units).div_ceil(100);
        Bit::Fraction(compute, share.memory_mib.into(), share.contexts.into())
    }

    fn fraction(&self, fraction: &Fraction) -> Option<Bit> {
        let mib = match fraction.memory_ppm {
            Some(ppm) => (self.memory()? * u64::from(ppm)).div_ceil(1_000_000),
            None => fraction.memory_mib.into(),
        };
        Some(Bit::Fraction(fraction.milli.into(), mib, 1))
    }
}

/// A fleet as the oracle sees it.
#[derive(Clone, Debug)]
pub struct World<'a> {
    state: &'a State,
    /// The GPUs, in order.
    pub devices: Vec<Device>,
    cpu: Vec<u64>,
    memory: Vec<u64>,
}

impl<'a> World<'a> {
    /// Reads a state that is known to be legal and in which leases own all that is used,
    /// but for instances that the document calls busy.
    pub fn of(catalog: &Catalog, state: &'a State) -> Self {
        let mut catalog = catalog.clone();
        state.models.iter().for_each(|m| catalog.add(m.clone()).unwrap());
        state.boards.iter().for_each(|b| catalog.add_board(b.clone()).unwrap());
        let mut world =
            Self { state, devices: Vec::new(), cpu: vec![0; state.nodes.len()], memory: vec![0; state.nodes.len()] };
        for (n, node) in state.nodes.iter().enumerate() {
            for (i, gpu) in node.gpus.iter().enumerate() {
                let empty = |mode| Device::empty(&catalog, n, node, (i, gpu), mode);
                let mut device = empty(gpu.mode);
                let at = |p: &str, start| (device.model.profiles.iter().position(|q| q.name == p).unwrap(), start);
                let of = |usage| -> Vec<At> {
                    let own = gpu.instances.iter().filter(move |i| i.usage == usage);
                    own.map(|i| at(&i.profile, i.start)).collect()
                };
                (device.busy, device.idle) = (of(Usage::Busy), of(Usage::Idle));
                let modes = Mode::ALL.into_iter().filter(|m| *m == gpu.mode || gpu.modes.contains(m));
                device.modes = modes.map(empty).collect();
                world.devices.push(device);
            }
        }
        for lease in &state.leases {
            let mut members = BTreeSet::new();
            for placement in &lease.placements {
                let node = state.nodes.iter().position(|n| n.name == placement.node).unwrap();
                if members.insert(placement.member) {
                    world.cpu[node] += lease.cpu_milli;
                    world.memory[node] += lease.memory_mib;
                }
                let Some(index) = placement.gpu else { continue };
                let device = world.devices.iter_mut().find(|d| d.node == node && d.index == index).unwrap();
                let bit = bit_of(device, &placement.part);
                // An instance that is listed as its lease's own is there once.
                if let Bit::Instance(at) = bit
                    && device.busy.contains(&at)
                {
                    continue;
                }
                if let Bit::Instance(at) | Bit::Compute(at, _) = bit {
                    device.idle.retain(|i| *i != at);
                }
                device.put(bit);
            }
        }
        world
    }

    /// Whether there is a place for all members without touching anybody.
    pub fn has_place(&self, workload: &Workload) -> bool {
        self.seat(workload, &mut Vec::new())
    }

    /// The most value that any choice of these requests of one member each can have, each
    /// with its value.
    pub fn most_value(&self, requests: &[(Workload, u64)]) -> u64 {
        let mut best = 0;
        self.choose(requests, 0, &mut best);
        best
    }

    fn choose(&self, requests: &[(Workload, u64)], value: u64, best: &mut u64) {
        *best = value.max(*best);
        let Some(((workload, worth), rest)) = requests.split_first() else { return };
        let most: u64 = requests.iter().map(|(_, worth)| worth).sum();
        if value + most <= *best {
            return;
        }
        for node in 0..self.state.nodes.len() {
            if !self.admits(workload, node) {
                continue;
            }
            for next in self.with_member(workload, node) {
                if next.0.is_within_caps() {
                    next.0.choose(rest, value + worth, best);
                }
            }
        }
        self.choose(rest, value, best);
    }

    fn seat(&self, workload: &Workload, seated: &mut Vec<(usize, Vec<usize>)>) -> bool {
        if seated.len() == workload.count as usize {
            return true;
        }
        for node in 0..self.state.nodes.len() {
            if !self.admits(workload, node) {
                continue;
            }
            for (next, gpus) in self.with_member(workload, node) {
                if !seated.iter().all(|other| self.may_lie(workload.members, &(node, gpus.clone()), other)) {
                    continue;
                }
                seated.push((node, gpus));
                if next.is_within_caps() && next.seat(workload, seated) {
                    return true;
                }
                seated.pop();
            }
        }
        false
    }

    /// What a node draws, in milliwatts.
    pub fn draw(&self, node: usize) -> u64 {
        let document = &self.state.nodes[node];
        let of_gpus: u64 = self.devices.iter().filter(|d| d.node == node).map(Device::draw).sum();
        let cpu = document.cpu_milli.map_or(0, |has| {
            // 15 W idle and 120 W in use, of 16 cores.
            let used = self.cpu[node].min(has);
            (used * 120 + (has - used) * 15).div_ceil(16)
        });
        of_gpus + cpu
    }

    /// Whether all nodes and racks keep to their caps.
    fn is_within_caps(&self) -> bool {
        let most =
            |cap: Option<PowerCap>| cap.filter(|c| !c.throttle).map_or(u64::MAX, |c| u64::from(c.limit_w) * 1000);
        let nodes = self.state.nodes.iter().enumerate();
        let in_rack = |name: &String| -> u64 {
            nodes.clone().filter(|(_, n)| n.rack.as_ref() == Some(name)).map(|(i, _)| self.draw(i)).sum()
        };
        nodes.clone().all(|(i, n)| self.draw(i) <= most(n.power_cap))
            && self.state.racks.iter().all(|r| in_rack(&r.name) <= most(r.power_cap))
    }

    /// The world with one member on a node, in every mode that its GPUs can be given and in
    /// every way, with the GPUs that the member has.
    fn with_member<'b>(
        &'b self,
        workload: &'b Workload,
        node: usize,
    ) -> impl Iterator<Item = (World<'a>, Vec<usize>)> + use<'a, 'b> {
        let mut worlds = vec![self.clone()];
        for gpu in (0..self.devices.len()).filter(|g| self.devices[*g].node == node) {
            let turned = |world: Self| {
                let devices = world.devices[gpu].in_every_mode(workload.keep_idle).into_iter();
                devices.map(move |device| {
                    let mut world = world.clone();
                    world.devices[gpu] = device;
                    world
                })
            };
            worlds = worlds.into_iter().flat_map(turned).collect();
        }
        worlds.into_iter().flat_map(move |world| {
            let asks = workload.alternatives().into_iter();
            let ways: Vec<_> = asks.flat_map(|ask| world.ways(workload, node, &ask)).collect();
            ways.into_iter().map(move |bits| {
                let mut next = world.clone();
                bits.iter().for_each(|(gpu, bit)| next.devices[*gpu].put(*bit));
                next.cpu[node] += workload.cpu_milli;
                next.memory[node] += workload.memory_mib;
                (next, bits.into_iter().map(|(gpu, _)| gpu).collect())
            })
        })
    }

    fn admits(&self, workload: &Workload, node: usize) -> bool {
        let document = &self.state.nodes[node];
        let label = |key: &str| match key {
            "slicewise/zone" => document.zone.as_deref(),
            "slicewise/rack" => document.rack.as_deref(),
            "slicewise/region" => document.region.as_deref(),
            "slicewise/name" => Some(document.name.as_str()),
            _ => document.labels.get(key).map(String::as_str),
        };
        let fits = |needed: u64, used: u64, has: Option<u64>| needed == 0 || has.is_none_or(|h| used + needed <= h);
        let meets = |rules: &[Requirement], labels: &std::collections::BTreeMap<String, String>| {
            rules.iter().any(|r| labels.get(&r.key).is_some_and(|v| r.accepts(Some(v))))
        };
        let here = |l: &&slicewise_core::fleet::Lease| l.placements.iter().any(|p| p.node == document.name);
        !document.cordoned
            && workload.nodes.iter().all(|r| r.accepts(label(&r.key)))
            && fits(workload.cpu_milli, self.cpu[node], document.cpu_milli)
            && fits(workload.memory_mib, self.memory[node], document.memory_mib)
            && !self.state.leases.iter().filter(here).any(|lease| {
                meets(&workload.anti_affinity, &lease.labels) || meets(&lease.keeps_away, &workload.labels)
            })
    }

    /// Every legal way to serve one member on a node.
    fn ways(&self, workload: &Workload, node: usize, ask: &Ask) -> Vec<Vec<(usize, Bit)>> {
        let allowed = |d: &Device| workload.models.is_empty() || workload.models.contains(&d.model.id);
        let open: Vec<usize> = (0..self.devices.len())
            .filter(|g| self.devices[*g].node == node && !self.devices[*g].closed && allowed(&self.devices[*g]))
            .collect();
        let mut ways: Vec<Vec<(usize, Bit)>> = match ask {
            Ask::NodeOnly {} => vec![Vec::new()],
            Ask::Gpus(whole) => self.sets(&open, whole),
            Ask::Instances(set) => {
                let mut ways = vec![Vec::new()];
                for name in &set.profiles {
                    let mut longer = Vec::new();
                    for way in &ways {
                        for gpu in &open {
                            for bit in self.devices[*gpu].named(name) {
                                let mut next: Vec<(usize, Bit)> = way.clone();
                                next.push((*gpu, bit));
                                longer.push(next);
                            }
                        }
                    }
                    longer.retain(|way| self.together(workload, way));
                    ways = longer;
                }
                ways.retain(|way| {
                    let gpus: BTreeSet<usize> = way.iter().map(|(gpu, _)| *gpu).collect();
                    match set.on {
                        InstancesOn::Any => true,
                        InstancesOn::SameGpu => gpus.len() == 1,
                        InstancesOn::DistinctGpus => gpus.len() == way.len(),
                    }
                });
                ways
            }
            Ask::Profile(_) | Ask::AtLeast(_) | Ask::Fraction(_) | Ask::Mps(_) => {
                let of = |gpu: usize| self.devices[gpu].meeting(ask).into_iter().map(move |bit| vec![(gpu, bit)]);
                open.iter().flat_map(|gpu| of(*gpu)).collect()
            }
        };
        ways.retain(|way| self.together(workload, way));
        ways
    }

    /// Whether these may be added together.
    fn together(&self, workload: &Workload, way: &[(usize, Bit)]) -> bool {
        let gpus: BTreeSet<usize> = way.iter().map(|(gpu, _)| *gpu).collect();
        gpus.into_iter().all(|gpu| {
            let mut device = self.devices[gpu].clone();
            way.iter().filter(|(g, _)| *g == gpu).for_each(|(_, bit)| device.put(*bit));
            let kept: Vec<At> =
                device.idle.iter().filter(|i| !device.used().contains(i)).copied().chain(device.used()).collect();
            device.is_legal() && (!workload.keep_idle || device.may_hold(&kept))
        })
    }

    fn sets(&self, open: &[usize], ask: &WholeGpus) -> Vec<Vec<(usize, Bit)>> {
        let mut sets = Vec::new();
        for mask in 0u32..1 << open.len() {
            let set: Vec<usize> = (0..open.len()).filter(|b| mask >> b & 1 == 1).map(|b| open[b]).collect();
            let memory = |d: &Device| ask.memory_mib.is_none_or(|n| d.memory().is_some_and(|m| m >= n.into()));
            let free = |g: &usize| {
                let d = &self.devices[*g];
                d.mode == Mode::Whole && d.fractions.is_empty() && memory(d)
            };
            let one_model = set.iter().all(|g| self.devices[*g].model.id == self.devices[set[0]].model.id);
            if set.len() == ask.count as usize && one_model && set.iter().all(free) && self.joined(&set, ask.link) {
                sets.push(set.into_iter().map(|g| (g, Bit::Whole)).collect());
            }
        }
        sets
    }

    fn joined(&self, set: &[usize], link: Option<GpuLink>) -> bool {
        let pairs: Vec<(&Device, &Device)> = set
            .iter()
            .flat_map(|a| set.iter().map(move |b| (a, b)))
            .filter(|(a, b)| a < b)
            .map(|(a, b)| (&self.devices[*a], &self.devices[*b]))
            .collect();
        let path = |a: &Device, b: &Device| {
            let ends = [format!("GPU{}", a.index), format!("GPU{}", b.index)];
            let links = self.state.nodes[a.node].links.iter();
            links.filter(|l| ends.contains(&l.a) && ends.contains(&l.b)).map(|l| l.kind).next().unwrap_or(LinkKind::Sys)
        };
        match link {
            None => true,
            Some(GpuLink::SameNuma) => pairs.iter().all(|(a, b)| a.numa.is_some() && a.numa == b.numa),
            Some(GpuLink::Nvlink) => pairs.iter().all(|(a, b)| matches!(path(a, b), LinkKind::NvLink(_))),
            Some(GpuLink::AtLeast(least)) => pairs.iter().all(|(a, b)| path(a, b) >= least),
            Some(GpuLink::FabricPartition) => {
                let own: BTreeSet<u32> = set.iter().map(|g| self.devices[*g].index).collect();
                let node = &self.state.nodes[self.devices[set[0]].node];
                node.fabric_partitions.iter().any(|p| p.iter().copied().collect::<BTreeSet<u32>>() == own)
            }
        }
    }

    fn may_lie(&self, spread: Option<Spread>, a: &(usize, Vec<usize>), b: &(usize, Vec<usize>)) -> bool {
        let zone = |n: usize| self.state.nodes[n].zone.as_ref();
        let same_zone = a.0 == b.0 || (zone(a.0).is_some() && zone(a.0) == zone(b.0));
        match spread {
            None => true,
            Some(Spread::DistinctGpus) => a.1.iter().all(|g| !b.1.contains(g)),
            Some(Spread::DistinctNodes) => a.0 != b.0,
            Some(Spread::SameNode) => a.0 == b.0,
            Some(Spread::DistinctZones) => !same_zone,
            Some(Spread::SameZone) => same_zone,
        }
    }
}

fn draws(gpu: &Gpu) -> Option<[u64; 4]> {
    let (idle, full) = (gpu.power.idle_w?, gpu.power.full_w?);
    let most = gpu.power_limit_w.unwrap_or(full);
    Some([idle, gpu.power.active_w.unwrap_or(idle), full, most].map(|watts| u64::from(watts) * 1000))
}

fn bit_of(device: &Device, part: &Part) -> Bit {
    let position = |name: &str| device.model.profiles.iter().position(|p| p.name == name).unwrap();
    match part {
        Part::NodeOnly | Part::Whole => Bit::Whole,
        Part::Instance { profile, start, .. } => Bit::Instance((position(profile), *start)),
        Part::Compute { profile, start, compute_profile, compute_start, .. } => {
            let outer = position(profile);
            let inside = &device.model.profiles[outer].compute_instances;
            let inner = inside.iter().position(|c| c.name == *compute_profile).unwrap();
            Bit::Compute((outer, *start), (inner, *compute_start))
        }
        Part::Share { share } => Bit::Share(device.types.iter().position(|t| t.name == *share).unwrap()),
        Part::Fraction { milli, memory_mib, contexts } => {
            Bit::Fraction((*milli).into(), (*memory_mib).into(), (*contexts).into())
        }
    }
}
