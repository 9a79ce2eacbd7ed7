//! Builds the tree of a machine as a capture holds it: files and links of /proc and /sys, libraries
//! by name, and the answers of system calls.

use std::collections::BTreeMap;

use ncclctl_facts::gpu::{Driver, Gpu, NvLinks};
use ncclctl_facts::live::{self, Live};
use ncclctl_facts::net::{Address, Interface, Kind};

/// A file or a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    File(Vec<u8>),
    Link(String),
}

/// One machine.
pub(crate) struct Machine {
    /// Paths without the leading slash.
    pub(crate) tree: BTreeMap<String, Entry>,
    pub(crate) live: Live,
}

/// What the process is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    Docker,
    /// A pod on containerd: default seccomp profile, 64 KiB of memlock... as told by its limits.
    Pod,
}

/// Capabilities of root on a host, and what Docker gives by default.
const ALL_CAPABILITIES: &str = "000001ffffffffff";
const DOCKER_CAPABILITIES: &str = "00000000a80425fb";

/// A place in the PCI tree.
pub(crate) struct Slot<'a> {
    /// Host bridge, root port, switch bridges, down to the device.
    pub(crate) path: &'a [&'a str],
    pub(crate) numa: i32,
    /// Gigatransfers per second and lanes, of the device and of its slot.
    pub(crate) lane: (&'a str, u32),
}

