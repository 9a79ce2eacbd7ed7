//! Findings that are known from before, so that only new ones speak. A finding is known by its rule,
//! its file and what it says, and not by its line, so that lines may move.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::{Exhibit, Finding};
use crate::silence::{By, Silenced};

/// Schema of [`Baseline`].
pub const SCHEMA: &str = "ncclctl/lint-baseline/v1";

/// The known findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// `ncclctl/lint-baseline/v1`.
    pub schema: String,
    /// Findings, in order.
    pub findings: Vec<Known>,
}

/// A known finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Path, from the folder of the baseline.
    pub file: String,
    /// Rule.
    pub rule: String,
    /// What it says.
    pub message: String,
    /// How often.
    pub count: usize,
}

impl Baseline {
    /// The baseline of these findings; `name` makes a path one from the baseline's folder.
    pub fn of(findings: &[Finding], name: impl Fn(&str) -> String) -> Self {
        let mut known: Vec<Known> = Vec::new();
        let mut all: Vec<Known> = findings.iter().map(|f| key(f, &name)).collect();
        all.sort();
        for one in all {
            match known.last_mut().filter(|last| {
                last.file == one.file && last.rule == one.rule && last.message == one.message
            }) {
                Some(last) => last.count += 1,
                None => known.push(one),
            }
        }
        Self { schema: SCHEMA.to_owned(), findings: known }
    }

    /// Reads one; the error says what is wrong, with line and column.
    pub fn read(text: &str) -> Result<Self, String> {
        let read: Self = serde_json::from_str(text)
            .map_err(|e| format!("{}:{}: no baseline of lint: {e}", e.line(), e.column()))?;
        match read.schema.as_str() {
            SCHEMA => Ok(read),
            other => Err(format!("1:1: a baseline of another kind: {other}, not {SCHEMA}")),
        }
    }

    /// What is new, what is known, and what of the baseline is gone.
    pub fn apply(
        &self,
        findings: Vec<Finding>,
        name: impl Fn(&str) -> String,
    ) -> (Vec<Finding>, Vec<Silenced>, Vec<Known>) {
        let mut left = self.findings.clone();
        let (mut new, mut silenced) = (Vec::new(), Vec::new());
        for finding in findings {
            let one = key(&finding, &name);
            let known = left.iter_mut().find(|k| {
                k.count > 0 && k.file == one.file && k.rule == one.rule && k.message == one.message
            });
            match known {
                Some(known) => {
                    known.count -= 1;
                    let reason = "in the baseline".to_owned();
                    silenced.push(Silenced { finding, by: By::Baseline, reason });
                }
                None => new.push(finding),
            }
        }
        left.retain(|k| k.count > 0);
        (new, silenced, left)
    }
}

fn key(finding: &Finding, name: impl Fn(&str) -> String) -> Known {
    let file = finding.evidence.iter().find_map(|e| match e {
        Exhibit::Text { file, .. } => Some(name(file)),
        _ => None,
    });
    Known {
        file: file.unwrap_or_default(),
        rule: finding.rule.clone(),
        message: finding.message.clone(),
        count: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::check;
    use crate::documents::gather::Gather;

    fn lint(text: &str) -> Vec<Finding> {
        let mut gather = Gather::new(None, None, false);
        gather.add("a.env", text);
        check(&gather.finish().0)
    }

    #[test]
    fn known_is_silent_new_speaks_gone_is_told() {
        let old = lint("NCCL_IB_DISABLE=true\nNCCL_P2P_DISABLE=1\n");
        assert_eq!(old.len(), 2);
        let baseline = Baseline::of(&old, str::to_owned);
        let text = serde_json::to_string(&baseline).unwrap();
        let baseline = Baseline::read(&text).unwrap();
        // the lines moved, one mistake went, one came, one came twice
        let now = lint("# c\n\nNCCL_IB_DISABLE=true\nNCCL_SHM_DISABLE=1\nNCCL_IB_DISABLE=true\n");
        let (new, silenced, gone) = baseline.apply(now, str::to_owned);
        let rules: Vec<_> = new.iter().map(|f| f.message.as_str()).collect();
        assert_eq!(rules.len(), 2, "{rules:?}");
        assert_eq!(silenced.len(), 1);
        assert!(gone.len() == 1 && gone[0].message.contains("P2P"), "{gone:?}");
    }

    #[test]
    fn what_is_none_is_refused_with_its_place() {
        assert!(Baseline::read("{\n \"findings\": 1}").unwrap_err().starts_with("2:"));
        assert!(
            Baseline::read("{\"schema\": \"x\", \"findings\": []}")
                .unwrap_err()
                .contains("another kind")
        );
    }
}
