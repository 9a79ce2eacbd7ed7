//! Documents as the rules see them: settings with their places, pods (of Kubernetes and of Compose),
//! images, services and policies, joined over the whole set that was handed in.
//!
//! Readers fill it, rules only look. A thing that a document does not say is `None`, never a guess.

mod compose;
mod docker_run;
mod dockerfile;
pub mod gather;
mod kubernetes;
mod lines;
pub mod marks;
pub(crate) mod secrets;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use ncclctl_nccl::Version;
use ncclctl_nccl::doubt::{self, Ask, Doubt, NEWEST, Part, Weight, Write};

use crate::finding::{Confidence, Exhibit, Finding, Fix, Severity};
use crate::rule::Rule;

/// The whole set.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    /// Files, in the order given.
    pub files: Vec<File>,
    /// NCCL release that the user named.
    pub target: Option<Version>,
    /// Driver version that the user named, like 535.
    pub driver: Option<u32>,
    /// Whether what is only possible is wanted too.
    pub pedantic: bool,
    /// Where the jobs run, where the user named it.
    pub provider: Option<crate::policy::Provider>,
    /// Sets of settings, each in force for one process or file.
    pub blocks: Vec<Block>,
    /// Pod templates and Compose services.
    pub pods: Vec<Pod>,
    /// Dockerfiles.
    pub images: Vec<Image>,
    /// Kubernetes Services.
    pub services: Vec<Service>,
    /// Namespaces with their labels.
    pub namespaces: Vec<(String, Pairs)>,
    /// NetworkPolicies.
    pub policies: Vec<Policy>,
    /// Names of the claim templates that hand out IMEX channels.
    pub channel_templates: Vec<String>,
    /// ComputeDomains of the set.
    pub compute_domains: usize,
    /// What some reader of an env file does not take as it looks.
    pub slips: Vec<Slip>,
    /// Comments that silence a finding.
    pub marks: Vec<marks::Mark>,
    /// Where secrets stand.
    pub secrets: Vec<Spot>,
}

/// A slip in an env file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slip {
    /// Kind.
    pub kind: SlipKind,
    /// Where.
    pub at: Spot,
    /// What is written.
    pub text: String,
}

/// Kinds of slips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlipKind {
    /// `export` before the name.
    Export,
    /// Blanks around `=`.
    Blanks,
    /// Quotes around the value.
    Quotes,
    /// A comment behind the value.
    Comment,
    /// A reference that only a shell expands.
    Expansion,
}

/// One file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Path as given.
    pub name: String,
    /// Text.
    pub text: String,
    /// The text without its secrets, byte for byte as long, where it has some.
    pub shown: Option<String>,
}

/// A place: bytes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// Index into [`Documents::files`].
    pub file: usize,
    /// Bytes.
    pub span: Range<usize>,
}

/// Text where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The text, unquoted.
    pub text: String,
    /// Where it stands, quotes included.
    pub at: Spot,
}

/// Names with values, where they stand.
pub type Pairs = Vec<(Text, Text)>;

/// What kind of place a set of settings stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `ENV` of a Dockerfile.
    Image,
    /// An env file.
    EnvFile,
    /// A file in NCCL's own format.
    Conf,
    /// A shell script or batch file.
    Shell,
    /// `os.environ` of a Python program.
    Python,
    /// `environment:` of a Compose service, or the command line of a container.
    Compose,
    /// `env:` of a container.
    Pod,
    /// `-x` of a launcher's command line.
    Launcher,
    /// A ConfigMap or Secret.
    ConfigMap,
}

/// A set of settings.
#[derive(Clone, Debug)]
pub struct Block {
    /// Where it stands.
    pub origin: Origin,
    /// Index into [`Documents::files`].
    pub file: usize,
    /// Settings, in order.
    pub settings: Vec<Setting>,
    /// NCCL release that the image or a pin beside it names.
    pub version: Option<Version>,
    /// Pod and container that it belongs to.
    pub container: Option<(usize, usize)>,
}

