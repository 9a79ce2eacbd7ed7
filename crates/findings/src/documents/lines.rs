//! Files of lines: env files, NCCL's own format, shell scripts, Python programs.

use super::docker_run;
use super::gather::{Gather, conf_entries};
use super::{Documents, Origin, Setting, Slip, SlipKind, Spot, Text};

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Lines with their first byte.
fn lines_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |whole| {
        let at = start;
        start += whole.len();
        (at, whole.trim_end_matches(['\n', '\r']))
    })
}

/// An env file. The readers differ (Docker keeps quotes and takes no `export`; Compose and a shell
/// take both): the plain value is read, and what some reader would not take is noted.
pub(super) fn env_file(
    gather: &mut Gather,
    file: usize,
    text: &str,
    offset: usize,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    let exports = lines_of(text).filter(|(_, l)| l.trim_start().starts_with("export ")).count();
    let assigns =
        lines_of(text).filter(|(_, l)| !l.trim_start().starts_with('#') && l.contains('=')).count();
    // every line with `export`: a file to be sourced
    let sourced = exports > 0 && exports == assigns;
    for (at, line) in lines_of(text) {
        let lead = line.len() - line.trim_start().len();
        let body = line.trim_start();
        if body.is_empty() || body.starts_with('#') {
            continue;
        }
        let whole =
            Spot { file, span: offset + at..offset + (at + line.len() + 1).min(text.len()) };
        let (body, lead) = match body.strip_prefix("export ") {
            Some(rest) if !sourced => {
                gather.set.slips.push(Slip {
                    kind: SlipKind::Export,
                    at: Spot { file, span: offset + at + lead..offset + at + lead + 7 },
                    text: body.to_owned(),
                });
                (rest.trim_start(), line.len() - rest.trim_start().len())
            }
            Some(rest) => (rest.trim_start(), line.len() - rest.trim_start().len()),
            None => (body, lead),
        };
        let Some((name, value)) = body.split_once('=') else { continue };
        if !is_name(name.trim()) {
            continue;
        }
        let start = offset + at + lead;
        let name_at = start..start + name.trim_end().len();
        let mut value_start = start + name.len() + 1;
        if !sourced && (name.ends_with(' ') || value.starts_with(' ')) {
            gather.set.slips.push(Slip {
                kind: SlipKind::Blanks,
                at: Spot { file, span: name_at.start..value_start },
                text: body.to_owned(),
            });
        }
        value_start += value.len() - value.trim_start().len();
        let value = value.trim();
        let quoted = value.len() > 1
            && (value.starts_with('"') && value.ends_with('"')
                || value.starts_with('\'') && value.ends_with('\''));
        let mut plain = value;
        if quoted {
            plain = &value[1..value.len() - 1];
            if !sourced && name.trim().starts_with("NCCL_") {
                gather.set.slips.push(Slip {
                    kind: SlipKind::Quotes,
                    at: Spot { file, span: value_start..value_start + value.len() },
                    text: plain.to_owned(),
                });
            }
        } else if let Some(hash) = value.find(" #") {
            plain = value[..hash].trim_end();
            if !sourced {
                gather.set.slips.push(Slip {
                    kind: SlipKind::Comment,
                    at: Spot { file, span: value_start + plain.len()..value_start + value.len() },
                    text: body.to_owned(),
                });
            }
        }
        let open = plain.contains("$(") || plain.contains('`') || plain.contains('$');
        if open && !sourced && name.trim().starts_with("NCCL_") {
            gather.set.slips.push(Slip {
                kind: SlipKind::Expansion,
                at: Spot { file, span: value_start..value_start + value.len() },
                text: plain.to_owned(),
            });
        }
        settings.push(Setting {
            name: Text { text: name.trim().to_owned(), at: Spot { file, span: name_at } },
            value: Text {
                text: plain.to_owned(),
                at: Spot { file, span: value_start..value_start + value.len() },
            },
            whole: Some(whole),
            open,
        });
    }
    settings
}

