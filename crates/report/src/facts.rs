//! Facts for people and programs: a page, JSON, and the topology as NCCL's own XML.

use std::fmt::Write as _;

use ncclctl_facts::Facts;
use ncclctl_facts::difference::{Difference, size};
use ncclctl_facts::net::{Interface, Kind, Purpose};
use ncclctl_findings::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::envelope::Tool;
use crate::text::wrap;

/// Schema of [`FactsResult`].
pub const FACTS_SCHEMA: &str = "ncclctl/facts/v1";

/// Result of `ncclctl facts`, as `-o json` prints it and `--diff` reads it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FactsResult {
    /// `ncclctl/facts/v1`.
    pub schema: String,
    /// What made it.
    pub tool: Tool,
    /// The facts, one record a node.
    pub facts: Vec<Facts>,
    /// What is wrong or doubtful there.
    pub findings: Vec<Finding>,
    /// What the first node lacks of the host that it was held against.
    #[serde(default)]
    pub difference: Option<Vec<Difference>>,
}

/// Saved facts that can not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No JSON, or other JSON.
    #[error("no facts of ncclctl")]
    Json(#[from] serde_json::Error),
    /// Written by a newer version.
    #[error("its schema is `{0}`, this ncclctl reads `{FACTS_SCHEMA}`; use a newer ncclctl")]
    Schema(String),
}

impl FactsResult {
    /// The envelope.
    pub fn new(facts: Vec<Facts>, findings: Vec<Finding>) -> Self {
        Self {
            schema: FACTS_SCHEMA.to_owned(),
            tool: Tool::this(),
            facts,
            findings,
            difference: None,
        }
    }

    /// Reads saved facts.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_str(text)?;
        if head.schema != FACTS_SCHEMA {
            return Err(ReadError::Schema(head.schema));
        }
        Ok(serde_json::from_str(text)?)
    }
}

