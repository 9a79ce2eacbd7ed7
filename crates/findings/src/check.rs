//! Whether a container is fit for NCCL, before the job: one list of what it must have, from the same
//! knowledge as `plan` (needs, questions) and `facts` (rules over nodes).

use ncclctl_facts::Facts;
use ncclctl_nccl::Version;
use ncclctl_nccl::doubt::Weight;
use ncclctl_plan::node::Node;
use ncclctl_plan::result::{Need, NeedKind};
use ncclctl_plan::{Request, plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Severity;
use crate::nodes;

/// How a check ended, worst last.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// Nothing told.
    Unknown,
    /// Costs speed or safety.
    Warning,
    /// NCCL will not run, or not over what is there.
    Fail,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What was looked at: `gpus`, `libnccl`, `memlock`, or the rule that speaks.
    pub name: String,
    /// How it ended.
    pub state: State,
    /// What was seen.
    pub seen: String,
    /// What that costs in NCCL; empty where nothing.
    pub costs: String,
    /// What to do, where it is no line of a container's definition.
    pub remedy: String,
    /// Options of `docker run` that mend it.
    pub docker: Vec<String>,
    /// Lines of a Compose service that mend it.
    pub compose: Vec<String>,
    /// Lines of a pod that mend it.
    pub pod: Vec<String>,
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// The container that this process is in.
    Here,
    /// A container as its engine describes it.
    Container,
    /// An image: what it holds, before anything is given to it.
    Image,
}

impl Check {
    fn new(name: &str, state: State, seen: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            state,
            seen: seen.into(),
            costs: String::new(),
            remedy: String::new(),
            docker: Vec::new(),
            compose: Vec::new(),
            pod: Vec::new(),
        }
    }

    fn costs(mut self, costs: &str) -> Self {
        costs.clone_into(&mut self.costs);
        self
    }

    fn remedy(mut self, remedy: &str) -> Self {
        remedy.clone_into(&mut self.remedy);
        self
    }
}

/// Names of needs in the list, and the rules that say the same of a node.
const NEEDS: [(NeedKind, &str, &[&str]); 7] = [
    (NeedKind::Gpus, "gpus", &[]),
    (NeedKind::SharedMemory, "shm", &["shm-too-small"]),
    (NeedKind::RdmaDevices, "rdma devices", &["ib-device-not-visible"]),
    (NeedKind::LockedMemory, "memlock", &["memlock-limit"]),
    (NeedKind::Network, "network", &[]),
    (NeedKind::Imex, "imex", &["imex-channel-missing"]),
    (NeedKind::Plugin, "plug-in", &["net-plugin-not-found", "efa-provider-missing"]),
];

/// All checks, in the order in which NCCL would stumble: library, GPUs, memory, network, settings.
pub fn check(facts: &Facts, subject: Subject, version: Option<Version>) -> Vec<Check> {
    let node = Node::from(facts);
    let made = plan(std::slice::from_ref(&node), Request { nccl: version, goal: None });
    let mut checks = vec![library(facts, version), driver(facts)];
    if subject != Subject::Image {
        checks.push(gpus(facts));
    }
    checks.push(verbs(facts, subject));
    if subject != Subject::Image {
        checks.push(numa(facts));
        checks.push(namespaces(facts));
        let needs = made.needs.iter().filter(|need| need.kind != NeedKind::Gpus);
        checks.extend(needs.map(of_need));
    }
    let failed: Vec<&str> = NEEDS
        .iter()
        .filter(|(_, name, _)| checks.iter().any(|c| c.name == *name && c.state == State::Fail))
        .flat_map(|(_, _, rules)| rules.iter().copied())
        .collect();
    let told = ["ib-userspace-missing", "driver-too-old"];
    for finding in nodes::judge(std::slice::from_ref(facts)) {
        let known =
            failed.contains(&finding.rule.as_str()) || told.contains(&finding.rule.as_str());
        // what is not given yet is no fault of an image
        if known || finding.severity < Severity::Warning || subject == Subject::Image {
            continue;
        }
        let state = match finding.severity {
            Severity::Error => State::Fail,
            _ => State::Warning,
        };
        let title = finding.message.trim_start_matches(&format!("{}: ", facts.name)).to_owned();
        checks.push(
            Check::new(&finding.rule, state, title).costs(&finding.cause).remedy(&finding.remedy),
        );
    }
    for question in made.questions.iter().filter(|q| q.weight >= Weight::Warning) {
        let known = checks.iter().any(|c| c.name == question.rule)
            || failed.contains(&question.rule.as_str())
            // that sockets are used follows from what is missing
            || (question.rule == "silent-tcp-fallback" && !failed.is_empty());
        if known {
            continue;
        }
        let state = if question.weight == Weight::Error { State::Fail } else { State::Warning };
        checks.push(
            Check::new(&question.rule, state, &question.what)
                .costs(&question.cause)
                .remedy(&question.remedy),
        );
    }
    checks
}

/// The worst state of all.
pub fn worst(checks: &[Check]) -> State {
    checks.iter().map(|c| c.state).max().unwrap_or(State::Ok)
}