/// NCCL's own format: nothing is trimmed.
pub(super) fn conf_file(file: usize, text: &str, offset: usize) -> Vec<Setting> {
    conf_entries(text)
        .into_iter()
        .map(|entry| {
            let at = |span: std::ops::Range<usize>| Spot {
                file,
                span: offset + span.start..offset + span.end,
            };
            let line = entry.name_span.start..(entry.value_span.end + 1).min(text.len());
            Setting {
                name: Text { text: entry.name.to_owned(), at: at(entry.name_span) },
                value: Text { text: entry.value.to_owned(), at: at(entry.value_span) },
                whole: Some(at(line)),
                open: false,
            }
        })
        .collect()
}

/// The value of a shell word that begins here, unquoted, and its length as written.
fn shell_value(text: &str) -> (String, usize) {
    let mut out = String::new();
    let mut chars = text.char_indices().peekable();
    let mut quote: Option<char> = None;
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() || matches!(c, ';' | '&' | '|' | ')') => {
                return (out, at);
            }
            (None | Some('"'), '\\') => {
                if let Some((_, next)) = chars.next() {
                    // a line that goes on
                    if next == '\n' {
                        return (out, at);
                    }
                    out.push(next);
                }
            }
            (None, '$') if chars.peek().is_some_and(|(_, n)| *n == '(') => {
                // a command's output: not known, taken as a whole
                let rest = &text[at..];
                let end = rest.find(')').map_or(rest.len(), |i| i + 1);
                out.push_str(&rest[..end]);
                return (out, at + end);
            }
            (_, c) => out.push(c),
        }
    }
    (out, text.len())
}

/// Assignments of NCCL's and its neighbours' variables in a shell text, by `export`, plain, or by
/// `-x`, `-e` and `--env` of a launcher.
fn assignments(text: &str) -> Vec<(usize, usize, String, usize, usize)> {
    let mut out = Vec::new();
    for (at, line) in lines_of(text) {
        let comment = line.trim_start().starts_with('#');
        if comment || !line.contains('=') {
            continue;
        }
        let mut from = 0;
        while let Some(equals) = line.get(from..).and_then(|rest| rest.find('=')).map(|i| from + i)
        {
            let before = &line[..equals];
            let start = before
                .char_indices()
                .rev()
                .find(|(_, c)| !(c.is_ascii_alphanumeric() || *c == '_'))
                .map_or(0, |(i, c)| i + c.len_utf8());
            let name = &line[start..equals];
            let lead = line[..start].trim_end();
            let word = lead.rsplit([' ', '\t', ';', '&', '\'', '"']).next().unwrap_or_default();
            let begins = lead.is_empty()
                || lead.len() < start
                    && (matches!(
                        word,
                        "export"
                            | "-x"
                            | "-e"
                            | "--env"
                            | "env"
                            | "then"
                            | "do"
                            | "-genv"
                            | "declare"
                            | "\\"
                    ) || lead.ends_with([';', '&', '"', '\''])
                        || word.contains('='))
                || lead.len() == start && lead.ends_with(['"', '\'', ';']);
            from = equals + 1;
            if !is_name(name) || !begins {
                continue;
            }
            let (value, len) = shell_value(&line[equals + 1..]);
            out.push((at + start, at + equals, value, at + equals + 1, at + equals + 1 + len));
            from = equals + 1 + len;
        }
    }
    out
}

