//! Settings that switch something off or pin it: right while a fault is looked for, costly after.

use super::{Doubt, Setting, Weight, Write};
use crate::layers;
use crate::params;

/// When a setting counts as a work-around.
#[derive(Clone, Copy)]
enum When {
    /// A switch that is on.
    On,
    /// A switch that is off.
    Off,
    /// Set to anything.
    Set,
    /// One of these words.
    Words(&'static [&'static str]),
}

struct WorkAround {
    name: &'static str,
    when: When,
    weight: Weight,
    what: &'static str,
    cost: &'static str,
}

const fn around(
    name: &'static str,
    when: When,
    weight: Weight,
    what: &'static str,
    cost: &'static str,
) -> WorkAround {
    WorkAround { name, when, weight, what, cost }
}

/// Switches of transports cost most of the rate; the others have uses.
const WORK_AROUNDS: [WorkAround; 27] = [
    around(
        "NCCL_P2P_DISABLE",
        When::On,
        Weight::Warning,
        "turns peer access off",
        "NVLink and PCIe peer access are not used: traffic between GPUs of one node goes through \
         host memory, often at a tenth of the rate",
    ),
    around(
        "NCCL_P2P_LEVEL",
        When::Words(&["LOC", "0"]),
        Weight::Warning,
        "turns peer access off",
        "NVLink and PCIe peer access are not used: traffic between GPUs of one node goes through \
         host memory, often at a tenth of the rate",
    ),
    around(
        "NCCL_P2P_LEVEL",
        When::Words(&["SYS", "PHB", "3", "4", "5", "6", "7"]),
        Weight::Info,
        "forces peer access over the CPU",
        "across a host bridge peer access may be slower than shared memory, and hangs or corrupts \
         where IOMMU or ACS are on",
    ),
    around(
        "NCCL_SHM_DISABLE",
        When::On,
        Weight::Warning,
        "turns shared memory off",
        "GPUs of one node without peer access speak over the network instead of shared memory",
    ),
    around(
        "NCCL_IB_DISABLE",
        When::On,
        Weight::Warning,
        "turns RDMA off",
        "InfiniBand and RoCE are not used: all traffic between nodes goes over TCP sockets, without \
         a message",
    ),
    around(
        "NCCL_NET_GDR_LEVEL",
        When::Words(&["SYS", "PXN", "4", "5", "6", "7", "8", "9"]),
        Weight::Warning,
        "forces GPUDirect RDMA across sockets",
        "4 and over are the old numbers of SYS, any distance: GPU and NIC of different sockets then speak over the inter-socket \
         link, often slower than through host memory. NCCL chooses PXB itself",
    ),
    around(
        "NCCL_NET_GDR_LEVEL",
        When::Words(&["PHB", "3"]),
        Weight::Info,
        "widens GPUDirect RDMA to PHB",
        "PHB goes through the CPU's host bridge: right in VMs that hide the PCIe tree, else often \
         slower than the default PXB",
    ),
    around(
        "NCCL_NET_GDR_LEVEL",
        When::Words(&["PXB", "2"]),
        Weight::Info,
        "is what NCCL does anyway",
        "PXB (old number 2) is the default: harmless, and of no use",
    ),
    around(
        "NCCL_NET_GDR_LEVEL",
        When::Words(&["PIX", "1"]),
        Weight::Info,
        "narrows GPUDirect RDMA to one PCIe switch",
        "GPUs whose NIC is behind two switches lose GPUDirect RDMA; the default is PXB",
    ),
    around(
        "NCCL_CUMEM_ENABLE",
        When::Off,
        Weight::Info,
        "turns cuMem off",
        "it switches NVLS, multi-node NVLink and symmetric windows off too",
    ),
    around(
        "NCCL_NVLS_ENABLE",
        When::Off,
        Weight::Info,
        "turns NVLS off",
        "NVLink SHARP is not used: slower all-reduce within NVSwitch machines of Hopper and later",
    ),
    around(
        "NCCL_DMABUF_ENABLE",
        When::Off,
        Weight::Info,
        "turns DMA-BUF off",
        "GPUDirect RDMA then needs nvidia_peermem",
    ),
    around(
        "NCCL_IGNORE_DISABLED_P2P",
        When::On,
        Weight::Warning,
        "hides a broken NVLink",
        "a pair of GPUs whose NVLink does not work is used over PCIe or host memory, and nobody is \
         told",
    ),
    around(
        "NCCL_RUNTIME_CONNECT",
        When::Off,
        Weight::Info,
        "connects everything at init",
        "longer start, more memory",
    ),
    around(
        "NCCL_PXN_DISABLE",
        When::On,
        Weight::Info,
        "turns PXN off",
        "NICs are not reached over NVLink: all-to-all is slower",
    ),
    around(
        "NCCL_GDR_FLUSH_DISABLE",
        When::On,
        Weight::Warning,
        "skips the flush of GPUDirect RDMA",
        "data may be read before it has arrived",
    ),
    around(
        "NCCL_IB_MERGE_NICS",
        When::Off,
        Weight::Info,
        "keeps ports of one card apart",
        "two ports of one card are then two NICs: right where they are of different subnets",
    ),
    around(
        "NCCL_IB_PCI_RELAXED_ORDERING",
        When::Off,
        Weight::Info,
        "turns PCIe relaxed ordering off",
        "in VMs GPUDirect RDMA then runs at a fraction of its rate",
    ),
    around(
        "NCCL_IGNORE_CPU_AFFINITY",
        When::On,
        Weight::Info,
        "lets NCCL's threads leave the CPUs of the process",
        "harmless: NCCL takes the GPU's own CPUs instead of those that the process was pinned to. \
         It helps where the launcher pins wrongly, and overrides it where it pins rightly",
    ),
    around(
        "NCCL_ALGO",
        When::Set,
        Weight::Warning,
        "pins the algorithm",
        "NCCL chooses by size, node count and topology; a pinned list is slower at most sizes, and \
         from 2.24 functions that the list does not serve fail with invalid usage",
    ),
    around(
        "NCCL_PROTO",
        When::Set,
        Weight::Warning,
        "pins the protocol",
        "NCCL chooses LL, LL128 or Simple by size; Simple alone multiplies the latency of small \
         messages",
    ),
    around(
        "NCCL_MAX_NCHANNELS",
        When::Set,
        Weight::Info,
        "caps the channels",
        "few channels cap the bandwidth; NCCL chooses the number by the topology",
    ),
    around(
        "NCCL_MAX_CTAS",
        When::Set,
        Weight::Info,
        "caps the channels",
        "few channels cap the bandwidth; NCCL chooses the number by the topology",
    ),
    around(
        "NCCL_MIN_NCHANNELS",
        When::Set,
        Weight::Info,
        "raises the number of channels",
        "more channels take SMs and memory from the computation",
    ),
    around(
        "NCCL_MAX_NRINGS",
        When::Set,
        Weight::Info,
        "caps the channels",
        "few channels cap the bandwidth; NCCL chooses the number by the topology",
    ),
    around(
        "CUDA_LAUNCH_BLOCKING",
        When::On,
        Weight::Warning,
        "makes every kernel launch wait",
        "no kernel overlaps with another or with communication: training runs at a fraction of its \
         rate",
    ),
    around(
        "NCCL_LAUNCH_MODE",
        When::Words(&["GROUP"]),
        Weight::Info,
        "makes threads of one process wait for each other",
        "only of use with several GPUs in one process under very old CUDA",
    ),
];

