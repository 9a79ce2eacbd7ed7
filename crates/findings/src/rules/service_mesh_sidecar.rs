//! `service-mesh-sidecar`: a sidecar proxy captures the sockets of NCCL.
//!
//! ## What
//!
//! A service mesh's proxy stands between the ranks.
//!
//! ## Why
//!
//! Istio and Linkerd redirect all TCP of a pod through a proxy that knows HTTP and mTLS; NCCL's
//! protocol gets stuck or reset, and peers appear as 127.0.0.6.
//!
//! ## Example
//!
//! `connections come from 127.0.0.6: Istio's proxy`
//!
//! ## Remedy
//!
//! Annotate the pods `sidecar.istio.io/inject: "false"`, or exclude all their ports.
//!
//! ## Source
//!
//! Istio: InboundPassthroughCluster binds 127.0.0.6.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "service-mesh-sidecar",
        Severity::Error,
        "a sidecar proxy captures the sockets of NCCL",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let notices = incident.notices(&["127.0.0.6"]);
    let mut places: Vec<_> = notices.iter().map(|n| &n.at).collect();
    places.extend(incident.log.signal(Signal::Mesh));
    if places.is_empty() || incident.finished() {
        return;
    }
    let sure = !notices.is_empty();
    findings.push(RULE.found(
        if sure { Confidence::Certain } else { Confidence::Likely },
        "a service mesh's proxy stands between the ranks",
        "the proxy captures the pod's TCP connections and expects HTTP or mTLS; NCCL's own protocol \
         is held up or reset",
        "annotate launcher and workers sidecar.istio.io/inject: \"false\" (linkerd.io/inject: \
         disabled), or exclude all their ports from the proxy",
        incident.exhibits(places, 3),
    ));
}
