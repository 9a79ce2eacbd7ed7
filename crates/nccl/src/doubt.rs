//! Doubts about a setting that is already there: what NCCL's own rules and its history say about a
//! name and a value, without looking at a machine. The planner asks them as questions, the rules of
//! the linter report them as findings; the knowledge is here, once.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::layers::{self, Read};
use crate::params::{self, Trap};
use crate::version::Version;

/// How much a doubt weighs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Worth knowing.
    Info,
    /// Costs speed or safety.
    Warning,
    /// Does not do what it says, or breaks the job.
    Error,
}

/// A doubt about one setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Doubt {
    /// Rule of the catalogue of findings.
    pub rule: &'static str,
    /// Weight.
    pub weight: Weight,
    /// Name of the setting.
    pub name: String,
    /// What is there.
    pub what: String,
    /// Why it is wrong.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

/// A setting under doubt, and its neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// Name.
    pub name: &'a str,
    /// Value as written.
    pub value: &'a str,
    /// Release that reads it; the newest known where none was named.
    pub version: Version,
    /// Whether that release was named. Where it was not, only names that no release reads are
    /// called removed or unknown.
    pub version_known: bool,
    /// Every setting beside it, itself included.
    pub all: &'a [(&'a str, &'a str)],
}

/// Newest release of the catalogue.
pub const NEWEST: Version = Version::new(2, 32, 6);

/// Retry time codes below this end a job at a pause of 270 ms (seven tries of 67 ms at code 14).
const LEAST_IB_TIMEOUT: i64 = 14;

/// Retry time codes over this hide a failing link for minutes: code 22 is 17 s a try.
const MOST_IB_TIMEOUT: i64 = 22;

