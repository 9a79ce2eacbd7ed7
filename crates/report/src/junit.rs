//! JUnit XML for CI: one test case for the verdict, one for each point's data.

use std::fmt::Write as _;

use ncclctl_findings::Evidence;
use ncclctl_findings::verdict::{Judgement, Outcome};
use ncclctl_nccl::size::Short;

use crate::verdict::{Style, finding, word};

/// The document. An inconclusive verdict is `skipped`: neither passed nor failed.
pub fn render(evidence: &Evidence, judgement: Option<&Judgement>) -> String {
    let mut cases = String::new();
    let (mut tests, mut failures, mut skipped) = (0, 0, 0);
    for p in &evidence.series {
        tests += 1;
        let place = if p.in_place { "in place" } else { "out of place" };
        let name = format!("{} {} {} {place}", p.collective, Short(p.size), p.dtype);
        let _ = write!(
            cases,
            "  <testcase classname=\"bench.data\" name=\"{}\" time=\"{:.6}\"",
            escape(&name),
            p.time.mean_us * p.time.operations as f64 / 1e6
        );
        match p.wrong {
            Some(wrong) if wrong > 0 => {
                failures += 1;
                let _ = writeln!(
                    cases,
                    ">\n    <failure message=\"{wrong} wrong elements on ranks {:?}\"/>\n  </testcase>",
                    p.wrong_ranks
                );
            }
            _ => cases.push_str("/>\n"),
        }
    }
    if let Some(judgement) = judgement {
        tests += 1;
        let verdict = &judgement.verdict;
        let mut details = String::new();
        for found in &judgement.findings {
            finding(&mut details, found, Style { width: 120, prefix: "", colour: false });
        }
        let element = match verdict.outcome {
            Outcome::Pass => None,
            Outcome::Fail => {
                failures += 1;
                Some("failure")
            }
            Outcome::Inconclusive => {
                skipped += 1;
                Some("skipped")
            }
        };
        let _ = write!(cases, "  <testcase classname=\"bench\" name=\"verdict\"");
        let _ = match element {
            None => writeln!(
                cases,
                ">\n    <system-out>{}: {}\n{}</system-out>\n  </testcase>",
                word(verdict.outcome),
                escape(&verdict.summary),
                escape(&details)
            ),
            Some(element) => writeln!(
                cases,
                ">\n    <{element} message=\"{}\">{}</{element}>\n  </testcase>",
                escape(&verdict.summary),
                escape(&details)
            ),
        };
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"ncclctl bench\" tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\">\n{cases}</testsuite>\n"
    )
}

/// Text that may stand in an element or attribute; what XML 1.0 can not hold is replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
