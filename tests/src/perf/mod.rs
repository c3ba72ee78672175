//! How well the performance model predicts measured tables that it was not fitted to.

pub mod pairs;
pub mod scaling;
pub mod tables;

/// One, in parts per million.
pub const PPM: u64 = 1_000_000;

/// Errors of one method on one table.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    /// |prediction ÷ truth − 1|.
    relative_ppm: Vec<u64>,
    /// truth ÷ prediction.
    ratio_ppm: Vec<u64>,
}

impl Errors {
    /// Notes one prediction.
    pub fn add(&mut self, predicted: u64, truth: u64) {
        let part = |a: u64, b: u64| u64::try_from(u128::from(a) * u128::from(PPM) / u128::from(b.max(1))).unwrap();
        self.relative_ppm.push(part(predicted.abs_diff(truth), truth));
        self.ratio_ppm.push(part(truth, predicted));
    }
    /// Takes over another's.
    pub fn extend(&mut self, other: &Self) {
        self.relative_ppm.extend(&other.relative_ppm);
        self.ratio_ppm.extend(&other.ratio_ppm);
    }
    /// How many.
    pub fn count(&self) -> usize {
        self.relative_ppm.len()
    }
    /// Middle error.
    pub fn median_ppm(&self) -> u64 {
        quantile(&self.relative_ppm, 50)
    }
    /// Error that nine of ten stay below.
    pub fn p90_ppm(&self) -> u64 {
        quantile(&self.relative_ppm, 90)
    }
    /// Tenth and ninetieth percentile of truth ÷ prediction: the range that the model states.
    pub fn spread_ppm(&self) -> (u64, u64) {
        (quantile(&self.ratio_ppm, 10), quantile(&self.ratio_ppm, 90))
    }
    /// Sum of errors, none above one: what parameters are fitted by.
    pub fn cost(&self) -> u64 {
        self.relative_ppm.iter().map(|e| (*e).min(PPM)).sum()
    }
    /// A row of a table.
    pub fn row(&self, name: &str) -> String {
        let percent = |ppm: u64| format!("{}.{} %", ppm / 10_000, ppm % 10_000 / 1000);
        let (low, high) = self.spread_ppm();
        let thousandths = |ppm: u64| format!("{}.{:03}", ppm / PPM, ppm % PPM / 1000);
        format!(
            "| {name} | {} | {} | {} | {} to {} |",
            self.count(),
            percent(self.median_ppm()),
            percent(self.p90_ppm()),
            thousandths(low),
            thousandths(high)
        )
    }
    /// The heading that goes with [`Errors::row`].
    pub fn heading(of: &str) -> String {
        format!("| {of} | n | median | p90 | truth ÷ prediction, p10 to p90 |\n|---|---|---|---|---|")
    }
}

/// A quantile, of the two nearest values the lower.
pub fn quantile(values: &[u64], percent: usize) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0)
}
