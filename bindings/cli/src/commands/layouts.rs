//! `slicewise layouts`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;
use slicewise::Catalog;
use slicewise::space::{Grid, LayoutCounts, ProfileSet, count_layouts};

use crate::failure::{BAD_INPUT, Failure};
use crate::io;

/// Legal sets counted before giving up: far beyond every model of the catalog.
const LEGAL_MAX: u64 = 5_000_000;

/// Count the layouts of a GPU model.
#[derive(Args)]
pub struct Layouts {
    /// Id or product name of the model.
    model: String,
    /// Which profiles to count with.
    #[arg(long, value_enum, default_value = "base")]
    profiles: Profiles,
    /// Print `maximal`, `multisets` and `legal` as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Profiles {
    /// The plain ones with the least memory for their compute slices.
    Base,
    /// Those and the double-memory ones.
    Double,
    /// Every profile, engines applied.
    All,
}

#[derive(Serialize)]
struct Output<'a> {
    model: &'a str,
    maximal: u64,
    multisets: u64,
    legal: u64,
}

impl Layouts {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let bad = |text: String| Failure::plain(BAD_INPUT, text);
        let catalog = Catalog::built_in().map_err(|e| bad(e.to_string()))?;
        let model = catalog.find(&self.model).ok_or_else(|| {
            let ids: Vec<&str> = catalog.models().map(|m| m.id.as_str()).collect();
            bad(format!("unknown model `{}`; the catalog has {}", self.model, ids.join(", ")))
        })?;
        if !model.has_placements() {
            return Err(bad(format!(
                "placements of `{}` are not published; read them from the device with `nvidia-smi mig -lgipp`",
                model.id
            )));
        }
        let grid = Grid::of(model, &[], None);
        let set = match self.profiles {
            Profiles::Base => ProfileSet::Base,
            Profiles::Double => ProfileSet::Double,
            Profiles::All => ProfileSet::All,
        };
        let LayoutCounts { maximal, multisets, legal } =
            count_layouts(&grid, set, LEGAL_MAX).ok_or_else(|| bad(format!("more than {LEGAL_MAX} legal layouts")))?;
        if self.json {
            io::print_json(&Output { model: &model.id, maximal, multisets, legal })?;
        } else {
            io::print(&format!(
                "{}\n  {maximal} maximal layouts ({multisets} as multisets of profiles), {legal} legal sets\n",
                model.id
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
