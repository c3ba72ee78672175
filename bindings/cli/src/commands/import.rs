//! `slicewise import`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use slicewise::formats::{self, Document, Imported, Kind, Options, Source, import};
use slicewise::{Catalog, Engine};

use crate::failure::Failure;
use crate::io::{self, Text};
use crate::{draw, table};

/// Turn what machines print into a state document.
#[derive(Args)]
pub struct Import {
    /// What the files are: smi-l, mig-lgip, mig-lgipp, mig-lgi, mig-lci, smi-xml, topo,
    /// mig-parted, resourceslice, node or openb.
    #[arg(value_name = "KIND")]
    kind: Kind,
    /// The files (`-` for standard input).
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Name of the node, where the text has none.
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Id or product name of the GPU model, where the text does not tell it.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Add to this state document instead of starting a new one.
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
    /// Which configuration of a mig-parted file.
    #[arg(long, value_name = "NAME")]
    config: Option<String>,
    /// Instances found are unused; without this they count as busy.
    #[arg(long)]
    idle: bool,
    /// Print the state document instead of a drawing.
    #[arg(long)]
    json: bool,
    /// Write the state document to a file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Import {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let texts = self.files.iter().map(|f| Text::read(f)).collect::<Result<Vec<_>, _>>()?;
        let into = self.into.as_ref().map(|f| Text::read(f)?.state()).transpose()?;
        let mut catalog = Catalog::built_in().map_err(|e| Failure::plain(crate::failure::BAD_INPUT, e.to_string()))?;
        for model in into.iter().flat_map(|s| &s.models) {
            catalog.add(model.clone()).map_err(|e| Failure::plain(crate::failure::BAD_INPUT, e.to_string()))?;
        }
        let options = Options { node: self.node, model: self.model, into, idle: self.idle, config: self.config };
        let sources: Vec<Source<'_>> = texts.iter().map(|t| Source { name: &t.name, text: &t.content }).collect();
        let imported = import(self.kind, &sources, &options, &catalog).map_err(|e| Failure::import(&texts, &e))?;
        imported.notes.iter().for_each(|note| io::warn(&format!("note: {note}")));
        let Imported { state, requests, .. } = imported;
        let engine = Engine::new(&state);
        let document = Document { requests, ..Document::from(state) };
        let json = formats::write_document(&document);
        if let Some(path) = &self.out {
            io::write(path, &json)?;
        }
        // What the engine would not accept is not worth printing as a state.
        let engine = match engine {
            Ok(engine) => engine,
            Err(e) => return Err(Failure::engine(&Text { name: "imported state".into(), content: json }, e)),
        };
        if self.json {
            io::print(&json)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut summary = table::table(&["node", "GPUs", "CPU milli", "memory MiB", "instances", "links"]);
        for node in document.nodes.iter().take(32) {
            let instances: usize = node.gpus.iter().map(|g| g.instances.len()).sum();
            summary.add_row([
                node.name.clone(),
                node.gpus.len().to_string(),
                table::known(node.cpu_milli),
                table::known(node.memory_mib),
                instances.to_string(),
                node.links.len().to_string(),
            ]);
        }
        let gpus: usize = document.nodes.iter().map(|n| n.gpus.len()).sum();
        let totals = format!("{} nodes, {gpus} GPUs, {} requests", document.nodes.len(), document.requests.len());
        io::print(&format!("{summary}\n{totals}\n\n{}", draw::fleet(engine.ledger())))?;
        Ok(ExitCode::SUCCESS)
    }
}
