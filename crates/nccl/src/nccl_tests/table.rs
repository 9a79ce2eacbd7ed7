//! The printed table, possibly with other lines between its own.

use super::line::{self, Line};
use super::{RankLine, Run};

/// Reads all tables of a text: one [`Run`] each. With `-N` cycles the table repeats; each repetition
/// is a run of its own.
pub fn read_table(text: &str) -> Vec<Run> {
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        reader.line(line, index as u64 + 1);
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    done: Vec<Run>,
    run: Run,
    /// The header names an `error` column: before 2.13.0.
    errors: bool,
    /// A header was seen, so that lines of figures are rows.
    header: bool,
}

/// The comment in a line that may carry a launcher's prefix such as `[1,0]<stdout>:` or `0: `.
fn comment(line: &str) -> Option<&str> {
    let at = line.find('#')?;
    let before = line[..at].trim();
    (before.is_empty() || (before.len() <= 40 && (before.ends_with(':') || before.ends_with('|'))))
        .then(|| line[at + 1..].trim())
}

/// The row in a line that may carry such a prefix.
fn unprefixed(line: &str) -> &str {
    match line.split_once([':', '|']) {
        Some((before, rest))
            if before.len() <= 40
                && rest.trim_start().starts_with(|c: char| c.is_ascii_digit()) =>
        {
            rest
        }
        _ => line,
    }
}

impl Reader {
    fn line(&mut self, text: &str, at: u64) {
        if let Some(comment) = comment(text) {
            self.comment(comment);
            return;
        }
        if !self.header {
            return;
        }
        match line::read(text, at, self.errors) {
            Line::Row(row) => self.run.rows.push(row),
            Line::Torn => self.run.torn += 1,
            Line::Other => match line::read(unprefixed(text), at, self.errors) {
                Line::Row(row) => self.run.rows.push(row),
                Line::Torn => self.run.torn += 1,
                Line::Other => {}
            },
        }
    }

    fn comment(&mut self, text: &str) {
        if let Some(rest) = text.strip_prefix("nccl-tests version ") {
            self.next();
            let mut words = rest.split_ascii_whitespace();
            self.run.tests_version = words.next().map(str::to_owned);
            self.run.library =
                words.find_map(|w| w.strip_prefix("nccl-library=")).and_then(|v| v.parse().ok());
        } else if let Some(name) = text.strip_prefix("Collective test starting:") {
            if self.run.test.is_some() || self.run.ended {
                self.next();
            }
            self.run.test = Some(name.trim().to_owned());
        } else if text.starts_with("nThread") {
            if self.header {
                self.next();
            }
        } else if let Some(rest) = text.strip_prefix("Rank") {
            self.run.ranks.extend(rank(rest));
        } else if text.starts_with("size") && text.contains("count") && text.contains("busbw") {
            if self.header && (self.run.ended || !self.run.rows.is_empty()) {
                // a further cycle of the same run
                let again = Run {
                    test: self.run.test.clone(),
                    tests_version: self.run.tests_version.clone(),
                    library: self.run.library,
                    ranks: self.run.ranks.clone(),
                    ..Run::default()
                };
                self.next();
                self.run = again;
            }
            self.header = true;
            self.errors = text.contains("error");
        } else if let Some(rest) = text.strip_prefix("Out of bounds values") {
            let mut words = rest.trim_start_matches([' ', ':']).split_ascii_whitespace();
            if let Some(count) = words.next().and_then(|w| w.parse().ok()) {
                self.run.out_of_bounds = Some((count, words.next() != Some("FAILED")));
            }
        } else if let Some(rest) = text.strip_prefix("Avg bus bandwidth") {
            let mut words = rest.trim_start_matches([' ', ':']).split_ascii_whitespace();
            if let Some(value) = words.next().and_then(|w| w.parse().ok()) {
                self.run.average_busbw = Some((value, words.next().map(|w| w == "OK")));
                self.run.ended = true;
            }
        } else if let Some(rest) = text.strip_prefix("error:") {
            self.run.errors.push(rest.trim().to_owned());
        }
    }

    /// Closes the run at hand, if it holds anything of a table.
    fn next(&mut self) {
        let run = std::mem::take(&mut self.run);
        if self.header {
            self.done.push(run);
        } else if run.test.is_some() || run.tests_version.is_some() {
            // the lines before a table belong to it
            self.run = run;
        }
        self.header = false;
        self.errors = false;
    }

    fn finish(mut self) -> Vec<Run> {
        if self.header {
            self.done.push(std::mem::take(&mut self.run));
        }
        self.done
    }
}

