//! Settings of the verbs transport: timers, GID index, devices, GPUDirect.

use super::{Doubt, Part, Setting, Weight, Write};
use crate::ifname::Filter;
use crate::version::Version;

/// Retry time codes below this end a job at a pause of 270 ms (seven tries of 67 ms at code 14).
const LEAST_TIMEOUT: i64 = 14;

/// Retry time codes over this hide a failing link for minutes: code 22 is 17 s a try.
const MOST_TIMEOUT: i64 = 22;

/// Since this release the GID index is found by NCCL itself.
pub const FINDS_GID: Version = Version::new(2, 21, 5);

fn timeout(s: Setting<'_>) -> Option<i64> {
    (s.name == "NCCL_IB_TIMEOUT" && !s.value.is_empty() && !s.open()).then(|| s.number())?
}

/// `ib-timeout-too-low`.
pub fn timeout_low(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let Some(code) = timeout(s).filter(|c| (1..LEAST_TIMEOUT).contains(c)) else { return };
    let micros = 4.096 * f64::from(1_u32 << code.clamp(0, 30));
    found.push(
        s.doubt(
            "ib-timeout-too-low",
            Weight::Warning,
            format!("NCCL_IB_TIMEOUT={code} is {micros:.0} µs a try"),
            "the default is 20 (18 before 2.23), 4.3 s a try: with so short a time any pause of the \
             fabric ends the job with status 12",
            "unset NCCL_IB_TIMEOUT, or set 20 to 22",
        )
        .writing(Write::Remove { safe: false }),
    );
}

/// `ib-timeout-too-high`.
pub fn timeout_high(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let Some(code) = timeout(s).filter(|c| *c > MOST_TIMEOUT || *c <= 0) else { return };
    let never = code <= 0 || code >= 32;
    let says = if never {
        "never gives up".to_owned()
    } else {
        format!("{:.0} s a try", 4.096e-6 * f64::from(1_u32 << code.clamp(0, 31)))
    };
    found.push(
        s.doubt(
            "ib-timeout-too-high",
            if never { Weight::Warning } else { Weight::Info },
            format!("NCCL_IB_TIMEOUT={code}: {says}"),
            "seven tries of that pass before an error is seen: a link that fails hangs the job for \
             minutes",
            "unset NCCL_IB_TIMEOUT (20, 4.3 s a try), and repair the link that needed it",
        )
        .writing(Write::Remove { safe: false }),
    );
}

/// `gid-index-wrong`.
pub fn gid_wrong(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_IB_GID_INDEX" || s.open() {
        return;
    }
    let empty = s.value.is_empty();
    if !empty && s.number() != Some(0) {
        return;
    }
    found.push(
        s.doubt(
            "gid-index-wrong",
            Weight::Warning,
            if empty {
                "NCCL_IB_GID_INDEX is set to nothing, which has acted as 0"
            } else {
                "NCCL_IB_GID_INDEX=0 takes the first GID"
            },
            "on RoCE entry 0 is the link-local or RoCE v1 address, or not there at all in a pod: \
             ibv_modify_qp fails, or only peers of one switch are reached",
            "take the line out; NCCL 2.21 and later choose the entry themselves (2.26 in pods)",
        )
        .writing(Write::Remove { safe: false }),
    );
}

/// `gid-index-pinned`.
pub fn gid_pinned(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_IB_GID_INDEX" || s.open() {
        return;
    }
    let Some(index) = s.number().filter(|i| *i > 0) else { return };
    if s.version < FINDS_GID {
        return;
    }
    found.push(
        s.doubt(
            "gid-index-pinned",
            if s.version_known { Weight::Warning } else { Weight::Info },
            format!("NCCL_IB_GID_INDEX={index} is pinned"),
            "NCCL 2.21 and later find the RoCE v2 entry themselves; the number of the right one \
             differs between nodes, pods and boots, and a wrong one fails on some nodes only. On \
             InfiniBand it is ignored since 2.22",
            "take the line out with NCCL 2.21 and later; before, set it for each node",
        )
        .writing(Write::Remove { safe: false }),
    );
}

