//! The proof by wire: do the NICs' own counters agree with what the algorithm must move?

use ncclctl_nccl::bandwidth::node_bytes;

use super::Proof;
use super::ceiling::{algorithm, layout, nics_of};
use crate::evidence::{Evidence, Point, WireWindow};
use crate::figures::{gbs, percent};
use crate::paths::host_name;

/// Less than this share of the bytes that the algorithm must move were seen: they went another way,
/// or were over before a counter moved. Not nearer to 1, because drivers of physical NICs refresh
/// their counters only every so often (up to a second), so that a short window loses some.
const LEAST: f64 = 0.70;

/// More than this share: somebody else uses the NIC. Headers, acknowledgements and repeats of a
/// healthy run stay well under it (Ethernet 1500 adds 7% and 3%).
const MOST: f64 = 1.30;

/// What the counters say of one point.
pub(super) struct Wire {
    /// The proof in words.
    pub(super) proof: Proof,
    /// Whether the counters contradict a good result, so that it can not pass.
    pub(super) contradicts: bool,
}

/// Windows of one point on one host, of NICs that carry its data.
pub(super) fn windows(
    evidence: &Evidence,
    point: usize,
    host: usize,
) -> impl Iterator<Item = &WireWindow> {
    let nics: Vec<String> = nics_of(evidence, host).into_iter().map(|n| n.0).collect();
    evidence.wire.iter().filter(move |w| {
        w.point == point && w.host == host && w.seconds > 0.0 && nics.contains(&w.nic)
    })
}

/// Holds the counters against the point that decides.
pub(super) fn proof(evidence: &Evidence, index: usize, point: &Point) -> Wire {
    let not_had =
        |says: String, contradicts| Wire { proof: Proof { had: false, says }, contradicts };
    let layout = layout(evidence, point);
    if layout.nodes < 2 {
        return not_had("all ranks are on one host: no NIC carries the traffic".to_owned(), false);
    }
    if !evidence.wire.iter().any(|w| w.point == index) {
        return not_had("no counters were read for this point".to_owned(), false);
    }
    let bytes = node_bytes(point.collective, algorithm(point), layout);
    let bytes = bytes.out.max(bytes.inward) * point.size as f64;
    // what the operations between the two readings must have moved; by rate where they were not
    // counted
    let must = |seconds: f64| match point.time.operations {
        0 => point.algbw * 1e9 / point.size.max(1) as f64 * bytes * seconds,
        operations => bytes * operations as f64,
    };
    let mut seen: Vec<(usize, f64, f64, Option<f64>, f64)> = Vec::new();
    for host in 0..evidence.hosts.len() {
        let (mut tx, mut rx, mut line, mut any) = (0.0, 0.0, Some(0.0), false);
        let mut seconds = 0.0_f64;
        for w in windows(evidence, index, host) {
            any = true;
            seconds = seconds.max(w.seconds);
            tx += w.tx_bytes as f64 / w.seconds;
            rx += w.rx_bytes as f64 / w.seconds;
            let rate = w.line_rate_bits.or(evidence.stated_line_rate_bits);
            line = line.zip(rate).map(|(sum, bits)| sum + bits as f64 / 8.0);
        }
        if any {
            seen.push((host, tx, rx, line, seconds));
        }
    }
    let Some(busiest) = seen.iter().rev().max_by(|a, b| a.1.max(a.2).total_cmp(&b.1.max(b.2)))
    else {
        return not_had("no counters of the NICs in use were read".to_owned(), false);
    };
    let (host, tx, rx, line, seconds) = *busiest;
    let rate = tx.max(rx);
    if rate <= 0.0 {
        return not_had("no NIC counter moved while it ran".to_owned(), true);
    }
    let need = must(seconds);
    let share = if need > 0.0 { rate * seconds / need } else { 1.0 };
    let name = host_name(evidence, host);
    if share < LEAST {
        return not_had(
            format!(
                "counters saw {} of the {:.0} MB that must leave a host: the traffic went another \
                 way, or the run was over too soon",
                percent(share),
                need / 1e6
            ),
            true,
        );
    }
    let mut says = format!("{} at {name}", gbs(rate / 1e9));
    if let Some(line) = line.filter(|l| *l > 0.0) {
        says.push_str(&format!(", {} of line rate", percent(rate / line)));
    }
    if share > MOST {
        says.push_str(&format!(
            "; {} of what this run must move: other traffic shares the NIC",
            percent(share)
        ));
    } else {
        says.push_str(", as the algorithm must move");
    }
    Wire { proof: Proof { had: true, says }, contradicts: false }
}
