//! Errors of the laboratory.

use crate::units::bytes;
use crate::{Machine, MeasureError, RecordError};
use cachewise_pages::PoolError;

/// A refusal or a failure of an experiment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// No kernel answers to a name.
    #[error("kernels: found \"{found}\", which no kernel answers to{nearest}")]
    UnknownKernel { found: String, nearest: String },
    /// An impossible request: the option, what was found, what is accepted.
    #[error("{0}")]
    Usage(String),
    /// A library given with `--peer` cannot be used: its name, the loader's words.
    #[error("--peer {0}")]
    Peer(String),
    /// A distribution file cannot be used.
    #[error(transparent)]
    Distribution(#[from] crate::distributions::Refused),
    /// A size is beyond what the memory budget allows.
    #[error(
        "size: expected 1 B to {} here (two operands, twice each, in {}; --memory is at most a quarter of RAM), found {}",
        bytes(*most as u64), bytes(*budget as u64), bytes(*found as u64)
    )]
    TooLarge { found: usize, most: usize, budget: usize },
    /// None of the chosen kernels can be measured as asked; why not.
    #[error("nothing to measure: {0}")]
    Nothing(String),
    /// Timings of an emulated CPU mean nothing; its emulator.
    #[error("this CPU is emulated by {0}: its timings would mean nothing, so none are taken")]
    Emulated(String),
    #[error("interrupted")]
    Interrupted,
    /// A routine produced wrong bytes: who, where, what.
    #[error("wrong bytes: {0}")]
    WrongBytes(String),
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
    /// The system refuses a thread.
    #[error("no further thread: {0}; `ulimit -u` or the control group's pids.max is the limit")]
    Thread(std::io::Error),
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
    pub fn unsuited(option: &str, found: impl std::fmt::Display, accepted: &str) -> LabError {
        LabError::Usage(format!("{option}: expected {accepted}, found {found}"))
    }

    /// Tells whether some routine produced wrong bytes (exit status 5).
    pub fn is_wrong_bytes(&self) -> bool {
        matches!(self, LabError::WrongBytes(_) | LabError::Measure(MeasureError::WrongBytes { .. }))
    }
}

/// Timings of an emulated CPU mean nothing; whoever is about to take some asks here.
///
/// # Errors
/// [`LabError::Emulated`] on such a machine.
pub fn refuse_emulation(machine: &Machine) -> Result<(), LabError> {
    match &machine.emulated {
        Some(emulator) => Err(LabError::Emulated(emulator.clone())),
        None => Ok(()),
    }
}
