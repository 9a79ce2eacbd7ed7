//! One line a point, for spreadsheets.

use std::fmt::Write as _;

use ncclctl_findings::Evidence;

/// Header and rows. Numbers are plain; no field ever holds a comma or a quote.
pub fn render(evidence: &Evidence) -> String {
    let mut out = String::from(
        "collective,ranks,size_bytes,count,type,redop,root,in_place,algorithm,time_us,ci95_us,min_us,max_us,operations,algbw_gbps,busbw_gbps,wrong\n",
    );
    for p in &evidence.series {
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{:.3},{:.3},{:.3},{:.3},{},{:.6},{:.6},{}",
            p.collective,
            p.ranks,
            p.size,
            p.count,
            p.dtype,
            p.op.map_or("none", |op| op.name()),
            p.root.map_or_else(|| "-1".to_owned(), |root| root.to_string()),
            p.in_place,
            p.algorithm.replace([',', '"'], " "),
            p.time.mean_us,
            p.time.ci95_us,
            p.time.min_us,
            p.time.max_us,
            p.time.operations,
            p.algbw,
            p.busbw,
            p.wrong.map_or_else(String::new, |wrong| wrong.to_string()),
        );
    }
    out
}
