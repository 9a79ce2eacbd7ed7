//! A reader of Python pickles that only ever makes data.
//!
//! Numbers, text, lists, tuples and dicts are read; whatever would import or call anything is
//! refused by name. PyTorch writes typed lists as a call of `torch.jit._pickle.build_*list`: these
//! names, and no others, are taken for the list that they are given.
//!
//! Source of the format: Python's `pickletools`.

use serde_json::{Map, Number, Value};

/// Values that one pickle may make.
const VALUES: usize = 16_000_000;
/// Depth of what it may make.
const DEPTH: usize = 64;

/// Why a pickle was refused, at which byte.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PickleError {
    /// It asks for code to be run.
    #[error("byte {0}: `{1}` would run code, which is never done")]
    Code(usize, String),
    /// An instruction that no pickle of data needs.
    #[error("byte {0}: instruction {1:#04x} is not read here")]
    Unknown(usize, u8),
    /// It ends in the middle.
    #[error("it ends after byte {0}, in the middle")]
    Cut(usize),
    /// Its instructions do not fit together.
    #[error("byte {0}: broken, its instructions do not fit together")]
    Broken(usize),
    /// It would make too much.
    #[error("it makes more than {VALUES} values, or nests deeper than {DEPTH}")]
    TooLarge,
}

/// Whether bytes begin a pickle of protocol 2 or later.
pub fn is_pickle(head: &[u8]) -> bool {
    matches!(head, [0x80, 2..=5, ..])
}

#[derive(Clone, Debug)]
enum Node {
    Plain(Value),
    List(Vec<usize>),
    Dict(Vec<(usize, usize)>),
    /// A permitted name that only passes a list on.
    Passes,
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    stack: Vec<usize>,
    marks: Vec<usize>,
    memo: Vec<Option<usize>>,
}

