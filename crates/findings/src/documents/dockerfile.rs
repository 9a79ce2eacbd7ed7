//! Dockerfiles: the last stage, with what the stages under it bring.

use super::gather::Gather;
use super::{Image, Origin, Setting, Spot, Text, image_version, torch_nccl};

/// One instruction with its arguments.
struct Instruction {
    name: String,
    text: String,
    /// Place of each byte of `text` in the file.
    places: Vec<usize>,
}

#[derive(Clone, Default)]
struct Stage {
    name: String,
    bases: Vec<Text>,
    runs: Vec<Text>,
    copies: Vec<Text>,
    user: Option<Text>,
    settings: Vec<Setting>,
    version: Option<ncclctl_nccl::Version>,
}

pub(super) fn take(gather: &mut Gather, file: usize, text: &str) {
    let mut stages: Vec<Stage> = Vec::new();
    let mut arguments: Vec<(String, String)> = Vec::new();
    for instruction in instructions(text) {
        let spot = |from: usize, to: usize| {
            let start = instruction.places.get(from).copied().unwrap_or(0);
            let end = instruction.places.get(to.saturating_sub(1)).map_or(start, |p| p + 1);
            Spot { file, span: start..end.max(start) }
        };
        let whole = Text { text: instruction.text.clone(), at: spot(0, instruction.text.len()) };
        match instruction.name.as_str() {
            "ARG" => {
                if let Some((name, value)) = instruction.text.split_once('=') {
                    let value = value.trim().trim_matches(['"', '\'']);
                    arguments.push((name.trim().to_owned(), value.to_owned()));
                }
            }
            "FROM" => {
                let words: Vec<&str> = instruction.text.split_whitespace().collect();
                let image =
                    words.iter().find(|w| !w.starts_with("--")).copied().unwrap_or_default();
                let from = instruction.text.find(image).unwrap_or(0);
                let at = spot(from, from + image.len());
                let named = words.iter().position(|w| w.eq_ignore_ascii_case("as"));
                let name = named.and_then(|i| words.get(i + 1)).copied().unwrap_or_default();
                let expanded = expand(image, &arguments);
                let mut stage = stages
                    .iter()
                    .find(|s| !s.name.is_empty() && s.name.eq_ignore_ascii_case(&expanded))
                    .cloned()
                    .unwrap_or_else(|| Stage {
                        version: image_version(&expanded),
                        bases: vec![Text { text: expanded.clone(), at }],
                        ..Stage::default()
                    });
                stage.name = name.to_owned();
                stages.push(stage);
            }
            "ENV" => {
                let Some(stage) = stages.last_mut() else { continue };
                let pairs = env_pairs(&instruction.text);
                let single = pairs.len() == 1;
                for (name, value, name_at, value_at) in pairs {
                    let setting = Setting {
                        name: Text { text: name, at: spot(name_at.0, name_at.1) },
                        open: value.contains('$'),
                        value: Text { text: value, at: spot(value_at.0, value_at.1) },
                        whole: single.then(|| whole_line(file, text, &instruction)).flatten(),
                    };
                    // later ones of the name replace it
                    stage.settings.retain(|s| s.name.text != setting.name.text);
                    stage.settings.push(setting);
                }
            }
            "RUN" => {
                if let Some(stage) = stages.last_mut() {
                    if stage.version.is_none()
                        || instruction.text.contains("nccl")
                        || instruction.text.contains("torch==")
                    {
                        stage.version = pinned(&instruction.text).or(stage.version);
                    }
                    stage.runs.push(whole);
                }
            }
            "COPY" | "ADD" => {
                if let Some(stage) = stages.last_mut() {
                    stage.copies.push(whole);
                }
            }
            "USER" => {
                if let Some(stage) = stages.last_mut() {
                    stage.user = Some(whole);
                }
            }
            _ => {}
        }
    }
    let Some(stage) = stages.pop() else { return };
    let block = gather.block(Origin::Image, file, stage.settings, stage.version, None);
    gather.set.images.push(Image {
        file,
        bases: stage.bases,
        runs: stage.runs,
        user: stage.user,
        copies: stage.copies,
        block,
    });
}

/// NCCL's release by a package that is pinned: `nvidia-nccl-cu12==2.21.5`, `libnccl2=2.18.5-1`.
fn pinned(run: &str) -> Option<ncclctl_nccl::Version> {
    const NCCL: [&str; 4] =
        ["nvidia-nccl-cu11==", "nvidia-nccl-cu12==", "nvidia-nccl-cu13==", "libnccl2="];
    let own = NCCL.iter().find_map(|key| {
        let rest = &run[run.find(key)? + key.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].trim_end_matches('.').parse().ok()
    });
    own.or_else(|| {
        let rest = &run[run.find("torch==")? + "torch==".len()..];
        torch_nccl(rest.split([' ', '+', '\'', '"']).next()?)
    })
}

