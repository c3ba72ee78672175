//! What one device of a document offers in its mode: the mode's profiles or shares in the
//! words of a [`Model`], with the limits that are the device's own.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Board, Catalog, GpuDraw, Model, ShareType};
use crate::error::{Fault, InputError};
use crate::fleet::{Gpu, Mode, Sharing, SpaceKind};

/// Client contexts of an MPS server, by CUDA version (Volta and newer).
/// Source: CUDA MPS documentation, "Client-Server Connection Limits".
const MPS_CONTEXTS: u16 = 48;
const MPS_CONTEXTS_CUDA_13_1: u16 = 60;
/// What a time-slicing replica is asked by, on every model.
pub(super) const REPLICA: &str = "replica";
/// Software fractions of one GPU at most: no limit that anyone meets.
const FRACTIONS_MAX: u16 = u16::MAX - 2;

/// What a device offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer<'a> {
    /// The model, with what its mode offers: profiles of a grid, share types.
    pub model: &'a Model,
    /// Shares that may be taken, under the device's limits.
    pub shares: Vec<ShareType>,
    /// Most instances or vGPUs at once, whatever they are.
    pub max_instances: Option<u16>,
    /// What may be divided.
    pub amounts: Amounts,
    /// What it draws, where known.
    pub draw: Option<GpuDraw>,
}

/// Divisible amounts of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Units of compute: thousandths of the GPU, or chunks under static MPS partitioning.
    pub compute: u16,
    /// What may be asked of those in thousandths; a percentage is scaled and rounded up.
    pub compute_of_whole: u16,
    /// Memory in MiB, where known.
    pub memory_mib: Option<u32>,
    /// Users or client contexts at once.
    pub users: u16,
}

impl Catalog {
    /// What a GPU of a document offers in its mode.
    ///
    /// # Errors
    /// A model in no catalog, a mode the model does not have, a board that is not the
    /// model's or not named where there are several, a setting that its mode needs or that
    /// is out of range, watts that cannot be: see [`Catalog::gpu_draw`].
    pub fn offer(&self, gpu: &Gpu) -> Result<Offer<'_>, InputError> {
        let base =
            self.find(&gpu.model).ok_or_else(|| InputError::new("model", Fault::UnknownModel(gpu.model.clone())))?;
        let model = match gpu.mode {
            Mode::Vgpu | Mode::VgpuMixed | Mode::VgpuMig => self.board_offer(base, gpu)?,
            _ => base,
        };
        let sharing = &gpu.sharing;
        let within = |e: InputError| e.within("sharing");
        let shares = match gpu.mode {
            Mode::TimeSlicing => replicas(sharing).map_err(within)?,
            Mode::Partitions => partitions(model, sharing).map_err(within)?,
            _ if gpu.mode.space() == SpaceKind::Uniform => model.share_types.clone(),
            _ => Vec::new(),
        };
        let has = match gpu.mode.space() {
            SpaceKind::Grid => !model.profiles.is_empty() || (gpu.mode == Mode::Mig && !gpu.profiles.is_empty()),
            SpaceKind::Uniform => !shares.is_empty(),
            SpaceKind::Fluid => true,
        };
        if !has {
            let fault = Fault::ModeNotOffered { model: base.id.clone(), mode: gpu.mode.name().to_string() };
            return Err(InputError::new("mode", fault));
        }
        // A setting may be there for another mode that the GPU may be in.
        let counted = |mode: &Mode| !matches!(mode, Mode::VgpuMig | Mode::Mig);
        let functions = sharing.virtual_functions.filter(|_| counted(&gpu.mode));
        if sharing.virtual_functions.is_some() && functions.is_none() && !gpu.modes.iter().any(counted) {
            let text = alloc::format!("is not counted in mode `{}`; leave it out", gpu.mode.name());
            return Err(InputError::new("sharing.virtual_functions", Fault::Invalid(text)));
        }
        let most = |own: u16| functions.map_or(own, |n| n.min(own));
        let shares = shares.into_iter().map(|s| ShareType { max_per_gpu: most(s.max_per_gpu), ..s }).collect();
        let max_instances = model.max_gpu_instances.map(most).or(functions);
        let amounts = amounts(gpu, base).map_err(within)?;
        Ok(Offer { model, shares, max_instances, amounts, draw: self.gpu_draw(gpu)? })
    }

    /// Whether a model offers something of this name in a mode other than `mode`.
    pub fn offers_beside(&self, model: &str, mode: Mode, name: &str) -> bool {
        let Some(base) = self.find(model) else { return false };
        let mig =
            |m: &Model| m.profiles.iter().any(|p| p.name == name || p.compute_instances.iter().any(|c| c.name == name));
        let type_modes = |t: &super::VgpuType| match t.backing {
            super::Backing::Mig => [Mode::VgpuMig; 2],
            super::Backing::TimeSliced => [Mode::Vgpu, Mode::VgpuMixed],
        };
        let boards = self.boards().filter(|b| b.model == base.id);
        let mut types = boards.flat_map(|b| &b.types).filter(|t| t.name == name);
        (mode != Mode::Mig && mig(base))
            || (mode != Mode::Shares && base.share_types.iter().any(|s| s.name == name))
            // Partitions of another memory mode count too: the hive would have to change it.
            || partition_names(base).any(|own| own == name)
            || types.any(|t| !type_modes(t).contains(&mode))
    }

    fn board_offer(&self, base: &Model, gpu: &Gpu) -> Result<&Model, InputError> {
        let slot = match gpu.mode {
            Mode::Vgpu => 0,
            Mode::VgpuMixed => 1,
            _ => 2,
        };
        let of_model = |b: &Board| b.model == base.id;
        let named = |b: &Board| match &gpu.sharing.board {
            Some(name) => {
                b.prefix.eq_ignore_ascii_case(name)
                    || b.pci_device.as_ref().is_some_and(|pci| pci.eq_ignore_ascii_case(name))
            }
            None => true,
        };
        let boards = self.vgpu.boards.iter().zip(&self.vgpu.offers);
        let mut fit = boards.filter(|(board, _)| of_model(board) && named(board));
        let not_offered = || {
            let fault = Fault::ModeNotOffered { model: base.id.clone(), mode: gpu.mode.name().to_string() };
            InputError::new("mode", fault)
        };
        match (fit.next(), fit.next()) {
            (Some((_, offers)), None) => offers.get(slot).ok_or_else(not_offered),
            (None, _) if gpu.sharing.board.is_none() => Err(not_offered()),
            (None, _) => {
                let name = gpu.sharing.board.clone().unwrap_or_default();
                Err(InputError::new("sharing.board", Fault::Unknown { kind: "vGPU board of this model", name }))
            }
            (Some(_), Some(_)) => {
                let known: Vec<&str> = self.boards().filter(|b| of_model(b)).map(|b| b.prefix.as_str()).collect();
                let text = alloc::format!("`{}` is on several boards; say which: {}", base.id, known.join(", "));
                Err(InputError::new("sharing.board", Fault::Invalid(text)))
            }
        }
    }
}

