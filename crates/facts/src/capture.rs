//! A capture: the files that the collectors read, as a small tree, with the answers of system calls in
//! one file beside them. A user can look through it, and send it.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::facts::Facts;
use crate::live::{self, Live};
use crate::root::Root;

/// Files that hold other people's variables: never part of a capture.
const NEVER: [&str; 2] = ["environ", "cmdline"];

/// Most bytes of one file in a capture; the processors' list of a large machine is longer.
const MOST: usize = 64 << 10;

/// Collects the facts of the running machine and writes everything that they were read from below
/// `folder`, which must be empty or not there yet.
pub fn save(folder: &Path) -> io::Result<Facts> {
    if folder.exists() && folder.read_dir()?.next().is_some() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the folder is not empty"));
    }
    let root = Root::live().remembering();
    let live = Live::of(&root);
    let facts = Facts::from_live(&root, live.clone());
    let mut done = BTreeSet::new();
    for path in root.touched() {
        copy(&root, folder, &path, &mut done)?;
    }
    let answers = folder.join(live::FILE.trim_start_matches('/'));
    if let Some(parent) = answers.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(answers, serde_json::to_string_pretty(&live)? + "\n")?;
    Ok(facts)
}

/// The root of a capture.
pub fn open(folder: &Path) -> Root {
    let root = Root::captured(folder, std::collections::BTreeMap::new());
    let environment = Live::of(&root).environment;
    Root::captured(folder, environment)
}

/// A captured tree with an environment that was told elsewhere.
pub fn with_environment(
    folder: &Path,
    environment: std::collections::BTreeMap<String, String>,
) -> Root {
    Root::captured(folder, environment)
}

/// Copies one path with every link on its way.
fn copy(root: &Root, folder: &Path, path: &str, done: &mut BTreeSet<String>) -> io::Result<()> {
    let mut at = String::new();
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    for (number, part) in parts.iter().enumerate() {
        at = format!("{at}/{part}");
        let Some(target) = root.link(&at) else { continue };
        let text = target.to_string_lossy().into_owned();
        if done.insert(at.clone()) {
            let place = folder.join(at.trim_start_matches('/'));
            if let Some(parent) = place.parent() {
                std::fs::create_dir_all(parent)?;
            }
            if !place.exists() && !place.is_symlink() {
                symlink(&text, &place)?;
            }
        }
        // namespaces are links to nothing that is in a tree
        if text.contains(":[") {
            return Ok(());
        }
        let folder_of = at.rsplit_once('/').map_or("", |(f, _)| f);
        let next = if text.starts_with('/') { text } else { format!("{folder_of}/{text}") };
        let rest = parts[number + 1..].join("/");
        let Some(next) = root.real(&next) else { return Ok(()) };
        return if rest.is_empty() {
            copy(root, folder, &next, done)
        } else {
            copy(root, folder, &format!("{next}/{rest}"), done)
        };
    }
    if !done.insert(format!("{at} ")) || NEVER.iter().any(|n| at.ends_with(n)) {
        return Ok(());
    }
    let place = folder.join(at.trim_start_matches('/'));
    match root.bytes(&at) {
        Ok(mut bytes) => {
            bytes.truncate(MOST);
            if let Some(parent) = place.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(place, bytes)
        }
        // a folder that was listed: its entries' names are facts too
        Err(_) if root.real(&at).is_some() => {
            std::fs::create_dir_all(&place)?;
            if keeps_names(&at) {
                for name in root.list(&at).into_iter().filter(|n| decides(&at, n)) {
                    let entry = place.join(&name);
                    match root.link(&format!("{at}/{name}")) {
                        Some(target) if !entry.is_symlink() => symlink(target, entry)?,
                        None if entry.exists() => {}
                        None if root.is_folder(&format!("{at}/{name}")) => {
                            std::fs::create_dir_all(entry)?;
                        }
                        None => std::fs::write(entry, "")?,
                        _ => {}
                    }
                }
            }
            Ok(())
        }
        Err(_) => Ok(()),
    }
}

/// Folders whose names alone say something: libraries, and links of sysfs.
fn keeps_names(at: &str) -> bool {
    at.contains("/lib")
        || at.starts_with("/sys/class/")
        || at.contains("site-packages")
        || at.contains("dist-packages")
        || at == "/sys/kernel/iommu_groups"
}

/// Whether a name in such a folder decides anything: of the hundreds of libraries of an image only
/// those that collectors look for are kept.
fn decides(at: &str, name: &str) -> bool {
    at.starts_with("/sys/") || crate::software::looks_for(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_of_this_machine_says_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("capture");
        let live = save(&at).unwrap();
        let again = Facts::collect(&open(&at));
        assert_eq!(again.interfaces, live.interfaces);
        assert_eq!(again.container, live.container);
        assert_eq!(again.software, live.software);
        assert_eq!(again.pci, live.pci);
        assert_eq!(again.gpu, live.gpu);
        assert_eq!(again, live);
        assert!(save(&at).is_err(), "nothing is overwritten");
    }
}
