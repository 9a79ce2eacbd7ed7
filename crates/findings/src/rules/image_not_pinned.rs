//! `image-not-pinned`: an image without a fixed version.
//!
//! ## What
//!
//! A base or image has the tag `latest`, or none.
//!
//! ## Why
//!
//! The NCCL in the image changes with the next pull: ranks of one job may then run different releases.
//!
//! ## Example
//!
//! `vllm/vllm-openai:latest is another image tomorrow`
//!
//! ## Remedy
//!
//! Write a release's tag, or a digest.
//!
//! ## Source
//!
//! NCCL: the wire format between ranks belongs to the release.

use crate::documents::{Documents, Text};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("image-not-pinned", Severity::Info, "an image without a fixed version")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    let bases = set.images.iter().flat_map(|i| i.bases.last());
    let gpus = set
        .containers()
        .filter(|(_, c)| c.gpu_spot().is_some())
        .filter_map(|(_, c)| c.image.as_ref());
    for image in bases.chain(gpus) {
        if floats(image) {
            findings.push(set.say(
                &RULE,
                Confidence::Certain,
                &image.at,
                format!("{} is another image tomorrow", image.text),
                "the next pull may bring another NCCL: nodes that pulled on different days then run \
                 different releases in one job, which fails or hangs at start",
                "write the tag of a release, or a digest",
            ));
        }
    }
}

fn floats(image: &Text) -> bool {
    let text = image.text.as_str();
    if text == "scratch" || text.is_empty() || text.contains(['$', '{', '@']) {
        return false;
    }
    let name = text.rsplit('/').next().unwrap_or(text);
    match name.split_once(':') {
        Some((_, tag)) => tag == "latest" || tag.is_empty(),
        None => true,
    }
}