/// One setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Name.
    pub name: Text,
    /// Value as the process gets it.
    pub value: Text,
    /// All of it, from the start of its line or item to the end, to take it out; empty where that
    /// is no plain edit.
    pub whole: Option<Spot>,
    /// It is filled from elsewhere, so that its value is not known.
    pub open: bool,
}

/// Where a pod runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// Kubernetes.
    #[default]
    Kubernetes,
    /// Docker Compose.
    Compose,
}

/// A pod template, wherever it stands, or a Compose service.
#[derive(Clone, Debug, Default)]
pub struct Pod {
    /// Platform.
    pub platform: Platform,
    /// Index into [`Documents::files`].
    pub file: usize,
    /// Kind of the object, like `MPIJob`.
    pub kind: String,
    /// Name of the object.
    pub owner: Text,
    /// Index of the object in its file, so that pods of one job are found.
    pub object: usize,
    /// Its part in the job, like `Worker`; empty where there is only one.
    pub role: String,
    /// How many of it, as far as it is said.
    pub replicas: Option<u64>,
    /// Namespace.
    pub namespace: String,
    /// Labels of the template.
    pub labels: Pairs,
    /// Annotations of the template.
    pub annotations: Pairs,
    /// Annotations and labels of the object itself.
    pub owner_marks: Pairs,
    /// Where the template's `spec` stands.
    pub at: Spot,
    /// `hostNetwork`, `network_mode`.
    pub host_network: Option<Text>,
    /// `hostIPC`, `ipc`.
    pub host_ipc: Option<Text>,
    /// `hostPID`, `pid`.
    pub host_pid: Option<Text>,
    /// `dnsPolicy`.
    pub dns_policy: Option<Text>,
    /// `subdomain`.
    pub subdomain: Option<Text>,
    /// `serviceName` of a StatefulSet.
    pub service_name: Option<Text>,
    /// `podManagementPolicy` of a StatefulSet.
    pub management: Option<Text>,
    /// `schedulerName`.
    pub scheduler: Option<Text>,
    /// Volcano's or another's least number of pods, with the place.
    pub min_available: Option<(u64, Spot)>,
    /// `automountServiceAccountToken`.
    pub automount_token: Option<Text>,
    /// `nodeSelector` and required node affinity.
    pub node_labels: Pairs,
    /// `resourceClaims`: name and template.
    pub claims: Pairs,
    /// Volumes.
    pub volumes: Vec<Volume>,
    /// Containers, init containers left out.
    pub containers: Vec<Container>,
}

/// A volume.
#[derive(Clone, Debug, Default)]
pub struct Volume {
    /// Name.
    pub name: Text,
    /// What it is.
    pub source: Source,
}

/// What a volume is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// `emptyDir` with its medium and limit.
    EmptyDir {
        /// `medium`.
        medium: Option<Text>,
        /// `sizeLimit`.
        limit: Option<Text>,
    },
    /// A path of the host.
    HostPath(Text),
    /// A ConfigMap.
    ConfigMap,
    /// Anything else.
    #[default]
    Other,
}

/// A mount.
#[derive(Clone, Debug, Default)]
pub struct Mount {
    /// Path in the container.
    pub path: Text,
    /// Volume, or path of the host for Compose.
    pub volume: String,
    /// `subPath`.
    pub sub_path: Option<Text>,
}

/// A quantity of a resource.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// Name.
    pub name: Text,
    /// Amount as written.
    pub amount: Text,
}

