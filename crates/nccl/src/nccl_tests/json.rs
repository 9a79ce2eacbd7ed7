//! The file of `-J` (nccl-tests 2.17.3 and later).
//!
//! Its pitfalls: `okay` is the text `"true"`, what is no number is the text `"nan"`, `nwrong` is null
//! where nothing was checked, and `env` holds the whole environment, secrets included: it is not
//! read.

use serde_json::Value;

use super::{Cell, RankLine, Run, TestRow};

/// Text that is no JSON file of nccl-tests.
#[derive(Debug, thiserror::Error)]
pub enum NotJson {
    /// No JSON at all.
    #[error("no JSON: line {line}, column {column}")]
    Syntax {
        /// Line from 1.
        line: usize,
        /// Column from 1.
        column: usize,
    },
    /// JSON of something else.
    #[error("JSON, but not of nccl-tests -J: it has no `results`")]
    Other,
}

/// Reads a file of `-J`.
pub fn read_json(text: &str) -> Result<Run, NotJson> {
    let value: Value = serde_json::from_str(text)
        .map_err(|e| NotJson::Syntax { line: e.line(), column: e.column() })?;
    let results = value.get("results").and_then(Value::as_array).ok_or(NotJson::Other)?;
    let devices = value.pointer("/config/devices").and_then(Value::as_array);
    let library = match value.get("nccl_version") {
        Some(Value::Number(n)) => n.as_u64().and_then(|n| u32::try_from(n).ok()),
        Some(Value::String(s)) => s.parse().ok(),
        _ => None,
    };
    let okay = |v: &Value| match v.get("okay") {
        Some(Value::Bool(b)) => Some(*b),
        Some(Value::String(s)) => Some(s == "true"),
        _ => None,
    };
    let bounds = value
        .get("out_of_bounds")
        .and_then(|v| Some((v.get("count")?.as_u64()?, okay(v).unwrap_or(true))));
    let average = value
        .get("average_bus_bandwidth")
        .and_then(|v| Some((number(v.get("bandwidth")?)?, okay(v))));
    let test = value
        .pointer("/args/0")
        .and_then(Value::as_str)
        .and_then(|path| path.rsplit('/').next())
        .filter(|name| name.ends_with("_perf"))
        .map(str::to_owned);
    Ok(Run {
        test,
        tests_version: None,
        library,
        ranks: devices.into_iter().flatten().filter_map(device).collect(),
        rows: results.iter().filter_map(row).collect(),
        out_of_bounds: bounds,
        average_busbw: average,
        errors: value
            .get("errors")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|e| e.as_str().map_or_else(|| e.to_string(), str::to_owned))
            .collect(),
        torn: 0,
        ended: value.get("end_time").is_some_and(|t| !t.is_null()),
    })
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => n.as_f64(),
        Value::String(s) if s.contains("nan") => Some(f64::NAN),
        Value::String(s) => s.parse().ok(),
        _ => None,
    }
}

fn device(value: &Value) -> Option<RankLine> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let id = value.get("device").and_then(Value::as_u64).unwrap_or(0);
    Some(RankLine {
        rank: value.get("rank")?.as_u64()?,
        pid: value.get("pid").and_then(Value::as_u64).unwrap_or(0),
        host: text("hostname").to_owned(),
        device: format!("{id} [{}] {}", text("device_hex"), text("device_info")),
    })
}

fn cell(value: Option<&Value>) -> Option<Cell> {
    let value = value.filter(|v| v.is_object())?;
    let figure = |name: &str| value.get(name).and_then(number);
    Some(Cell {
        time_us: figure("time").or_else(|| figure("cpu_time"))?,
        algbw: figure("alg_bw").unwrap_or(f64::NAN),
        busbw: figure("bus_bw").unwrap_or(f64::NAN),
        wrong: value.get("nwrong").and_then(Value::as_u64),
        error: None,
    })
}

fn row(value: &Value) -> Option<TestRow> {
    let word = |name: &str| value.get(name).and_then(Value::as_str);
    let root = match value.get("root") {
        Some(Value::String(s)) => s.parse().ok(),
        Some(Value::Number(n)) => n.as_i64(),
        _ => None,
    };
    Some(TestRow {
        line: 0,
        size: value.get("size")?.as_u64()?,
        count: value.get("count").and_then(Value::as_u64).unwrap_or(0),
        dtype: word("type").unwrap_or_default().to_owned(),
        redop: word("redop").filter(|r| *r != "none").map(str::to_owned),
        root: root.filter(|r| *r >= 0),
        out_of_place: cell(value.get("out_of_place")),
        in_place: cell(value.get("in_place")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_today() {
        let run = read_json(
            r#"{"version": 3, "args": ["./build/all_reduce_perf", "-b", "8"],
            "env": ["SECRET=abc"], "nccl_version": 22705, "end_time": "2026-01-01",
            "config": {"devices": [{"rank": 0, "pid": 7, "hostname": "a", "device": 0,
              "device_hex": "0000:1b:00", "device_info": "NVIDIA H100"}]},
            "results": [
              {"size": 8, "count": 2, "type": "float", "redop": "sum", "root": "-1",
               "out_of_place": {"time": 30.5, "alg_bw": 0.1, "bus_bw": "nan", "nwrong": null},
               "in_place": {"cpu_time": 3, "alg_bw": 1, "bus_bw": 2, "nwrong": 4}},
              {"size": 16, "count": 4, "type": "float", "root": "2", "out_of_place": null}],
            "out_of_bounds": {"count": 4, "okay": "false"},
            "average_bus_bandwidth": {"bandwidth": 1.5, "okay": "true"}, "errors": ["late"]}"#,
        )
        .unwrap();
        assert_eq!(run.test.as_deref(), Some("all_reduce_perf"));
        assert_eq!((run.rows.len(), run.ended, run.wrong()), (2, true, true));
        assert!(run.rows[0].out_of_place.unwrap().busbw.is_nan());
        assert_eq!(run.rows[0].in_place.unwrap().wrong, Some(4));
        assert_eq!((run.rows[1].root, run.rows[1].out_of_place), (Some(2), None));
        assert_eq!(run.average_busbw, Some((1.5, Some(true))));
        assert_eq!(run.ranks[0].device, "0 [0000:1b:00] NVIDIA H100");
        assert!(!format!("{run:?}").contains("abc"), "the environment is not kept");
    }

    #[test]
    fn what_it_is_not() {
        assert!(matches!(read_json("# table"), Err(NotJson::Syntax { line: 1, .. })));
        assert!(matches!(read_json("{}"), Err(NotJson::Other)));
        assert!(matches!(read_json("[1]"), Err(NotJson::Other)));
    }

    proptest::proptest! {
        #[test]
        fn total(text in "\\PC{0,200}") {
            let _ = read_json(&text);
        }
    }
}
