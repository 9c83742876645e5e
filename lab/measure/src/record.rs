//! Format of results: JSON lines, one header, rows, notes, one end. The fields are
//! documented for other programs in `docs/schema/record.md`.
//!
//! A record is written to a temporary file beside its destination and renamed when it is finished,
//! so that a file of that name is always whole. Reading names file, line and field of whatever is
//! wrong.

use crate::clock::ClockFacts;
use crate::stats::PairedRatio;
use crate::{Latencies, Machine, Surroundings, Warning};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod figure;
mod histogram;
pub mod names;
mod reading;
mod row;
mod writing;

pub use figure::{Figure, FigureKind};
pub use histogram::Histogram;
pub use reading::{MOST_BYTES, RecordError, bytes, folder, read, read_all, read_text, unpacked};
pub use row::{CellKey, PART_NOISE, Row, by_cell, distinct, groups, made_up, total_ns};
pub use writing::{PRIVATE, PUBLIC, Writer, is_special, write_file};

/// The schema written by this version; others are refused.
pub const SCHEMA_VERSION: u32 = 2;

/// The first line: under which circumstances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    pub tool: String,
    pub command: Vec<String>,
    /// When it started, RFC 3339, UTC.
    pub started: String,
    pub machine: Machine,
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Build flags and environment that matter.
    pub flags: BTreeMap<String, String>,
    /// Allocator, tunables and limits of the program that was measured; none in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// Clock that measured the time.
    pub clock: ClockFacts,
    /// Latency per level, where it was calibrated.
    pub latencies: Option<Latencies>,
    pub warnings: Vec<Warning>,
    /// Figures that are drawn from the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

impl Header {
    /// A header of the present moment: schema, time, and the command line of this process.
    pub fn now(tool: &str, machine: Machine, clock: ClockFacts, seed: u64) -> Header {
        let now = jiff::Timestamp::now();
        Header {
            schema: SCHEMA_VERSION,
            tool: tool.to_owned(),
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            started: now.round(jiff::Unit::Second).unwrap_or(now).to_string(),
            machine,
            settings: BTreeMap::new(),
            seed,
            flags: BTreeMap::new(),
            surroundings: Some(Surroundings::of_process()),
            clock,
            latencies: None,
            warnings: Vec::new(),
            figures: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub text: String,
}

/// Decisions made from the rows: the profile's lines, with what stands behind each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decisions {
    /// The decisions: a kernel for each range of sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<Decision>,
}

/// One operation, one hint, one range of sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    pub operation: String,
    pub reuse: String,
    pub from: u64,
    /// Last size, inclusive; absent is without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// The kernel's name, or `libc`.
    pub kernel: String,
    /// Time over libc's that was shown for it, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<PairedRatio>,
    /// Why this one, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The last line; a record without it is not whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub rows: u64,
    /// True if the run was stopped early.
    pub interrupted: bool,
    /// Seconds from the header to here.
    #[serde(with = "crate::rounded")]
    pub seconds: f64,
    /// The most memory the process had resident, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// Sentences about the rows; the first is the headline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub header: Header,
    pub rows: Vec<Row>,
    pub notes: Vec<Note>,
    /// Decisions made from the rows; empty unless a tuning made it.
    pub decisions: Decisions,
    /// The end; there is one in every record that was read.
    pub end: Option<End>,
}

impl Record {
    /// The experiment that it was run for; none where it is no experiment's, as of a tuning.
    pub fn experiment(&self) -> Option<&str> {
        self.setting("experiment")
    }

    /// Name of this record among several in a file: a program's name where a program was asked about, else the
    /// experiment's.
    pub fn name(&self) -> Option<&str> {
        self.setting("name").or_else(|| self.experiment())
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.header.settings.get(name).and_then(|value| value.as_str())
    }
}

#[cfg(test)]
#[path = "record/tests.rs"]
mod tests;
