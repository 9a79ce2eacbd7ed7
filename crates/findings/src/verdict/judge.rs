//! From evidence to judgement.

use super::{Judgement, Noise, Outcome, Proof, Proofs, Terms, Verdict};
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::rules::RULES;

/// Judges a finished trial.
pub fn judge(evidence: &Evidence, terms: &Terms) -> Judgement {
    let _ = terms;
    let mut findings: Vec<Finding> = Vec::new();
    for rule in RULES {
        if let Some(look) = rule.trial {
            look(evidence, &mut findings);
        }
    }
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    let none = |says: &str| Proof { had: false, says: says.to_owned() };
    let verdict = Verdict {
        outcome: Outcome::Inconclusive,
        summary: "nothing was judged".to_owned(),
        expected: None,
        achieved: None,
        ratio: None,
        decided_by: None,
        points: Vec::new(),
        proofs: Proofs {
            transport: none("not looked at"),
            wire: none("not looked at"),
            busbw: none("not looked at"),
        },
        noise: Noise::default(),
        unknown: Vec::new(),
        settle: Vec::new(),
    };
    Judgement { verdict, findings }
}

/// Whether pair probes would tell who is slow: the trial is slow or uneven, has more than two
/// ranks' worth of edges to compare, and nobody has been probed yet.
pub fn wants_pairs(evidence: &Evidence) -> bool {
    let _ = evidence;
    false
}
