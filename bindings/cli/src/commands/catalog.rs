//! `slicewise catalog`.

use std::process::ExitCode;

use clap::Args;
use slicewise::{Catalog, Model};

use crate::failure::{BAD_INPUT, Failure};
use crate::{io, table};

/// Show what is known of GPU models.
#[derive(Args)]
pub struct Show {
    /// Id or product name; all models if absent.
    model: Option<String>,
    /// Print as JSON, sources included.
    #[arg(long)]
    json: bool,
}

impl Show {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let bad = |text: String| Failure::plain(BAD_INPUT, text);
        let catalog = Catalog::built_in().map_err(|e| bad(e.to_string()))?;
        match &self.model {
            Some(name) => {
                let model = catalog.find(name).ok_or_else(|| bad(format!("unknown model `{name}`")))?;
                if self.json { io::print_json(model)? } else { io::print(&one(&catalog, model))? }
            }
            None if self.json => io::print_json(&catalog.models().collect::<Vec<_>>())?,
            None => io::print(&all(&catalog))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn all(catalog: &Catalog) -> String {
    let mut rows =
        table::table(&["model", "product", "compute", "cells", "idle W", "full W", "profiles", "placements"]);
    for model in catalog.models() {
        rows.add_row([
            model.id.clone(),
            model.product_names.first().cloned().or_else(|| model.name.clone()).unwrap_or_default(),
            table::known(model.compute_slices),
            table::known(model.memory_slices),
            table::known(catalog.power(&model.id).idle_w),
            table::known(catalog.power(&model.id).full_w),
            model.profiles.len().to_string(),
            format!("{:?}", model.placements_status).to_lowercase(),
        ]);
    }
    format!("{rows}\n")
}

fn one(catalog: &Catalog, model: &Model) -> String {
    let mut rows = table::table(&[
        "profile",
        "id",
        "compute",
        "cells",
        "MiB",
        "SMs",
        "CE/DEC/ENC/JPEG/OFA",
        "max",
        "starts",
        "status",
    ]);
    for profile in &model.profiles {
        let engines = [profile.copy_engines, profile.decoders, profile.encoders, profile.jpeg, profile.ofa];
        let starts = profile.placements.as_ref().map_or_else(
            || "?".to_string(),
            |p| p.starts.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        );
        rows.add_row([
            profile.name.clone(),
            table::known(profile.id),
            profile.compute_slices.to_string(),
            table::known(profile.memory_slices),
            table::known(profile.memory_mib_least()),
            table::known(profile.sm),
            engines.map(table::known).join("/"),
            table::known(profile.max_instances),
            starts,
            format!("{:?}", profile.status),
        ]);
    }
    let power = catalog.power(&model.id);
    let row = catalog.power_row(&model.id);
    let status = row.map_or_else(|| String::from("unknown"), |row| table::word(&row.status));
    let watts = [power.idle_w, power.full_w].map(table::known);
    let keys = model.sources.iter().chain(row.into_iter().flat_map(|row| &row.sources));
    let sources: Vec<String> = keys.map(|key| format!("  {key}: {}", catalog.source(key).unwrap_or("?"))).collect();
    let notes: Vec<String> =
        model.notes.iter().chain(row.and_then(|row| row.note.as_ref())).map(|note| format!("  {note}")).collect();
    let [idle, full] = watts;
    let mut text = format!("{} ({})\n{rows}\n", model.id, model.name.as_deref().unwrap_or("?"));
    text.push_str(&format!("Power: {idle} W idle, {full} W full ({status})\n"));
    if !notes.is_empty() {
        text.push_str(&format!("Notes\n{}\n", notes.join("\n")));
    }
    text.push_str(&format!("Sources\n{}\n", sources.join("\n")));
    text
}
