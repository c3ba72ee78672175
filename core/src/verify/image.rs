//! The fleet of a state document with everything that is on it.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::kind::{Kind, Thing, cells_of};
use super::modes::may_be;
use super::power::RackImage;
use super::put::{On, Place, Refused};
use super::{Rule, Violation};
use crate::catalog::{Catalog, CpuPower};
use crate::fleet::{Gpu, Health, Mode, Node, Part, Placement};
use crate::workload::Requirement;

/// The fleet.
#[derive(Clone, Debug)]
pub(super) struct Image<'a> {
    pub(super) kinds: Vec<Kind<'a>>,
    pub(super) nodes: Vec<NodeImage<'a>>,
    pub(super) gpus: Vec<GpuImage<'a>>,
    pub(super) racks: Vec<RackImage<'a>>,
    by_name: BTreeMap<&'a str, usize>,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct NodeImage<'a> {
    pub(super) document: &'a Node,
    pub(super) gpus: Range<usize>,
    pub(super) cpu_milli: u64,
    pub(super) memory_mib: u64,
    pub(super) cpu: CpuPower,
    /// Position of its rack, where the state has racks.
    pub(super) rack: Option<usize>,
    /// Members and found instances on it.
    pub(super) users: u32,
    /// Leases on it that have labels, and those that keep away from some.
    pub(super) labelled: Vec<Resident<'a>>,
    pub(super) keeping: Vec<Resident<'a>>,
}

/// A lease on a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resident<'a> {
    pub(super) name: &'a str,
    pub(super) labels: &'a BTreeMap<String, String>,
    pub(super) keeps_away: &'a [Requirement],
}

/// A GPU.
#[derive(Clone, Debug)]
pub(super) struct GpuImage<'a> {
    pub(super) node: usize,
    pub(super) kind: usize,
    pub(super) index: u32,
    pub(super) document: &'a Gpu,
    pub(super) on: On,
}

/// A placement in positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Located {
    pub(super) node: usize,
    pub(super) on: Option<(usize, Place)>,
}

impl<'a> Image<'a> {
    /// Nodes and GPUs with nothing on them.
    pub(super) fn bare(catalog: &'a Catalog, nodes: &'a [Node]) -> Result<Self, Violation> {
        let (kinds, racks) = (Vec::new(), Vec::new());
        let mut image = Self { kinds, racks, nodes: Vec::new(), gpus: Vec::new(), by_name: BTreeMap::new() };
        for (i, document) in nodes.iter().enumerate() {
            let at = || alloc::format!("nodes[{i}]");
            if image.by_name.insert(&document.name, i).is_some() {
                let text = alloc::format!("`{}` is used twice", document.name);
                return Err(Violation::new(Rule::Duplicate, alloc::format!("nodes[{i}].name"), text));
            }
            let first = image.gpus.len();
            for (j, gpu) in document.gpus.iter().enumerate() {
                let index = match gpu.index {
                    Some(index) => index,
                    None => u32::try_from(j).unwrap_or(u32::MAX),
                };
                let kind =
                    image.kind_of(catalog, gpu).map_err(|v| v.within(&alloc::format!("nodes[{i}].gpus[{j}]")))?;
                image.gpus.push(GpuImage { node: i, kind, index, document: gpu, on: On::empty(gpu.mode) });
            }
            let mut indices: Vec<u32> = image.gpus.iter().skip(first).map(|g| g.index).collect();
            indices.sort_unstable();
            if !indices.is_sorted_by(|a, b| a < b) {
                return Err(Violation::new(Rule::Duplicate, at(), "two GPUs have the same index"));
            }
            let cpu = catalog
                .cpu_power(document)
                .map_err(|e| Violation::new(Rule::Document, e.path(), alloc::format!("{}", e.fault())).within(&at()))?;
            image.nodes.push(NodeImage {
                document,
                gpus: first..image.gpus.len(),
                cpu_milli: 0,
                memory_mib: 0,
                cpu,
                rack: None,
                users: 0,
                labelled: Vec::new(),
                keeping: Vec::new(),
            });
        }
        Ok(image)
    }

