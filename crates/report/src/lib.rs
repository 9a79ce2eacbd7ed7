//! Results as people and programs read them: nccl-tests' table, verdict and findings in plain words,
//! JSON, CSV, JUnit, and live progress. All are equal consumers of events, evidence and judgement.

pub mod check;
pub mod csv;
pub mod envelope;
pub mod explain;
pub mod facts;
pub mod junit;
pub mod lint;
pub mod network;
pub mod plan;
pub mod progress;
pub mod redact;
pub mod scaling;
pub mod table;
pub mod text;
pub mod topology_xml;
pub mod vars;
pub mod verdict;

pub use envelope::BenchResult;
