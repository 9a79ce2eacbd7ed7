//! Gather: every rank sends its block to the root, which takes them in turn.

use super::super::buffers::Place;
use super::super::job::{Algorithm, Job};
use super::super::wires::Edges;

static DIRECT: Algorithm = Algorithm {
    name: "direct",
    edges: |job| {
        if job.rank == job.root {
            Edges { out: Vec::new(), input: (0..job.ranks).filter(|r| *r != job.root).collect() }
        } else {
            Edges { out: vec![job.root], input: Vec::new() }
        }
    },
    run: |job, wires, buffers| {
        let bytes = job.bytes();
        if job.rank != job.root {
            return wires.send(job.root, buffers.read(Place::Send, 0..bytes));
        }
        buffers.copy_own(0, job.rank * bytes, bytes);
        for from in (0..job.ranks).filter(|r| *r != job.root) {
            wires.receive(from, buffers.write(Place::Recv, from * bytes..(from + 1) * bytes))?;
        }
        Ok(())
    },
};

pub(super) fn choose(_: &Job) -> &'static Algorithm {
    &DIRECT
}
