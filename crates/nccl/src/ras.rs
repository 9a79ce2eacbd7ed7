//! Reports of NCCL's RAS service: text and JSON of `ncclras`, 2.24 to 2.32.
//!
//! Source: src/ras/client_support.cc.

use serde_json::Value;

/// What a report says that matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Counts of launched operations: operation, how many ranks reached it.
    pub launched: Vec<(u64, u64)>,
    /// Ranks that are named behind the others: rank and where it runs.
    pub lagging: Vec<String>,
    /// Processes that do not answer, or whose data is missing.
    pub missing: Vec<String>,
    /// Lines of the errors and warnings sections.
    pub complaints: Vec<String>,
    /// Every communicator runs and all is well.
    pub all_ok: bool,
}

/// Whether a text is a report.
pub fn is_report(head: &str) -> bool {
    (head.contains("Job summary") && head.contains("Communicators..."))
        || (head.contains("\"communicators_count\"") && head.contains("\"nccl_version\""))
}

/// Reads the text form.
pub fn read_text(text: &str) -> Report {
    let mut report = Report::default();
    let mut section = "";
    let mut behind = false;
    let mut smallest: Option<u64> = None;
    for line in text.lines().map(str::trim) {
        match line {
            "Errors" | "Warnings" => section = line,
            _ => {}
        }
        if section.is_empty() {
            report.all_ok |= line.contains("RUNNING") && line.ends_with("OK");
            continue;
        }
        if line.is_empty() || line.starts_with('=') || line == section {
            continue;
        }
        if report.complaints.len() < 256 {
            report.complaints.push(line.to_owned());
        }
        if let Some((ranks, operation)) = launched(line) {
            report.launched.push((operation, ranks));
            smallest = Some(smallest.map_or(operation, |s| s.min(operation)));
            behind = smallest == Some(operation);
            continue;
        }
        let low = line.to_ascii_lowercase();
        if low.starts_with("rank ") && behind {
            report.lagging.push(line.to_owned());
        }
        if low.starts_with("process ")
            || low.contains("missing")
            || low.contains("considered dead")
            || low.contains("unresponsive")
        {
            report.missing.push(line.to_owned());
        }
    }
    report.all_ok &= report.complaints.is_empty();
    report
}

/// `26 ranks have launched up to operation 6650`
fn launched(line: &str) -> Option<(u64, u64)> {
    let at = line.find("launched up to operation ")?;
    let ranks = line.split(' ').next()?.parse().ok()?;
    let rest = &line[at + "launched up to operation ".len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((ranks, rest[..end].parse().ok()?))
}

/// Reads the JSON form.
pub fn read_json(value: &Value) -> Report {
    let mut report = Report { all_ok: true, ..Report::default() };
    let comms = value.get("communicators").and_then(Value::as_array);
    for comm in comms.into_iter().flatten() {
        let ranks = comm.get("ranks").and_then(Value::as_array);
        let mut counts: Vec<(u64, String)> = Vec::new();
        for rank in ranks.into_iter().flatten() {
            let who = who(rank);
            let total: u64 = rank
                .get("collective_counts")
                .and_then(Value::as_object)
                .map_or(0, |c| c.values().filter_map(Value::as_u64).sum());
            counts.push((total, who.clone()));
            let failed =
                rank.pointer("/status/async_error").and_then(Value::as_i64).is_some_and(|e| e != 0);
            if failed {
                report.complaints.push(format!("{who} has an asynchronous error"));
            }
        }
        if let (Some(least), Some(most)) =
            (counts.iter().map(|c| c.0).min(), counts.iter().map(|c| c.0).max())
            && least < most
        {
            for operation in [most, least] {
                let ranks = counts.iter().filter(|c| c.0 == operation).count() as u64;
                report.launched.push((operation, ranks));
            }
            report.lagging.extend(counts.into_iter().filter(|c| c.0 == least).map(|c| c.1));
        }
        let missing = comm.get("missing_ranks").and_then(Value::as_array);
        report.missing.extend(missing.into_iter().flatten().map(who));
    }
    report.all_ok = report.lagging.is_empty()
        && report.missing.is_empty()
        && report.complaints.is_empty()
        && comms.is_some();
    report
}

fn who(rank: &Value) -> String {
    let field = |key: &str| match rank.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "?".to_owned(),
    };
    format!("rank {} (process {} on {})", field("rank"), field("pid"), field("host"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
NCCL version 2.24.3 compiled with CUDA 12.6

Job summary
===========
  Nodes  Processes         GPUs  Processes     GPUs
      4          8            1         32       32

Communicators... (0.00s)
=============
    0         1         4         8        32        32   RUNNING  MISMATCH

Warnings
========

#0-0 (5d9b) MISMATCH
  Communicator ranks have different collective operation counts
  26 ranks have launched up to operation 6650
  6 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210
";

    #[test]
    fn names_the_lagging_ranks() {
        assert!(is_report(TEXT));
        let report = read_text(TEXT);
        assert_eq!(report.launched, [(6650, 26), (6649, 6)]);
        assert_eq!(report.lagging.len(), 2);
        assert!(!report.all_ok);
    }

    #[test]
    fn the_same_from_json() {
        let value = serde_json::json!({"nccl_version": "2.28.9", "communicators_count": 1,
            "communicators": [{"hash": "0x1", "size": 3, "ranks": [
                {"rank": 0, "host": "10.0.0.1", "pid": 1, "collective_counts": {"AllReduce": 9}},
                {"rank": 1, "host": "10.0.0.2", "pid": 2, "collective_counts": {"AllReduce": 8}}],
                "missing_ranks": [{"rank": 2, "host": "10.0.0.3", "pid": 3}]}]});
        let report = read_json(&value);
        assert_eq!(report.launched, [(9, 1), (8, 1)]);
        assert_eq!(report.lagging, ["rank 1 (process 2 on 10.0.0.2)"]);
        assert_eq!(report.missing, ["rank 2 (process 3 on 10.0.0.3)"]);
    }
}