impl Machine {
    pub(crate) fn new(name: &str, kernel: &str, place: Place, cpus: u32) -> Self {
        let live = Live {
            hostname: name.to_owned(),
            kernel: kernel.to_owned(),
            machine: "x86_64".to_owned(),
            cpus,
            mempolicy: Some(match place {
                Place::Host => "ok".to_owned(),
                _ => "Operation not permitted (os error 1)".to_owned(),
            }),
            shm: Some(match place {
                Place::Host => (u64::from(cpus) << 32, true),
                _ => (64 << 20, true),
            }),
            ..Live::default()
        };
        let mut m = Self { tree: BTreeMap::new(), live };
        let (capabilities, seccomp) = match place {
            Place::Host => (ALL_CAPABILITIES, 0),
            _ => (DOCKER_CAPABILITIES, 2),
        };
        m.file(
            "proc/self/status",
            &format!(
                "Name:\tncclctl\nCapEff:\t{capabilities}\nNoNewPrivs:\t0\nSeccomp:\t{seccomp}\n"
            ),
        );
        m.memlock(if place == Place::Host { None } else { Some(64 << 10) });
        m.file(
            "proc/self/cgroup",
            match place {
                Place::Host => "0::/user.slice/user-0.slice/session-3.scope\n",
                _ => "0::/\n",
            },
        );
        m.file("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
        m.file("proc/self/mountinfo", match place {
            Place::Host => "28 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw\n30 28 0:22 / /sys rw,nosuid - sysfs sysfs rw\n",
            Place::Docker => "612 510 0:60 / / rw,relatime - overlay overlay rw,upperdir=/var/lib/docker/overlay2/0a/diff\n615 612 0:22 / /sys ro,nosuid - sysfs sysfs ro\n",
            Place::Pod => "612 510 0:60 / / rw,relatime - overlay overlay rw,upperdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/7/fs\n615 612 0:22 / /sys ro,nosuid - sysfs sysfs ro\n",
        });
        // the first namespaces have fixed numbers
        let (ipc, uts, pid, net) = match place {
            Place::Host => {
                (4_026_531_839_u64, 4_026_531_838_u64, 4_026_531_836_u64, 4_026_531_840_u64)
            }
            _ => (4_026_532_800, 4_026_532_799, 4_026_532_801, 4_026_532_803),
        };
        for (kind, inode) in [("ipc", ipc), ("uts", uts), ("pid", pid), ("net", net)] {
            m.link(&format!("proc/self/ns/{kind}"), &format!("{kind}:[{inode}]"));
        }
        m.file("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
        m.file("proc/sys/kernel/random/boot_id", "5f0c3a52-7d0e-4a57-9a3b-0d6d5b1c2e11\n");
        if place == Place::Pod {
            m.env("KUBERNETES_SERVICE_HOST", "10.96.0.1");
        }
        m.interface("lo", Kind::Loopback, &["127.0.0.1/8"]);
        m
    }

    pub(crate) fn file(&mut self, path: &str, text: &str) {
        self.tree.insert(path.to_owned(), Entry::File(text.as_bytes().to_vec()));
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.tree.insert(path.to_owned(), Entry::Link(target.to_owned()));
    }

    pub(crate) fn env(&mut self, name: &str, value: &str) {
        self.live.environment.insert(name.to_owned(), value.to_owned());
    }

    /// Limits of the process; `None` is an unlimited memlock.
    pub(crate) fn memlock(&mut self, bytes: Option<u64>) {
        let value = bytes.map_or_else(|| "unlimited".to_owned(), |b| b.to_string());
        self.file(
            "proc/self/limits",
            &format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max stack size            8388608              unlimited            bytes     \n\
                 Max open files            1048576              1048576              files     \n\
                 Max locked memory         {value:<20} {value:<20} bytes     \n"
            ),
        );
    }

    /// Firmware's names, and whether the processor says that it is a guest.
    pub(crate) fn firmware(&mut self, vendor: &str, product: &str, chassis: &str, guest: bool) {
        self.file("sys/class/dmi/id/sys_vendor", &format!("{vendor}\n"));
        self.file("sys/class/dmi/id/product_name", &format!("{product}\n"));
        self.file("sys/class/dmi/id/chassis_asset_tag", &format!("{chassis}\n"));
        let flag = if guest { " hypervisor" } else { "" };
        self.file("proc/cpuinfo", &format!("processor\t: 0\nflags\t\t: fpu sse2 avx512f{flag}\n"));
    }

    /// A default route by this interface.
    pub(crate) fn default_route(&mut self, interface: &str, gateway: [u8; 4]) {
        let gateway = u32::from_le_bytes(gateway);
        self.file(
            "proc/self/net/route",
            &format!(
                "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                 {interface}\t00000000\t{gateway:08X}\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
            ),
        );
    }

    pub(crate) fn interface(
        &mut self,
        name: &str,
        kind: Kind,
        addresses: &[&str],
    ) -> &mut Interface {
        let index = u32::try_from(self.live.interfaces.len()).unwrap_or(0) + 1;
        self.live.interfaces.push(Interface {
            index,
            name: name.to_owned(),
            kind,
            running: true,
            mtu: match kind {
                Kind::Loopback => 65536,
                _ => 1500,
            },
            addresses: addresses
                .iter()
                .filter_map(|a| {
                    let (ip, prefix) = a.split_once('/')?;
                    Some(Address { ip: ip.parse().ok()?, prefix: prefix.parse().ok()? })
                })
                .collect(),
            ..Interface::default()
        });
        let last = self.live.interfaces.len() - 1;
        &mut self.live.interfaces[last]
    }

    /// A PCI NIC's interface.
    pub(crate) fn nic(
        &mut self,
        name: &str,
        driver: &str,
        gbits: u64,
        slot: &Slot<'_>,
        addresses: &[&str],
    ) {
        let address = self.pci(slot);
        let interface = self.interface(name, Kind::Physical, addresses);
        interface.driver = Some(driver.to_owned());
        interface.pci = Some(address);
        interface.numa = u32::try_from(slot.numa).ok();
        interface.reported_mbits = (gbits > 0).then_some(gbits * 1000);
    }

    /// A device in the PCI tree with all bridges above it; its address.
    pub(crate) fn pci(&mut self, slot: &Slot<'_>) -> String {
        let mut at = "sys/devices".to_owned();
        for (depth, part) in slot.path.iter().enumerate() {
            at = format!("{at}/{part}");
            if depth == 0 {
                continue;
            }
            self.link(
                &format!("sys/bus/pci/devices/{part}"),
                &format!("../../../{}", at.trim_start_matches("sys/")),
            );
            let (speed, width) = slot.lane;
            self.file(&format!("{at}/numa_node"), &format!("{}\n", slot.numa));
            for (name, text) in [
                ("max_link_speed", format!("{speed} GT/s PCIe\n")),
                ("max_link_width", format!("{width}\n")),
            ] {
                self.file(&format!("{at}/{name}"), &text);
            }
            if depth + 1 == slot.path.len() {
                self.file(&format!("{at}/current_link_speed"), &format!("{speed} GT/s PCIe\n"));
                self.file(&format!("{at}/current_link_width"), &format!("{width}\n"));
            }
        }
        slot.path.last().map(|a| (*a).to_owned()).unwrap_or_default()
    }

    /// Extended configuration space of every bridge, with access control on or off: what root sees.
    pub(crate) fn access_control(&mut self, on: bool) {
        // a capability of the ACS kind at 0x100, the last one; control word at +6
        let mut space = vec![0_u8; 0x108];
        space[0x100..0x104].copy_from_slice(&[0x0d, 0x00, 0x01, 0x00]);
        space[0x106] = if on { 0x1d } else { 0 };
        let bridges: Vec<String> = self
            .tree
            .iter()
            .filter_map(|(path, entry)| match entry {
                Entry::Link(target) if path.starts_with("sys/bus/pci/devices/") => {
                    Some(target.replace("../../../", "sys/"))
                }
                _ => None,
            })
            .collect();
        for bridge in bridges {
            self.tree.insert(format!("{bridge}/config"), Entry::File(space.clone()));
        }
    }

    /// The driver, told by NVML.
    pub(crate) fn driver(&mut self, version: &str, cuda: &str, open: bool) {
        let modules = if open { "Open Kernel Module for x86_64" } else { "x86_64 Kernel Module" };
        self.file(
            "proc/driver/nvidia/version",
            &format!("NVRM version: NVIDIA UNIX {modules}  {version}  Release Build\n"),
        );
        self.live.nvml = Some(Driver {
            version: Some(version.to_owned()),
            cuda: Some(cuda.to_owned()),
            source: "NVML".to_owned(),
            ..Driver::default()
        });
        for name in ["nvidiactl", "nvidia-uvm"] {
            self.live.opened.insert(format!("/dev/{name}"), "ok".to_owned());
        }
    }

    /// A GPU; its place in the driver's list is returned to add to.
    pub(crate) fn gpu(
        &mut self,
        model: &str,
        compute: u32,
        gib: u64,
        slot: &Slot<'_>,
    ) -> Option<&mut Gpu> {
        let pci = self.pci(slot);
        let driver = self.live.nvml.as_mut()?;
        let index = u32::try_from(driver.gpus.len()).ok()?;
        self.live.opened.insert(format!("/dev/nvidia{index}"), "ok".to_owned());
        let generation = match slot.lane.0 {
            "32.0" => 5,
            "16.0" => 4,
            _ => 3,
        };
        driver.gpus.push(Gpu {
            index,
            model: model.to_owned(),
            uuid: Some(format!("GPU-00000000-0000-4000-8000-00000000000{index:x}")),
            pci: Some(pci),
            memory_bytes: Some(gib << 30),
            compute: Some(compute),
            numa: u32::try_from(slot.numa).ok(),
            link: Some((generation, slot.lane.1)),
            link_most: Some((generation, slot.lane.1)),
            ..Gpu::default()
        });
        driver.gpus.last_mut()
    }

    /// An RDMA device with one port. `gids`: index, address, kind, interface.
    pub(crate) fn rdma(&mut self, device: &Rdma<'_>, slot: &Slot<'_>) {
        let address = self.pci(slot);
        let real = format!("sys/devices/{}", slot.path.join("/"));
        let base = format!("{real}/infiniband/{}", device.name);
        self.link(
            &format!("sys/class/infiniband/{}", device.name),
            &format!("../../{}", base.trim_start_matches("sys/")),
        );
        self.link(&format!("{base}/device"), &format!("../../../{address}"));
        self.link(
            &format!("{real}/driver"),
            &format!("../../../bus/pci/drivers/{}", device.driver),
        );
        self.file(&format!("{base}/fw_ver"), &format!("{}\n", device.firmware));
        self.file(&format!("{base}/hca_type"), &format!("{}\n", device.board));
        let port = format!("{base}/ports/1");
        self.file(&format!("{port}/state"), &format!("{}\n", device.state));
        self.file(&format!("{port}/link_layer"), &format!("{}\n", device.link));
        self.file(&format!("{port}/rate"), &format!("{}\n", device.rate));
        self.file(&format!("{port}/lid"), &format!("{}\n", device.lid));
        self.file(&format!("{port}/pkeys/0"), "0xffff\n");
        for (index, gid, kind, netdev) in device.gids {
            self.file(&format!("{port}/gids/{index}"), &format!("{gid}\n"));
            self.file(&format!("{port}/gid_attrs/types/{index}"), &format!("{kind}\n"));
            if !netdev.is_empty() {
                self.file(&format!("{port}/gid_attrs/ndevs/{index}"), &format!("{netdev}\n"));
            }
        }
        let number =
            self.tree.keys().filter(|k| k.starts_with("sys/class/infiniband_verbs/")).count();
        self.file(
            &format!("sys/class/infiniband_verbs/uverbs{number}/ibdev"),
            &format!("{}\n", device.name),
        );
        if let Some(said) = device.opened {
            self.live.opened.insert(format!("/dev/infiniband/uverbs{number}"), said.to_owned());
        }
    }

    /// Files of the user space, empty: names are all that is looked at.
    pub(crate) fn libraries(&mut self, paths: &[&str]) {
        for path in paths {
            self.file(path.trim_start_matches('/'), "");
        }
    }

    /// libnccl of a version, in the system's folder.
    pub(crate) fn nccl(&mut self, version: &str) {
        self.libraries(&[&format!("/usr/lib/x86_64-linux-gnu/libnccl.so.{version}")]);
        self.link("usr/lib/x86_64-linux-gnu/libnccl.so.2", &format!("libnccl.so.{version}"));
    }

    /// libibverbs with one provider.
    pub(crate) fn verbs(&mut self, provider: &str) {
        self.libraries(&[
            "/usr/lib/x86_64-linux-gnu/libibverbs.so.1",
            &format!("/usr/lib/x86_64-linux-gnu/libibverbs/lib{provider}-rdmav34.so"),
        ]);
    }

    /// The whole tree, answers included.
    pub(crate) fn finish(mut self) -> anyhow::Result<BTreeMap<String, Entry>> {
        if self.live.user != 0 {
            let status = self.tree.get_mut("proc/self/status");
            if let Some(Entry::File(bytes)) = status {
                let text = String::from_utf8_lossy(bytes);
                let none = "0".repeat(ALL_CAPABILITIES.len());
                *bytes = text
                    .replace(ALL_CAPABILITIES, &none)
                    .replace(DOCKER_CAPABILITIES, &none)
                    .into_bytes();
            }
        }
        let text = serde_json::to_string_pretty(&self.live)? + "\n";
        self.file(live::FILE.trim_start_matches('/'), &text);
        Ok(self.tree)
    }
}

/// An RDMA device.
pub(crate) struct Rdma<'a> {
    pub(crate) name: &'a str,
    pub(crate) driver: &'a str,
    pub(crate) board: &'a str,
    pub(crate) firmware: &'a str,
    pub(crate) state: &'a str,
    pub(crate) link: &'a str,
    pub(crate) rate: &'a str,
    pub(crate) lid: &'a str,
    pub(crate) gids: &'a [(u32, &'a str, &'a str, &'a str)],
    /// What opening its device file said; `None` where there is no such file.
    pub(crate) opened: Option<&'a str>,
}

impl Rdma<'_> {
    /// A ConnectX-7 port on InfiniBand.
    pub(crate) const INFINIBAND: Rdma<'static> = Rdma {
        name: "",
        driver: "mlx5_core",
        board: "MT4129",
        firmware: "28.39.3560",
        state: "4: ACTIVE",
        link: "InfiniBand",
        rate: "400 Gb/sec (4X NDR)",
        lid: "0x1a",
        gids: &[(0, "fe80:0000:0000:0000:a088:c203:0012:3456", "IB/RoCE v1", "")],
        opened: Some("ok"),
    };
}

/// All links of a GPU to one other end; speed in megabytes per second of one link and direction.
pub(crate) fn links(to: Option<&str>, kind: &str, count: u32, version: u32, speed: u64) -> NvLinks {
    NvLinks {
        to: to.map(str::to_owned),
        kind: kind.to_owned(),
        count,
        version: Some(version),
        speed: Some(speed),
    }
}