/// A container.
#[derive(Clone, Debug, Default)]
pub struct Container {
    /// Name.
    pub name: Text,
    /// Image.
    pub image: Option<Text>,
    /// `command` and `args`, in order.
    pub command: Vec<Text>,
    /// Index into [`Documents::blocks`].
    pub block: Option<usize>,
    /// Settings come from a source that is not in the set.
    pub foreign_env: bool,
    /// `resources.limits`.
    pub limits: Vec<Resource>,
    /// `resources.requests`.
    pub requests: Vec<Resource>,
    /// `resources.claims`.
    pub claims: Vec<Text>,
    /// Mounts.
    pub mounts: Vec<Mount>,
    /// Capabilities added.
    pub capabilities: Vec<Text>,
    /// `privileged`, where it is true.
    pub privileged: Option<Text>,
    /// User id, of the container or else of the pod.
    pub user: Option<Text>,
    /// `runAsNonRoot`, of the container or else of the pod.
    pub non_root: Option<bool>,
    /// It has a readiness probe.
    pub readiness: bool,
    /// Compose: GPUs reserved.
    pub gpus: Option<Gpus>,
    /// Compose: `shm_size`.
    pub shm_size: Option<Text>,
    /// Compose: `runtime`.
    pub runtime: Option<Text>,
    /// Compose: `devices`.
    pub devices: Vec<Text>,
    /// Compose: `ulimits.memlock`.
    pub memlock: Option<Text>,
    /// Compose: `cpuset`.
    pub cpuset: Option<Text>,
    /// Compose: `/dev/shm` is a tmpfs of its own.
    pub shm_mounted: bool,
}

/// GPUs of a Compose service.
#[derive(Clone, Debug, Default)]
pub struct Gpus {
    /// How many; `None` is all.
    pub count: Option<u64>,
    /// Capabilities asked for.
    pub capabilities: Vec<String>,
    /// Where that is said.
    pub at: Spot,
}

/// A Dockerfile.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// Index into [`Documents::files`].
    pub file: usize,
    /// Bases of the last stage and of the stages under it, the outermost first.
    pub bases: Vec<Text>,
    /// Shell text of `RUN` in the last stage and the stages under it.
    pub runs: Vec<Text>,
    /// `USER` of the last stage.
    pub user: Option<Text>,
    /// `COPY --from` and `ADD` of the last stage.
    pub copies: Vec<Text>,
    /// Index into [`Documents::blocks`].
    pub block: usize,
}

/// A Kubernetes Service.
#[derive(Clone, Debug, Default)]
pub struct Service {
    /// Name.
    pub name: Text,
    /// Namespace.
    pub namespace: String,
    /// `clusterIP`.
    pub cluster_ip: Option<Text>,
    /// `selector`.
    pub selector: Pairs,
    /// `publishNotReadyAddresses` is true.
    pub publishes_not_ready: bool,
}

/// A NetworkPolicy with an ingress part.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Name.
    pub name: Text,
    /// Namespace.
    pub namespace: String,
    /// `podSelector.matchLabels`; empty selects all.
    pub selector: Pairs,
    /// It has selectors that are not read.
    pub partly_read: bool,
    /// Rules of ingress.
    pub ingress: Vec<Ingress>,
}

/// A rule of ingress.
#[derive(Clone, Debug, Default)]
pub struct Ingress {
    /// It names ports.
    pub ports: bool,
    /// It covers the ports that NCCL uses.
    pub wide: bool,
    /// Labels that a peer must have, one set for each `from`; `None` is anybody.
    pub from: Option<Vec<Pairs>>,
}

impl File {
    /// The text that may be shown.
    pub fn shown(&self) -> &str {
        self.shown.as_ref().unwrap_or(&self.text)
    }
}

impl Text {
    /// Whether it says true.
    pub fn is_true(&self) -> bool {
        self.text == "true"
    }
}

impl Spot {
    /// Line and column from 1, columns in bytes, and the line's text.
    pub fn line<'a>(&self, text: &'a str) -> (u64, u64, &'a str) {
        let mut start = self.span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let begin = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let line = text[..start].bytes().filter(|b| *b == b'\n').count() as u64 + 1;
        (line, (start - begin) as u64 + 1, text[begin..end].trim_end_matches('\r'))
    }
}