type Ask = fn(Setting<'_>, &mut Vec<Doubt>);

/// Every doubt that is known; one function a kind.
const ASK: &[Ask] = &[
    unknown,
    removed,
    empty,
    misread,
    work_around,
    ll128,
    ib_timeout,
    gid_index,
    debug_output,
    debugging_aids,
    ras_address,
    ifname_is_address,
    gloo_ifname,
];

/// What is doubtful about a setting.
pub fn doubts(setting: Setting<'_>) -> Vec<Doubt> {
    let mut found = Vec::new();
    for ask in ASK {
        ask(setting, &mut found);
    }
    found
}

/// What is doubtful about a set of settings, by the order given.
pub fn doubts_of(all: &[(&str, &str)], version: Option<Version>) -> Vec<Doubt> {
    let (version, version_known) = (version.unwrap_or(NEWEST), version.is_some());
    all.iter()
        .flat_map(|(name, value)| doubts(Setting { name, value, version, version_known, all }))
        .collect()
}

impl Setting<'_> {
    fn doubt(
        &self,
        rule: &'static str,
        weight: Weight,
        what: impl Into<String>,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Doubt {
        Doubt {
            rule,
            weight,
            name: self.name.to_owned(),
            what: what.into(),
            cause: cause.into(),
            remedy: remedy.into(),
        }
    }

    /// The number that NCCL reads, where this is a number that this release reads.
    fn number(&self) -> Option<i64> {
        let param = params::get(self.name)?;
        if !param.is_integer_in(self.version) {
            return None;
        }
        params::read_integer(self.value).value
    }

    fn shown(&self) -> String {
        match params::get(self.name).is_some_and(params::Param::secret) {
            true => format!("{}=(secret)", self.name),
            false => format!("{}={}", self.name, self.value.escape_debug()),
        }
    }
}

fn unknown(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if !s.name.starts_with("NCCL_") {
        return;
    }
    let Read::Unknown(nearest) = layers::read_in(s.name, s.version) else { return };
    let remedy = match &nearest {
        Some(name) => format!("write {name}, or take the line out"),
        None => "take the line out, or check which plug-in reads it".to_owned(),
    };
    // without a name that is near, it may be of a plug-in that is not known here
    let weight = if nearest.is_some() { Weight::Warning } else { Weight::Info };
    found.push(s.doubt(
        "env-unknown-name",
        weight,
        format!("{} is no variable of NCCL", s.name),
        "no release of NCCL reads this name; it is ignored without a message",
        remedy,
    ));
}

fn removed(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let Some(param) = params::get(s.name) else { return };
    if param.read_in(s.version) {
        return;
    }
    let (rule, cause, remedy) = match (param.last, param.since) {
        (Some(last), _) if last < s.version => {
            let remedy = match param.replaced_by {
                "" => format!("take {} out", s.name),
                by => format!("take it out; {}", replaced(by)),
            };
            let cause = format!("the last release that reads it is {last}; it is ignored");
            ("env-removed-name", cause, remedy)
        }
        (_, Some(since)) if s.version_known && since > s.version => (
            "env-name-too-new",
            format!("{since} is the first release that reads it; {} ignores it", s.version),
            format!("take it out, or use NCCL {since} or later"),
        ),
        _ => return,
    };
    found.push(s.doubt(
        rule,
        Weight::Warning,
        format!("{} is not read by NCCL {}", s.name, s.version),
        cause,
        remedy,
    ));
}

fn replaced(by: &str) -> String {
    if by.contains("removed") || by.contains("replaces") {
        by.to_owned()
    } else {
        format!("its place was taken by {by}")
    }
}

fn empty(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if !s.value.is_empty() || params::get(s.name).is_none() || !s.name.starts_with("NCCL_") {
        return;
    }
    found.push(s.doubt(
        "env-empty-value",
        Weight::Warning,
        format!("{} is set to nothing", s.name),
        "empty is not unset: it hides the value of nccl.conf, and where a number is read it has \
         acted as 0",
        "take the line out, or give it a default: ${NAME:-value}",
    ));
}

fn misread(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let Some(param) = params::get(s.name) else { return };
    if s.value.is_empty() || !param.read_in(s.version) {
        return;
    }
    let taken = param.taken(s.value, s.version);
    let Some(trap) = taken.trap else { return };
    let becomes = taken.value.unwrap_or_else(|| "its default".to_owned());
    let remedy = match &trap {
        Trap::NotANumber | Trap::UnknownWord => format!("write one of: {}", param.accepted),
        Trap::Trailing(_) | Trap::OutOfRange => "write the whole number".to_owned(),
        Trap::Octal => "write it without the leading 0".to_owned(),
        Trap::Wildcard => "names match as prefixes already: write eth, not eth*".to_owned(),
        Trap::Blank => "write the list without blanks".to_owned(),
        Trap::Quoted => "write it without quotes".to_owned(),
        Trap::CarriageReturn => "save the file with Unix line ends".to_owned(),
        Trap::OneCharacter => "write the whole name".to_owned(),
        Trap::LoggingOff => format!("write one of: {}", param.accepted),
        Trap::Empty => return,
    };
    // text for a switch does the opposite of what it says
    let opposite = matches!(trap, Trap::NotANumber | Trap::Wildcard | Trap::Quoted);
    found.push(s.doubt(
        "env-value-misread",
        if opposite { Weight::Error } else { Weight::Warning },
        format!("{} is read as {becomes}", s.shown()),
        trap.to_string(),
        remedy,
    ));
}

/// Settings that switch a transport or feature off, the value that does, and what that costs.
const WORK_AROUNDS: [(&str, i64, &str); 10] = [
    (
        "NCCL_P2P_DISABLE",
        1,
        "NVLink and PCIe peer access are not used: traffic between GPUs of one node goes through \
         host memory, often at a tenth of the rate",
    ),
    (
        "NCCL_SHM_DISABLE",
        1,
        "GPUs of one node without peer access speak over the network instead of shared memory",
    ),
    ("NCCL_IB_DISABLE", 1, "InfiniBand and RoCE are not used: all traffic goes over TCP sockets"),
    ("NCCL_CUMEM_ENABLE", 0, "switches NVLS, multi-node NVLink and symmetric windows off too"),
    ("NCCL_NVLS_ENABLE", 0, "NVLink SHARP is not used"),
    ("NCCL_DMABUF_ENABLE", 0, "GPUDirect RDMA then needs nvidia_peermem"),
    ("NCCL_IGNORE_DISABLED_P2P", 1, "a broken NVLink is worked around instead of reported"),
    ("NCCL_RUNTIME_CONNECT", 0, "every connection is made at init: longer start, more memory"),
    ("NCCL_PXN_DISABLE", 1, "NICs are not reached over NVLink: all-to-all is slower"),
    ("NCCL_CHECKS_DISABLE", 1, "wrong arguments are not noticed"),
];

fn work_around(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let Some((_, value, cost)) = WORK_AROUNDS.iter().find(|(name, ..)| *name == s.name) else {
        return;
    };
    // an integer that is not 0 is on
    let number = s.number();
    let hit = if *value == 0 { number == Some(0) } else { number.is_some_and(|n| n != 0) };
    if !hit || params::get(s.name).is_some_and(|p| !p.read_in(s.version)) {
        return;
    }
    // a text that counts as 0 is a slip of its own
    if params::get(s.name).is_some_and(|p| p.taken(s.value, s.version).trap.is_some()) {
        return;
    }
    // what a provider's profile switches off, it switches off on purpose
    if matches!(s.name, "NCCL_NVLS_ENABLE" | "NCCL_CUMEM_ENABLE" | "NCCL_PXN_DISABLE")
        && s.all.iter().any(|(name, _)| layers::plugin_of(name).is_some())
    {
        return;
    }
    // switches of transports cost most of the rate; the others have uses
    let weight = match s.name {
        "NCCL_P2P_DISABLE" | "NCCL_SHM_DISABLE" | "NCCL_IB_DISABLE" => Weight::Warning,
        _ => Weight::Info,
    };
    found.push(s.doubt(
        "env-workaround-left",
        weight,
        format!("{} was left in place", s.shown()),
        *cost,
        format!("take {} out, and see whether what it was for is still there", s.name),
    ));
}

fn ll128(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_PROTO" || s.value.is_empty() {
        return;
    }
    let lists = s.value.split(';').map(|part| part.split_once(':').map_or(part, |(_, l)| l));
    let forced = lists.into_iter().any(|list| match list.strip_prefix('^') {
        Some(out) => !out.split(',').any(|w| w.eq_ignore_ascii_case("LL128")),
        None => list.split(',').any(|w| w.eq_ignore_ascii_case("LL128")),
    });
    if forced {
        found.push(s.doubt(
            "ll128-forced",
            Weight::Warning,
            format!("{} switches LL128 on", s.shown()),
            "LL128 is safe only where NCCL itself chooses it (NVLink, one GPU generation); a list \
             that names it, or that excludes another protocol with `^`, forces it: data may be wrong",
            "unset NCCL_PROTO; to try without LL128 write NCCL_PROTO=^LL128",
        ));
    }
}

