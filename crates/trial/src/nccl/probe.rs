//! Raw streams between ranks: sends and receives, no collective.
//!
//! Both ends must issue the same number of operations, so the sender leads: with every round it
//! tells, in 4 bytes beside the data, how large the next round is; 0 ends the stream.

use std::time::{Duration, Instant};

use ncclctl_nccl::DataType;

use super::ffi::DevicePointer;
use super::work::{Work, WorkError};
use crate::engine::{EngineError, Probe, Received};

/// Bytes in which the size of a round is told.
const UNIT: u64 = 256 << 10;
/// How long a round should take: long against a launch, short against the whole.
const ROUND: Duration = Duration::from_millis(60);
/// Exchanges of 8 bytes that are timed; the least counts.
const PINGS: usize = 5;
/// Most units of one round, 256 GiB.
const MOST: u32 = 1 << 20;

/// A stream from or to a peer.
struct Live {
    peer: usize,
    /// Units of this round.
    units: u32,
    /// Where its 4 bytes lie on the device.
    word: DevicePointer,
    bytes: u64,
    since: Option<Instant>,
    until: Option<Instant>,
}

/// Streams over the pairs that this rank is in.
pub(super) fn run(work: &mut Work, probe: &Probe) -> Result<Vec<Received>, EngineError> {
    let rank = work.rank;
    let peers = |out: bool| -> Vec<usize> {
        probe
            .pairs
            .iter()
            .filter(|(a, b)| a != b && (if out { *a } else { *b }) == rank)
            .map(|(a, b)| if out { *b } else { *a })
            .collect()
    };
    let (to, from) = (peers(true), peers(false));
    if to.is_empty() && from.is_empty() {
        return Ok(Vec::new());
    }
    let words = work.device.allocate(256 * (to.len() + from.len() + 1)).map_err(WorkError::from)?;
    let streamed = stream(work, probe.duration, &to, &from, words);
    work.device.free(words);
    streamed
}

fn stream(
    work: &mut Work,
    duration: Duration,
    to: &[usize],
    from: &[usize],
    words: DevicePointer,
) -> Result<Vec<Received>, EngineError> {
    let live = |peer: usize, index: usize| Live {
        peer,
        units: 1,
        word: words + 256 * index as u64,
        bytes: 0,
        since: None,
        until: None,
    };
    let mut out: Vec<Live> = to.iter().enumerate().map(|(i, p)| live(*p, i)).collect();
    let mut inward: Vec<Live> =
        from.iter().enumerate().map(|(i, p)| live(*p, to.len() + i)).collect();
    let round_trip_us = pings(work, &out, &inward)?;
    let begun = Instant::now();
    let mut round = Duration::ZERO;
    while out.iter().chain(&inward).any(|l| l.units > 0) {
        // the next round: about as long as wanted, judged by the one before
        let over = begun.elapsed() + round >= duration;
        for l in out.iter().filter(|l| l.units > 0) {
            let next = if over {
                0
            } else if round.is_zero() {
                4
            } else {
                // one quick round by chance must not make the next one endless
                let scale = (ROUND.as_secs_f64() / round.as_secs_f64()).min(8.0);
                (f64::from(l.units) * scale).clamp(1.0, f64::from(MOST)) as u32
            };
            work.device.write(l.word, &next.to_le_bytes()).map_err(WorkError::from)?;
        }
        let began = Instant::now();
        exchange(work, &out, &inward)?;
        round = began.elapsed();
        for (lives, received) in [(&mut out, false), (&mut inward, true)] {
            for l in lives.iter_mut().filter(|l| l.units > 0) {
                // the first round makes connections and is not counted
                if received && l.since.is_some() {
                    l.bytes += u64::from(l.units) * UNIT;
                    l.until = Some(Instant::now());
                }
                l.since.get_or_insert_with(Instant::now);
                let mut next = [0; 4];
                work.device.read(l.word, &mut next).map_err(WorkError::from)?;
                l.units = u32::from_le_bytes(next).min(MOST);
            }
        }
    }
    Ok(inward
        .iter()
        .filter_map(|l| {
            let seconds = l.until?.duration_since(l.since?).as_secs_f64();
            (seconds > 0.0).then(|| Received {
                from: l.peer,
                rate_bps: l.bytes as f64 / seconds,
                seconds,
                round_trip_us,
            })
        })
        .collect())
}

/// One round: all live streams together, in messages as large as the buffers allow.
fn exchange(work: &Work, out: &[Live], inward: &[Live]) -> Result<(), EngineError> {
    let comm = work.comm()?;
    let stream = work.device.stream;
    let (send, recv, room) = work.buffers();
    let words = comm.group(|| {
        for l in out.iter().filter(|l| l.units > 0) {
            comm.send(l.word, 4, DataType::Uint8, l.peer, stream)?;
        }
        for l in inward.iter().filter(|l| l.units > 0) {
            comm.receive(l.word, 4, DataType::Uint8, l.peer, stream)?;
        }
        Ok(())
    });
    words.map_err(WorkError::from)?;
    let room = room as u64;
    let piece = |l: &Live, at: u64| (u64::from(l.units) * UNIT).saturating_sub(at).min(room);
    let mut at = 0;
    loop {
        let left = |l: &&Live| piece(l, at) > 0;
        if !out.iter().chain(inward).any(|l| left(&l)) {
            return work.wait();
        }
        let group = comm.group(|| {
            for l in out.iter().filter(left) {
                comm.send(send, piece(l, at) as usize, DataType::Uint8, l.peer, stream)?;
            }
            for l in inward.iter().filter(left) {
                comm.receive(recv, piece(l, at) as usize, DataType::Uint8, l.peer, stream)?;
            }
            Ok(())
        });
        group.map_err(WorkError::from)?;
        at += room;
        work.pulse.beat();
    }
}

/// Least time of an exchange of 8 bytes over all pairs at once, there and back.
fn pings(work: &Work, out: &[Live], inward: &[Live]) -> Result<Option<f64>, EngineError> {
    let comm = work.comm()?;
    let stream = work.device.stream;
    let (send, recv, _) = work.buffers();
    let mut least = f64::INFINITY;
    for _ in 0..PINGS {
        let began = Instant::now();
        let group = comm.group(|| {
            for l in out {
                comm.send(send, 8, DataType::Uint8, l.peer, stream)?;
            }
            for l in inward {
                comm.receive(recv, 8, DataType::Uint8, l.peer, stream)?;
            }
            Ok(())
        });
        group.map_err(WorkError::from)?;
        work.wait()?;
        least = least.min(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok((!out.is_empty() && !inward.is_empty()).then_some(2.0 * least))
}
