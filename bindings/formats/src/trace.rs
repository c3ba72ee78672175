//! What replays need beside the tables of nodes and pods: orders of arrival, and streams of
//! MIG requests that come and go.

use crate::document::{ReadError, strip_bom};
use crate::table::rows;

/// Columns of a stream.
const STREAM: [&str; 3] = ["arrival", "lifetime", "profile"];
/// Decimals of a stream's times.
const TIME_TO_MILLI: usize = 3;

/// An order in which the pods of a trace arrive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Seed that the order was drawn with.
    pub seed: u64,
    /// Pods, each by its position in the table of pods.
    pub pods: Vec<u32>,
    /// Rank of each node, the nodes being sorted by name. Ties go to the lowest rank.
    pub ranks: Vec<u32>,
}

/// A request of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRequest {
    /// When it comes, in thousandths of the stream's unit of time.
    pub arrival_milli: u64,
    /// How long it stays once it is admitted, in the same unit.
    pub lifetime_milli: u64,
    /// The MIG profile that it asks.
    pub profile: String,
}

/// Reads orders of arrival: a line for each seed with three fields, separated by tabs: the
/// seed, positions of pods, ranks of nodes; numbers are separated by blanks.
///
/// # Errors
/// A line that does not have three such fields.
pub fn read_arrivals(file: &str, text: &str) -> Result<Vec<Arrivals>, ReadError> {
    let lines = strip_bom(text).lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(i, line)| {
            let fault =
                |field: &str, message: String| ReadError::new(file, message).in_field(field).at(Some((i + 1, 1)));
            let fields: Vec<&str> = line.split('\t').collect();
            let [seed, pods, ranks] = fields.as_slice() else {
                return Err(fault("", format!("the line has {} fields, not seed, pods and ranks", fields.len())));
            };
            let numbers = |field, text: &str| {
                let number = |word: &str| word.parse().map_err(|_| fault(field, format!("`{word}` is no position")));
                text.split_whitespace().map(number).collect::<Result<Vec<u32>, ReadError>>()
            };
            let seed = seed.trim().parse().map_err(|_| fault("seed", format!("`{seed}` is no seed")))?;
            Ok(Arrivals { seed, pods: numbers("pods", pods)?, ranks: numbers("ranks", ranks)? })
        })
        .collect()
}

/// Reads a stream: a row for each request with the columns `arrival`, `lifetime` (both in
/// one unit, with at most three decimals) and `profile`, in the order of arrival.
///
/// # Errors
/// A column that is missing, the first cell that is wrong, or a row that comes before the
/// one above it.
pub fn read_stream(file: &str, text: &str) -> Result<Vec<StreamRequest>, ReadError> {
    let mut stream: Vec<StreamRequest> = Vec::new();
    for row in rows(file, text, STREAM)? {
        let request = StreamRequest {
            arrival_milli: row.decimal("arrival", TIME_TO_MILLI)?,
            lifetime_milli: row.decimal("lifetime", TIME_TO_MILLI)?,
            profile: row.name("profile")?,
        };
        if stream.last().is_some_and(|last| last.arrival_milli > request.arrival_milli) {
            return Err(row.error("arrival", "it comes before the row above".to_owned()));
        }
        stream.push(request);
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn orders_have_a_seed_pods_and_ranks() {
        let order = |seed, pods: &[u32], ranks: &[u32]| Arrivals { seed, pods: pods.to_vec(), ranks: ranks.to_vec() };
        let read = read_arrivals("a.txt", "42\t3 0 3\t1 0\n\n43\t\t0 1\n").unwrap();
        assert_eq!(read, [order(42, &[3, 0, 3], &[1, 0]), order(43, &[], &[0, 1])]);
    }

    #[rstest]
    #[case("42\t1 2\n", 1, "", "2 fields")]
    #[case("42\t1\t0\nx\t1\t0\n", 2, "seed", "`x`")]
    #[case("42\t1 -2\t0\n", 1, "pods", "`-2`")]
    #[case("42\t1\t0 y\n", 1, "ranks", "`y`")]
    fn bad_orders_are_refused_where_they_are(
        #[case] text: &str,
        #[case] line: usize,
        #[case] field: &str,
        #[case] says: &str,
    ) {
        let error = read_arrivals("a.txt", text).unwrap_err();
        assert_eq!((error.file(), error.line(), error.path()), ("a.txt", Some(line), field));
        assert!(error.message().contains(says), "{error}");
    }

    #[test]
    fn streams_are_in_order_and_exact() {
        let header = "arrival,lifetime,profile\n";
        let read = read_stream("s.csv", &format!("{header}0.604,545.137,7g.80gb\n4,12537496,1g.20gb\n")).unwrap();
        let times: Vec<_> = read.iter().map(|r| (r.arrival_milli, r.lifetime_milli, r.profile.as_str())).collect();
        assert_eq!(times, [(604, 545_137, "7g.80gb"), (4_000, 12_537_496_000, "1g.20gb")]);
        for (rows, line, column) in
            [("1,1,a\n0.9,1,a\n", 3, "arrival"), ("1,x,a\n", 2, "lifetime"), ("1,1,\n", 2, "profile")]
        {
            let error = read_stream("s.csv", &format!("{header}{rows}")).unwrap_err();
            assert_eq!((error.line(), error.path()), (Some(line), column), "{error}");
        }
    }
}