/// A shell script. One setting may be given several times: the last that is reached counts, which
/// a reader can not know, so that each stands for itself.
pub(super) fn shell(gather: &mut Gather, file: usize, text: &str, offset: usize) {
    docker_run::take(gather, file, text, offset);
    let mut settings = Vec::new();
    for (start, equals, value, from, to) in assignments(text) {
        let name = &text[start..equals];
        let line = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let alone = text[line..start].trim().trim_start_matches("export").trim().is_empty();
        let end = text[to..].find('\n').map_or(text.len(), |i| to + i + 1);
        let clear = alone && text[to..end].trim().is_empty();
        settings.push(Setting {
            name: Text {
                text: name.to_owned(),
                at: Spot { file, span: offset + start..offset + equals },
            },
            open: value.contains('$') || value.contains('`'),
            value: Text { text: value, at: Spot { file, span: offset + from..offset + to } },
            whole: clear.then_some(Spot { file, span: offset + line..offset + end }),
        });
    }
    if settings.iter().any(|s| s.name.text.contains("NCCL") || s.name.text.contains("IFNAME")) {
        gather.block(Origin::Shell, file, settings, None, None);
    }
}

/// `os.environ["NAME"] = "value"` with literals.
pub(super) fn python(file: usize, text: &str) -> Vec<Setting> {
    let mut out = Vec::new();
    for (at, line) in lines_of(text) {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let Some(begin) = line
            .find("environ[")
            .map(|i| i + 8)
            .or_else(|| line.find("environ.setdefault(").map(|i| i + 19))
        else {
            continue;
        };
        let Some((name, name_at, after)) = literal(&line[begin..]) else { continue };
        let rest = &line[begin + after..];
        let Some(gap) = rest.find(['=', ',']) else { continue };
        let value_at = begin + after + gap + 1;
        let lead = line[value_at..].len() - line[value_at..].trim_start().len();
        if rest[gap + 1..].starts_with('=') {
            continue;
        }
        let found = literal(&line[value_at + lead..]);
        let spot = |from: usize, to: usize| Spot { file, span: at + from..at + to };
        let setting = match found {
            Some((value, _, len)) => Setting {
                name: Text {
                    text: name.to_owned(),
                    at: spot(begin + name_at, begin + name_at + name.len()),
                },
                value: Text {
                    text: value.to_owned(),
                    at: spot(value_at + lead, value_at + lead + len),
                },
                whole: None,
                open: false,
            },
            None => Setting {
                name: Text {
                    text: name.to_owned(),
                    at: spot(begin + name_at, begin + name_at + name.len()),
                },
                open: true,
                ..Setting::default()
            },
        };
        out.push(setting);
    }
    out
}

/// A quoted literal at the start: its text, where that begins, and where it ends.
fn literal(text: &str) -> Option<(&str, usize, usize)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let end = text[1..].find(quote)? + 1;
    Some((&text[1..end], 1, end + 1))
}

/// `NAME=value` as one word of a command.
pub(super) fn assignment(word: &Text) -> Option<Setting> {
    let (name, value) = word.text.split_once('=')?;
    if !is_name(name) {
        return None;
    }
    Some(Setting {
        name: Text { text: name.to_owned(), at: word.at.clone() },
        value: Text { text: value.to_owned(), at: word.at.clone() },
        whole: None,
        open: value.contains('$'),
    })
}

/// Assignments in the text of a command, with their places where the text stands as it is.
pub(super) fn exports_in(set: &Documents, word: &Text) -> Vec<Setting> {
    let written = set.files.get(word.at.file).and_then(|f| f.text.get(word.at.span.clone()));
    let found = assignments(&word.text);
    let mut from = 0;
    found
        .into_iter()
        .filter_map(|(start, equals, value, _, _)| {
            let name = word.text.get(start..equals)?;
            let at = written.and_then(|w| {
                let at = from + w.get(from..)?.find(&format!("{name}="))?;
                from = at + name.len();
                Some(word.at.span.start + at)
            });
            let spot =
                |start: usize, len: usize| Spot { file: word.at.file, span: start..start + len };
            let (name_at, value_at) = match at {
                Some(at) => (spot(at, name.len()), spot(at + name.len() + 1, value.len())),
                None => (word.at.clone(), word.at.clone()),
            };
            Some(Setting {
                name: Text { text: name.to_owned(), at: name_at },
                open: value.contains('$') || value.contains('`'),
                value: Text { text: value, at: value_at },
                whole: None,
            })
        })
        .collect()
}
