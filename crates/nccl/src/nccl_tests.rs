//! What nccl-tests prints: the table of every version since 2.0, and the file of `-J`.
//!
//! Reading never fails: what is no part of a table is left alone, rows that are torn apart by log
//! lines of NCCL in the middle are counted, and an empty result says that there was no table.

mod json;
mod line;
mod table;

pub use json::{NotJson, read_json};
pub use table::read_table;

/// One run of one collective: a table, or one JSON file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Test name, like `all_reduce_perf`, where a line says it (2.16.7 and later).
    pub test: Option<String>,
    /// Version of nccl-tests (2.17.4 and later).
    pub tests_version: Option<String>,
    /// Version of the NCCL library as a code like 22705 (2.17.4 and later).
    pub library: Option<u32>,
    /// Ranks, as the `# Rank` lines list them.
    pub ranks: Vec<RankLine>,
    /// Rows, in their order.
    pub rows: Vec<TestRow>,
    /// `# Out of bounds values`: the count, and whether the tests called it OK.
    pub out_of_bounds: Option<(u64, bool)>,
    /// `# Avg bus bandwidth`: GB/s, and whether it was called OK (only with NCCL_TESTS_MIN_BW).
    pub average_busbw: Option<(f64, Option<bool>)>,
    /// `# error:` lines (2.17.4 and later).
    pub errors: Vec<String>,
    /// Lines that begin like a row and are none: torn apart, or cut off.
    pub torn: u64,
    /// Whether the sum line was seen: without it the run did not come to its end.
    pub ended: bool,
}

/// A `#  Rank` line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankLine {
    /// Rank number.
    pub rank: u64,
    /// Process id.
    pub pid: u64,
    /// Host name.
    pub host: String,
    /// Device number, identity and name: `0 [0000:01:00] NVIDIA H100 80GB HBM3`.
    pub device: String,
}

/// One size.
#[derive(Clone, Debug, PartialEq)]
pub struct TestRow {
    /// Line of the input, from 1; 0 in JSON.
    pub line: u64,
    /// Size column, bytes.
    pub size: u64,
    /// Count column, elements.
    pub count: u64,
    /// Type column, like `float`.
    pub dtype: String,
    /// Reduction, where the collective has one.
    pub redop: Option<String>,
    /// Root, where the collective has one.
    pub root: Option<i64>,
    /// Out of place.
    pub out_of_place: Option<Cell>,
    /// In place.
    pub in_place: Option<Cell>,
}

/// One half of a row. Figures that were not numbers are NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Time of one operation, microseconds.
    pub time_us: f64,
    /// Algorithm bandwidth, GB/s.
    pub algbw: f64,
    /// Bus bandwidth, GB/s.
    pub busbw: f64,
    /// Wrong elements (2.13.0 and later), where checked.
    pub wrong: Option<u64>,
    /// Greatest difference, before 2.13.0.
    pub error: Option<f64>,
}

impl Run {
    /// Whether any element was wrong, as far as the rows and the sum line say.
    pub fn wrong(&self) -> bool {
        let cells = self.rows.iter().flat_map(|r| [&r.out_of_place, &r.in_place]).flatten();
        self.out_of_bounds.is_some_and(|(_, ok)| !ok)
            || cells.into_iter().any(|c| c.wrong.is_some_and(|w| w > 0))
    }

    /// Name of the collective, from the test name where there is one.
    pub fn collective(&self) -> Option<crate::Collective> {
        self.test.as_deref()?.trim_end_matches("_perf").parse().ok()
    }
}
