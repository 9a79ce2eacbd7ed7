//! `gid-index-wrong`: the chosen GID is link-local, RoCE v1 or empty.
//!
//! ## What
//!
//! A RoCE connection uses a GID that does not reach the other side.
//!
//! ## Why
//!
//! Slot 0 is fe80::, the next ones RoCE v1; only the RoCE v2 GID of a routable address passes a
//! router. NCCL up to 2.20 takes slot NCCL_IB_GID_INDEX (0 unless set); from 2.21 it searches,
//! unless the variable pins a slot.
//!
//! ## Example
//!
//! `dgx-1 talks from link-local GID fe80::9a1c:aeff:fe20:7711`
//!
//! ## Remedy
//!
//! Give the port a routable address and leave NCCL_IB_GID_INDEX unset with NCCL 2.21 or later, else
//! set it to the RoCE v2 slot.
//!
//! ## Source
//!
//! NCCL src/transport/net_ib ncclIbGetGidIndex.

use std::net::IpAddr;

use ncclctl_nccl::log::address::{self, is_link_local};

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_nccl::doubt::verbs;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "gid-index-wrong",
        Severity::Error,
        "the chosen GID is link-local, RoCE v1 or empty",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[verbs::gid_wrong], findings);
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for (completion, notice) in incident.completions() {
        let Some(gid) = [completion.local_gid, completion.remote_gid]
            .into_iter()
            .flatten()
            .find(|g| is_link_local(*g) || g.is_unspecified())
        else {
            continue;
        };
        // on InfiniBand a fe80 GID is the normal one
        if incident.process(notice).is_some_and(|p| p.ports.value.iter().any(|d| d.layer == "IB")) {
            continue;
        }
        let mut places = vec![&notice.at];
        let pinned = incident.setting("NCCL_IB_GID_INDEX");
        places.extend(pinned.map(|(_, at)| at));
        let host = incident.process(notice).map_or("a host", |p| p.host.as_str());
        findings.push(RULE.found(
            Confidence::Certain,
            format!("{host} talks over link-local GID {gid}"),
            "a link-local GID is valid on one link only; packets to it do not arrive",
            "give every RoCE port a routable address; leave NCCL_IB_GID_INDEX unset with NCCL 2.21 \
             or later, else set it to the RoCE v2 slot (often 3, see `show_gids`)",
            incident.exhibits(places, 4),
        ));
        return;
    }
    for notice in incident.notices(&["ibv_modify_qp failed"]) {
        let pinned = incident
            .process(notice)
            .and_then(|p| p.setting("NCCL_IB_GID_INDEX"))
            .or_else(|| incident.log.processes.iter().find_map(|p| p.setting("NCCL_IB_GID_INDEX")));
        let local = gid(&notice.text, "local GID");
        // on InfiniBand a fe80 GID is the normal one
        let native =
            incident.process(notice).is_some_and(|p| p.ports.value.iter().any(|d| d.layer == "IB"));
        let link_local = !native && local.is_some_and(is_link_local);
        let absent = ["No such device", "Invalid argument", "No data available"]
            .iter()
            .any(|e| notice.text.contains(e));
        if !(link_local || absent && pinned.is_some()) {
            continue;
        }
        let host = incident.process(notice).map_or("a host", |p| p.host.as_str());
        let slot = pinned.map_or("the chosen GID slot".to_owned(), |s| {
            format!("slot {} (NCCL_IB_GID_INDEX)", s.value)
        });
        let mut places = vec![&notice.at];
        places.extend(pinned.map(|s| &s.at));
        findings.push(RULE.found(
            if link_local { Confidence::Certain } else { Confidence::Likely },
            format!("{host}: {slot} holds no GID that reaches the peer"),
            "the slot is empty here, belongs to another network namespace, or is link-local",
            "unset NCCL_IB_GID_INDEX with NCCL 2.21 or later (2.26 in pods), else set it per host to \
             the RoCE v2 slot of `show_gids`",
            incident.exhibits(places, 4),
        ));
        return;
    }
}

fn gid(text: &str, key: &str) -> Option<IpAddr> {
    // `local GID index 0, local GID fe80::1`: the second one is the address
    text.match_indices(key)
        .find_map(|(at, _)| address::ip(text[at + key.len()..].trim_start_matches([' ', '='])))
}
