//! `env-unknown-name`: name is no NCCL variable (typing error).
//!
//! ## What
//!
//! A variable begins with `NCCL_`, or is one of NCCL's in small letters, and no release of NCCL and no
//! known plug-in reads it. Names that PyTorch, images and build scripts use are left alone.
//!
//! ## Why
//!
//! NCCL reads exact names. It does not look for others, so that a typing error has no effect and no
//! message.
//!
//! ## Example
//!
//! `NCCL_SOCKET_IFNAMES is no variable of NCCL; NCCL_SOCKET_IFNAME is`
//!
//! ## Remedy
//!
//! Write the name that was meant, or take the line out.
//!
//! ## Source
//!
//! The catalogue of variables, mined from every tag of NVIDIA/nccl from 2.3.5 on.

use ncclctl_nccl::doubt::name;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("env-unknown-name", Severity::Warning, "name is no NCCL variable (typing error)")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[name::unknown], findings);
}
