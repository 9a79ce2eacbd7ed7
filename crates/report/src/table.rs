//! nccl-tests' own table, so that existing readers read it: the columns of 2.13 and later, plain
//! decimals, every other line a comment.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ncclctl_findings::Evidence;
use ncclctl_findings::evidence::Point;
use ncclctl_nccl::Collective;

/// One row's key: the same size out of place and in place stand in one row.
type Row<'a> = (Option<&'a Point>, Option<&'a Point>);

/// The tables of all collectives, each as a run of nccl-tests of its own.
pub fn render(evidence: &Evidence) -> String {
    let mut out = String::new();
    let mut collectives: Vec<Collective> = Vec::new();
    for point in &evidence.series {
        if !collectives.contains(&point.collective) {
            collectives.push(point.collective);
        }
    }
    for collective in collectives {
        table(&mut out, evidence, collective);
    }
    out
}

fn table(out: &mut String, evidence: &Evidence, collective: Collective) {
    let points: Vec<&Point> =
        evidence.series.iter().filter(|p| p.collective == collective).collect();
    let sizes = points.iter().map(|p| p.size);
    let (least, most) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0));
    let checked = points.iter().any(|p| p.wrong.is_some());
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(out, "# ncclctl version {version} engine {}", evidence.engine);
    let _ = writeln!(out, "# Collective test starting: {collective}_perf");
    let _ = writeln!(
        out,
        "# nThread 1 nGpus 1 minBytes {least} maxBytes {most} validation: {}",
        u8::from(checked)
    );
    out.push_str("#\n# Using devices\n");
    for (index, rank) in evidence.ranks.iter().enumerate() {
        let host = evidence.hosts.get(rank.host).map_or("?", |host| host.name.as_str());
        let device = match &rank.gpu {
            Some(gpu) => gpu.clone(),
            None => {
                let names: Vec<&str> = rank.interfaces.iter().map(|i| i.name.as_str()).collect();
                format!("[cpu] {}", names.join(","))
            }
        };
        let device = if rank.gpu.is_some() { device } else { format!(" 0 {device}") };
        let _ = writeln!(
            out,
            "#  Rank {index:>2} Group  0 Pid {:>6} on {host:>10} device {device}",
            rank.pid
        );
    }
    out.push_str(
        "#\n\
         #                                                              out-of-place                       in-place          \n\
         #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n\
         #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       \n",
    );
    let mut busbw = Vec::new();
    for (out_of_place, in_place) in rows(&points) {
        let Some(point) = out_of_place.or(in_place) else { continue };
        let root = point.root.map_or(-1, |root| root as i64);
        let _ = write!(
            out,
            " {:>11}  {:>12}  {:>8}  {:>6}  {:>6}",
            point.size,
            point.count,
            point.dtype.name(),
            point.op.map_or("none", |op| op.name()),
            root
        );
        for half in [out_of_place, in_place] {
            // a half that was not run repeats nothing: readers expect 13 fields
            let _ = match half {
                Some(p) => write!(
                    out,
                    "  {:>7}  {:>6.2}  {:>6.2}  {:>5}",
                    time(p.time.mean_us),
                    p.algbw,
                    p.busbw,
                    p.wrong.map_or_else(|| "N/A".to_owned(), |wrong| wrong.to_string())
                ),
                None => write!(out, "  {:>7}  {:>6}  {:>6}  {:>5}", "0.00", "0.00", "0.00", "N/A"),
            };
            busbw.extend(half.map(|p| p.busbw));
        }
        out.push('\n');
    }
    let wrong: u64 = points.iter().filter_map(|p| p.wrong).sum();
    let word = if wrong == 0 { "OK" } else { "FAILED" };
    let _ = writeln!(out, "# Out of bounds values : {wrong} {word}");
    let average =
        if busbw.is_empty() { 0.0 } else { busbw.iter().sum::<f64>() / busbw.len() as f64 };
    let _ = writeln!(out, "# Avg bus bandwidth    : {average:.6}");
    out.push_str("#\n");
    let _ = writeln!(out, "# Collective test concluded: {collective}_perf");
}

