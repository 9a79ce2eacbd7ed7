//! `nvidia-smi` in its forms, and `lspci -vvv` as far as access control goes.

use super::Node;
use crate::gpu::{Driver, Gpu};
use crate::pci::{PciDevice, Role};
use crate::topology::Path;

fn driver(node: &mut Node) -> &mut Driver {
    node.facts
        .gpu
        .get_or_insert_with(|| Driver { source: "nvidia-smi".to_owned(), ..Driver::default() })
}

fn gpu(node: &mut Node, index: u32) -> &mut Gpu {
    let driver = driver(node);
    let at = driver.gpus.iter().position(|g| g.index == index).unwrap_or_else(|| {
        driver.gpus.push(Gpu { index, model: "NVIDIA GPU".to_owned(), ..Gpu::default() });
        driver.gpus.len() - 1
    });
    &mut driver.gpus[at]
}

/// The table of `nvidia-smi topo -m`: a head of names, then a row each.
pub(super) fn topology(node: &mut Node, line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some(first) = words.first() else { return false };
    let device = |w: &str| {
        ["GPU", "NIC", "mlx5_", "mlx4_", "bnxt_", "rdmap"].iter().any(|p| w.starts_with(p))
            && w.ends_with(|c: char| c.is_ascii_digit())
    };
    // rows begin with a name too: the head is where the second word is one as well
    if first.starts_with("GPU") && device(first) && words.get(1).is_some_and(|w| device(w)) {
        node.columns = words.iter().take_while(|w| device(w)).map(|w| (*w).to_owned()).collect();
        node.rows.clear();
        return true;
    }
    if node.columns.is_empty() || !device(first) || words.len() <= node.columns.len() {
        // `NIC0: mlx5_0` in the legend
        if let (Some((nic, "")), Some(name)) = (first.split_once(':'), words.get(1))
            && nic.starts_with("NIC")
        {
            for entry in node.columns.iter_mut().chain(node.rows.iter_mut().map(|(n, _)| n)) {
                if entry == nic {
                    (*name).clone_into(entry);
                }
            }
            return true;
        }
        return false;
    }
    let cells = words[1..=node.columns.len()].iter().map(|w| (*w).to_owned()).collect();
    node.rows.push(((*first).to_owned(), cells));
    true
}

/// `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-…)` and its `MIG 1g.5gb Device 0: (UUID: …)`.
pub(super) fn list(node: &mut Node, line: &str) -> bool {
    let text = line.trim();
    if let Some((number, rest)) = text.strip_prefix("GPU ").and_then(|r| r.split_once(": "))
        && let Ok(index) = number.parse()
    {
        let (model, uuid) = rest.split_once(" (UUID: ").unwrap_or((rest, ""));
        let at = gpu(node, index);
        model.clone_into(&mut at.model);
        let uuid = uuid.trim_end_matches(')');
        at.uuid = (!uuid.is_empty()).then(|| uuid.to_owned());
        return true;
    }
    if text.starts_with("MIG ") && text.contains("Device") {
        let Some(last) = driver(node).gpus.last_mut() else { return false };
        last.mig = Some(last.mig.unwrap_or(0) + 1);
        return true;
    }
    false
}

/// Fields of `nvidia-smi -q` that decide something.
pub(super) fn query(node: &mut Node, line: &str) -> bool {
    let Some((key, value)) = line.split_once(':') else { return false };
    let value = value.trim();
    match key.trim() {
        "Driver Version" => driver(node).version = Some(value.to_owned()),
        "CUDA Version" => driver(node).cuda = Some(value.to_owned()),
        _ => return false,
    }
    true
}

/// Bridges and devices of `lspci -vvv`, with their access control.
pub(super) fn lspci(node: &mut Node, line: &str) -> bool {
    if let Some(control) = line.trim().strip_prefix("ACSCtl:") {
        let redirects = control.contains("ReqRedir+") || control.contains("CmpltRedir+");
        let Some((_, on)) = node.bridge.as_mut() else { return false };
        *on |= redirects;
        return true;
    }
    let Some((address, rest)) = line.split_once(' ') else { return false };
    let is_address = address.len() >= 7
        && address.contains(':')
        && address.contains('.')
        && address.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.');
    if !is_address {
        return false;
    }
    let address = crate::gpu::pci_address(address);
    if rest.contains("bridge") {
        node.bridge = Some((address, false));
        return true;
    }
    let nvidia = rest.contains("NVIDIA")
        && (rest.starts_with("VGA") || rest.starts_with("3D") || rest.starts_with("Display"));
    if !nvidia {
        return false;
    }
    let index = node.facts.pci.iter().filter(|d| d.role == Role::Gpu).count();
    let (bridges, acs) = match &node.bridge {
        Some((bridge, on)) => {
            (vec![bridge.clone()], Some(if *on { vec![bridge.clone()] } else { Vec::new() }))
        }
        None => (Vec::new(), None),
    };
    node.facts.pci.push(PciDevice {
        address,
        role: Role::Gpu,
        names: vec![format!("GPU{index}")],
        bridges,
        acs,
        ..PciDevice::default()
    });
    true
}

/// Puts the table into the facts.
pub(super) fn finish(node: &mut Node) {
    let gpus = node.columns.iter().filter(|n| n.starts_with("GPU")).count();
    for index in 0..u32::try_from(gpus).unwrap_or(0) {
        gpu(node, index);
    }
    if node.columns.is_empty() {
        return;
    }
    let columns = node.columns.clone();
    let rows = std::mem::take(&mut node.rows);
    let t = &mut node.facts.topology;
    t.names = columns.clone();
    t.paths = columns
        .iter()
        .map(|name| {
            let cells = rows.iter().find(|(n, _)| n == name).map_or(&[][..], |(_, c)| c);
            (0..columns.len()).map(|i| path(cells.get(i).map_or("", String::as_str))).collect()
        })
        .collect();
    let nic_paths: Vec<Path> = columns
        .iter()
        .enumerate()
        .filter(|(_, n)| !n.starts_with("GPU"))
        .flat_map(|(i, _)| {
            t.paths[i].iter().zip(&columns).filter(|(_, n)| n.starts_with("GPU")).map(|(p, _)| *p)
        })
        .collect();
    t.flat = !nic_paths.is_empty() && gpus > 1 && nic_paths.iter().all(|p| *p == Path::Phb);
}

fn path(text: &str) -> Path {
    match text {
        "X" => Path::Same,
        "PIX" => Path::Pix,
        "PXB" => Path::Pxb,
        "PHB" | "NODE" => Path::Phb,
        other => {
            other.strip_prefix("NV").and_then(|n| n.parse().ok()).map_or(Path::Sys, Path::Nvlink)
        }
    }
}
