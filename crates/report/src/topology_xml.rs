//! What was found, as NCCL's topology file: processors, PCIe switches, GPUs, NICs.
//!
//! Source of the grammar: NCCL 2.30.7 `src/graph/xml.cc` and `topo.cc`. NCCL fills in what is not
//! written, so nothing is written that is not known.

use std::fmt::Write as _;

use ncclctl_facts::Facts;
use ncclctl_facts::pci::{PciDevice, Role};

/// One switch, with what hangs below it.
#[derive(Default)]
struct Branch<'a> {
    switches: Vec<(&'a str, Branch<'a>)>,
    devices: Vec<&'a PciDevice>,
}

impl<'a> Branch<'a> {
    /// Puts a device below its switches, the highest first.
    fn insert(&mut self, path: &[&'a str], device: &'a PciDevice) {
        let Some((first, rest)) = path.split_first() else {
            self.devices.push(device);
            return;
        };
        let at = match self.switches.iter().position(|(id, _)| id == first) {
            Some(at) => at,
            None => {
                self.switches.push((first, Branch::default()));
                self.switches.len() - 1
            }
        };
        self.switches[at].1.insert(rest, device);
    }

    fn write(&self, out: &mut String, facts: &Facts, indent: usize) {
        for (id, below) in &self.switches {
            let _ = writeln!(out, "{:indent$}<pci busid=\"{id}\" class=\"0x060400\">", "");
            below.write(out, facts, indent + 2);
            let _ = writeln!(out, "{:indent$}</pci>", "");
        }
        for device in &self.devices {
            write_device(out, facts, device, indent);
        }
    }
}

/// NCCL's topology file of what was found: read it with NCCL_TOPO_FILE.
pub fn topology_xml(facts: &Facts) -> String {
    let mut out = String::from("<system version=\"1\">\n");
    let mut nodes: Vec<Option<u32>> = facts.pci.iter().map(|d| d.numa).collect();
    nodes.sort_unstable();
    nodes.dedup();
    for numa in nodes {
        let id = numa.map_or_else(|| "-1".to_owned(), |n| n.to_string());
        let mut processor = Branch::default();
        for device in facts.pci.iter().filter(|d| d.numa == numa) {
            // of a switch's two bridges NCCL counts the upper one
            let mut path: Vec<&str> =
                device.bridges.iter().skip(1).step_by(2).map(String::as_str).collect();
            path.reverse();
            processor.insert(&path, device);
        }
        let _ = writeln!(out, "  <cpu numaid=\"{id}\">");
        processor.write(&mut out, facts, 4);
        out.push_str("  </cpu>\n");
    }
    out.push_str("</system>\n");
    out
}

fn write_device(out: &mut String, facts: &Facts, device: &PciDevice, indent: usize) {
    let class = if device.role == Role::Gpu { "0x030200" } else { "0x020000" };
    let lane = device.link_most.map_or_else(String::new, |l| {
        format!(" link_speed=\"{:.1} GT/s PCIe\" link_width=\"{}\"", l.gts, l.width)
    });
    let address = &device.address;
    let _ = writeln!(out, "{:indent$}<pci busid=\"{address}\" class=\"{class}\"{lane}>", "");
    match facts.gpus().iter().find(|g| g.pci.as_deref() == Some(address)) {
        Some(gpu) => write_gpu(out, gpu, indent + 2),
        None => write_nic(out, facts, device, indent + 2),
    }
    let _ = writeln!(out, "{:indent$}</pci>", "");
}

fn write_gpu(out: &mut String, gpu: &ncclctl_facts::gpu::Gpu, indent: usize) {
    let compute = gpu.compute.map_or_else(String::new, |c| format!(" sm=\"{c}\""));
    let head = format!("<gpu dev=\"{}\"{compute}", gpu.index);
    if gpu.nvlinks.is_empty() {
        let _ = writeln!(out, "{:indent$}{head}/>", "");
        return;
    }
    let _ = writeln!(out, "{:indent$}{head}>", "");
    for links in &gpu.nvlinks {
        let (target, class) = match (&links.to, links.kind.as_str()) {
            (Some(to), "gpu") => (to.as_str(), "0x030200"),
            (Some(to), "cpu") => (to.as_str(), "0x068001"),
            _ => ("fffffff:ffff:ff", "0x068000"),
        };
        let _ = writeln!(
            out,
            "{:deep$}<nvlink target=\"{target}\" count=\"{}\" tclass=\"{class}\"/>",
            "",
            links.count,
            deep = indent + 2
        );
    }
    let _ = writeln!(out, "{:indent$}</gpu>", "");
}

fn write_nic(out: &mut String, facts: &Facts, device: &PciDevice, indent: usize) {
    let _ = writeln!(out, "{:indent$}<nic>", "");
    let deep = indent + 2;
    // the verbs device stands for its Ethernet function too: NCCL looks a net up by its plug-in's name
    let rdma = device.names.iter().find(|name| facts.rdma.iter().any(|d| d.name == **name));
    for name in rdma.into_iter().chain(device.names.iter().filter(|_| rdma.is_none())) {
        let port = facts.rdma.iter().find(|d| d.name == *name).and_then(|d| d.ports.first());
        let speed = port
            .and_then(|p| p.mbits)
            .or_else(|| facts.interfaces.iter().find(|i| i.name == *name)?.reported_mbits);
        let number = port.map_or_else(String::new, |p| format!(" port=\"{}\"", p.number));
        let speed = speed.map_or_else(String::new, |s| format!(" speed=\"{s}\""));
        let _ = writeln!(out, "{:deep$}<net name=\"{name}\"{speed}{number}/>", "");
    }
    let _ = writeln!(out, "{:indent$}</nic>", "");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_below_one_switch_stands_together() {
        let bridges =
            |lower: &str| [lower, "0000:15:00.0", "0000:14:01.0"].map(str::to_owned).to_vec();
        let device = |address: &str, role, name: &str, lower: &str| PciDevice {
            address: address.to_owned(),
            role,
            names: vec![name.to_owned()],
            bridges: bridges(lower),
            numa: Some(0),
            ..PciDevice::default()
        };
        let facts = Facts {
            pci: vec![
                device("0000:18:00.0", Role::Gpu, "GPU0", "0000:16:00.0"),
                device("0000:19:00.0", Role::Hca, "mlx5_0", "0000:16:01.0"),
            ],
            gpu: Some(ncclctl_facts::gpu::Driver {
                gpus: vec![ncclctl_facts::gpu::Gpu {
                    pci: Some("0000:18:00.0".to_owned()),
                    compute: Some(90),
                    ..ncclctl_facts::gpu::Gpu::default()
                }],
                ..ncclctl_facts::gpu::Driver::default()
            }),
            ..Facts::default()
        };
        insta::assert_snapshot!(topology_xml(&facts), @r#"
        <system version="1">
          <cpu numaid="0">
            <pci busid="0000:15:00.0" class="0x060400">
              <pci busid="0000:18:00.0" class="0x030200">
                <gpu dev="0" sm="90"/>
              </pci>
              <pci busid="0000:19:00.0" class="0x020000">
                <nic>
                  <net name="mlx5_0"/>
                </nic>
              </pci>
            </pci>
          </cpu>
        </system>
        "#);
    }
}
