//! Real environments with known faults: the planner's questions name each fault, and nothing that is
//! in order. Format: fixtures/cases/README.md.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "what goes wrong here fails the test that asked for it"
)]

use std::path::Path;

use ncclctl_nccl::doubt::Weight;
use ncclctl_plan::{Node, Request, plan};

#[test]
fn questions_about_environments() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases");
    let mut seen = 0;
    for entry in std::fs::read_dir(root).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(case) = std::fs::read_to_string(folder.join("case.toml")) else { continue };
        let line = |key: &str| case.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        let list = |key: &str| -> Vec<String> {
            line(key).split('"').skip(1).step_by(2).map(str::to_owned).collect()
        };
        if !line("kind").contains("\"env\"") {
            continue;
        }
        seen += 1;
        let mut node = Node { name: "node".into(), ..Node::default() };
        for input in list("inputs").iter().filter(|input| input.ends_with(".env")) {
            let text = std::fs::read_to_string(folder.join(input)).unwrap();
            let pairs = text.lines().filter_map(|line| line.split_once('='));
            node.settings.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        let made = plan(&[node], Request::default());
        let name = folder.file_name().unwrap().to_string_lossy();
        let asked: Vec<&str> = made.questions.iter().map(|q| q.rule.as_str()).collect();
        for rule in list("expected") {
            assert!(asked.contains(&rule.as_str()), "{name}: {rule} is not among {asked:?}");
        }
        for rule in list("must_not") {
            assert!(!asked.contains(&rule.as_str()), "{name}: {rule}");
        }
        let loud = made.questions.iter().any(|q| q.weight >= Weight::Warning);
        assert_eq!(loud, !list("expected").is_empty(), "{name}: {asked:?}");
    }
    assert!(seen >= 4, "{seen} cases");
}
