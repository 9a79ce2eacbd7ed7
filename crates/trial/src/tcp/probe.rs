//! Raw streams between named pairs, all at the same time.

use std::time::{Duration, Instant};

use super::error;
use super::link::Link;
use super::wait::Waiting;
use super::wires::{Edges, Wires};
use crate::engine::{EngineError, Probe, Received};

/// Bytes of one frame: its first byte says whether another follows.
const FRAME: usize = 128 * 1024;
/// Round trips of which the least counts.
const PINGS: usize = 5;
/// Part of the duration that is left out at the start and at the end: streams do not start and
/// stop at the same instant.
const EDGE: f64 = 0.15;

const MORE: u8 = 1;
const LAST: u8 = 0;

/// Links that a probe needs: both directions of each pair, for the round trip.
pub(super) fn edges(rank: usize, probe: &Probe) -> Edges {
    let mut peers: Vec<usize> = probe
        .pairs
        .iter()
        .filter(|(from, to)| from != to)
        .filter_map(|(from, to)| match rank {
            r if r == *from => Some(*to),
            r if r == *to => Some(*from),
            _ => None,
        })
        .collect();
    peers.sort_unstable();
    peers.dedup();
    Edges { out: peers.clone(), input: peers }
}

struct Sending {
    peer: usize,
    at: usize,
    last: bool,
    done: bool,
}

struct Receiving {
    peer: usize,
    at: usize,
    last: bool,
    done: bool,
    round_trip_us: f64,
    /// Time and bytes at the first and the latest reading inside the counted part.
    first: Option<(Instant, u64)>,
    latest: Option<(Instant, u64)>,
    bytes: u64,
}

/// Runs the probe on one thread's links. `memory` is streamed from and into, round and round.
pub(super) fn run(
    rank: usize,
    probe: &Probe,
    wires: &mut Wires,
    send: &mut [u8],
    recv: &mut [u8],
) -> Result<Vec<Received>, EngineError> {
    let mut sending = Vec::new();
    let mut receiving = Vec::new();
    // every rank goes through its pairs in the order of the list, so nobody waits in a circle
    for &(from, to) in probe.pairs.iter().filter(|(from, to)| from != to) {
        if from == rank {
            for _ in 0..PINGS {
                let mut ping = [0; 8];
                wires.receive(to, &mut ping)?;
                wires.send(to, &ping)?;
            }
            sending.push(Sending { peer: to, at: 0, last: false, done: false });
        } else if to == rank {
            let round_trip_us = ping(wires, from)?;
            receiving.push(Receiving {
                peer: from,
                at: 0,
                last: false,
                done: false,
                round_trip_us,
                first: None,
                latest: None,
                bytes: 0,
            });
        }
    }
    for frame in send.chunks_mut(FRAME) {
        frame[0] = MORE;
    }
    let start = Instant::now();
    let mut ending = send[..FRAME].to_vec();
    ending[0] = LAST;
    let counted =
        (start + probe.duration.mul_f64(EDGE), start + probe.duration.mul_f64(1.0 - EDGE));
    let mut waiting = Waiting::new(wires.patience);
    loop {
        let mut moved = false;
        for s in sending.iter_mut().filter(|s| !s.done) {
            let Some(link) = wires.out[s.peer].as_mut() else { continue };
            moved |= push(s, link, send, &ending, start, probe.duration)?;
        }
        for r in receiving.iter_mut().filter(|r| !r.done) {
            let Some(link) = wires.input[r.peer].as_mut() else { continue };
            moved |= pull(r, link, recv, counted)?;
        }
        if moved {
            waiting.moved();
        } else if sending.iter().all(|s| s.done) && receiving.iter().all(|r| r.done) {
            break;
        } else {
            let outs =
                sending.iter().filter(|s| !s.done).filter_map(|s| wires.out[s.peer].as_ref());
            let ins =
                receiving.iter().filter(|r| !r.done).filter_map(|r| wires.input[r.peer].as_ref());
            waiting.pause(outs, ins)?;
        }
    }
    Ok(receiving
        .into_iter()
        .map(|r| {
            let (seconds, bytes) = match (r.first, r.latest) {
                (Some((t0, b0)), Some((t1, b1))) => ((t1 - t0).as_secs_f64(), b1 - b0),
                _ => (0.0, 0),
            };
            let rate_bps = if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 };
            Received { from: r.peer, rate_bps, seconds, round_trip_us: Some(r.round_trip_us) }
        })
        .collect())
}

fn ping(wires: &mut Wires, peer: usize) -> Result<f64, EngineError> {
    let mut least = f64::INFINITY;
    for i in 0..PINGS {
        let begin = Instant::now();
        wires.send(peer, &[i as u8; 8])?;
        wires.receive(peer, &mut [0; 8])?;
        least = least.min(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(least)
}

/// Sends on; whether anything moved.
fn push(
    s: &mut Sending,
    link: &mut Link,
    memory: &[u8],
    ending: &[u8],
    start: Instant,
    duration: Duration,
) -> Result<bool, EngineError> {
    let frame = s.at / FRAME * FRAME;
    if s.at == frame {
        s.last = start.elapsed() >= duration;
    }
    let bytes = if s.last { &ending[s.at - frame..] } else { &memory[s.at..frame + FRAME] };
    match link.send(bytes) {
        Ok(Some(n)) => {
            s.at += n;
            if s.at == frame + FRAME {
                s.done = s.last;
                if s.at + FRAME > memory.len() {
                    s.at = 0;
                }
            }
            Ok(true)
        }
        Ok(None) => Ok(false),
        Err(e) => Err(error::lost(link.peer, error::seen(&e))),
    }
}

/// Receives on; whether anything moved.
fn pull(
    r: &mut Receiving,
    link: &mut Link,
    memory: &mut [u8],
    counted: (Instant, Instant),
) -> Result<bool, EngineError> {
    let frame = r.at / FRAME * FRAME;
    match link.receive(&mut memory[r.at..frame + FRAME]) {
        Ok(Some(n)) => {
            if r.at == frame {
                r.last = memory[frame] == LAST;
            }
            r.at += n;
            r.bytes += n as u64;
            if r.at == frame + FRAME {
                r.done = r.last;
                if r.at + FRAME > memory.len() {
                    r.at = 0;
                }
            }
            let now = Instant::now();
            if now >= counted.0 && now <= counted.1 {
                r.first.get_or_insert((now, r.bytes));
                r.latest = Some((now, r.bytes));
            }
            Ok(true)
        }
        Ok(None) => Ok(false),
        Err(e) => Err(error::lost(link.peer, error::seen(&e))),
    }
}
