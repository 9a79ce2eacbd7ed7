//! `roce-congestion`: drops or missing flow control on RoCE.
//!
//! ## What
//!
//! The rate between hosts collapses at large sizes, with single good values in between, or the NIC
//! counts time-outs and packets out of sequence.
//!
//! ## Why
//!
//! RoCE needs lossless or at least ECN-controlled switching. Without it a burst of several senders
//! overflows a buffer; one lost packet costs a time-out of its queue pair, and the rate falls by an
//! order of magnitude.
//!
//! ## Example
//!
//! `busbw falls from 10.4 GB/s at 64M to 0.4 GB/s at 128M`
//!
//! ## Remedy
//!
//! Configure PFC and ECN (DCQCN) on switches and NICs for the traffic class in use (NCCL_IB_TC);
//! then watch out_of_sequence, local_ack_timeout_err and pause counters.
//!
//! ## Source
//!
//! mlx5 hw_counters; RoCE deployment guides.

use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_facts::Facts;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    ..Rule::new("roce-congestion", Severity::Warning, "drops or missing flow control on RoCE")
};

/// A size whose rate falls under this share of the best smaller size has collapsed.
const COLLAPSE: f64 = 0.2;

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for run in &incident.runs {
        let hosts = run.hosts();
        let socket = incident.log.processes.iter().any(|p| p.network.value == "Socket");
        let native =
            incident.log.processes.iter().any(|p| p.ports.value.iter().any(|d| d.layer == "IB"));
        if hosts.len() < 2 || socket || native {
            continue;
        }
        let mut peak = 0.0_f64;
        let mut peak_size = 0;
        let mut fallen: Vec<(&ncclctl_nccl::nccl_tests::TestRow, f64)> = Vec::new();
        for row in &run.run.rows {
            let cells = [&row.out_of_place, &row.in_place];
            for cell in cells.into_iter().flatten().filter(|c| c.busbw.is_finite()) {
                if cell.busbw > peak {
                    peak = cell.busbw;
                    peak_size = row.size;
                } else if peak > 1.0 && cell.busbw < COLLAPSE * peak && row.size > peak_size {
                    fallen.push((row, cell.busbw));
                }
            }
        }
        if fallen.len() < 2 {
            continue;
        }
        let worst = fallen.iter().map(|(_, b)| *b).fold(f64::INFINITY, f64::min);
        let first = fallen[0].0;
        let mut exhibits: Vec<Exhibit> =
            fallen.iter().take(3).map(|(row, _)| incident.row(run, row.line)).collect();
        exhibits.dedup();
        findings.push(RULE.found(
            Confidence::Likely,
            format!(
                "busbw falls from {peak:.1} GB/s at {} to {worst:.1} GB/s from {} on",
                ncclctl_nccl::size::Short(peak_size),
                ncclctl_nccl::size::Short(first.size)
            ),
            "large messages overflow a buffer on the way and each lost packet costs a time-out: RoCE \
             without working flow control",
            "configure PFC and ECN on switches and NICs for the traffic class in use (NCCL_IB_TC), then \
             watch out_of_sequence, local_ack_timeout_err and pause counters in \
             /sys/class/infiniband/*/ports/1/hw_counters",
            exhibits,
        ));
        return;
    }
}

/// Counters of trouble, and from which number on they tell of more than a bad minute.
const COUNTERS: [(&str, u64); 5] = [
    ("local_ack_timeout_err", 1_000),
    ("out_of_sequence", 10_000),
    ("packet_seq_err", 10_000),
    ("np_ecn_marked_roce_packets", 1_000_000),
    ("np_cnp_sent", 1_000_000),
];

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        for device in &node.rdma {
            for port in device.ports.iter().filter(|p| p.is_roce()) {
                let over: Vec<(&str, u64)> = COUNTERS
                    .iter()
                    .filter_map(|(name, from)| {
                        port.counters.get(*name).filter(|v| *v >= from).map(|v| (*name, *v))
                    })
                    .collect();
                // marks and notifications alone are flow control at work: something must be lost too
                let lost = over.iter().any(|(n, _)| !n.starts_with("np_"));
                if !lost || over.len() < 2 {
                    continue;
                }
                let text =
                    over.iter().map(|(n, v)| format!("{n} {v}")).collect::<Vec<_>>().join(", ");
                findings.push(RULE.found(
                    Confidence::Likely,
                    format!("{}: {} port {} lost packets: {text}", node.name, device.name, port.number),
                    "packets were lost and sent again after time-outs: RoCE without working flow control \
                     (or a link that went down in between)",
                    "configure PFC and ECN on switches and NICs for the traffic class in use \
                     (NCCL_IB_TC), check the GID after link events, and watch whether the counters grow",
                    over.iter()
                        .map(|(n, v)| {
                            Exhibit::fact(
                                format!("{}.{}.{}.{n}", node.name, device.name, port.number),
                                v.to_string(),
                            )
                        })
                        .collect(),
                ));
            }
        }
    }
}
