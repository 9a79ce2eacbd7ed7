//! Secrets in files: known by the name that they are given to, and shown nowhere.

use super::{Documents, Spot};
use crate::finding::Finding;

/// Ends of names that hold secrets.
const NAMES: [&str; 9] = [
    "_TOKEN",
    "_PASSWORD",
    "_PASSWD",
    "_SECRET",
    "_API_KEY",
    "_SECRET_KEY",
    "_ACCESS_KEY",
    "_PRIVATE_KEY",
    "NCCL_PSK",
];

/// Flags of command lines that a secret follows.
pub(crate) const FLAGS: [&str; 7] =
    ["--hf-token", "--hf_token", "--token", "--api-key", "--password", "--secret", "--auth-token"];

/// Whether a variable of this name holds a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.iter().any(|n| name.ends_with(n)) || name == "TOKEN" || name == "PASSWORD"
}

/// Whether a value only stands where a secret will be: a reference, a path, a placeholder.
pub(crate) fn stands_in(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    value.len() < 6
        || ["changeme", "dummy", "placeholder"].contains(&lower.as_str())
        || lower.starts_with("xxx")
        || lower.starts_with("your")
        || value.contains(['$', '<', '{'])
        || value.starts_with(['/', '-'])
}

/// Finds them, and makes the text to show of each file that has some.
pub(super) fn hide(set: &mut Documents, of_secrets: Vec<Spot>) {
    let mut spots = of_secrets;
    for block in &set.blocks {
        for setting in &block.settings {
            if is_secret(&setting.name.text) && !stands_in(&setting.value.text) {
                spots.push(setting.value.at.clone());
            }
        }
    }
    for (_, container) in set.containers() {
        for (index, word) in container.command.iter().enumerate() {
            let (flag, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
            if !FLAGS.contains(&flag) {
                continue;
            }
            if !value.is_empty() {
                let end = word.at.span.end;
                let start = end.saturating_sub(value.len() + 1).max(word.at.span.start);
                spots.push(Spot { file: word.at.file, span: start..end });
            } else if let Some(next) = container.command.get(index + 1) {
                spots.push(next.at.clone());
            }
        }
    }
    spots.retain(|spot| {
        let text = set.files.get(spot.file).and_then(|f| f.text.get(spot.span.clone()));
        // a value may be known by a place that is a whole script: that is no secret
        text.is_some_and(|t| !stands_in(t.trim_matches(['"', '\''])) && t.lines().count() < 2)
    });
    for spot in &spots {
        let Some(file) = set.files.get_mut(spot.file) else { continue };
        let mut shown = file.shown.take().unwrap_or_else(|| file.text.clone());
        if let Some(text) = shown.get(spot.span.clone()) {
            // as many bytes as before, so that places stay what they are
            let stars: String =
                text.chars()
                    .map(|c| {
                        if matches!(c, '"' | '\'') {
                            c.to_string()
                        } else {
                            "*".repeat(c.len_utf8())
                        }
                    })
                    .collect();
            shown.replace_range(spot.span.clone(), &stars);
        }
        file.shown = Some(shown);
    }
    set.secrets = spots;
}

/// Takes them out of what was found.
pub(super) fn out_of(set: &Documents, findings: &mut [Finding]) {
    for spot in &set.secrets {
        let text = set.files.get(spot.file).and_then(|f| f.text.get(spot.span.clone()));
        let Some(secret) = text.map(|t| t.trim_matches(['"', '\''])).filter(|t| !t.is_empty())
        else {
            continue;
        };
        for finding in findings.iter_mut() {
            for part in [&mut finding.message, &mut finding.cause, &mut finding.remedy] {
                if part.contains(secret) {
                    *part = part.replace(secret, "[redacted]");
                }
            }
            if finding.fix.as_ref().is_some_and(|fix| fix.text.contains(secret)) {
                finding.fix = None;
            }
        }
    }
}
