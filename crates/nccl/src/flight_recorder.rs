//! Dumps of PyTorch's Flight Recorder: what each rank had called, and what it was waiting in.
//!
//! Source: torch/csrc/distributed/c10d/FlightRecorder.hpp, versions 2.0 to 2.10 of the format.

use serde_json::Value;

use crate::pickle::{self, PickleError};

/// The dump of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump {
    /// Rank, from the file's name (`nccl_trace_rank_3`).
    pub rank: Option<u32>,
    /// Groups: name, description, global ranks.
    pub groups: Vec<Group>,
    /// Calls, oldest first.
    pub calls: Vec<Call>,
}

/// A process group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Name.
    pub name: String,
    /// Description, like `default_pg`.
    pub description: String,
    /// Global ranks in it.
    pub ranks: Vec<u32>,
}

/// One call of a collective or of a send or receive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Name of the group.
    pub group: String,
    /// Number of the collective in its group.
    pub sequence: u64,
    /// Operation, like `all_reduce`.
    pub operation: String,
    /// Sizes of the inputs, as printed.
    pub sizes: String,
    /// Element types of the inputs, as printed.
    pub types: String,
    /// `scheduled`, `started` or `completed`.
    pub state: String,
    /// A send or receive: numbered apart.
    pub point_to_point: bool,
}

/// Why a dump could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The pickle was refused.
    #[error("no safe pickle")]
    Pickle(#[from] PickleError),
    /// Other data.
    #[error("no flight recorder dump: it has no `entries`")]
    Other,
}

/// Whether a JSON text looks like a dump.
pub fn is_json_dump(head: &str) -> bool {
    head.trim_start().starts_with('{')
        && (head.contains("\"entries\"") || head.contains("\"pg_config\""))
        && (head.contains("\"version\"") || head.contains("collective_seq_id"))
}

/// Reads a pickled dump.
pub fn read_pickle(name: &str, bytes: &[u8]) -> Result<Dump, DumpError> {
    read_value(name, &pickle::read(bytes)?)
}

/// Reads a dump's data; the rank is the last number of the file's name.
pub fn read_value(name: &str, value: &Value) -> Result<Dump, DumpError> {
    let entries = value.get("entries").and_then(Value::as_array).ok_or(DumpError::Other)?;
    let mut dump = Dump { rank: rank_of(name), ..Dump::default() };
    if let Some(groups) = value.get("pg_config").and_then(Value::as_object) {
        for (name, group) in groups {
            let ranks = match group.get("ranks") {
                Some(Value::String(text)) => numbers(text),
                Some(Value::Array(items)) => items.iter().filter_map(number).collect(),
                _ => Vec::new(),
            };
            dump.groups.push(Group {
                name: name.clone(),
                description: text(group.get("desc")),
                ranks,
            });
        }
    }
    dump.calls = entries.iter().map(call).collect();
    Ok(dump)
}

fn call(entry: &Value) -> Call {
    let group = match entry.get("process_group") {
        Some(Value::Array(pair)) => text(pair.first()),
        _ => text(entry.get("pg_id")),
    };
    let name = text(entry.get("profiling_name"));
    let operation = name.rsplit(':').next().unwrap_or(&name);
    let operation = operation.split(' ').next().unwrap_or(operation).to_owned();
    let sequence =
        ["collective_seq_id", "seq_id"].iter().find_map(|k| entry.get(*k)?.as_u64()).unwrap_or(0);
    Call {
        group,
        sequence,
        operation,
        sizes: text(entry.get("input_sizes")),
        types: text(entry.get("input_dtypes")),
        state: text(entry.get("state")),
        point_to_point: entry.get("is_p2p").and_then(Value::as_bool).unwrap_or(false),
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn number(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

fn numbers(text: &str) -> Vec<u32> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

fn rank_of(name: &str) -> Option<u32> {
    let stem = name.trim_end_matches(|c: char| !c.is_ascii_digit());
    let digits = stem.bytes().rev().take_while(u8::is_ascii_digit).count();
    stem[stem.len() - digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_dump() {
        let value = serde_json::json!({
            "version": "2.9",
            "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
            "entries": [{
                "process_group": ["0", "default_pg"], "collective_seq_id": 7, "p2p_seq_id": 0,
                "profiling_name": "nccl:all_reduce", "input_sizes": [[1024]],
                "input_dtypes": ["Float"], "state": "started", "is_p2p": false
            }]
        });
        let dump = read_value("/tmp/nccl_trace_rank_3.json", &value).unwrap();
        assert_eq!(dump.rank, Some(3));
        assert_eq!(dump.groups[0].ranks, [0, 1]);
        assert_eq!((dump.calls[0].sequence, dump.calls[0].operation.as_str()), (7, "all_reduce"));
        assert!(read_value("x", &serde_json::json!({})).is_err());
        assert!(is_json_dump(&value.to_string()));
    }
}
