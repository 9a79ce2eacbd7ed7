//! `ib-port-flap`: an IB or RoCE port went down.
//!
//! ## What
//!
//! A port left the active state while the job ran.
//!
//! ## Why
//!
//! A cable, transceiver, switch port or the subnet manager. Transfers on it end with retry errors
//! unless the port is back within the time-out.
//!
//! ## Example
//!
//! `h1: mlx5_2:1 port error`
//!
//! ## Remedy
//!
//! Check cable and transceiver of the named port (`mlxlink`, `ibdiagnet`, switch log).
//!
//! ## Source
//!
//! IBV_EVENT_PORT_ERR; mlx5_core link events.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("ib-port-flap", Severity::Error, "an IB or RoCE port went down")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let events = incident.notices(&["port error", "port_err", "PORT_ERR", "speed change detected"]);
    let kernel = incident.log.signal(Signal::LinkDown);
    if events.is_empty() && kernel.is_empty() {
        return;
    }
    let host =
        events.first().and_then(|n| incident.process(n)).map_or("a host", |p| p.host.as_str());
    let port = events
        .iter()
        .find_map(|n| n.text.split([' ', ',']).find(|w| w.contains("_") && w.contains(':')))
        .map_or(String::new(), |p| format!(" {p}"));
    let mut places: Vec<_> = events.iter().map(|n| &n.at).collect();
    places.extend(kernel);
    findings.push(RULE.found(
        if events.is_empty() { Confidence::Likely } else { Confidence::Certain },
        format!("{host}:{port} port went down while the job ran"),
        "a cable, transceiver, switch port or the subnet manager dropped the link",
        "check cable and transceiver of that port (`mlxlink -d DEV`, switch log), then its symbol \
         error and link_downed counters",
        incident.exhibits(places, 4),
    ));
}
