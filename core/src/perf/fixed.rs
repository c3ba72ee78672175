//! Arithmetic in parts per million. Products go through 128 bits and every result
//! saturates: an absurd input gives an absurd but defined prediction.

/// One, in parts per million.
pub const PPM: u64 = 1_000_000;

/// Largest ratio the model works with: beyond it one side no longer matters. Keeps fourth
/// powers within 128 bits.
pub(crate) const RATIO_MAX: u64 = 1_000_000_000;

/// `value × times ÷ over`, rounded down; the largest number where `over` is zero.
pub(crate) fn scale(value: u64, times: u64, over: u64) -> u64 {
    let product = u128::from(value) * u128::from(times);
    product.checked_div(u128::from(over)).map_or(u64::MAX, narrow)
}

/// [`scale`], rounded up.
pub(crate) fn scale_up(value: u64, times: u64, over: u64) -> u64 {
    let product = u128::from(value) * u128::from(times);
    if over == 0 { u64::MAX } else { narrow(product.div_ceil(u128::from(over))) }
}

/// A share of a value.
pub(crate) fn share(value: u64, ppm: u64) -> u64 {
    scale(value, ppm, PPM)
}

/// The largest 64-bit number stands for all that is larger.
pub(crate) fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// How sharply the larger of two times hides the smaller: the power of the norm that adds
/// them. Powers of two only, so that roots are integer square roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharpness {
    /// Plain addition: nothing overlaps.
    One,
    /// Root of the sum of squares.
    Two,
    /// Fourth root of the sum of fourth powers.
    Four,
}

/// Adds two times that partly hide each other. Grows with both; never below the larger.
pub(crate) fn joined(a: u64, b: u64, sharpness: Sharpness) -> u64 {
    let (a, b) = (a.min(RATIO_MAX), b.min(RATIO_MAX));
    let (wide_a, wide_b) = (u128::from(a), u128::from(b));
    let root = match sharpness {
        Sharpness::One => wide_a + wide_b,
        Sharpness::Two => (wide_a.pow(2) + wide_b.pow(2)).isqrt(),
        Sharpness::Four => (wide_a.pow(4) + wide_b.pow(4)).isqrt().isqrt(),
    };
    narrow(root).max(a).max(b)
}

/// Least number in `0..=most` for which `reached` holds, which once true stays true; `most`
/// where it never is.
pub(crate) fn least(most: u64, reached: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if reached(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_keeps_the_larger_and_hides_the_smaller() {
        assert_eq!(joined(3, 4, Sharpness::Two), 5);
        assert_eq!(joined(PPM, PPM, Sharpness::Four), 1_189_207);
        assert_eq!(joined(PPM, PPM, Sharpness::One), 2 * PPM);
        assert_eq!(joined(u64::MAX, 1, Sharpness::Four), RATIO_MAX);
    }

    #[test]
    fn scaling_saturates_and_rounds_as_named() {
        assert_eq!((scale(7, 1, 2), scale_up(7, 1, 2)), (3, 4));
        assert_eq!((scale(7, 1, 0), scale(u64::MAX, u64::MAX, 1)), (u64::MAX, u64::MAX));
        assert_eq!(least(100, |x| x * x >= 50), 8);
        assert_eq!(least(5, |_| false), 5);
    }
}