    fn kind_of(&mut self, catalog: &'a Catalog, gpu: &'a Gpu) -> Result<usize, Violation> {
        // Fleets are long runs of alike GPUs: the kind of the last one is the likeliest.
        let last = self.gpus.last().map(|g| g.kind);
        let known =
            last.into_iter().chain(0..self.kinds.len()).find(|k| self.kinds.get(*k).is_some_and(|k| k.is_of(gpu)));
        if let Some(known) = known {
            return Ok(known);
        }
        let first = self.kinds.len();
        let modes: Vec<Mode> = Mode::ALL.into_iter().filter(|mode| may_be(gpu, *mode)).collect();
        let all = first..first + modes.len();
        let mut own = first;
        for (position, mode) in all.clone().zip(modes) {
            let mut kind = Kind::of(catalog, gpu, mode)?;
            kind.siblings = all.clone().filter(|other| *other != position).collect();
            self.kinds.push(kind);
            if mode == gpu.mode {
                own = position;
            }
        }
        Ok(own)
    }

    /// The kinds that a GPU is of or can be given: others only while nothing uses it, and
    /// with `keep_idle` only while nothing is on it.
    pub(super) fn kinds_of(&self, gpu: usize, keep_idle: bool) -> Vec<usize> {
        let Some(found) = self.gpus.get(gpu) else { return Vec::new() };
        let may = found.on.is_unused() && !(keep_idle && super::modes::has_idle(&found.on));
        let others = self.kinds.get(found.kind).filter(|_| may).map_or(&[][..], |k| &k.siblings);
        core::iter::once(found.kind).chain(others.iter().copied()).collect()
    }

    pub(super) fn kind(&self, gpu: usize) -> Option<&Kind<'a>> {
        self.kinds.get(self.gpus.get(gpu)?.kind)
    }

    pub(super) fn node_named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The GPU with this index on a node.
    pub(super) fn gpu_at(&self, node: usize, index: u32) -> Option<usize> {
        let range = self.nodes.get(node)?.gpus.clone();
        let has = |gpu: &usize| self.gpus.get(*gpu).is_some_and(|g| g.index == index);
        // Most nodes count their GPUs from zero.
        let likely = range.start.checked_add(usize::try_from(index).ok()?).filter(|g| range.contains(g));
        likely.filter(has).or_else(|| range.clone().find(has))
    }

    /// How people call a GPU.
    pub(super) fn say(&self, gpu: usize) -> String {
        let Some(found) = self.gpus.get(gpu) else { return alloc::format!("GPU #{gpu}") };
        let node = self.nodes.get(found.node).map_or("", |n| n.document.name.as_str());
        alloc::format!("GPU {} of node `{node}`", found.index)
    }

    /// Why a GPU takes nothing new.
    pub(super) fn closed(&self, gpu: usize) -> Option<Rule> {
        let found = self.gpus.get(gpu)?;
        if found.document.health != Health::Healthy {
            return Some(Rule::Health);
        }
        let node = self.nodes.get(found.node).is_some_and(|n| n.document.cordoned);
        (found.document.cordoned || node).then_some(Rule::Cordoned)
    }

    /// Reads a placement: its node, its GPU, and what of it, with the size that it claims.
    pub(super) fn locate(&self, placement: &Placement) -> Result<Located, Violation> {
        let unknown = |at: &str, text: String| Violation::new(Rule::Unknown, at, text);
        let node = self
            .node_named(&placement.node)
            .ok_or_else(|| unknown("node", alloc::format!("no node `{}`", placement.node)))?;
        if placement.part == Part::NodeOnly {
            if placement.gpu.is_some() {
                return Err(Violation::new(Rule::Document, "gpu", "`node_only` is on no GPU"));
            }
            return Ok(Located { node, on: None });
        }
        let index = placement.gpu.ok_or_else(|| Violation::new(Rule::Document, "gpu", "no GPU is named"))?;
        let gpu =
            self.gpu_at(node, index).ok_or_else(|| unknown("gpu", alloc::format!("no GPU {index} on the node")))?;
        let own = self.gpus.get(gpu).and_then(|g| g.document.uuid.as_ref());
        if let (Some(own), Some(said)) = (own, &placement.uuid)
            && own != said
        {
            return Err(unknown("uuid", alloc::format!("{} is `{own}`, not `{said}`", self.say(gpu))));
        }
        let kind = self.kind(gpu).ok_or_else(|| unknown("gpu", String::from("no such GPU")))?;
        let place = read_part(kind, &placement.part)?;
        Ok(Located { node, on: Some((gpu, place)) })
    }

    /// Puts something on a GPU.
    pub(super) fn put(
        &mut self,
        gpu: usize,
        place: Place,
        owner: Option<super::put::Owner>,
    ) -> Result<Vec<super::put::Piece>, Refused> {
        let missing = || (Rule::Unknown, String::from("no such GPU"));
        let found = self.gpus.get_mut(gpu).ok_or_else(missing)?;
        let kind = self.kinds.get(found.kind).ok_or_else(missing)?;
        found.on.put(kind, place, owner)
    }

    /// Adds a member's CPU and memory to its node; whether the node has that much.
    pub(super) fn charge(&mut self, node: usize, cpu_milli: u64, memory_mib: u64) -> Result<(), Refused> {
        let Some(found) = self.nodes.get_mut(node) else { return Ok(()) };
        found.cpu_milli = found.cpu_milli.saturating_add(cpu_milli);
        found.memory_mib = found.memory_mib.saturating_add(memory_mib);
        found.users += 1;
        let short = |needed: u64, taken: u64, has: Option<u64>| needed > 0 && has.is_some_and(|has| taken > has);
        if short(cpu_milli, found.cpu_milli, found.document.cpu_milli) {
            let text = alloc::format!("{} milli-CPU are more than node `{}` has", found.cpu_milli, found.document.name);
            return Err((Rule::NodeResources, text));
        }
        if short(memory_mib, found.memory_mib, found.document.memory_mib) {
            let text = alloc::format!("{} MiB are more than node `{}` has", found.memory_mib, found.document.name);
            return Err((Rule::NodeResources, text));
        }
        Ok(())
    }

    /// Takes a member's CPU and memory off its node.
    pub(super) fn discharge(&mut self, node: usize, cpu_milli: u64, memory_mib: u64) {
        if let Some(found) = self.nodes.get_mut(node) {
            found.cpu_milli = found.cpu_milli.saturating_sub(cpu_milli);
            found.memory_mib = found.memory_mib.saturating_sub(memory_mib);
            found.users = found.users.saturating_sub(1);
        }
    }

    /// Notes a lease on a node, once.
    pub(super) fn reside(&mut self, node: usize, resident: Resident<'a>) {
        let Some(found) = self.nodes.get_mut(node) else { return };
        let is_new = |list: &[Resident<'a>]| list.last().is_none_or(|r| r.name != resident.name);
        if !resident.labels.is_empty() && is_new(&found.labelled) {
            found.labelled.push(resident);
        }
        if !resident.keeps_away.is_empty() && is_new(&found.keeping) {
            found.keeping.push(resident);
        }
    }

    /// Removes what [`Image::reside`] noted.
    pub(super) fn leave(&mut self, node: usize, name: &str) {
        if let Some(found) = self.nodes.get_mut(node) {
            found.labelled.retain(|r| r.name != name);
            found.keeping.retain(|r| r.name != name);
        }
    }
}

