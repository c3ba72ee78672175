//! Tables for people, and decimals made of integers.

use comfy_table::{Table, presets};

/// A table with these headings.
pub fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(headings.to_vec());
    table
}

/// Hundredths as a decimal number.
pub fn decimal(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Parts per million as a percentage with two decimals.
pub fn percent(ppm: u64) -> String {
    format!("{} %", decimal(ppm / 100))
}

/// Milliwatts as watts with one decimal, rounded up.
pub fn watts(mw: Option<u64>) -> String {
    known(mw.map(|mw| mw.div_ceil(100)).map(|tenths| format!("{}.{} W", tenths / 10, tenths % 10)))
}

/// A number that may not be known.
pub fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "?".to_string(), |v| v.to_string())
}

/// The word that documents have for a value.
pub fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
