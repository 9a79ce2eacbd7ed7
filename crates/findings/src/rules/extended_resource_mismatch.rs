//! `extended-resource-mismatch`: limits and requests of a device differ.
//!
//! ## What
//!
//! A container requests another number of GPUs, RDMA or EFA devices than its limit, or requests them without a
//! limit.
//!
//! ## Why
//!
//! Devices can not be shared out: the API server refuses the object.
//!
//! ## Example
//!
//! `nvidia.com/gpu: 8 as limit, 4 as request`
//!
//! ## Remedy
//!
//! Write one number in both, or the limit alone.
//!
//! ## Source
//!
//! Kubernetes: extended resources.

use crate::documents::{Documents, Platform};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "extended-resource-mismatch",
        Severity::Error,
        "limits and requests of a device differ",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        if pod.platform != Platform::Kubernetes {
            continue;
        }
        for request in container.requests.iter().filter(|r| r.name.text.contains('/')) {
            let limit = container.limits.iter().find(|l| l.name.text == request.name.text);
            let says = match limit {
                Some(limit) if limit.amount.text == request.amount.text => continue,
                Some(limit) => {
                    format!("{} as limit, {} as request", limit.amount.text, request.amount.text)
                }
                None => format!("{} as request, no limit", request.amount.text),
            };
            findings.push(set.say(
                &RULE,
                Confidence::Certain,
                &request.amount.at,
                format!("{}: {says}", request.name.text),
                "devices are not overcommitted: request and limit must be equal, else the API server refuses \
                 the object",
                format!("write {} once, under limits", request.name.text),
            ));
        }
    }
}
