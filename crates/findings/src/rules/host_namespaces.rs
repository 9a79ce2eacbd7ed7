//! `host-namespaces`: a pod shares the host's IPC or process namespace.
//!
//! ## What
//!
//! A pod with GPUs has hostIPC or hostPID. Compose's `ipc: host` is for information.
//!
//! ## Why
//!
//! hostIPC shows every process's shared memory of the node to the job. It is used for a larger /dev/shm,
//! which a memory volume gives as well. NCCL makes no use of the host's process ids.
//!
//! ## Example
//!
//! `hostIPC shares the shared memory of every process of the node`
//!
//! ## Remedy
//!
//! Take it out, and mount an emptyDir with `medium: Memory` at /dev/shm.
//!
//! ## Source
//!
//! Kubernetes: pod security standards; NCCL src/transport/shm.cc.

use crate::documents::{Documents, Platform};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "host-namespaces",
        Severity::Warning,
        "a pod shares the host's IPC or process namespace",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for pod in set.pods.iter().filter(|p| p.kind != "DaemonSet") {
        let nccl = pod.containers.iter().any(|c| {
            c.gpu_spot().is_some()
                || set.settings(c).is_some_and(|b| b.starting(&["NCCL_"]).is_some())
        });
        if !nccl {
            continue;
        }
        let on = |t: &&crate::documents::Text| t.is_true() || t.text == "host";
        if let Some(ipc) = pod.host_ipc.as_ref().filter(on) {
            let compose = pod.platform == Platform::Compose;
            findings.push(
                set.say(
                    &RULE,
                    Confidence::Certain,
                    &ipc.at,
                    if compose {
                        "ipc: host shares the shared memory of every process of the host".to_owned()
                    } else {
                        "hostIPC shares the shared memory of every process of the node".to_owned()
                    },
                    "all that NCCL wants of it is a large /dev/shm; containers of two pods that are to \
                     exchange memory need the same /dev/shm, which is rare",
                    if pod.is_command() {
                        "write `--shm-size=8g` instead"
                    } else if compose {
                        "write `shm_size: 8gb` instead"
                    } else {
                        "take hostIPC out, and mount an emptyDir `{medium: Memory, sizeLimit: 8Gi}` at /dev/shm"
                    },
                )
                .at(if compose { Severity::Info } else { Severity::Warning }),
            );
        }
        if let Some(pid) = pod.host_pid.as_ref().filter(on) {
            findings.push(set.say(
                &RULE,
                Confidence::Certain,
                &pid.at,
                "the pod shares the host's process ids",
                "NCCL makes no use of it; processes of all jobs of the node can be seen and signalled",
                "take it out",
            ));
        }
    }
}