fn ib_timeout(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_IB_TIMEOUT" || s.value.is_empty() {
        return;
    }
    let Some(code) = s.number() else { return };
    if (1..LEAST_IB_TIMEOUT).contains(&code) {
        let micros = 4.096 * f64::from(1_u32 << code.clamp(0, 30));
        found.push(s.doubt(
            "ib-timeout-too-low",
            Weight::Warning,
            format!("NCCL_IB_TIMEOUT={code} is {micros:.0} µs a try"),
            "the default is 20 (18 before 2.23), 4.3 s a try: with so short a time any pause of \
             the fabric ends the job with status 12",
            "unset NCCL_IB_TIMEOUT, or set 20 to 22",
        ));
    } else if code > MOST_IB_TIMEOUT || code <= 0 {
        let says = if code <= 0 || code >= 32 {
            "never gives up".to_owned()
        } else {
            format!("{:.0} s a try", 4.096e-6 * f64::from(1_u32 << code.clamp(0, 31)))
        };
        found.push(s.doubt(
            "ib-timeout-too-high",
            Weight::Info,
            format!("NCCL_IB_TIMEOUT={code}: {says}"),
            "a link that fails hangs the job for minutes before an error is seen",
            "unset NCCL_IB_TIMEOUT (20), and repair the link that needed it",
        ));
    }
}