/// Pairs out-of-place and in-place results of one size (and number of ranks, and cycle) in one row.
fn rows<'a>(points: &[&'a Point]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    let mut open: BTreeMap<(usize, u64, i32, i32, Option<usize>), usize> = BTreeMap::new();
    for point in points {
        let op = point.op.map_or(-1, |op| op as i32);
        let key = (point.ranks, point.size, point.dtype as i32, op, point.root);
        match (open.get(&key).copied(), point.in_place) {
            (Some(row), true) if rows[row].1.is_none() => rows[row].1 = Some(point),
            (Some(row), false) if rows[row].0.is_none() => rows[row].0 = Some(point),
            (_, in_place) => {
                open.insert(key, rows.len());
                rows.push(if in_place { (None, Some(point)) } else { (Some(point), None) });
            }
        }
    }
    rows
}

/// Microseconds with a point and no exponent, as short as it stays exact enough.
fn time(us: f64) -> String {
    if us < 100.0 { format!("{us:.2}") } else { format!("{us:.1}") }
}

#[cfg(test)]
pub(crate) mod tests {
    use ncclctl_findings::evidence::{ChosenInterface, Host, Rank, Timing};
    use ncclctl_nccl::{DataType, RedOp};

    use super::*;

    pub(crate) fn point(size: u64, in_place: bool, time_us: f64) -> Point {
        let algbw = size as f64 / time_us / 1e3;
        Point {
            collective: Collective::AllReduce,
            dtype: DataType::Float32,
            op: Some(RedOp::Sum),
            root: None,
            in_place,
            size,
            count: size / 4,
            ranks: 2,
            algorithm: "ring".to_owned(),
            protocol: None,
            time: Timing { mean_us: time_us, ..Timing::default() },
            algbw,
            busbw: algbw,
            earlier_busbw: Vec::new(),
            wrong: Some(0),
            wrong_ranks: vec![],
        }
    }

    pub(crate) fn evidence() -> Evidence {
        let rank = |host, pid| Rank {
            host,
            pid,
            interfaces: vec![ChosenInterface {
                name: "eth0".to_owned(),
                address: format!("198.18.1.{}", host + 1),
                rule: "automatic: everything but docker*, lo*, virbr*".to_owned(),
            }],
            ..Rank::default()
        };
        Evidence {
            engine: "tcp".to_owned(),
            hosts: ["h1", "h2"]
                .map(|name| Host { name: name.to_owned(), ..Host::default() })
                .into(),
            ranks: vec![rank(0, 101), rank(1, 17)],
            series: vec![
                point(8, false, 15.2),
                point(8, true, 15.4),
                point(1 << 20, false, 8700.0),
                point(1 << 20, true, 123_456.0),
            ],
            ..Evidence::default()
        }
    }

    #[test]
    fn the_table_is_nccl_tests_own() {
        insta::assert_snapshot!(render(&evidence()), @r"
        # ncclctl version 0.1.0 engine tcp
        # Collective test starting: all_reduce_perf
        # nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 validation: 1
        #
        # Using devices
        #  Rank  0 Group  0 Pid    101 on         h1 device  0 [cpu] eth0
        #  Rank  1 Group  0 Pid     17 on         h2 device  0 [cpu] eth0
        #
        #                                                              out-of-place                       in-place          
        #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
        #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       
                   8             2     float     sum      -1    15.20    0.00    0.00      0    15.40    0.00    0.00      0
             1048576        262144     float     sum      -1   8700.0    0.12    0.12      0  123456.0    0.01    0.01      0
        # Out of bounds values : 0 OK
        # Avg bus bandwidth    : 0.032516
        #
        # Collective test concluded: all_reduce_perf
        ");
    }

    #[test]
    fn every_row_has_thirteen_plain_fields() {
        let mut evidence = evidence();
        evidence.series.remove(1);
        let text = render(&evidence);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.starts_with(' '));
            let fields: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(fields.len(), 13, "{line}");
            assert!(fields[5].contains('.') && fields[5].parse::<f64>().is_ok(), "{line}");
        }
    }
}
