//! Figures as they are obtained: the machine they are of, a calibrated clock, operands whose
//! place in the cache hierarchy is made and proved, candidates that take turns, paired statistics,
//! named noise, and records that outlive the run.
//!
//! | open | question it answers |
//! |---|---|
//! | [`Machine`], [`Caches`] | what is this computer? |
//! | [`clock`] | how long did that take? |
//! | [`arena`], [`Operand`], [`Latencies`] | where were the lines when the operation started? |
//! | [`Bystander`] | what did the operation cost those who ran after it? |
//! | [`calls`] | how are single calls distributed? |
//! | [`distributions`] | which sizes and alignments do programs call with? |
//! | [`sampler`] | which candidate spent how long, round by round? |
//! | [`visit`] | how long did one candidate take, for a search that decides whom to visit next? |
//! | [`lines`] | how does a buffer get other bytes, and out of the caches? |
//! | [`verify`] | did it move the right bytes? |
//! | [`costs`] | what do a page fault and a block cost here? |
//! | [`turns`], [`children`] | which whole program runs when, and what CPU did it use? |
//! | [`held`] | how much memory do its processes hold, over time? |
//! | [`stats`] | did the machine drift? (is a difference real: `cachewise_judge`) |
//! | [`surroundings`] | which allocator, tunables and limits did a process have? |
//! | [`warnings`], [`Reporting`] | what disturbed the measurement, and how is it removed? |
//! | [`record`] | how is it written down? |
//! | [`units`] | how are sizes and times written, and sizes read? |
//!
//! Nothing here prints, and nothing here decides what to measure: experiments belong to the
//! laboratory crate, tables and plots to the report crate.

pub mod after;
pub mod arena;
mod bystander;
mod caches;
pub mod callee;
pub mod calls;
pub mod children;
pub mod clock;
pub mod costs;
mod cpu;
pub mod distributions;
mod error;
#[cfg(target_os = "linux")]
pub mod held;
mod host;
pub mod lab_error;
mod latency;
mod level;
pub mod lines;
mod machine;
mod noise;
mod order;
pub mod record;
mod residency;
pub mod routines;
pub mod sampler;
pub mod script;
pub mod stats;
pub mod surroundings;
pub mod verify;
pub mod visit;
#[cfg(target_os = "linux")]
pub mod whole;

pub(crate) use cachewise_judge::rounded;

pub use cachewise_host::units;

pub use arena::{Arena, MemoryBudget, PagePolicy};
pub use bystander::{Bystander, Reader};
pub use caches::{CacheLevel, Caches};
pub use cachewise_judge::agreement;
pub use cachewise_judge::margin::ROW as MARGIN;
pub use cachewise_judge::turns;
pub use calls::CallTimes;
pub use clock::{Clock, ClockFacts};
pub use cpu::Cpu;
pub use error::MeasureError;
pub use host::Reporting;
pub use lab_error::LabError;
pub use latency::Latencies;
pub use level::{Destination, Level, Residency};
pub use machine::{Libc, Machine};
pub use noise::{NoiseSnapshot, Warning, warnings};
pub use record::{
    CellKey, Decision, Decisions, End, Figure, FigureKind, Header, Histogram, Note, Record,
    RecordError, Row, SCHEMA_VERSION, Writer, is_special,
};
pub use residency::{Operand, Proof, ProofVerdict, Slots};
pub use sampler::{
    Candidate, CellResult, Contents, Delay, Place, Plan, ReaderSpec, SampledCell, Samples,
};
pub use stats::{DriftVerdict, PairedRatio, Verdict};
pub use surroundings::Surroundings;
pub use verify::WrongBytes;

/// Bytes of a cache line as this crate counts them: the line of every x86-64 and nearly every
/// aarch64 CPU. POWER's 128-byte lines are two of these, which makes walks there touch each line
/// twice and changes nothing else.
pub const LINE: usize = cachewise_kernels::CACHE_LINE;

/// A made-up system of these files.
#[cfg(test)]
pub(crate) fn planted(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    cachewise_host::plant(directory.path(), files);
    directory
}
