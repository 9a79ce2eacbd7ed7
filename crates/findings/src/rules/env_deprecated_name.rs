//! `env-deprecated-name`: an old name that is still read.
//!
//! ## What
//!
//! A name that has a successor and is still honoured.
//!
//! ## Why
//!
//! Old names go one day without a message.
//!
//! ## Example
//!
//! `NCCL_MAX_NCHANNELS is the old name of NCCL_MAX_CTAS`
//!
//! ## Remedy
//!
//! Write the new name.
//!
//! ## Source
//!
//! NCCL user guide; NCCL src/init.cc (`NCCL_MAX_CTAS` from 2.17).

use ncclctl_nccl::doubt::name;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("env-deprecated-name", Severity::Info, "an old name that is still read")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[name::deprecated], findings);
}