fn of_need(need: &Need) -> Check {
    let name =
        NEEDS.iter().find(|(kind, ..)| *kind == need.kind).map_or("need", |(_, name, _)| name);
    let state = match need.met {
        Some(true) => State::Ok,
        // a container alone on its network still has its own ranks
        Some(false) if need.kind == NeedKind::Network => State::Warning,
        Some(false) => State::Fail,
        None => State::Unknown,
    };
    let mut check = Check::new(name, state, &need.what);
    if state != State::Ok {
        check.costs.clone_from(&need.why);
        check.docker.clone_from(&need.docker);
        check.compose.clone_from(&need.compose);
        check.pod.clone_from(&need.pod);
    }
    check
}

fn library(facts: &Facts, wanted: Option<Version>) -> Check {
    let found = &facts.software.nccl;
    match found.first() {
        None if wanted.is_some() => {
            Check::new("libnccl", State::Unknown, "none found, version given")
        }
        None => Check::new("libnccl", State::Unknown, "no libnccl.so.2 in the usual places")
            .costs("a program that has NCCL linked in is fine; any other ends with a loader error")
            .remedy("pip install torch brings it, or apt-get install libnccl2"),
        Some(first) => {
            let version = first.version.as_deref().unwrap_or("version unknown");
            let mut seen = format!("{version} at {}", first.path);
            let others = found.iter().filter(|l| l.version != first.version).count();
            if others == 0 {
                return Check::new("libnccl", State::Ok, seen);
            }
            seen.push_str(&format!(", and {others} of other versions"));
            Check::new("libnccl", State::Warning, seen)
                .costs("which one a process loads depends on its loader path: ranks may differ")
                .remedy("keep one, or name it: LD_LIBRARY_PATH, or `ncclctl bench --nccl FILE`")
        }
    }
}

/// CUDA that libraries here were built for against what the driver offers.
fn driver(facts: &Facts) -> Check {
    let wheels = facts.software.nccl.iter().filter_map(|l| l.cuda);
    let runtimes = facts.software.cuda.iter().filter_map(|l| {
        l.version
            .as_deref()
            .unwrap_or_else(|| l.path.rsplit(".so.").next().unwrap_or_default())
            .split('.')
            .next()?
            .parse()
            .ok()
    });
    let built: Option<u32> = wheels.chain(runtimes).max();
    let driver = facts.gpu.as_ref();
    let offered = driver.and_then(|d| d.cuda.as_ref()?.split('.').next()?.parse::<u32>().ok());
    let name = driver.and_then(|d| d.version.as_deref()).unwrap_or("unknown");
    match (built, offered) {
        (Some(built), Some(offered)) if built > offered => Check::new(
            "driver",
            State::Fail,
            format!("libraries for CUDA {built}, driver {name} offers CUDA {offered}"),
        )
        .costs("init fails: the CUDA driver version is insufficient for the CUDA runtime version")
        .remedy("a newer driver on the host, or an image for an older CUDA"),
        (Some(built), Some(_)) => Check::new(
            "driver",
            State::Ok,
            format!("{name}, new enough for CUDA {built} of the libraries here"),
        ),
        (None, Some(offered)) => {
            Check::new("driver", State::Ok, format!("{name}, CUDA up to {offered}"))
        }
        (Some(built), None) => Check::new(
            "driver",
            State::Unknown,
            format!("no driver to be seen; the libraries here are for CUDA {built}"),
        ),
        (None, None) => Check::new("driver", State::Unknown, "no driver to be seen"),
    }
}

fn gpus(facts: &Facts) -> Check {
    let count = facts.gpus().len();
    let lines = |check: Check| Check {
        docker: vec!["--gpus all".to_owned()],
        compose: vec![
            "deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, \
             capabilities: [gpu]}]}}}"
                .to_owned(),
        ],
        pod: vec!["resources: limits: nvidia.com/gpu: 1 (as many as ranks run here)".to_owned()],
        ..check
    };
    let source = facts.gpu.as_ref().map_or("", |g| g.source.as_str());
    let model = facts.gpus().first().map_or("", |g| g.model.as_str());
    match count {
        0 => lines(Check::new("gpus", State::Fail, "no GPU is visible").costs(
            "NCCL can not run here; `ncclctl bench --engine tcp` still measures the network",
        )),
        _ if source != "NVML" => lines(
            Check::new("gpus", State::Warning, format!("{count} x {model}, without NVML"))
                .costs("NCCL can not see NVLink: it uses PCIe or shared memory")
                .remedy("NVIDIA_DRIVER_CAPABILITIES=compute,utility"),
        ),
        _ => Check::new("gpus", State::Ok, format!("{count} x {model}")),
    }
}

