//! Lines of PyTorch's collective watchdog.
//!
//! Source: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, PyTorch 1.13 to 2.9.

/// A collective that did not finish in time, as one rank reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeout {
    /// Process group, where the version prints it.
    pub group: Option<String>,
    /// Rank in it.
    pub rank: u32,
    /// Number of the collective in its group.
    pub sequence: u64,
    /// Operation in capitals, like `ALLREDUCE`.
    pub operation: String,
    /// Elements given in, where printed.
    pub elements: Option<u64>,
    /// Time-out, milliseconds.
    pub timeout_ms: u64,
}

/// How far a rank's queue is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Process group, where the version prints it.
    pub group: Option<String>,
    /// Rank in it.
    pub rank: u32,
    /// Last collective that was called.
    pub enqueued: u64,
    /// Last collective that finished.
    pub completed: u64,
}

/// Reads `[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=…, OpType=…, …)`.
pub fn timeout(text: &str) -> Option<Timeout> {
    let mark = text.find("Watchdog caught collective operation timeout")?;
    let (group, rank) = who(&text[..mark])?;
    let work = &text[mark..];
    let field = |key: &str| {
        let rest = &work[work.find(key)? + key.len()..];
        Some(&rest[..rest.find([',', ')']).unwrap_or(rest.len())])
    };
    Some(Timeout {
        group,
        rank,
        sequence: field("SeqNum=")?.parse().ok()?,
        operation: field("OpType=").unwrap_or("a collective").to_owned(),
        elements: field("NumelIn=").and_then(|n| n.parse().ok()),
        timeout_ms: field("Timeout(ms)=").and_then(|n| n.parse().ok()).unwrap_or(0),
    })
}

/// Reads `… last enqueued NCCL work: 1582, last completed NCCL work: 1579.`
pub fn state(text: &str) -> Option<State> {
    let number = |key: &str| {
        let rest = &text[text.find(key)? + key.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    let enqueued = number("last enqueued NCCL work: ")?;
    let (group, rank) = who(&text[..text.find("last enqueued")?])?;
    Some(State {
        group,
        rank,
        enqueued,
        completed: number("last completed NCCL work: ").unwrap_or(0),
    })
}

/// The last `[Rank 3]`, `[PG 1 Rank 3]` or `[PG ID 1 PG GUID 2(tp) Rank 3]` before a message.
fn who(text: &str) -> Option<(Option<String>, u32)> {
    let at = text.rfind("Rank ")?;
    let rest = &text[at + 5..];
    let rank = rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()?;
    let open = text[..at].rfind('[')?;
    let group = text[open + 1..at].trim();
    Some(((!group.is_empty()).then(|| group.to_owned()), rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version() {
        let t = timeout("Epoch 0: 6%|##  | 1/2 loss=2.590][E ProcessGroupNCCL.cpp:458] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=64088, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1801251 milliseconds before timing out.").unwrap();
        assert_eq!((t.rank, t.sequence, t.timeout_ms, t.group), (7, 64088, 1_800_000, None));
        let t = timeout("[rank3]:[E321 02:07:08.432009114 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, NumelOut=466119168, Timeout(ms)=600000) ran for 600063 milliseconds before timing out.").unwrap();
        assert_eq!((t.rank, t.elements), (3, Some(466_119_168)));
        let s = state("[rank0]:[E321 02:07:08.5 ProcessGroupNCCL.cpp:1664] [PG ID 0 PG GUID 0(default_pg) Rank 0] Exception (either an error or timeout) detected by watchdog at work: 1580, last enqueued NCCL work: 1582, last completed NCCL work: 1579.").unwrap();
        assert_eq!((s.rank, s.enqueued, s.completed), (0, 1582, 1579));
        assert_eq!(s.group.as_deref(), Some("PG ID 0 PG GUID 0(default_pg)"));
        assert_eq!(timeout("Watchdog caught collective operation timeout"), None);
    }
}
