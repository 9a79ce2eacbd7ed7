//! How long the blocks are that travel round a ring.
//!
//! A rank is never further ahead with sending than one block beyond what it has received, so a block
//! must cover what a path holds in flight and what a late wake-up costs; and it should be no longer,
//! since what leaves was received one block earlier and is best still in the cache. (Over four
//! 4 Gbit/s links on two processors 64 KiB blocks moved 1.6 times as much as 1 MiB ones; but over two
//! links of 1 Gbit/s on a busy machine they moved a quarter of what 1 MiB ones did.)

use std::time::Instant;

use super::wires::Wires;
use crate::engine::EngineError;

/// Over the loopback, where the wire is memory and both ends copy at the same pace.
pub(super) const LOOPBACK: usize = 128 * 1024;
/// Two milliseconds at 1 Gbit/s: what a rank may come late on a busy host.
const LEAST: usize = 256 * 1024;
const MOST: usize = 4 << 20;
/// What one thread can send, receive and reduce at best, bytes per second.
const THREAD_BPS: f64 = 2.5e9;
/// Blocks are this much longer than an idle path needs.
const MARGIN: f64 = 4.0;
/// Trips of which the least counts.
const TRIPS: usize = 10;

/// Block for a round trip.
fn for_round_trip(seconds: f64) -> usize {
    ((seconds * THREAD_BPS * MARGIN) as usize).clamp(LEAST, MOST).next_power_of_two()
}

/// Measures the ring's edges and agrees on the block that the slowest of them needs.
pub(super) fn agree(rank: usize, ranks: usize, wires: &mut Wires) -> Result<usize, EngineError> {
    let (next, previous) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    let mut least = f64::INFINITY;
    for trip in 0..TRIPS {
        // everyone sends and hears: one way, or somewhat more where a neighbour is late
        let begin = Instant::now();
        wires.send(next, &[trip as u8; 8])?;
        wires.receive(previous, &mut [0; 8])?;
        least = least.min(begin.elapsed().as_secs_f64());
    }
    let mut block = for_round_trip(2.0 * least) as u32;
    // the greatest, once round the ring
    let mut passing = block.to_le_bytes();
    for _ in 1..ranks {
        wires.send(next, &passing)?;
        wires.receive(previous, &mut passing)?;
        block = block.max(u32::from_le_bytes(passing));
    }
    Ok((block as usize).clamp(LEAST, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_the_path_within_limits() {
        assert_eq!(for_round_trip(1e-6), LEAST);
        assert_eq!(for_round_trip(100e-6), 1 << 20);
        assert_eq!(for_round_trip(1.0), MOST);
        assert_eq!(for_round_trip(f64::INFINITY), MOST);
    }
}
