//! `env-name-too-new`: a variable that the NCCL in use does not read yet.
//!
//! ## What
//!
//! A variable of a later release than the one that the image, the pip pin or `--nccl` names. Silent where
//! no release is known.
//!
//! ## Why
//!
//! An older library ignores the name without a message.
//!
//! ## Example
//!
//! `NCCL_RAS_ENABLE is not read by NCCL 2.18.5`
//!
//! ## Remedy
//!
//! Use the release that reads it, or take the line out.
//!
//! ## Source
//!
//! The catalogue of variables: first tag that reads the name.

use ncclctl_nccl::doubt::name;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "env-name-too-new",
        Severity::Warning,
        "a variable that the NCCL in use does not read yet",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[name::too_new], findings);
}
