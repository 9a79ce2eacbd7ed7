//! `efa-provider-missing`: libfabric offers no efa provider in the container.
//!
//! ## What
//!
//! The OFI plugin runs, but libfabric gave it tcp or nothing instead of efa.
//!
//! ## Why
//!
//! The EFA devices are not mapped into the container, or the libfabric in the image has no efa
//! provider.
//!
//! ## Example
//!
//! `d41c07be93f2 runs the OFI plugin over provider tcp instead of efa`
//!
//! ## Remedy
//!
//! Map /dev/infiniband/uverbs* (Kubernetes: `vpc.amazonaws.com/efa`), use an EFA instance type, and
//! check `fi_info -p efa`.
//!
//! ## Source
//!
//! aws-ofi-nccl src/nccl_ofi_net.cpp; libfabric fi_getinfo.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "efa-provider-missing",
        Severity::Error,
        "libfabric offers no efa provider in the container",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let chosen: Vec<_> = incident
        .notices(&["elected Provider is ", "elected provider is "])
        .into_iter()
        .filter(|n| provider(&n.text).is_some_and(|p| p != "efa"))
        // Slingshot and others are meant where they are chosen
        .filter(|n| {
            provider(&n.text)
                .is_some_and(|p| p.contains("tcp") || p.contains("sockets") || p.contains("udp"))
        })
        .collect();
    let empty = incident.places(
        &["No eligible providers were found", "provider efa output empty list"],
        &[Signal::EfaProviderEmpty],
    );
    if chosen.is_empty() && empty.is_empty() {
        return;
    }
    let works =
        !incident.notices(&["elected Provider is efa", "elected provider is efa"]).is_empty();
    if chosen.is_empty() && works {
        return;
    }
    let host =
        chosen.first().and_then(|n| incident.process(n)).map_or("a host", |p| p.host.as_str());
    let over = chosen
        .first()
        .and_then(|n| provider(&n.text))
        .map_or("without any provider".to_owned(), |p| format!("over provider {p} instead of efa"));
    let mut places: Vec<_> = chosen.iter().map(|n| &n.at).collect();
    places.extend(empty.iter().copied());
    findings.push(RULE.found(
        if empty.is_empty() { Confidence::Likely } else { Confidence::Certain },
        format!("{host} runs the OFI plugin {over}"),
        "libfabric sees no EFA device in the container, or was built without the efa provider",
        "map the EFA devices (docker `--device=/dev/infiniband`, Kubernetes \
         `vpc.amazonaws.com/efa`), use an EFA instance type, and check `fi_info -p efa` inside",
        incident.exhibits(places, 4),
    ));
}

fn provider(text: &str) -> Option<&str> {
    let at = text.find("rovider is ")? + "rovider is ".len();
    text[at..].split([' ', ',', '(']).next()
}