/// What NCCL's verbs transport loads. It is looked for where there is something to drive, and in
/// images, which do not know yet.
fn verbs(facts: &Facts, subject: Subject) -> Check {
    let s = &facts.software;
    let present = match (&s.verbs, s.providers.is_empty()) {
        (Some(_), false) => {
            return Check::new(
                "verbs",
                State::Ok,
                format!("libibverbs with {}", few(&s.providers)),
            );
        }
        (Some(_), true) => "libibverbs without a provider",
        (None, _) => "no libibverbs",
    };
    let state = match (subject, facts.rdma.is_empty()) {
        (_, false) => State::Fail,
        (Subject::Image, true) => State::Warning,
        (_, true) => {
            return Check::new("verbs", State::Ok, format!("{present}, and no RDMA device"));
        }
    };
    Check::new("verbs", state, present)
        .costs("no RDMA even where the device is given: NCCL falls back to sockets without a message")
        .remedy("in the Dockerfile: RUN apt-get update && apt-get install -y --no-install-recommends libibverbs1 ibverbs-providers")
}

fn few(names: &[String]) -> String {
    match names {
        [] | [_] | [_, _] | [_, _, _] => names.join(", "),
        [first, second, rest @ ..] => format!("{first}, {second} and {} more", rest.len()),
    }
}

fn numa(facts: &Facts) -> Check {
    match facts.container.memory_policy {
        Some(true) => Check::new("numa policy", State::Ok, "memory may be asked of a NUMA node"),
        None => Check::new("numa policy", State::Unknown, "not known"),
        Some(false) => Check {
            docker: vec!["--cap-add SYS_NICE".to_owned()],
            compose: vec!["cap_add: [SYS_NICE]".to_owned()],
            pod: vec!["securityContext: capabilities: add: [SYS_NICE]".to_owned()],
            ..Check::new("numa policy", State::Warning, "seccomp refuses set_mempolicy").costs(
                "host buffers may be far from the GPU; NCCL releases that do not notice need \
                     NCCL_CUMEM_HOST_ENABLE=0 (`ncclctl plan` says so)",
            )
        },
    }
}

/// Ranks see each other's memory only inside of one container, or with the host's namespaces.
fn namespaces(facts: &Facts) -> Check {
    let c = &facts.container;
    if c.runtime.is_none() {
        return Check::new("namespaces", State::Ok, "those of the host");
    }
    let own = c.host.ipc != Some(true) || c.host.pid != Some(true);
    let seen = if own {
        "own ones: NCCL shares memory between the ranks of this container alone"
    } else {
        "ipc and pid of the host"
    };
    Check::new("namespaces", State::Ok, seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        serde_json::from_value(serde_json::json!({
            "name": "train",
            "gpu": {"source": "NVML", "version": "535.183.06", "cuda": "12.2", "gpus": [
                {"index": 0, "model": "NVIDIA L40S", "pci": "0000:17:00.0"},
                {"index": 1, "model": "NVIDIA L40S", "pci": "0000:31:00.0"}
            ]},
            "rdma": [{"name": "mlx5_0", "opened": "not given to this container", "ports": [
                {"number": 1, "state": "ACTIVE", "link_layer": "InfiniBand", "mbits": 200_000}
            ]}],
            "container": {"runtime": "docker", "user": 1000, "memlock": 65536, "shm": 67_108_864,
                          "memory_policy": false, "host": {"net": false}},
            "software": {"nccl": [{"path": "/x/libnccl.so.2", "version": "2.27.3", "cuda": 13}]},
            "environment": {"NCCL_IB_DISABLE": "true"}
        }))
        .unwrap()
    }

    fn said(checks: &[Check]) -> String {
        checks.iter().map(|c| format!("{:?} {}: {}\n", c.state, c.name, c.seen)).collect()
    }

    #[test]
    fn everything_that_is_missing_is_named_once() {
        let checks = check(&facts(), Subject::Container, None);
        insta::assert_snapshot!(said(&checks), @r"
        Ok libnccl: 2.27.3 at /x/libnccl.so.2
        Fail driver: libraries for CUDA 13, driver 535.183.06 offers CUDA 12
        Ok gpus: 2 x NVIDIA L40S
        Fail verbs: no libibverbs
        Warning numa policy: seccomp refuses set_mempolicy
        Ok namespaces: own ones: NCCL shares memory between the ranks of this container alone
        Fail shm: /dev/shm of 2 GiB or more
        Fail rdma devices: the RDMA device nodes
        Fail memlock: unlimited locked memory
        Warning network: a network in which ranks reach each other
        Fail env-value-misread: NCCL_IB_DISABLE=true is read as 0
        ");
        assert_eq!(worst(&checks), State::Fail);
        for c in checks.iter().filter(|c| c.state == State::Fail) {
            let lines = c.docker.len() + c.compose.len() + c.pod.len();
            assert!(lines >= 3 || !c.remedy.is_empty(), "{}: what to do", c.name);
            assert!(!c.costs.is_empty(), "{}: what it costs", c.name);
        }
    }

    #[test]
    fn an_image_is_asked_for_what_it_holds_alone() {
        let mut image = facts();
        image.gpu = None;
        image.rdma.clear();
        let checks = check(&image, Subject::Image, None);
        insta::assert_snapshot!(said(&checks), @r"
        Ok libnccl: 2.27.3 at /x/libnccl.so.2
        Unknown driver: no driver to be seen; the libraries here are for CUDA 13
        Warning verbs: no libibverbs
        Fail env-value-misread: NCCL_IB_DISABLE=true is read as 0
        ");
    }
}
