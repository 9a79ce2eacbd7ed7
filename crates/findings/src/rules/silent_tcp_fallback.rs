//! `silent-tcp-fallback`: RDMA was meant, sockets are used.
//!
//! ## What
//!
//! NCCL chose its socket transport although something shows that RDMA was meant.
//!
//! ## Why
//!
//! When the verbs transport or a plugin finds nothing usable, NCCL takes sockets without a warning:
//! training runs, at a fraction of the speed.
//!
//! ## Example
//!
//! `ds-worker-1 uses sockets though NCCL_IB_DISABLE=0 is set`
//!
//! ## Remedy
//!
//! Mend the cause that is named beside; set NCCL_NET=IB (or the plugin's name) so that a fall-back
//! fails loudly.
//!
//! ## Source
//!
//! NCCL src/plugin/net.cc: the first network that initialises wins.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("silent-tcp-fallback", Severity::Warning, "RDMA was meant, sockets are used")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let sockets: Vec<_> =
        incident.log.processes.iter().filter(|p| p.network.value == "Socket").collect();
    let Some(first) = sockets.first() else { return };
    if first.setting("NCCL_NET").is_some_and(|s| s.value.eq_ignore_ascii_case("socket"))
        || first.setting("NCCL_IB_DISABLE").is_some_and(|s| s.value == "1")
        || incident.no_rdma_here()
    {
        return;
    }
    let library = incident.notices(&["Failed to open libibverbs"]);
    let (why, at, confidence) = match (incident.rdma_meant(), library.first()) {
        (Some((why, at)), _) => (why, at, Confidence::Likely),
        (None, Some(n)) => {
            let alone = incident.log.warnings().all(|n| n.text.contains("libibverbs"));
            if incident.finished() || !alone || incident.small_gpus() {
                return;
            }
            ("the verbs libraries are missing".to_owned(), Some(&n.at), Confidence::Possible)
        }
        (None, None) => return,
    };
    let mut places = vec![&first.network.at];
    places.extend(at);
    places.extend(first.no_rdma.as_ref());
    findings.push(RULE.found(
        confidence,
        format!("{} uses sockets: {why}", first.host),
        "NCCL takes sockets without a warning when RDMA finds nothing usable; training runs at a \
         fraction of the speed",
        "mend the cause beside; NCCL_NET=IB (or the plugin's name) makes a fall-back fail loudly",
        incident.exhibits(places, 4),
    ));
}
