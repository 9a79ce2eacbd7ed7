//! Clouds whose own profile decides: it is completed, never overridden.

use super::Rule;
use crate::draft::Draft;
use crate::look::Look;
use crate::node::{Link, Provider};
use crate::result::{Need, NeedKind};

pub(super) const RULE: Rule =
    Rule { id: "provider-profile", about: "EFA, GPUDirect-TCPX(O): the provider's profile", plan };

fn plan(look: &Look<'_>, draft: &mut Draft) {
    for node in look.nodes {
        match &node.provider {
            Provider::Efa(kind) if node.hcas.iter().any(|h| h.link == Link::Efa) => {
                let met = !node.net_plugins.is_empty();
                draft.leave(
                    "NCCL_NET_PLUGIN",
                    "libnccl-net.so of aws-ofi-nccl is found by its name once it is on the loader path",
                );
                draft.leave("NCCL_PROTO", "the OFI plug-in chooses for this instance type");
                draft.leave(
                    "NCCL_TOPO_FILE",
                    "the OFI plug-in brings the file of this instance type",
                );
                need(
                    draft,
                    Need {
                        kind: NeedKind::Plugin,
                        what: format!("the OFI plug-in of AWS on the loader path ({kind})"),
                        why: "NCCL's own verbs transport can not use EFA: without it, TCP".into(),
                        met: Some(met),
                        docker: vec![
                            "-e LD_LIBRARY_PATH=/opt/amazon/ofi-nccl/lib:/opt/amazon/efa/lib".into(),
                        ],
                        compose: vec![
                            "environment: {LD_LIBRARY_PATH: /opt/amazon/ofi-nccl/lib:/opt/amazon/efa/lib}"
                                .into(),
                        ],
                        pod: vec!["resources: limits: vpc.amazonaws.com/efa: 1".into()],
                    },
                );
                return;
            }
            Provider::Tcpx(kind) | Provider::Tcpxo(kind) => {
                let o = matches!(node.provider, Provider::Tcpxo(_));
                let family = if o { "GPUDirect-TCPXO" } else { "GPUDirect-TCPX" };
                for name in ["NCCL_SOCKET_IFNAME", "NCCL_PROTO", "NCCL_ALGO", "NCCL_CROSS_NIC"] {
                    draft.leave(name, format!("{family}: the installed profile sets it"));
                }
                need(
                    draft,
                    Need {
                        kind: NeedKind::Plugin,
                        what: format!("{family}'s library folder and its profile ({kind})"),
                        why: "the plug-in checks every value against the profile it was installed \
                              with; copied values go stale"
                            .into(),
                        met: Some(!node.net_plugins.is_empty()),
                        docker: vec!["-v /var/lib/tcpxo/lib64:/usr/local/nvidia/lib64:ro".into()],
                        compose: vec![
                            "volumes: [/var/lib/tcpxo/lib64:/usr/local/nvidia/lib64:ro]".into(),
                        ],
                        pod: vec![
                            "command: source /usr/local/nvidia/lib64/nccl-env-profile.sh first"
                                .into(),
                        ],
                    },
                );
                return;
            }
            _ => {}
        }
    }
}

fn need(draft: &mut Draft, need: Need) {
    draft.need(need);
}
