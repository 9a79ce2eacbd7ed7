//! YAML (and with it JSON) as a small tree in which every node knows its bytes.

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};

/// Nodes that a file may grow to by its aliases: a small file must not fill the memory.
const MOST_NODES: usize = 2_000_000;

/// Depth of nesting that is read.
const DEEPEST: usize = 200;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Bytes in the file: quotes are part of a scalar.
    pub span: Range<usize>,
    /// What it is.
    pub what: What,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A scalar.
    Scalar {
        /// Its text, unquoted.
        text: String,
        /// Without quotes: `true` is a boolean and `1` a number.
        plain: bool,
    },
    /// A mapping, in order; equal keys are kept.
    Map(Vec<(Node, Node)>),
    /// A sequence.
    List(Vec<Node>),
}

/// Why a file was not read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Broken {
    /// Byte at which it stopped.
    pub at: usize,
    /// Why.
    pub why: String,
}

/// Errors of one file that are told; more of them say nothing new.
const MOST_ERRORS: usize = 20;

/// Reads all documents. What stands before an error is kept, and reading goes on at the next `---`.
pub fn read(text: &str) -> (Vec<Node>, Vec<Broken>) {
    let mut documents = Vec::new();
    let mut errors = Vec::new();
    let mut from = 0;
    // one bound for the whole file
    let mut nodes = 0;
    while let Some(part) = text.get(from..) {
        let mut builder = Builder { nodes, from, ..Builder::default() };
        let broken = builder.read(part);
        nodes = builder.nodes;
        documents.append(&mut builder.documents);
        let Some(broken) = broken else { break };
        let next = text.get(broken.at..).and_then(|rest| rest.find("\n---"));
        let next = next.map(|i| broken.at + i + 1);
        let rest = match next {
            Some(_) => "the rest of this document is not looked at",
            None => "what stands after it is not looked at",
        };
        errors.push(Broken { at: broken.at, why: format!("{}; {rest}", broken.why) });
        match next {
            Some(next) if errors.len() < MOST_ERRORS && nodes <= MOST_NODES => from = next,
            _ => break,
        }
    }
    (documents, errors)
}

#[derive(Default)]
struct Builder {
    documents: Vec<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    /// Byte of the file at which this part begins.
    from: usize,
}

struct Open {
    node: Node,
    key: Option<Node>,
    anchor: usize,
    nodes_before: usize,
}

impl Builder {
    /// Reads up to the first error.
    fn read(&mut self, part: &str) -> Option<Broken> {
        for next in Parser::new_from_str(part) {
            let (event, span) = match next {
                Ok(next) => next,
                Err(error) => {
                    let at = self.from + error.marker().byte_offset().unwrap_or(0).min(part.len());
                    let why = error.info().lines().next().unwrap_or_default().to_owned();
                    return Some(Broken { at, why });
                }
            };
            let range = span.byte_range().unwrap_or(0..0);
            let range = self.from + range.start..self.from + range.end;
            let start = range.start;
            if let Err(why) = self.take(event, range) {
                return Some(Broken { at: start, why: why.to_owned() });
            }
        }
        None
    }

    fn take(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), &'static str> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = matches!(style, ScalarStyle::Plain);
                let node = Node { span, what: What::Scalar { text: text.into_owned(), plain } };
                self.count(1)?;
                if anchor != 0 {
                    self.anchors.insert(anchor, (node.clone(), 1));
                }
                self.put(node);
            }
            Event::SequenceStart(style, anchor, _) => {
                self.begin(What::List(Vec::new()), style, anchor, span)?;
            }
            Event::MappingStart(style, anchor, _) => {
                self.begin(What::Map(Vec::new()), style, anchor, span)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(mut open) = self.open.pop() else { return Ok(()) };
                open.node.span.end = open.node.span.end.max(span.end);
                if open.anchor != 0 {
                    let size = self.nodes - open.nodes_before;
                    self.anchors.insert(open.anchor, (open.node.clone(), size));
                }
                self.put(open.node);
            }
            Event::Alias(anchor) => {
                if let Some((node, size)) = self.anchors.get(&anchor).cloned() {
                    self.count(size)?;
                    self.put(node);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize) -> Result<(), &'static str> {
        self.nodes += nodes;
        match self.nodes > MOST_NODES {
            true => Err("aliases make this file grow beyond two million nodes"),
            false => Ok(()),
        }
    }

    fn begin(
        &mut self,
        what: What,
        _style: StructureStyle,
        anchor: usize,
        span: Range<usize>,
    ) -> Result<(), &'static str> {
        self.count(1)?;
        if self.open.len() >= DEEPEST {
            return Err("nested deeper than 200 levels");
        }
        let nodes_before = self.nodes;
        self.open.push(Open { node: Node { span, what }, key: None, anchor, nodes_before });
        Ok(())
    }

    fn put(&mut self, node: Node) {
        let Some(open) = self.open.last_mut() else {
            self.documents.push(node);
            return;
        };
        match &mut open.node.what {
            What::List(items) => items.push(node),
            What::Map(pairs) => match open.key.take() {
                Some(key) => pairs.push((key, node)),
                None => open.key = Some(node),
            },
            What::Scalar { .. } => {}
        }
    }
}

