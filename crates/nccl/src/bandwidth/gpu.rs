//! What links a GPU has: NVLink and PCIe, raw and as NCCL counts them.
//!
//! Raw rates are from NVIDIA's data sheets, one direction. NCCL's are links times its constant per
//! link (2.30.7 `src/graph/topo.h`: 18 on sm60, 20 on sm70 and sm80, 12 on sm86, 20.6 on sm90,
//! 40.1 from sm100 on), close to what the best ring reaches.

/// A GPU model.
#[derive(Debug, PartialEq)]
pub struct Gpu {
    /// Name to show.
    pub name: &'static str,
    /// Words of which all stand in a device name, lower case.
    words: &'static [&'static str],
    /// NVLink, one direction, GB/s; 0 where there is none.
    pub nvlink_raw: f64,
    /// NVLink as NCCL counts it, GB/s.
    pub nvlink_ring: f64,
    /// How far NVLink reaches.
    pub reach: Reach,
    /// Reduction in the NVLink switch: share of its raw limit that NCCL's model expects.
    pub nvls_share: Option<f64>,
    /// NVLSTree per channel, GB/s: two nodes, more nodes (NCCL 2.30.7 `src/graph/tuning.cc`).
    pub nvls_tree: Option<(f64, f64)>,
    /// PCIe x16 as NCCL counts it, GB/s: 12, 24, 48 for generation 3, 4, 5.
    pub pcie: f64,
}

/// How far a GPU's NVLink reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// No NVLink.
    None,
    /// Two GPUs by a bridge.
    Pair,
    /// All GPUs of a node.
    Node,
    /// Up to 72 GPUs over several nodes.
    Domain,
}

/// Model of 8 GPUs (8 heads of 40 GB/s, 0.85, 7/8, both directions: 476) over the raw limit 700.
const HOPPER_NVLS: f64 = 476.0 / 700.0;
/// The same with 8 heads of 90 GB/s and 0.74: 932 over 1400.
const BLACKWELL_NVLS: f64 = 932.0 / 1400.0;

const fn plain(
    name: &'static str,
    words: &'static [&'static str],
    raw_ring: (f64, f64),
    reach: Reach,
    pcie: f64,
) -> Gpu {
    Gpu {
        name,
        words,
        nvlink_raw: raw_ring.0,
        nvlink_ring: raw_ring.1,
        reach,
        nvls_share: None,
        nvls_tree: None,
        pcie,
    }
}

