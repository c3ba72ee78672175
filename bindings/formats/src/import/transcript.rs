//! Finds the listings of `nvidia-smi` in a text. Real files hold several of them, the
//! commands between them, and messages; column widths differ between drivers, so rows are
//! read by their words and not by their offsets.

use super::{ImportError, ImportFault};

/// What was found in one text.
#[derive(Debug, Default)]
pub(super) struct Transcript<'t> {
    /// `nvidia-smi -L`.
    pub devices: Option<Vec<DeviceRow>>,
    /// `mig -lgip`.
    pub profiles: Option<Vec<ProfileRow>>,
    /// `mig -lgipp`.
    pub placements: Option<Vec<PlacementRow>>,
    /// `mig -lgi`.
    pub instances: Option<Vec<InstanceRow>>,
    /// `mig -lci`.
    pub computes: Option<Vec<ComputeRow>>,
    /// Numbered lines of `topo -m`.
    pub topo: Option<Vec<(usize, &'t str)>>,
    /// Other things seen, in words.
    pub others: Vec<String>,
    /// Messages of commands that failed.
    pub failures: Vec<String>,
}

/// A GPU, or a MIG device of the GPU above it.
#[derive(Debug)]
pub(super) struct DeviceRow {
    pub line: usize,
    /// Index of the GPU; `None` for a MIG device.
    pub gpu: Option<u32>,
    /// Product or profile name.
    pub name: String,
    pub uuid: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct ProfileRow {
    pub line: usize,
    pub gpu: u32,
    pub name: String,
    pub id: u32,
    pub free: u16,
    pub total: u16,
    pub memory_gib: String,
    /// Counts by column title: SM, DEC, ENC, CE, JPEG, OFA.
    pub counts: Vec<(String, u16)>,
}

impl ProfileRow {
    pub fn count(&self, title: &str) -> Option<u16> {
        self.counts.iter().find(|(t, _)| t == title).map(|(_, n)| *n)
    }
}

#[derive(Debug)]
pub(super) struct PlacementRow {
    pub line: usize,
    pub gpu: u32,
    pub id: u32,
    pub starts: Vec<u16>,
    pub size: u16,
}

#[derive(Debug)]
pub(super) struct InstanceRow {
    pub line: usize,
    pub gpu: u32,
    pub name: String,
    pub profile_id: u32,
    pub id: u32,
    pub start: u16,
    pub size: u16,
}

#[derive(Debug)]
pub(super) struct ComputeRow {
    pub line: usize,
    pub gpu: u32,
    pub instance: u32,
    pub name: String,
    pub id: u32,
    /// Not printed by older drivers.
    pub start: Option<u16>,
}

/// Where the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    None,
    Profiles,
    Instances,
    Computes,
    /// A table that is not needed.
    Other,
    Topo,
}

/// Titles of tables, and what they are called in messages where they are not needed.
const TITLES: [(&str, Section, &str); 5] = [
    ("GPU instance profiles:", Section::Profiles, ""),
    ("GPU instances:", Section::Instances, ""),
    ("Compute instance profiles:", Section::Other, "`nvidia-smi mig -lcip`"),
    ("Compute instances:", Section::Computes, ""),
    ("MIG devices:", Section::Other, "the MIG device table of plain `nvidia-smi`"),
];

/// Finds the listings.
///
/// # Errors
/// A row of a known table that has another shape.
pub(super) fn read<'t>(file: &str, text: &'t str) -> Result<Transcript<'t>, ImportError> {
    let mut found = Transcript::default();
    let mut section = Section::None;
    let mut head: Vec<Vec<String>> = Vec::new();
    for (text, line) in text.lines().zip(1..) {
        let plain = text.trim();
        if let Some((_, next, other)) = TITLES.iter().find(|(title, ..)| title_of(plain) == Some(title)) {
            section = *next;
            head.clear();
            found.begin(section, other);
        } else if let Some(inside) = plain.strip_prefix('|') {
            let row = Row { file, line, head: &head, words: inside.trim_end_matches('|').split_whitespace().collect() };
            match section {
                Section::None => found.plain_table(inside),
                _ if row.words.first().is_some_and(|w| w.starts_with('=')) => {}
                _ if is_head(&row.words, section) => head.push(row.words.iter().map(|w| (*w).to_owned()).collect()),
                Section::Profiles => found.profile(&row)?,
                Section::Instances => found.instance(&row)?,
                Section::Computes => found.compute(&row)?,
                Section::Other | Section::Topo => {}
            }
        } else if !plain.starts_with('+') {
            section = found.outside(file, line, text, section)?;
        }
    }
    Ok(found)
}

fn title_of(line: &str) -> Option<&str> {
    Some(line.strip_prefix('|')?.trim_end_matches('|').trim())
}

/// Rows begin with the index of a GPU or, below one, with numbers; headers with words.
fn is_head(words: &[&str], section: Section) -> bool {
    section != Section::Other && !words.iter().any(|w| w.starts_with(|c: char| c.is_ascii_digit()))
}

