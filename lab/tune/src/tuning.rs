//! Settings and result of a tuning: decisions, results of candidates, rulings of the referee. Plain values; a report or a profile is made from them without asking anybody else.

use super::seam::{Facts, TuningCell};
use cachewise::Reuse;
use cachewise::profile::Decision;
pub use cachewise_judge::estimate::Ruling;
use cachewise_kernels::Operation;

/// Settings of a tuning.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Seconds from the machine's beginning to the last visit's end.
    pub budget: f64,
    /// Seed of all random choices.
    pub seed: u64,
    /// The decisions of the profile that is in use, preferred where nothing is shown better by 5 %;
    /// empty where there is none.
    pub previous: Vec<Decision>,
}

/// Result of a tuning.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// For every operation and hint, contiguous from the first size to the last. A kernel is a name
    /// of the table or `libc`.
    pub decisions: Vec<Decision>,
    /// Results of candidates at every size and in every state of the race.
    pub shown: Vec<Shown>,
    /// The referee's rulings on the decisions, under `unknown`.
    pub refereed: Vec<Refereed>,
    /// Kernels that the referee took out of a place, and how often there was anything to take out.
    pub repairs: Vec<Repair>,
    /// Kernels that were shown to be faster at a size where libc was decided for: the range would have been
    /// one too many, or gained too little.
    pub passed_over: Vec<(Operation, usize, String)>,
    /// Facts about the machine.
    pub facts: Facts,
    /// Seconds used, calibration included.
    pub seconds: f64,
}

/// One arm in one cell, as far as it was shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Cell.
    pub cell: TuningCell,
    /// A kernel.
    pub name: String,
    /// Time over libc's: below 1 is faster.
    pub ratio: f64,
    /// Lower end of the interval that holds it at any moment of the race (95 %).
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Rounds.
    pub rounds: usize,
}

/// One cell of the referee.
#[derive(Clone, Debug, PartialEq)]
pub struct Refereed {
    /// Cell.
    pub cell: TuningCell,
    /// The kernel that the library used there; `library` for a script.
    pub name: String,
    /// The library's time over libc's.
    pub ratio: f64,
    /// Standard error of its logarithm.
    pub error: f64,
    /// Rounds.
    pub rounds: usize,
    /// Ruling.
    pub verdict: Ruling,
    /// True if that kernel is what was decided for there in the end.
    pub in_use: bool,
}

/// A decision that the referee took back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Operation.
    pub operation: Operation,
    /// Under which hint it was looked at: `Unknown`, whose ranges the others share, or `Never`.
    pub reuse: Reuse,
    /// Kernel that was taken back.
    pub kernel: String,
    /// Around which size of the grid.
    pub size: usize,
    /// Round of repairs, from 1; 0 for what was undecided at the deadline.
    pub round: usize,
}
