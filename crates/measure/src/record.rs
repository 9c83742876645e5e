//! How results are written down: JSON lines, one header, rows, notes, one end. The fields are
//! documented for other programs in `docs/schema/record.md`.
//!
//! A record is written to a temporary file beside its destination and renamed when it is finished,
//! so that a file of that name is always whole. Reading names file, line and field of whatever is
//! wrong.

use crate::clock::ClockFacts;
use crate::stats::{DriftVerdict, PairedRatio, Verdict};
use crate::{Latencies, Machine, Proof, Warning};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod figure;
mod reading;
mod writing;

pub use figure::{Figure, FigureKind, Histogram};
pub use reading::{RecordError, read, read_partial, read_text};
pub use writing::Writer;

/// The schema written by this version; newer ones are refused, older ones would be converted.
pub const SCHEMA_VERSION: u32 = 1;

/// The first line: under which circumstances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Program and version.
    pub tool: String,
    /// Its command line.
    pub command: Vec<String>,
    /// When it started, RFC 3339, UTC.
    pub started: String,
    /// On what machine.
    pub machine: Machine,
    /// What the experiment was set to.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// What all randomness was started from.
    pub seed: u64,
    /// Build flags and environment that matter.
    pub flags: BTreeMap<String, String>,
    /// What told the time.
    pub clock: ClockFacts,
    /// Latency per level, where it was calibrated.
    pub latencies: Option<Latencies>,
    /// What disturbed it.
    pub warnings: Vec<Warning>,
    /// How the rows are drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

impl Header {
    /// A header of the present moment: schema, time, and the command line of this process.
    #[must_use]
    pub fn now(tool: &str, machine: Machine, clock: ClockFacts, seed: u64) -> Header {
        Header {
            schema: SCHEMA_VERSION,
            tool: tool.to_owned(),
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            started: now_rfc3339(),
            machine,
            settings: BTreeMap::new(),
            seed,
            flags: BTreeMap::new(),
            clock,
            latencies: None,
            warnings: Vec::new(),
            figures: Vec::new(),
        }
    }
}

/// This moment in UTC, to the second.
fn now_rfc3339() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

/// One contestant in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The experiment's name.
    pub experiment: String,
    /// What was measured.
    pub cell: CellKey,
    /// Who did it.
    pub contestant: String,
    /// Whom it is compared with.
    pub reference: String,
    /// Calls per sample.
    pub calls: u32,
    /// Nanoseconds per call, by round.
    #[serde(with = "crate::rounded::list")]
    pub operation_ns: Vec<f64>,
    /// Nanoseconds of the reader per call, by round; empty without one.
    #[serde(with = "crate::rounded::list", default, skip_serializing_if = "Vec::is_empty")]
    pub reader_ns: Vec<f64>,
    /// Nanoseconds the bystander lost per call, by round; empty without one.
    #[serde(with = "crate::rounded::list", default, skip_serializing_if = "Vec::is_empty")]
    pub bystander_ns: Vec<f64>,
    /// The operation's time over the reference's.
    pub ratio: Option<PairedRatio>,
    /// What that ratio says.
    pub verdict: Option<Verdict>,
    /// Operation, reader and bystander together over the reference's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ratio: Option<PairedRatio>,
    /// Where the operands were: source, then destination, as far as there were proofs. Of the whole
    /// cell, and so on the reference's row alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
    /// Whether the machine changed meanwhile. Of the whole cell, and so on the reference's row
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftVerdict>,
    /// Whether it was dropped early for its slowness.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
    /// Figures particular to the experiment.
    #[serde(with = "crate::rounded::map", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
    /// The distribution of single calls, where the experiment is about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

/// What was measured: the coordinates of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellKey {
    /// The operation's name.
    pub operation: String,
    /// Bytes per call.
    pub size: u64,
    /// Level of the source, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Level of the destination, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// A free label: `warm`, `cold`, an alignment.
    pub state: String,
    /// Fraction of the destination read afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<f64>,
    /// Bytes of the bystander.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bystander: Option<u64>,
    /// Further coordinates by name: `threads`, `delay_ns`, `offset`, `first_difference`.
    #[serde(with = "crate::rounded::map", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub axes: BTreeMap<String, f64>,
}

/// A remark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// One sentence.
    pub text: String,
}

/// The last line; a record without it is not whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Rows written.
    pub rows: u64,
    /// Whether the run was stopped early.
    pub interrupted: bool,
    /// Seconds from the header to here.
    #[serde(with = "crate::rounded")]
    pub seconds: f64,
    /// The most memory the process had resident, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// What the rows say, in sentences; the first is the headline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<String>,
}

/// Any line.
// Lines live one at a time, so that the largest being large costs nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Line {
    /// The first line.
    Header(Header),
    /// A result.
    Row(Row),
    /// A remark.
    Note(Note),
    /// The last line.
    End(End),
}

/// A record as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Circumstances.
    pub header: Header,
    /// Results.
    pub rows: Vec<Row>,
    /// Remarks.
    pub notes: Vec<Note>,
    /// The end; absent only from [`read_partial`].
    pub end: Option<End>,
}

#[cfg(test)]
#[path = "record/tests.rs"]
mod tests;
