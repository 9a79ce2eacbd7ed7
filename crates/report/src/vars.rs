//! The catalogue of variables, and the settings in force, for people and programs.

use std::fmt::Write as _;

use ncclctl_nccl::doubt::{self, Doubt};
use ncclctl_nccl::layers::{InForce, LayerKind, Overridden, Read};
use ncclctl_nccl::params::{Kind, Param, Taken};
use ncclctl_nccl::version::Version;
use schemars::JsonSchema;
use serde::Serialize;

use crate::envelope::Tool;
use crate::text::wrap;

/// Schema of [`VarsResult`].
pub const VARS_SCHEMA: &str = "ncclctl/vars/v1";

/// Schema of [`InForceResult`].
pub const IN_FORCE_SCHEMA: &str = "ncclctl/vars-in-force/v1";

/// Result of `ncclctl vars`, as `-o json` prints it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VarsResult {
    /// `ncclctl/vars/v1`.
    pub schema: &'static str,
    /// What made it.
    pub tool: Tool,
    /// Release that was asked about; absent: all of them.
    pub nccl: Option<Version>,
    /// Variables, by name.
    pub variables: Vec<Variable>,
}

/// One variable of the catalogue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Variable {
    /// Name.
    pub name: &'static str,
    /// `bool`, `int`, `enum`, `list`, `path` or `string`.
    pub kind: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Default, of the release that was asked about or the newest.
    pub default: &'static str,
    /// Other defaults over time, oldest first, each with the release that began it.
    pub defaults: Vec<(Version, &'static str)>,
    /// Accepted values, in words.
    pub values: &'static str,
    /// First release that reads it; absent: older than 2.3.5.
    pub since: Option<Version>,
    /// Last release that reads it; absent: the newest does.
    pub until: Option<Version>,
    /// What replaced it, or what it replaces.
    pub replaced_by: &'static str,
    /// What can go wrong.
    pub risk: &'static str,
    /// Whether NVIDIA's guide names it.
    pub documented: bool,
    /// Who reads it: `lib`, or a plug-in.
    pub scope: &'static str,
    /// Tag and file that this was read from.
    pub source: &'static str,
}

/// Result of `ncclctl vars --in-force`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InForceResult {
    /// `ncclctl/vars-in-force/v1`.
    pub schema: &'static str,
    /// What made it.
    pub tool: Tool,
    /// Release that the values were read for.
    pub nccl: Version,
    /// How that release is known.
    pub nccl_from: String,
    /// Settings in force, by name.
    pub in_force: Vec<InForce>,
    /// The environment plug-in that decides after all layers, where one was found.
    pub env_plugin: Option<String>,
    /// What is doubtful about the values.
    pub doubts: Vec<Doubt>,
    /// Sources that could not be read, with why.
    pub unread: Vec<(String, String)>,
}

impl VarsResult {
    /// The envelope of these variables.
    pub fn new<'a>(params: impl IntoIterator<Item = &'a Param>, nccl: Option<Version>) -> Self {
        let variables = params.into_iter().map(|p| variable(p, nccl)).collect();
        Self { schema: VARS_SCHEMA, tool: Tool::this(), nccl, variables }
    }
}

impl InForceResult {
    /// The envelope of these settings.
    pub fn new(
        nccl: Version,
        nccl_from: String,
        in_force: Vec<InForce>,
        env_plugin: Option<String>,
        unread: Vec<(String, String)>,
    ) -> Self {
        let pairs: Vec<(&str, &str)> =
            in_force.iter().map(|i| (i.name.as_str(), i.value.as_str())).collect();
        let doubts = doubt::doubts_of(&pairs, Some(nccl));
        Self {
            schema: IN_FORCE_SCHEMA,
            tool: Tool::this(),
            nccl,
            nccl_from,
            in_force,
            env_plugin,
            doubts,
            unread,
        }
    }
}

fn variable(p: &Param, nccl: Option<Version>) -> Variable {
    Variable {
        name: p.name,
        kind: kind(p.kind),
        meaning: p.meaning,
        default: nccl.map_or(p.default, |v| p.default_in(v)),
        defaults: p.defaults.clone(),
        values: p.accepted,
        since: p.since,
        until: p.last,
        replaced_by: p.replaced_by,
        risk: p.risk,
        documented: p.documented,
        scope: p.scope,
        source: p.source,
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Int => "int",
        Kind::Enum => "enum",
        Kind::List => "list",
        Kind::Path => "path",
        Kind::Text => "string",
    }
}

