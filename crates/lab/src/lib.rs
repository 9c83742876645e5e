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
mod callee;
pub mod distributions;
pub mod experiments;
pub mod forking;
pub mod helper;
pub mod launches;
pub mod peers;
pub mod recorder;
pub mod routines;
mod script;
pub mod select;
pub mod tunables;
pub mod tune;
pub mod tuned_libc;
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
    /// What was asked for is not possible: the option, what was found, what is accepted.
    #[error("{0}")]
    Usage(String),
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
    /// An option has no meaning for an experiment, or not with that value.
    fn unsuited(option: &str, found: impl std::fmt::Display, accepted: &str) -> LabError {
        LabError::Usage(format!("{option}: found {found}, accepted {accepted}"))
    }

    /// An option that an experiment has no use for.
    fn not_for(option: &str, experiment: &str, why: &str) -> LabError {
        LabError::Usage(format!("{option}: not for {experiment}: {why}"))
    }

    /// Whether it means that some routine produced wrong bytes (exit status 5).
    pub fn is_wrong_bytes(&self) -> bool {
        matches!(self, LabError::WrongBytes(_) | LabError::Measure(MeasureError::WrongBytes { .. }))
    }
}
