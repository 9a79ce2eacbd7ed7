//! GPUs and /dev/shm for the container.

use super::Rule;
use crate::draft::Draft;
use crate::look::Look;
use crate::result::{Need, NeedKind};

pub(super) const RULE: Rule = Rule { id: "memory", about: "GPUs and /dev/shm", plan };

const GIB: u64 = 1 << 30;

fn plan(look: &Look<'_>, draft: &mut Draft) {
    let gpus = look.nodes.iter().map(|n| n.gpus.len()).max().unwrap_or(0);
    if gpus > 0 {
        draft.need(Need {
            kind: NeedKind::Gpus,
            what: format!(
                "{gpus} GPU{} with compute and utility",
                if gpus == 1 { "" } else { "s" }
            ),
            why: "NCCL asks the driver and NVML for links and peers".into(),
            met: None,
            docker: vec!["--gpus all".into()],
            compose: vec![
                "deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, \
                 capabilities: [gpu]}]}}}"
                    .into(),
            ],
            pod: vec![format!("resources: limits: nvidia.com/gpu: {gpus}")],
        });
    }
    if gpus < 2 {
        return;
    }
    // about 4 MiB a connection (NCCL's buffers), and room for the loaders of the framework
    let least = gpus as u64;
    let smallest = look.nodes.iter().filter_map(|n| n.container.shm).min();
    draft.need(Need {
        kind: NeedKind::SharedMemory,
        what: format!("/dev/shm of {least} GiB or more"),
        why: match smallest {
            Some(size) if size < least * GIB => {
                format!(
                    "it has {} MiB; NCCL fails with `unhandled system error` when it is full",
                    size >> 20
                )
            }
            _ => {
                "GPUs of one node without peer access speak through it; Docker gives 64 MiB".into()
            }
        },
        met: smallest.map(|size| size >= least * GIB),
        docker: vec![format!("--shm-size={least}g")],
        compose: vec![format!("shm_size: {least}gb")],
        pod: vec![
            format!("volumes: [{{name: shm, emptyDir: {{medium: Memory, sizeLimit: {least}Gi}}}}]"),
            "volumeMounts: [{name: shm, mountPath: /dev/shm}]".into(),
        ],
    });
}
