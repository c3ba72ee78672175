//! `slicewise size`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use slicewise::perf::Range;
use slicewise::perf::memory::{ModelMemory, Precision, SizeAnswer, SizeAsk, Task, answer};
use slicewise::{Catalog, formats};

use crate::failure::{BAD_INPUT, Failure};
use crate::io::{self, Text};
use crate::table;

/// Say how much memory a model needs, which profiles hold it, and what happens when tenants
/// are promised more than there is.
#[derive(Args)]
pub struct Size {
    /// Question (JSON or YAML; `-` for standard input). Without it, the flags describe the model.
    #[arg(required_unless_present = "parameters", conflicts_with_all = ["parameters", "precision", "task", "layers", "kv_heads", "head_dim", "hidden", "context", "concurrency", "gpu"])]
    file: Option<PathBuf>,
    /// Parameters: `8030261248`, `8.03b` or `350m`.
    #[arg(long, value_parser = count)]
    parameters: Option<u64>,
    /// fp32, fp16, bf16, fp8, int8 or int4.
    #[arg(long, default_value = "bf16", value_parser = word::<Precision>)]
    precision: Precision,
    /// inference or training.
    #[arg(long, default_value = "inference", value_parser = word::<Task>)]
    task: Task,
    /// Layers.
    #[arg(long)]
    layers: Option<u64>,
    /// Heads of keys and values.
    #[arg(long)]
    kv_heads: Option<u64>,
    /// Size of a head.
    #[arg(long)]
    head_dim: Option<u64>,
    /// Hidden size.
    #[arg(long)]
    hidden: Option<u64>,
    /// Tokens of one sequence.
    #[arg(long)]
    context: Option<u64>,
    /// Sequences at once.
    #[arg(long)]
    concurrency: Option<u64>,
    /// GPU model whose profiles are looked through.
    #[arg(long)]
    gpu: Option<String>,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// A value by the name that documents have for it.
fn word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(text.to_owned())).map_err(|e| e.to_string())
}

/// A count, with `m` or `b` for millions and billions.
fn count(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is no count such as 8030261248, 8.03b or 350m");
    let folded = text.to_ascii_lowercase();
    let (number, digits) = match folded.strip_suffix('b') {
        Some(number) => (number, 9),
        None => folded.strip_suffix('m').map_or((folded.as_str(), 0), |number| (number, 6)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > digits || !fraction.chars().all(|c| c.is_ascii_digit()) {
        return Err(bad());
    }
    format!("{whole}{fraction:0<digits$}").parse().map_err(|_| bad())
}

impl Size {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let catalog = Catalog::built_in().map_err(|e| Failure::plain(BAD_INPUT, e.to_string()))?;
        let (text, ask) = match &self.file {
            Some(path) => {
                let text = Text::read(path)?;
                let ask = formats::read_size(&text.name, &text.content).map_err(|e| Failure::read(&text, &e))?;
                (text, ask)
            }
            None => (Text { name: "flags".into(), content: String::new() }, self.asked()),
        };
        let found = answer(&ask, &catalog).map_err(|e| Failure::input(&text, &e))?;
        if self.json {
            io::print_json(&found)?
        } else {
            io::print(&render(&found))?
        }
        Ok(ExitCode::SUCCESS)
    }

    fn asked(&self) -> SizeAsk {
        let model = ModelMemory {
            parameters: self.parameters.unwrap_or(0),
            precision: self.precision,
            task: self.task,
            layers: self.layers,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            hidden: self.hidden,
            context: self.context,
            concurrency: self.concurrency,
            ..ModelMemory::default()
        };
        SizeAsk { model: Some(model), gpu: self.gpu.clone(), ..SizeAsk::default() }
    }
}

fn render(found: &SizeAnswer) -> String {
    let mut text = String::new();
    if let Some(size) = &found.size {
        let mut rows = table::table(&["part", "low MiB", "expected", "high", "status", "formula"]);
        for part in &size.parts {
            let Range { low, expected, high } = part.mib;
            let status = table::word(&part.status);
            rows.add_row([
                part.part.clone(),
                low.to_string(),
                expected.to_string(),
                high.to_string(),
                status,
                part.formula.clone(),
            ]);
        }
        let Range { low, expected, high } = size.total_mib;
        rows.add_row([
            "all".into(),
            low.to_string(),
            expected.to_string(),
            high.to_string(),
            String::new(),
            String::new(),
        ]);
        text.push_str(&format!("{rows}\n"));
    }
    if !found.profiles.is_empty() {
        let mut rows = table::table(&["profile", "MiB", "fit"]);
        for profile in &found.profiles {
            rows.add_row([profile.profile.clone(), profile.memory_mib.to_string(), table::word(&profile.fit)]);
        }
        text.push_str(&format!("{rows}\n"));
    }
    if let (Some(exceed), Some(admitted)) = (&found.exceed, found.admitted) {
        text.push_str(&format!(
            "{}: passes the limit with {} if tenants vary independently, {} if together; peak {} MiB\n",
            if admitted { "admitted" } else { "not admitted" },
            table::percent(exceed.independent_ppm),
            table::percent(exceed.together_ppm),
            exceed.peak_mib
        ));
    }
    if !found.mechanisms.is_empty() {
        let mut rows = table::table(&["mechanism", "works", "lost, low", "expected", "high", "status"]);
        for m in &found.mechanisms {
            let Range { low, expected, high } = m.loss_ppm;
            let works = if m.works { "yes" } else { "no" };
            let lost = [low, expected, high].map(table::percent);
            let [low, expected, high] = lost;
            rows.add_row([m.mechanism.name().into(), works.into(), low, expected, high, table::word(&m.status)]);
        }
        text.push_str(&format!("{rows}\n"));
    }
    text
}
