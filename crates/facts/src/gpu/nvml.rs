//! NVML, loaded while this is asked and never before: a machine without a GPU pays nothing.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus};
use nvml_wrapper::enum_wrappers::nv_link::IntDeviceType;

use super::{Driver, Gpu, NvLinks, Peers, pci_address};

/// Most NVLinks of any GPU (`NVML_NVLINK_MAX_LINKS`).
const LINKS: u32 = 36;

/// What NVML tells, or why it tells nothing.
pub(crate) fn driver() -> Result<Driver, String> {
    let nvml = Nvml::init().map_err(|error| match error {
        nvml_wrapper::error::NvmlError::LibloadingError(_) => {
            "libnvidia-ml.so.1 is not here or can not be loaded".to_owned()
        }
        error => error.to_string(),
    })?;
    let mut driver = Driver {
        version: nvml.sys_driver_version().ok(),
        cuda: nvml
            .sys_cuda_driver_version()
            .ok()
            .map(|v| format!("{}.{}", v / 1000, v % 1000 / 10)),
        source: "NVML".to_owned(),
        ..Driver::default()
    };
    let count = nvml.device_count().map_err(|error| error.to_string())?;
    let mut devices = Vec::new();
    for index in 0..count {
        let Ok(device) = nvml.device_by_index(index) else { continue };
        let pair = |gen_: Option<u32>, width: Option<u32>| Some((gen_?, width?));
        driver.gpus.push(Gpu {
            index,
            model: device.name().unwrap_or_else(|_| "NVIDIA GPU".to_owned()),
            uuid: device.uuid().ok(),
            pci: device.pci_info().ok().map(|p| pci_address(&p.bus_id)),
            memory_bytes: device.memory_info().ok().map(|m| m.total),
            compute: device
                .cuda_compute_capability()
                .ok()
                .and_then(|c| u32::try_from(c.major * 10 + c.minor).ok()),
            numa: device.numa_node_id().ok(),
            nvlinks: links(&device),
            fabric: super::fabric::of(nvml.lib(), &device),
            mig: mig(&device),
            link: pair(device.current_pcie_link_gen().ok(), device.current_pcie_link_width().ok()),
            link_most: pair(device.max_pcie_link_gen().ok(), device.max_pcie_link_width().ok()),
        });
        if driver.confidential.is_none() {
            driver.confidential = device.check_confidential_compute_status().ok();
        }
        devices.push((index, device));
    }
    for (i, (a, first)) in devices.iter().enumerate() {
        for (b, second) in &devices[i + 1..] {
            let ask = |what| match first.p2p_status(second, what) {
                Ok(P2pStatus::Ok) => "ok".to_owned(),
                Ok(status) => words(&format!("{status:?}")),
                Err(_) => String::new(),
            };
            let (read, write) = (ask(P2pCapabilitiesIndex::Read), ask(P2pCapabilitiesIndex::Write));
            if read != "ok" || write != "ok" {
                driver.peers.push(Peers { a: *a, b: *b, read, write });
            }
        }
    }
    Ok(driver)
}

fn mig(device: &nvml_wrapper::Device<'_>) -> Option<u32> {
    let mode = device.mig_mode().ok()?;
    if mode.current == 0 {
        return None;
    }
    let most = device.mig_device_count().unwrap_or(0);
    let there = (0..most).filter(|i| device.mig_device_by_index(*i).is_ok()).count();
    u32::try_from(there).ok()
}

fn links(device: &nvml_wrapper::Device<'_>) -> Vec<NvLinks> {
    let speed = super::fabric::link_speed(device);
    let mut out: Vec<NvLinks> = Vec::new();
    for number in 0..LINKS {
        let link = device.link_wrapper_for(number);
        match link.is_active() {
            Ok(true) => {}
            Ok(false) => continue,
            Err(_) => break,
        }
        let to = link.remote_pci_info().ok().map(|p| pci_address(&p.bus_id));
        let kind = match link.remote_device_type(number) {
            Ok(IntDeviceType::Gpu) => "gpu",
            Ok(IntDeviceType::Switch) => "switch",
            Ok(IntDeviceType::Ibmnpu) => "cpu",
            // NCCL takes what it can not read for a switch: a guest sees no other end
            _ => "unknown",
        };
        // a switch has several chips: what counts is that all links end in switches
        let to = if kind == "switch" { None } else { to };
        match out.iter_mut().find(|l| l.to == to && l.kind == kind) {
            Some(known) => known.count += 1,
            None => out.push(NvLinks {
                to,
                kind: kind.to_owned(),
                count: 1,
                version: link.version().ok(),
                speed,
            }),
        }
    }
    out
}

/// `ChipsetNotSupported` as words.
fn words(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push(' ');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
