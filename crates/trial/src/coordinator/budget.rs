//! How the time is shared out among the cases.

use ncclctl_findings::Evidence;

use crate::engine::Case;

/// Operations for which a large size is given time.
const OPERATIONS: f64 = 12.0;

/// Least time of a case, seconds: small sizes need many samples, not much time.
const LEAST: f64 = 0.15;

/// Payload rate assumed where no path was measured, bytes per second.
const UNKNOWN: f64 = 1e9;

/// A weight for each case: the time that it would like to have, in seconds. A shared-out equal part
/// would give 8 bytes as long as 128 MiB, which then would have time for one operation.
pub(super) fn shares(cases: &[Case], evidence: &Evidence) -> Vec<f64> {
    let ranks = evidence.ranks.len();
    let slowest = evidence.paths.iter().map(|path| path.rate_bps).fold(f64::INFINITY, f64::min);
    let rate = if slowest.is_finite() && slowest > 0.0 { slowest } else { UNKNOWN };
    cases
        .iter()
        .map(|case| {
            let factor = case.collective.busbw_factor(ranks.max(2)).max(0.1);
            let operation = factor * case.bytes as f64 / rate;
            (OPERATIONS * operation).max(LEAST)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ncclctl_findings::evidence::Rank;
    use ncclctl_nccl::{Collective, DataType, RedOp};

    use super::*;

    #[test]
    fn a_large_size_gets_the_time_of_its_operations_and_a_small_one_its_least() {
        let case = |bytes| Case {
            collective: Collective::AllReduce,
            dtype: DataType::Float32,
            op: RedOp::Sum,
            root: 0,
            bytes,
            in_place: false,
        };
        let evidence = Evidence { ranks: vec![Rank::default(); 2], ..Evidence::default() };
        let shares = shares(&[case(8), case(1 << 30)], &evidence);
        assert!((shares[0] - 0.15).abs() < 1e-9);
        assert!((shares[1] - 12.0 * 1.073_741_824).abs() < 1e-6, "{shares:?}");
    }
}