fn replicas(sharing: &Sharing) -> Result<Vec<ShareType>, InputError> {
    let Some(replicas) = sharing.replicas else {
        let text = String::from("a GPU in mode `time_slicing` says how many replicas it advertises");
        return Err(InputError::new("replicas", Fault::Invalid(text)));
    };
    if replicas == 0 {
        return Err(InputError::new("replicas", Fault::OutOfRange { value: 0, min: 1, max: u16::MAX.into() }));
    }
    Ok(Vec::from([ShareType { name: String::from(REPLICA), max_per_gpu: replicas, ..ShareType::default() }]))
}

/// The compute modes that go with the memory mode in force. Changing the compute mode needs
/// an idle GPU, which is what the lock of equal shares says.
fn partitions(model: &Model, sharing: &Sharing) -> Result<Vec<ShareType>, InputError> {
    let known = |name: &&String| model.partition_modes.iter().any(|m| m.memory_modes.contains(name));
    let memory_mode = match &sharing.memory_mode {
        Some(given) => {
            let upper = given.to_ascii_uppercase();
            if !known(&&upper) {
                let fault = Fault::Unknown { kind: "memory mode of this model", name: given.clone() };
                return Err(InputError::new("memory_mode", fault));
            }
            upper
        }
        None => match &model.memory_mode {
            Some(start) => start.clone(),
            None => String::from("NPS1"),
        },
    };
    let fit = model.partition_modes.iter().filter(|m| m.memory_modes.contains(&memory_mode));
    Ok(fit
        .map(|m| ShareType {
            name: partition_name(&m.compute_mode, &memory_mode),
            max_per_gpu: m.partitions,
            memory_mib: m.memory_mib,
            size: None,
        })
        .collect())
}

/// `CPX`, `NPS4` → `cpx_nps4`, as AMD's device plugin names resources.
fn partition_name(compute: &str, memory: &str) -> String {
    alloc::format!("{}_{}", compute.to_ascii_lowercase(), memory.to_ascii_lowercase())
}

/// Names of all partitions of a model.
pub(super) fn partition_names(model: &Model) -> impl Iterator<Item = String> {
    let modes = model.partition_modes.iter();
    modes.flat_map(|m| m.memory_modes.iter().map(|memory| partition_name(&m.compute_mode, memory)))
}

fn amounts(gpu: &Gpu, base: &Model) -> Result<Amounts, InputError> {
    let memory_mib = gpu.memory_mib.or_else(|| base.memory_mib_least());
    let sharing = &gpu.sharing;
    if gpu.mode != Mode::Mps {
        return Ok(Amounts { compute: 1000, compute_of_whole: 1000, memory_mib, users: FRACTIONS_MAX });
    }
    let range = |field: &str, value: u16, max: u64| {
        Err(InputError::new(field, Fault::OutOfRange { value: value.into(), min: 1, max }))
    };
    let users = match &sharing.cuda {
        None => MPS_CONTEXTS,
        Some(version) => contexts(version)?,
    };
    if let Some(chunks) = sharing.static_chunks {
        if chunks == 0 || chunks > 1000 {
            return range("static_chunks", chunks, 1000);
        }
        return Ok(Amounts { compute: chunks, compute_of_whole: chunks, memory_mib, users });
    }
    let percent = sharing.threads_percent_max.unwrap_or(100);
    if percent == 0 || percent > 1000 {
        return range("threads_percent_max", percent, 1000);
    }
    Ok(Amounts { compute: percent * 10, compute_of_whole: 1000, memory_mib, users })
}

fn contexts(cuda: &str) -> Result<u16, InputError> {
    let invalid =
        || InputError::new("cuda", Fault::Invalid(alloc::format!("`{cuda}` is not a CUDA version such as 13.1")));
    let (major, minor) = cuda.split_once('.').unwrap_or((cuda, "0"));
    let minor = minor.split('.').next().unwrap_or("0");
    let version: (u16, u16) = (major.parse().map_err(|_| invalid())?, minor.parse().map_err(|_| invalid())?);
    Ok(if version >= (13, 1) { MPS_CONTEXTS_CUDA_13_1 } else { MPS_CONTEXTS })
}

impl Amounts {
    /// Thousandths of the GPU's compute in the device's units, rounded up.
    pub fn units(self, milli: u16) -> u16 {
        let scaled = u32::from(milli) * u32::from(self.compute_of_whole);
        u16::try_from(scaled.div_ceil(1000)).unwrap_or(u16::MAX)
    }
}
