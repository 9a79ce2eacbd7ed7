//! `gid-index-pinned`: the RoCE GID index is pinned.
//!
//! ## What
//!
//! NCCL_IB_GID_INDEX is a number over 0, and NCCL is 2.21 or later (a warning), or not known (for
//! information).
//!
//! ## Why
//!
//! From 2.21.5 NCCL scans the table for a RoCE v2 entry itself. The number of the right entry differs
//! between nodes, pods and boots.
//!
//! ## Example
//!
//! `NCCL_IB_GID_INDEX=3 is pinned`
//!
//! ## Remedy
//!
//! Take the line out.
//!
//! ## Source
//!
//! NCCL 2.21.5 src/transport/net_ib.cc; ignored on InfiniBand from 2.22.3.

use ncclctl_nccl::doubt::verbs;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("gid-index-pinned", Severity::Info, "the RoCE GID index is pinned")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[verbs::gid_pinned], findings);
}