/// The page of one node.
pub fn render(facts: &Facts, width: usize) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: &str| {
        wrap(&mut out, width, &format!("{name:<11}"), "           ", text);
    };
    line("node", &head(facts));
    line("container", &container(facts));
    line("limits", &limits(facts));
    match &facts.gpu {
        None => line("gpus", "none: no driver, no NVIDIA device"),
        Some(driver) => {
            let mut text = format!(
                "{} · driver {}",
                grouped(driver.gpus.iter().map(|g| g.model.clone())),
                driver.version.as_deref().unwrap_or("unknown")
            );
            if let Some(cuda) = &driver.cuda {
                let _ = write!(text, " (CUDA up to {cuda})");
            }
            let links: Vec<u32> =
                driver.gpus.iter().map(ncclctl_facts::gpu::Gpu::nvlink_count).collect();
            if let Some(most) = links.iter().max().filter(|m| **m > 0) {
                let switch = driver.gpus.iter().any(ncclctl_facts::gpu::Gpu::behind_switch);
                let _ = write!(
                    text,
                    " · {most} NVLinks each{}",
                    if switch { " to NVSwitch" } else { "" }
                );
                let speed = driver.gpus.iter().flat_map(|g| &g.nvlinks).find_map(|l| l.speed);
                if let Some(speed) = speed {
                    // one direction of one link, as nvidia-smi nvlink --status says
                    let _ = write!(text, " of {:.1} GB/s", speed as f64 / 1000.0);
                }
            }
            if let Some(fabric) = driver.gpus.iter().find_map(|g| g.fabric.as_ref()) {
                text.push_str(&fabric_words(fabric));
            }
            if driver.confidential == Some(true) {
                text.push_str(" · confidential computing on");
            }
            let mig: u32 = driver.gpus.iter().filter_map(|g| g.mig).sum();
            if mig > 0 {
                let _ = write!(text, " · {mig} MIG slices: NCCL can not join slices of one GPU");
            }
            let _ = write!(text, " · from {}", driver.source);
            line("gpus", &text);
        }
    }
    line("gpudirect", &gpudirect(facts));
    line("nccl", &libraries(facts));
    if let Some(text) = platform(facts) {
        line("platform", &text);
    }
    out.push('\n');
    interfaces(&mut out, facts);
    if !facts.rdma.is_empty() {
        out.push('\n');
        rdma(&mut out, facts);
    }
    if facts.topology.names.len() > 1 && !facts.gpus().is_empty() {
        out.push('\n');
        matrix(&mut out, facts);
    }
    let settings: Vec<String> = facts
        .environment
        .iter()
        .filter(|(name, _)| ncclctl_nccl::layers::is_nccls(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if !settings.is_empty() {
        out.push('\n');
        wrap(&mut out, width, "settings   ", "           ", &settings.join(" "));
    }
    if !facts.missing.is_empty() {
        out.push_str("\nnot known\n");
        for missing in &facts.missing {
            wrap(&mut out, width, "  ", "    ", &format!("{}: {}", missing.source, missing.why));
        }
    }
    out
}

/// What a container lacks of its host.
pub fn render_difference(differences: &[Difference], width: usize) -> String {
    if differences.is_empty() {
        return "this container sees everything of its host that NCCL uses\n".to_owned();
    }
    let mut out = String::new();
    for d in differences {
        wrap(
            &mut out,
            width,
            &format!("{:<10}", d.part),
            "          ",
            &format!("host: {} · here: {}", d.host, d.here),
        );
        wrap(&mut out, width, "  costs   ", "          ", &d.costs);
        wrap(&mut out, width, "  remedy  ", "          ", &d.remedy);
    }
    out
}

fn head(facts: &Facts) -> String {
    let mut text = facts.name.clone();
    if !facts.kernel.is_empty() {
        let _ = write!(text, " · Linux {}", facts.kernel);
    }
    if facts.cpus > 0 {
        let _ = write!(text, " · {} processors", facts.cpus);
    }
    text
}

fn container(facts: &Facts) -> String {
    let c = &facts.container;
    let mut parts = vec![match &c.runtime {
        None => "none seen: a host, or a container that shows no mark".to_owned(),
        Some(runtime) if c.kubernetes => format!("pod on {runtime}"),
        Some(runtime) => runtime.clone(),
    }];
    parts.push(if c.user == 0 { "root".to_owned() } else { format!("user {}", c.user) });
    parts.push(match c.capabilities.as_slice() {
        [] => "no capabilities that matter".to_owned(),
        some => some.join(", "),
    });
    if let Some(seccomp) = c.seccomp.as_deref().filter(|s| *s != "off") {
        parts.push(format!("seccomp {seccomp}"));
    }
    let shared: Vec<&str> =
        [("net", c.host.net), ("ipc", c.host.ipc), ("pid", c.host.pid), ("uts", c.host.uts)]
            .iter()
            .filter(|(_, s)| *s == Some(true))
            .map(|(n, _)| *n)
            .collect();
    if c.runtime.is_some() {
        parts.push(if shared.is_empty() {
            "shares nothing with the host".to_owned()
        } else {
            format!("shares {} with the host", shared.join(", "))
        });
    }
    parts.join(" · ")
}

fn limits(facts: &Facts) -> String {
    let c = &facts.container;
    let known = |v: Option<u64>| v.map_or_else(|| "unknown".to_owned(), size);
    let mut parts =
        vec![format!("memlock {}", known(c.memlock)), format!("/dev/shm {}", known(c.shm))];
    if let Some(files) = c.open_files {
        parts.push(if files == u64::MAX {
            "files unlimited".to_owned()
        } else {
            format!("{files} files")
        });
    }
    if c.memory_policy == Some(false) {
        parts.push("NUMA memory policy refused".to_owned());
    }
    if let Some(quota) = c.cpu_quota {
        parts.push(format!("{quota:.1} processors by quota"));
    }
    if let Some(memory) = c.memory_limit {
        parts.push(format!("memory {}", size(memory)));
    }
    if c.cgroup > 0 {
        parts.push(format!("cgroup v{}", c.cgroup));
    }
    parts.join(" · ")
}

/// The NVLink fabric in words; nothing where it is as it should be and ends at this node.
fn fabric_words(fabric: &ncclctl_facts::gpu::Fabric) -> String {
    let degraded = if fabric.degraded { ", bandwidth degraded" } else { "" };
    match &fabric.cluster {
        _ if fabric.state != "completed" => format!(
            " · NVLink fabric {}{degraded}: NVLink does not work before fabric manager has done",
            fabric.state
        ),
        Some(cluster) => {
            format!(
                " · NVLink fabric over nodes: cluster {cluster}, clique {}{degraded}",
                fabric.clique
            )
        }
        None => degraded.replace(", ", " · NVLink fabric: "),
    }
}

fn gpudirect(facts: &Facts) -> String {
    let g = &facts.gpudirect;
    match g.ready {
        None if facts.gpu.is_none() => "does not apply: no GPU".to_owned(),
        None if facts.rdma.is_empty() => "does not apply: no RDMA device".to_owned(),
        None => format!("unknown: {}", g.reasons.join("; ")),
        Some(true) => format!("ready, by {}", g.way.as_deref().unwrap_or("an unknown way")),
        Some(false) => format!("not ready: {}", g.reasons.join("; ")),
    }
}

fn libraries(facts: &Facts) -> String {
    let s = &facts.software;
    let mut parts = Vec::new();
    if s.nccl.is_empty() {
        parts.push("no libnccl found".to_owned());
    }
    for library in &s.nccl {
        parts.push(format!(
            "{} at {} ({})",
            library.version.as_deref().unwrap_or("version unknown"),
            library.path,
            library.loaded_by
        ));
    }
    for plugin in &s.plugins {
        let unreachable =
            if plugin.found_by_loader { "" } else { ", which the loader does not search" };
        parts.push(format!("{} plug-in {}{unreachable}", plugin.kind, plugin.path));
    }
    match &s.verbs {
        Some(_) if s.providers.is_empty() => parts.push("libibverbs without providers".to_owned()),
        Some(_) => parts.push(format!("libibverbs with {}", s.providers.join(", "))),
        None => parts.push("no libibverbs".to_owned()),
    }
    if let Some(path) = &s.interception {
        parts.push(format!("vGPU interception by {path}"));
    }
    parts.join(" · ")
}

fn platform(facts: &Facts) -> Option<String> {
    let p = &facts.platform;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(p.cloud.clone());
    parts.extend(p.instance.clone());
    if parts.is_empty() {
        parts.extend(p.vendor.clone());
        parts.extend(p.product.clone());
    }
    if let Some(h) = &p.hypervisor {
        parts.push(if h == "unknown" {
            "a virtual machine".to_owned()
        } else {
            format!("a virtual machine ({h})")
        });
    }
    parts.extend(p.topology_files.iter().map(|f| format!("topology file {f}")));
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// `8 x NVIDIA H100`, in order of first appearance.
fn grouped(names: impl Iterator<Item = String>) -> String {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for name in names {
        match groups.iter_mut().find(|(n, _)| *n == name) {
            Some((_, count)) => *count += 1,
            None => groups.push((name, 1)),
        }
    }
    if groups.is_empty() {
        return "none visible".to_owned();
    }
    groups.iter().map(|(n, c)| format!("{c} x {n}")).collect::<Vec<_>>().join(", ")
}

/// Rows of cells, each column as wide as its widest cell.
fn columns(out: &mut String, rows: &[Vec<String>]) {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|c| rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0))
        .collect();
    for row in rows {
        let mut text = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:<width$}  ");
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
}

