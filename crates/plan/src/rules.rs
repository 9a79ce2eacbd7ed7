//! The planning rules: one file each, and this list.

mod cumem_host;
mod gdr_level;
mod gid_index;
mod hca;
mod interface;
mod memory;
mod mnnvl;
mod nvls;
mod peer;
mod ports;
mod provider;
mod quality_of_service;
mod rdma_access;
mod stability;
mod topology_file;
mod transport;

use crate::draft::Draft;
use crate::look::Look;

/// One rule: looks, and writes into the draft.
pub struct Rule {
    /// Id, as plans name it.
    pub id: &'static str,
    /// What it decides, in a few words.
    pub about: &'static str,
    pub(crate) plan: fn(&Look<'_>, &mut Draft),
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.id, self.about)
    }
}

/// Every rule, in the order in which plans are read.
pub const RULES: &[Rule] = &[
    transport::RULE,
    provider::RULE,
    interface::RULE,
    hca::RULE,
    gid_index::RULE,
    quality_of_service::RULE,
    gdr_level::RULE,
    topology_file::RULE,
    peer::RULE,
    cumem_host::RULE,
    nvls::RULE,
    mnnvl::RULE,
    stability::RULE,
    memory::RULE,
    rdma_access::RULE,
    ports::RULE,
];
