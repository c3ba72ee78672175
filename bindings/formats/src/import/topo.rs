//! `nvidia-smi topo -m`: links, adapters and NUMA nodes.

use std::collections::BTreeMap;

use slicewise_core::fleet::{Link, LinkKind, Nic};

use super::draft::Draft;
use super::{ImportError, ImportFault};

/// The matrix as read.
#[derive(Debug, Default)]
struct Matrix {
    columns: Vec<String>,
    pairs: BTreeMap<(usize, usize), LinkKind>,
    numa: BTreeMap<u32, u16>,
    devices: BTreeMap<String, String>,
    notes: Vec<String>,
}

/// Adds the links to a node.
///
/// # Errors
/// A row that does not fit its header, or GPUs of which nobody knows the model.
pub(super) fn apply(file: &str, lines: &[(usize, &str)], node: &str, draft: &mut Draft<'_>) -> Result<(), ImportError> {
    let matrix = read(file, lines)?;
    let first = lines.first().map(|(line, _)| *line);
    for index in matrix.columns.iter().filter_map(|name| gpu_index(name)) {
        let model = model(node, index, draft).map_err(|e| e.at(file, first))?;
        let numa = matrix.numa.get(&index).copied();
        draft.with_gpu(node, index, |gpu| {
            if gpu.model.is_empty() {
                gpu.model = model;
            }
            gpu.numa_node = numa.or(gpu.numa_node);
        });
    }
    let end = |at: &usize| matrix.columns.get(*at).cloned().unwrap_or_default();
    let linked = matrix.pairs.iter().filter(|(_, kind)| **kind != LinkKind::Sys);
    let links = linked.map(|((a, b), kind)| Link { a: end(a), b: end(b), kind: *kind }).collect();
    let is_nic = |name: &&String| gpu_index(name).is_none();
    let nics = matrix.columns.iter().filter(is_nic).map(|name| nic(name, &matrix.devices)).collect();
    draft.with_node(node, |node| {
        node.links = links;
        node.nics = nics;
    });
    for note in matrix.notes {
        draft.note(note);
    }
    Ok(())
}

/// The matrix needs no figures of a model, so a state may keep the name it has, and a
/// product that the catalog lacks will do.
fn model(node: &str, index: u32, draft: &mut Draft<'_>) -> Result<String, ImportError> {
    if let Some(gpu) = draft.find_gpu(node, index).filter(|g| !g.model.is_empty()) {
        return Ok(gpu.model.clone());
    }
    match draft.options.model.as_deref() {
        Some(product) => draft.product_or_plain(product),
        None => Err(ImportFault::ModelNeeded("`nvidia-smi topo -m`".to_owned()).into()),
    }
}

/// Older drivers name columns by device, newer ones by number with a legend below.
fn nic(name: &str, devices: &BTreeMap<String, String>) -> Nic {
    let device = match name.starts_with("NIC") {
        true => devices.get(name).cloned(),
        false => Some(name.to_owned()),
    };
    Nic { name: name.to_owned(), device }
}

fn gpu_index(name: &str) -> Option<u32> {
    name.strip_prefix("GPU")?.parse().ok()
}

fn read(file: &str, lines: &[(usize, &str)]) -> Result<Matrix, ImportError> {
    let mut matrix = Matrix::default();
    for &(line, text) in lines {
        let text = without_escapes(text);
        let wrong = |text: String| ImportError::new(ImportFault::Malformed(text)).at(file, Some(line));
        let words: Vec<&str> = text.split_whitespace().collect();
        let (Some(&first), second) = (words.first(), words.get(1).copied().unwrap_or_default()) else { continue };
        if matrix.columns.is_empty() {
            matrix.columns = columns(&words);
            let mut seen = std::collections::BTreeSet::new();
            if let Some(twice) = matrix.columns.iter().find(|c| !seen.insert(c.as_str())) {
                return Err(wrong(format!("column `{twice}` is there twice")));
            }
        } else if let Some(name) = first.strip_suffix(':').filter(|_| words.len() == 2) {
            matrix.devices.insert(name.to_owned(), second.to_owned());
        } else if let Some(row) = matrix.columns.iter().position(|c| c == first) {
            let Some(cells) = cells(&text, first, matrix.columns.len()) else {
                return Err(wrong(format!("the row of {first} does not fit the {} columns", matrix.columns.len())));
            };
            matrix.row(row, first, &cells);
        }
    }
    Ok(matrix)
}

