//! What changed between two runs: settings, versions, networks, transports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ncclctl_findings::{Diagnosis, Incident, Severity};
use ncclctl_nccl::log::Transport;

/// One property and what it was in each run.
type Properties = BTreeMap<String, String>;

/// Renders what is different in `bad`, seen from `good`.
pub fn render(good: (&Incident, &Diagnosis), bad: (&Incident, &Diagnosis)) -> String {
    let (a, b) = (properties(good.0), properties(bad.0));
    let mut out = String::new();
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for key in keys {
        let (x, y) = (a.get(key), b.get(key));
        if x != y {
            let show = |v: Option<&String>| v.map_or("(not said)".to_owned(), Clone::clone);
            let _ = writeln!(out, "{key}\n  - {}\n  + {}", show(x), show(y));
        }
    }
    let loud = |d: &Diagnosis| -> BTreeMap<String, String> {
        d.findings
            .iter()
            .filter(|f| f.severity >= Severity::Warning)
            .map(|f| (f.rule.clone(), f.message.clone()))
            .collect()
    };
    let (x, y) = (loud(good.1), loud(bad.1));
    for (rule, message) in &y {
        if !x.contains_key(rule) {
            let _ = writeln!(out, "new finding {rule}\n  + {message}");
        }
    }
    for (rule, message) in &x {
        if !y.contains_key(rule) {
            let _ = writeln!(out, "gone finding {rule}\n  - {message}");
        }
    }
    if out.is_empty() {
        out.push_str("no difference in settings, versions, networks, transports or findings\n");
    }
    out
}

/// What two runs are compared by.
fn properties(incident: &Incident) -> Properties {
    let log = &incident.log;
    let mut out = Properties::new();
    let mut many: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |key: &str, value: String| {
        many.entry(key.to_owned()).or_default().insert(value);
    };
    for p in &log.processes {
        if let Some(v) = p.version {
            add("NCCL version", v.to_string());
        }
        if let Some(d) = p.cuda_driver {
            add("CUDA of the driver", format!("{}.{}", d / 1000, d % 1000 / 10));
        }
        if !p.network.value.is_empty() {
            add("network", p.network.value.clone());
        }
        for b in &p.bootstrap.value {
            add("meets on", b.interface.clone());
        }
        for d in &p.ports.value {
            add("RDMA ports", format!("{}:{}/{}", d.device, d.port, d.layer));
        }
        for (name, s) in &p.settings {
            let value = if name == "NCCL_PSK" { "(redacted)".to_owned() } else { s.value.clone() };
            add(&format!("setting {name}"), value);
        }
        for e in &p.edges {
            let way = match &e.transport {
                Transport::P2p(kind) => format!("P2P/{kind}"),
                Transport::Shm => "SHM".to_owned(),
                Transport::Net { name, .. } => {
                    format!("NET/{name}{}", if e.gdr { "/GDRDMA" } else { "" })
                }
                Transport::CollNet => "COLLNET".to_owned(),
            };
            add("transports", way);
        }
        if !p.channels.is_empty() {
            add(
                "channels",
                p.channels.split(" coll").next().map_or(String::new(), |c| {
                    let number = c.rsplit(' ').next().unwrap_or(c);
                    format!("{number} collective channels")
                }),
            );
        }
    }
    for comm in log.communicators.iter().filter(|c| !c.child) {
        add("ranks", comm.nranks.to_string());
        if let Some(n) = comm.nodes {
            add("nodes", n.to_string());
        }
    }
    for (key, values) in many {
        out.insert(key, values.into_iter().collect::<Vec<_>>().join(", "));
    }
    out
}