/// `env-workaround-left`.
pub fn left(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.value.is_empty() || s.open() {
        return;
    }
    for w in WORK_AROUNDS.iter().filter(|w| w.name == s.name) {
        let number = params::read_integer(s.value).value;
        let hit = match w.when {
            When::On if s.name == "CUDA_LAUNCH_BLOCKING" => s.value != "0",
            When::On => number.is_some_and(|n| n != 0),
            When::Off => number == Some(0),
            When::Set => !s.value.starts_with('-'),
            When::Words(words) => words.contains(&s.value),
        };
        let Some(param) = params::get(s.name).filter(|p| p.read_in(s.version)) else { return };
        // a text that counts as 0 is a slip of its own
        if !hit
            || (s.name != "CUDA_LAUNCH_BLOCKING" && param.taken(s.value, s.version).trap.is_some())
        {
            continue;
        }
        // excluding LL128 is what the guide advises against wrong data
        if s.name == "NCCL_PROTO" && (forces_ll128(s.value) || s.value == "^LL128") {
            return;
        }
        found.push(
            s.doubt(
                "env-workaround-left",
                if purposeful(s) { Weight::Info } else { w.weight },
                format!("{} {}", s.shown(), w.what),
                w.cost,
                match w.weight {
                    Weight::Info => {
                        format!("take {} out, unless a measurement speaks for it", s.name)
                    }
                    _ => format!(
                        "take {} out; if the fault that it was for is still there, mend that",
                        s.name
                    ),
                },
            )
            .writing(Write::Remove { safe: false }),
        );
        return;
    }
}