/// A list of variables: name, releases, default, meaning cut to the line.
pub fn list(result: &VarsResult, width: usize) -> String {
    let names = result.variables.iter().map(|v| v.name.len()).max().unwrap_or(0).max(4);
    let mut out = String::new();
    let _ = writeln!(out, "{:<names$}  {:<13}  {:<10}  MEANING", "NAME", "READ BY", "DEFAULT");
    for v in &result.variables {
        let head = format!("{:<names$}  {:<13}  {:<10}  ", v.name, releases(v), cut(v.default, 10));
        let room = width.saturating_sub(head.chars().count()).max(20);
        let _ = writeln!(out, "{head}{}", cut(v.meaning, room));
    }
    out
}

/// Releases that read a variable: `2.21.5+`, `2.4.2-2.4.8`, `-2.10.3`.
fn releases(v: &Variable) -> String {
    match (v.since, v.until) {
        (None, None) => "all".to_owned(),
        (Some(since), None) => format!("{since}+"),
        (None, Some(until)) => format!("up to {until}"),
        (Some(since), Some(until)) => format!("{since}-{until}"),
    }
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Everything about one variable.
pub fn show(p: &Param, nccl: Option<Version>, width: usize) -> String {
    let v = variable(p, nccl);
    let mut out = String::new();
    let _ = writeln!(out, "{}", v.name);
    let mut line = |label: &str, text: &str| {
        if !text.is_empty() {
            wrap(&mut out, width, &format!("  {label:<11} "), "              ", text);
        }
    };
    line("meaning", v.meaning);
    line("kind", v.kind);
    let default = match (nccl, v.defaults.is_empty()) {
        (Some(version), false) => format!("{} in {version}", v.default),
        _ => v.default.to_owned(),
    };
    line("default", &default);
    let over_time: Vec<String> =
        v.defaults.iter().map(|(since, d)| format!("{d} from {since}")).collect();
    line("over time", &over_time.join(", "));
    line("values", v.values);
    line("since", &v.since.map_or_else(|| "before 2.3.5".to_owned(), |s| s.to_string()));
    line("until", &v.until.map_or_else(String::new, |u| format!("{u}; ignored since")));
    line("replaced by", v.replaced_by);
    line("risk", v.risk);
    line("documented", if v.documented { "yes" } else { "no" });
    line("read by", if v.scope == "lib" { "NCCL itself" } else { v.scope });
    line("source", v.source);
    if let Some(version) = nccl
        && !p.read_in(version)
    {
        line("note", &format!("NCCL {version} does not read it"));
    }
    out
}

/// Settings in force, one paragraph each.
pub fn in_force(result: &InForceResult, width: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "read as NCCL {} would ({})", result.nccl, result.nccl_from);
    if result.in_force.is_empty() {
        let _ = writeln!(out, "no setting of NCCL is in force: it decides everything itself");
    }
    for i in &result.in_force {
        let _ = writeln!(out, "\n{}={}", i.name, i.value.escape_debug());
        let mut line = |label: &str, text: &str| {
            wrap(&mut out, width, &format!("  {label:<9} "), "            ", text);
        };
        line("from", &place(i.layer, &i.origin));
        for o in &i.overrode {
            let Overridden { value, layer, origin } = o;
            line("overrides", &format!("{} from {}", value.escape_debug(), place(*layer, origin)));
        }
        line("read", &read(&i.read, result.nccl));
        if let Some(text) = i.taken.as_ref().and_then(|t| taken(t, &i.name, result.nccl)) {
            line("taken as", &text);
        }
        for d in result.doubts.iter().filter(|d| d.name == i.name) {
            match d.rule {
                // said above already
                "env-value-misread" | "env-removed-name" | "env-name-too-new"
                | "env-unknown-name" => {
                    line("do", &d.remedy);
                }
                rule => line("doubt", &format!("{rule}: {}; {}", d.cause, d.remedy)),
            }
        }
    }
    if let Some(plugin) = &result.env_plugin {
        out.push('\n');
        let text = format!(
            "{plugin}: this environment plug-in answers after all of these and may change any value"
        );
        wrap(&mut out, width, "note: ", "      ", &text);
    }
    for (source, why) in &result.unread {
        wrap(&mut out, width, "not read: ", "          ", &format!("{source}: {why}"));
    }
    out
}

fn place(layer: LayerKind, origin: &str) -> String {
    let name = layer.name();
    // the name of a file says it all
    if origin.starts_with(name) { origin.to_owned() } else { format!("{name} ({origin})") }
}

