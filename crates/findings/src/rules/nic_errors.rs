//! `nic-errors`: errors, drops or retransmissions while the trial ran.
//!
//! ## What
//!
//! A NIC in use counted errors, dropped more than one packet in a thousand, or its host had to send
//! more than 1% of its TCP segments again (from 0.1% on for information).
//!
//! ## Why
//!
//! Errors are a bad cable or port. Drops are a receiver that is too slow or rings that are too
//! short. Retransmissions say that something on the way dropped packets: a full switch queue, a
//! policer, a bad link elsewhere.
//!
//! ## Example
//!
//! `h2 sent 3.1% of its segments again (12,003 of 388,001)`
//!
//! ## Remedy
//!
//! Errors: cable, optics. Drops: `ethtool -G` (rings), interrupts over more cores. Retransmissions:
//! queues and policers on the way.
//!
//! ## Source
//!
//! `net/statistics`, `/proc/net/snmp` (RetransSegs, OutSegs) over the measured part alone.

use crate::evidence::Evidence;
use crate::figures::percent;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::paths::host_name;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new(
        "nic-errors",
        Severity::Warning,
        "errors, drops or retransmissions during the trial",
    )
};

/// Retransmitted share from which it costs speed: TCP's window halves at each loss event.
const RETRANSMITS: f64 = 0.01;
/// Retransmitted share worth a remark.
const REMARK: f64 = 0.001;
/// Dropped share of packets.
const DROPS: f64 = 0.001;

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    if evidence.hosts.len() < 2 {
        // over loopback none of these counters says anything about a network
        return;
    }
    for (index, host) in evidence.hosts.iter().enumerate() {
        let name = host_name(evidence, index);
        let mut nics: Vec<&str> = Vec::new();
        for w in evidence.wire.iter().filter(|w| w.host == index) {
            if !nics.contains(&w.nic.as_str()) {
                nics.push(&w.nic);
            }
        }
        for nic in &nics {
            let windows = evidence.wire.iter().filter(|w| w.host == index && w.nic == *nic);
            let (mut errors, mut drops, mut bytes) = (0_u64, 0_u64, 0_u64);
            for w in windows {
                errors = errors.saturating_add(w.errors);
                drops = drops.saturating_add(w.drops);
                bytes = bytes.saturating_add(w.rx_bytes).saturating_add(w.tx_bytes);
            }
            let mtu = host.interfaces.iter().find(|i| i.name == *nic).map_or(1500, |i| i.mtu);
            let packets = (bytes / u64::from(mtu.max(576))).max(1);
            if errors == 0 && (drops as f64) < DROPS * packets as f64 {
                continue;
            }
            findings.push(RULE.found(
                Confidence::Certain,
                format!("{nic} of {name} counted {errors} errors and {drops} drops"),
                if errors > 0 {
                    "damaged packets: cable, optics or port"
                } else {
                    "packets came faster than they were taken: short rings or a busy core"
                },
                if errors > 0 {
                    format!("clean or change cable and optics of {nic} on {name}")
                } else {
                    format!("ethtool -G {nic} rx 4096 on {name}; spread its interrupts over cores")
                },
                vec![Exhibit::nic(*nic, &name, format!("{errors} errors, {drops} drops"))],
            ));
        }
        retransmits(evidence, index, &name, findings);
    }
}

fn retransmits(evidence: &Evidence, host: usize, name: &str, findings: &mut Vec<Finding>) {
    // the counter is the namespace's: one reading a point, whichever NIC it came with
    let mut points: Vec<usize> = Vec::new();
    let (mut again, mut sent) = (0_u64, 0_u64);
    for w in evidence.wire.iter().filter(|w| w.host == host) {
        if let (Some(a), Some(s)) = (w.retransmits, w.segments)
            && !points.contains(&w.point)
        {
            points.push(w.point);
            again = again.saturating_add(a);
            sent = sent.saturating_add(s);
        }
    }
    let share = if sent > 0 { again as f64 / sent as f64 } else { 0.0 };
    if share < REMARK {
        return;
    }
    let finding = RULE.found(
        Confidence::Certain,
        format!("{name} sent {} of its segments again ({again} of {sent})", percent(share)),
        "something on the way drops packets: a full queue, a policer, or a bad link",
        "look at queues, policers and error counters on the way from this host",
        vec![Exhibit::measured(format!("{name} retransmitted"), format!("{again} of {sent}"))],
    );
    findings.push(if share < RETRANSMITS { finding.at(Severity::Info) } else { finding });
}