struct Cells {
    links: Vec<Option<LinkKind>>,
    numa: Option<String>,
}

/// The cells of a row, and its NUMA affinity. Tabs keep empty cells apart; in text that was
/// pasted with blanks, what follows the links is told by its order.
fn cells(text: &str, name: &str, columns: usize) -> Option<Cells> {
    let rest = text.trim_start().strip_prefix(name)?;
    let fields: Vec<&str> = match rest.contains('\t') {
        true => rest.split('\t').skip(1).map(str::trim).collect(),
        false => rest.split_whitespace().collect(),
    };
    let mut links = Vec::new();
    let mut fields = fields.into_iter();
    while links.len() < columns {
        links.extend(codes(fields.next()?)?);
    }
    // The CPU affinity comes first, then the NUMA affinity.
    (links.len() == columns).then(|| Cells { links, numa: fields.nth(1).map(str::to_owned).filter(|n| !n.is_empty()) })
}

/// The codes in a cell; one published output has two cells glued together.
fn codes(cell: &str) -> Option<Vec<Option<LinkKind>>> {
    let mut found = Vec::new();
    let mut rest = cell;
    while !rest.is_empty() {
        let plain = ["SYS", "NODE", "PHB", "PXB", "PIX"].iter().find(|c| rest.starts_with(**c)).map(|c| c.len());
        let nvlink = rest.strip_prefix("NV").map(|n| 2 + n.chars().take_while(char::is_ascii_digit).count());
        if let Some(length) = plain.or(nvlink) {
            found.push(Some(LinkKind::parse(rest.get(..length)?)?));
            rest = rest.get(length..)?;
        } else {
            rest = rest.strip_prefix('X')?;
            found.push(None);
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Names up to the affinity titles, each of which has blanks in it.
fn columns(words: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    for word in words.iter().take_while(|w| !matches!(**w, "CPU" | "NUMA" | "GPU")) {
        let mut from = 0;
        // `NIC8NIC9` is two columns.
        for (at, _) in word.match_indices("GPU").chain(word.match_indices("NIC")).filter(|(at, _)| *at > 0) {
            names.extend(word.get(from..at).map(str::to_owned));
            from = at;
        }
        names.extend(word.get(from..).map(str::to_owned));
    }
    names
}

impl Matrix {
    fn row(&mut self, row: usize, name: &str, cells: &Cells) {
        for (column, kind) in cells.links.iter().enumerate() {
            let Some(kind) = kind else { continue };
            if row == column {
                continue;
            }
            let pair = (row.min(column), row.max(column));
            let first = *self.pairs.entry(pair).or_insert(*kind);
            if first != *kind {
                self.notes.push(format!(
                    "`topo -m` gives {} and {} for one pair of {name}: the first is taken",
                    first.code(),
                    kind.code()
                ));
            }
        }
        let Some(index) = gpu_index(name) else { return };
        match cells.numa.as_deref().map(|n| (n, n.parse::<u16>())) {
            Some((_, Ok(numa))) => drop(self.numa.insert(index, numa)),
            Some((range, Err(_))) if range != "N/A" => {
                self.notes.push(format!("{name}: NUMA affinity `{range}` is not one node, so none is taken"));
            }
            _ => {}
        }
    }
}

/// On a terminal the tool underlines its header.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => drop(chars.by_ref().find(char::is_ascii_alphabetic)),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glued_cells_and_headers_come_apart() {
        assert_eq!(columns(&["GPU0", "NIC8NIC9", "mlx5_0", "CPU", "Affinity"]), ["GPU0", "NIC8", "NIC9", "mlx5_0"]);
        let kinds = codes("NODEPXB").unwrap();
        assert_eq!(kinds, [Some(LinkKind::Node), Some(LinkKind::Pxb)]);
        assert_eq!(codes("XNV12").unwrap(), [None, Some(LinkKind::NvLink(12))]);
        for wrong in ["", "OK", "NV", "NV0", "NODEX?"] {
            assert_eq!(codes(wrong), None, "{wrong}");
        }
    }
}
