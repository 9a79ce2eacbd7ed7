//! Who talks to whom over what: the model of a job as a page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ncclctl_findings::Incident;
use ncclctl_nccl::log::{Communicator, Process, Transport};

/// Ranks that are listed one by one.
const RANKS: usize = 64;

/// Renders the page.
pub fn render(incident: &Incident) -> String {
    let mut out = String::new();
    let log = &incident.log;
    for line in super::ran(incident) {
        let _ = writeln!(out, "{line}");
    }
    for comm in &log.communicators {
        communicator(&mut out, incident, comm);
    }
    let _ = writeln!(out, "\nprocesses");
    for p in log.processes.iter().take(RANKS) {
        process(&mut out, incident, p);
    }
    if log.processes.len() > RANKS {
        let _ = writeln!(out, "  … {} more", log.processes.len() - RANKS);
    }
    settings(&mut out, incident);
    out
}

fn communicator(out: &mut String, incident: &Incident, comm: &Communicator) {
    let child = if comm.child { ", split from another" } else { "" };
    let mnnvl = if comm.mnnvl { ", multi-node NVLink" } else { "" };
    let _ = writeln!(out, "\ncommunicator {}: {} ranks{child}{mnnvl}", comm.id, comm.nranks);
    for (rank, member) in comm.members.iter().take(RANKS) {
        let Some(p) = incident.log.processes.get(member.process) else { continue };
        let state = match (member.started, member.complete) {
            (_, true) => "set up",
            (true, false) => "began, not finished",
            _ => "seen",
        };
        let gpu = member.device.map_or(String::new(), |d| format!(" GPU {d}"));
        let bus =
            if member.bus_id.is_empty() { String::new() } else { format!(" [{}]", member.bus_id) };
        let _ = writeln!(out, "  rank {rank:<4} {}{gpu}{bus}  {state}", p.name());
    }
    if comm.members.len() > RANKS {
        let _ = writeln!(out, "  … {} more", comm.members.len() - RANKS);
    }
    let missing: Vec<String> = (0..comm.nranks.min(65_536))
        .filter(|r| !comm.members.contains_key(r))
        .take(32)
        .map(|r| r.to_string())
        .collect();
    if !missing.is_empty() {
        let _ = writeln!(out, "  not in these logs: rank {}", missing.join(", "));
    }
}

fn process(out: &mut String, incident: &Incident, p: &Process) {
    let version = p.version.map_or(String::new(), |v| format!("  NCCL {v}"));
    let _ = writeln!(out, "  {}{version}  {} lines", p.name(), p.lines);
    let bound = |list: &[ncclctl_nccl::log::address::Bound]| {
        list.iter()
            .map(|b| b.ip.map_or_else(|| b.interface.clone(), |ip| format!("{} {ip}", b.interface)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if p.bootstrap.is_seen() {
        let _ = writeln!(out, "    meets on     {}", bound(&p.bootstrap.value));
    }
    if p.network.is_seen() {
        let over = if p.network.value == "Socket" {
            bound(&p.sockets.value)
        } else {
            p.ports
                .value
                .iter()
                .map(|d| format!("{}:{}/{}", d.device, d.port, d.layer))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let _ = writeln!(out, "    network      {} over {over}", p.network.value);
    }
    // connections of one kind to one peer on one line
    let mut ways: BTreeMap<(u32, u32, String), BTreeSet<u32>> = BTreeMap::new();
    for e in &p.edges {
        let way = match &e.transport {
            Transport::P2p(kind) => format!("P2P/{kind}"),
            Transport::Shm => "shared memory".to_owned(),
            Transport::Net { name, device, relay } => {
                let relay = relay.map_or(String::new(), |r| format!(" through rank {r}"));
                let gdr = if e.gdr { " GPUDirect" } else { "" };
                format!("{name} device {device}{relay}{gdr}")
            }
            Transport::CollNet => "SHARP".to_owned(),
        };
        ways.entry((e.from, e.to, way)).or_default().insert(e.channel);
    }
    for ((from, to, way), channels) in ways.iter().take(32) {
        let _ = writeln!(
            out,
            "    {from:>4} -> {to:<4} {way}  ({})",
            super::plural(channels.len(), "channel")
        );
    }
    if ways.len() > 32 {
        let _ = writeln!(out, "    … {} more connections", ways.len() - 32);
    }
    if let Some(at) = &p.first_warning {
        let source = incident.log.sources.get(at.source as usize).map_or("", String::as_str);
        let _ = writeln!(out, "    first warning {source}:{}: {}", at.line, at.text);
    }
    let source = incident.log.sources.get(p.last.source as usize).map_or("", String::as_str);
    let _ = writeln!(out, "    last line    {source}:{}", p.last.line);
}

fn settings(out: &mut String, incident: &Incident) {
    let mut all: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for p in &incident.log.processes {
        for (name, setting) in &p.settings {
            all.entry((name, &setting.value)).or_default().insert(&p.host);
        }
    }
    if all.is_empty() {
        return;
    }
    let hosts = incident.log.hosts().len();
    let _ = writeln!(
        out,
        "\nsettings in force (from the environment or nccl.conf, as NCCL echoed them)"
    );
    for ((name, value), on) in all {
        let secret = name == "NCCL_PSK";
        let value = if secret { "(redacted)" } else { value };
        let place = if on.len() >= hosts {
            String::new()
        } else {
            format!("  on {}", on.into_iter().collect::<Vec<_>>().join(", "))
        };
        let _ = writeln!(out, "  {name}={value}{place}");
    }
}
