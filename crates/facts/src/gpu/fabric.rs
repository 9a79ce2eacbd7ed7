//! The NVLink fabric that a GPU belongs to. nvml-wrapper has no safe call for it.
//!
//! Contract: the handle is valid while its `Device` lives, which is borrowed here; the record is
//! written by the driver alone, and is as large as the version word in it says.
#![allow(unsafe_code, reason = "calls NVML directly")]

use std::mem;

use nvml_wrapper::Device;
use nvml_wrapper::sys_exports::field_id::NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON;
use nvml_wrapper_sys::bindings::{NvmlLib, nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfoV_t};

use super::Fabric;

/// `nvmlGpuFabricInfo_v2`: size of the record, version in the highest byte (`nvml.h`,
/// `NVML_STRUCT_VERSION`).
const VERSION: u32 = mem::size_of::<nvmlGpuFabricInfo_v2_t>() as u32 | 2 << 24;

/// Lowest two bits of the health mask: bandwidth is degraded (`NVML_GPU_FABRIC_HEALTH_MASK_DEGRADED_BW_TRUE`).
const DEGRADED: u32 = 1;

/// What NVML says of the fabric; `None` where the GPU or the driver knows none.
pub(super) fn of(lib: &NvmlLib, device: &Device<'_>) -> Option<Fabric> {
    let ask = lib.nvmlDeviceGetGpuFabricInfoV.as_ref().ok()?;
    // SAFETY: all fields are integers, for which zero is a value
    let mut record: nvmlGpuFabricInfoV_t = unsafe { mem::zeroed() };
    record.version = VERSION;
    // SAFETY: the handle lives as long as `device`; the record is at least as large as its version says
    let answer = unsafe { ask(device.handle(), &raw mut record) };
    if answer != 0 {
        return None;
    }
    Some(Fabric {
        state: match record.state {
            0 => return None,
            1 => "not started",
            2 => "in progress",
            3 => "completed",
            _ => "unknown",
        }
        .to_owned(),
        status: record.status,
        cluster: record.clusterUuid.iter().any(|b| *b != 0).then(|| uuid(&record.clusterUuid)),
        clique: record.cliqueId,
        degraded: record.healthMask & 3 == DEGRADED,
    })
}

/// Speed of one NVLink, megabytes per second in each direction; field 90 of NVML.
pub(super) fn link_speed(device: &Device<'_>) -> Option<u64> {
    use nvml_wrapper::enums::device::SampleValue;
    use nvml_wrapper::structs::device::FieldId;
    let all = device.field_values_for(&[FieldId(NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON)]).ok()?;
    let value = all.into_iter().next()?.ok()?.value.ok()?;
    let speed = match value {
        SampleValue::U32(v) => u64::from(v),
        SampleValue::U64(v) => v,
        SampleValue::I64(v) => u64::try_from(v).ok()?,
        _ => return None,
    };
    (speed > 0).then_some(speed)
}

/// Sixteen bytes as a UUID is written.
fn uuid(bytes: &[u8; 16]) -> String {
    let mut out = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_named_as_nvidia_smi_does() {
        let bytes: Vec<u8> = (0..16).collect();
        let text = uuid(bytes.as_slice().try_into().unwrap());
        assert_eq!(text, "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }

    #[test]
    fn the_record_is_as_large_as_the_header_says() {
        // version, uuid, status, clique, state, mask: 4 + 16 + 4 + 4 + 1 (+ 3) + 4
        assert_eq!(VERSION, 36 | 2 << 24);
        assert!(mem::size_of::<nvmlGpuFabricInfoV_t>() >= 36);
    }
}
