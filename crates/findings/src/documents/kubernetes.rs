//! Kubernetes objects: every pod template, wherever it stands, with what its object says about it.

use ncclctl_artefacts::tree::{Node, What};

use super::gather::Gather;
use super::{
    Container, Ingress, Mount, Origin, Pairs, Platform, Pod, Policy, Resource, Service, Setting,
    Source, Text, Volume, image_version,
};

/// Containers that other containers' settings come from: `envFrom` of a ConfigMap or Secret.
#[derive(Clone, Debug)]
pub(super) struct Bag {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) settings: Vec<Setting>,
}

/// What the object says for the pods under it.
#[derive(Clone, Default)]
struct Around {
    kind: String,
    owner: Text,
    namespace: String,
    marks: Pairs,
    role: String,
    replicas: Option<u64>,
    service_name: Option<Text>,
    management: Option<Text>,
    min_available: Option<(u64, super::Spot)>,
    scheduler: Option<Text>,
}

/// Takes one document.
pub(super) fn take(gather: &mut Gather, file: usize, document: &Node) {
    let Some(kind) = document.get("kind").and_then(Node::text) else { return };
    if kind == "List" || kind.ends_with("List") {
        if let Some(items) = document.get("items") {
            for item in items.items() {
                take(gather, file, item);
            }
        }
        return;
    }
    let metadata = document.get("metadata");
    let owner = metadata
        .and_then(|m| m.get("name").or_else(|| m.get("generateName")))
        .map_or_else(Text::default, |n| gather.text(file, n));
    let namespace = metadata
        .and_then(|m| m.get("namespace"))
        .and_then(Node::text)
        .unwrap_or("default")
        .to_owned();
    match kind {
        "Namespace" => {
            let labels = pairs(gather, file, metadata.and_then(|m| m.get("labels")));
            let annotations = pairs(gather, file, metadata.and_then(|m| m.get("annotations")));
            let all = labels.into_iter().chain(annotations).collect();
            gather.set.namespaces.push((owner.text, all));
        }
        "Service" => service(gather, file, document, owner, namespace),
        "NetworkPolicy" => policy(gather, file, document, owner, namespace),
        "ConfigMap" | "Secret" => bag(gather, file, document, &owner, &namespace),
        "ComputeDomain" => {
            gather.set.compute_domains += 1;
            let template = document
                .at(&["spec", "channel", "resourceClaimTemplate", "name"])
                .and_then(Node::text);
            gather.set.channel_templates.extend(template.map(str::to_owned));
        }
        "ResourceClaimTemplate" | "ResourceClaim" => {
            let text = format!("{document:?}");
            if text.contains("compute-domain") || text.contains("imex") {
                gather.set.channel_templates.push(owner.text);
            }
        }
        _ => {
            let mut marks = pairs(gather, file, metadata.and_then(|m| m.get("annotations")));
            marks.extend(pairs(gather, file, metadata.and_then(|m| m.get("labels"))));
            let spec = document.get("spec");
            let around = Around {
                kind: kind.to_owned(),
                owner,
                namespace,
                marks,
                role: String::new(),
                replicas: replicas(kind, spec),
                service_name: text_at(gather, file, spec, &["serviceName"]),
                management: text_at(gather, file, spec, &["podManagementPolicy"]),
                min_available: spec
                    .and_then(|s| s.get("minAvailable"))
                    .and_then(|n| Some((n.text()?.parse().ok()?, gather.spot(file, n)))),
                scheduler: text_at(gather, file, spec, &["schedulerName"]),
            };
            let object = gather.next_object();
            if kind == "Pod" || kind == "PodTemplate" {
                let template =
                    if kind == "Pod" { Some(document) } else { document.get("template") };
                if let Some(template) = template {
                    pod(gather, file, object, template, &around);
                }
            } else if let Some(spec) = spec {
                walk(gather, file, object, spec, &around, 0);
            } else {
                walk(gather, file, object, document, &around, 0);
            }
        }
    }
}

