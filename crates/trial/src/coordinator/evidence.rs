//! From what workers and ranks said to [`Evidence`].

use std::collections::BTreeMap;

use ncclctl_findings::Evidence;
use ncclctl_findings::evidence::{CpuWindow, Host, Rank, WireWindow};

use super::workers::Workers;
use crate::counters::HostCounters;
use crate::engine::Connected;
use crate::plan::TrialPlan;

/// Which host each used worker is on: workers with the same boot id and network namespace share one.
pub(super) fn hosts(workers: &Workers) -> (Vec<Host>, Vec<usize>) {
    let mut hosts: Vec<Host> = Vec::new();
    let mut of_worker = Vec::new();
    for worker in &workers.list[..workers.used()] {
        let host = &worker.hello.host;
        let known = !host.boot_id.is_empty() && host.netns != 0;
        let same = hosts
            .iter()
            .position(|other| known && other.boot_id == host.boot_id && other.netns == host.netns);
        of_worker.push(same.unwrap_or(hosts.len()));
        if same.is_none() {
            let mut host = host.clone();
            host.name = unique(&hosts, &worker.hello.name);
            hosts.push(host);
        }
    }
    (hosts, of_worker)
}

fn unique(hosts: &[Host], name: &str) -> String {
    let taken = |candidate: &str| hosts.iter().any(|host| host.name == candidate);
    if !taken(name) {
        return name.to_owned();
    }
    let mut number = 2;
    loop {
        let candidate = format!("{name}#{number}");
        if !taken(&candidate) {
            return candidate;
        }
        number += 1;
    }
}

/// Evidence with everything that is known once all ranks are connected.
pub(super) fn begin(
    plan: &TrialPlan,
    workers: &Workers,
    pids: &[u32],
    connected: Vec<Connected>,
) -> Evidence {
    let (hosts, of_worker) = hosts(workers);
    let mut host_of_rank: BTreeMap<usize, usize> = BTreeMap::new();
    for (worker, host) in workers.list.iter().zip(&of_worker) {
        for rank in &worker.ranks {
            host_of_rank.insert(*rank, *host);
        }
    }
    let mut evidence = Evidence {
        engine: plan.engine.clone(),
        settings: plan.settings.clone(),
        stated_line_rate_bits: plan.line_rate_bits,
        hosts,
        ..Evidence::default()
    };
    for (rank, connected) in connected.into_iter().enumerate() {
        evidence.ranks.push(Rank {
            host: host_of_rank.get(&rank).copied().unwrap_or(0),
            pid: pids.get(rank).copied().unwrap_or(0),
            interfaces: connected.interfaces,
            gpu: connected.gpu,
            version: connected.version,
        });
        evidence.edges.extend(connected.edges);
    }
    evidence
}

/// What the counters say of one point, from readings before and after by the used workers.
pub(super) fn windows(
    evidence: &mut Evidence,
    workers: &Workers,
    point: usize,
    before: &[HostCounters],
    after: &[HostCounters],
) {
    let (_, of_worker) = hosts(workers);
    let mut own: BTreeMap<usize, f64> = BTreeMap::new();
    for ((host, before), after) in of_worker.iter().zip(before).zip(after) {
        *own.entry(*host).or_default() += after.processors.own - before.processors.own;
    }
    for host in 0..evidence.hosts.len() {
        // the first worker of a host speaks for it
        let Some(worker) = of_worker.iter().position(|h| *h == host) else { continue };
        let (Some(before), Some(after)) = (before.get(worker), after.get(worker)) else { continue };
        let seconds = after.at - before.at;
        let difference = after.network.since(&before.network);
        for (nic, counts) in &difference.nics {
            let interface = evidence.hosts[host].interfaces.iter().find(|i| i.name == *nic);
            let in_use = carries(evidence, host, nic);
            if counts.rx_bytes + counts.tx_bytes == 0 && !in_use {
                continue;
            }
            evidence.wire.push(WireWindow {
                host,
                nic: nic.clone(),
                point,
                seconds,
                rx_bytes: counts.rx_bytes,
                tx_bytes: counts.tx_bytes,
                errors: counts.errors,
                drops: counts.drops,
                retransmits: difference.tcp_retransmits,
                segments: difference.tcp_segments,
                line_rate_bits: interface.and_then(|i| i.line_rate_bits()),
            });
        }
        // /proc counts in hundredths of a second: a tenth is the least that says anything
        if seconds < 0.1 {
            continue;
        }
        let per_second = |used: f64| if seconds > 0.0 { used / seconds } else { 0.0 };
        evidence.cpu.push(CpuWindow {
            host,
            point,
            seconds,
            busy_cpus: per_second(after.processors.busy - before.processors.busy),
            stolen_cpus: per_second(after.processors.stolen - before.processors.stolen),
            machine_cpus: after.processors.machine,
            trial_cpus: per_second(own.get(&host).copied().unwrap_or(0.0)),
            throttled_seconds: after.processors.throttled - before.processors.throttled,
        });
    }
}

/// Whether an interface is one that a rank of the host chose, or that an edge leaves by.
fn carries(evidence: &Evidence, host: usize, nic: &str) -> bool {
    let on_host = |rank: usize| evidence.ranks.get(rank).is_some_and(|r| r.host == host);
    evidence.edges.iter().any(|edge| on_host(edge.from) && edge.nic.as_deref() == Some(nic))
        || evidence
            .ranks
            .iter()
            .any(|rank| rank.host == host && rank.interfaces.iter().any(|i| i.name == nic))
}
