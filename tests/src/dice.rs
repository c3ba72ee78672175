//! Choices read from a tape of numbers, so that proptest can shrink whatever is built.

/// A tape of choices; what is past its end is the first choice.
#[derive(Clone, Debug)]
pub struct Dice {
    tape: Vec<u16>,
    at: usize,
}

impl Dice {
    /// Choices from a tape.
    pub fn new(tape: Vec<u16>) -> Self {
        Self { tape, at: 0 }
    }
    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        let value = self.tape.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(value).checked_rem(sides).unwrap_or(0)
    }
    /// True once in `sides` times; false where the tape has ended.
    pub fn once_in(&mut self, sides: usize) -> bool {
        self.roll(sides) + 1 == sides
    }
    /// One of these.
    pub fn pick<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        items.get(self.roll(items.len())).cloned()
    }
}

/// How many cases to try: the usual number, times `SLICEWISE_CASES` where that is set.
pub fn cases(usual: u32) -> u32 {
    let times = std::env::var("SLICEWISE_CASES").ok().and_then(|text| text.parse().ok());
    usual.saturating_mul(times.unwrap_or(1))
}