struct Row<'r> {
    file: &'r str,
    line: usize,
    head: &'r [Vec<String>],
    words: Vec<&'r str>,
}

impl Row<'_> {
    fn malformed(&self, what: &str) -> ImportError {
        let text = format!("`{}` is not a row of {what}", self.words.join(" "));
        ImportError::new(ImportFault::Malformed(text)).at(self.file, Some(self.line))
    }
    fn number<T: std::str::FromStr>(&self, at: usize) -> Option<T> {
        self.words.get(at)?.parse().ok()
    }
    fn word(&self, at: usize) -> Option<String> {
        self.words.get(at).map(|w| (*w).to_owned())
    }
    fn pair(&self, at: usize, between: char) -> Option<(u16, u16)> {
        let (a, b) = self.words.get(at)?.split_once(between)?;
        Some((a.parse().ok()?, b.parse().ok()?))
    }
    /// Titles right of a given one in a header line, or those that drivers print today.
    fn titles(&self, after: &str, usual: [&str; 3]) -> Vec<String> {
        let printed = self.head.iter().find_map(|line| {
            let at = line.iter().position(|w| w == after)?;
            line.get(at + 1..).map(<[String]>::to_vec)
        });
        printed.filter(|t| !t.is_empty()).unwrap_or_else(|| usual.map(str::to_owned).to_vec())
    }
}

impl<'t> Transcript<'t> {
    fn begin(&mut self, section: Section, other: &str) {
        match section {
            Section::Profiles => drop(self.profiles.get_or_insert_default()),
            Section::Instances => drop(self.instances.get_or_insert_default()),
            Section::Computes => drop(self.computes.get_or_insert_default()),
            Section::None | Section::Other | Section::Topo => self.saw(other),
        }
    }

    fn saw(&mut self, what: &str) {
        if !what.is_empty() && !self.others.iter().any(|o| o == what) {
            self.others.push(what.to_owned());
        }
    }

    fn plain_table(&mut self, inside: &str) {
        if inside.contains("NVIDIA-SMI") {
            self.saw("the table of plain `nvidia-smi`");
        }
    }

    fn profile(&mut self, row: &Row<'_>) -> Result<(), ImportError> {
        let wrong = || row.malformed("`mig -lgip`");
        let rows = self.profiles.get_or_insert_default();
        if row.words.get(1) != Some(&"MIG") {
            // The second line of a profile holds the counts of the second header line.
            let last = rows.last_mut().ok_or_else(wrong)?;
            return counts(row, 0, row.titles("GiB", ["CE", "JPEG", "OFA"]))
                .map(|c| last.counts.extend(c))
                .ok_or_else(wrong);
        }
        let read = || {
            let (free, total) = row.pair(4, '/')?;
            let memory_gib = row.word(5).filter(|m| m.chars().all(|c| c.is_ascii_digit() || c == '.'))?;
            let counts = counts(row, 7, row.titles("P2P", ["SM", "DEC", "ENC"]))?;
            Some(ProfileRow {
                line: row.line,
                gpu: row.number(0)?,
                name: row.word(2)?,
                id: row.number(3)?,
                free,
                total,
                memory_gib,
                counts,
            })
        };
        rows.push(read().ok_or_else(wrong)?);
        Ok(())
    }

    fn instance(&mut self, row: &Row<'_>) -> Result<(), ImportError> {
        let read = || {
            let (start, size) = row.pair(5, ':')?;
            Some(InstanceRow {
                line: row.line,
                gpu: row.number(0)?,
                name: row.word(2)?,
                profile_id: row.number(3)?,
                id: row.number(4)?,
                start,
                size,
            })
        };
        let read = read().ok_or_else(|| row.malformed("`mig -lgi`"))?;
        self.instances.get_or_insert_default().push(read);
        Ok(())
    }

    fn compute(&mut self, row: &Row<'_>) -> Result<(), ImportError> {
        let read = || {
            Some(ComputeRow {
                line: row.line,
                gpu: row.number(0)?,
                instance: row.number(1)?,
                name: row.words.get(2).filter(|w| **w == "MIG").and_then(|_| row.word(3))?,
                id: row.number(5)?,
                start: match row.words.get(6) {
                    Some(_) => Some(row.pair(6, ':')?.0),
                    None => None,
                },
            })
        };
        let read = read().ok_or_else(|| row.malformed("`mig -lci`"))?;
        self.computes.get_or_insert_default().push(read);
        Ok(())
    }