impl Node {
    /// Text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.what {
            What::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// A scalar that is null: nothing, `~` or `null` without quotes.
    pub fn is_null(&self) -> bool {
        matches!(&self.what, What::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The value of a key; merged mappings (`<<`) count after the own ones.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value)
    }

    /// A key with its value.
    pub fn entry(&self, key: &str) -> Option<(&Node, &Node)> {
        let What::Map(pairs) = &self.what else { return None };
        let own = pairs.iter().find(|(k, _)| k.text() == Some(key)).map(|(k, v)| (k, v));
        own.or_else(|| {
            pairs.iter().filter(|(k, _)| k.text() == Some("<<")).find_map(|(_, v)| match &v.what {
                What::List(items) => items.iter().find_map(|i| i.entry(key)),
                _ => v.entry(key),
            })
        })
    }

    /// The value at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Items of a sequence; nothing for what is none.
    pub fn items(&self) -> &[Node] {
        match &self.what {
            What::List(items) => items,
            _ => &[],
        }
    }

    /// Pairs of a mapping, merged ones behind the own; nothing for what is none.
    pub fn pairs(&self) -> Vec<(&Node, &Node)> {
        let What::Map(pairs) = &self.what else { return Vec::new() };
        let mut found: Vec<(&Node, &Node)> = Vec::new();
        let mut merged = Vec::new();
        for (key, value) in pairs {
            if key.text() == Some("<<") {
                match &value.what {
                    What::List(items) => merged.extend(items.iter().flat_map(Node::pairs)),
                    _ => merged.extend(value.pairs()),
                }
            } else {
                found.push((key, value));
            }
        }
        for (key, value) in merged {
            if !found.iter().any(|(k, _)| k.text() == key.text()) {
                found.push((key, value));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_know_their_bytes() {
        let text = "a: &x\n  b: \"1\"\nc:\n  <<: *x\n  d: [e, f]\n---\ng: 2\n";
        let (documents, broken) = read(text);
        assert_eq!(broken, []);
        assert_eq!(documents.len(), 2);
        let b = documents[0].at(&["c", "b"]).unwrap();
        assert_eq!((b.text(), &text[b.span.clone()]), (Some("1"), "\"1\""));
        let list = documents[0].at(&["c", "d"]).unwrap();
        assert_eq!(list.items().len(), 2);
        assert_eq!(&text[list.span.clone()], "[e, f]");
    }

    #[test]
    fn what_is_around_an_error_is_kept() {
        let text = "a: 1\n---\nb: [\n---\nc: {d: 3}\n";
        let (documents, broken) = read(text);
        assert_eq!(broken.len(), 1);
        assert_eq!(documents.len(), 2);
        let d = documents[1].at(&["c", "d"]).unwrap();
        assert_eq!(&text[d.span.clone()], "3");
        let tabs = read("a:\n\tb: 1\n").1;
        assert!(tabs[0].at >= 3 && tabs[0].why.contains("tab"), "{tabs:?}");
    }

    #[test]
    fn bombs_and_towers_are_refused() {
        let mut bomb = "a0: &a0 [x, x]\n".to_owned();
        for i in 1..40 {
            bomb.push_str(&format!("a{i}: &a{i} [*a{0}, *a{0}]\n", i - 1));
        }
        assert!(read(&bomb).1[0].why.contains("aliases"));
        assert_eq!(read(&"[".repeat(10_000)).1.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn total(text in "([-a-z:&*<>|\"'\\[\\]{}, \\n#!]|\\PC){0,60}") {
            let (documents, _) = read(&text);
            for d in &documents {
                proptest::prop_assert!(d.span.end <= text.len());
            }
        }
    }
}
