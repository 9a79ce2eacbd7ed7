//! Statistics of repeated timings.

use ncclctl_findings::evidence::Timing;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Mean of a non-empty slice, 0 of an empty one.
pub(crate) fn mean(samples: &[f64]) -> f64 {
    if samples.is_empty() { 0.0 } else { samples.iter().sum::<f64>() / samples.len() as f64 }
}

/// Half width of the 95% confidence interval of the mean, by Student's t. Infinite below two samples.
pub(crate) fn half_width(samples: &[f64]) -> f64 {
    let n = samples.len();
    if n < 2 {
        return f64::INFINITY;
    }
    let mean = mean(samples);
    let variance = samples.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    let t =
        StudentsT::new(0.0, 1.0, (n - 1) as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975));
    t * (variance / n as f64).sqrt()
}

/// Value at a share of the sorted samples, by linear interpolation.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share * last as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// Summary of per-operation samples, microseconds. `warmup`, `operations` and `converged` are the
/// caller's; `rank_mean_us` is kept as given.
pub(crate) fn timing(samples: Vec<f64>, rank_mean_us: Vec<f64>) -> Timing {
    let mut sorted = samples.clone();
    sorted.sort_by(f64::total_cmp);
    let (q1, q3) = (quantile(&sorted, 0.25), quantile(&sorted, 0.75));
    // outer fences (Tukey): three times the interquartile range
    let (low, high) = (q1 - 3.0 * (q3 - q1), q3 + 3.0 * (q3 - q1));
    let third = samples.len() / 3;
    let drift = if third == 0 {
        0.0
    } else {
        let first = mean(&samples[..third]);
        let last = mean(&samples[samples.len() - third..]);
        if first > 0.0 { last / first - 1.0 } else { 0.0 }
    };
    let half = half_width(&samples);
    Timing {
        mean_us: mean(&samples),
        ci95_us: if half.is_finite() { half } else { mean(&samples) },
        min_us: sorted.first().copied().unwrap_or(0.0),
        median_us: quantile(&sorted, 0.5),
        max_us: sorted.last().copied().unwrap_or(0.0),
        operations: 0,
        warmup: 0,
        drift,
        outliers: samples.iter().filter(|s| **s < low || **s > high).count() as u64,
        converged: false,
        samples_us: samples,
        rank_mean_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_width_by_student() {
        // textbook: n = 5, mean 10, s = 1.5811, t(0.975, 4) = 2.776 → 1.963
        let half = half_width(&[8.0, 9.0, 10.0, 11.0, 12.0]);
        assert!((half - 1.963).abs() < 1e-3, "{half}");
        assert!(half_width(&[1.0]).is_infinite());
    }

    #[test]
    fn drift_and_outliers_are_seen() {
        let rising: Vec<f64> = (0..30).map(|i| 100.0 + f64::from(i)).collect();
        assert!(timing(rising, vec![]).drift > 0.15);
        let mut flat = vec![100.0; 30];
        flat[7] = 900.0;
        let t = timing(flat, vec![]);
        assert_eq!(t.outliers, 1);
        assert!((t.median_us - 100.0).abs() < 1e-9);
        assert!((timing(vec![], vec![]).mean_us).abs() < 1e-9);
    }
}
