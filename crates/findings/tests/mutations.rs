//! What happens to a log on its way must not change the answer: another collector's prefix, CRLF,
//! a cut at any byte, lines of another rank between, renamed hosts, lost lines that say nothing.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "what goes wrong here fails the test or the measurement that asked for it"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ncclctl_findings::intake::Intake;
use ncclctl_findings::{Severity, diagnose};
use proptest::prelude::*;

/// One log case: name, text of its inputs, what must be found.
struct Case {
    name: String,
    inputs: Vec<String>,
    expected: Vec<String>,
}

fn log_cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).collect();
    folders.sort();
    let mut out = Vec::new();
    for folder in folders {
        let Ok(text) = std::fs::read_to_string(folder.join("case.toml")) else { continue };
        let list = |key: &str| -> Vec<String> {
            text.lines()
                .find_map(|l| l.strip_prefix(key)?.trim_start().strip_prefix('='))
                .unwrap_or("")
                .split('"')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect()
        };
        let kind = list("kind").concat();
        // the facts beside a log are not changed by its collector
        if kind != "log" || folder.ends_with("039-efa-plugin-not-on-ld-path") {
            continue;
        }
        out.push(Case {
            name: folder.file_name().unwrap().to_string_lossy().into_owned(),
            inputs: list("inputs")
                .iter()
                .map(|i| std::fs::read_to_string(folder.join(i)).unwrap())
                .collect(),
            expected: list("expected"),
        });
    }
    out
}

fn loud(inputs: &[Vec<u8>]) -> BTreeSet<String> {
    let mut intake = Intake::default();
    for (at, input) in inputs.iter().enumerate() {
        intake.add(&format!("{at}.log"), input);
    }
    diagnose(&intake.finish())
        .findings
        .into_iter()
        .filter(|f| f.severity >= Severity::Warning)
        .map(|f| f.rule)
        .collect()
}

/// The answer must hold what is expected, and nothing louder than before.
fn check(case: &Case, change: &str, inputs: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let plain: Vec<Vec<u8>> = case.inputs.iter().map(|i| i.clone().into_bytes()).collect();
    let before = loud(&plain);
    let after = loud(inputs);
    for want in &case.expected {
        prop_assert!(after.contains(want), "{}: {change}: loses {want}, has {after:?}", case.name);
    }
    let more: Vec<_> = after.difference(&before).collect();
    prop_assert!(more.is_empty(), "{}: {change}: gains {more:?}", case.name);
    Ok(())
}

fn each_line(text: &str, mut change: impl FnMut(&str) -> String) -> Vec<u8> {
    text.lines().map(|l| change(l) + "\n").collect::<String>().into_bytes()
}

const PREFIXES: &[&str] = &[
    "2025-04-02T03:22:10.000000000Z ",
    "2025-04-02T03:22:10.000000000Z stdout F ",
    "[1,3]<stdout>:",
    "[pod/train-0/main] ",
    "worker-1  | ",
    "7: ",
    "[rank3]:",
    "(RayTrainWorker pid=77, ip=10.9.9.9) ",
    "Dec 01 10:00:00 node dockerd[77]: ",
    "\u{1b}[36m(worker)\u{1b}[0m ",
    "> ",
];

