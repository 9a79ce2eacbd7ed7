//! Facts from what people paste: output of `ip addr`, `show_gids`, `ibstat`, `nvidia-smi topo -m` and
//! the like, each recognised by its own lines, with or without the prompt before it. Headers such as
//! `## node n1` begin another node.

mod gpus;
mod links;
mod rdma;
mod system;

use crate::facts::Facts;

/// One pasted text, node by node, in their order; empty where nothing in it is known.
pub fn read(text: &str) -> Vec<Facts> {
    let mut nodes: Vec<Node> = vec![Node::default()];
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        if let Some(name) = header(line) {
            if nodes.last().is_some_and(|n| !n.touched && n.facts.name.is_empty()) {
                nodes.pop();
            }
            nodes.push(Node { facts: Facts { name, ..Facts::default() }, ..Node::default() });
            continue;
        }
        let Some(node) = nodes.last_mut() else { continue };
        if let Some(command) = prompt(line) {
            command.clone_into(&mut node.command);
            node.place = Place::default();
            continue;
        }
        if READERS.iter().any(|reader| reader(node, line)) {
            node.touched = true;
        }
    }
    nodes.into_iter().filter(|n| n.touched).map(Node::finish).collect()
}

/// Whether a text is such a paste: a prompt with a known command, or an unmistakable head.
pub fn recognise(head: &str) -> bool {
    let mut nodes = 0;
    let mut commands = 0;
    for line in head.lines().take(400) {
        if line.contains(" NCCL INFO ") || line.contains(" NCCL WARN ") {
            return false;
        }
        nodes += usize::from(header(line).is_some());
        commands += usize::from(prompt(line).is_some());
        let trimmed = line.trim_start();
        let unmistakable = trimmed.starts_with("CA 'mlx")
            || trimmed.starts_with("hca_id:")
            || (trimmed.starts_with("DEV") && trimmed.contains("INDEX") && trimmed.contains("GID"))
            || (trimmed.starts_with("GPU0") && trimmed.contains("GPU1"))
            || links::is_link_line(line)
            || (trimmed.starts_with("lo ") && trimmed.contains("127.0.0.1/8"));
        if unmistakable {
            return true;
        }
    }
    commands > 0 && (nodes > 0 || commands > 1)
}

/// What is read of one node so far.
#[derive(Debug, Default)]
struct Node {
    facts: Facts,
    /// The command whose output this is, empty without a prompt.
    command: String,
    place: Place,
    touched: bool,
    /// Columns of the topology table.
    columns: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
    /// The bridge that `lspci` named last.
    bridge: Option<(String, bool)>,
}

/// Where in a nested output the reader stands.
#[derive(Debug, Default)]
struct Place {
    device: String,
    port: u32,
    interface: String,
}

type Reader = fn(&mut Node, &str) -> bool;

/// Each takes a line that it knows. The order matters only where two know the same line.
const READERS: &[Reader] = &[
    rdma::gid_table,
    rdma::ibstat,
    rdma::ibv_devinfo,
    rdma::rdma_link,
    rdma::sysfs,
    links::brief,
    links::full,
    links::route,
    links::ethtool,
    gpus::topology,
    gpus::list,
    gpus::lspci,
    gpus::query,
    system::variable,
    system::limits,
    system::virtual_machine,
    system::modules,
    system::nccl_version,
    system::listing,
];

impl Node {
    fn device(&mut self, name: &str) -> &mut crate::rdma::RdmaDevice {
        let at = self.facts.rdma.iter().position(|d| d.name == name).unwrap_or_else(|| {
            self.facts.rdma.push(crate::rdma::RdmaDevice {
                name: name.to_owned(),
                driver: name.starts_with("rdmap").then(|| "efa".to_owned()),
                ..Default::default()
            });
            self.facts.rdma.len() - 1
        });
        &mut self.facts.rdma[at]
    }

    fn port(&mut self, device: &str, number: u32) -> &mut crate::rdma::Port {
        let device = self.device(device);
        let at = device.ports.iter().position(|p| p.number == number).unwrap_or_else(|| {
            device.ports.push(crate::rdma::Port { number, ..Default::default() });
            device.ports.len() - 1
        });
        &mut device.ports[at]
    }

    fn interface(&mut self, name: &str) -> &mut crate::net::Interface {
        let at = self.facts.interfaces.iter().position(|i| i.name == name).unwrap_or_else(|| {
            self.facts.interfaces.push(crate::net::Interface {
                name: name.to_owned(),
                kind: links::kind_by_name(name),
                ..Default::default()
            });
            self.facts.interfaces.len() - 1
        });
        &mut self.facts.interfaces[at]
    }

    fn finish(mut self) -> Facts {
        gpus::finish(&mut self);
        self.facts
    }
}

/// `## node n1`, `## pod worker-0`, `=== host n2 ===`.
fn header(line: &str) -> Option<String> {
    let rest = line
        .strip_prefix("##")
        .or_else(|| line.strip_prefix("=="))
        .map(|r| r.trim_matches(|c: char| c == '#' || c == '=' || c.is_whitespace()))?;
    let mut words = rest.split_whitespace();
    let kind = words.next()?.trim_end_matches(':').to_ascii_lowercase();
    let known = ["node", "pod", "host", "container", "vm", "machine", "rank", "worker"];
    known
        .contains(&kind.as_str())
        .then(|| words.next().unwrap_or(rest).trim_end_matches(':').to_owned())
}

/// Commands that are read, as the first word behind a prompt.
const COMMANDS: [&str; 34] = [
    "ip",
    "ifconfig",
    "show_gids",
    "env",
    "printenv",
    "ibstat",
    "ibstatus",
    "ibv_devinfo",
    "rdma",
    "grep",
    "cat",
    "nvidia-smi",
    "lspci",
    "ls",
    "lsmod",
    "ulimit",
    "df",
    "ethtool",
    "python",
    "python3",
    "uname",
    "systemd-detect-virt",
    "fi_info",
    "ldconfig",
    "mount",
    "dmesg",
    "hostname",
    "kubectl",
    "docker",
    "lsb_release",
    "sysctl",
    "ibdev2netdev",
    "find",
    "ps",
];

/// The command behind a prompt: `$ ip -br addr`, `# env`, `root@host:~# ibstat`.
fn prompt(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = match line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")) {
        Some(rest) => rest,
        None => {
            let at = line.find("# ").or_else(|| line.find("$ "))?;
            let before = &line[..at];
            let shell = before.contains('@') && !before.contains(' ') && before.len() < 64;
            shell.then(|| &line[at + 2..])?
        }
    };
    let rest = rest.trim_start_matches("sudo ");
    let word = rest.split_whitespace().next()?;
    let name = word.rsplit('/').next().unwrap_or(word);
    COMMANDS.contains(&name).then_some(rest)
}

#[cfg(test)]
mod tests;
