//! Tables in CSV, cell by cell: decimals become whole numbers of a smaller unit, exactly or
//! not at all.

use std::collections::BTreeMap;

use csv::StringRecord;

use crate::document::{ReadError, csv_error, strip_bom};

/// A row with its header.
pub(crate) struct Row<'a> {
    file: &'a str,
    /// Its line in the file.
    pub line: usize,
    cells: BTreeMap<&'static str, String>,
}

/// The rows of a table that has at least these columns.
pub(crate) fn rows<'a, const N: usize>(
    file: &'a str,
    text: &str,
    columns: [&'static str; N],
) -> Result<Vec<Row<'a>>, ReadError> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(strip_bom(text).as_bytes());
    let header = reader.headers().cloned().map_err(|e| csv_error(file, &e))?;
    let at = columns.map(|column| (column, header.iter().position(|h| h == column)));
    let missing: Vec<&str> = at.iter().filter(|(_, at)| at.is_none()).map(|(column, _)| *column).collect();
    if let Some(first) = missing.first() {
        let message = format!("the header has no column {}", missing.join(", "));
        return Err(ReadError::new(file, message).in_field(*first).at(Some((1, 1))));
    }
    let row = |record: StringRecord| {
        let line = record.position().map_or(1, |p| usize::try_from(p.line()).unwrap_or(usize::MAX));
        let cell = |(column, at): &(&'static str, Option<usize>)| {
            (*column, at.and_then(|at| record.get(at)).unwrap_or_default().to_owned())
        };
        Row { file, line, cells: at.iter().map(cell).collect() }
    };
    reader.records().map(|record| record.map(row).map_err(|e| csv_error(file, &e))).collect()
}

impl Row<'_> {
    pub fn error(&self, column: &'static str, message: String) -> ReadError {
        ReadError::new(self.file, message).in_field(column).at(Some((self.line, 1)))
    }

    fn cell(&self, column: &'static str) -> &str {
        self.cells.get(column).map_or("", String::as_str)
    }

    pub fn name(&self, column: &'static str) -> Result<String, ReadError> {
        match self.cell(column) {
            "" => Err(self.error(column, "the cell is empty".to_owned())),
            name => Ok(name.to_owned()),
        }
    }

    /// A whole number from 1.
    pub fn count<T: TryFrom<u64>>(&self, column: &'static str) -> Result<T, ReadError> {
        let number = decimal(self.cell(column), 0).filter(|n| *n > 0).and_then(|n| T::try_from(n).ok());
        number.ok_or_else(|| self.error(column, format!("`{}` is no whole number from 1", self.cell(column))))
    }

    pub fn decimal(&self, column: &'static str, places: usize) -> Result<u64, ReadError> {
        decimal(self.cell(column), places).ok_or_else(|| {
            let message = format!("`{}` is no number with at most {places} decimals", self.cell(column));
            self.error(column, message)
        })
    }
}

/// A decimal number times ten to the power `places`; `None` if that is not whole.
fn decimal(text: &str, places: usize) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let all_digits = whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all_digits || fraction.len() > places {
        return None;
    }
    format!("{whole}{fraction:0<places$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("460", 3, Some(460_000))]
    #[case("418.5", 3, Some(418_500))]
    #[case("0.013", 6, Some(13_000))]
    #[case("74.4080", 3, Some(74_408))]
    #[case("1.", 3, Some(1_000))]
    #[case("0.0001", 3, None)]
    #[case(".5", 3, None)]
    #[case("-1", 3, None)]
    #[case("+1", 3, None)]
    #[case("1e3", 3, None)]
    #[case("1.2.3", 3, None)]
    #[case("", 0, None)]
    #[case("2.5", 0, None)]
    #[case("99999999999999999999", 0, None)]
    fn decimals_are_exact_or_refused(#[case] text: &str, #[case] places: usize, #[case] value: Option<u64>) {
        assert_eq!(decimal(text, places), value);
    }
}