const fn hopper(name: &'static str, words: &'static [&'static str], raw_ring: (f64, f64)) -> Gpu {
    Gpu {
        nvls_share: Some(HOPPER_NVLS),
        nvls_tree: Some((57.7, 45.5)),
        ..plain(name, words, raw_ring, Reach::Node, 48.0)
    }
}

const fn blackwell(name: &'static str, words: &'static [&'static str], reach: Reach) -> Gpu {
    Gpu {
        nvls_share: Some(BLACKWELL_NVLS),
        nvls_tree: Some((96.0, 80.0)),
        ..plain(name, words, (900.0, 722.0), reach, 48.0)
    }
}

/// All models; the first that fits a name counts, so that the narrower stand first.
pub const GPUS: &[Gpu] = &[
    blackwell("GB300", &["gb300"], Reach::Domain),
    blackwell("GB200", &["gb200"], Reach::Domain),
    blackwell("B300", &["b300"], Reach::Node),
    blackwell("B200", &["b200"], Reach::Node),
    plain("GH200", &["gh200"], (450.0, 370.0), Reach::Node, 48.0),
    plain("H100 PCIe", &["h100", "pcie"], (300.0, 247.0), Reach::Pair, 48.0),
    plain("H100 NVL", &["h100", "nvl"], (300.0, 247.0), Reach::Pair, 48.0),
    plain("H200 NVL", &["h200", "nvl"], (450.0, 370.0), Reach::Pair, 48.0),
    hopper("H200", &["h200"], (450.0, 370.0)),
    hopper("H100", &["h100"], (450.0, 370.0)),
    hopper("H800", &["h800"], (200.0, 165.0)),
    hopper("H20", &["h20"], (450.0, 370.0)),
    plain("A100 PCIe", &["a100", "pcie"], (300.0, 240.0), Reach::Pair, 24.0),
    plain("A100", &["a100"], (300.0, 240.0), Reach::Node, 24.0),
    plain("A800", &["a800"], (200.0, 160.0), Reach::Node, 24.0),
    plain("A30", &["a30"], (100.0, 80.0), Reach::Pair, 24.0),
    plain("A40", &["a40"], (56.0, 48.0), Reach::Pair, 24.0),
    plain("RTX A6000", &["a6000"], (56.0, 48.0), Reach::Pair, 24.0),
    plain("V100", &["v100"], (150.0, 120.0), Reach::Node, 12.0),
    plain("P100", &["p100"], (80.0, 72.0), Reach::Node, 12.0),
    plain("RTX PRO 6000", &["pro", "6000"], (0.0, 0.0), Reach::None, 48.0),
    plain("RTX 5090", &["5090"], (0.0, 0.0), Reach::None, 48.0),
    plain("RTX 6000 Ada", &["6000", "ada"], (0.0, 0.0), Reach::None, 24.0),
    plain("RTX 4090", &["4090"], (0.0, 0.0), Reach::None, 24.0),
    plain("L40S", &["l40s"], (0.0, 0.0), Reach::None, 24.0),
    plain("L40", &["l40"], (0.0, 0.0), Reach::None, 24.0),
    plain("L4", &["l4"], (0.0, 0.0), Reach::None, 24.0),
    plain("A10", &["a10"], (0.0, 0.0), Reach::None, 24.0),
    plain("T4", &["t4"], (0.0, 0.0), Reach::None, 12.0),
];

impl Gpu {
    /// The model of a device name such as `NVIDIA H100 80GB HBM3` or `A100-SXM4-40GB`.
    pub fn from_name(name: &str) -> Option<&'static Self> {
        let lower = name.to_ascii_lowercase();
        let tokens: Vec<&str> =
            lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|t| !t.is_empty()).collect();
        GPUS.iter().find(|g| g.words.iter().all(|w| tokens.contains(w)))
    }

    /// Rate between the GPUs of one node that a ring may use, GB/s.
    pub fn ring_in_node(&self, gpus: usize) -> f64 {
        match self.reach {
            Reach::Node | Reach::Domain => self.nvlink_ring,
            Reach::Pair if gpus <= 2 => self.nvlink_ring,
            _ => self.pcie,
        }
    }

    /// All-reduce by the NVLink switch over that many GPUs, busbw in GB/s. NCCL uses at most as
    /// many heads as an 8-GPU board has, so more GPUs do not bring more.
    pub fn nvls(&self, gpus: usize) -> Option<f64> {
        let share = self.nvls_share?;
        let limit = |g: f64| self.nvlink_raw * 2.0 * (g - 1.0) / (g + 1.0) * share;
        (gpus >= 2).then(|| limit(gpus.min(8) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_drivers_and_tables() {
        for (name, want) in [
            ("NVIDIA H100 80GB HBM3", Some("H100")),
            ("NVIDIA H100 PCIe", Some("H100 PCIe")),
            ("H100 SXM", Some("H100")),
            ("NVIDIA A100-SXM4-80GB", Some("A100")),
            ("NVIDIA A100-PCIE-40GB", Some("A100 PCIe")),
            ("NVIDIA GB200", Some("GB200")),
            ("NVIDIA B200", Some("B200")),
            ("NVIDIA L40S", Some("L40S")),
            ("NVIDIA L4", Some("L4")),
            ("NVIDIA RTX PRO 6000 Blackwell Server Edition", Some("RTX PRO 6000")),
            ("NVIDIA H200 NVL", Some("H200 NVL")),
            ("Tesla T4", Some("T4")),
            ("VR200", None),
            ("", None),
        ] {
            assert_eq!(Gpu::from_name(name).map(|g| g.name), want, "{name}");
        }
    }

    #[test]
    fn models_of_one_node() {
        let nvls = |name: &str, g| Gpu::from_name(name).unwrap().nvls(g).unwrap();
        assert!((nvls("H100", 8) - 476.0).abs() < 0.5);
        assert!((nvls("B200", 8) - 932.0).abs() < 0.5);
        assert!((nvls("GB200", 72) - 932.0).abs() < 0.5);
        // the switch beats the ring from 5 GPUs on, as was measured
        assert!(nvls("H200", 4) < 370.0 && nvls("H200", 5) > 370.0);
    }
}
