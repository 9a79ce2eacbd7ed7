//! The one visible list of rules.

use crate::rule::Rule;

/// All rules, in alphabetical order. Help, documentation, schema and completions are views of it.
pub const RULES: &[&Rule] = &[];