fn read_part(kind: &Kind<'_>, part: &Part) -> Result<Place, Violation> {
    let unknown = |at: &str, name: &str| {
        Violation::new(Rule::NotOffered, at, alloc::format!("`{}` here has no `{name}`", kind.model.id))
    };
    let instance = |name: &str, size: u16| {
        let Some(Thing::Instance(profile)) = kind.named(name) else { return Err(unknown("profile", name)) };
        let own = kind.profile(profile).map_or(0, cells_of);
        if own != size {
            let text = alloc::format!("`{name}` covers {own} cells, not {size}");
            return Err(Violation::new(Rule::Size, "size", text));
        }
        Ok(profile)
    };
    Ok(match part {
        Part::NodeOnly | Part::Whole => Place::Whole,
        Part::Instance { profile, start, size } => {
            Place::Instance { profile: instance(profile, *size)?, start: *start }
        }
        Part::Compute { profile, start, size, compute_profile, compute_start } => {
            let outer = instance(profile, *size)?;
            let own = kind.profile(outer).map(|p| p.compute_instances.iter());
            let inner = own.into_iter().flatten().position(|c| c.name == *compute_profile);
            let inner = inner.ok_or_else(|| unknown("compute_profile", compute_profile))?;
            Place::Compute { profile: outer, start: *start, inner, inner_start: *compute_start }
        }
        Part::Share { share } => match kind.named(share) {
            Some(Thing::Share(position)) => Place::Share(position),
            _ => return Err(unknown("share", share)),
        },
        Part::Fraction { milli, memory_mib, contexts } => {
            Place::Fraction { milli: *milli, mib: *memory_mib, users: *contexts }
        }
    })
}