impl Block {
    /// The last value of a setting that is known.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().rev().find(|s| s.name.text == name && !s.open)
    }

    /// A setting with one of these beginnings.
    pub fn starting(&self, starts: &[&str]) -> Option<&Setting> {
        self.settings.iter().find(|s| starts.iter().any(|p| s.name.text.starts_with(p)))
    }
}

impl Container {
    /// A resource of its limits, or else its requests.
    pub fn resource(&self, wanted: impl Fn(&str) -> bool) -> Option<&Resource> {
        self.limits.iter().chain(&self.requests).find(|r| wanted(&r.name.text))
    }

    /// GPUs that it asks for; `None` where none are, or it is not said how many.
    pub fn gpu_count(&self) -> Option<u64> {
        if let Some(gpus) = &self.gpus {
            return gpus.count;
        }
        self.resource(|n| n == "nvidia.com/gpu" || n == "nvidia.com/gpu.shared")?
            .amount
            .text
            .parse()
            .ok()
    }

    /// Where its GPUs are asked for.
    pub fn gpu_spot(&self) -> Option<&Spot> {
        if let Some(gpus) = &self.gpus {
            return Some(&gpus.at);
        }
        self.resource(|n| n == "nvidia.com/gpu" || n == "nvidia.com/gpu.shared").map(|r| &r.name.at)
    }

    /// RDMA devices that it asks for by a resource. EFA is not among them.
    pub fn rdma(&self) -> Option<&Resource> {
        self.resource(is_rdma)
    }

    /// EFA devices that it asks for.
    pub fn efa(&self) -> Option<&Resource> {
        self.resource(|n| n == "vpc.amazonaws.com/efa")
    }

    /// What it runs, in one line.
    pub fn words(&self) -> String {
        self.command.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Ranks that its command line starts, where it says so.
    pub fn ranks(&self) -> Option<u64> {
        const FLAGS: [&str; 8] = [
            "--nproc-per-node",
            "--nproc_per_node",
            "--tensor-parallel-size",
            "--tensor_parallel_size",
            "-tp",
            "--tp",
            "--tp-size",
            "--num-gpus",
        ];
        let line = self.words();
        let words: Vec<&str> =
            line.split([' ', '\n', '\t', '"', '\'', '\\']).filter(|w| !w.is_empty()).collect();
        words.iter().enumerate().find_map(|(i, word)| {
            let (flag, value) = word.split_once('=').unwrap_or((word, ""));
            if !FLAGS.contains(&flag) {
                return None;
            }
            let value = if value.is_empty() { words.get(i + 1)? } else { value };
            value.parse().ok()
        })
    }
}

/// Whether a resource hands out RDMA devices, by the names that device plugins use.
pub fn is_rdma(name: &str) -> bool {
    let Some((domain, short)) = name.split_once('/') else { return false };
    let short = short.to_ascii_lowercase();
    domain == "rdma"
        || short.contains("rdma")
        || short.contains("roce")
        || short.contains("hca")
        || (domain == "nvidia.com"
            && (short.contains("mlnx") || short.contains("sriov") || short.contains("hostdev")))
        || (domain.contains("openshift.io")
            && (short.contains("mlnx") || short.contains("mellanox") || short.contains("ib")))
        || (domain == "mellanox.com" || domain.ends_with(".mellanox.com"))
}

impl Pod {
    /// Pods of the set that belong to the same object.
    pub fn together<'a>(&self, documents: &'a Documents) -> Vec<&'a Pod> {
        documents.pods.iter().filter(|p| p.file == self.file && p.object == self.object).collect()
    }

    /// Whether its job has several pods that speak to each other.
    pub fn several(&self, documents: &Documents) -> bool {
        const JOBS: [&str; 12] = [
            "MPIJob",
            "PyTorchJob",
            "TFJob",
            "PaddleJob",
            "XGBoostJob",
            "JAXJob",
            "TrainJob",
            "TrainingRuntime",
            "ClusterTrainingRuntime",
            "LeaderWorkerSet",
            "RayCluster",
            "RayJob",
        ];
        let together = self.together(documents);
        let pods: u64 = together.iter().map(|p| p.replicas.unwrap_or(1)).sum();
        match self.kind.as_str() {
            kind if JOBS.contains(&kind) => {
                pods > 1 || together.iter().any(|p| p.replicas.is_none())
            }
            "Job" | "StatefulSet" | "JobSet" => pods > 1,
            _ => false,
        }
    }

    /// A volume by name.
    pub fn volume(&self, name: &str) -> Option<&Volume> {
        self.volumes.iter().find(|v| v.name.text == name)
    }

    /// The mount on a path, and what is behind it.
    pub fn mounted<'a>(
        &'a self,
        container: &'a Container,
        path: &str,
    ) -> Option<(&'a Mount, Option<&'a Volume>)> {
        let mount = container.mounts.iter().find(|m| m.path.text.trim_end_matches('/') == path)?;
        Some((mount, self.volume(&mount.volume)))
    }

    /// Whether it shares the host's network.
    pub fn on_host_network(&self) -> bool {
        self.host_network.as_ref().is_some_and(|t| t.is_true() || t.text == "host")
    }

    /// Whether it is a `docker run` line.
    pub fn is_command(&self) -> bool {
        self.kind == "docker run"
    }

    /// An annotation of the template.
    pub fn annotation(&self, key: &str) -> Option<&(Text, Text)> {
        self.annotations.iter().find(|(k, _)| k.text == key)
    }

    /// Name to call it by.
    pub fn title(&self) -> String {
        let role = if self.role.is_empty() { String::new() } else { format!(" {}", self.role) };
        match self.platform {
            Platform::Compose if self.is_command() => "docker run".to_owned(),
            Platform::Compose => format!("service {}", self.owner.text),
            Platform::Kubernetes => format!("{} {}{role}", self.kind, self.owner.text),
        }
    }
}

