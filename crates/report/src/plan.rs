//! A plan as a page that can be read aloud, and as JSON.

use std::fmt::Write as _;

use ncclctl_nccl::doubt::Weight;
use ncclctl_nccl::params;
use ncclctl_plan::result::{Goal, Need, Plan, Question, Setting};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::envelope::Tool;
use crate::text::wrap;

/// Schema of [`PlanResult`].
pub const PLAN_SCHEMA: &str = "ncclctl/plan/v1";

/// Result of `ncclctl plan`, as `-o json` prints it and `--plan` reads it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanResult {
    /// `ncclctl/plan/v1`.
    pub schema: String,
    /// What made it.
    pub tool: Tool,
    /// The plan.
    pub plan: Plan,
}

/// A saved plan that can not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No JSON, or other JSON.
    #[error("no plan of ncclctl")]
    Json(#[from] serde_json::Error),
    /// Written by a newer version.
    #[error("its schema is `{0}`, this ncclctl reads `{PLAN_SCHEMA}`; use a newer ncclctl")]
    Schema(String),
}

impl PlanResult {
    /// The envelope of a plan.
    pub fn new(plan: Plan) -> Self {
        Self { schema: PLAN_SCHEMA.to_owned(), tool: Tool::this(), plan }
    }

    /// Reads a saved plan.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_str(text)?;
        if head.schema != PLAN_SCHEMA {
            return Err(ReadError::Schema(head.schema));
        }
        Ok(serde_json::from_str(text)?)
    }
}

/// The page.
pub fn render(plan: &Plan, width: usize) -> String {
    let mut out = String::new();
    let nodes = match &plan.nodes[..] {
        [one] => one.name.clone(),
        all => format!("{} nodes", all.len()),
    };
    let goal = match plan.goal {
        None => "",
        Some(Goal::Throughput) => ", for throughput",
        Some(Goal::Latency) => ", for latency",
        Some(Goal::Stability) => ", for stability",
    };
    let _ = writeln!(
        out,
        "{nodes}, NCCL {} ({}){goal}: {}",
        plan.nccl,
        plan.nccl_from,
        plan.transport.name()
    );
    wrap(&mut out, width, "  ", "  ", &plan.transport_why);
    if plan.all().next().is_none() {
        out.push_str("\nset nothing: NCCL's own defaults are right here\n");
    } else if !plan.settings.is_empty() {
        out.push_str("\nset on every node\n");
        for s in &plan.settings {
            setting(&mut out, s, width);
        }
    }
    for node in plan.nodes.iter().filter(|n| !n.settings.is_empty()) {
        let _ = writeln!(out, "\nset on {} alone", node.name);
        for s in &node.settings {
            setting(&mut out, s, width);
        }
    }
    if !plan.needs.is_empty() {
        out.push_str("\ngive the container\n");
        for n in &plan.needs {
            need(&mut out, n, width);
        }
    }
    if !plan.questions.is_empty() {
        out.push_str("\nasked about what is there\n");
        for q in &plan.questions {
            question(&mut out, q, plan.nodes.len(), width);
        }
    }
    if !plan.not_set.is_empty() {
        out.push_str("\nleft to NCCL\n");
        for n in &plan.not_set {
            wrap(&mut out, width, &format!("  {}: ", n.name), "    ", &n.why);
        }
    }
    if !plan.ports.is_empty() {
        out.push_str("\nopen between the nodes\n");
        for p in &plan.ports {
            let range = if p.first == p.last {
                p.first.to_string()
            } else {
                format!("{}-{}", p.first, p.last)
            };
            let local = if p.local { " (on the loopback only: nothing to open)" } else { "" };
            let _ = writeln!(out, "  {} {range:<11} {}{local}", p.protocol, p.what);
        }
    }
    out
}

fn setting(out: &mut String, s: &Setting, width: usize) {
    let _ = writeln!(out, "  {}={}", s.name, s.value);
    wrap(out, width, "    why      ", "             ", &s.reason);
    wrap(out, width, "    without  ", "             ", &s.without);
}

