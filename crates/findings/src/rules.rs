//! The one visible list of rules, and what several of them look at.

use std::net::IpAddr;

use ncclctl_facts::net::Interface;

use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

#[cfg(test)]
mod spoken;

mod acs_enabled;
mod bootstrap_unreachable;
mod capability_name;
mod collective_mismatch;
mod cpu_affinity_restricted;
mod cpu_bound;
mod data_corruption;
mod debug_file_shared;
mod debug_output_left;
mod dns_resolution_failed;
mod driver_capabilities_missing;
mod driver_too_old;
mod duplicate_gpu;
mod efa_foreign_verbs_device;
mod efa_provider_missing;
mod env_contradiction;
mod env_deprecated_name;
mod env_empty_value;
mod env_file_syntax;
mod env_mismatch_across_ranks;
mod env_name_too_new;
mod env_no_effect;
mod env_not_effective_with_plugin;
mod env_removed_name;
mod env_unknown_name;
mod env_value_misread;
mod env_value_out_of_range;
mod env_workaround_left;
mod excess_capability;
mod extended_resource_mismatch;
mod fabric_manager_down;
mod fabric_manager_restarted;
mod gang_scheduling_missing;
mod gdr_disabled;
mod gdr_nccl_too_old_for_peermem;
mod gid_index_differs;
mod gid_index_pinned;
mod gid_index_wrong;
mod gid_sparse_table;
mod gid_table_empty;
mod gloo_ifname_syntax;
mod gpu_errors;
mod gpu_not_reserved;
mod gpu_out_of_memory;
mod gpu_throttled;
mod hami_vgpu_incompatible;
mod hca_baked_into_image;
mod hca_list_syntax;
mod hca_prefix_too_wide;
mod host_device_path;
mod host_namespaces;
mod host_network_dns_policy;
mod ib_completion_lost;
mod ib_device_not_visible;
mod ib_hca_fatal;
mod ib_port_flap;
mod ib_retry_exceeded;
mod ib_timeout_too_high;
mod ib_timeout_too_low;
mod ib_userspace_missing;
mod idle_connection_dropped;
mod ifname_baked_into_image;
mod ifname_list_syntax;
mod ifname_prefix_too_wide;
mod image_not_pinned;
mod imex_channel_missing;
mod imex_same_node;
mod init_stuck;
mod ipc_lock_inert;
mod k8s_env_not_expanded;
mod ll128_forced;
mod master_addr_other_network;
mod memlock_limit;
mod mig_not_supported;
mod mnnvl_init_crash;
mod mpi_env_not_forwarded;
mod mtu_mismatch;
mod mtu_small;
mod nccl_built_without_arch;
pub(crate) mod nccl_error_unexplained;
mod nccl_version_mismatch;
pub(crate) mod nccl_warning;
mod net_plugin_init_failed;
mod net_plugin_mismatch;
mod net_plugin_not_found;
mod nic_below_rated_speed;
mod nic_errors;
mod nic_half_duplex;
mod nic_pair_other_subnet;
mod noisy_result;
mod not_one_job;
mod nvls_multicast_failed;
mod p2p_broken;
pub(crate) mod peer_died;
mod pod_not_started;
mod privileged_container;
mod process_killed;
mod provider_env_stale;
mod rail_isolated_cross_nic;
mod rank_behind;
mod ras_address_exposed;
mod rdma_count_mismatch;
mod rdma_device_by_host_path;
mod rdma_no_network_attachment;
mod rdma_registration_kernel;
mod roce_congestion;
mod runs_as_root;
mod same_subnet_multi_nic;
mod secret_in_env;
mod service_account_token;
mod service_mesh_sidecar;
mod sharp_unavailable;
mod shm_not_in_memory;
mod shm_over_memory_limit;
mod shm_too_small;
mod silent_tcp_fallback;
mod single_nic_used;
mod slow_link;
mod slow_node;
mod slower_interface_chosen;
mod socket_ifname_is_address;
mod socket_ifname_loopback;
mod socket_ifname_mismatch;
mod socket_ifname_not_found;
mod statefulset_ordered_start;
pub(crate) mod suppression_unused;
pub(crate) mod suppression_without_reason;
mod tcpxo_env_mismatch;
mod token_in_arguments;
mod topo_file_malformed;
mod topo_file_other_machine;
mod topo_file_sub_path;
mod topology_search_failed;
mod transport_mixed;
mod tuner_plugin_conflict;
mod uneven_nics;
mod vgpu_without_uvm;
mod vm_topology_missing;
mod watchdog_timeout;
mod wrong_interface_linklocal;
mod wrong_interface_nonroutable;
mod wrong_interface_virtual;
mod xid_error;

