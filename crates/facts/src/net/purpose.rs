//! What an interface is likely for, by its driver and name: the only signs there are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Interface;

/// Names of interfaces that management controllers and their links go by.
const MANAGEMENT: [&str; 8] = ["mgmt", "bmc", "idrac", "ilo", "ipmi", "oob", "usb", "enx"];

/// Drivers of USB links to a management controller.
const MANAGEMENT_DRIVERS: [&str; 4] = ["cdc_ether", "rndis_host", "cdc_ncm", "cdc_eem"];

/// Words in names that people give to storage networks.
const STORAGE: [&str; 7] = ["stor", "san", "nfs", "ceph", "lustre", "gpfs", "nvmf"];

/// What an interface is likely for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// The management controller's link.
    Management,
    /// A storage network.
    Storage,
}

impl Interface {
    /// What it is likely for, where its name or driver says so.
    pub fn purpose(&self) -> Option<Purpose> {
        let name = self.name.to_ascii_lowercase();
        let driver = self.driver.as_deref().unwrap_or_default();
        if MANAGEMENT.iter().any(|m| name.starts_with(m)) || MANAGEMENT_DRIVERS.contains(&driver) {
            return Some(Purpose::Management);
        }
        STORAGE.iter().any(|word| name.contains(word)).then_some(Purpose::Storage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_drivers_tell() {
        let of = |name: &str, driver: &str| {
            Interface {
                name: name.to_owned(),
                driver: Some(driver.to_owned()),
                ..Interface::default()
            }
            .purpose()
        };
        assert_eq!(of("bmc0", ""), Some(Purpose::Management));
        assert_eq!(of("eth4", "cdc_ether"), Some(Purpose::Management));
        assert_eq!(of("storage1", "mlx5_core"), Some(Purpose::Storage));
        assert_eq!(of("bond-ceph", "bonding"), Some(Purpose::Storage));
        assert_eq!(of("eno1", "ixgbe"), None);
    }
}
