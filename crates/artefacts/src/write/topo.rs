//! A topology file for a machine that hides its PCI tree: what is known of it, to complete.
//!
//! Source of the grammar: NCCL 2.30.7 `src/graph/xml.cc`, `topo.cc`. Values in the file win over
//! detection; only attributes that are missing are filled in, so none is written that is not known.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ncclctl_plan::node::Node;

use super::{File, Kind, Work, WriteError, header};

pub(super) fn write(work: Work<'_>) -> Result<Vec<File>, WriteError> {
    if work.nodes.is_empty() {
        return Err(WriteError::NoNodes("topo"));
    }
    let many = work.nodes.len() > 1;
    let files: Vec<File> = work
        .nodes
        .iter()
        .filter(|node| node.gpus.iter().any(|g| g.pci.is_some()))
        .map(|node| File {
            path: if many {
                format!("{}.nccl-topology.xml", node.name)
            } else {
                "nccl-topology.xml".to_owned()
            },
            text: text(work, node),
        })
        .collect();
    if files.is_empty() {
        return Err(WriteError::Nothing("no GPU with a PCI address: there is no topology".into()));
    }
    Ok(files)
}

/// One device under a CPU.
enum Device<'a> {
    Gpu(usize),
    Nic(&'a str),
}

fn text(work: Work<'_>, node: &Node) -> String {
    let mut comment = String::new();
    header(&mut comment, Kind::Topo, work.plan);
    let comment = comment.replace("# ", "").replace("--", "- -");
    let mut out = format!("<!-- {}", comment.trim_end());
    out.push_str(
        "\nput GPUs and NICs that share a PCIe switch of the host under one pci element; the bus ids are\n\
         those of the guest -->\n",
    );
    out.push_str("<system version=\"1\">\n");
    let mut cpus: BTreeMap<i64, BTreeMap<&str, Device<'_>>> = BTreeMap::new();
    let numa = |numa: Option<u32>| numa.map_or(-1, i64::from);
    for (at, gpu) in node.gpus.iter().enumerate() {
        if let Some(pci) = &gpu.pci {
            cpus.entry(numa(gpu.numa)).or_default().insert(pci, Device::Gpu(at));
        }
    }
    for hca in &node.hcas {
        if let Some(pci) = &hca.pci {
            cpus.entry(numa(hca.numa)).or_default().insert(pci, Device::Nic(&hca.name));
        }
    }
    for (numa, devices) in cpus {
        let _ = writeln!(out, "  <cpu numaid=\"{numa}\">");
        for (pci, device) in devices {
            let (class, inner) = match device {
                Device::Gpu(at) => ("0x030200", format!("<gpu dev=\"{at}\"/>")),
                Device::Nic(name) => ("0x020000", format!("<nic><net name=\"{name}\"/></nic>")),
            };
            let _ = writeln!(
                out,
                "    <pci busid=\"{}\" class=\"{class}\">\n      {inner}\n    </pci>",
                pci.to_ascii_lowercase()
            );
        }
        out.push_str("  </cpu>\n");
    }
    out.push_str("</system>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, Work, tests::nodes};
    use ncclctl_plan::{Request, plan};

    #[test]
    fn a_file_to_complete() {
        let nodes = &nodes()[..1];
        let plan = plan(nodes, Request::default());
        let files = super::write(Work { plan: &plan, nodes, choice: &Choice::default() }).unwrap();
        insta::assert_snapshot!(files[0].text, @r#"
        <!-- made by ncclctl render topo (ncclctl 0.1.0) from the plan for roce1, NCCL 2.18.5: RoCE
        renew it the same way; `ncclctl render topo - -check` says whether it is up to date
        put GPUs and NICs that share a PCIe switch of the host under one pci element; the bus ids are
        those of the guest -->
        <system version="1">
          <cpu numaid="0">
            <pci busid="0000:3b:00.0" class="0x030200">
              <gpu dev="0"/>
            </pci>
            <pci busid="0000:3b:00.1" class="0x020000">
              <nic><net name="mlx5_0"/></nic>
            </pci>
          </cpu>
          <cpu numaid="1">
            <pci busid="0000:af:00.0" class="0x030200">
              <gpu dev="1"/>
            </pci>
          </cpu>
        </system>
        "#);
    }
}