impl Documents {
    /// A place as evidence.
    pub fn exhibit(&self, at: &Spot) -> Exhibit {
        let (file, line, column, text) = match self.files.get(at.file) {
            Some(file) => {
                let (line, column, text) = at.line(file.shown());
                (file.name.clone(), line, column, text.trim().chars().take(160).collect())
            }
            None => (String::new(), 1, 1, String::new()),
        };
        Exhibit::Text { file, line, column, text }
    }

    /// Pods with their containers.
    pub fn containers(&self) -> impl Iterator<Item = (&Pod, &Container)> {
        self.pods.iter().flat_map(|p| p.containers.iter().map(move |c| (p, c)))
    }

    /// Settings of a container.
    pub fn settings(&self, container: &Container) -> Option<&Block> {
        container.block.and_then(|b| self.blocks.get(b))
    }

    /// The value of a setting of a container.
    pub fn value<'a>(&'a self, container: &Container, name: &str) -> Option<&'a Setting> {
        self.settings(container)?.get(name)
    }

    /// The release that a block is read by.
    pub fn version(&self, block: &Block) -> Option<Version> {
        block.version.or(self.target)
    }

    /// Asks the catalogue of doubts about every setting, and reports what it says under one rule.
    pub fn doubts(&self, rule: &Rule, asks: &[Ask], findings: &mut Vec<Finding>) {
        for block in &self.blocks {
            let all: Vec<(&str, &str)> = block
                .settings
                .iter()
                .filter(|s| !s.open)
                .map(|s| (s.name.text.as_str(), s.value.text.as_str()))
                .collect();
            let version = self.version(block);
            for setting in block.settings.iter().filter(|s| !s.open) {
                let asked = doubt::Setting {
                    name: &setting.name.text,
                    value: &setting.value.text,
                    version: version.unwrap_or(NEWEST),
                    version_known: version.is_some(),
                    all: &all,
                };
                let mut found = Vec::new();
                for ask in asks {
                    ask(asked, &mut found);
                }
                for doubt in found.into_iter().filter(|d| d.rule == rule.id) {
                    self.doubt(rule, setting, doubt, findings);
                }
            }
        }
    }

    fn doubt(&self, rule: &Rule, setting: &Setting, doubt: Doubt, findings: &mut Vec<Finding>) {
        let at = match &doubt.part {
            Part::Name => setting.name.at.clone(),
            Part::Value if setting.value.at.span.is_empty() => setting.name.at.clone(),
            Part::Value => setting.value.at.clone(),
            Part::In(range) => self.inside(&setting.value, range),
        };
        let severity = match doubt.weight {
            Weight::Info => Severity::Info,
            Weight::Warning => Severity::Warning,
            Weight::Error => Severity::Error,
        };
        let fix = doubt.write.and_then(|w| self.edit(setting, w));
        let sure = Confidence::Certain;
        let found = self.say(rule, sure, &at, doubt.what, doubt.cause, doubt.remedy).at(severity);
        findings.push(self.fixed(found, fix));
    }

    /// The bytes of a part of a value, where the value stands as it is written.
    fn inside(&self, value: &Text, range: &Range<usize>) -> Spot {
        let Some(file) = self.files.get(value.at.file) else { return value.at.clone() };
        let Some(written) = file.text.get(value.at.span.clone()) else { return value.at.clone() };
        match written.find(&value.text) {
            Some(offset) => {
                let start = value.at.span.start + offset;
                Spot { file: value.at.file, span: start + range.start..start + range.end }
            }
            None => value.at.clone(),
        }
    }

    /// The edit of a file that a doubt asks for.
    fn edit(&self, setting: &Setting, write: Write) -> Option<Edit> {
        match write {
            Write::Value { value, safe } => {
                // only where the value stands as it is, quoted or not
                self.replace(&setting.value.at, &setting.value.text, &value, safe)
            }
            Write::Name { name, safe } => {
                Some(Edit { at: setting.name.at.clone(), text: name, safe })
            }
            Write::Remove { safe } => {
                Some(Edit { at: setting.whole.clone()?, text: String::new(), safe })
            }
        }
    }

    /// A finding about a place.
    pub fn say(
        &self,
        rule: &Rule,
        confidence: Confidence,
        at: &Spot,
        message: impl Into<String>,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        rule.found(confidence, message, cause, remedy, vec![self.exhibit(at)])
    }

    /// A finding with its edit.
    pub fn fixed(&self, mut finding: Finding, edit: Option<Edit>) -> Finding {
        finding.fix = edit.and_then(|edit| {
            let file = self.files.get(edit.at.file)?;
            let Range { start, end } = edit.at.span;
            Some(Fix { file: file.name.clone(), start, end, text: edit.text, safe: edit.safe })
        });
        finding
    }

    /// The edit that writes something else for a text, where it stands as it is, quoted or not.
    pub fn replace(&self, at: &Spot, old: &str, new: &str, safe: bool) -> Option<Edit> {
        let written = self.files.get(at.file)?.text.get(at.span.clone())?;
        let start = at.span.start + written.find(old)?;
        let span = start..start + old.len();
        Some(Edit { at: Spot { file: at.file, span }, text: new.to_owned(), safe })
    }

    /// The edit that writes a line of the same depth under the one of a plain block mapping.
    pub fn insert_beside(&self, at: &Spot, line: &str) -> Option<Edit> {
        let text = &self.files.get(at.file)?.text;
        let (_, _, whole) = at.line(text);
        let indent: String = whole.chars().take_while(|c| *c == ' ').collect();
        let rest = whole.get(indent.len()..)?;
        // in a flow mapping or behind a dash there is no such line
        if rest.starts_with(['-', '{', '"']) || whole.contains('{') {
            return None;
        }
        let end = at.span.start + text.get(at.span.start..)?.find('\n')?;
        let span = end..end;
        Some(Edit {
            at: Spot { file: at.file, span },
            text: format!("\n{indent}{line}"),
            safe: true,
        })
    }
}