/// All rules, in alphabetical order. Help, documentation, schema and completions are views of it.
pub const RULES: &[&Rule] = &[
    &acs_enabled::RULE,
    &bootstrap_unreachable::RULE,
    &capability_name::RULE,
    &collective_mismatch::RULE,
    &cpu_affinity_restricted::RULE,
    &cpu_bound::RULE,
    &data_corruption::RULE,
    &debug_file_shared::RULE,
    &debug_output_left::RULE,
    &dns_resolution_failed::RULE,
    &driver_capabilities_missing::RULE,
    &driver_too_old::RULE,
    &duplicate_gpu::RULE,
    &efa_foreign_verbs_device::RULE,
    &efa_provider_missing::RULE,
    &env_contradiction::RULE,
    &env_deprecated_name::RULE,
    &env_empty_value::RULE,
    &env_file_syntax::RULE,
    &env_mismatch_across_ranks::RULE,
    &env_name_too_new::RULE,
    &env_no_effect::RULE,
    &env_not_effective_with_plugin::RULE,
    &env_removed_name::RULE,
    &env_unknown_name::RULE,
    &env_value_misread::RULE,
    &env_value_out_of_range::RULE,
    &env_workaround_left::RULE,
    &excess_capability::RULE,
    &extended_resource_mismatch::RULE,
    &fabric_manager_down::RULE,
    &fabric_manager_restarted::RULE,
    &gang_scheduling_missing::RULE,
    &gdr_disabled::RULE,
    &gdr_nccl_too_old_for_peermem::RULE,
    &gid_index_differs::RULE,
    &gid_index_pinned::RULE,
    &gid_index_wrong::RULE,
    &gid_sparse_table::RULE,
    &gid_table_empty::RULE,
    &gloo_ifname_syntax::RULE,
    &gpu_errors::RULE,
    &gpu_not_reserved::RULE,
    &gpu_out_of_memory::RULE,
    &gpu_throttled::RULE,
    &hami_vgpu_incompatible::RULE,
    &hca_baked_into_image::RULE,
    &hca_list_syntax::RULE,
    &hca_prefix_too_wide::RULE,
    &host_device_path::RULE,
    &host_namespaces::RULE,
    &host_network_dns_policy::RULE,
    &ib_completion_lost::RULE,
    &ib_device_not_visible::RULE,
    &ib_hca_fatal::RULE,
    &ib_port_flap::RULE,
    &ib_retry_exceeded::RULE,
    &ib_timeout_too_high::RULE,
    &ib_timeout_too_low::RULE,
    &ib_userspace_missing::RULE,
    &idle_connection_dropped::RULE,
    &ifname_baked_into_image::RULE,
    &ifname_list_syntax::RULE,
    &ifname_prefix_too_wide::RULE,
    &image_not_pinned::RULE,
    &imex_channel_missing::RULE,
    &imex_same_node::RULE,
    &init_stuck::RULE,
    &ipc_lock_inert::RULE,
    &k8s_env_not_expanded::RULE,
    &ll128_forced::RULE,
    &master_addr_other_network::RULE,
    &memlock_limit::RULE,
    &mig_not_supported::RULE,
    &mnnvl_init_crash::RULE,
    &mpi_env_not_forwarded::RULE,
    &mtu_mismatch::RULE,
    &mtu_small::RULE,
    &nccl_built_without_arch::RULE,
    &nccl_error_unexplained::RULE,
    &nccl_version_mismatch::RULE,
    &nccl_warning::RULE,
    &net_plugin_init_failed::RULE,
    &net_plugin_mismatch::RULE,
    &net_plugin_not_found::RULE,
    &nic_below_rated_speed::RULE,
    &nic_errors::RULE,
    &nic_half_duplex::RULE,
    &nic_pair_other_subnet::RULE,
    &noisy_result::RULE,
    &not_one_job::RULE,
    &nvls_multicast_failed::RULE,
    &p2p_broken::RULE,
    &peer_died::RULE,
    &pod_not_started::RULE,
    &privileged_container::RULE,
    &process_killed::RULE,
    &provider_env_stale::RULE,
    &rail_isolated_cross_nic::RULE,
    &rank_behind::RULE,
    &ras_address_exposed::RULE,
    &rdma_count_mismatch::RULE,
    &rdma_device_by_host_path::RULE,
    &rdma_no_network_attachment::RULE,
    &rdma_registration_kernel::RULE,
    &roce_congestion::RULE,
    &runs_as_root::RULE,
    &same_subnet_multi_nic::RULE,
    &secret_in_env::RULE,
    &service_account_token::RULE,
    &service_mesh_sidecar::RULE,
    &sharp_unavailable::RULE,
    &shm_not_in_memory::RULE,
    &shm_over_memory_limit::RULE,
    &shm_too_small::RULE,
    &silent_tcp_fallback::RULE,
    &single_nic_used::RULE,
    &slow_link::RULE,
    &slow_node::RULE,
    &slower_interface_chosen::RULE,
    &socket_ifname_is_address::RULE,
    &socket_ifname_loopback::RULE,
    &socket_ifname_mismatch::RULE,
    &socket_ifname_not_found::RULE,
    &statefulset_ordered_start::RULE,
    &suppression_unused::RULE,
    &suppression_without_reason::RULE,
    &tcpxo_env_mismatch::RULE,
    &token_in_arguments::RULE,
    &topo_file_malformed::RULE,
    &topo_file_other_machine::RULE,
    &topo_file_sub_path::RULE,
    &topology_search_failed::RULE,
    &transport_mixed::RULE,
    &tuner_plugin_conflict::RULE,
    &uneven_nics::RULE,
    &vgpu_without_uvm::RULE,
    &vm_topology_missing::RULE,
    &watchdog_timeout::RULE,
    &wrong_interface_linklocal::RULE,
    &wrong_interface_nonroutable::RULE,
    &wrong_interface_virtual::RULE,
    &xid_error::RULE,
];