fn number(node: Option<&Node>) -> Option<u64> {
    node?.text()?.parse().ok()
}

fn replicas(kind: &str, spec: Option<&Node>) -> Option<u64> {
    let spec = spec?;
    match kind {
        "Job" => {
            let parallel = number(spec.get("parallelism"));
            let completions = number(spec.get("completions"));
            Some(parallel.or(completions).unwrap_or(1))
        }
        "LeaderWorkerSet" => number(spec.at(&["leaderWorkerTemplate", "size"])),
        "TrainJob" => number(spec.at(&["trainer", "numNodes"])),
        "CronJob" => replicas("Job", spec.at(&["jobTemplate", "spec"])),
        _ => number(spec.get("replicas")),
    }
}

/// Looks for pod templates: mappings with `containers` in their `spec`.
fn walk(
    gather: &mut Gather,
    file: usize,
    object: usize,
    node: &Node,
    around: &Around,
    depth: usize,
) {
    if depth > 24 {
        return;
    }
    match &node.what {
        What::List(items) => {
            for item in items {
                let mut inner = around.clone();
                let role = item.get("name").or_else(|| item.get("groupName"));
                if let Some(role) = role.and_then(Node::text) {
                    inner.role = role.to_owned();
                }
                let count = number(item.get("replicas")).or_else(|| number(item.get("numNodes")));
                if let Some(count) = count {
                    inner.replicas = Some(count);
                }
                walk(gather, file, object, item, &inner, depth + 1);
            }
        }
        What::Map(pairs) => {
            let spec = node.get("spec").filter(|s| s.get("containers").is_some());
            if spec.is_some() {
                pod(gather, file, object, node, around);
                return;
            }
            // a pod's spec that stands without its template
            if node.get("containers").is_some_and(|c| {
                c.items().iter().any(|i| i.get("image").is_some() || i.get("resources").is_some())
            }) {
                pod(gather, file, object, node, around);
                return;
            }
            for (key, value) in pairs {
                let Some(key) = key.text() else { continue };
                let mut inner = around.clone();
                if !matches!(value.what, What::Scalar { .. }) {
                    let count = number(value.get("replicas"))
                        .or_else(|| number(value.get("numNodes")))
                        .or_else(|| number(value.get("parallelism")));
                    if let Some(count) = count {
                        // JobSet: replicas of a job times its pods
                        let jobs = match key {
                            "spec" => around.replicas.unwrap_or(1),
                            _ => 1,
                        };
                        let nested = value.get("parallelism").is_some() && around.kind == "JobSet";
                        inner.replicas =
                            Some(if nested { count.saturating_mul(jobs) } else { count });
                    }
                    let roles = ["mpiReplicaSpecs", "pytorchReplicaSpecs", "tfReplicaSpecs"];
                    if key.starts_with(|c: char| c.is_ascii_uppercase())
                        && around.kind.ends_with("Job")
                        && !roles.contains(&key)
                    {
                        inner.role = key.to_owned();
                        inner.replicas = inner.replicas.or(Some(1));
                    }
                    match key {
                        "leaderTemplate" => {
                            inner.role = "leader".to_owned();
                            inner.replicas = Some(1);
                        }
                        "workerTemplate" => {
                            inner.role = "worker".to_owned();
                            inner.replicas = around.replicas.map(|n| n.saturating_sub(1).max(1));
                        }
                        "headGroupSpec" => {
                            inner.role = "head".to_owned();
                            inner.replicas = Some(1);
                        }
                        _ => {}
                    }
                }
                walk(gather, file, object, value, &inner, depth + 1);
            }
        }
        What::Scalar { .. } => {}
    }
}

fn text_at(gather: &Gather, file: usize, node: Option<&Node>, path: &[&str]) -> Option<Text> {
    let node = node?.at(path)?;
    node.text()?;
    (!node.is_null()).then(|| gather.text(file, node))
}

