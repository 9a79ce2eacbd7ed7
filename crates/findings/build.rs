//! Puts the doc comment at the head of every rule's file into the program, so that `--explain` has it
//! without the repository.

#![expect(clippy::disallowed_methods, reason = "a build script reads the sources")]

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("src/rules");
    println!("cargo::rerun-if-changed=src/rules");
    let mut files: Vec<PathBuf> =
        folder.read_dir()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "rs"));
    files.sort();
    let mut out = String::from("&[\n");
    for path in files {
        let source = std::fs::read_to_string(&path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().replace('_', "-");
        // the first line says the id again, for readers of the source
        let page: Vec<&str> = source
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .skip(1)
            .map(|line| line.trim_start_matches("//!").strip_prefix(' ').unwrap_or_default())
            .collect();
        writeln!(out, "({name:?}, {:?}),", page.join("\n").trim())?;
    }
    out.push_str("]\n");
    let to = PathBuf::from(std::env::var("OUT_DIR")?).join("pages.rs");
    std::fs::write(to, out)?;
    Ok(())
}
