//! Takes in files, recognised by what stands in them, and joins them to one set.

use ncclctl_artefacts::tree::{self, Node};
use ncclctl_nccl::{Version, conf};

use super::kubernetes::Bag;
use super::{
    Block, Documents, File, Origin, Setting, Spot, Text, compose, dockerfile, kubernetes, lines,
    marks, secrets,
};
use crate::policy::Provider;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A Dockerfile.
    Dockerfile,
    /// A Compose file.
    Compose,
    /// Kubernetes manifests.
    Manifest,
    /// `NAME=value` lines.
    EnvFile,
    /// NCCL's own configuration file.
    Conf,
    /// A shell script or batch file.
    Shell,
    /// A Python program.
    Python,
}

/// A file that could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Index into [`Documents::files`].
    pub file: usize,
    /// Byte at which it stopped.
    pub at: usize,
    /// Why.
    pub why: String,
}

/// Builds the set.
#[derive(Debug, Default)]
pub struct Gather {
    pub(super) set: Documents,
    pub(super) bags: Vec<Bag>,
    /// Settings of env files by name, for Compose's `env_file`.
    pub(super) env_files: Vec<(String, Vec<Setting>)>,
    objects: usize,
    /// Values of Kubernetes Secrets.
    pub(super) of_secrets: Vec<Spot>,
    trees: Vec<(usize, Form, Vec<Node>)>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

/// Bytes that are enough to recognise a file.
const HEAD: usize = 1 << 16;

/// What a file is, by its content; its name only decides between formats that look alike. `None`
/// where it is nothing that rules look at.
pub fn recognise(name: &str, text: &str) -> Option<Form> {
    let mut end = text.len().min(HEAD);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = &text[..end];
    // a log may quote a command, a manifest or a program
    const LOG: [&str; 6] =
        ["NCCL INFO", "NCCL WARN", "NCCL version", "Traceback (most", "ProcessGroupNCCL", "[rank"];
    if LOG.iter().any(|sign| head.contains(sign)) {
        return None;
    }
    let base = name.rsplit('/').next().unwrap_or(name);
    let first = head.lines().find(|l| !l.trim().is_empty()).unwrap_or_default();
    if first.starts_with("#!") {
        return if first.contains("python") { Some(Form::Python) } else { Some(Form::Shell) };
    }
    let line = |starts: &str| head.lines().any(|l| l.starts_with(starts));
    let yaml = base.ends_with(".yaml") || base.ends_with(".yml") || base.ends_with(".json");
    if !yaml {
        let from = head.lines().any(|l| l.to_ascii_uppercase().starts_with("FROM "));
        let other = ["RUN ", "ENV ", "COPY ", "CMD ", "ENTRYPOINT ", "ARG ", "WORKDIR "];
        let names = base.contains("Dockerfile") || base.contains("Containerfile");
        if from && (names || other.iter().any(|o| line(o))) {
            return Some(Form::Dockerfile);
        }
        if names && line("ENV ") {
            return Some(Form::Dockerfile);
        }
    }
    let opens = head
        .lines()
        .map(str::trim)
        .find(|l| !l.is_empty() && !l.starts_with('#') && *l != "---")
        .unwrap_or_default();
    let manifest = yaml
        || ["apiVersion:", "kind:", "metadata:", "items:", "spec:", "{", "- apiVersion:"]
            .iter()
            .any(|start| opens.starts_with(start));
    if manifest && head.contains("apiVersion") && head.contains("kind") {
        return Some(Form::Manifest);
    }
    if line("services:") || (line("x-") && head.contains("\nservices:")) {
        return Some(Form::Compose);
    }
    if yaml {
        return None;
    }
    let python = (line("import ") || line("from ")) && head.contains("environ");
    if base.ends_with(".py") || python {
        return Some(Form::Python);
    }
    if base.ends_with(".sh")
        || base.ends_with(".sbatch")
        || base.ends_with(".slurm")
        || line("#SBATCH ")
    {
        return Some(Form::Shell);
    }
    let assigns = |l: &str| {
        let l = l.strip_prefix("export ").unwrap_or(l);
        let name = l.split('=').next().unwrap_or_default();
        l.contains('=')
            && !name.is_empty()
            && name.trim().bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let written: Vec<&str> =
        head.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let all = !written.is_empty()
        && written.iter().filter(|l| assigns(l)).count() * 10 >= written.len() * 8;
    if base.ends_with("nccl.conf") || base.starts_with("nccl") && base.ends_with(".conf") {
        return Some(Form::Conf);
    }
    let named = base.ends_with(".env") || base.starts_with(".env");
    if all && (named || head.contains("NCCL_")) {
        return Some(Form::EnvFile);
    }
    let commands = ["export NCCL_", "mpirun ", "srun ", "docker run ", "torchrun "];
    let script = head.contains("NCCL_") && commands.iter().any(|c| line(c));
    script.then_some(Form::Shell)
}

impl Gather {
    /// An empty set for a release that the user named.
    pub fn new(target: Option<Version>, driver: Option<u32>, pedantic: bool) -> Self {
        let set = Documents { target, driver, pedantic, ..Documents::default() };
        Self { set, ..Self::default() }
    }

    /// Says where the jobs run.
    pub fn platform(&mut self, platform: Option<Provider>) {
        self.set.provider = platform;
    }

    /// Takes a file; what it was taken for, `None` where it is nothing that rules look at.
    pub fn add(&mut self, name: &str, text: impl Into<String>) -> Option<Form> {
        let text: String = text.into();
        let form = recognise(name, &text)?;
        // it joins the list at the end of this, with its text
        let file = self.set.files.len();
        self.set.marks.extend(marks::read(file, form, &text));
        match form {
            Form::Dockerfile => dockerfile::take(self, file, &text),
            Form::Compose | Form::Manifest => {
                let (documents, broken) = tree::read(&text);
                self.unread.extend(broken.into_iter().map(|b| Unread {
                    file,
                    at: b.at,
                    why: b.why,
                }));
                self.trees.push((file, form, documents));
            }
            Form::EnvFile => {
                let settings = lines::env_file(self, file, &text, 0);
                self.env_files.push((name.to_owned(), settings.clone()));
                self.block(Origin::EnvFile, file, settings, None, None);
            }
            Form::Conf => {
                let settings = lines::conf_file(file, &text, 0);
                self.block(Origin::Conf, file, settings, None, None);
            }
            Form::Shell => lines::shell(self, file, &text, 0),
            Form::Python => {
                let settings = lines::python(file, &text);
                if !settings.is_empty() {
                    self.block(Origin::Python, file, settings, None, None);
                }
            }
        }
        self.set.files.push(File { name: name.to_owned(), text, shown: None });
        Some(form)
    }

    /// The whole set, joined: what one file says of another is known only now.
    pub fn finish(mut self) -> (Documents, Vec<Unread>) {
        let trees = std::mem::take(&mut self.trees);
        // what others refer to comes first
        let refers = |d: &&Node| {
            !matches!(d.get("kind").and_then(Node::text), Some("ConfigMap" | "Secret" | "List"))
        };
        for (file, form, documents) in &trees {
            if *form == Form::Manifest {
                for d in documents.iter().filter(|d| !refers(d)) {
                    kubernetes::take(&mut self, *file, d);
                }
            }
        }
        for (file, form, documents) in &trees {
            match form {
                Form::Manifest => {
                    for d in documents.iter().filter(refers) {
                        kubernetes::take(&mut self, *file, d);
                    }
                }
                _ => {
                    for d in documents {
                        compose::take(&mut self, *file, d);
                    }
                }
            }
        }
        secrets::hide(&mut self.set, std::mem::take(&mut self.of_secrets));
        (self.set, self.unread)
    }

    pub(super) fn next_object(&mut self) -> usize {
        self.objects += 1;
        self.objects
    }

    pub(super) fn spot(&self, file: usize, node: &Node) -> Spot {
        Spot { file, span: node.span.clone() }
    }

    pub(super) fn text(&self, file: usize, node: &Node) -> Text {
        let text = match node.is_null() {
            true => String::new(),
            false => node.text().unwrap_or_default().to_owned(),
        };
        Text { text, at: self.spot(file, node) }
    }

    /// The lines of an item of a block sequence or of a plain block key, to take it out whole.
    pub(super) fn item(&self, file: usize, node: &Node) -> Option<Spot> {
        let text = &self.set.files.get(file)?.text;
        let start = text[..node.span.start].rfind('\n').map_or(0, |i| i + 1);
        let lead = text.get(start..node.span.start)?;
        if !lead.chars().all(|c| matches!(c, ' ' | '-')) {
            return None;
        }
        // a mapping's end may lie at the start of what follows it
        let inner = text.get(node.span.clone())?.trim_end();
        let last = node.span.start + inner.len();
        let end = text[last..].find('\n').map_or(text.len(), |i| last + i + 1);
        Some(Spot { file, span: start..end })
    }

    pub(super) fn bag(&self, name: &str, namespace: &str) -> Option<&Bag> {
        self.bags.iter().find(|b| b.name == name && b.namespace == namespace)
    }

    pub(super) fn block(
        &mut self,
        origin: Origin,
        file: usize,
        settings: Vec<Setting>,
        version: Option<Version>,
        container: Option<(usize, usize)>,
    ) -> usize {
        self.set.blocks.push(Block { origin, file, settings, version, container });
        self.set.blocks.len() - 1
    }

    /// `-x NAME=value` of a literal mpirun line, and exports of a shell text, in a container's
    /// command.
    pub(super) fn launcher(&mut self, file: usize, command: &[Text], container: (usize, usize)) {
        let mut settings = Vec::new();
        let mut after_flag = false;
        for word in command {
            if word.text.contains('\n') || word.text.contains(' ') {
                settings.extend(lines::exports_in(&self.set, word));
            } else if let Some(setting) = lines::assignment(word).filter(|_| after_flag) {
                settings.push(setting);
            }
            after_flag = matches!(word.text.as_str(), "-x" | "--env" | "-e" | "-genv");
        }
        if !settings.is_empty() {
            self.block(Origin::Launcher, file, settings, None, Some(container));
        }
    }

    /// A file in NCCL's format inside a block scalar.
    pub(super) fn embedded_conf(&mut self, file: usize, value: &Node) {
        let Some((offset, text)) = self.raw(file, value) else { return };
        let mut settings = lines::conf_file(file, &text, offset);
        // the indentation of the block is no part of the file
        for s in &mut settings {
            let lead = s.name.text.len() - s.name.text.trim_start().len();
            s.name.text.drain(..lead);
            s.name.at.span.start += lead;
        }
        self.block(Origin::Conf, file, settings, None, None);
    }

    /// A shell or env file inside a block scalar.
    pub(super) fn embedded_shell(&mut self, file: usize, value: &Node) {
        let Some((offset, text)) = self.raw(file, value) else { return };
        lines::shell(self, file, &text, offset);
    }

    fn raw(&self, file: usize, value: &Node) -> Option<(usize, String)> {
        let text = &self.set.files.get(file)?.text;
        Some((value.span.start, text.get(value.span.clone())?.to_owned()))
    }
}

/// Lines of a file in NCCL's format; kept here so that the grammar has one home.
pub(super) fn conf_entries(text: &str) -> Vec<conf::Entry<'_>> {
    conf::read(text)
        .into_iter()
        .filter_map(|line| match line.what {
            conf::What::Entry(entry) => Some(entry),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_content() {
        for (name, text, form) in [
            ("-", "apiVersion: v1\nkind: Pod\n", Some(Form::Manifest)),
            ("a.json", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\"}", Some(Form::Manifest)),
            ("-", "x-a: &a {}\nservices:\n  a: {}\n", Some(Form::Compose)),
            ("-", "FROM ubuntu\nRUN true\n", Some(Form::Dockerfile)),
            ("x", "NCCL_DEBUG=INFO\n# c\nA=1\n", Some(Form::EnvFile)),
            ("nccl.conf", "NCCL_DEBUG=INFO\n", Some(Form::Conf)),
            ("run", "#!/bin/sh\ntrue\n", Some(Form::Shell)),
            ("-", "export NCCL_DEBUG=INFO\nls -l\nmpirun x\n", Some(Form::Shell)),
            ("a.py", "x = 1\n", Some(Form::Python)),
            // logs that quote files
            ("log", "+ export NCCL_DEBUG=INFO\nhello\n", None),
            ("log", "export NCCL_DEBUG=INFO\nh:1:2 [0] NCCL INFO x\n", None),
            ("log", "Traceback (most recent call last):\n  os.environ[\"NCCL_X\"]\n", None),
            ("log", "event: {\"apiVersion\": \"v1\", \"kind\": \"Pod\"}\n", None),
            ("values.yaml", "replicas: 1\n", None),
            ("README", "see NCCL_DEBUG\n", None),
        ] {
            assert_eq!(recognise(name, text), form, "{name}: {text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(
            name in "(a.yaml|Dockerfile|nccl.conf|x.sh|x.py|.env|-)",
            text in "((FROM x\n|ENV A=|RUN |apiVersion: v1\nkind: Job\nspec: |services:\n  a: |NCCL_DEBUG=|export |environ\\[\"|[ \n\"'=$\\\\{}:<-]|\\PC){0,12})",
        ) {
            let mut gather = Gather::new(None, None, true);
            gather.add(&name, &text);
            let (set, _) = gather.finish();
            for finding in super::super::check(&set) {
                if let Some(fix) = finding.fix {
                    proptest::prop_assert!(text.get(fix.start..fix.end).is_some(), "{fix:?}");
                }
            }
        }
    }
}
