//! What a data connection says first: that it belongs to this trial, and which socket it is.

/// Bytes of a hello.
pub(super) const HELLO_BYTES: usize = 40;
/// Answer of the accepting side once it has taken the connection.
pub(super) const WELCOME: [u8; 8] = *b"ncclctl+";

const MAGIC: [u8; 8] = *b"ncclctl1";

/// Which socket of which edge a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Sending rank, the one that connects.
    pub(super) from: u32,
    /// Thread that it belongs to.
    pub(super) thread: u16,
    /// Index among the thread's sockets to this peer.
    pub(super) socket: u16,
}

/// Why a hello is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Not this protocol at all.
    Garbage,
    /// Another trial's or a forged nonce.
    WrongNonce,
    /// Meant for another rank (two ranks behind one address, as with some address translation).
    Misdirected,
}

impl Key {
    /// The bytes to send to rank `to`.
    pub(super) fn encode(self, nonce: &[u8; 16], to: u32) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(nonce);
        bytes[24..28].copy_from_slice(&self.from.to_le_bytes());
        bytes[28..32].copy_from_slice(&to.to_le_bytes());
        bytes[32..34].copy_from_slice(&self.thread.to_le_bytes());
        bytes[34..36].copy_from_slice(&self.socket.to_le_bytes());
        bytes
    }

    /// Reads a hello sent to rank `me`.
    pub(super) fn decode(
        bytes: &[u8; HELLO_BYTES],
        nonce: &[u8; 16],
        me: u32,
    ) -> Result<Self, Refusal> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if bytes[..8] != MAGIC {
            return Err(Refusal::Garbage);
        }
        if !same(&bytes[8..24], nonce) {
            return Err(Refusal::WrongNonce);
        }
        if word(28) != me {
            return Err(Refusal::Misdirected);
        }
        Ok(Self { from: word(24), thread: short(32), socket: short(34) })
    }
}

/// Compares in a time that does not depend on where the difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0u8, |all, (x, y)| all | (x ^ y));
    a.len() == b.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_hello_is_taken() {
        let key = Key { from: 70_000, thread: 3, socket: 9 };
        let nonce = [7; 16];
        let hello = key.encode(&nonce, 5);
        assert_eq!(Key::decode(&hello, &nonce, 5), Ok(key));
        assert_eq!(Key::decode(&hello, &nonce, 6), Err(Refusal::Misdirected));
        for bit in 0..128 {
            let mut wrong = nonce;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Key::decode(&hello, &wrong, 5), Err(Refusal::WrongNonce));
        }
        assert_eq!(
            Key::decode(b"GET / HTTP/1.1\r\nHost: 10.0.0.1:4000\r\n\r\n ", &nonce, 5),
            Err(Refusal::Garbage)
        );
    }
}
