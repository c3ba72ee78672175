//! Kubernetes quantities: `250m`, `40Gi`, `1e3`. Whole numbers only inside; what is left
//! over a unit is cut off, so that nothing is promised that is not there.

/// A quantity in thousandths; `None` for another form or a number beyond reach.
pub(crate) fn milli(text: &str) -> Option<u64> {
    u64::try_from(scaled(text.trim(), 1000)?).ok()
}

/// A quantity of bytes in whole MiB.
pub(crate) fn mib(text: &str) -> Option<u64> {
    u64::try_from(scaled(text.trim(), 1)? >> 20).ok()
}

/// A plain count, with nothing after the point.
pub(crate) fn count(text: &str) -> Option<u64> {
    let milli = milli(text)?;
    (milli % 1000 == 0).then_some(milli / 1000)
}

/// The quantity times `unit`, cut to a whole number.
fn scaled(text: &str, unit: u128) -> Option<u128> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(digits_end)?;
    let (times, over) = factor(suffix)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // More digits than any unit has would only be cut off again.
    let fraction = fraction.get(..fraction.len().min(18))?;
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return None;
    }
    let value: u128 = format!("{whole}{fraction}").parse().ok()?;
    let divisor = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?.checked_mul(over)?;
    value.checked_mul(times)?.checked_mul(unit)?.checked_div(divisor)
}

/// What a suffix multiplies by and divides by.
fn factor(suffix: &str) -> Option<(u128, u128)> {
    if let Some(exponent) = suffix.strip_prefix(['e', 'E']).filter(|e| !e.is_empty()) {
        let exponent: i8 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
        let power = 10_u128.checked_pow(u32::from(exponent.unsigned_abs()))?;
        return Some(if exponent < 0 { (1, power) } else { (power, 1) });
    }
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1000),
        "k" => (1000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("96", Some(96_000), Some(0))]
    #[case("250m", Some(250), Some(0))]
    #[case("1.5", Some(1500), Some(0))]
    #[case(".5", Some(500), Some(0))]
    #[case("2.", Some(2000), Some(0))]
    #[case("0.0001", Some(0), Some(0))]
    #[case("40Gi", Some(42_949_672_960_000), Some(40_960))]
    #[case("4864Mi", Some(5_100_273_664_000), Some(4864))]
    #[case("1.5Gi", Some(1_610_612_736_000), Some(1536))]
    #[case("1056315528Ki", Some(1_081_667_100_672_000), Some(1_031_558))]
    #[case("1k", Some(1_000_000), Some(0))]
    #[case("1e3", Some(1_000_000), Some(0))]
    #[case("1E+9", Some(1_000_000_000_000), Some(953))]
    #[case("5e-1", Some(500), Some(0))]
    #[case("1E", None, Some(953_674_316_406))]
    #[case("", None, None)]
    #[case("Gi", None, None)]
    #[case("-1", None, None)]
    #[case("1.2.3", None, None)]
    #[case("1GiB", None, None)]
    #[case("1e99", None, None)]
    #[case("99999999999999999999999999999999999999999", None, None)]
    fn quantities_are_whole_numbers(#[case] text: &str, #[case] in_milli: Option<u64>, #[case] in_mib: Option<u64>) {
        assert_eq!((milli(text), mib(text)), (in_milli, in_mib), "{text}");
    }

    #[test]
    fn counts_have_no_fraction() {
        assert_eq!((count("8"), count("1500m"), count("2000m")), (Some(8), None, Some(2)));
    }
}
