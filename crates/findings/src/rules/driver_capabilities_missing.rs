//! `driver-capabilities-missing`: NVIDIA_DRIVER_CAPABILITIES without compute or utility.
//!
//! ## What
//!
//! NVIDIA_DRIVER_CAPABILITIES is set, and lacks `compute` (libcuda) or `utility` (NVML).
//!
//! ## Why
//!
//! The toolkit mounts only the driver's libraries of the capabilities named. NCCL loads libcuda and
//! libnvidia-ml.so.1, and init fails without them.
//!
//! ## Example
//!
//! `NVIDIA_DRIVER_CAPABILITIES=graphics,video has no compute, utility`
//!
//! ## Remedy
//!
//! Write `NVIDIA_DRIVER_CAPABILITIES=compute,utility`.
//!
//! ## Source
//!
//! NVIDIA Container Toolkit, driver capabilities; NCCL src/misc/nvmlwrap.cc.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "driver-capabilities-missing",
        Severity::Error,
        "NVIDIA_DRIVER_CAPABILITIES without compute or utility",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for block in &set.blocks {
        let Some(setting) = block.get("NVIDIA_DRIVER_CAPABILITIES") else { continue };
        let words: Vec<&str> = setting.value.text.split(',').map(str::trim).collect();
        // nothing is the toolkit's default: utility and compute
        if words.contains(&"all")
            || setting.value.text.is_empty()
            || setting.value.text.contains('$')
        {
            continue;
        }
        let missing: Vec<&str> =
            ["compute", "utility"].into_iter().filter(|w| !words.contains(w)).collect();
        if missing.is_empty() {
            continue;
        }
        let mut all = words.clone();
        all.extend(&missing);
        let value = all.join(",");
        let fix = set.replace(&setting.value.at, &setting.value.text, &value, true);
        let found = set.say(
            &RULE,
            Confidence::Certain,
            &setting.value.at,
            format!("NVIDIA_DRIVER_CAPABILITIES={} has no {}", setting.value.text, missing.join(", ")),
            "only the driver's libraries of the capabilities named are in the container: compute is \
             libcuda, utility is NVML; NCCL needs both",
            format!("write NVIDIA_DRIVER_CAPABILITIES={value}"),
        );
        findings.push(set.fixed(found, fix));
    }
}