fn pairs(gather: &Gather, file: usize, node: Option<&Node>) -> Pairs {
    let Some(node) = node else { return Vec::new() };
    node.pairs()
        .into_iter()
        .filter(|(k, v)| k.text().is_some() && v.text().is_some())
        .map(|(k, v)| (gather.text(file, k), gather.text(file, v)))
        .collect()
}

fn pod(gather: &mut Gather, file: usize, object: usize, template: &Node, around: &Around) {
    let spec = template.get("spec").unwrap_or(template);
    let metadata = template.get("metadata").filter(|_| template.get("spec").is_some());
    let flag = |key: &str| text_at(gather, file, Some(spec), &[key]);
    let mut node_labels = pairs(gather, file, spec.get("nodeSelector"));
    node_labels.extend(affinity(gather, file, spec));
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    let claims = spec.get("resourceClaims").map(Node::items).unwrap_or_default();
    let mut out = Pod {
        platform: Platform::Kubernetes,
        file,
        kind: around.kind.clone(),
        owner: around.owner.clone(),
        object,
        role: around.role.clone(),
        replicas: around.replicas,
        namespace: around.namespace.clone(),
        labels: pairs(gather, file, metadata.and_then(|m| m.get("labels"))),
        annotations: pairs(gather, file, metadata.and_then(|m| m.get("annotations"))),
        owner_marks: if around.kind == "Pod" { Vec::new() } else { around.marks.clone() },
        at: template
            .entry("spec")
            .map_or_else(|| gather.spot(file, spec), |(key, _)| gather.spot(file, key)),
        host_network: flag("hostNetwork"),
        host_ipc: flag("hostIPC"),
        host_pid: flag("hostPID"),
        dns_policy: flag("dnsPolicy"),
        subdomain: flag("subdomain"),
        service_name: around.service_name.clone(),
        management: around.management.clone(),
        scheduler: flag("schedulerName").or_else(|| around.scheduler.clone()),
        min_available: around.min_available.clone(),
        automount_token: flag("automountServiceAccountToken"),
        node_labels,
        claims: claims
            .iter()
            .map(|c| {
                let name = c.get("name").map_or_else(Text::default, |n| gather.text(file, n));
                let template = c
                    .get("resourceClaimTemplateName")
                    .or_else(|| c.get("resourceClaimName"))
                    .map_or_else(Text::default, |n| gather.text(file, n));
                (name, template)
            })
            .collect(),
        volumes: volumes.iter().map(|v| volume(gather, file, v)).collect(),
        containers: Vec::new(),
    };
    let index = gather.set.pods.len();
    let containers = spec.get("containers").map(Node::items).unwrap_or_default();
    for (at, node) in containers.iter().enumerate() {
        let container = container(gather, file, spec, node, &out, (index, at));
        out.containers.push(container);
    }
    gather.set.pods.push(out);
}

/// Labels that required node affinity asks for by `In`.
fn affinity(gather: &Gather, file: usize, spec: &Node) -> Pairs {
    let terms = spec.at(&[
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    ]);
    let mut out = Vec::new();
    for term in terms.map(Node::items).unwrap_or_default() {
        for expression in term.get("matchExpressions").map(Node::items).unwrap_or_default() {
            let values = expression.get("values").map(Node::items).unwrap_or_default();
            let is_in = expression.get("operator").and_then(Node::text) == Some("In");
            if let (Some(key), [value], true) = (expression.get("key"), values, is_in) {
                out.push((gather.text(file, key), gather.text(file, value)));
            }
        }
    }
    out
}

