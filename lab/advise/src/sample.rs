//! One run of the program.

use cachewise_judge::race;

/// The figures of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// The figure that is to be small: seconds, or another one.
    pub cost: f64,
    /// Seconds of CPU.
    pub cpu: f64,
    /// Bytes of memory that the largest process held at most.
    pub peak: f64,
    /// Page faults.
    pub faults: f64,
    /// Threads of one process, at most.
    pub threads: f64,
}

/// The runs of one setting.
pub type Runs = race::Runs<Sample>;

/// A race of settings, and its outcome. Settings are numbered from 1; 0 is the plain program.
pub type TimeOutcome = race::RaceOutcome<Sample>;
