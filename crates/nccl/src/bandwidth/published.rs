//! Figures that were published for real platforms: `data/published-busbw.tsv`, with their sources.
//!
//! A figure measured on the very platform outranks the model. A platform is known by its shape:
//! GPU, nodes, GPUs per node, NICs and their rate.

use std::sync::LazyLock;

use super::gpu::Gpu;
use crate::collective::Collective;

const TABLE: &str = include_str!("../../data/published-busbw.tsv");

/// What stands behind a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Somebody ran it and published the output.
    Measured,
    /// Somebody said so.
    Claim,
    /// The least that a provider's own check accepts.
    Floor,
}

/// One row of the table. Fields are `None` where the source does not say, or gives a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Platform in the source's words.
    pub platform: &'static str,
    /// GPU in the source's words.
    pub gpu: &'static str,
    /// Nodes.
    pub nodes: Option<usize>,
    /// GPUs per node.
    pub gpus_per_node: Option<usize>,
    /// NICs per node.
    pub nics: Option<usize>,
    /// Rate of one NIC, Gbit/s.
    pub nic_gbit: Option<f64>,
    /// Collective.
    pub collective: Option<Collective>,
    /// Bytes; `None` where the figure is an average, or the size is not given.
    pub size: Option<u64>,
    /// Bus bandwidth, GB/s.
    pub busbw: Option<f64>,
    /// What stands behind it.
    pub kind: Kind,
    /// Remark of the source.
    pub note: &'static str,
    /// Repository and file, or thread.
    pub source: &'static str,
}

/// What was measured on platforms of one shape at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// Lowest figure, GB/s.
    pub low: f64,
    /// Highest figure, GB/s.
    pub high: f64,
    /// Platform of the highest.
    pub platform: &'static str,
}

/// All rows.
pub fn rows() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> =
        LazyLock::new(|| TABLE.lines().skip(1).filter_map(row).collect());
    &ROWS
}

fn row(line: &'static str) -> Option<Row> {
    let f: Vec<&'static str> = line.split('\t').collect();
    let at = |i: usize| f.get(i).copied().unwrap_or_default();
    let kind = match at(9) {
        "measured" => Kind::Measured,
        "claim" => Kind::Claim,
        "floor" => Kind::Floor,
        _ => return None,
    };
    Some(Row {
        platform: at(0),
        gpu: at(1),
        nodes: at(2).parse().ok(),
        gpus_per_node: at(3).parse().ok(),
        nics: at(4).parse().ok(),
        nic_gbit: at(5).parse().ok(),
        collective: at(6).parse().ok(),
        size: at(7).parse().ok(),
        busbw: at(8).parse().ok(),
        kind,
        note: at(10),
        source: at(11),
    })
}

/// The shape of a platform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape<'a> {
    /// GPU.
    pub gpu: &'a Gpu,
    /// Nodes.
    pub nodes: usize,
    /// GPUs per node.
    pub gpus_per_node: usize,
    /// NICs per node and their rate in Gbit/s; `None` inside one node.
    pub nics: Option<(usize, f64)>,
}

/// What was published for this shape at this size. Between two sizes of one platform the figure is
/// interpolated; above its largest size it stays; below its smallest nothing is said.
pub fn lookup(shape: Shape<'_>, collective: Collective, size: u64) -> Option<Range> {
    let fits = |r: &&Row| {
        r.kind == Kind::Measured
            && r.collective == Some(collective)
            && r.nodes == Some(shape.nodes)
            && r.gpus_per_node == Some(shape.gpus_per_node)
            && r.nics.zip(r.nic_gbit) == shape.nics
            && Gpu::from_name(r.gpu).is_some_and(|g| g == shape.gpu)
    };
    let mut platforms: Vec<&'static str> = Vec::new();
    for r in rows().iter().filter(fits) {
        if !platforms.contains(&r.platform) {
            platforms.push(r.platform);
        }
    }
    let mut range: Option<Range> = None;
    for platform in platforms {
        let mut points: Vec<(u64, f64)> = rows()
            .iter()
            .filter(fits)
            .filter(|r| r.platform == platform)
            .filter_map(|r| Some((r.size?, r.busbw?)))
            .collect();
        points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (Some(low), Some(high)) = (at(&points, size, false), at(&points, size, true)) else {
            continue;
        };
        range = Some(match range {
            None => Range { low, high, platform },
            Some(r) => Range {
                low: r.low.min(low),
                high: r.high.max(high),
                platform: if high > r.high { platform } else { r.platform },
            },
        });
    }
    range
}

/// The figure at a size; where one size has several (another algorithm was forced), the highest or
/// the lowest of them.
fn at(points: &[(u64, f64)], size: u64, highest: bool) -> Option<f64> {
    let mut curve: Vec<(u64, f64)> = Vec::new();
    for &(s, b) in points {
        match curve.last_mut() {
            Some(last) if last.0 == s => {
                if highest {
                    last.1 = b;
                }
            }
            _ => curve.push((s, b)),
        }
    }
    let after = curve.iter().position(|p| p.0 >= size);
    match after {
        None => curve.last().map(|p| p.1),
        Some(i) if curve[i].0 == size => Some(curve[i].1),
        Some(0) => None,
        Some(i) => {
            let (a, b) = (curve[i - 1], curve[i]);
            let x = (size as f64 / a.0 as f64).ln() / (b.0 as f64 / a.0 as f64).ln();
            Some(a.1 + (b.1 - a.1) * x)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read() {
        assert_eq!(rows().len(), TABLE.lines().count() - 1);
        assert!(rows().iter().all(|r| r.collective.is_some() && !r.source.is_empty()));
        let measured = rows().iter().filter(|r| r.kind == Kind::Measured);
        assert!(measured.clone().count() > 100 && measured.into_iter().all(|r| r.busbw.is_some()));
    }

    #[test]
    fn a_platform_is_found_by_shape_and_size() {
        let gpu = Gpu::from_name("NVIDIA H100 80GB HBM3").unwrap();
        let shape = Shape { gpu, nodes: 2, gpus_per_node: 8, nics: Some((32, 100.0)) };
        let r = lookup(shape, Collective::AllReduce, 1 << 34).unwrap();
        assert!((r.high - 489.0).abs() < 0.1, "{r:?}");
        // two stacks were published, far apart
        let r = lookup(shape, Collective::AllReduce, 1 << 28).unwrap();
        assert!((r.low - 167.17).abs() < 0.1 && (r.high - 342.81).abs() < 0.1, "{r:?}");
        assert!(lookup(shape, Collective::AllReduce, 1 << 10).is_none());
        let other = Shape { nics: Some((8, 400.0)), ..shape };
        assert!(lookup(other, Collective::AllReduce, 1 << 34).is_none());
    }
}
