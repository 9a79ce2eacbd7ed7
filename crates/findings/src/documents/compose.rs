//! Compose files: a service is a pod of one container.

use ncclctl_artefacts::tree::{Node, What};

use super::gather::Gather;
use super::{Container, Gpus, Mount, Origin, Platform, Pod, Setting, Text, image_version};

pub(super) fn take(gather: &mut Gather, file: usize, document: &Node) {
    let Some(services) = document.get("services") else { return };
    let object = gather.next_object();
    for (name, service) in services.pairs() {
        if name.text().is_none() || !matches!(service.what, What::Map(_)) {
            continue;
        }
        // what it extends within the same file stands under its own keys
        let base = service
            .at(&["extends", "service"])
            .or_else(|| service.get("extends").filter(|e| e.text().is_some()))
            .filter(|_| service.at(&["extends", "file"]).is_none())
            .and_then(Node::text)
            .and_then(|base| services.get(base));
        take_service(gather, file, object, name, service, base);
    }
}

fn take_service(
    gather: &mut Gather,
    file: usize,
    object: usize,
    name: &Node,
    service: &Node,
    base: Option<&Node>,
) {
    let get = |key: &str| service.get(key).or_else(|| base.and_then(|b| b.get(key)));
    let text = |key: &str| {
        get(key).filter(|n| n.text().is_some() && !n.is_null()).map(|n| gather.text(file, n))
    };
    let list = |key: &str| -> Vec<Text> {
        let Some(node) = get(key) else { return Vec::new() };
        match &node.what {
            What::Scalar { .. } => vec![gather.text(file, node)],
            _ => node
                .items()
                .iter()
                .filter(|i| i.text().is_some())
                .map(|i| gather.text(file, i))
                .collect(),
        }
    };
    let mut command = list("entrypoint");
    command.extend(list("command"));
    let mounts: Vec<Mount> = get("volumes")
        .map(Node::items)
        .unwrap_or_default()
        .iter()
        .map(|v| match v.text() {
            Some(short) => {
                let mut parts = short.split(':');
                let (source, target) = (parts.next().unwrap_or_default(), parts.next());
                Mount {
                    path: Text {
                        text: target.unwrap_or(source).to_owned(),
                        at: gather.spot(file, v),
                    },
                    volume: source.to_owned(),
                    sub_path: None,
                }
            }
            None => Mount {
                path: v.get("target").map_or_else(Text::default, |n| gather.text(file, n)),
                volume: v.get("source").and_then(Node::text).unwrap_or_default().to_owned(),
                sub_path: None,
            },
        })
        .collect();
    let on_shm = |text: &str| text.split(':').next() == Some("/dev/shm");
    let shm_mounted = list("tmpfs").iter().any(|t| on_shm(&t.text))
        || mounts.iter().any(|m| m.path.text == "/dev/shm");
    let title = gather.text(file, name);
    let mut container = Container {
        name: title.clone(),
        image: text("image"),
        command,
        mounts,
        capabilities: list("cap_add"),
        privileged: text("privileged").filter(Text::is_true),
        user: text("user"),
        gpus: gpus(gather, file, service).or_else(|| base.and_then(|b| gpus(gather, file, b))),
        shm_size: text("shm_size"),
        runtime: text("runtime"),
        devices: list("devices"),
        memlock: get("ulimits").and_then(|u| u.get("memlock")).map(|m| {
            let limit = m.get("hard").unwrap_or(m);
            gather.text(file, limit)
        }),
        cpuset: text("cpuset"),
        shm_mounted,
        ..Container::default()
    };
    let mut settings = Vec::new();
    for path in list("env_file") {
        let wanted = path.text.trim_start_matches("./");
        let found = gather
            .env_files
            .iter()
            .find(|(name, _)| name == wanted || name.ends_with(&format!("/{wanted}")));
        match found {
            Some((_, own)) => settings.extend(own.clone()),
            None => container.foreign_env = true,
        }
    }
    for node in
        [base.and_then(|b| b.get("environment")), service.get("environment")].into_iter().flatten()
    {
        let own = environment(gather, file, node);
        settings.retain(|s: &Setting| !own.iter().any(|o| o.name.text == s.name.text));
        settings.extend(own);
    }
    let (host_network, host_ipc, host_pid) = (text("network_mode"), text("ipc"), text("pid"));
    let index = gather.set.pods.len();
    if !settings.is_empty() {
        let version = container.image.as_ref().and_then(|i| image_version(&i.text));
        container.block =
            Some(gather.block(Origin::Compose, file, settings, version, Some((index, 0))));
    }
    gather.launcher(file, &container.command, (index, 0));
    let pod = Pod {
        platform: Platform::Compose,
        file,
        kind: "service".to_owned(),
        owner: title,
        object,
        host_network,
        host_ipc,
        host_pid,
        at: gather.spot(file, name),
        containers: vec![container],
        ..Pod::default()
    };
    gather.set.pods.push(pod);
}

