//! `debug-file-shared`: one log file for all ranks.
//!
//! ## What
//!
//! NCCL_DEBUG_FILE holds neither %h nor %p.
//!
//! ## Why
//!
//! Every rank truncates the file when it opens it.
//!
//! ## Example
//!
//! `NCCL_DEBUG_FILE=/tmp/nccl.log is one file for all ranks`
//!
//! ## Remedy
//!
//! Write `NCCL_DEBUG_FILE=/tmp/nccl.%h.%p`.
//!
//! ## Source
//!
//! NCCL src/debug.cc.

use ncclctl_nccl::doubt::output;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("debug-file-shared", Severity::Info, "one log file for all ranks")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[output::file_shared], findings);
}