fn volume(gather: &Gather, file: usize, node: &Node) -> Volume {
    let name = node.get("name").map_or_else(Text::default, |n| gather.text(file, n));
    let source = if let Some(empty) = node.get("emptyDir") {
        Source::EmptyDir {
            medium: text_at(gather, file, Some(empty), &["medium"]).filter(|m| !m.text.is_empty()),
            limit: text_at(gather, file, Some(empty), &["sizeLimit"]),
        }
    } else if let Some(path) = text_at(gather, file, Some(node), &["hostPath", "path"]) {
        Source::HostPath(path)
    } else if node.get("configMap").is_some() {
        Source::ConfigMap
    } else {
        Source::Other
    };
    Volume { name, source }
}

fn resources(gather: &Gather, file: usize, node: Option<&Node>) -> Vec<Resource> {
    pairs(gather, file, node)
        .into_iter()
        // a request of nothing is none
        .filter(|(_, amount)| amount.text != "0")
        .map(|(name, amount)| Resource { name, amount })
        .collect()
}

fn container(
    gather: &mut Gather,
    file: usize,
    spec: &Node,
    node: &Node,
    pod: &Pod,
    index: (usize, usize),
) -> Container {
    let list = |path: &[&str]| -> Vec<Text> {
        let items = node.at(path).map(Node::items).unwrap_or_default();
        items.iter().filter(|i| i.text().is_some()).map(|i| gather.text(file, i)).collect()
    };
    let mut command = list(&["command"]);
    command.extend(list(&["args"]));
    let own = node.get("securityContext");
    let pods = spec.get("securityContext");
    let security = |key: &str| {
        text_at(gather, file, own, &[key]).or_else(|| text_at(gather, file, pods, &[key]))
    };
    let mounts = node.get("volumeMounts").map(Node::items).unwrap_or_default();
    let mut out = Container {
        name: node.get("name").map_or_else(|| pod.owner.clone(), |n| gather.text(file, n)),
        image: text_at(gather, file, Some(node), &["image"]),
        command,
        limits: resources(gather, file, node.at(&["resources", "limits"])),
        requests: resources(gather, file, node.at(&["resources", "requests"])),
        claims: node
            .at(&["resources", "claims"])
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .filter_map(|c| c.get("name"))
            .map(|n| gather.text(file, n))
            .collect(),
        mounts: mounts
            .iter()
            .map(|m| Mount {
                path: m.get("mountPath").map_or_else(Text::default, |n| gather.text(file, n)),
                volume: m.get("name").and_then(Node::text).unwrap_or_default().to_owned(),
                sub_path: text_at(gather, file, Some(m), &["subPath"]),
            })
            .collect(),
        capabilities: list(&["securityContext", "capabilities", "add"]),
        privileged: text_at(gather, file, own, &["privileged"]).filter(Text::is_true),
        user: security("runAsUser"),
        non_root: security("runAsNonRoot").map(|t| t.is_true()),
        readiness: node.get("readinessProbe").is_some(),
        ..Container::default()
    };
    let mut settings = Vec::new();
    for from in node.get("envFrom").map(Node::items).unwrap_or_default() {
        let name = from
            .at(&["configMapRef", "name"])
            .or_else(|| from.at(&["secretRef", "name"]))
            .and_then(Node::text);
        match name.and_then(|n| gather.bag(n, &pod.namespace)) {
            Some(bag) => settings.extend(bag.settings.clone()),
            None => out.foreign_env = true,
        }
    }
    for item in node.get("env").map(Node::items).unwrap_or_default() {
        let Some(name) = item.get("name") else { continue };
        let mut setting = Setting {
            name: gather.text(file, name),
            whole: gather.item(file, item),
            ..Setting::default()
        };
        match item.get("value") {
            Some(value) if value.text().is_some() => setting.value = gather.text(file, value),
            Some(_) => setting.open = true,
            None if item.get("valueFrom").is_some() => setting.open = true,
            None => setting.value.at = setting.name.at.clone(),
        }
        settings.push(setting);
    }
    if !settings.is_empty() {
        let version = out.image.as_ref().and_then(|i| image_version(&i.text));
        out.block = Some(gather.block(Origin::Pod, file, settings, version, Some(index)));
    }
    gather.launcher(file, &out.command, index);
    out
}

