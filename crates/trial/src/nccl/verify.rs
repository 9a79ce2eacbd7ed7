//! One operation on seeded data, filled and compared on the device.

use ncclctl_nccl::{Collective, RedOp};

use super::ffi::DevicePointer;
use super::work::{Work, WorkError};
use crate::engine::{Case, EngineError};
use crate::tcp::check::{self, Table};
use crate::tcp::kernel::Reduction;

/// Units in the last place by which an average of floats may differ: NCCL scales every operand before
/// it adds, which is exact for powers of two only.
fn tolerance(case: &Case, ranks: usize) -> u64 {
    match case.op {
        RedOp::Avg if case.collective.reduces() && check::is_float(case.dtype) => {
            if ranks.is_power_of_two() { 2 } else { 4 }
        }
        _ => 0,
    }
}

/// A block of the result and the table that it must follow.
struct Expected {
    /// Element of the result at which it begins.
    at: usize,
    table: Table,
    /// Position of its first element in the data.
    first: usize,
}

fn expected(case: &Case, rank: usize, ranks: usize, count: usize) -> Vec<Expected> {
    let reduction = Reduction { dtype: case.dtype, op: case.op, ranks };
    let own = rank * count;
    let one = |table, first| vec![Expected { at: 0, table, first }];
    let from = |sender| check::payload(case.dtype, sender);
    let each =
        |first| (0..ranks).map(|r| Expected { at: r * count, table: from(r), first }).collect();
    let is_root = rank == case.root;
    match case.collective {
        Collective::AllReduce => one(check::expected(reduction), 0),
        Collective::Reduce if is_root => one(check::expected(reduction), 0),
        Collective::ReduceScatter => one(check::expected(reduction), own),
        Collective::Broadcast => one(from(case.root), 0),
        Collective::Scatter => one(from(case.root), own),
        Collective::SendRecv => one(from((rank + ranks - 1) % ranks), 0),
        Collective::AllGather => each(0),
        Collective::Gather if is_root => each(0),
        Collective::AllToAll => each(own),
        Collective::Reduce | Collective::Gather => Vec::new(),
    }
}

/// Fills, runs, counts.
pub(super) fn run(work: &mut Work, case: &Case) -> Result<u64, EngineError> {
    let (place, send, _) = work.place(case)?;
    if place.count == 0 {
        return Ok(0);
    }
    let width = case.dtype.size();
    let blocks = expected(case, work.rank, work.ranks, place.count);
    let operand = if case.collective.reduces() {
        check::operand(Reduction { dtype: case.dtype, op: case.op, ranks: work.ranks }, work.rank)
    } else {
        check::payload(case.dtype, work.rank)
    };
    let table_bytes = operand.len().next_multiple_of(256);
    let scratch =
        work.device.allocate(256 + table_bytes * (1 + blocks.len())).map_err(WorkError::from)?;
    let counted = checked(work, case, scratch, &operand, &blocks, |work, tables| {
        work.poison()?;
        work.device.fill(place.send, tables, width, send / width, 0).map_err(WorkError::from)?;
        work.comm()?.issue(case, &place).map_err(WorkError::from)?;
        Ok(())
    });
    work.device.free(scratch);
    counted
}

fn checked(
    work: &mut Work,
    case: &Case,
    scratch: DevicePointer,
    operand: &Table,
    blocks: &[Expected],
    operation: impl FnOnce(&mut Work, DevicePointer) -> Result<(), EngineError>,
) -> Result<u64, EngineError> {
    let (place, ..) = work.place(case)?;
    let width = case.dtype.size();
    let step = operand.len().next_multiple_of(256) as u64;
    let tables = scratch + 256;
    let device = &work.device;
    device.write(scratch, &[0; 8]).map_err(WorkError::from)?;
    device.write(tables, operand).map_err(WorkError::from)?;
    for (index, block) in blocks.iter().enumerate() {
        let at = tables + step * (index as u64 + 1);
        device.write(at, &block.table).map_err(WorkError::from)?;
    }
    operation(work, tables)?;
    let tolerance = tolerance(case, work.ranks);
    for (index, block) in blocks.iter().enumerate() {
        let table = tables + step * (index as u64 + 1);
        let from = place.recv + (block.at * width) as u64;
        let first = block.first;
        work.device
            .count_wrong(from, table, width, place.count, first, tolerance, scratch)
            .map_err(WorkError::from)?;
    }
    work.wait()?;
    let mut wrong = [0; 8];
    work.device.read(scratch, &mut wrong).map_err(WorkError::from)?;
    Ok(u64::from_le_bytes(wrong))
}
