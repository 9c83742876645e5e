//! The laboratory: experiments, one file per question, and the tuner that turns their records into
//! a profile.
//!
//! | module | what it is |
//! |---|---|
//! | [`mod@bench`] | the machine, the clock and the arena; measures one [`Task`](bench::Task) at a time |
//! | [`recorder`] | takes down rows and remarks, reports progress, asks whether to stop |
//! | [`routines`] | kernels, libc and the library behind the same function pointers |
//! | [`peers`] | other libraries behind the same function pointers |
//! | [`distributions`] | which sizes and alignments programs call with |
//! | [`forking`] | the kernel's own page copies: a process that forks and uses its buffer |
//! | [`helper`] | a process of its own, for what this one cannot do |
//! | [`select`] | which kernels a user means |
//! | [`experiments`] | every experiment by name |
//! | [`tune`] | the grid, the decisions, their re-measurement, the profile |
//! | [`verify`] | bytes alone, where timings would mean nothing or are not wanted |
//! | [`tunables`] | the decisions as glibc understands them |
//! | `xstate` | XSAVE areas, for the experiment on the cost of owning vector registers (x86-64) |
//!
//! Nothing here prints.
#![warn(missing_docs)]

pub mod bench;
pub mod distributions;
pub mod elsewhere;
pub mod experiments;
pub mod forking;
pub mod helper;
pub mod peers;
pub mod recorder;
pub mod routines;
mod script;
pub mod select;
pub mod tunables;
pub mod tune;
pub mod verify;
#[cfg(target_arch = "x86_64")]
pub mod xstate;

use cachewise_measure::{MeasureError, RecordError};

/// What the laboratory can refuse.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// No kernel answers to a name.
    #[error("kernels: found \"{found}\", which no kernel answers to; nearest: {}", nearest.join(", "))]
    UnknownKernel {
        /// The pattern.
        found: String,
        /// Names most like it.
        nearest: Vec<String>,
    },
    /// A pattern is not a regular expression.
    #[error("kernels: found \"{found}\", accepted a regular expression ({why})")]
    Pattern {
        /// The pattern.
        found: String,
        /// What the parser said.
        why: String,
    },
    /// An option that an experiment has no use for.
    #[error("{option}: not for {experiment}: {why}")]
    NotForThis {
        /// The option.
        option: &'static str,
        /// The experiment.
        experiment: &'static str,
        /// Why, and what is accepted.
        why: String,
    },
    /// A library given with `--peer` cannot be used.
    #[error("--peer {name}: {why}")]
    Peer {
        /// Its name.
        name: String,
        /// The loader's words.
        why: String,
    },
    /// A distribution file cannot be used.
    #[error("--distribution {0}")]
    Distribution(distributions::DistributionError),
    /// `--classic` for an experiment that no source document gives parameters for.
    #[error("--classic: {experiment} has no parameters of a source document; accepted without it")]
    NoClassic {
        /// The experiment.
        experiment: &'static str,
    },
    /// An option has no meaning for an experiment, or not with that value.
    #[error("{option}: found {found}, accepted {accepted}")]
    Unsuited {
        /// The option as typed.
        option: &'static str,
        /// What was given.
        found: String,
        /// What the experiment takes.
        accepted: String,
    },
    /// No experiment has that name.
    #[error("experiment: found \"{found}\", accepted {}", accepted.join(", "))]
    UnknownExperiment {
        /// The name.
        found: String,
        /// Those there are.
        accepted: Vec<String>,
    },
    /// A size is beyond what the memory budget allows.
    #[error(
        "size: found {found}, accepted 1 to {most} bytes here (two operands, twice each, in {budget} bytes; --memory raises it up to a quarter of RAM)"
    )]
    TooLarge {
        /// Bytes asked for.
        found: usize,
        /// Bytes possible.
        most: usize,
        /// Bytes of the budget.
        budget: usize,
    },
    /// The memory budget cannot hold operands that leave the cache.
    #[error(
        "memory: found {found} bytes, accepted {least} or more here (operands in DRAM cover four times the last-level cache), a quarter of RAM at most"
    )]
    TooLittleMemory {
        /// Bytes of the budget.
        found: usize,
        /// Bytes needed at least.
        least: usize,
    },
    /// None of the chosen kernels can be measured as asked; why not.
    #[error("nothing to measure: {0}")]
    Nothing(String),
    /// Timings of an emulated CPU mean nothing; its emulator.
    #[error(
        "this CPU is emulated by {0}: its timings would mean nothing, so none are taken (--verify-only checks the bytes)"
    )]
    Emulated(String),
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// A routine produced wrong bytes: who, where, what.
    #[error("wrong bytes: {0}")]
    WrongBytes(String),
    /// The measurement was refused.
    #[error(transparent)]
    Measure(MeasureError),
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The page pool, or the system under it, refused what this says.
    #[error("page pool: {0}")]
    Pool(String),
    /// A child process that was to be timed failed; what happened.
    #[error("child process: {0}")]
    Child(String),
}

impl From<distributions::DistributionError> for LabError {
    /// Not as its source: the message has all of it.
    fn from(error: distributions::DistributionError) -> LabError {
        LabError::Distribution(error)
    }
}

impl From<MeasureError> for LabError {
    fn from(error: MeasureError) -> LabError {
        match error {
            MeasureError::Interrupted => LabError::Interrupted,
            error => LabError::Measure(error),
        }
    }
}

impl LabError {
    /// Whether it means that some routine produced wrong bytes (exit status 5).
    #[must_use]
    pub fn is_wrong_bytes(&self) -> bool {
        matches!(self, LabError::WrongBytes(_) | LabError::Measure(MeasureError::WrongBytes { .. }))
    }
}
