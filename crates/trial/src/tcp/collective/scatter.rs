//! Scatter: the root sends every rank its block, in turn.

use super::super::buffers::Place;
use super::super::job::{Algorithm, Job};
use super::super::wires::Edges;

static DIRECT: Algorithm = Algorithm {
    name: "direct",
    edges: |job| {
        if job.rank == job.root {
            Edges { out: (0..job.ranks).filter(|r| *r != job.root).collect(), input: Vec::new() }
        } else {
            Edges { out: Vec::new(), input: vec![job.root] }
        }
    },
    run: |job, wires, buffers| {
        let bytes = job.bytes();
        if job.rank != job.root {
            return wires.receive(job.root, buffers.write(Place::Recv, 0..bytes));
        }
        for to in (0..job.ranks).filter(|r| *r != job.root) {
            wires.send(to, buffers.read(Place::Send, to * bytes..(to + 1) * bytes))?;
        }
        buffers.copy_own(job.rank * bytes, 0, bytes);
        Ok(())
    },
};

pub(super) fn choose(_: &Job) -> &'static Algorithm {
    &DIRECT
}
