//! Doubts about a setting that is already there: what NCCL's own rules and its history say about a
//! name and a value, without looking at a machine. The planner asks them as questions, the rules of
//! the linter report them as findings; the knowledge is here, once.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::params;
use crate::version::Version;

pub mod interface;
pub mod name;
pub mod output;
pub mod pair;
pub mod value;
pub mod verbs;
pub mod work_around;

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
    /// Which part of the setting it is about.
    #[serde(skip)]
    #[schemars(skip)]
    pub part: Part,
    /// The edit that mends it, where there is one.
    #[serde(skip)]
    #[schemars(skip)]
    pub write: Option<Write>,
}

/// Which part of a setting a doubt is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// Its name.
    Name,
    /// Its value.
    #[default]
    Value,
    /// These bytes of its value.
    In(Range<usize>),
}

/// What to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Another value.
    Value {
        /// The value.
        value: String,
        /// Nothing but what was plainly meant changes.
        safe: bool,
    },
    /// Another name.
    Name {
        /// The name.
        name: String,
        /// Nothing but what was plainly meant changes.
        safe: bool,
    },
    /// Nothing: the setting goes.
    Remove {
        /// It has no effect now, so that nothing changes.
        safe: bool,
    },
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

/// Looks at one setting.
pub type Ask = fn(Setting<'_>, &mut Vec<Doubt>);

/// Every doubt that is known; one function a rule.
const ASK: &[Ask] = &[
    name::unknown,
    name::removed,
    name::too_new,
    name::deprecated,
    value::empty,
    value::misread,
    value::out_of_range,
    pair::contradiction,
    pair::no_effect,
    work_around::left,
    work_around::ll128,
    verbs::timeout_low,
    verbs::timeout_high,
    verbs::gid_wrong,
    verbs::gid_pinned,
    verbs::gdr_off,
    verbs::hca_prefix,
    output::debug_left,
    output::ras_address,
    output::file_shared,
    interface::not_found,
    interface::syntax,
    interface::address,
    interface::loopback,
    interface::virtual_one,
    interface::prefix,
    interface::gloo,
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

impl Doubt {
    fn on(mut self, part: Part) -> Self {
        self.part = part;
        self
    }

    fn writing(mut self, write: Write) -> Self {
        self.write = Some(write);
        self
    }
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
            part: Part::Value,
            write: None,
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

    /// The value of a neighbour, where it is set to something.
    fn beside(&self, name: &str) -> Option<&str> {
        self.all.iter().find(|(n, v)| *n == name && !v.is_empty()).map(|(_, v)| *v)
    }

    /// Whether a switch beside this one is on, as NCCL reads it.
    fn on(&self, name: &str) -> bool {
        self.beside(name)
            .is_some_and(|v| params::read_integer(v).value.is_some_and(|number| number != 0))
    }

    /// Whether it holds a reference that somebody else fills in, so that its value is not known.
    fn open(&self) -> bool {
        self.value.contains('$') || self.value.contains("{{")
    }

    fn shown(&self) -> String {
        match params::get(self.name).is_some_and(params::Param::secret) {
            true => format!("{}=(secret)", self.name),
            false => format!("{}={}", self.name, self.value.escape_debug()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn rules(all: &[(&str, &str)]) -> Vec<String> {
        let shown = |d: Doubt| format!("{} {}", d.name, d.rule);
        doubts_of(all, None).into_iter().map(shown).collect()
    }

    #[test]
    fn doubtful_settings() {
        let all = [
            ("NCCL_P2P_DISABLE", "1"),
            ("NCCL_SHM_DISABLE", "true"),
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
            ("NCCL_MAX_NRINGS", "8"),
            ("NCCL_IB_SL", "99"),
        ];
        insta::assert_snapshot!(rules(&all).join("\n"), @r"
        NCCL_P2P_DISABLE env-workaround-left
        NCCL_SHM_DISABLE env-value-misread
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
        NCCL_MAX_NRINGS env-deprecated-name
        NCCL_MAX_NRINGS env-workaround-left
        NCCL_IB_SL env-value-out-of-range
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
            ("NCCL_PROTO", "^LL128"),
            ("NCCL_IB_TIMEOUT", "22"),
            ("NCCL_CUMEM_ENABLE", "1"),
            ("NCCL_RAS_ADDR", "localhost:28028"),
            ("NCCL_FASTRAK_IFNAME", "eth1,eth2"),
            ("GLOO_SOCKET_IFNAME", "eth0"),
            ("NCCL_IB_TC", "136"),
            ("NCCL_IB_QPS_PER_CONNECTION", "8"),
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
            let param = &params::all()[at];
            for d in doubts_of(&[(param.name, value.as_str())], None) {
                if let Part::In(range) = d.part {
                    proptest::prop_assert!(value.get(range).is_some());
                }
            }
        }
    }
}
