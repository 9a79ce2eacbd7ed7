//! Which value of a setting is in force, from which layer, and what it overrode.
//!
//! Source: NCCL 2.30.7 `src/misc/param.cc`, `src/plugin/env.cc`: the process environment stands over
//! the user's file, that over `/etc/nccl.conf`; from 2.28.7 an environment plug-in answers after
//! all of them. What fills the process environment (image, env file, Compose, pod) is the
//! container runtime's business: the later writer wins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conf;
use crate::params::{self, Taken};
use crate::version::Version;

/// Since this release an environment plug-in may answer every look-up.
pub const ENV_PLUGIN_SINCE: Version = Version::new(2, 28, 7);

/// Where values come from, weakest first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// `/etc/nccl.conf`.
    SystemConf,
    /// The file of `NCCL_CONF_FILE`, else `~/.nccl.conf`.
    UserConf,
    /// `ENV` of the image.
    ImageEnv,
    /// `--env-file`, `env_file:`.
    EnvFile,
    /// `environment:` of a Compose file, `-e` of a command line.
    Compose,
    /// ConfigMap or `env:` of a pod.
    ConfigMap,
    /// Environment of the process.
    Process,
}

impl LayerKind {
    /// Name for the reader.
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemConf => "/etc/nccl.conf",
            Self::UserConf => "user's nccl.conf",
            Self::ImageEnv => "image ENV",
            Self::EnvFile => "env file",
            Self::Compose => "Compose",
            Self::ConfigMap => "pod env",
            Self::Process => "process",
        }
    }
}

/// One layer with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// What it is.
    pub kind: LayerKind,
    /// Where it was read: a path, `pid 4711`, an image's name.
    pub origin: String,
    /// Its values in force, each name once.
    pub values: Vec<Value>,
}

/// A value where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Value {
    /// Name as written.
    pub name: String,
    /// Value as written.
    pub value: String,
    /// Line in the file, from 1.
    pub line: Option<usize>,
}

/// A setting in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InForce {
    /// Name.
    pub name: String,
    /// Value as written; `(secret)` for a secret.
    pub value: String,
    /// What kind of layer gave it.
    pub layer: LayerKind,
    /// Where it stands, with its line.
    pub origin: String,
    /// Values of weaker layers that it hides, strongest first.
    pub overrode: Vec<Overridden>,
    /// Whether this release reads it.
    pub read: Read,
    /// What this release makes of the text; absent where nothing reads it.
    pub taken: Option<Taken>,
}

/// A value that does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Overridden {
    /// Value as written; `(secret)` for a secret.
    pub value: String,
    /// What kind of layer it stands in.
    pub layer: LayerKind,
    /// Where it stands, with its line.
    pub origin: String,
}

/// Whether a release reads a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Read {
    /// It does.
    Yes,
    /// A later release does.
    Since(String),
    /// An earlier one did; with what replaced it.
    Removed {
        /// Last release that read it.
        last: String,
        /// What replaced it, or empty.
        replaced_by: String,
    },
    /// No release of NCCL does; with the name that was probably meant.
    Unknown(Option<String>),
    /// Not NCCL's, but a plug-in's that is known.
    Plugin(String),
}

/// Prefixes of variables that known plug-ins read, with who reads them.
const PLUGINS: [(&str, &str); 10] = [
    ("NCCL_FASTRAK_", "GPUDirect-TCPXO plug-in"),
    ("NCCL_DYNAMIC_CHUNK_SIZE", "GPUDirect-TCPX and TCPXO plug-ins"),
    ("NCCL_TUNER_CONFIG_PATH", "tuner of the GPUDirect-TCPXO plug-in"),
    ("NCCL_GPUDIRECTTCPX_", "GPUDirect-TCPX plug-in"),
    ("NCCL_GIB_", "gIB plug-in"),
    ("NCCL_SHIMNET_", "shimnet plug-in"),
    ("NCCL_SHARP_", "SHARP plug-in"),
    ("NCCL_IBEXT_", "RDMA-SHARP plug-in"),
    ("NCCL_UCX_", "UCX plug-in"),
    ("NCCL_OFI_", "OFI plug-in"),
];

/// Which plug-in reads a variable that NCCL itself does not.
pub fn plugin_of(name: &str) -> Option<&'static str> {
    PLUGINS.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, who)| *who)
}

/// Whether a release reads a variable of this name.
pub fn read_in(name: &str, version: Version) -> Read {
    match params::get(name) {
        Some(p) if p.read_in(version) => Read::Yes,
        Some(p) if p.since.is_some_and(|since| since > version) => {
            Read::Since(p.since.map_or_else(String::new, |v| v.to_string()))
        }
        Some(p) => Read::Removed {
            last: p.last.map_or_else(String::new, |v| v.to_string()),
            replaced_by: p.replaced_by.to_owned(),
        },
        None => match plugin_of(name) {
            Some(who) => Read::Plugin(who.to_owned()),
            None => Read::Unknown(params::nearest(name).map(|p| p.name.to_owned())),
        },
    }
}

