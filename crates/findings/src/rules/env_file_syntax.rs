//! `env-file-syntax`: a line of an env file or nccl.conf that its reader takes otherwise.
//!
//! ## What
//!
//! `export` in an env file, blanks around `=`, a comment behind a value, a reference that only a shell expands; in
//! NCCL's own format also quotes. Quotes in an env file are for information: Docker keeps them, Compose does not.
//! Files in which every line begins with `export` are there to be sourced, and are left alone.
//!
//! ## Why
//!
//! `docker --env-file` and NCCL take a line as it stands: the name up to the first `=`, all of the rest as the value.
//!
//! ## Example
//!
//! `export NCCL_DEBUG=INFO: docker takes no export`
//!
//! ## Remedy
//!
//! Write `NAME=value`, nothing else on the line.
//!
//! ## Source
//!
//! Docker: docker run, --env-file; Compose: env files; NCCL src/misc/param.cc.

use crate::documents::{Documents, Edit, Origin, SlipKind, Spot};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "env-file-syntax",
        Severity::Warning,
        "a line of an env file or nccl.conf that its reader takes otherwise",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for slip in &set.slips {
        let (severity, message, cause, remedy, fix) = match slip.kind {
            SlipKind::Export => (
                Severity::Warning,
                format!("{}: an env file has no export", slip.text),
                "docker --env-file refuses a name with a blank, and NCCL's own files take `export NAME` for \
                 the name; only a shell and Compose take it",
                "take `export` out".to_owned(),
                Some(String::new()),
            ),
            SlipKind::Blanks => (
                Severity::Warning,
                format!("{}: a blank beside `=`", slip.text),
                "a blank before `=` belongs to the name (docker refuses it), one behind it to the value",
                "write NAME=value without blanks".to_owned(),
                None,
            ),
            SlipKind::Quotes => (
                Severity::Info,
                format!("\"{}\" is in quotes", slip.text),
                "docker --env-file keeps quotes as part of the value, which NCCL then reads as a name or as \
                 0; Compose and a shell take them off",
                format!("write {} without quotes", slip.text),
                Some(slip.text.clone()),
            ),
            SlipKind::Comment => (
                Severity::Warning,
                format!("{}: the comment is part of the value", slip.text),
                "docker --env-file takes all of the line behind `=`; only Compose and a shell end it at ` #`",
                "write the comment on a line of its own".to_owned(),
                Some(String::new()),
            ),
            SlipKind::Expansion => (
                Severity::Info,
                format!("{} is expanded only by a shell and by Compose", slip.text),
                "docker --env-file and Kubernetes pass it on as it stands",
                "write the value, unless a shell or Compose reads this file".to_owned(),
                None,
            ),
        };
        let edit = fix.map(|text| Edit { at: slip.at.clone(), text, safe: true });
        let found =
            set.say(&RULE, Confidence::Likely, &slip.at, message, cause, remedy).at(severity);
        findings.push(set.fixed(found, edit));
    }
    for block in set.blocks.iter().filter(|b| b.origin == Origin::Conf) {
        for setting in &block.settings {
            let name = setting.name.text.as_str();
            let value = setting.value.text.as_str();
            let bare = name.trim().trim_start_matches("export ").trim();
            let quoted =
                value.len() > 1 && value.starts_with(['"', '\'']) && value.ends_with(['"', '\'']);
            let (what, at) = if name != bare {
                (format!("NCCL sets a variable named `{name}`"), &setting.name.at)
            } else if quoted {
                (format!("the quotes are part of the value {value}"), &setting.value.at)
            } else if value.trim() != value || value.contains(" #") {
                (format!("NCCL takes `{value}`, blanks and comment included"), &setting.value.at)
            } else {
                continue;
            };
            let plain = value.trim().trim_matches(['"', '\'']);
            let plain = plain.split(" #").next().unwrap_or(plain).trim();
            let line = Spot {
                file: block.file,
                span: setting.name.at.span.start..setting.value.at.span.end,
            };
            let fix = Edit { at: line, text: format!("{bare}={plain}"), safe: true };
            let found = set
                .say(
                    &RULE,
                    Confidence::Certain,
                    at,
                    what,
                    "a line of nccl.conf is split at its first `=`, and nothing is trimmed, unquoted or \
                     expanded; `#` makes a comment only as the first character of a line",
                    format!("write {bare}={plain}"),
                )
                .at(Severity::Error);
            findings.push(set.fixed(found, Some(fix)));
        }
    }
}
