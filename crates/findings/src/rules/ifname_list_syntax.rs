//! `ifname-list-syntax`: an interface list is not read as it looks.
//!
//! ## What
//!
//! Blanks, semicolons, or marks inside NCCL_SOCKET_IFNAME or NCCL_OOB_NET_IFNAME.
//!
//! ## Why
//!
//! The list is `[^][=]name,…`: marks once before it, and for all of it; a blank belongs to the name.
//!
//! ## Example
//!
//! `NCCL_SOCKET_IFNAME=eth0,^docker0 is not read as it looks`
//!
//! ## Remedy
//!
//! Write the list in NCCL's grammar.
//!
//! ## Source
//!
//! NCCL src/misc/socket.cc, src/misc/utils.cc.

use ncclctl_nccl::doubt::interface;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("ifname-list-syntax", Severity::Error, "an interface list is not read as it looks")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[interface::syntax], findings);
}