/// ` 0 Group 0 Pid 123 on HOST device 0 [0000:01:00] NAME`.
fn rank(text: &str) -> Option<RankLine> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let after = |name: &str| {
        let at = words.iter().position(|w| *w == name)?;
        words.get(at + 1).copied()
    };
    let device = text.find(" device ").map_or("", |i| text[i + 8..].trim());
    Some(RankLine {
        rank: words.first()?.parse().ok()?,
        pid: after("Pid")?.parse().ok()?,
        host: after("on")?.to_owned(),
        device: device.split_ascii_whitespace().collect::<Vec<_>>().join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "\
# nccl-tests version 2.17.6 nccl-headers=22703 nccl-library=22705
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 8 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   4711 on     gpu-a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4711 on     gpu-a device  1 [0000:43:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    30.61    0.00    0.00      0    30.12    0.00    0.00      0
gpu-a:4711:4720 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
     1048576        262144     float     sum      -1  1.2e+03   26.21   45.87      0    39.93   26.26   45.95    N/A
        1024           256     float     sum
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 22.9566
#
# Collective test concluded: all_reduce_perf
";

    #[test]
    fn the_table_of_today() {
        let runs = read_table(NEW);
        assert_eq!(runs.len(), 1);
        let run = &runs[0];
        assert_eq!(run.test.as_deref(), Some("all_reduce_perf"));
        assert_eq!(run.collective(), Some(crate::Collective::AllReduce));
        assert_eq!((run.tests_version.as_deref(), run.library), (Some("2.17.6"), Some(22705)));
        assert_eq!(run.ranks.len(), 2);
        assert_eq!(run.ranks[1].device, "1 [0000:43:00] NVIDIA H100 80GB HBM3");
        assert_eq!((run.rows.len(), run.torn, run.ended), (2, 1, true));
        let row = &run.rows[1];
        assert_eq!(
            (row.size, row.count, row.redop.as_deref(), row.root),
            (1048576, 262144, Some("sum"), None)
        );
        let cell = row.out_of_place.unwrap();
        assert!((cell.time_us - 1200.0).abs() < 1e-9 && (cell.busbw - 45.87).abs() < 1e-9);
        assert_eq!((cell.wrong, row.in_place.unwrap().wrong), (Some(0), None));
        assert_eq!(run.average_busbw, Some((22.9566, None)));
        assert!(!run.wrong());
    }

    #[test]
    fn tables_of_old_versions() {
        let gather = "\
# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 1048576(bytes) warmup iters: 5 iters: 20 validation: 1
#                                             out-of-place                       in-place
#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)             (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        131072   float    95.21   11.01    5.51  0e+00    94.80   11.06    5.53  2e-07
# Out of bounds values : 1 FAILED
# Avg bus bandwidth    : 5.52 FAILED
";
        let runs = read_table(gather);
        assert_eq!(runs[0].rows.len(), 1);
        let cell = runs[0].rows[0].in_place.unwrap();
        assert_eq!((cell.wrong, cell.error), (None, Some(2e-07)));
        assert!(runs[0].wrong());
        assert_eq!(runs[0].average_busbw, Some((5.52, Some(false))));
        let reduce = "\
#       size         count    type   redop    root     time   algbw   busbw  error     time   algbw   busbw  error
        1024           256   float     sum       0    11.61    0.09    0.09  0e+00    11.20    0.09    0.09  0e+00
";
        assert_eq!(read_table(reduce)[0].rows[0].root, Some(0));
        let broadcast = "\
#       size         count    type    root     time   algbw   busbw  error     time   algbw   busbw  error
        1024           256   float       3    11.61    0.09    0.09  0e+00    11.20    0.09    0.09  0e+00
";
        assert_eq!(read_table(broadcast)[0].rows[0].root, Some(3));
    }

    #[test]
    fn extra_columns_cycles_and_prefixes() {
        let header = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n";
        let stamp = format!(
            "{header} 8 2 float none -1 1.00 2.00 3.00 0 4.00 5.00 6.00 N/A 2026-01-02 03:04:05\n"
        );
        let row = &read_table(&stamp)[0].rows[0];
        assert!((row.in_place.unwrap().busbw - 6.0).abs() < 1e-9 && row.redop.is_none());
        let statistics = format!(
            "{header} 8 2 float sum -1 1.00 2.00 3.00 0 1 2 3 4 5.00 6.00 7.00 1 1 2 3 4\n"
        );
        let row = &read_table(&statistics)[0].rows[0];
        assert_eq!(row.in_place.unwrap().wrong, Some(1));
        assert!((row.in_place.unwrap().time_us - 5.0).abs() < 1e-9);
        let twice = format!(
            "{header} 8 2 float sum -1 1 2 3 0 1 2 3 0\n# Avg bus bandwidth : 3\n{header} 8 2 float sum -1 1 2 3 0 1 2 3 0\n"
        );
        assert_eq!(
            read_table(&twice).iter().map(|r| (r.rows.len(), r.ended)).collect::<Vec<_>>(),
            [(1, true), (1, false)]
        );
        let prefixed: String = twice.lines().map(|l| format!("[1,0]<stdout>:{l}\n")).collect();
        assert_eq!(read_table(&prefixed).iter().map(|r| r.rows.len()).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn no_table_is_no_run() {
        assert!(read_table("").is_empty());
        assert!(read_table("1 2 float sum -1 1 2 3 0 1 2 3 0\n# a comment\n").is_empty());
    }

    proptest::proptest! {
        #[test]
        fn total(text in "\\PC{0,400}") {
            let _ = read_table(&text);
        }

        #[test]
        fn total_on_what_looks_like_a_table(
            lines in proptest::collection::vec("(#|# size count busbw| )?[0-9a-zN/# .:+|-]{0,60}", 0..12)
        ) {
            let runs = read_table(&lines.join("\n"));
            let rows: usize = runs.iter().map(|r| r.rows.len()).sum();
            proptest::prop_assert!(rows <= lines.len());
        }

        #[test]
        fn cut_anywhere(at in 0..NEW.len()) {
            let runs = read_table(&NEW[..at]);
            proptest::prop_assert!(runs.len() <= 1);
            proptest::prop_assert!(runs.iter().all(|r| r.rows.len() <= 2));
        }
    }
}
