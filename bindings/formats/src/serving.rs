//! Tables of inference serving: measured points, and scenarios of rates and latency
//! objectives. Decimals become whole numbers of a smaller unit, exactly or not at all.

use std::collections::BTreeMap;

use slicewise_core::serving::{Point, Target};

use crate::document::ReadError;
use crate::table::rows;

/// Columns of a table of points that are read; others may be there.
const POINTS: [&str; 6] = ["model", "mig_gpcs", "batch", "mps_procs", "throughput_total", "latency_s"];
/// Columns of a table of scenarios.
const SCENARIOS: [&str; 4] = ["scenario", "model", "request_rate_per_s", "slo_latency_ms"];

/// Decimals of thousandths, as of items per second.
const MILLI: usize = 3;
/// Decimals of a second in microseconds.
const SECONDS_TO_US: usize = 6;
/// Decimals of a millisecond in microseconds.
const MS_TO_US: usize = 3;

/// The scenarios of a table, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenarios {
    file: String,
    named: BTreeMap<String, Vec<Target>>,
}

impl Scenarios {
    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// The targets of a scenario; without a name, of the only one there is.
    ///
    /// # Errors
    /// A name that is not in the table, or none where there are several.
    pub fn of(&self, name: Option<&str>) -> Result<&[Target], ReadError> {
        let known = || self.names().collect::<Vec<_>>().join(", ");
        let message = match (name, self.named.iter().next()) {
            (Some(name), _) => match self.named.get(name) {
                Some(targets) => return Ok(targets),
                None => format!("no scenario `{name}`; there are {}", known()),
            },
            (None, Some((_, targets))) if self.named.len() == 1 => return Ok(targets),
            (None, Some(_)) => format!("which scenario? there are {}", known()),
            (None, None) => "the table has no rows".to_owned(),
        };
        Err(ReadError::new(&self.file, message).in_field("scenario"))
    }
}

/// Reads measured points: a row for each model, size (`mig_gpcs`: compute slices), batch
/// and number of processes, with the throughput of all processes in items/s
/// (`throughput_total`) and the latency of a batch in seconds (`latency_s`).
///
/// # Errors
/// A column that is missing, or the first cell that is wrong, with line and column.
pub fn read_points(file: &str, text: &str) -> Result<Vec<Point>, ReadError> {
    let mut points = Vec::new();
    let mut seen: BTreeMap<(String, u16, u32, u32), usize> = BTreeMap::new();
    for row in rows(file, text, POINTS)? {
        let point = Point {
            model: row.name("model")?,
            compute_slices: row.count("mig_gpcs")?,
            batch: row.count("batch")?,
            processes: row.count("mps_procs")?,
            throughput_milli: row.decimal("throughput_total", MILLI)?,
            latency_us: row.decimal("latency_s", SECONDS_TO_US)?,
        };
        let key = (point.model.clone(), point.compute_slices, point.batch, point.processes);
        if let Some(first) = seen.insert(key, row.line) {
            return Err(row.error("model", format!("line {first} has the same model, size, batch and processes")));
        }
        points.push(point);
    }
    Ok(points)
}

/// Reads scenarios: a row for each scenario and model, with the rate in requests/s and the
/// latency objective in milliseconds.
///
/// # Errors
/// See [`read_points`].
pub fn read_scenarios(file: &str, text: &str) -> Result<Scenarios, ReadError> {
    let mut named: BTreeMap<String, Vec<Target>> = BTreeMap::new();
    for row in rows(file, text, SCENARIOS)? {
        let target = Target {
            model: row.name("model")?,
            rate_milli: row.decimal("request_rate_per_s", MILLI)?,
            slo_us: row.decimal("slo_latency_ms", MS_TO_US)?,
        };
        if target.slo_us == 0 {
            return Err(row.error("slo_latency_ms", "no latency is below 0".to_owned()));
        }
        let scenario = row.name("scenario")?;
        let targets = named.entry(scenario.clone()).or_default();
        if targets.iter().any(|t| t.model == target.model) {
            return Err(row.error("model", format!("`{}` is in scenario `{scenario}` already", target.model)));
        }
        targets.push(target);
    }
    Ok(Scenarios { file: file.to_owned(), named })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const HEADER: &str = "model,mig_gpcs,batch,mps_procs,throughput_per_proc,throughput_total,latency_s\n";

    #[rstest]
    #[case("model,batch\n", 1, "mig_gpcs", "mig_gpcs, mps_procs, throughput_total, latency_s")]
    #[case("HEADERa,1,1,1,5,5.5,0.01\na,2,1,1,5,fast,0.01\n", 3, "throughput_total", "`fast`")]
    #[case("HEADERa,0,1,1,5,5.5,0.01\n", 2, "mig_gpcs", "`0`")]
    #[case("HEADERa,1,1,1,5,5.5,0.0000001\n", 2, "latency_s", "at most 6 decimals")]
    #[case("HEADER,1,1,1,5,5.5,0.01\n", 2, "model", "empty")]
    #[case("HEADERa,1,1,1,5,5.5,0.01\na,1,1,1,6,6.5,0.01\n", 3, "model", "line 2")]
    #[case("HEADERa,1,1\n", 2, "", "3 cells")]
    fn bad_points_are_refused_where_they_are(
        #[case] text: &str,
        #[case] line: usize,
        #[case] column: &str,
        #[case] says: &str,
    ) {
        let error = read_points("points.csv", &text.replace("HEADER", HEADER)).unwrap_err();
        assert_eq!((error.file(), error.line(), error.path()), ("points.csv", Some(line), column));
        assert!(error.message().contains(says), "{error}");
    }

    #[test]
    fn scenarios_are_found_by_name() {
        let header = "scenario,model,request_rate_per_s,slo_latency_ms\n";
        let text = format!("{header}S1,bert,19,6434\nS1,vgg,3.5,100.5\nS2,bert,1,1\n");
        let scenarios = read_scenarios("s.csv", &text).unwrap();
        let expected = Target { model: "vgg".into(), rate_milli: 3_500, slo_us: 100_500 };
        assert_eq!(scenarios.of(Some("S1")).unwrap()[1], expected);
        for (name, says) in [(Some("S9"), "no scenario `S9`; there are S1, S2"), (None, "which scenario?")] {
            let error = scenarios.of(name).unwrap_err();
            assert_eq!(error.path(), "scenario");
            assert!(error.message().contains(says), "{error}");
        }
        for (row, line, column) in
            [("S1,bert,1,1", 4, "model"), ("S3,a,-1,1", 4, "request_rate_per_s"), ("S3,a,1,0", 4, "slo_latency_ms")]
        {
            let text = format!("{header}S1,bert,19,6434\nS2,bert,1,1\n{row}\n");
            let error = read_scenarios("s.csv", &text).unwrap_err();
            assert_eq!((error.line(), error.path()), (Some(line), column), "{error}");
        }
        assert!(read_scenarios("s.csv", header).unwrap().of(None).is_err());
    }
}
