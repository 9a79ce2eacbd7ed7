//! Takes in what a user hands over, recognised by content, and joins it to an [`Incident`].
//!
//! Reading files is the caller's work: this takes names and bytes. A log is fed in pieces and never
//! held whole; everything else is small and comes at once.

use ncclctl_facts::{Facts, pasted};
use ncclctl_nccl::flight_recorder::{self, Dump};
use ncclctl_nccl::log::Reader;
use ncclctl_nccl::ras::{self, Report};
use ncclctl_nccl::{nccl_tests, pickle};

use serde::Deserialize as _;

use crate::documents::Spot;
use crate::documents::gather::{self, Gather};
use crate::incident::{Incident, TestRun};

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A log, or anything else that is read line by line.
    Log,
    /// Something that is only understood as a whole: a dump, a report, a JSON result.
    Whole,
}

/// Gathers inputs.
#[derive(Debug, Default)]
pub struct Intake {
    reader: Reader,
    runs: Vec<TestRun>,
    dumps: Vec<(String, Dump)>,
    reports: Vec<(String, Report)>,
    nodes: Vec<Facts>,
    gather: Gather,
    unreadable: Vec<(String, String)>,
}

/// Bytes that are enough to recognise an input.
pub const HEAD: usize = 1 << 16;

/// What an input is, by its first bytes.
pub fn recognise(name: &str, head: &[u8]) -> Kind {
    let head = &head[..head.len().min(HEAD)];
    if pickle::is_pickle(head) {
        return Kind::Whole;
    }
    let text = String::from_utf8_lossy(head);
    let begins = text.trim_start();
    if pasted::recognise(&text) {
        return Kind::Whole;
    }
    // JSON lines of a log collector begin alike: only what is known is taken whole
    let known = begins.starts_with('{')
        && (flight_recorder::is_json_dump(begins)
            || ras::is_report(begins)
            || begins.contains("\"ncclctl/facts/")
            || begins.contains("\"out_of_bounds\"")
            || (begins.contains("\"results\"") && begins.contains("\"config\"")));
    let document = gather::recognise(name, &text).is_some();
    if known || document || ras::is_report(begins) { Kind::Whole } else { Kind::Log }
}

/// Whether a manifest came back from the cluster with a pod's state, or is a list of events.
fn has_state(text: &str) -> bool {
    [
        "containerStatuses",
        "PodScheduled",
        "kind: Event",
        "\"kind\": \"Event\"",
        "\"kind\":\"Event\"",
    ]
    .iter()
    .any(|mark| text.contains(mark))
}

impl Intake {
    /// Begins an input that is read in pieces.
    pub fn begin(&mut self, name: &str) {
        self.reader.source(name);
    }

    /// The next piece of it.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.reader.feed(bytes);
    }

    /// A whole input.
    pub fn add(&mut self, name: &str, bytes: &[u8]) {
        if recognise(name, bytes) == Kind::Whole && self.whole(name, bytes) {
            return;
        }
        self.begin(name);
        self.feed(bytes);
    }

    /// Reads what is only understood as a whole; false where it is nothing known after all.
    fn whole(&mut self, name: &str, bytes: &[u8]) -> bool {
        if pickle::is_pickle(bytes) {
            match flight_recorder::read_pickle(name, bytes) {
                Ok(dump) => self.dumps.push((name.to_owned(), dump)),
                Err(error) => {
                    let why = std::error::Error::source(&error)
                        .map_or_else(|| error.to_string(), |s| format!("{error}: {s}"));
                    self.unreadable.push((name.to_owned(), why));
                }
            }
            return true;
        }
        let text = String::from_utf8_lossy(bytes);
        if pasted::recognise(&text) {
            self.nodes.extend(pasted::read(&text));
            // its lines may be signals to the log's rules too
            return false;
        }
        if self.gather.add(name, text.as_ref()).is_some() {
            // what Kubernetes says of a pod's state are lines for the log's rules
            return !has_state(&text);
        }
        if !text.trim_start().starts_with('{') {
            self.reports.push((name.to_owned(), ras::read_text(&text)));
            return true;
        }
        let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) else { return false };
        let facts = value.get("facts").and_then(|f| Vec::<Facts>::deserialize(f).ok());
        if let Some(facts) = facts {
            self.nodes.extend(facts);
        } else if value.get("communicators").is_some() {
            self.reports.push((name.to_owned(), ras::read_json(&value)));
        } else if let Ok(dump) = flight_recorder::read_value(name, &value) {
            self.dumps.push((name.to_owned(), dump));
        } else if let Ok(run) = nccl_tests::read_json(&text) {
            self.runs.push(TestRun { run, table: None, source: name.to_owned() });
        } else {
            return false;
        }
        true
    }

    /// Everything joined.
    pub fn finish(self) -> Incident {
        let mut incident = Incident::of_log(self.reader.finish());
        incident.runs.extend(self.runs);
        incident.dumps = self.dumps;
        incident.reports = self.reports;
        incident.nodes = self.nodes;
        incident.unreadable = self.unreadable;
        let (documents, unread) = self.gather.finish();
        for broken in unread {
            let Some(file) = documents.files.get(broken.file) else { continue };
            let at = Spot { file: broken.file, span: broken.at..broken.at };
            let (line, column, _) = at.line(&file.text);
            let why = format!("line {line}, column {column}: {}", broken.why);
            incident.unreadable.push((file.name.clone(), why));
        }
        incident.documents = documents;
        incident
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::diagnose;

    fn rules(inputs: &[(&str, &[u8])]) -> Vec<String> {
        let mut intake = Intake::default();
        for (name, bytes) in inputs {
            intake.add(name, bytes);
        }
        diagnose(&intake.finish()).findings.into_iter().map(|f| f.rule).collect()
    }

    fn dump(rank: u32, sequence: u32, operation: &str, state: &str) -> (String, Vec<u8>) {
        let value = serde_json::json!({
            "version": "2.9",
            "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
            "entries": [{
                "process_group": ["0", "default_pg"], "collective_seq_id": sequence,
                "profiling_name": format!("nccl:{operation}"), "input_sizes": [[1024]],
                "input_dtypes": ["Float"], "state": state, "is_p2p": false
            }]
        });
        (format!("nccl_trace_rank_{rank}"), value.to_string().into_bytes())
    }

    #[test]
    fn dumps_name_the_rank_behind() {
        let (a, b) = (dump(0, 9, "all_reduce", "started"), dump(1, 7, "all_reduce", "completed"));
        assert_eq!(rules(&[(&a.0, &a.1), (&b.0, &b.1)]), ["rank-behind"]);
    }

    #[test]
    fn dumps_show_a_mismatch() {
        let (a, b) = (dump(0, 9, "all_reduce", "started"), dump(1, 9, "all_gather", "started"));
        assert_eq!(rules(&[(&a.0, &a.1), (&b.0, &b.1)]), ["collective-mismatch"]);
    }

    #[test]
    fn json_lines_of_a_collector_are_a_log() {
        let line = br#"{"log":"h:1:2 [0] NCCL INFO Using network IB\n","stream":"stderr"}"#;
        assert_eq!(recognise("x", line), Kind::Log);
        assert_eq!(recognise("x", b"\x80\x02}q\x00."), Kind::Whole);
    }

    #[test]
    fn a_pickle_with_code_is_refused_and_told() {
        let mut intake = Intake::default();
        intake.add("nccl_trace_rank_0", b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.");
        let incident = intake.finish();
        assert!(incident.unreadable[0].1.contains("os.system"), "{:?}", incident.unreadable);
    }
}