fn is_nccl(line: &str) -> bool {
    line.contains(" NCCL ")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_prefix(prefix in proptest::sample::select(PREFIXES)) {
        for case in log_cases() {
            let inputs: Vec<_> = case
                .inputs
                .iter()
                .map(|i| each_line(i, |l| format!("{prefix}{l}")))
                .collect();
            // a second stamp in front of CRI's own makes its partial lines unreadable to anybody
            if case.name.contains("cri-partial") && !prefix.ends_with('Z') {
                continue;
            }
            check(&case, prefix, &inputs)?;
        }
    }

    #[test]
    fn carriage_returns(_nothing in Just(())) {
        for case in log_cases() {
            let inputs: Vec<_> =
                case.inputs.iter().map(|i| each_line(i, |l| format!("{l}\r"))).collect();
            check(&case, "CRLF", &inputs)?;
        }
    }

    /// Input that arrives in two pieces is the same input.
    #[test]
    fn pieces(share in 0.0f64..1.0) {
        for case in log_cases() {
            let mut intake = Intake::default();
            for (at, input) in case.inputs.iter().enumerate() {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss,
                        clippy::cast_precision_loss, reason = "a place in the text")]
                let cut = (input.len() as f64 * share) as usize;
                intake.begin(&format!("{at}.log"));
                intake.feed(&input.as_bytes()[..cut]);
                intake.feed(&input.as_bytes()[cut..]);
            }
            let found: BTreeSet<_> =
                diagnose(&intake.finish()).findings.into_iter().map(|f| f.rule).collect();
            for want in &case.expected {
                prop_assert!(found.contains(want), "{}: cut loses {want}", case.name);
            }
        }
    }

    /// Lines of a healthy rank of the same job between the lines.
    #[test]
    fn interleaved(every in 1usize..4) {
        const OTHER: &[&str] = &[
            "other-9:4242:4242 [1] NCCL INFO cudaDriverVersion 12040",
            "other-9:4242:4300 [1] NCCL INFO P2P Chunksize set to 524288",
            "step 17 loss 2.31 lr 0.0003",
            "other-9:4242:4300 [1] NCCL INFO Trees [0] 2/-1/-1->1->0",
        ];
        for case in log_cases() {
            let mut next = 0;
            let inputs: Vec<_> = case
                .inputs
                .iter()
                .map(|i| {
                    let mut out = String::new();
                    for (at, line) in i.lines().enumerate() {
                        out.push_str(line);
                        out.push('\n');
                        // not inside a partial line, nor inside a table
                        if at % every == 0 && is_nccl(line) {
                            out.push_str(OTHER[next % OTHER.len()]);
                            out.push('\n');
                            next += 1;
                        }
                    }
                    out.into_bytes()
                })
                .collect();
            if case.name.contains("cri-partial") || case.name.contains("cloudwatch") {
                continue;
            }
            check(&case, "interleaved", &inputs)?;
        }
    }

    /// Hosts with other names.
    #[test]
    fn renamed_hosts(suffix in "[a-z]{3,6}") {
        for case in log_cases() {
            let inputs: Vec<_> = case
                .inputs
                .iter()
                .map(|i| {
                    each_line(i, |l| {
                        // `host:pid:tid [` with another host
                        let Some(mark) = l.find(" NCCL ") else { return l.to_owned() };
                        let Some(open) = l[..mark].rfind(" [") else { return l.to_owned() };
                        let start = l[..open].rfind([' ', '>', ']']).map_or(0, |at| at + 1);
                        let Some(colon) = l[start..open].find(':') else { return l.to_owned() };
                        if colon == 0 || l[start..start + colon].contains(['T', '|', '[']) {
                            return l.to_owned();
                        }
                        format!("{}{suffix}{}", &l[..start + colon], &l[start + colon..])
                    })
                })
                .collect();
            check(&case, "renamed", &inputs)?;
        }
    }

    /// Lines that say nothing may get lost.
    #[test]
    fn dropped_lines(seed in any::<u64>()) {
        for case in log_cases() {
            let mut state = seed | 1;
            let inputs: Vec<_> = case
                .inputs
                .iter()
                .map(|i| {
                    let mut out = String::new();
                    for line in i.lines() {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        let idle = line.is_empty() || ["Trees [", " Channel ", " -> ", "P2P Chunksize", "cudaDriver"]
                            .iter()
                            .any(|t| line.contains(t));
                        if !(idle && state % 3 == 0) {
                            out.push_str(line);
                            out.push('\n');
                        }
                    }
                    out.into_bytes()
                })
                .collect();
            check(&case, "dropped", &inputs)?;
        }
    }
}

/// A log that ends or begins at any byte gives no panic and no finding that the whole does not give,
/// save that its end was not seen. Healthy cases are short: every byte is tried.
#[test]
fn cut_at_any_byte() {
    let mut wrong = BTreeSet::new();
    for case in log_cases().into_iter().filter(|c| c.expected.is_empty()) {
        let longest = case.inputs.iter().map(String::len).max().unwrap();
        for (cut, head) in (0..=longest).flat_map(|cut| [(cut, true), (cut, false)]) {
            let inputs: Vec<Vec<u8>> = case
                .inputs
                .iter()
                .map(|i| {
                    let (before, after) = i.as_bytes().split_at(cut.min(i.len()));
                    if head { before.to_vec() } else { after.to_vec() }
                })
                .collect();
            // a launcher tries a name until it resolves: with only the first tries to read, that
            // they failed is the answer
            let begun = inputs.iter().any(|i| i.windows(9).any(|w| w == b"NCCL INFO"));
            for found in loud(&inputs) {
                let unseen =
                    found == "init-stuck" || (head && !begun && found == "dns-resolution-failed");
                if !unseen {
                    wrong.insert(format!("{}: {found} (first bytes: {head})", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