/// An edit of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What goes.
    pub at: Spot,
    /// What comes.
    pub text: String,
    /// Nothing but what was plainly meant changes.
    pub safe: bool,
}

fn same_line(a: &Exhibit, b: &Exhibit) -> bool {
    match (a, b) {
        (Exhibit::Text { file: f, line: l, .. }, Exhibit::Text { file: g, line: m, .. }) => {
            f == g && l == m
        }
        _ => false,
    }
}

/// NCCL that a release of PyTorch from PyPI asks for. Source: `requires_dist` of each release.
fn torch_nccl(torch: &str) -> Option<Version> {
    let mut parts = torch.split('.');
    let (major, minor): (u32, u32) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(match (major, minor) {
        (2, 0) => Version::new(2, 14, 3),
        (2, 1) => Version::new(2, 18, 1),
        (2, 2) => Version::new(2, 19, 3),
        (2, 3 | 4) => Version::new(2, 20, 5),
        (2, 5 | 6) => Version::new(2, 21, 5),
        (2, 7) => Version::new(2, 26, 2),
        (2, 8) => Version::new(2, 27, 3),
        (2, 9) => Version::new(2, 27, 5),
        _ => return None,
    })
}

/// NCCL's release in an image whose tag names it: `nccl-tests:2.25.1`, `…-nccl2.21.5-1`.
fn image_version(image: &str) -> Option<Version> {
    if let Some(tag) = image.strip_prefix("pytorch/pytorch:") {
        return torch_nccl(tag.split('-').next()?);
    }
    let at = image.rfind("nccl")?;
    let rest = &image[at..];
    let start = rest.find("2.")?;
    // a date or a CUDA release is none
    let between = &rest["nccl".len()..start];
    if !matches!(
        between,
        "" | ":" | "-" | "_" | "-tests:" | "_tests:" | "tests:" | ":v" | "-v" | "-tests:v"
    ) {
        return None;
    }
    let rest = &rest[start..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let version: Version = rest[..end].trim_end_matches('.').parse().ok()?;
    (version.minor >= 3 && version.minor < 100).then_some(version)
}

/// Every rule over a set, each statement once, in the order of the files.
pub fn check(set: &Documents) -> Vec<Finding> {
    let mut findings = Vec::new();
    for look in crate::rules::RULES.iter().filter_map(|rule| rule.documents) {
        look(set, &mut findings);
    }
    let mut said = HashSet::new();
    let mut once = findings;
    once.retain(|f| {
        let place = match f.evidence.first() {
            Some(Exhibit::Text { file, line, column, .. }) => (file.clone(), *line, *column),
            _ => (String::new(), 0, 0),
        };
        said.insert((f.rule.clone(), place, f.message.clone()))
    });
    // a line that is not read as it looks: what would be said of its parts follows from that
    let misread: Vec<Exhibit> = once
        .iter()
        .filter(|f| f.rule == "env-file-syntax" && f.severity == Severity::Error)
        .filter_map(|f| f.evidence.first().cloned())
        .collect();
    once.retain(|f| {
        let follows = matches!(f.rule.as_str(), "env-value-misread" | "env-unknown-name");
        !follows || !f.evidence.first().is_some_and(|e| misread.iter().any(|m| same_line(m, e)))
    });
    in_order(set, &mut once);
    secrets::out_of(set, &mut once);
    once
}

/// Puts findings in the order of their places.
pub(crate) fn in_order(set: &Documents, findings: &mut [Finding]) {
    let order: HashMap<&str, usize> =
        set.files.iter().enumerate().rev().map(|(i, f)| (f.name.as_str(), i)).collect();
    findings.sort_by_key(|f| match f.evidence.first() {
        Some(Exhibit::Text { file, line, column, .. }) => {
            (order.get(file.as_str()).copied().unwrap_or(usize::MAX), *line, *column)
        }
        _ => (usize::MAX, 0, 0),
    });
}
