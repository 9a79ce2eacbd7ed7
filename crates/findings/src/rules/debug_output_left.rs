//! `debug-output-left`: debug output or a debugging aid was left on.
//!
//! ## What
//!
//! NCCL_DEBUG=TRACE, or one of NCCL_RUN_DIAGNOSTICS, NCCL_RUN_RAS_DIAGNOSTICS and
//! NCCL_PROGRESS_COUNTERS. NCCL_DEBUG=INFO is for information.
//!
//! ## Why
//!
//! TRACE writes a line for every call. The aids run at every init or in every kernel.
//!
//! ## Example
//!
//! `NCCL_RUN_DIAGNOSTICS=1 was left in place`
//!
//! ## Remedy
//!
//! NCCL_DEBUG=WARN in production; the aids only while something is looked for.
//!
//! ## Source
//!
//! NCCL user guide; the aids are of 2.31 and 2.32.

use ncclctl_nccl::doubt::output;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "debug-output-left",
        Severity::Warning,
        "debug output or a debugging aid was left on",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[output::debug_left], findings);
}