fn expand(text: &str, arguments: &[(String, String)]) -> String {
    let mut out = text.to_owned();
    for (name, value) in arguments {
        out = out.replace(&format!("${{{name}}}"), value);
        // a longer name must not be cut
        if out.contains(&format!("${name}")) && !value.contains('$') {
            out = out.replace(&format!("${name}"), value);
        }
    }
    out
}

fn whole_line(file: usize, text: &str, instruction: &Instruction) -> Option<Spot> {
    let first = *instruction.places.first()?;
    let last = *instruction.places.last()?;
    let start = text.get(..first)?.rfind('\n').map_or(0, |i| i + 1);
    let end = text.get(last..)?.find('\n').map_or(text.len(), |i| last + i + 1);
    Some(Spot { file, span: start..end })
}

/// Instructions with continued lines joined; comments and here-documents left out.
fn instructions(text: &str) -> Vec<Instruction> {
    let mut out: Vec<Instruction> = Vec::new();
    let mut open: Option<Instruction> = None;
    let mut heredoc: Option<String> = None;
    let mut start = 0;
    for whole in text.split_inclusive('\n') {
        let line = whole.trim_end_matches(['\n', '\r']);
        let at = start;
        start += whole.len();
        if let Some(end) = &heredoc {
            if line.trim() == end {
                heredoc = None;
            } else if let Some(last) = out.last_mut() {
                // what is run there counts as the instruction's text
                push(last, " ", at, line.len());
                push(last, line, at, 0);
            }
            continue;
        }
        let trimmed = line.trim_start();
        if trimmed.starts_with('#') || (trimmed.is_empty() && open.is_none()) {
            continue;
        }
        let (body, body_at) = match &open {
            Some(_) => (line, at),
            None => {
                let lead = line.len() - trimmed.len();
                let (name, rest) = trimmed.split_once([' ', '\t']).unwrap_or((trimmed, ""));
                open = Some(Instruction {
                    name: name.to_ascii_uppercase(),
                    text: String::new(),
                    places: Vec::new(),
                });
                let pad = rest.len() - rest.trim_start().len();
                let offset = trimmed.len() - rest.len() + pad;
                (rest.trim_start(), at + lead + offset)
            }
        };
        let Some(instruction) = &mut open else { continue };
        let stripped = body.trim_end().strip_suffix('\\');
        push(instruction, stripped.unwrap_or(body), body_at, 0);
        if stripped.is_some() {
            push(instruction, " ", body_at, stripped.map_or(0, str::len));
            continue;
        }
        if let Some(done) = open.take() {
            if let Some(i) = done.text.find("<<") {
                let word = done.text[i + 2..].trim_start_matches('-');
                let word =
                    word.split_whitespace().next().unwrap_or_default().trim_matches(['"', '\'']);
                if !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                {
                    heredoc = Some(word.to_owned());
                }
            }
            out.push(done);
        }
    }
    out.extend(open);
    out
}

fn push(instruction: &mut Instruction, text: &str, at: usize, shift: usize) {
    instruction.text.push_str(text);
    instruction.places.extend((0..text.len()).map(|i| at + shift + i));
}

type Place = (usize, usize);

/// `ENV A=1 B="2"` and the old `ENV A value`.
fn env_pairs(text: &str) -> Vec<(String, String, Place, Place)> {
    let first = text.split_whitespace().next().unwrap_or_default();
    if !first.contains('=') {
        let Some((name, value)) = text.split_once(char::is_whitespace) else { return Vec::new() };
        let start = text.len() - value.trim_start().len();
        let value = value.trim();
        return vec![(
            name.to_owned(),
            value.to_owned(),
            (0, name.len()),
            (start, start + value.len()),
        )];
    }
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i].is_ascii_whitespace() {
            i += 1;
            continue;
        }
        let start = i;
        while i < bytes.len() && bytes[i] != b'=' && !bytes[i].is_ascii_whitespace() {
            i += 1;
        }
        if i >= bytes.len() || bytes[i] != b'=' {
            continue;
        }
        let name = text.get(start..i).unwrap_or_default().to_owned();
        let name_at = (start, i);
        i += 1;
        let value_start = i;
        let mut quote = None;
        let mut value: Vec<u8> = Vec::new();
        while i < bytes.len() {
            match (quote, bytes[i]) {
                (Some(q), b) if b == q => quote = None,
                (None, b @ (b'"' | b'\'')) => quote = Some(b),
                (None, b) if b.is_ascii_whitespace() => break,
                (_, b'\\') if i + 1 < bytes.len() => {
                    i += 1;
                    value.push(bytes[i]);
                }
                (_, b) => value.push(b),
            }
            i += 1;
        }
        let value = String::from_utf8_lossy(&value).into_owned();
        out.push((name, value, name_at, (value_start, i)));
    }
    out
}
