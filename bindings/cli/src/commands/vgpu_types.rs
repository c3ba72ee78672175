//! `slicewise vgpu-types`.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use slicewise::Catalog;
use slicewise::catalog::{Backing, Board, VgpuPlacement, VgpuStatus, VgpuType};

use crate::failure::{BAD_INPUT, Failure};
use crate::{io, table};

/// Show the vGPU types of a board: counts, placement ids, and how well they are known.
#[derive(Args)]
pub struct VgpuTypes {
    /// Prefix of the type names (`L40S`), PCI device id (`26B9`) or name of the board; all
    /// boards if absent.
    board: Option<String>,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Output<'a> {
    board: &'a str,
    name: &'a str,
    architecture: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pci_device: Option<&'a str>,
    model: &'a str,
    framebuffer_gb: u32,
    mixed_size_supported: bool,
    /// Most vGPUs on the GPU, whatever their types.
    vgpus_max: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    /// PCI ids of other boards with the same prefix.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    same_prefix: Vec<&'a str>,
    types: Vec<TypeRow<'a>>,
}

#[derive(Serialize)]
struct TypeRow<'a> {
    name: &'a str,
    series: &'a str,
    gfx: bool,
    backing: Backing,
    nominal_gb: u32,
    framebuffer_mib: Option<u32>,
    #[serde(flatten)]
    counts: Counts<'a>,
    status: VgpuStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflict: Option<&'a str>,
    sources: &'a [String],
}

#[derive(Serialize)]
#[serde(untagged)]
enum Counts<'a> {
    TimeSliced {
        max_per_gpu_equal_size: u16,
        /// What holds beside other sizes: the documented number, and no more than there are
        /// placement ids.
        max_per_gpu_mixed_size: Option<u16>,
        #[serde(skip_serializing_if = "Option::is_none")]
        documented_mixed_size: Option<u16>,
        placement: Option<&'a VgpuPlacement>,
    },
    Mig {
        max_per_gpu: u16,
        max_per_gpu_instance: u16,
        gi_profile: Option<&'a str>,
        gi_compute_slices: Option<u16>,
    },
}

impl VgpuTypes {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let bad = |text: String| Failure::plain(BAD_INPUT, text);
        let catalog = Catalog::built_in().map_err(|e| bad(e.to_string()))?;
        let Some(name) = &self.board else {
            if self.json {
                io::print_json(&catalog.boards().collect::<Vec<_>>())?
            } else {
                io::print(&all(&catalog))?
            }
            return Ok(ExitCode::SUCCESS);
        };
        let mut boards = catalog.find_boards(name);
        let board = boards.next().ok_or_else(|| {
            let known: Vec<&str> = catalog.boards().map(|b| b.prefix.as_str()).collect();
            bad(format!("unknown vGPU board `{name}`; the catalog has {}", known.join(", ")))
        })?;
        let others = boards.filter(|b| b.prefix == board.prefix).filter_map(|b| b.pci_device.as_deref()).collect();
        if self.json {
            io::print_json(&output(board, others))?
        } else {
            io::print(&one(board, &others))?
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn output<'a>(board: &'a Board, same_prefix: Vec<&'a str>) -> Output<'a> {
    Output {
        board: &board.prefix,
        name: &board.name,
        architecture: &board.architecture,
        pci_device: board.pci_device.as_deref(),
        model: &board.model,
        framebuffer_gb: board.framebuffer_gb,
        mixed_size_supported: board.mixed_size,
        vgpus_max: board.vgpus_max(),
        note: board.note.as_deref(),
        same_prefix,
        types: board.types.iter().map(row).collect(),
    }
}

fn row(one: &VgpuType) -> TypeRow<'_> {
    let counts = match one.backing {
        Backing::TimeSliced => Counts::TimeSliced {
            max_per_gpu_equal_size: one.max_per_gpu,
            max_per_gpu_mixed_size: one.mixed_size_max(),
            documented_mixed_size: one.max_per_gpu_mixed_size,
            placement: one.placement.as_ref(),
        },
        Backing::Mig => Counts::Mig {
            max_per_gpu: one.max_per_gpu,
            max_per_gpu_instance: one.max_per_gpu_instance.unwrap_or(1),
            gi_profile: one.gi_profile.as_deref(),
            gi_compute_slices: one.gi_compute_slices,
        },
    };
    TypeRow {
        name: &one.name,
        series: &one.series,
        gfx: one.gfx,
        backing: one.backing,
        nominal_gb: one.nominal_gb,
        framebuffer_mib: one.framebuffer_mib,
        counts,
        status: one.status(),
        conflict: one.conflict.as_deref(),
        sources: &one.sources,
    }
}

fn all(catalog: &Catalog) -> String {
    let mut rows = table::table(&["board", "PCI", "model", "GB", "mixed sizes", "time-sliced", "on MIG", "name"]);
    for board in catalog.boards() {
        let sliced = board.time_sliced().count();
        rows.add_row([
            board.prefix.clone(),
            table::known(board.pci_device.clone()),
            board.model.clone(),
            board.framebuffer_gb.to_string(),
            if board.mixed_size { "yes" } else { "no" }.to_string(),
            sliced.to_string(),
            (board.types.len() - sliced).to_string(),
            board.name.clone(),
        ]);
    }
    format!("{rows}\n")
}

fn one(board: &Board, others: &[&str]) -> String {
    let ids = |ids: Option<&Vec<u16>>| {
        ids.map_or_else(|| "-".to_string(), |ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    };
    let mut rows =
        table::table(&["type", "MiB", "equal size", "mixed sizes", "ids beside other sizes", "GPU instance", "status"]);
    for one in &board.types {
        let placement = one.placement.as_ref();
        let behind = one.gi_profile.as_ref().map(|gi| match one.max_per_gpu_instance {
            Some(n) if n > 1 => format!("{n} in one {gi}"),
            _ => gi.clone(),
        });
        rows.add_row([
            one.name.clone(),
            table::known(one.framebuffer_mib),
            one.max_per_gpu.to_string(),
            table::known(one.mixed_size_max()),
            ids(placement.and_then(|p| p.mixed_size_ids.as_ref())),
            behind.unwrap_or_else(|| "-".to_string()),
            format!("{:?}", one.status()).to_lowercase(),
        ]);
    }
    let mut text = format!("{} ({}), model {}\n{rows}\n", board.prefix, board.name, board.model);
    if let Some(note) = &board.note {
        text.push_str(&format!("{note}\n"));
    }
    if !others.is_empty() {
        text.push_str(&format!("Other boards with this prefix: PCI {}\n", others.join(", ")));
    }
    text.push_str("Placement ids follow from the driver's rule; no table of them is published.\n");
    text
}
