//! Files that the user names: the one place outside `facts` where they are read.

mod archive;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;
use ncclctl_findings::intake::{self, Intake};

use crate::exit::usage;

/// Largest file that is read whole.
const LARGEST: u64 = 256 << 20;

/// Reads a file, or standard input for `-`, as text.
#[expect(clippy::disallowed_methods, reason = "this is the input module")]
pub(crate) fn text(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin()
            .take(LARGEST)
            .read_to_end(&mut bytes)
            .map_err(|error| usage(format!("standard input can not be read: {error}")))?;
    } else {
        let meta = std::fs::metadata(path)
            .map_err(|error| usage(format!("{shown} can not be read: {error}")))?;
        if meta.len() > LARGEST {
            return Err(usage(format!("{shown} is larger than {} MiB", LARGEST >> 20)));
        }
        bytes = std::fs::read(path)
            .map_err(|error| usage(format!("{shown} can not be read: {error}")))?;
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
        usage(format!("{shown}:{line}:{column}: not UTF-8 text"))
    })
}

/// Largest file that is looked at as a document.
const LARGEST_DOCUMENT: u64 = 100 << 20;

/// Hands every file below a path to `take`, .gitignore and `leave_out` respected, with its text or
/// why it has none.
#[expect(clippy::disallowed_methods, reason = "this is the input module")]
pub(crate) fn documents(
    path: &Path,
    leave_out: &Gitignore,
    take: &mut dyn FnMut(&str, Result<String, Broken>),
) -> anyhow::Result<()> {
    if path == Path::new("-") {
        take("-", Ok(text(path)?));
        return Ok(());
    }
    if !path.exists() {
        return Err(usage(format!("{} is not there", path.display())));
    }
    let named = path.is_file();
    // the walk asks about everything below it, and not about the path itself
    if std::path::absolute(path).is_ok_and(|whole| is_out(leave_out, &whole, !named)) {
        return Ok(());
    }
    let out = leave_out.clone();
    let walk = ignore::WalkBuilder::new(path)
        .hidden(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| {
            let folder = entry.file_type().is_some_and(|t| t.is_dir());
            let whole = std::path::absolute(entry.path());
            entry.file_name() != ".git" && !whole.is_ok_and(|p| is_out(&out, &p, folder))
        })
        .build();
    // links are not followed: a loop of them would never end
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                take(&path.display().to_string(), Err(Broken::whole(error.to_string())));
                continue;
            }
        };
        if !entry.file_type().is_some_and(|t| t.is_file()) {
            continue;
        }
        let name = entry.path().strip_prefix("./").unwrap_or(entry.path()).display().to_string();
        if entry.metadata().is_ok_and(|m| m.len() > LARGEST_DOCUMENT) {
            // a data set among the files is none of ours; one that was named is
            if named || may_be_ours(entry.path()) {
                let why = format!("larger than {} MiB: not looked at", LARGEST_DOCUMENT >> 20);
                take(&name, Err(Broken::whole(why)));
            }
            continue;
        }
        match std::fs::read(entry.path()) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => take(&name, Ok(text)),
                // a picture or a program among the files is none of ours; one that was named is
                Err(error) if named || may_be_ours(entry.path()) => {
                    let at = error.utf8_error().valid_up_to();
                    let before = &error.as_bytes()[..at];
                    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
                    let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
                    let byte = error.as_bytes().get(at).copied().unwrap_or(0);
                    let why = format!("not UTF-8 text: byte 0x{byte:02x}");
                    take(&name, Err(Broken { line: line as u64, column: column as u64, why }));
                    // what is readable is still looked at; places before the byte are right
                    let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                    take(&name, Ok(text));
                }
                Err(_) => {}
            },
            Err(error) => take(&name, Err(Broken::whole(error.to_string()))),
        }
    }
    Ok(())
}

/// Why a file has no text, and where.
#[derive(Debug)]
pub(crate) struct Broken {
    /// Line, from 1.
    pub(crate) line: u64,
    /// Column in bytes, from 1.
    pub(crate) column: u64,
    /// Why.
    pub(crate) why: String,
}

impl Broken {
    fn whole(why: String) -> Self {
        Self { line: 1, column: 1, why }
    }
}

/// Names of files that jobs are made of.
fn may_be_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let ends = [".yaml", ".yml", ".env", ".conf", ".sh", ".sbatch", ".slurm", ".py"];
    name.contains("dockerfile") || name == ".env" || ends.iter().any(|end| name.ends_with(end))
}

