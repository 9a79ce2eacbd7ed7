//! The meter over NVML.

use ncclctl_findings::evidence::GpuSample;
use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{
    Clock, EccCounter, MemoryError, PcieUtilCounter, TemperatureSensor,
};
use nvml_wrapper::enum_wrappers::nv_link::IntDeviceType;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::{Device, EventSet};

use super::sample::Meter;

/// Most NVLinks of any GPU (`NVML_NVLINK_MAX_LINKS` of CUDA 13 headers).
const LINKS: u32 = 36;

struct Gpu {
    device: Device<'static>,
    events: Option<EventSet<'static>>,
}

/// A meter of the GPU with that PCI id.
pub(super) fn meter(bus_id: &str) -> Result<Box<dyn Meter>, String> {
    let nvml = Nvml::init().map_err(|error| format!("NVML: {error}"))?;
    // one for the life of the process: devices borrow it and the library is never closed
    let nvml: &'static Nvml = Box::leak(Box::new(nvml));
    let device = nvml
        .device_by_pci_bus_id(bus_id)
        .map_err(|error| format!("NVML knows no GPU {bus_id}: {error}"))?;
    let events = nvml
        .create_event_set()
        .ok()
        .and_then(|set| device.register_events(EventTypes::CRITICAL_XID_ERROR, set).ok());
    Ok(Box::new(Gpu { device, events }))
}

/// The number, as in the kernel's log.
fn number(xid: XidError) -> u64 {
    match xid {
        XidError::Value(number) => number,
        XidError::Unknown => 999,
    }
}

/// What is no reason for worry.
fn harmless() -> ThrottleReasons {
    ThrottleReasons::GPU_IDLE | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING | ThrottleReasons::NONE
}

impl Meter for Gpu {
    fn sample(&mut self) -> GpuSample {
        let d = &self.device;
        let throttled_by = d
            .current_throttle_reasons()
            .map(|reasons| {
                (reasons - harmless()).iter_names().map(|(name, _)| name.to_lowercase()).collect()
            })
            .unwrap_or_default();
        let pcie = |counter| d.pcie_throughput(counter).ok().map(|kb| u64::from(kb) * 1000);
        GpuSample {
            at_s: 0.0,
            load_percent: d.utilization_rates().ok().map(|u| u.gpu),
            sm_clock_mhz: d.clock_info(Clock::SM).ok(),
            memory_clock_mhz: d.clock_info(Clock::Memory).ok(),
            throttled_by,
            power_w: d.power_usage().ok().map(|mw| f64::from(mw) / 1e3),
            celsius: d.temperature(TemperatureSensor::Gpu).ok(),
            pcie_tx_bps: pcie(PcieUtilCounter::Send),
            pcie_rx_bps: pcie(PcieUtilCounter::Receive),
            nvlink_tx_bytes: None,
            nvlink_rx_bytes: None,
        }
    }

    fn uncorrected(&self) -> Option<u64> {
        self.device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).ok()
    }

    fn xids(&mut self) -> Vec<u64> {
        let mut seen = Vec::new();
        if let Some(events) = &self.events {
            while let Ok(event) = events.wait(1) {
                seen.extend(event.event_data.map(number));
            }
        }
        seen
    }

    fn nvlinked(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for link in 0..LINKS {
            let wrapper = self.device.link_wrapper_for(link);
            if !wrapper.is_active().unwrap_or(false) {
                continue;
            }
            // a switch reaches every GPU
            let direct = matches!(wrapper.remote_device_type(link), Ok(IntDeviceType::Gpu));
            match wrapper.remote_pci_info() {
                Ok(pci) if direct => ids.push(pci.bus_id.to_ascii_lowercase()),
                _ => ids.push("*".to_owned()),
            }
        }
        ids.sort();
        ids.dedup();
        ids
    }
}
