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

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "service-mesh-sidecar",
        Severity::Error,
        "a sidecar proxy captures the sockets of NCCL",
    )
};

/// Speaks where injection is switched on for the namespace or the pod in the set, several pods speak
/// to each other, and the template does not say no.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for pod in &set.pods {
        let gpus =
            pod.together(set).iter().any(|p| p.containers.iter().any(|c| c.gpu_spot().is_some()));
        if !pod.several(set) || !gpus {
            continue;
        }
        let marks = || pod.labels.iter().chain(&pod.annotations);
        let said = |key: &str| marks().find(|(k, _)| k.text == key).map(|(_, v)| v);
        let off = said("sidecar.istio.io/inject").is_some_and(|v| v.text == "false")
            || said("linkerd.io/inject").is_some_and(|v| v.text == "disabled")
            || marks().any(|(k, v)| {
                k.text == "traffic.sidecar.istio.io/excludeInboundPorts" && v.text == "*"
            })
            || said("istio.io/dataplane-mode").is_some_and(|v| v.text == "none");
        if off {
            continue;
        }
        let on_pod = said("sidecar.istio.io/inject")
            .filter(|v| v.is_true())
            .or_else(|| said("linkerd.io/inject").filter(|v| v.text == "enabled"));
        let on_namespace = set.namespaces.iter().find(|(name, _)| *name == pod.namespace).and_then(
            |(_, labels)| {
                labels.iter().find(|(k, v)| {
                    (k.text == "istio-injection" && v.text == "enabled")
                        || k.text == "istio.io/rev"
                        || (k.text == "linkerd.io/inject" && v.text == "enabled")
                })
            },
        );
        // on the object alone it counts for nothing
        let misplaced = pod.owner_marks.iter().find(|(k, _)| {
            matches!(k.text.as_str(), "sidecar.istio.io/inject" | "linkerd.io/inject")
        });
        let (at, why) = match (on_pod, on_namespace) {
            (Some(text), _) => (text.at.clone(), "its template asks for the sidecar".to_owned()),
            (None, Some((key, value))) => {
                (pod.at.clone(), format!("its namespace has {}={}", key.text, value.text))
            }
            (None, None) => continue,
        };
        let remedy = if misplaced.is_some() {
            "the annotation on the object does not reach the pods: write it in the metadata of the pod \
             template, `sidecar.istio.io/inject: \"false\"`"
        } else {
            "write in the metadata of the pod template: `labels: {sidecar.istio.io/inject: \"false\"}` \
             (Linkerd: `annotations: {linkerd.io/inject: disabled}`)"
        };
        let mut found = set
            .say(
                &RULE,
                Confidence::Likely,
                &at,
                format!("{} gets a service mesh's proxy: {why}", pod.title()),
                "the proxy captures the pod's TCP connections and expects HTTP or mTLS; NCCL's own \
                 protocol is held up or reset at start",
                remedy,
            )
            .at(Severity::Error);
        if let Some((key, _)) = on_namespace {
            found.evidence.push(set.exhibit(&key.at));
        }
        findings.push(found);
    }
}

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