fn need(out: &mut String, n: &Need, width: usize) {
    let mark = match n.met {
        Some(true) => "has    ",
        Some(false) => "MISSING",
        None => "needs  ",
    };
    wrap(out, width, &format!("  {mark} {}: ", n.what), "          ", &n.why);
    // what is there needs no lines
    if n.met == Some(true) {
        return;
    }
    for (where_, lines) in [("docker", &n.docker), ("compose", &n.compose), ("pod", &n.pod)] {
        for line in lines {
            wrap(out, width, &format!("          {where_:<8} "), "                   ", line);
        }
    }
}

fn question(out: &mut String, q: &Question, nodes: usize, width: usize) {
    let weight = match q.weight {
        Weight::Info => "note   ",
        Weight::Warning => "warning",
        Weight::Error => "error  ",
    };
    let on = match &q.nodes[..] {
        [] => String::new(),
        all if all.len() == nodes => String::new(),
        all if all.len() > 3 => format!(" ({} and {} others)", all[0], all.len() - 1),
        all => format!(" ({})", all.join(", ")),
    };
    wrap(out, width, &format!("  {weight} {}{on}: ", q.rule), "          ", &q.what);
    wrap(out, width, "          ", "          ", &q.cause);
    wrap(out, width, "          do: ", "              ", &q.remedy);
}

