//! `idle-connection-dropped`: something between the nodes dropped an established connection.
//!
//! ## What
//!
//! A socket that had carried data timed out.
//!
//! ## Why
//!
//! Firewalls, NAT and load balancers forget a connection that is silent for some minutes. NCCL's
//! sockets are silent while the ranks do other work, such as tokenising.
//!
//! ## Example
//!
//! `job-master-0 lost its connection to 10.128.9.77 after set-up was complete: Connection timed
//! out`
//!
//! ## Remedy
//!
//! Raise the idle timeout of what stands between the nodes, or shorten the idle phase; keep-alive
//! by `net.ipv4.tcp_keepalive_time` helps only where the socket asks for it.
//!
//! ## Source
//!
//! NCCL src/misc/socket.cc socketProgressOpt.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "idle-connection-dropped",
        Severity::Error,
        "something between the nodes dropped an established connection",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let failures = incident.socket_failures();
    let dropped = failures.iter().find(|(f, _)| {
        !f.connecting && matches!(f.error, "Connection timed out" | "Operation timed out")
    });
    let Some((failure, notice)) = dropped else { return };
    let Some(p) = incident.process(notice) else { return };
    let peer = failure.peer.map_or("its peer".to_owned(), |p| p.to_string());
    let when = if p.complete { " after set-up was complete" } else { "" };
    findings.push(RULE.found(
        if p.complete { Confidence::Likely } else { Confidence::Possible },
        format!("{} lost its connection to {peer}{when}: {}", p.host, failure.error),
        "the connection stood and then went silent: a firewall, NAT or load balancer between the \
         nodes dropped it while it was idle, or the path was cut",
        "raise the idle timeout of what stands between the nodes, or shorten the idle phase before \
         the first collective (communicate once before long work)",
        incident.exhibits([&notice.at], 3),
    ));
}
