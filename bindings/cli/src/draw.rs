//! GPUs as rows of cells.

use std::collections::BTreeMap;
use std::fmt::Write;

use slicewise::Ledger;
use slicewise::space::{Hold, SpaceState};

use crate::table::watts;

/// Columns per cell of the placement axis; a GPU without cells is as wide as eight.
const CELL: usize = 6;
const WHOLE: usize = 8 * CELL;

/// Most GPUs drawn one by one; more are counted by what they look like.
const DRAWN_MAX: usize = 32;

/// Draws every GPU of a fleet, or counts of those that look alike if there are many.
pub fn fleet(ledger: &Ledger) -> String {
    let rows: Vec<(String, String)> = ledger
        .gpus()
        .iter()
        .map(|(id, gpu)| {
            let node = &ledger.nodes()[gpu.node].name;
            let name = format!("{node} GPU{} {}", gpu.index, kind(ledger, id));
            (name, row(ledger, id))
        })
        .collect();
    let mut text = String::new();
    if rows.len() <= DRAWN_MAX {
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, row) in rows {
            let _ = writeln!(text, "{name:width$}  {row}");
        }
        return text;
    }
    let mut alike: BTreeMap<(String, String), u64> = BTreeMap::new();
    for id in ledger.gpus().ids() {
        let anonymous = shape(ledger, id);
        *alike.entry((kind(ledger, id), anonymous)).or_default() += 1;
    }
    let mut rows: Vec<((String, String), u64)> = alike.into_iter().collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let left_out: u64 = rows.iter().skip(DRAWN_MAX).map(|(_, count)| count).sum();
    for ((kind, shape), count) in rows.into_iter().take(DRAWN_MAX) {
        let _ = writeln!(text, "{count:>7} × {kind}  {shape}");
    }
    if left_out > 0 {
        let _ = writeln!(text, "{left_out:>7} × others");
    }
    text
}

/// Draws the GPUs that differ between two states, before above after.
pub fn difference(before: &Ledger, after: &Ledger) -> String {
    let mut text = String::new();
    let mut left_out = 0;
    let look = |ledger: &Ledger, gpu| (ledger.spec(gpu).mode(), row(ledger, gpu));
    let changed = before.gpus().ids().filter(|g| look(before, *g) != look(after, *g));
    for (drawn, gpu) in changed.enumerate() {
        if drawn >= DRAWN_MAX {
            left_out += 1;
            continue;
        }
        let record = &before.gpus()[gpu];
        let node = &before.nodes()[record.node].name;
        let _ =
            writeln!(text, "{node} GPU{} {}{}", record.index, before.spec(gpu).model().id, modes(before, after, gpu));
        let _ = writeln!(text, "  before {}", row(before, gpu));
        let _ = writeln!(text, "  after  {}", row(after, gpu));
    }
    if left_out > 0 {
        let _ = writeln!(text, "… and {left_out} more GPUs that change");
    }
    text
}

/// What capped nodes and the fleet draw, before and after; nothing where no watts are known.
pub fn power(before: &Ledger, after: &Ledger) -> String {
    let mut text = String::new();
    let capped = after.nodes().iter().filter_map(|(id, node)| Some((id, node, node.power_cap()?)));
    for (id, node, cap) in capped.take(DRAWN_MAX) {
        let [was, is] = [before, after].map(|ledger| watts(ledger.node_draw_mw(id)));
        let _ = writeln!(text, "node {} draws {is} of {} W, was {was}", node.name, cap.limit_w);
    }
    let total = |ledger: &Ledger| ledger.nodes().ids().map(|node| ledger.node_draw_mw(node)).sum::<Option<u64>>();
    if let (Some(was), Some(is)) = (total(before), total(after))
        && is > 0
    {
        let _ = writeln!(text, "the fleet draws {}, was {}", watts(Some(is)), watts(Some(was)));
    }
    text
}

/// The model, with its mode where that may change.
fn kind(ledger: &Ledger, gpu: slicewise::ids::GpuId) -> String {
    let spec = ledger.spec(gpu);
    match spec.siblings().is_empty() {
        true => spec.model().id.clone(),
        false => format!("{} ({})", spec.model().id, spec.mode().name()),
    }
}

/// The modes before and after where they differ.
fn modes(before: &Ledger, after: &Ledger, gpu: slicewise::ids::GpuId) -> String {
    let (from, to) = (before.spec(gpu).mode(), after.spec(gpu).mode());
    if from == to { String::new() } else { format!(" ({} → {})", from.name(), to.name()) }
}

fn row(ledger: &Ledger, gpu: slicewise::ids::GpuId) -> String {
    drawn(ledger, gpu, true)
}

fn shape(ledger: &Ledger, gpu: slicewise::ids::GpuId) -> String {
    drawn(ledger, gpu, false)
}

fn drawn(ledger: &Ledger, gpu: slicewise::ids::GpuId, named: bool) -> String {
    let spec = ledger.spec(gpu);
    match (&*ledger.state(gpu), spec.grid()) {
        (SpaceState::Grid(layout), Some(grid)) => {
            let mut text = String::from("│");
            let mut cell = 0;
            while cell < grid.cells() {
                let Some(entry) = layout.at(cell) else {
                    text.push_str(&block("·", 1));
                    cell += 1;
                    continue;
                };
                let row = &grid.rows()[entry.profile];
                let name = match (&entry.hold, named) {
                    (Hold::Idle, _) => format!("({})", short(&row.name)),
                    (_, true) => ledger.given_names_at(gpu, entry.start).join("+"),
                    (_, false) => short(&row.name).to_string(),
                };
                let label = match (named, &entry.hold) {
                    (true, Hold::Busy | Hold::Shared(_)) if name.is_empty() => format!("{} busy", short(&row.name)),
                    (true, Hold::Busy | Hold::Shared(_)) if row.size > 1 => format!("{} {name}", short(&row.name)),
                    _ => name,
                };
                text.push_str(&block(&label, usize::from(row.size)));
                cell += row.size.max(1);
            }
            text
        }
        (SpaceState::Fluid(left), _) => {
            let used = usize::from(1000 - left.milli.min(1000));
            let filled = (used * WHOLE).div_ceil(1000);
            format!("│{}{}│ {} of 1000 free", "█".repeat(filled), "·".repeat(WHOLE - filled), left.milli)
        }
        (SpaceState::Uniform(shares), _) => format!("│ {} shares taken │", shares.taken),
        _ => String::new(),
    }
}

/// A run of cells with a label in its middle, cut to fit.
fn block(label: &str, cells: usize) -> String {
    let width = cells * CELL - 1;
    let label: String = label.chars().take(width).collect();
    format!("{label:^width$}│")
}

/// `3g.40gb` → `3g`: the memory is the same for every instance of this size on a GPU.
fn short(profile: &str) -> &str {
    profile.split_once('.').map_or(profile, |(slices, rest)| if rest.contains(['+', '-']) { profile } else { slices })
}