/// GPUDirect RDMA switched off: `gdr-disabled`.
pub fn gdr_off(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let off = match s.name {
        "NCCL_NET_GDR_LEVEL" => matches!(s.value, "LOC" | "0"),
        "NCCL_NET_GDR_READ" => s.number() == Some(0),
        _ => false,
    };
    if !off {
        return;
    }
    let (what, cause) = match s.name {
        "NCCL_NET_GDR_LEVEL" => (
            format!("{} switches GPUDirect RDMA off", s.shown()),
            "LOC is no distance at all: every byte to and from the network goes through host memory",
        ),
        _ => (
            format!("{} switches GPUDirect RDMA off for sending", s.shown()),
            "what is sent goes through host memory; NCCL reads directly by itself on sm80 and later",
        ),
    };
    found.push(
        s.doubt("gdr-disabled", Weight::Warning, what, cause, format!("take {} out", s.name))
            .writing(Write::Remove { safe: false }),
    );
}

/// A device name that is also the start of others: `hca-prefix-too-wide`.
pub fn hca_prefix(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_IB_HCA" || s.open() {
        return;
    }
    let Some(filter) = Filter::parse(s.value) else { return };
    // a list that is not read as it looks is a matter of its own
    let body = s.value.trim_start_matches(['^', '=']);
    if filter.exact || filter.exclude || body.contains([' ', ';', '^', '=', '*']) {
        return;
    }
    // `mlx5_1` is also the start of mlx5_10; 2 to 9 only in machines with twenty devices and more
    let Some(entry) = filter.entries.iter().find(|e| e.ends_with("_1")) else { return };
    let named = |name: &str| filter.entries.contains(&name);
    if (0..10).all(|n| named(&format!("{entry}{n}"))) {
        return;
    }
    let at = s.value.find(entry).unwrap_or(0);
    found.push(
        s.doubt(
            "hca-prefix-too-wide",
            Weight::Info,
            format!("{} also takes {entry}0 to {entry}9 where they exist", s.shown()),
            "without `=` every entry is a prefix",
            format!("write the exact form: NCCL_IB_HCA=={}", s.value),
        )
        .on(Part::In(at..at + entry.len()))
        .writing(Write::Value { value: format!("={}", s.value), safe: false }),
    );
}

#[cfg(test)]
mod tests {
    use super::super::{Weight, doubts_of};
    use crate::Version;

    fn rules(name: &str, value: &str, version: Option<Version>) -> Vec<(&'static str, Weight)> {
        doubts_of(&[(name, value)], version).iter().map(|d| (d.rule, d.weight)).collect()
    }

    #[test]
    fn timers_and_indexes() {
        let new = Some(Version::new(2, 27, 3));
        let old = Some(Version::new(2, 20, 5));
        let timeout = |value| rules("NCCL_IB_TIMEOUT", value, None);
        assert_eq!(timeout("23"), [("ib-timeout-too-high", Weight::Info)]);
        assert_eq!(timeout("0"), [("ib-timeout-too-high", Weight::Warning)]);
        assert_eq!(timeout("2"), [("ib-timeout-too-low", Weight::Warning)]);
        assert_eq!(timeout("14"), []);
        let gid = |value, version| rules("NCCL_IB_GID_INDEX", value, version);
        assert_eq!(gid("3", new), [("gid-index-pinned", Weight::Warning)]);
        assert_eq!(gid("3", None), [("gid-index-pinned", Weight::Info)]);
        assert_eq!(gid("3", old), []);
        assert_eq!(gid("0", old), [("gid-index-wrong", Weight::Warning)]);
        assert_eq!(gid("${GID:-3}", None), []);
    }

    #[test]
    fn device_prefixes() {
        let hca = |value| rules("NCCL_IB_HCA", value, None).len();
        assert_eq!(hca("mlx5_0,mlx5_1"), 1);
        for quiet in ["mlx5", "=mlx5_0,mlx5_1", "^mlx5_1", "mlx5_0", "ibp"] {
            assert_eq!(hca(quiet), 0, "{quiet}");
        }
    }
}