    /// A line outside of tables; says which section goes on below it.
    fn outside(&mut self, file: &str, line: usize, text: &'t str, section: Section) -> Result<Section, ImportError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        if text.contains("nvidia-smi ") || text.contains("amd-smi ") {
            if text.contains("amd-smi ") {
                self.saw("the output of `amd-smi`");
            }
            return Ok(Section::None);
        }
        if is_topo_header(text) {
            self.topo.get_or_insert_default().push((line, text));
            return Ok(Section::Topo);
        }
        if section == Section::Topo {
            self.topo.get_or_insert_default().push((line, text));
            return Ok(section);
        }
        if word(0) == "GPU" && word(2) == "Profile" && word(3) == "ID" {
            let row = placement(line, &words).ok_or_else(|| malformed(file, line, text, "`mig -lgipp`"))?;
            self.placements.get_or_insert_default().push(row);
        } else if word(0) == "GPU" && word(1).ends_with(':') {
            let row = device(line, text).ok_or_else(|| malformed(file, line, text, "`nvidia-smi -L`"))?;
            self.devices.get_or_insert_default().push(row);
        } else if word(0) == "MIG" && word(2) == "Device" {
            let (before, uuid) = uuid(text);
            let name = before.split_whitespace().nth(1).unwrap_or_default().to_owned();
            if self.devices.is_none() {
                return Err(malformed(file, line, text, "`nvidia-smi -L`: no GPU above it"));
            }
            self.devices.get_or_insert_default().push(DeviceRow { line, gpu: None, name, uuid });
        } else if text.contains("No GPU instances found") {
            self.instances.get_or_insert_default();
        } else if text.contains("No compute instances found") {
            self.computes.get_or_insert_default();
        } else if word(0) == "Unable" || word(0) == "Failed" {
            self.failures.push(text.trim().to_owned());
        } else if word(0) == "Successfully" {
            self.saw("messages of `nvidia-smi mig -cgi`");
        } else if text.contains("No MIG-enabled devices found") {
            self.saw("the message that no GPU is in MIG mode");
        } else if text.contains("<nvidia_smi_log>") {
            self.saw("the XML of `nvidia-smi -q -x`");
        }
        Ok(Section::None)
    }

    /// What the text holds, in words.
    pub fn described(&self) -> String {
        let known = [
            (self.devices.is_some(), "`nvidia-smi -L`"),
            (self.profiles.is_some(), "`nvidia-smi mig -lgip`"),
            (self.placements.is_some(), "`nvidia-smi mig -lgipp`"),
            (self.instances.is_some(), "`nvidia-smi mig -lgi`"),
            (self.computes.is_some(), "`nvidia-smi mig -lci`"),
            (self.topo.is_some(), "`nvidia-smi topo -m`"),
        ];
        let mut seen: Vec<&str> = known.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
        seen.extend(self.others.iter().map(String::as_str));
        match seen.is_empty() {
            true => "nothing that `nvidia-smi` prints".to_owned(),
            false => seen.join(" and "),
        }
    }
}

fn malformed(file: &str, line: usize, text: &str, what: &str) -> ImportError {
    ImportError::new(ImportFault::Malformed(format!("`{}` is not a line of {what}", text.trim()))).at(file, Some(line))
}

/// Counts under their titles. More cells than titles would be read wrongly, so they are refused.
fn counts(row: &Row<'_>, from: usize, titles: Vec<String>) -> Option<Vec<(String, u16)>> {
    let cells = row.words.get(from..).filter(|cells| !cells.is_empty() && cells.len() <= titles.len())?;
    titles.into_iter().zip(cells).map(|(title, cell)| Some((title, cell.parse().ok()?))).collect()
}

/// `GPU  0 Profile ID 19 Placements: {0,1,2}:1`; the colon stands apart in the singular.
fn placement(line: usize, words: &[&str]) -> Option<PlacementRow> {
    let (starts, size) = words.last()?.strip_prefix('{')?.split_once("}:")?;
    Some(PlacementRow {
        line,
        gpu: words.get(1)?.parse().ok()?,
        id: words.get(4)?.parse().ok()?,
        starts: starts.split(',').map(|s| s.trim().parse().ok()).collect::<Option<_>>()?,
        size: size.parse().ok()?,
    })
}

fn device(line: usize, text: &str) -> Option<DeviceRow> {
    let (head, rest) = text.split_once(':')?;
    let gpu = head.split_whitespace().nth(1)?.parse().ok()?;
    let (name, uuid) = uuid(rest);
    let name = name.trim().to_owned();
    (!name.is_empty()).then_some(DeviceRow { line, gpu: Some(gpu), name, uuid })
}

fn uuid(text: &str) -> (&str, Option<String>) {
    match text.split_once("(UUID:") {
        Some((before, uuid)) => (before, Some(uuid.trim().trim_end_matches(')').to_owned()).filter(|u| !u.is_empty())),
        None => (text, None),
    }
}

/// The header of `topo -m` begins with a column and not with a cell.
fn is_topo_header(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let numbered = |w: &str| w.contains("GPU") && w.ends_with(|c: char| c.is_ascii_digit());
    let first =
        words.next().is_some_and(|w| numbered(w) && w.find("GPU").is_some_and(|at| !w.starts_with("NIC") && at <= 4));
    first && words.next().is_some_and(|w| w == "CPU" || w.starts_with("GPU") || w.starts_with("NIC") || w.contains('_'))
}
