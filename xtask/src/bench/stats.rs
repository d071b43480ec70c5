//! The few statistics that `cargo xtask bench` prints.

/// A sorted series of measurements.
#[derive(Debug, Clone)]
pub(crate) struct Series(Vec<f64>);

impl Series {
    /// Takes measurements in any order. `None` when there are none, or one is not a number.
    pub(crate) fn new(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| value.is_nan()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Self(values))
    }

    /// The value below which `share` (0 to 1) of the measurements lie, between neighbours linearly.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a series has thousands of measurements at most, and `share` is clamped"
    )]
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let last = self.0.len() - 1;
        let position = share.clamp(0.0, 1.0) * last as f64;
        let below = position.floor() as usize;
        let above = (below + 1).min(last);
        let part = position - below as f64;
        self.0[below] + (self.0[above] - self.0[below]) * part
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_between_two_middle_values() {
        let series = Series::new(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert!((series.median() - 2.5).abs() < 1e-9);
    }

    #[test]
    fn the_ends_are_the_extremes() {
        let series = Series::new(vec![5.0, 1.0, 9.0]).unwrap();
        assert!((series.quantile(0.0) - 1.0).abs() < 1e-9);
        assert!((series.quantile(1.0) - 9.0).abs() < 1e-9);
        assert!((series.median() - 5.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_has_no_statistics() {
        assert!(Series::new(Vec::new()).is_none());
        assert!(Series::new(vec![1.0, f64::NAN]).is_none());
    }
}
