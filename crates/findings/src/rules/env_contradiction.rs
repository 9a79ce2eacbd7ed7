//! `env-contradiction`: two variables contradict each other.
//!
//! ## What
//!
//! Two settings of one process that can not both hold.
//!
//! ## Why
//!
//! One of them wins by NCCL's own order, or init fails.
//!
//! ## Example
//!
//! `NCCL_IB_DISABLE=1 contradicts NCCL_NET=IB`
//!
//! ## Remedy
//!
//! Take one of them out.
//!
//! ## Source
//!
//! NCCL src/transport/net_ib, src/transport.cc, src/init.cc, src/graph/tuning.cc.

use ncclctl_nccl::doubt::pair;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("env-contradiction", Severity::Warning, "two variables contradict each other")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[pair::contradiction], findings);
}