fn gid_index(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_IB_GID_INDEX" {
        return;
    }
    let number = if s.value.is_empty() { Some(0) } else { s.number() };
    match number {
        Some(0) => found.push(s.doubt(
            "gid-index-wrong",
            Weight::Warning,
            if s.value.is_empty() {
                "NCCL_IB_GID_INDEX is set to nothing, which has acted as 0".to_owned()
            } else {
                "NCCL_IB_GID_INDEX=0".to_owned()
            },
            "on RoCE entry 0 is the link-local or RoCE v1 address, or not there at all in a pod: \
             ibv_modify_qp fails, or only peers of one switch are reached",
            "take the line out; NCCL 2.21 and later choose the entry themselves (2.26 in pods)",
        )),
        Some(index) if index > 0 => found.push(s.doubt(
            "gid-index-pinned",
            Weight::Info,
            format!("NCCL_IB_GID_INDEX={index} is pinned"),
            "the number of the right entry differs between nodes, pods and boots",
            "take the line out with NCCL 2.21 and later; before, set it for each node",
        )),
        _ => {}
    }
}

fn debug_output(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_DEBUG" {
        return;
    }
    let level = s.value.to_ascii_uppercase();
    let has_file = s.all.iter().any(|(n, v)| *n == "NCCL_DEBUG_FILE" && !v.is_empty());
    if level == "TRACE" {
        found.push(s.doubt(
            "debug-output-left",
            Weight::Warning,
            "NCCL_DEBUG=TRACE",
            "a line for every call, on every rank: it slows the job and fills disks",
            "set NCCL_DEBUG=WARN",
        ));
    } else if level == "INFO" && !has_file {
        found.push(s.doubt(
            "debug-output-left",
            Weight::Info,
            "NCCL_DEBUG=INFO without NCCL_DEBUG_FILE",
            "every rank writes its set-up into the program's own output",
            "in production set NCCL_DEBUG=WARN, or add NCCL_DEBUG_FILE=/tmp/nccl.%h.%p",
        ));
    }
}

/// Aids that are meant for one look, and cost time in every run.
const AIDS: [(&str, &str); 3] = [
    ("NCCL_RUN_DIAGNOSTICS", "every init runs the built-in diagnostics"),
    ("NCCL_RUN_RAS_DIAGNOSTICS", "every init runs the diagnostics of RAS"),
    ("NCCL_PROGRESS_COUNTERS", "every kernel writes progress counters"),
];

fn debugging_aids(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let Some((_, cost)) = AIDS.iter().find(|(name, _)| *name == s.name) else { return };
    if s.number().is_none_or(|n| n != 0) && !s.value.is_empty() {
        found.push(s.doubt(
            "debug-output-left",
            Weight::Warning,
            format!("{} was left in place", s.shown()),
            *cost,
            format!("take {} out after debugging", s.name),
        ));
    }
}

fn ras_address(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_RAS_ADDR" || s.value.is_empty() {
        return;
    }
    let host = s.value.rsplit_once(':').map_or(s.value, |(host, _)| host);
    let host = host.trim_matches(['[', ']']);
    let local = host.is_empty()
        || host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if !local {
        found.push(s.doubt(
            "ras-address-exposed",
            Weight::Warning,
            format!("{} can be reached from other hosts", s.shown()),
            "RAS asks for no password, and from 2.31 it also changes the running job",
            "set NCCL_RAS_ADDR=localhost:28028, or unset it",
        ));
    }
}

fn ifname_is_address(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if !s.name.ends_with("_SOCKET_IFNAME") {
        return;
    }
    let bare = s.value.trim_start_matches(['^', '=']);
    let address = bare.split(',').find(|entry| {
        let entry = entry.split('/').next().unwrap_or_default();
        entry.parse::<IpAddr>().is_ok()
            || entry.split_once(':').is_some_and(|(ip, _)| ip.parse::<IpAddr>().is_ok())
    });
    if let Some(address) = address {
        found.push(s.doubt(
            "socket-ifname-is-address",
            Weight::Error,
            format!("{} holds an address: {address}", s.name),
            "it takes names of interfaces; no interface is called like that, so none is found",
            format!("write the name of the interface that has {address} (ip -br addr)"),
        ));
    }
}

