//! `topo-file-sub-path`: the topology file is mounted by subPath.
//!
//! ## What
//!
//! NCCL_TOPO_FILE points at a mount with `subPath`.
//!
//! ## Why
//!
//! A subPath of a ConfigMap is never renewed, and a key that is not there becomes an empty folder, which
//! NCCL leaves aside without a warning (INFO from 2.27).
//!
//! ## Example
//!
//! `NCCL_TOPO_FILE is mounted by subPath topo.xml`
//!
//! ## Remedy
//!
//! Mount the folder, and point NCCL_TOPO_FILE into it.
//!
//! ## Source
//!
//! Kubernetes: volumes, using subPath; NCCL src/graph/xml.cc.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("topo-file-sub-path", Severity::Info, "the topology file is mounted by subPath")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (_, container) in set.containers() {
        let Some(file) = set.value(container, "NCCL_TOPO_FILE") else { continue };
        let mount = container.mounts.iter().find(|m| m.path.text == file.value.text);
        let Some(sub) = mount.and_then(|m| m.sub_path.as_ref()) else { continue };
        findings.push(set.say(
            &RULE,
            Confidence::Likely,
            &sub.at,
            format!("NCCL_TOPO_FILE is mounted by subPath {}", sub.text),
            "it is never renewed with the ConfigMap, and a key that is missing becomes an empty folder: \
             NCCL then goes on without the file and says so at INFO level only",
            "mount the whole ConfigMap as a folder, and write NCCL_TOPO_FILE=FOLDER/FILE",
        ));
    }
}