fn interfaces(out: &mut String, facts: &Facts) {
    let mut rows =
        vec![["interface", "kind", "speed", "mtu", "addresses", ""].map(str::to_owned).to_vec()];
    for i in facts.interfaces.iter().filter(|i| i.kind != Kind::Loopback) {
        let addresses: Vec<String> =
            i.addresses.iter().map(|a| format!("{}/{}", a.ip, a.prefix)).collect();
        rows.push(vec![
            i.name.clone(),
            format!("{:?}", i.kind).to_lowercase(),
            speed(i),
            i.mtu.to_string(),
            if addresses.is_empty() { "none".to_owned() } else { addresses.join(" ") },
            remarks(facts, i),
        ]);
    }
    columns(out, &rows);
}

fn speed(i: &Interface) -> String {
    match (i.line_rate_bits(), i.reported_mbits) {
        (Some(bits), _) if bits >= 1_000_000_000 => format!("{} Gbit/s", bits / 1_000_000_000),
        (Some(bits), _) => format!("{} Mbit/s", bits / 1_000_000),
        // shared by others, or added up from members: what is told is no promise
        (None, Some(mbits)) if mbits >= 1000 => format!("({} Gbit/s told)", mbits / 1000),
        (None, Some(mbits)) if mbits > 0 => format!("({mbits} Mbit/s told)"),
        _ => "unknown".to_owned(),
    }
}