/// Whether a path, or a folder above it, is left out.
fn is_out(leave_out: &Gitignore, path: &Path, folder: bool) -> bool {
    !leave_out.is_empty()
        && path.starts_with(leave_out.path())
        && leave_out.matched_path_or_any_parents(path, folder).is_ignore()
}

/// The configuration that holds for a path: `ncclctl.toml` in its folder or in one above, up to the
/// root of the repository.
pub(crate) fn configuration(path: &Path) -> Option<PathBuf> {
    let whole = match path == Path::new("-") {
        true => std::path::absolute(".").ok()?,
        false => path.canonicalize().ok()?,
    };
    let folder = if whole.is_dir() { whole.as_path() } else { whole.parent()? };
    for folder in folder.ancestors() {
        let file = folder.join("ncclctl.toml");
        if file.is_file() {
            return Some(file);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

/// Facts of what the user names: captures, results of `facts`, pasted output.
pub(crate) fn facts(paths: &[std::path::PathBuf]) -> anyhow::Result<Vec<ncclctl_facts::Facts>> {
    let mut all = Vec::new();
    for path in paths {
        facts_of(path, &mut all)?;
    }
    if all.is_empty() {
        return Err(usage(
            "no facts in there; a capture of `ncclctl facts --save`, a result of `facts -o json`, or \
             pasted output of `ip -br addr`, `ibstat`, `show_gids`, `nvidia-smi topo -m` is read",
        ));
    }
    Ok(all)
}

fn facts_of(path: &Path, all: &mut Vec<ncclctl_facts::Facts>) -> anyhow::Result<()> {
    let shown = path.display();
    if path.is_dir() {
        let capture = path.join(ncclctl_facts::live::FILE.trim_start_matches('/')).exists()
            || path.join("sys").is_dir()
            || path.join("proc").is_dir();
        if capture {
            all.push(ncclctl_facts::Facts::collect(&ncclctl_facts::capture::open(path)));
            return Ok(());
        }
        return everything(path)?.iter().try_for_each(|p| facts_of(p, all));
    }
    let text = text(path)?;
    if text.trim_start().starts_with('{') {
        let result = ncclctl_report::facts::FactsResult::read(&text)
            .map_err(|error| usage(format!("{shown}: {error}")))?;
        all.extend(result.facts);
    } else {
        all.extend(ncclctl_facts::pasted::read(&text));
    }
    Ok(())
}

/// Hands one input to an intake, piece by piece: a file, standard input for `-`, every file of a
/// directory.
#[expect(clippy::disallowed_methods, reason = "this is the input module")]
pub(crate) fn each(path: &Path, intake: &mut Intake) -> anyhow::Result<()> {
    let shown = path.display();
    let fail = |error: std::io::Error| usage(format!("{shown} can not be read: {error}"));
    if path == Path::new("-") {
        return pieces("-", &mut std::io::stdin().lock(), intake).map_err(fail);
    }
    if path.is_dir() {
        let mut inside: Vec<_> = std::fs::read_dir(path)
            .map_err(fail)?
            .filter_map(|entry| entry.ok().map(|e| e.path()))
            .filter(|p| p.is_file() || (p.is_dir() && !p.is_symlink()))
            .collect();
        inside.sort();
        return inside.iter().try_for_each(|p| each(p, intake));
    }
    let mut file = std::fs::File::open(path).map_err(fail)?;
    pieces(&shown.to_string(), &mut file, intake).map_err(fail)
}

/// Bytes that are read at once: they stay in the processor's cache until they are looked at.
const PIECE: usize = 1 << 18;

/// Unwraps gzip and tar, and hands over what is inside piece by piece.
fn pieces(name: &str, from: &mut dyn std::io::Read, intake: &mut Intake) -> std::io::Result<()> {
    let mut head = Vec::new();
    from.take(PIECE as u64).read_to_end(&mut head)?;
    if archive::is_gzip(&head) {
        let whole = std::io::Cursor::new(head).chain(from);
        let mut inside = flate2::read::MultiGzDecoder::new(whole);
        let name = name.trim_end_matches(".gz");
        return pieces(name, &mut inside, intake);
    }
    if archive::is_tar(&head) {
        let mut whole = std::io::Cursor::new(head).chain(from);
        return archive::members(&mut whole, &mut |member, content| {
            pieces(&format!("{name}!{member}"), content, intake)
        });
    }
    if intake::recognise(name, &head) == intake::Kind::Whole {
        let mut whole = head;
        from.take(LARGEST).read_to_end(&mut whole)?;
        intake.add(name, &whole);
        return Ok(());
    }
    intake.begin(name);
    intake.feed(&head);
    let mut piece = head;
    piece.resize(PIECE, 0);
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n) => intake.feed(&piece[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads an env file by Docker's rules: `NAME=VALUE` lines, `#` comments, no quotes, no expansion;
/// `NAME` alone takes the value of this process's environment.
pub(crate) fn env_file(
    path: &Path,
    environment: &BTreeMap<String, String>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let text = text(path)?;
    let mut values = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (line.trim_end(), environment.get(line.trim_end()).cloned()),
        };
        if name.is_empty() || name.contains(char::is_whitespace) {
            let why = if name.is_empty() { "no name before `=`" } else { "blank in the name" };
            let column = text.lines().nth(number).map_or(1, |whole| whole.len() - line.len() + 1);
            return Err(usage(format!(
                "{}:{}:{column}: {why}; write NAME=VALUE",
                path.display(),
                number + 1
            )));
        }
        if let Some(value) = value {
            values.insert(name.to_owned(), value);
        }
    }
    Ok(values)
}

/// What lies in a folder, by name: files that end in .json, and folders.
pub(crate) fn inside(folder: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut paths = everything(folder)?;
    paths.retain(|p| p.is_dir() || p.extension().is_some_and(|e| e == "json"));
    Ok(paths)
}

/// What lies in a folder, sorted.
#[expect(clippy::disallowed_methods, reason = "this is the input module")]
fn everything(folder: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let fail =
        |error: std::io::Error| usage(format!("{} can not be read: {error}", folder.display()));
    let mut paths: Vec<std::path::PathBuf> = std::fs::read_dir(folder)
        .map_err(fail)?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .collect();
    paths.sort();
    Ok(paths)
}

/// Reads an image's environment: what `docker image inspect` prints, a JSON list of `NAME=VALUE`, or
/// such lines.
pub(crate) fn image_env(path: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let text = text(path)?;
    let start = text.trim_start();
    let lines: Vec<String> = if start.starts_with(['[', '{']) {
        let json: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| usage(format!("{}: no JSON: {error}", path.display())))?;
        let one = json.get(0).filter(|first| first.is_object()).unwrap_or(&json);
        let list = ["/Config/Env", "/config/Env", "/ContainerConfig/Env"]
            .iter()
            .find_map(|pointer| one.pointer(pointer))
            .unwrap_or(one);
        list.as_array()
            .map(|list| list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
            .ok_or_else(|| {
                usage(format!("{}: no list of NAME=VALUE and no Config.Env", path.display()))
            })?
    } else {
        text.lines().map(str::to_owned).collect()
    };
    let pairs = lines.iter().filter_map(|line| line.split_once('='));
    Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// This very program, to be put where it is to run.
#[expect(clippy::disallowed_methods, reason = "reads the program itself")]
pub(crate) fn own_binary() -> anyhow::Result<Vec<u8>> {
    std::fs::read("/proc/self/exe")
        .map_err(|error| crate::exit::environment(format!("/proc/self/exe: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        env_file(file.path(), &BTreeMap::from([("HOME".to_owned(), "/root".to_owned())]))
    }

    #[test]
    fn dockers_rules() {
        let values =
            parse("# a comment\n\nNCCL_DEBUG=INFO\r\n NCCL_X=\"q\"\nHOME\nUNSET\nE=\n").unwrap();
        assert_eq!(values["NCCL_DEBUG"], "INFO");
        assert_eq!(values["NCCL_X"], "\"q\"", "quotes are part of the value");
        assert_eq!(values["HOME"], "/root");
        assert!(!values.contains_key("UNSET"));
        assert_eq!(values["E"], "");
    }

    #[test]
    fn an_image_is_read_in_every_form() {
        let want = [("NCCL_DEBUG".to_owned(), "WARN".to_owned())];
        for text in [
            "NCCL_DEBUG=WARN\n",
            r#"["NCCL_DEBUG=WARN"]"#,
            r#"[{"Config": {"Env": ["NCCL_DEBUG=WARN"]}}]"#,
            r#"{"config": {"Env": ["NCCL_DEBUG=WARN"]}}"#,
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            assert_eq!(image_env(file.path()).unwrap(), want, "{text}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "{\"a\": 1}").unwrap();
        assert!(image_env(file.path()).is_err());
    }

    #[test]
    fn a_bad_line_is_named_with_its_place() {
        let error = parse("A=1\n  export B=2\n").unwrap_err().to_string();
        assert!(error.contains(":2:3: blank in the name"), "{error}");
    }
}