/// Whether what is beside it shows that it is there on purpose: a provider's profile, or a job that
/// asks for sockets.
fn purposeful(s: Setting<'_>) -> bool {
    let profile = s.all.iter().any(|(name, _)| {
        layers::plugin_of(name).is_some() || *name == "FI_PROVIDER" || name.starts_with("FI_EFA_")
    });
    let sockets = s.name == "NCCL_IB_DISABLE"
        && s.beside("NCCL_NET").is_some_and(|net| !net.eq_ignore_ascii_case("IB"));
    let plugin = s
        .beside("NCCL_NET")
        .is_some_and(|net| !net.eq_ignore_ascii_case("IB") && !net.eq_ignore_ascii_case("Socket"));
    (profile && !matches!(s.name, "NCCL_P2P_DISABLE" | "NCCL_SHM_DISABLE" | "CUDA_LAUNCH_BLOCKING"))
        || sockets
        || (plugin && matches!(s.name, "NCCL_ALGO" | "NCCL_PROTO"))
}

/// Whether a list names LL128, or excludes others and not it.
fn forces_ll128(value: &str) -> bool {
    let mut lists = value.split(';').map(|part| part.split_once(':').map_or(part, |(_, l)| l));
    lists.any(|list| match list.strip_prefix('^') {
        Some(out) => !out.split(',').any(|w| w.eq_ignore_ascii_case("LL128")),
        None => list.split(',').any(|w| w.eq_ignore_ascii_case("LL128")),
    })
}

/// `ll128-forced`.
pub fn ll128(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_PROTO" || s.value.is_empty() || s.open() || !forces_ll128(s.value) {
        return;
    }
    let profile = s.all.iter().any(|(name, _)| layers::plugin_of(name).is_some());
    found.push(
        s.doubt(
            "ll128-forced",
            if profile { Weight::Info } else { Weight::Warning },
            format!("{} switches LL128 on", s.shown()),
            "LL128 is safe only where NCCL itself chooses it (NVLink, one GPU generation); a list \
             that names it, or that excludes another protocol with `^`, forces it: data may be wrong",
            "unset NCCL_PROTO; to try without LL128 write NCCL_PROTO=^LL128",
        )
        .writing(Write::Remove { safe: false }),
    );
}

#[cfg(test)]
mod tests {
    use super::super::{Weight, doubts_of};

    fn of(all: &[(&str, &str)]) -> Vec<(&'static str, Weight)> {
        doubts_of(all, None).iter().map(|d| (d.rule, d.weight)).collect()
    }

    #[test]
    fn what_costs_and_what_is_harmless() {
        const LEFT: &str = "env-workaround-left";
        for (name, value, weight) in [
            ("NCCL_P2P_DISABLE", "1", Weight::Warning),
            ("NCCL_NET_GDR_LEVEL", "5", Weight::Warning),
            ("NCCL_NET_GDR_LEVEL", "2", Weight::Info),
            ("NCCL_IGNORE_CPU_AFFINITY", "1", Weight::Info),
            ("NCCL_ALGO", "Ring", Weight::Warning),
            ("NCCL_PROTO", "Simple", Weight::Warning),
            ("CUDA_LAUNCH_BLOCKING", "1", Weight::Warning),
            ("NCCL_NVLS_ENABLE", "0", Weight::Info),
        ] {
            assert_eq!(of(&[(name, value)]), [(LEFT, weight)], "{name}={value}");
        }
        for (name, value) in [
            ("NCCL_P2P_LEVEL", "NVL"),
            ("NCCL_CUMEM_ENABLE", "1"),
            ("NCCL_PROTO", "^LL128"),
            ("CUDA_LAUNCH_BLOCKING", "0"),
        ] {
            assert_eq!(of(&[(name, value)]), [], "{name}={value}");
        }
        assert_eq!(of(&[("NCCL_PROTO", "^Simple")]), [("ll128-forced", Weight::Warning)]);
    }

    #[test]
    fn a_providers_profile_is_there_on_purpose() {
        let profile = [
            ("NCCL_FASTRAK_CTRL_DEV", "eth0"),
            ("NCCL_PROTO", "Simple"),
            ("NCCL_ALGO", "Ring,Tree"),
            ("NCCL_NVLS_ENABLE", "0"),
        ];
        assert!(of(&profile).iter().all(|(_, weight)| *weight == Weight::Info));
        let sockets = [("NCCL_NET", "Socket"), ("NCCL_IB_DISABLE", "1")];
        assert!(of(&sockets).iter().all(|(_, weight)| *weight == Weight::Info));
    }
}