/// A NIC that moves less than this share of what the busiest one moves is idle.
const IDLE_SHARE: f64 = 0.05;

/// A finding about interfaces at the severity that it has here: with one host alone no interface
/// carries the traffic, so it only tells what a job over several hosts would meet.
fn between_hosts(evidence: &Evidence, finding: Finding) -> Finding {
    if evidence.hosts.len() > 1 { finding } else { finding.at(Severity::Info) }
}

/// 169.254.0.0/16 or fe80::/10.
fn link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// An address that another host could reach.
pub(crate) fn usable(ip: &IpAddr) -> bool {
    !ip.is_loopback() && !ip.is_unspecified() && !link_local(ip)
}

/// The network that an address lies in.
pub(crate) fn network(ip: IpAddr, prefix: u8) -> IpAddr {
    match ip {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            IpAddr::V6((u128::from(v6) & mask).into())
        }
    }
}

/// Interfaces that ranks use for data, by host, each once.
fn chosen_nics(evidence: &Evidence) -> Vec<(usize, &Interface)> {
    let mut out: Vec<(usize, &Interface)> = Vec::new();
    for rank in &evidence.ranks {
        let Some(host) = evidence.hosts.get(rank.host) else { continue };
        for chosen in &rank.interfaces {
            if let Some(i) = host.interfaces.iter().find(|i| i.name == chosen.name)
                && !out.iter().any(|(h, o)| *h == rank.host && o.name == i.name)
            {
                out.push((rank.host, i));
            }
        }
    }
    out
}

/// Mean rate (sent or received, whichever is more) of each NIC of a host that is there for data,
/// bytes per second over the largest size, the busiest first. For sockets these are the chosen
/// interfaces; for RDMA all devices whose counters were read.
fn nic_rates(evidence: &Evidence, host: usize) -> Vec<(String, f64)> {
    if evidence.hosts.len() < 2 {
        return Vec::new();
    }
    let chosen: Vec<&str> = chosen_nics(evidence)
        .iter()
        .filter(|(h, _)| *h == host)
        .map(|(_, i)| i.name.as_str())
        .collect();
    let Some(point) = evidence
        .wire
        .iter()
        .filter(|w| w.host == host)
        .filter_map(|w| Some((evidence.series.get(w.point)?.size, w.point)))
        .max()
        .map(|(_, point)| point)
    else {
        return Vec::new();
    };
    let mut rates: Vec<(String, f64)> = evidence
        .wire
        .iter()
        .filter(|w| w.host == host && w.point == point && w.seconds > 0.0 && w.nic != "lo")
        .filter(|w| chosen.is_empty() || chosen.contains(&w.nic.as_str()))
        .map(|w| (w.nic.clone(), w.tx_bytes.max(w.rx_bytes) as f64 / w.seconds))
        .collect();
    rates.sort_by(|a, b| b.1.total_cmp(&a.1));
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order_and_each_id_is_its_file() {
        assert!(RULES.is_sorted_by(|a, b| a.id < b.id));
        for rule in RULES {
            assert!(
                rule.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            );
            assert!(!rule.summary.is_empty() && !rule.summary.ends_with('.'), "{}", rule.id);
        }
    }

    #[test]
    fn networks() {
        let ip = |s: &str| s.parse::<IpAddr>().unwrap();
        assert_eq!(network(ip("10.1.2.3"), 24), ip("10.1.2.0"));
        assert_eq!(network(ip("10.1.2.3"), 0), ip("0.0.0.0"));
        assert_eq!(network(ip("fd00::5"), 64), ip("fd00::"));
        assert!(link_local(&ip("169.254.3.1")) && link_local(&ip("fe80::1")));
        assert!(usable(&ip("10.0.0.1")) && !usable(&ip("127.0.0.1")));
    }
}
