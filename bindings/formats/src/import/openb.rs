//! Node and pod tables of the Alibaba GPU traces (openb).

use serde::Deserialize;
use slicewise_core::catalog::Model;
use slicewise_core::fleet::{Gpu, Node};
use slicewise_core::workload::{Ask, Fraction, WholeGpus, Workload};

use super::draft::Draft;
use super::{ImportError, ImportFault, Source};
use crate::document::{csv_error, strip_bom};

#[derive(Deserialize)]
struct NodeRow {
    sn: String,
    cpu_milli: u64,
    memory_mib: u64,
    gpu: u32,
    #[serde(default)]
    model: String,
}

#[derive(Deserialize)]
struct PodRow {
    name: String,
    cpu_milli: u64,
    memory_mib: u64,
    num_gpu: u32,
    gpu_milli: u16,
    #[serde(default)]
    gpu_spec: String,
}

/// More GPUs than any node of a trace has.
const GPUS_MAX: u32 = 1024;

/// Reads node tables into the fleet and pod tables into requests; the header tells which.
///
/// # Errors
/// See [`super::import`].
pub(super) fn import(files: &[Source<'_>], draft: &mut Draft<'_>) -> Result<(), ImportError> {
    for file in files {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(strip_bom(file.text).as_bytes());
        let headers = reader.headers().cloned().map_err(|e| csv_error(file.name, &e))?;
        let has = |name: &str| headers.iter().any(|h| h == name);
        let (nodes, pods) = (has("sn") && has("gpu"), has("num_gpu") && has("gpu_milli"));
        if !nodes && !pods {
            let fault = ImportFault::ListingMissing {
                wanted: "table of nodes or pods".to_owned(),
                found: format!("a table of `{}`", headers.iter().take(6).collect::<Vec<_>>().join(",")),
                hint: "the header must begin like `sn,cpu_milli,memory_mib,gpu,model` or \
                       `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec`"
                    .to_owned(),
            };
            return Err(ImportError::new(fault).at(file.name, Some(1)));
        }
        for record in reader.records() {
            let record = record.map_err(|e| csv_error(file.name, &e))?;
            let line = record.position().and_then(|p| usize::try_from(p.line()).ok());
            let result = if nodes {
                let row = record.deserialize(Some(&headers)).map_err(|e| csv_error(file.name, &e))?;
                node(row, draft)
            } else {
                let row = record.deserialize(Some(&headers)).map_err(|e| csv_error(file.name, &e))?;
                pod(row).map(|request| draft.requests.push(request))
            };
            result.map_err(|e| e.at(file.name, line))?;
        }
    }
    distinct(draft)
}

fn node(row: NodeRow, draft: &mut Draft<'_>) -> Result<(), ImportError> {
    if row.gpu > GPUS_MAX {
        return Err(ImportFault::Malformed(format!("{} GPUs on one node", row.gpu)).into());
    }
    let mut gpus = Vec::new();
    if row.gpu > 0 {
        let model = model(&row.model, draft)?;
        gpus.extend((0..row.gpu).map(|i| Gpu { index: Some(i), model: model.clone(), ..Gpu::default() }));
    }
    let node = Node {
        name: row.sn,
        cpu_milli: Some(row.cpu_milli),
        memory_mib: Some(row.memory_mib),
        gpus,
        ..Node::default()
    };
    draft.state.nodes.push(node);
    Ok(())
}

/// The trace's own names are ids of models used as a whole or in fractions.
fn model(name: &str, draft: &mut Draft<'_>) -> Result<String, ImportError> {
    if name.is_empty() {
        return Err(ImportFault::Malformed("a node with GPUs names no model".to_owned()).into());
    }
    if draft.catalog.find(name).is_none() {
        draft.declare(Model { id: name.to_owned(), ..Model::default() })?;
    }
    Ok(name.to_owned())
}

fn pod(row: PodRow) -> Result<Workload, ImportError> {
    let ask = match (row.num_gpu, row.gpu_milli) {
        (0, _) => Ask::NodeOnly {},
        (1, milli @ 1..1000) => Ask::Fraction(Fraction { milli, ..Fraction::default() }),
        (count, 1000) => Ask::Gpus(WholeGpus { count, ..WholeGpus::default() }),
        (count, milli) => {
            let text = format!("{count} GPUs of {milli} thousandths each: only a single GPU can be shared");
            return Err(ImportFault::Malformed(text).into());
        }
    };
    let models = match ask {
        // Where no GPU is asked its model is of no matter.
        Ask::NodeOnly {} => Vec::new(),
        _ => row.gpu_spec.split('|').map(str::trim).filter(|m| !m.is_empty()).map(str::to_owned).collect(),
    };
    Ok(Workload {
        name: row.name,
        count: 1,
        any_of: vec![ask],
        cpu_milli: row.cpu_milli,
        memory_mib: row.memory_mib,
        models,
        ..Workload::default()
    })
}

fn distinct(draft: &Draft<'_>) -> Result<(), ImportError> {
    let nodes = draft.state.nodes.iter().map(|n| n.name.as_str());
    let requests = draft.requests.iter().map(|r| r.name.as_str());
    for names in [nodes.collect::<Vec<_>>(), requests.collect()] {
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = names.into_iter().find(|name| !seen.insert(*name)) {
            return Err(ImportFault::Contradiction(format!("`{twice}` is there twice")).into());
        }
    }
    Ok(())
}
