//! NCCL's element types.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An element type of NCCL. The discriminant is NCCL's own `ncclDataType_t` value.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[repr(i32)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum DataType {
    Int8 = 0,
    Uint8 = 1,
    Int32 = 2,
    Uint32 = 3,
    Int64 = 4,
    Uint64 = 5,
    #[serde(rename = "half")]
    Float16 = 6,
    #[serde(rename = "float")]
    Float32 = 7,
    #[serde(rename = "double")]
    Float64 = 8,
    /// Since NCCL 2.10.3.
    Bfloat16 = 9,
    /// Since NCCL 2.24.3.
    #[serde(rename = "f8e4m3")]
    Float8E4m3 = 10,
    /// Since NCCL 2.24.3.
    #[serde(rename = "f8e5m2")]
    Float8E5m2 = 11,
}

/// A name that is no data type.
#[derive(Debug, thiserror::Error)]
#[error("unknown data type `{0}`; expected one of {list}", list = DataType::names())]
pub struct UnknownDataType(String);

impl DataType {
    /// All types, in NCCL's order.
    pub const ALL: [Self; 12] = [
        Self::Int8,
        Self::Uint8,
        Self::Int32,
        Self::Uint32,
        Self::Int64,
        Self::Uint64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
        Self::Bfloat16,
        Self::Float8E4m3,
        Self::Float8E5m2,
    ];

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            Self::Int8 | Self::Uint8 | Self::Float8E4m3 | Self::Float8E5m2 => 1,
            Self::Float16 | Self::Bfloat16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::Int64 | Self::Uint64 | Self::Float64 => 8,
        }
    }

    /// nccl-tests' name, as in its type column and `-d`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Uint8 => "uint8",
            Self::Int32 => "int32",
            Self::Uint32 => "uint32",
            Self::Int64 => "int64",
            Self::Uint64 => "uint64",
            Self::Float16 => "half",
            Self::Float32 => "float",
            Self::Float64 => "double",
            Self::Bfloat16 => "bfloat16",
            Self::Float8E4m3 => "f8e4m3",
            Self::Float8E5m2 => "f8e5m2",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DataType {
    type Err = UnknownDataType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let alias = match text {
            "char" => "int8",
            "int" => "int32",
            "float16" | "fp16" => "half",
            "float32" | "fp32" => "float",
            "float64" | "fp64" => "double",
            "bf16" => "bfloat16",
            "float8_e4m3" | "fp8_e4m3" | "float8e4m3" => "f8e4m3",
            "float8_e5m2" | "fp8_e5m2" | "float8e5m2" => "f8e5m2",
            other => other,
        };
        Self::ALL
            .into_iter()
            .find(|t| t.name() == alias)
            .ok_or_else(|| UnknownDataType(text.to_owned()))
    }
}
