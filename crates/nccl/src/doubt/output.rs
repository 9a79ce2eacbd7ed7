//! Logging, debugging aids and the RAS service.

use std::net::IpAddr;

use super::{Doubt, Setting, Weight, Write};

/// Aids that are meant for one look, and cost time in every run.
const AIDS: [(&str, &str); 3] = [
    ("NCCL_RUN_DIAGNOSTICS", "every init runs the built-in diagnostics"),
    ("NCCL_RUN_RAS_DIAGNOSTICS", "every init runs the diagnostics of RAS"),
    ("NCCL_PROGRESS_COUNTERS", "every kernel writes progress counters"),
];

/// Logging and aids left on: `debug-output-left`.
pub fn debug_left(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if let Some((_, cost)) = AIDS.iter().find(|(name, _)| *name == s.name) {
        if s.number().is_some_and(|n| n != 0) {
            found.push(
                s.doubt(
                    "debug-output-left",
                    Weight::Warning,
                    format!("{} was left in place", s.shown()),
                    *cost,
                    format!("take {} out after debugging", s.name),
                )
                .writing(Write::Remove { safe: false }),
            );
        }
        return;
    }
    if s.name != "NCCL_DEBUG" {
        return;
    }
    let level = s.value.to_ascii_uppercase();
    if level == "TRACE" {
        found.push(
            s.doubt(
                "debug-output-left",
                Weight::Warning,
                "NCCL_DEBUG=TRACE",
                "a line for every call, on every rank: it slows the job and fills disks",
                "write NCCL_DEBUG=WARN",
            )
            .writing(Write::Value { value: "WARN".to_owned(), safe: true }),
        );
    } else if level == "INFO" && s.beside("NCCL_DEBUG_FILE").is_none() {
        found.push(s.doubt(
            "debug-output-left",
            Weight::Info,
            "NCCL_DEBUG=INFO without NCCL_DEBUG_FILE",
            "every rank writes its set-up, some hundred lines, into the program's own output; that \
             is harmless, and what a diagnosis needs",
            "in production write NCCL_DEBUG=WARN, or add NCCL_DEBUG_FILE=/tmp/nccl.%h.%p",
        ));
    }
}

/// RAS reachable from elsewhere: `ras-address-exposed`.
pub fn ras_address(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_RAS_ADDR" || s.value.is_empty() || s.open() {
        return;
    }
    let host = s.value.rsplit_once(':').map_or(s.value, |(host, _)| host);
    let host = host.trim_matches(['[', ']']);
    let local = host.is_empty()
        || host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if !local {
        found.push(
            s.doubt(
                "ras-address-exposed",
                Weight::Warning,
                format!("{} can be reached from other hosts", s.shown()),
                "RAS asks for no password, and from 2.31 it also changes the running job",
                "write NCCL_RAS_ADDR=localhost:28028, or unset it",
            )
            .writing(Write::Value { value: "localhost:28028".to_owned(), safe: false }),
        );
    }
}

/// One log file for all ranks: `debug-file-shared`.
pub fn file_shared(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_DEBUG_FILE" || s.value.is_empty() || s.open() {
        return;
    }
    // streams are shared by nature
    if s.value.contains("%p") || s.value.contains("%h") || s.value.starts_with("/dev/") {
        return;
    }
    if matches!(s.value, "stdout" | "stderr") {
        return;
    }
    found.push(s.doubt(
        "debug-file-shared",
        Weight::Info,
        format!("{} is one file for all ranks", s.shown()),
        "each rank truncates it when it opens it, so that lines of the others are lost",
        format!("write NCCL_DEBUG_FILE={}.%h.%p", s.value),
    ));
}

#[cfg(test)]
mod tests {
    use super::super::tests::rules;

    #[test]
    fn logging() {
        assert_eq!(rules(&[("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG_FILE", "/tmp/n.%h.%p")]), [""; 0]);
        assert_eq!(
            rules(&[("NCCL_DEBUG", "info"), ("NCCL_RUN_DIAGNOSTICS", "1")]),
            ["NCCL_DEBUG debug-output-left", "NCCL_RUN_DIAGNOSTICS debug-output-left"]
        );
        assert_eq!(
            rules(&[("NCCL_DEBUG", "WARN"), ("NCCL_DEBUG_FILE", "/tmp/n")]),
            ["NCCL_DEBUG_FILE debug-file-shared"]
        );
        assert_eq!(rules(&[("NCCL_RAS_ADDR", "[::1]:28028")]), [""; 0]);
        assert_eq!(
            rules(&[("NCCL_RAS_ADDR", "10.0.0.1:28028")]),
            ["NCCL_RAS_ADDR ras-address-exposed"]
        );
    }
}
