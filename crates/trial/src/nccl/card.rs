//! What ranks tell each other before they join: enough to name, before NCCL hangs or refuses, what
//! would make it do so.

use std::collections::BTreeMap;

use ncclctl_nccl::Version;
use serde::{Deserialize, Serialize};

use crate::engine::{EngineError, ErrorKind};

/// One rank's card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Card {
    /// Boot id of the machine, empty where unreadable.
    pub(super) machine: String,
    /// Inode of the network namespace, 0 where unreadable.
    pub(super) netns: u64,
    /// NCCL's version.
    pub(super) version: Version,
    /// File that NCCL was loaded from.
    pub(super) library: String,
    /// GPU's PCI id, like `0000:01:00.0`.
    pub(super) bus_id: String,
    /// GPU's name.
    pub(super) gpu: String,
    /// Several ranks on one GPU are wanted.
    pub(super) shared: bool,
    /// The communicator's id; only rank 0 has one.
    pub(super) id: Option<Vec<u8>>,
}

impl Card {
    /// Whether traffic between the two stays in one network namespace.
    pub(super) fn same_host(&self, other: &Self) -> bool {
        self.same_machine(other) && self.netns == other.netns && self.netns != 0
    }

    fn same_machine(&self, other: &Self) -> bool {
        self.machine == other.machine && !self.machine.is_empty()
    }
}

fn wrong(message: String, kind: ErrorKind, peer: usize) -> EngineError {
    EngineError { message, kind, peer: Some(peer) }
}

/// What would go wrong among these ranks.
pub(super) fn check(cards: &[Card]) -> Result<(), EngineError> {
    let Some(first) = cards.first() else { return Ok(()) };
    if let Some((rank, other)) = cards.iter().enumerate().find(|(_, c)| c.version != first.version)
    {
        let message = format!(
            "rank 0 has NCCL {} ({}), rank {rank} has NCCL {} ({}): all ranks must load the same \
             version",
            first.version, first.library, other.version, other.library
        );
        return Err(wrong(message, ErrorKind::Device, rank));
    }
    let mut taken: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (rank, card) in cards.iter().enumerate() {
        let key = (card.machine.as_str(), card.bus_id.as_str());
        if card.shared || card.machine.is_empty() {
            continue;
        }
        if let Some(other) = taken.insert(key, rank) {
            let message = format!(
                "ranks {other} and {rank} are both on GPU {} ({}), and NCCL takes one rank a GPU: \
                 fewer ranks, or --share-gpu, a test mode in which they talk over sockets",
                card.bus_id, card.gpu
            );
            return Err(wrong(message, ErrorKind::Setting, other));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(machine: &str, bus: &str) -> Card {
        Card {
            machine: machine.to_owned(),
            bus_id: bus.to_owned(),
            gpu: "NVIDIA H200".to_owned(),
            version: Version::new(2, 28, 9),
            library: "/l/libnccl.so.2".to_owned(),
            ..Card::default()
        }
    }

    #[test]
    fn two_versions_are_named() {
        let mut cards = [card("m", "0000:01:00.0"), card("n", "0000:01:00.0")];
        assert_eq!(check(&cards), Ok(()));
        cards[1].version = Version::new(2, 27, 3);
        let error = check(&cards).unwrap_err();
        assert_eq!(error.peer, Some(1));
        insta::assert_snapshot!(error, @"rank 0 has NCCL 2.28.9 (/l/libnccl.so.2), rank 1 has NCCL 2.27.3 (/l/libnccl.so.2): all ranks must load the same version");
    }

    #[test]
    fn two_ranks_on_one_gpu_are_explained() {
        let mut cards = [card("m", "0000:01:00.0"), card("m", "0000:01:00.0")];
        let error = check(&cards).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Setting);
        assert!(error.message.contains("--share-gpu"), "{error}");
        for card in &mut cards {
            card.shared = true;
        }
        assert_eq!(check(&cards), Ok(()));
    }
}