fn service(gather: &mut Gather, file: usize, document: &Node, name: Text, namespace: String) {
    let spec = document.get("spec");
    let service = Service {
        name,
        namespace,
        cluster_ip: text_at(gather, file, spec, &["clusterIP"]),
        selector: pairs(gather, file, spec.and_then(|s| s.get("selector"))),
        publishes_not_ready: text_at(gather, file, spec, &["publishNotReadyAddresses"])
            .is_some_and(|t| t.is_true()),
    };
    gather.set.services.push(service);
}

fn policy(gather: &mut Gather, file: usize, document: &Node, name: Text, namespace: String) {
    let Some(spec) = document.get("spec") else { return };
    let types = spec.get("policyTypes").map(Node::items).unwrap_or_default();
    if !types.is_empty() && !types.iter().any(|t| t.text() == Some("Ingress")) {
        return;
    }
    let selector = spec.get("podSelector");
    let rules = spec.get("ingress").map(Node::items).unwrap_or_default();
    let ingress = rules
        .iter()
        .map(|rule| {
            let ports = rule.get("ports").map(Node::items).unwrap_or_default();
            let from = rule.get("from").map(Node::items).unwrap_or_default();
            let from: Vec<Pairs> = from
                .iter()
                .filter_map(|peer| peer.get("podSelector"))
                .map(|s| pairs(gather, file, s.get("matchLabels")))
                .collect();
            Ingress {
                ports: !ports.is_empty(),
                wide: ports.iter().any(|p| {
                    // no port at all is every port; an end port far up covers the ephemeral ones
                    p.get("port").is_none()
                        || number(p.get("endPort")).is_some_and(|e| e >= 60_999)
                            && number(p.get("port")).is_some_and(|p| p <= 32_768)
                }),
                from: rule.get("from").map(|_| from),
            }
        })
        .collect();
    let partly_read = selector.and_then(|s| s.get("matchExpressions")).is_some()
        || rules.iter().any(|r| {
            r.get("from").map(Node::items).unwrap_or_default().iter().any(|p| {
                p.get("podSelector").is_none()
                    || p.at(&["podSelector", "matchExpressions"]).is_some()
            })
        });
    let policy = Policy {
        name,
        namespace,
        selector: pairs(gather, file, selector.and_then(|s| s.get("matchLabels"))),
        partly_read,
        ingress,
    };
    gather.set.policies.push(policy);
}

/// A ConfigMap or Secret: settings as keys, or a file in NCCL's format as a value.
fn bag(gather: &mut Gather, file: usize, document: &Node, owner: &Text, namespace: &str) {
    let mut settings = Vec::new();
    for part in ["data", "stringData"] {
        let secret = document.get("kind").and_then(Node::text) == Some("Secret");
        // values of a Secret's `data` are base64
        if part == "data" && secret {
            continue;
        }
        for (key, value) in document.get(part).map(Node::pairs).unwrap_or_default() {
            let (Some(name), Some(text)) = (key.text(), value.text()) else { continue };
            if name.ends_with(".conf") && text.contains("NCCL_") {
                gather.embedded_conf(file, value);
            } else if (name.ends_with(".env") || name.ends_with(".sh")) && text.contains("NCCL_") {
                gather.embedded_shell(file, value);
            } else {
                if secret && (!name.starts_with("NCCL_") || name == "NCCL_PSK") {
                    gather.of_secrets.push(gather.spot(file, value));
                }
                settings.push(Setting {
                    name: gather.text(file, key),
                    value: gather.text(file, value),
                    whole: gather.item(file, key),
                    open: false,
                });
            }
        }
    }
    let ours = settings.iter().any(|s| s.name.text.starts_with("NCCL_"));
    if ours {
        gather.block(Origin::ConfigMap, file, settings.clone(), None, None);
    }
    gather.bags.push(Bag { name: owner.text.clone(), namespace: namespace.to_owned(), settings });
}
