//! `hca-list-syntax`: NCCL_IB_HCA is not read as it looks.
//!
//! ## What
//!
//! Wildcards, blanks, semicolons, or marks inside the list.
//!
//! ## Why
//!
//! The list is `[^][=]name[:port],…`: marks once before it, commas alone between names, no wildcards. What
//! matches no device leaves NCCL without RDMA, and it takes sockets without a warning.
//!
//! ## Example
//!
//! `NCCL_IB_HCA: no device is called mlx5_*`
//!
//! ## Remedy
//!
//! Write the list in NCCL's grammar.
//!
//! ## Source
//!
//! NCCL src/misc/utils.cc (parseStringList), src/transport/net_ib/init.cc.

use ncclctl_nccl::doubt::interface;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("hca-list-syntax", Severity::Error, "NCCL_IB_HCA is not read as it looks")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[interface::syntax, interface::not_found], findings);
}