fn remarks(facts: &Facts, i: &Interface) -> String {
    let mut parts = Vec::new();
    if facts.default_route.as_deref() == Some(&i.name) {
        parts.push("default route".to_owned());
    }
    if !i.running {
        parts.push("down".to_owned());
    }
    match i.purpose() {
        Some(Purpose::Management) => parts.push("management".to_owned()),
        Some(Purpose::Storage) => parts.push("storage by its name".to_owned()),
        None => {}
    }
    if let Some(mode) = &i.bond_mode {
        let members = facts.interfaces.iter().filter(|o| o.master.as_deref() == Some(&i.name));
        let names: Vec<&str> = members.map(|m| m.name.as_str()).collect();
        parts.push(format!("{mode} of {}", names.join(" and ")));
    }
    if let Some(parent) = &i.function_of {
        parts.push(format!("virtual function of {parent}"));
    }
    if let Some(count) = i.functions.filter(|n| *n > 0) {
        parts.push(format!("{count} virtual functions"));
    }
    if let Some(master) = &i.master {
        parts.push(format!("part of {master}"));
    }
    if let Some(driver) = &i.driver {
        parts.push(driver.clone());
    }
    parts.join(", ")
}

fn rdma(out: &mut String, facts: &Facts) {
    let mut rows = vec![
        ["rdma port", "state", "rate", "link", "interface", "gids", "open", "nearest gpu"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for device in &facts.rdma {
        for port in &device.ports {
            rows.push(vec![
                format!("{}:{}", device.name, port.number),
                port.state.clone(),
                port.mbits.map_or_else(|| "unknown".to_owned(), |m| format!("{} Gbit/s", m / 1000)),
                if device.is_efa() { "EFA".to_owned() } else { port.link_layer.clone() },
                port.netdev.clone().unwrap_or_else(|| "none here".to_owned()),
                if port.unreadable_gids > 0 {
                    format!("{} (+{} of others)", port.gids.len(), port.unreadable_gids)
                } else {
                    port.gids.len().to_string()
                },
                device.opened.clone().unwrap_or_else(|| "no device node".to_owned()),
                facts
                    .topology
                    .to_gpu(&device.name)
                    .map_or_else(|| "-".to_owned(), |p| p.to_string()),
            ]);
        }
    }
    columns(out, &rows);
}

/// Paths to the GPUs, one row a device: NICs among themselves do not decide anything.
fn matrix(out: &mut String, facts: &Facts) {
    let t = &facts.topology;
    let gpus: Vec<usize> =
        (0..t.names.len()).filter(|column| t.names[*column].starts_with("GPU")).collect();
    let head = gpus.iter().map(|column| t.names[*column].clone());
    let mut rows = vec![
        std::iter::once("path".to_owned())
            .chain(head)
            .chain(std::iter::once("numa".to_owned()))
            .collect::<Vec<_>>(),
    ];
    for (name, row) in t.names.iter().zip(&t.paths) {
        let device = facts.pci.iter().find(|d| d.names.contains(name));
        // an RDMA device with the interface on the same card
        let label = device.map_or_else(|| name.clone(), |d| d.names.join(" "));
        let numa = device.and_then(|d| d.numa).map_or_else(|| "-".to_owned(), |n| n.to_string());
        let cells = gpus.iter().filter_map(|column| row.get(*column)).map(ToString::to_string);
        rows.push(std::iter::once(label).chain(cells).chain(std::iter::once(numa)).collect());
    }
    columns(out, &rows);
    if t.flat {
        out.push_str("no bridge tells near from far here: the hypervisor hides the PCI tree\n");
    }
}
