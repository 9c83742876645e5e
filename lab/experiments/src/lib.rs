//! The experiments, one folder for each question, and what they have in common.
//!
//! | module | what it is |
//! |---|---|
//! | [`experiment`], [`registry`], [`EXPERIMENTS`] | what an experiment is, and every one by name |
//! | one folder each | what an experiment measures, and its tables |
//! | [`said`] | what a record amounts to: its claims and its tables |
//! | [`claims`] | what the source documents claim, as data, and what answers it |
//! | [`mod@bench`] | candidates side by side in a cell |
//! | [`recorder`], [`launches`] | rows on their way into a record; records of several launches as one |
//! | [`routines`], [`libraries`], [`select`] | kernels, libc and other libraries as candidates |
//! | [`script`] | calls of many sizes, as programs make them |
//! | [`helper`] | measurements in a child process |
//!
//! Nothing here prints.
#![warn(missing_docs)]

pub mod after;
mod backing;
pub mod bench;
pub mod callee;
pub mod claims;
pub mod experiment;
mod forking;
pub mod helper;
pub mod launches;
pub mod libraries;
pub mod other_libc;
mod page_loops;
mod pages;
mod prelude;
pub mod recorder;
pub mod registry;
pub mod routines;
pub mod said;
pub mod script;
pub mod select;
mod setting;
mod support;
mod tables;
mod tcp;
pub mod tunables;
mod tuned_libc;
pub mod verify;
#[cfg(target_arch = "x86_64")]
mod xstate;

// The experiments: one folder each. A new one is a line here and one in the list below.
mod aliasing;
mod cached_target;
mod compare_latency;
mod extent;
mod jumps;
mod mapped;
mod matrix;
mod page_clear;
mod page_colour;
mod page_copy;
pub mod page_fault;
mod peers;
pub mod prefault;
mod read_batch;
mod receive;
mod reuse_map;
mod roofline;
mod sticky;
mod twins;
mod values;
mod vector_state;
pub mod zeroing_engines;

/// All experiments, in the order `list experiments` prints them.
pub const EXPERIMENTS: &[Experiment] = &[
    matrix::COPY_MATRIX,
    matrix::ZERO_MATRIX,
    matrix::COMPARE_MATRIX,
    matrix::WHOLE_COST,
    roofline::EXPERIMENT,
    peers::EXPERIMENT,
    page_clear::EXPERIMENT,
    page_copy::EXPERIMENT,
    reuse_map::EXPERIMENT,
    cached_target::EXPERIMENT,
    receive::EXPERIMENT,
    read_batch::EXPERIMENT,
    aliasing::EXPERIMENT,
    page_colour::EXPERIMENT,
    values::EXPERIMENT,
    twins::EXPERIMENT,
    sticky::EXPERIMENT,
    vector_state::EXPERIMENT,
    compare_latency::EXPERIMENT,
    jumps::EXPERIMENT,
    extent::EXPERIMENT,
    mapped::EXPERIMENT,
    page_fault::EXPERIMENT,
    prefault::EXPERIMENT,
    zeroing_engines::EXPERIMENT,
];

pub use setting::{Options, Setting};

use crate::experiment::Experiment;
use cachewise_measure::units::bytes;
use cachewise_measure::{MeasureError, RecordError};
use cachewise_pages::PoolError;

/// Errors of the laboratory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// No kernel answers to a name.
    #[error("kernels: found \"{found}\", which no kernel answers to{nearest}")]
    UnknownKernel {
        /// The pattern.
        found: String,
        /// Names most like it.
        nearest: String,
    },
    /// An impossible request: the option, what was found, what is accepted.
    #[error("{0}")]
    Usage(String),
    /// A library given with `--peer` cannot be used: its name, the loader's words.
    #[error("--peer {0}")]
    Peer(String),
    /// A distribution file cannot be used.
    #[error(transparent)]
    Distribution(#[from] cachewise_measure::distributions::Refused),
    /// A size is beyond what the memory budget allows.
    #[error(
        "size: found {}, accepted 1 B to {} here (two operands, twice each, in {}; --memory is at most a quarter of RAM)",
        bytes(*found as u64), bytes(*most as u64), bytes(*budget as u64)
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

impl From<MeasureError> for LabError {
    fn from(error: MeasureError) -> LabError {
        match error {
            MeasureError::Interrupted => LabError::Interrupted,
            error => LabError::Measure(error),
        }
    }
}

impl From<PoolError> for LabError {
    fn from(error: PoolError) -> LabError {
        match error {
            PoolError::NotZero { .. } => LabError::WrongBytes(format!("pool: {error}")),
            error => LabError::Pool(error.to_string()),
        }
    }
}

impl LabError {
    /// An option has no meaning for an experiment, or not with that value.
    fn unsuited(option: &str, found: impl std::fmt::Display, accepted: &str) -> LabError {
        LabError::Usage(format!("{option}: found {found}, accepted {accepted}"))
    }

    /// Tells whether some routine produced wrong bytes (exit status 5).
    pub fn is_wrong_bytes(&self) -> bool {
        matches!(self, LabError::WrongBytes(_) | LabError::Measure(MeasureError::WrongBytes { .. }))
    }
}