/// Reads a pickle as JSON data.
pub fn read(bytes: &[u8]) -> Result<Value, PickleError> {
    let mut machine = Machine {
        bytes,
        at: 0,
        nodes: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
    };
    let top = machine.run()?;
    let mut budget = VALUES;
    machine.value(top, 0, &mut budget)
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Result<usize, PickleError> {
        loop {
            let start = self.at;
            if self.nodes.len() > VALUES {
                return Err(PickleError::TooLarge);
            }
            match self.take(1)?[0] {
                0x80 => _ = self.take(1)?,
                0x95 => _ = self.take(8)?,
                b'.' => return self.pop(start),
                b'(' => self.marks.push(self.stack.len()),
                b'N' => self.plain(Value::Null),
                0x88 => self.plain(Value::Bool(true)),
                0x89 => self.plain(Value::Bool(false)),
                b'J' => {
                    let n = i32::from_le_bytes(self.array()?);
                    self.plain(n.into());
                }
                b'K' => {
                    let n = self.take(1)?[0];
                    self.plain(n.into());
                }
                b'M' => {
                    let n = u16::from_le_bytes(self.array()?);
                    self.plain(n.into());
                }
                0x8a => {
                    let width = usize::from(self.take(1)?[0]);
                    self.long(width)?;
                }
                0x8b => {
                    let width = self.length(4)?;
                    self.long(width)?;
                }
                b'G' => {
                    let n = f64::from_be_bytes(self.array()?);
                    self.plain(Number::from_f64(n).map_or(Value::Null, Value::Number));
                }
                0x8c | b'U' | b'C' => self.text(1)?,
                b'X' | b'T' | b'B' => self.text(4)?,
                0x8d | 0x8e => self.text(8)?,
                b']' | b')' => self.push(Node::List(Vec::new())),
                b'}' => self.push(Node::Dict(Vec::new())),
                b't' | b'l' => {
                    let items = self.since_mark(start)?;
                    self.push(Node::List(items));
                }
                b'd' => {
                    let items = self.since_mark(start)?;
                    self.push(Node::Dict(pairs(&items)));
                }
                kind @ 0x85..=0x87 => {
                    let count = usize::from(kind - 0x84);
                    let from = self.stack.len().checked_sub(count);
                    let items = self.stack.split_off(from.ok_or(PickleError::Broken(start))?);
                    self.push(Node::List(items));
                }
                b'a' => {
                    let item = self.pop(start)?;
                    self.extend(&[item], start)?;
                }
                b'e' => {
                    let items = self.since_mark(start)?;
                    self.extend(&items, start)?;
                }
                b's' => {
                    let value = self.pop(start)?;
                    let key = self.pop(start)?;
                    self.set(&[key, value], start)?;
                }
                b'u' => {
                    let items = self.since_mark(start)?;
                    self.set(&items, start)?;
                }
                b'q' => {
                    let slot = usize::from(self.take(1)?[0]);
                    self.put(slot, start)?;
                }
                b'r' => {
                    let slot = self.length(4)?;
                    self.put(slot, start)?;
                }
                0x94 => self.put(self.memo.len(), start)?,
                b'h' => {
                    let slot = usize::from(self.take(1)?[0]);
                    self.get(slot, start)?;
                }
                b'j' => {
                    let slot = self.length(4)?;
                    self.get(slot, start)?;
                }
                b'0' => _ = self.pop(start)?,
                b'c' => {
                    let module = self.line()?;
                    let name = self.line()?;
                    let passes = module == "torch.jit._pickle"
                        && name.starts_with("build_")
                        && name.ends_with("list");
                    if !passes {
                        return Err(PickleError::Code(start, format!("{module}.{name}")));
                    }
                    self.push(Node::Passes);
                }
                // a permitted name applied to a tuple of one list is that list
                b'R' => {
                    let arguments = self.pop(start)?;
                    let name = self.pop(start)?;
                    let list = match (&self.nodes[name], &self.nodes[arguments]) {
                        (Node::Passes, Node::List(items)) => items.first().copied(),
                        _ => None,
                    };
                    self.stack.push(list.ok_or(PickleError::Broken(start))?);
                }
                code @ (b'b' | b'i' | b'o' | b'P' | b'Q' | 0x81 | 0x82..=0x84 | 0x92 | 0x93) => {
                    return Err(PickleError::Code(start, format!("instruction {code:#04x}")));
                }
                code => return Err(PickleError::Unknown(start, code)),
            }
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], PickleError> {
        let end = self.at.checked_add(count).ok_or(PickleError::Cut(self.bytes.len()))?;
        let piece = self.bytes.get(self.at..end).ok_or(PickleError::Cut(self.bytes.len()))?;
        self.at = end;
        Ok(piece)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        self.take(N)?.try_into().map_err(|_| PickleError::Cut(self.at))
    }

    fn length(&mut self, width: usize) -> Result<usize, PickleError> {
        let bytes = self.take(width)?;
        let n = bytes.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
        usize::try_from(n).map_err(|_| PickleError::TooLarge)
    }

    fn line(&mut self) -> Result<String, PickleError> {
        let rest = &self.bytes[self.at..];
        let end =
            rest.iter().position(|b| *b == b'\n').ok_or(PickleError::Cut(self.bytes.len()))?;
        self.at += end + 1;
        Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
    }

    fn text(&mut self, width: usize) -> Result<(), PickleError> {
        let length = self.length(width)?;
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.plain(Value::String(text));
        Ok(())
    }

    fn long(&mut self, width: usize) -> Result<(), PickleError> {
        let bytes = self.take(width)?;
        let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
        let mut n: i128 = if negative { -1 } else { 0 };
        for b in bytes.iter().rev().take(16) {
            n = n << 8 | i128::from(*b);
        }
        let value = i64::try_from(n)
            .map(Value::from)
            .or_else(|_| u64::try_from(n).map(Value::from))
            .unwrap_or(Value::Null);
        self.plain(value);
        Ok(())
    }

    fn push(&mut self, node: Node) {
        self.nodes.push(node);
        self.stack.push(self.nodes.len() - 1);
    }

    fn plain(&mut self, value: Value) {
        self.push(Node::Plain(value));
    }

    fn pop(&mut self, start: usize) -> Result<usize, PickleError> {
        self.stack.pop().ok_or(PickleError::Broken(start))
    }

    fn since_mark(&mut self, start: usize) -> Result<Vec<usize>, PickleError> {
        let mark = self.marks.pop().ok_or(PickleError::Broken(start))?;
        if mark > self.stack.len() {
            return Err(PickleError::Broken(start));
        }
        Ok(self.stack.split_off(mark))
    }

    fn extend(&mut self, items: &[usize], start: usize) -> Result<(), PickleError> {
        let list = *self.stack.last().ok_or(PickleError::Broken(start))?;
        match &mut self.nodes[list] {
            Node::List(list) => list.extend_from_slice(items),
            _ => return Err(PickleError::Broken(start)),
        }
        Ok(())
    }

    fn set(&mut self, items: &[usize], start: usize) -> Result<(), PickleError> {
        let dict = *self.stack.last().ok_or(PickleError::Broken(start))?;
        match &mut self.nodes[dict] {
            Node::Dict(dict) => dict.extend(pairs(items)),
            _ => return Err(PickleError::Broken(start)),
        }
        Ok(())
    }

    fn put(&mut self, slot: usize, start: usize) -> Result<(), PickleError> {
        let top = *self.stack.last().ok_or(PickleError::Broken(start))?;
        // a slot far beyond what was made is an attack on memory
        if slot > self.nodes.len() + 1024 {
            return Err(PickleError::TooLarge);
        }
        if slot >= self.memo.len() {
            self.memo.resize(slot + 1, None);
        }
        self.memo[slot] = Some(top);
        Ok(())
    }

    fn get(&mut self, slot: usize, start: usize) -> Result<(), PickleError> {
        let node = self.memo.get(slot).copied().flatten().ok_or(PickleError::Broken(start))?;
        self.stack.push(node);
        Ok(())
    }

    fn value(&self, node: usize, depth: usize, budget: &mut usize) -> Result<Value, PickleError> {
        if depth > DEPTH || *budget == 0 {
            return Err(PickleError::TooLarge);
        }
        *budget -= 1;
        Ok(match &self.nodes[node] {
            Node::Plain(value) => value.clone(),
            Node::List(items) => {
                let items = items.iter().map(|i| self.value(*i, depth + 1, budget));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Node::Dict(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    let key = match self.value(*key, depth + 1, budget)? {
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    map.insert(key, self.value(*value, depth + 1, budget)?);
                }
                Value::Object(map)
            }
            Node::Passes => Value::Null,
        })
    }
}

fn pairs(items: &[usize]) -> Vec<(usize, usize)> {
    items.chunks_exact(2).map(|p| (p[0], p[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // pickle.dumps({"entries": [{"op": "nccl:all_reduce", "seq": 70000, "ok": True, "x": None,
    //   "t": (1, 2), "f": 0.5, "big": 2**40}]}, protocol=2)
    const SAMPLE: &[u8] = b"\x80\x02}q\x00X\x07\x00\x00\x00entriesq\x01]q\x02}q\x03(X\x02\x00\x00\x00opq\x04X\x0f\x00\x00\x00nccl:all_reduceq\x05X\x03\x00\x00\x00seqq\x06Jp\x11\x01\x00X\x02\x00\x00\x00okq\x07\x88X\x01\x00\x00\x00xq\x08NX\x01\x00\x00\x00tq\tK\x01K\x02\x86q\nX\x01\x00\x00\x00fq\x0bG?\xe0\x00\x00\x00\x00\x00\x00X\x03\x00\x00\x00bigq\x0c\x8a\x06\x00\x00\x00\x00\x00\x01uas.";

    #[test]
    fn reads_data() {
        let value = read(SAMPLE).unwrap();
        assert_eq!(
            value.to_string(),
            r#"{"entries":[{"op":"nccl:all_reduce","seq":70000,"ok":true,"x":null,"t":[1,2],"f":0.5,"big":1099511627776}]}"#
        );
    }

    #[test]
    fn never_runs_anything() {
        let attack = b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.";
        assert_eq!(read(attack), Err(PickleError::Code(2, "os.system".to_owned())));
        let list = b"\x80\x02ctorch.jit._pickle\nbuild_intlist\n](K\x01K\x02e\x85R.";
        assert_eq!(read(list).unwrap().to_string(), "[1,2]");
        // ]q0 h0 h0 ea: doubles with every step
        let mut bomb = b"\x80\x02]q\x00".to_vec();
        for _ in 0..60 {
            bomb.extend_from_slice(b"](h\x00h\x00eq\x00");
        }
        bomb.push(b'.');
        assert_eq!(read(&bomb), Err(PickleError::TooLarge));
        // a list in itself
        assert_eq!(read(b"\x80\x02]q\x00h\x00a."), Err(PickleError::TooLarge));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(cut in 0usize..SAMPLE.len(), byte in 0usize..SAMPLE.len(), new: u8) {
            let mut bytes = SAMPLE.to_vec();
            bytes[byte] = new;
            let _ = read(&bytes[..cut]);
            let _ = read(&bytes);
        }
    }
}