fn read(read: &Read, version: Version) -> String {
    match read {
        Read::Yes => format!("yes, by NCCL {version}"),
        Read::Since(since) => format!("no: {since} is the first release that reads it"),
        Read::Removed { last, replaced_by } if replaced_by.is_empty() => {
            format!("no: {last} was the last release that read it")
        }
        Read::Removed { last, replaced_by } => {
            format!("no: {last} was the last release that read it; now {replaced_by}")
        }
        Read::Unknown(Some(nearest)) => format!("no release reads this name; {nearest} was meant?"),
        Read::Unknown(None) => "no release of NCCL reads this name".to_owned(),
        Read::Plugin(who) => format!("not by NCCL; by the {who}"),
    }
}

/// What NCCL makes of a value, where that is not the value itself.
fn taken(taken: &Taken, name: &str, version: Version) -> Option<String> {
    let trap = taken.trap.as_ref()?;
    let value = match &taken.value {
        Some(value) => value.escape_debug().to_string(),
        None => {
            let default =
                ncclctl_nccl::params::get(name).map_or("", |param| param.default_in(version));
            format!("default ({default})")
        }
    };
    Some(format!("{value}: {trap}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncclctl_nccl::layers::{self, Layer};
    use ncclctl_nccl::params;

    #[test]
    fn a_list_and_a_page() {
        let version = Version::new(2, 21, 5);
        let found = params::read_in(version).filter(|p| p.name.contains("IB_GID"));
        let result = VarsResult::new(found, Some(version));
        insta::assert_snapshot!(list(&result, 100), @r"
        NAME               READ BY        DEFAULT     MEANING
        NCCL_IB_GID_INDEX  2.3.5+         -1          GID table index for RoCE; ignored on InfiniBand link…
        ");
        let page = show(params::get("NCCL_TREE_THRESHOLD").unwrap(), Some(version), 80);
        insta::assert_snapshot!(page, @r"
        NCCL_TREE_THRESHOLD
          meaning     Size under which trees were used
          kind        int
          default     -2
          values      bytes; 0 = never tree
          since       2.4.2
          until       2.4.8; ignored since
          replaced by NCCL_ALGO / automatic tuning (2.5)
          risk        removed: silently ignored
          documented  yes
          read by     NCCL itself
          source      v2.4.8-1:src/init.cc
          note        NCCL 2.21.5 does not read it
        ");
    }

    #[test]
    fn what_is_in_force() {
        let version = Version::new(2, 30, 7);
        let conf = "NCCL_BUFFSIZE=8M\nNCCL_IB_DISABLE=1\n";
        let found = [
            Layer::conf(LayerKind::SystemConf, "/etc/nccl.conf", conf, version),
            Layer::pairs(
                LayerKind::ImageEnv,
                "image.json",
                [("NCCL_IB_DISABLE", "true"), ("NCCL_LL_THRESHOLD", "0"), ("NCCL_X_Y", "1")],
            ),
        ];
        let result = InForceResult::new(
            version,
            "--nccl".to_owned(),
            layers::in_force(&found, version),
            Some("/usr/lib/libnccl-env.so".to_owned()),
            vec![("/root/.nccl.conf".to_owned(), "permission denied".to_owned())],
        );
        insta::assert_snapshot!(in_force(&result, 90), @r"
        read as NCCL 2.30.7 would (--nccl)

        NCCL_BUFFSIZE=8M
          from      /etc/nccl.conf:1
          read      yes, by NCCL 2.30.7
          taken as  8: `M` is ignored
          do        write NCCL_BUFFSIZE=8388608

        NCCL_IB_DISABLE=true
          from      image ENV (image.json)
          overrides 1 from /etc/nccl.conf:2
          read      yes, by NCCL 2.30.7
          taken as  0: text counts as 0
          do        write NCCL_IB_DISABLE=1

        NCCL_LL_THRESHOLD=0
          from      image ENV (image.json)
          read      no: 2.4.8 was the last release that read it; now NCCL_PROTO / automatic tuning
                    (2.5)
          do        take it out; its place was taken by NCCL_PROTO / automatic tuning (2.5)

        NCCL_X_Y=1
          from      image ENV (image.json)
          read      no release of NCCL reads this name
          do        take the line out, or check which plug-in reads it

        note: /usr/lib/libnccl-env.so: this environment plug-in answers after all of these and may
              change any value
        not read: /root/.nccl.conf: permission denied
        ");
    }
}
