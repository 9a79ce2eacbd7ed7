//! Settings that do not go together.

use super::{Doubt, Setting, Weight, Write};
use crate::params;

type Hit = fn(&Setting<'_>) -> bool;

struct Pair {
    /// The setting that is named in the finding.
    name: &'static str,
    /// Whether it and what is beside it collide.
    hit: Hit,
    /// The other one.
    other: &'static str,
    weight: Weight,
    cause: &'static str,
    remedy: &'static str,
}

const PAIRS: [Pair; 14] = [
    Pair {
        name: "NCCL_IB_DISABLE",
        hit: |s| on(s) && s.beside("NCCL_NET").is_some_and(|n| n.eq_ignore_ascii_case("IB")),
        other: "NCCL_NET",
        weight: Weight::Error,
        cause: "NCCL_NET=IB insists on the transport that NCCL_IB_DISABLE=1 takes away: init fails",
        remedy: "take NCCL_IB_DISABLE out, or write NCCL_NET=Socket",
    },
    Pair {
        name: "NCCL_P2P_DISABLE",
        hit: |s| on(s) && s.beside("NCCL_P2P_LEVEL").is_some_and(|l| !matches!(l, "LOC" | "0")),
        other: "NCCL_P2P_LEVEL",
        weight: Weight::Warning,
        cause: "NCCL_P2P_DISABLE is looked at first and acts as LOC: the level counts for nothing",
        remedy: "take NCCL_P2P_DISABLE out",
    },
    Pair {
        name: "NCCL_MIN_NCHANNELS",
        hit: |s| over(s, "NCCL_MAX_NCHANNELS"),
        other: "NCCL_MAX_NCHANNELS",
        weight: Weight::Warning,
        cause: "the least is over the most: NCCL limits one by the other",
        remedy: "take both out",
    },
    Pair {
        name: "NCCL_MIN_CTAS",
        hit: |s| over(s, "NCCL_MAX_CTAS"),
        other: "NCCL_MAX_CTAS",
        weight: Weight::Warning,
        cause: "the least is over the most: NCCL limits one by the other",
        remedy: "take both out",
    },
    Pair {
        name: "NCCL_MIN_P2P_NCHANNELS",
        hit: |s| over(s, "NCCL_MAX_P2P_NCHANNELS"),
        other: "NCCL_MAX_P2P_NCHANNELS",
        weight: Weight::Warning,
        cause: "the least is over the most: NCCL limits one by the other",
        remedy: "take both out",
    },
    Pair {
        name: "NCCL_NVLS_ENABLE",
        hit: |s| on(s) && off(s, "NCCL_CUMEM_ENABLE"),
        other: "NCCL_CUMEM_ENABLE",
        weight: Weight::Warning,
        cause: "NVLS needs cuMem memory: with NCCL_CUMEM_ENABLE=0 it stays off",
        remedy: "take NCCL_CUMEM_ENABLE=0 out",
    },
    Pair {
        name: "NCCL_MNNVL_ENABLE",
        hit: |s| on(s) && off(s, "NCCL_CUMEM_ENABLE"),
        other: "NCCL_CUMEM_ENABLE",
        weight: Weight::Warning,
        cause: "multi-node NVLink needs cuMem memory; asked for with 1 it fails at init",
        remedy: "take NCCL_CUMEM_ENABLE=0 out",
    },
    Pair {
        name: "NCCL_ALGO",
        hit: |s| names(s, "collnet") && !s.on("NCCL_COLLNET_ENABLE"),
        other: "NCCL_COLLNET_ENABLE",
        weight: Weight::Warning,
        cause: "CollNet is only there with NCCL_COLLNET_ENABLE=1 and a plug-in that offers it",
        remedy: "write NCCL_COLLNET_ENABLE=1, or take NCCL_ALGO out",
    },
    Pair {
        name: "NCCL_ALGO",
        hit: |s| names(s, "nvls") && off(s, "NCCL_NVLS_ENABLE"),
        other: "NCCL_NVLS_ENABLE",
        weight: Weight::Warning,
        cause: "NCCL_NVLS_ENABLE=0 takes the algorithm away that NCCL_ALGO names",
        remedy: "take NCCL_ALGO out",
    },
    Pair {
        name: "NCCL_NSOCKS_PERTHREAD",
        hit: |s| {
            let threads = s.beside("NCCL_SOCKET_NTHREADS").map(params::read_integer);
            let sockets = params::read_integer(s.value).value.unwrap_or(0);
            threads.and_then(|t| t.value).is_some_and(|t| t.saturating_mul(sockets) > 64)
        },
        other: "NCCL_SOCKET_NTHREADS",
        weight: Weight::Warning,
        cause: "threads times sockets may be at most 64: NCCL cuts the sockets",
        remedy: "choose two numbers whose product is 64 or less",
    },
    Pair {
        name: "NCCL_NET_PLUGIN",
        hit: |s| {
            s.value == "none"
                && s.beside("NCCL_NET").is_some_and(|n| {
                    !n.eq_ignore_ascii_case("IB") && !n.eq_ignore_ascii_case("Socket")
                })
        },
        other: "NCCL_NET",
        weight: Weight::Error,
        cause: "NCCL_NET insists on a plug-in's network that NCCL_NET_PLUGIN=none does not load: \
                init fails",
        remedy: "take NCCL_NET_PLUGIN=none out",
    },
    Pair {
        name: "NCCL_SOCKET_FAMILY",
        hit: |s| {
            let family = s.value;
            s.beside("NCCL_COMM_ID").is_some_and(|id| {
                let six = id.starts_with('[');
                let four =
                    id.split(':').next().is_some_and(|h| h.parse::<std::net::Ipv4Addr>().is_ok());
                (family == "AF_INET" && six) || (family == "AF_INET6" && four)
            })
        },
        other: "NCCL_COMM_ID",
        weight: Weight::Error,
        cause: "the rendezvous address is of the other family: no interface matches",
        remedy: "take NCCL_SOCKET_FAMILY out",
    },
    Pair {
        name: "NCCL_IB_DISABLE",
        hit: |s| on(s) && s.on("NCCL_COLLNET_ENABLE"),
        other: "NCCL_COLLNET_ENABLE",
        weight: Weight::Warning,
        cause: "CollNet (SHARP) runs over InfiniBand, which NCCL_IB_DISABLE=1 takes away",
        remedy: "take one of the two out",
    },
    Pair {
        name: "NCCL_MULTI_RANK_GPU_ENABLE",
        hit: |s| on(s) && s.beside("NCCL_NVLS_ENABLE") == Some("1"),
        other: "NCCL_NVLS_ENABLE",
        weight: Weight::Warning,
        cause: "with several ranks on one GPU NVLS is not there",
        remedy: "take NCCL_NVLS_ENABLE out",
    },
];

fn on(s: &Setting<'_>) -> bool {
    s.on(s.name)
}

fn off(s: &Setting<'_>, name: &str) -> bool {
    s.beside(name).is_some_and(|v| params::read_integer(v).value == Some(0))
}

fn over(s: &Setting<'_>, most: &str) -> bool {
    let most = s.beside(most).and_then(|v| params::read_integer(v).value);
    let least = params::read_integer(s.value).value;
    least.zip(most).is_some_and(|(least, most)| most > 0 && least > most)
}

fn names(s: &Setting<'_>, word: &str) -> bool {
    !s.value.starts_with('^') && s.value.to_ascii_lowercase().contains(word)
}

/// `env-contradiction`.
pub fn contradiction(s: Setting<'_>, found: &mut Vec<Doubt>) {
    for p in PAIRS.iter().filter(|p| p.name == s.name && !s.open() && (p.hit)(&s)) {
        let other = match s.beside(p.other) {
            Some(value) => format!("{}={value}", p.other),
            None => format!("no {}=1", p.other),
        };
        found.push(s.doubt(
            "env-contradiction",
            p.weight,
            format!("{} contradicts {other}", s.shown()),
            p.cause,
            p.remedy,
        ));
    }
}

/// `env-no-effect`: a setting that another one makes idle.
pub fn no_effect(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let Some(param) = params::get(s.name) else { return };
    if !param.read_in(s.version) || s.open() {
        return;
    }
    let why = match s.name {
        // off by default or by hand: nothing to say about
        "NCCL_IB_DISABLE" => return,
        name if name.starts_with("NCCL_IB_") && s.on("NCCL_IB_DISABLE") => {
            "NCCL_IB_DISABLE=1 switches the verbs transport off"
        }
        name if name.starts_with("NCCL_IB_")
            && s.beside("NCCL_NET").is_some_and(|n| n.eq_ignore_ascii_case("Socket")) =>
        {
            "NCCL_NET=Socket takes sockets"
        }
        "NCCL_DEBUG_SUBSYS" | "NCCL_DEBUG_FILE" if s.beside("NCCL_DEBUG").is_none() => {
            "it needs NCCL_DEBUG=INFO (or NCCL_DEBUG_FILE any level over VERSION) beside it"
        }
        "NCCL_NET_GDR_LEVEL" | "NCCL_NET_GDR_READ"
            if s.on("NCCL_IB_DISABLE") && s.beside("NCCL_NET").is_none() =>
        {
            "NCCL_IB_DISABLE=1 switches the verbs transport off, and GPUDirect RDMA with it"
        }
        _ if param.risk.contains("dead:") => "no release in use looks at it",
        _ => return,
    };
    found.push(
        s.doubt(
            "env-no-effect",
            Weight::Info,
            format!("{} does nothing here", s.shown()),
            why,
            format!("take {} out", s.name),
        )
        // the log level may be given when the job is started
        .writing(Write::Remove { safe: !s.name.starts_with("NCCL_DEBUG") }),
    );
}

#[cfg(test)]
mod tests {
    use super::super::tests::rules;

    fn contradicts(all: &[(&str, &str)]) -> bool {
        rules(all).iter().any(|r| r.ends_with("env-contradiction"))
    }

    #[test]
    fn pairs() {
        for all in [
            [("NCCL_IB_DISABLE", "1"), ("NCCL_NET", "IB")],
            [("NCCL_P2P_LEVEL", "NVL"), ("NCCL_P2P_DISABLE", "1")],
            [("NCCL_MIN_NCHANNELS", "32"), ("NCCL_MAX_NCHANNELS", "8")],
            [("NCCL_NVLS_ENABLE", "1"), ("NCCL_CUMEM_ENABLE", "0")],
            [("NCCL_ALGO", "CollnetDirect"), ("NCCL_COLLNET_ENABLE", "0")],
            [("NCCL_NSOCKS_PERTHREAD", "32"), ("NCCL_SOCKET_NTHREADS", "4")],
            [("NCCL_NET", "AWS Libfabric"), ("NCCL_NET_PLUGIN", "none")],
        ] {
            assert!(contradicts(&all), "{all:?}");
        }
        for all in [
            [("NCCL_IB_DISABLE", "0"), ("NCCL_NET", "IB")],
            [("NCCL_P2P_LEVEL", "NVL"), ("NCCL_P2P_DISABLE", "0")],
            [("NCCL_MIN_NCHANNELS", "8"), ("NCCL_MAX_NCHANNELS", "32")],
            [("NCCL_ALGO", "^CollnetDirect"), ("NCCL_COLLNET_ENABLE", "0")],
        ] {
            assert!(!contradicts(&all), "{all:?}");
        }
    }

    #[test]
    fn idle_settings() {
        let all = [("NCCL_IB_DISABLE", "1"), ("NCCL_IB_TIMEOUT", "22"), ("NCCL_IB_HCA", "mlx5")];
        let idle = rules(&all).iter().filter(|r| r.ends_with("env-no-effect")).count();
        assert_eq!(idle, 2);
        assert!(
            rules(&[("NCCL_DEBUG_SUBSYS", "INIT")])
                .contains(&"NCCL_DEBUG_SUBSYS env-no-effect".to_owned())
        );
    }
}
