//! `k8s-env-not-expanded`: a variable reference stayed literal.
//!
//! ## What
//!
//! A setting holds the text of a reference instead of its value.
//!
//! ## Why
//!
//! Kubernetes expands only $(NAME), and only names defined before; docker env files expand nothing.
//!
//! ## Example
//!
//! `NCCL_SOCKET_IFNAME=$IFNAME`
//!
//! ## Remedy
//!
//! Write $(IFNAME) after its definition, or the value itself.
//!
//! ## Source
//!
//! Kubernetes: dependent environment variables.

use crate::documents::{Documents, Origin};
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new("k8s-env-not-expanded", Severity::Error, "a variable reference stayed literal")
};

/// References in values of `env:`, where Kubernetes is known to be the only reader.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for block in set
        .blocks
        .iter()
        .filter(|b| matches!(b.origin, Origin::Pod | Origin::EnvFile | Origin::Conf))
    {
        for (index, setting) in block.settings.iter().enumerate() {
            let name = setting.name.text.as_str();
            let value = setting.value.text.as_str();
            let known = name.starts_with("NCCL_")
                || matches!(
                    name,
                    "MASTER_ADDR"
                        | "MASTER_PORT"
                        | "RANK"
                        | "WORLD_SIZE"
                        | "NODE_RANK"
                        | "LD_LIBRARY_PATH"
                        | "GLOO_SOCKET_IFNAME"
                        | "NNODES"
                        | "PATH"
                );
            if !known || value.contains("$$") || value.contains("{{") {
                continue;
            }
            let shell = shell_reference(value);
            let missing = match block.origin {
                Origin::Pod => undefined(value).filter(|wanted| {
                    !block.settings[..index].iter().any(|s| s.name.text == *wanted)
                }),
                // docker and NCCL expand nothing; a Compose env_file or a shell would
                _ => None,
            };
            let foreign = block
                .container
                .and_then(|(p, c)| set.pods.get(p)?.containers.get(c))
                .is_some_and(|c| c.foreign_env);
            if block.origin == Origin::EnvFile {
                // what `env` shows in a pod, or a list that was meant for one
                let kubernetes =
                    undefined(value).filter(|n| !n.bytes().any(|b| b.is_ascii_lowercase()));
                if let Some(wanted) = kubernetes {
                    findings.push(
                        set.say(
                            &RULE,
                            Confidence::Possible,
                            &setting.value.at,
                            format!("{name} is the literal text {value}"),
                            "$(NAME) is Kubernetes' form: env files expand nothing, and a shell would \
                             run NAME as a command",
                            format!("write the value of {wanted} itself"),
                        )
                        .at(Severity::Warning),
                    );
                }
                continue;
            }
            if block.origin == Origin::Conf && shell.is_none() {
                continue;
            }
            if let Some(reference) = shell {
                let inner = reference.trim_matches(['$', '{', '}', '(', ')']);
                let fixed = value.replace(reference, &format!("$({inner})"));
                let (cause, remedy) = match block.origin {
                    Origin::Conf => (
                        "NCCL expands nothing in its files",
                        format!("write the value of {inner} itself"),
                    ),
                    _ => (
                        "Kubernetes expands $(NAME) only, for names defined before it in the same list; \
                         the shell form reaches the program as it stands",
                        format!("write {name}: \"{fixed}\", with {inner} defined above it"),
                    ),
                };
                findings.push(set.say(
                    &RULE,
                    Confidence::Certain,
                    &setting.value.at,
                    format!("{name} is the literal text {value}"),
                    cause,
                    remedy,
                ));
            } else if let Some(wanted) = missing.filter(|_| !foreign) {
                let later = block.settings[index..].iter().any(|s| s.name.text == wanted);
                findings.push(set.say(
                    &RULE,
                    Confidence::Certain,
                    &setting.value.at,
                    format!("{name}: $({wanted}) is not expanded"),
                    if later {
                        "a reference is only expanded to a variable that stands above it in the list"
                    } else {
                        "no variable of that name stands in the list; the reference stays as it is"
                    },
                    format!("define {wanted} above {name}"),
                ));
            }
        }
    }
}

/// `$NAME` or `${NAME}` in a value.
fn shell_reference(value: &str) -> Option<&str> {
    let start = value.find('$')?;
    let rest = &value[start + 1..];
    let (inner, brace) = match rest.strip_prefix('{') {
        Some(inner) => (inner, 2),
        None => (rest, 0),
    };
    let len = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
    if len == 0 || !inner.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    if brace > 0 && !inner[len..].starts_with('}') {
        // ${NAME:-default} and the like
        let end = inner.find('}')?;
        return value.get(start..start + 3 + end);
    }
    value.get(start..start + 1 + brace + len)
}

/// `NAME` of `$(NAME)`.
fn undefined(value: &str) -> Option<&str> {
    let start = value.find("$(")? + 2;
    let inner = value[start..].split(')').next()?;
    let name = !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    name.then_some(inner)
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for p in &incident.log.processes {
        for (name, setting) in &p.settings {
            let value = setting.value.trim_start_matches(['^', '=']);
            if value.starts_with("$(")
                || value.starts_with("${")
                || (value.starts_with('$') && value.len() > 1)
            {
                findings.push(RULE.found(
                    Confidence::Certain,
                    format!("{name} is the literal text {} on {}", setting.value, p.host),
                    "nothing expanded the reference: Kubernetes expands $(NAME) only, for names \
                     defined before it; env files expand nothing",
                    "write $(NAME) after the definition of NAME, or the value itself",
                    incident.exhibits([&setting.at], 1),
                ));
                return;
            }
        }
    }
}