impl Layer {
    /// The layer of a file in NCCL's own format, as a release reads it.
    pub fn conf(kind: LayerKind, origin: &str, text: &str, version: Version) -> Self {
        let values = conf::entries(text)
            .into_iter()
            .map(|(line, entry)| Value {
                name: entry.name.to_owned(),
                value: entry.value_in(version),
                line: Some(line),
            })
            .collect();
        Self { kind, origin: origin.to_owned(), values }
    }

    /// A layer of plain pairs; of two for one name the later.
    pub fn pairs<N: Into<String>, V: Into<String>>(
        kind: LayerKind,
        origin: &str,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let mut values: Vec<Value> = Vec::new();
        for (name, value) in pairs {
            let (name, value) = (name.into(), value.into());
            values.retain(|v| v.name != name);
            values.push(Value { name, value, line: None });
        }
        Self { kind, origin: origin.to_owned(), values }
    }

    fn place(&self, value: &Value) -> String {
        match value.line {
            Some(line) => format!("{}:{line}", self.origin),
            None => self.origin.clone(),
        }
    }
}

/// Whether a variable is NCCL's business: its own, or one of the few others that it reads.
pub fn is_nccls(name: &str) -> bool {
    // NCCL_VERSION in NVIDIA's images is the image's own label
    (name.starts_with("NCCL_") && name != "NCCL_VERSION") || params::get(name).is_some()
}

/// Every setting of NCCL that is in force, by name. Layers may come in any order; among equal
/// kinds the later one is the stronger.
pub fn in_force(layers: &[Layer], version: Version) -> Vec<InForce> {
    let mut order: Vec<&Layer> = layers.iter().collect();
    order.sort_by_key(|layer| layer.kind);
    let mut names: Vec<&str> = order
        .iter()
        .flat_map(|layer| layer.values.iter().map(|v| v.name.as_str()))
        .filter(|name| is_nccls(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter_map(|name| {
            let secret = params::get(name).is_some_and(params::Param::secret);
            let shown = |value: &str| match secret {
                true => "(secret)".to_owned(),
                false => value.to_owned(),
            };
            let mut holders = order.iter().rev().filter_map(|layer| {
                let value = layer.values.iter().find(|v| v.name == name)?;
                Some((*layer, value))
            });
            let (layer, value) = holders.next()?;
            let overrode = holders
                .map(|(layer, value)| Overridden {
                    value: shown(&value.value),
                    layer: layer.kind,
                    origin: layer.place(value),
                })
                .collect();
            let read = read_in(name, version);
            let taken = match (&read, params::get(name)) {
                (Read::Yes, Some(param)) if !secret => Some(param.taken(&value.value, version)),
                _ => None,
            };
            Some(InForce {
                name: name.to_owned(),
                value: shown(&value.value),
                layer: layer.kind,
                origin: layer.place(value),
                overrode,
                read,
                taken,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_layer_decides_and_says_what_it_hides() {
        let version = Version::new(2, 30, 7);
        let layers = [
            Layer::pairs(LayerKind::Process, "pid 1", [("NCCL_IB_DISABLE", "true")]),
            Layer::conf(
                LayerKind::SystemConf,
                "/etc/nccl.conf",
                "NCCL_IB_DISABLE=1\nNCCL_DEBUG=INFO\nNCCL_DEBUG=WARN\nNCCL_RINGS=0 1\n",
                version,
            ),
            Layer::pairs(
                LayerKind::ImageEnv,
                "image.env",
                [("NCCL_IB_DISABLE", "0"), ("NCCL_IB_DISABLE", "2"), ("NCCL_PSK", "hush")],
            ),
        ];
        let all = in_force(&layers, version);
        let line = |i: &InForce| {
            let hidden: Vec<String> =
                i.overrode.iter().map(|o| format!("{} ({})", o.value, o.origin)).collect();
            format!("{}={} {} {:?} {hidden:?}", i.name, i.value, i.origin, i.read)
        };
        let text: Vec<String> = all.iter().map(line).collect();
        insta::assert_snapshot!(text.join("\n"), @r#"
        NCCL_DEBUG=INFO /etc/nccl.conf:2 Yes []
        NCCL_IB_DISABLE=true pid 1 Yes ["2 (image.env)", "1 (/etc/nccl.conf:1)"]
        NCCL_PSK=(secret) image.env Since("2.32.3") []
        NCCL_RINGS=0 1 /etc/nccl.conf:4 Removed { last: "2.4.8", replaced_by: "NCCL_GRAPH_FILE (2.6)" } []
        "#);
    }

    #[test]
    fn plugins_and_slips_are_told_apart() {
        let version = Version::new(2, 21, 5);
        assert_eq!(
            read_in("NCCL_FASTRAK_IFNAME", version),
            Read::Plugin("GPUDirect-TCPXO plug-in".to_owned())
        );
        assert_eq!(
            read_in("NCCL_SOCKET_IFNAMES", version),
            Read::Unknown(Some("NCCL_SOCKET_IFNAME".to_owned()))
        );
    }
}