/// Why a variable has its value, or why it is left alone. `None` for a name that NCCL never had.
pub fn explain(plan: &Plan, name: &str, width: usize) -> Option<String> {
    let mut out = String::new();
    let mut line = |label: &str, text: &str| {
        if !text.is_empty() {
            wrap(&mut out, width, &format!("  {label:<8} "), "           ", text);
        }
    };
    let param = params::get(name);
    let mut said = false;
    for (on, s) in plan
        .settings
        .iter()
        .map(|s| ("every node", s))
        .chain(plan.nodes.iter().flat_map(|n| n.settings.iter().map(|s| (n.name.as_str(), s))))
        .filter(|(_, s)| s.name == name)
    {
        said = true;
        line("set", &format!("{}={} on {on}", s.name, s.value));
        line("why", &s.reason);
        line("without", &s.without);
        line("rule", &s.rule);
        for fact in &s.facts {
            line("fact", fact);
        }
        if s.shared {
            line(
                "shared",
                "ranks that disagree about it may hang or fail: set it for the whole job",
            );
        }
    }
    if let Some(n) = plan.not_set.iter().find(|n| n.name == name) {
        said = true;
        line("not set", &n.why);
    }
    let param = match (param, said) {
        (None, false) => return None,
        (param, _) => param,
    };
    if let Some(param) = param {
        if !said {
            let why = if param.read_in(plan.nccl) {
                format!(
                    "no fact asks for it: NCCL's own default ({}) wins",
                    param.default_in(plan.nccl)
                )
            } else {
                format!("NCCL {} does not read it", plan.nccl)
            };
            line("not set", &why);
        }
        line("meaning", param.meaning);
        line("default", param.default_in(plan.nccl));
        line("risk", param.risk);
    }
    for q in plan.questions.iter().filter(|q| q.what.contains(name)) {
        line("asked", &format!("{}: {}; {}", q.rule, q.what, q.remedy));
    }
    Some(format!("{name}, NCCL {}\n{out}", plan.nccl))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncclctl_plan::node::{Gpu, Node};
    use ncclctl_plan::{Request, plan};

    fn example() -> Plan {
        let text = include_str!("../tests/mixed.json");
        let nodes: Vec<Node> = serde_json::from_str(text).unwrap();
        plan(&nodes, Request::default())
    }

    #[test]
    fn a_page_to_read_aloud() {
        insta::assert_snapshot!(render(&example(), 90), @r"
        2 nodes, NCCL 2.27.5 (found): TCP sockets
          the nodes have not one RDMA network in common (gpu-a has InfiniBand; gpu-b has TCP
          sockets): a job over both hangs in init unless all use sockets; this costs the RDMA rate
          on every node

        set on every node
          NCCL_NET=Socket
            why      the nodes have not one RDMA network in common (gpu-a has InfiniBand; gpu-b
                     has TCP sockets): a job over both hangs in init unless all use sockets; this
                     costs the RDMA rate on every node
            without  gpu-a would try RDMA or a plug-in, the others sockets
          NCCL_SOCKET_IFNAME==eno1,ens3
            why      10.0.0.0/24 is the network that all nodes share; it carries bootstrap and
                     data
            without  NCCL takes ibp12s0 on gpu-a

        give the container
          needs   2 GPUs with compute and utility: NCCL asks the driver and NVML for links and
                  peers
                  docker   --gpus all
                  compose  deploy: {resources: {reservations: {devices: [{driver: nvidia, count:
                           all, capabilities: [gpu]}]}}}
                  pod      resources: limits: nvidia.com/gpu: 2
          MISSING /dev/shm of 2 GiB or more: it has 64 MiB; NCCL fails with `unhandled system
                  error` when it is full
                  docker   --shm-size=2g
                  compose  shm_size: 2gb
                  pod      volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]
                  pod      volumeMounts: [{name: shm, mountPath: /dev/shm}]
          has     a network in which ranks reach each other: ranks of different nodes meet on
                  ephemeral ports, which no port mapping covers

        asked about what is there
          warning env-workaround-left (gpu-a): NCCL_P2P_DISABLE=1 turns peer access off
                  NVLink and PCIe peer access are not used: traffic between GPUs of one node goes
                  through host memory, often at a tenth of the rate
                  do: take NCCL_P2P_DISABLE out; if the fault that it was for is still there, mend
                      that
          warning silent-tcp-fallback (gpu-a): there are active RDMA ports that the job does not
                  use
                  the nodes have not one RDMA network in common (gpu-a has InfiniBand; gpu-b has
                  TCP sockets): a job over both hangs in init unless all use sockets; this costs
                  the RDMA rate on every node
                  do: see what the container must be given, then plan again

        left to NCCL
          NCCL_P2P_DISABLE: nothing shows that peer access is broken
          NCCL_SHM_DISABLE: a small /dev/shm is made larger, not avoided

        open between the nodes
          tcp 32768-60999 bootstrap, RAS mesh and data
          tcp 28028       RAS, for its clients (on the loopback only: nothing to open)
        ");
    }

    #[test]
    fn why_and_why_not() {
        let plan = example();
        insta::assert_snapshot!(explain(&plan, "NCCL_NET", 90).unwrap(), @r"
        NCCL_NET, NCCL 2.27.5
          set      NCCL_NET=Socket on every node
          why      the nodes have not one RDMA network in common (gpu-a has InfiniBand; gpu-b has
                   TCP sockets): a job over both hangs in init unless all use sockets; this costs
                   the RDMA rate on every node
          without  gpu-a would try RDMA or a plug-in, the others sockets
          rule     common-transport
          fact     gpu-a: InfiniBand
          fact     gpu-b: TCP sockets
          shared   ranks that disagree about it may hang or fail: set it for the whole job
          meaning  Insists on one network; init fails if it is absent
          default  unset
          risk     safe: turns a silent fall-back into an error; must be equal on every rank
        ");
        insta::assert_snapshot!(explain(&plan, "NCCL_BUFFSIZE", 90).unwrap(), @r"
        NCCL_BUFFSIZE, NCCL 2.27.5
          not set  no fact asks for it: NCCL's own default (-2) wins
          meaning  Size of the per-connection buffer of the Simple protocol (default 4 MiB; LL and
                   LL128 have their own keys)
          default  -2
          risk     mem; perf; equal on every rank; suffixes such as 4M are read as 4
        ");
        assert!(explain(&plan, "NCCL_NOT_A_NAME", 90).is_none());
    }

    #[test]
    fn a_saved_plan_comes_back() {
        let result = PlanResult::new(example());
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(PlanResult::read(&text).unwrap().plan, result.plan);
        assert!(PlanResult::read("{}").is_err());
        let other = text.replace(PLAN_SCHEMA, "ncclctl/plan/v9");
        assert!(matches!(PlanResult::read(&other), Err(ReadError::Schema(_))));
    }

    #[test]
    fn nothing_to_set_is_said() {
        let node = Node { name: "n".into(), gpus: vec![Gpu::default()], ..Node::default() };
        let text = render(&plan(&[node], Request::default()), 80);
        assert!(text.contains("set nothing"), "{text}");
    }
}