fn environment(gather: &Gather, file: usize, node: &Node) -> Vec<Setting> {
    let mut out = Vec::new();
    match &node.what {
        What::Map(_) => {
            for (key, value) in node.pairs() {
                if key.text().is_none() || value.text().is_none() {
                    continue;
                }
                let value_text = gather.text(file, value);
                out.push(Setting {
                    name: gather.text(file, key),
                    // no value: taken from the shell
                    open: value.is_null() || value_text.text.contains('$'),
                    value: value_text,
                    whole: gather.item(file, key),
                });
            }
        }
        What::List(items) => {
            for item in items {
                let Some(line) = item.text() else { continue };
                let at = gather.spot(file, item);
                let Some((name, value)) = line.split_once('=') else { continue };
                // a plain scalar stands as it is; a quoted one begins behind its quote
                let written = gather.set.files.get(file).and_then(|f| f.text.get(at.span.clone()));
                let start =
                    written.and_then(|w| w.find(line)).map_or(at.span.start, |i| at.span.start + i);
                let spot =
                    |from: usize, to: usize| super::Spot { file, span: start + from..start + to };
                out.push(Setting {
                    name: Text { text: name.to_owned(), at: spot(0, name.len()) },
                    value: Text { text: value.to_owned(), at: spot(name.len() + 1, line.len()) },
                    whole: gather.item(file, item),
                    open: value.contains('$'),
                });
            }
        }
        What::Scalar { .. } => {}
    }
    out
}

fn gpus(gather: &Gather, file: usize, service: &Node) -> Option<Gpus> {
    if let Some(node) = service.get("gpus") {
        let at = gather.spot(file, node);
        if node.text() == Some("all") {
            return Some(Gpus { count: None, capabilities: Vec::new(), at });
        }
        let first = node.items().first()?;
        return Some(device(gather, file, first, at));
    }
    let devices = service.at(&["deploy", "resources", "reservations", "devices"])?;
    let device_node = devices.items().iter().find(|d| {
        d.get("driver").and_then(Node::text) == Some("nvidia")
            || d.get("capabilities")
                .is_some_and(|c| c.items().iter().any(|i| i.text() == Some("gpu")))
    })?;
    let place =
        device_node.get("count").or_else(|| device_node.get("device_ids")).unwrap_or(device_node);
    Some(device(gather, file, device_node, gather.spot(file, place)))
}

fn device(gather: &Gather, _file: usize, node: &Node, at: super::Spot) -> Gpus {
    let _ = gather;
    let count = node.get("count").and_then(Node::text).and_then(|c| c.parse().ok());
    let ids = node.get("device_ids").map(|ids| ids.items().len() as u64);
    let capabilities = node.get("capabilities").map(Node::items).unwrap_or_default();
    Gpus {
        count: count.or(ids),
        capabilities: capabilities.iter().filter_map(Node::text).map(str::to_owned).collect(),
        at,
    }
}