fn gloo_ifname(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "GLOO_SOCKET_IFNAME" || !s.value.starts_with(['^', '=']) {
        return;
    }
    found.push(s.doubt(
        "gloo-ifname-syntax",
        Weight::Error,
        format!("GLOO_SOCKET_IFNAME={}", s.value),
        "Gloo takes one plain name; `^` and `=` are NCCL's",
        "write the plain name of one interface",
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(all: &[(&str, &str)]) -> Vec<String> {
        let shown = |d: Doubt| format!("{} {}", d.name, d.rule);
        doubts_of(all, None).into_iter().map(shown).collect()
    }

    #[test]
    fn doubtful_settings() {
        let all = [
            ("NCCL_P2P_DISABLE", "1"),
            ("NCCL_IB_DISABLE", "true"),
            ("NCCL_BUFFSIZE", "8M"),
            ("NCCL_TREE_THRESHOLD", "0"),
            ("NCCL_LL_THRESHOLD", "0"),
            ("NCCL_IFNAME", "eth0"),
            ("NCCL_IB_TIMEOUT", "2"),
            ("NCCL_IB_GID_INDEX", ""),
            ("NCCL_PROTO", "^Simple"),
            ("NCCL_DEBUG", "TRACE"),
            ("NCCL_RAS_ADDR", "0.0.0.0:28028"),
            ("NCCL_SOCKET_IFNAME", "10.0.0.1"),
            ("GLOO_SOCKET_IFNAME", "=eth0"),
        ];
        insta::assert_snapshot!(rules(&all).join("\n"), @r"
        NCCL_P2P_DISABLE env-workaround-left
        NCCL_IB_DISABLE env-value-misread
        NCCL_BUFFSIZE env-value-misread
        NCCL_TREE_THRESHOLD env-removed-name
        NCCL_LL_THRESHOLD env-removed-name
        NCCL_IFNAME env-unknown-name
        NCCL_IB_TIMEOUT ib-timeout-too-low
        NCCL_IB_GID_INDEX env-empty-value
        NCCL_IB_GID_INDEX gid-index-wrong
        NCCL_PROTO ll128-forced
        NCCL_DEBUG debug-output-left
        NCCL_RAS_ADDR ras-address-exposed
        NCCL_SOCKET_IFNAME socket-ifname-is-address
        GLOO_SOCKET_IFNAME gloo-ifname-syntax
        ");
    }

    #[test]
    fn nothing_is_doubtful_about_these() {
        let all = [
            ("NCCL_SOCKET_IFNAME", "eth0"),
            ("NCCL_IB_HCA", "ibp"),
            ("UCX_NET_DEVICES", "ibp0:1,ibp1:1"),
            ("NCCL_COLLNET_ENABLE", "0"),
            ("NCCL_IB_DISABLE", "0"),
            ("NCCL_P2P_DISABLE", "0"),
            ("NCCL_DEBUG", "WARN"),
            ("NCCL_PROTO", "Simple"),
            ("NCCL_PROTO", "^LL128"),
            ("NCCL_IB_TIMEOUT", "22"),
            ("NCCL_CUMEM_ENABLE", "1"),
            ("NCCL_RAS_ADDR", "localhost:28028"),
            ("NCCL_FASTRAK_IFNAME", "eth1,eth2"),
            ("PATH", ""),
        ];
        assert_eq!(rules(&all), [""; 0]);
    }

    #[test]
    fn a_secret_is_never_shown() {
        for d in doubts_of(&[("NCCL_PSK", "hunter2 ")], Some(Version::new(2, 21, 5))) {
            assert!(!format!("{d:?}").contains("hunter2"), "{d:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(value in "\\PC{0,20}", at in 0..params::all().len()) {
            let _ = doubts_of(&[(params::all()[at].name, value.as_str())], None);
        }
    }
}
