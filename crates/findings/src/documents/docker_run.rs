//! `docker run` lines of a script, as far as they are literal: each is a pod of one container.

use super::gather::Gather;
use super::{Container, Gpus, Mount, Platform, Pod, Spot, Text};

/// Flags that stand alone; every other one takes a word.
const ALONE: [&str; 12] = [
    "--rm",
    "-it",
    "-i",
    "-t",
    "-d",
    "-ti",
    "--init",
    "--privileged",
    "--detach",
    "--tty",
    "--interactive",
    "-dit",
];

/// A word of the command with its place.
struct Word {
    text: String,
    at: Spot,
}

pub(super) fn take(gather: &mut Gather, file: usize, text: &str, offset: usize) {
    let mut from = 0;
    while let Some(found) = ["docker run ", "podman run ", "nerdctl run "]
        .iter()
        .filter_map(|c| text.get(from..)?.find(c).map(|i| from + i))
        .min()
    {
        let line = text[..found].rfind('\n').map_or(0, |i| i + 1);
        let comment = text[line..found].trim_start().starts_with('#');
        let start = found + text[found..].find(" run ").map_or(0, |i| i + 5);
        from = start;
        if !comment {
            let words = words_of(text, file, start, offset);
            let run = Spot { file, span: offset + found..offset + start - 1 };
            container(gather, file, &words, run);
        }
    }
}

/// Words to the end of the command; lines that end with a backslash go on.
fn words_of(text: &str, file: usize, start: usize, offset: usize) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut word = String::new();
    let mut begin = None;
    let mut quote = None;
    let mut chars = text[start..].char_indices().peekable();
    let mut end = text.len();
    while let Some((i, c)) = chars.next() {
        let at = start + i;
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                begin.get_or_insert(at);
            }
            (None, '\\') if chars.peek().is_some_and(|(_, n)| *n == '\n' || *n == '\r') => {
                while chars.next_if(|(_, n)| n.is_whitespace()).is_some() {}
                if let Some(b) = begin.take() {
                    let span = offset + b..offset + at;
                    words.push(Word { text: std::mem::take(&mut word), at: Spot { file, span } });
                }
            }
            (None, '\n' | ';' | '|' | '&') => {
                end = at;
                break;
            }
            (None, c) if c.is_whitespace() => {
                if let Some(b) = begin.take() {
                    let span = offset + b..offset + at;
                    words.push(Word { text: std::mem::take(&mut word), at: Spot { file, span } });
                }
            }
            (_, c) => {
                begin.get_or_insert(at);
                word.push(c);
            }
        }
    }
    if let Some(b) = begin {
        let span = offset + b..offset + end;
        words.push(Word { text: word, at: Spot { file, span } });
    }
    words
}

fn container(gather: &mut Gather, file: usize, words: &[Word], run: Spot) {
    let title = Text { text: "docker run".to_owned(), at: run.clone() };
    let mut out = Container { name: title.clone(), ..Container::default() };
    let mut pod = Pod {
        platform: Platform::Compose,
        file,
        kind: "docker run".to_owned(),
        owner: title,
        at: run,
        object: gather.next_object(),
        ..Pod::default()
    };
    let mut i = 0;
    while let Some(word) = words.get(i) {
        i += 1;
        if !word.text.starts_with('-') {
            // arguments that a variable holds are not known
            if word.text.starts_with('$') {
                return;
            }
            out.image = Some(Text { text: word.text.clone(), at: word.at.clone() });
            break;
        }
        let (flag, value) = match word.text.split_once('=') {
            Some((flag, value)) => (flag, Text { text: value.to_owned(), at: word.at.clone() }),
            None if ALONE.contains(&word.text.as_str()) => {
                (word.text.as_str(), Text { text: "true".to_owned(), at: word.at.clone() })
            }
            None => {
                let Some(next) = words.get(i) else { return };
                i += 1;
                (word.text.as_str(), Text { text: next.text.clone(), at: next.at.clone() })
            }
        };
        match flag {
            "--gpus" => {
                let list = value.text.strip_prefix("device=").map(|l| l.split(',').count() as u64);
                let count = list.or_else(|| value.text.parse().ok());
                out.gpus = Some(Gpus { count, capabilities: Vec::new(), at: value.at });
            }
            "--shm-size" => out.shm_size = Some(value),
            "--ipc" => pod.host_ipc = Some(value),
            "--pid" => pod.host_pid = Some(value),
            "--network" | "--net" => pod.host_network = Some(value),
            "--privileged" => out.privileged = Some(value).filter(Text::is_true),
            "--device" => out.devices.push(value),
            "--cap-add" => out.capabilities.push(value),
            "--runtime" => out.runtime = Some(value),
            "--cpuset-cpus" => out.cpuset = Some(value),
            "--user" | "-u" => out.user = Some(value),
            "--ulimit" => {
                if let Some(limit) = value.text.strip_prefix("memlock=") {
                    let last = limit.rsplit(':').next().unwrap_or(limit).to_owned();
                    out.memlock = Some(Text { text: last, at: value.at });
                }
            }
            "--tmpfs" => out.shm_mounted |= value.text.starts_with("/dev/shm"),
            "-v" | "--volume" => {
                let mut parts = value.text.split(':');
                let source = parts.next().unwrap_or_default().to_owned();
                let target = parts.next().unwrap_or_default().to_owned();
                out.shm_mounted |= target == "/dev/shm";
                out.mounts.push(Mount {
                    path: Text { text: target, at: value.at },
                    volume: source,
                    sub_path: None,
                });
            }
            _ => {}
        }
    }
    if out.image.is_none() {
        return;
    }
    out.command = words[i.min(words.len())..]
        .iter()
        .map(|w| Text { text: w.text.clone(), at: w.at.clone() })
        .collect();
    pod.containers.push(out);
    gather.set.pods.push(pod);
}
