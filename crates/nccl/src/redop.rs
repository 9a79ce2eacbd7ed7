//! NCCL's built-in reduction operations.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reduction operation. The discriminant is NCCL's own `ncclRedOp_t` value.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[repr(i32)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum RedOp {
    Sum = 0,
    Prod = 1,
    Max = 2,
    Min = 3,
    /// Sum divided by the number of ranks. Since NCCL 2.10.3.
    Avg = 4,
}

/// A name that is no reduction operation.
#[derive(Debug, thiserror::Error)]
#[error("unknown reduction `{0}`; expected one of sum, prod, max, min, avg")]
pub struct UnknownRedOp(String);

impl RedOp {
    /// All operations, in NCCL's order.
    pub const ALL: [Self; 5] = [Self::Sum, Self::Prod, Self::Max, Self::Min, Self::Avg];

    /// nccl-tests' name, as in its redop column and `-o`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Prod => "prod",
            Self::Max => "max",
            Self::Min => "min",
            Self::Avg => "avg",
        }
    }
}

impl fmt::Display for RedOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RedOp {
    type Err = UnknownRedOp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|o| o.name() == text)
            .ok_or_else(|| UnknownRedOp(text.to_owned()))
    }
}
