//! Every threshold, with its reason: parts (0.02 is 2 %), then numbers of rounds.
//!
//! A margin is part of a question, never fitted to an answer. Whoever needs another one adds a line here.

/// A row of an experiment: smaller differences come and go with the layout of code and pages.
pub const ROW: f64 = 0.01;

/// A setting of a program: below it nothing is worth a variable that somebody has to keep.
pub const SETTING: f64 = 0.02;

/// A setting that replaces a simpler one has to be better than that by this much: two runs of `advise` should give
/// one answer.
pub const SIMPLER: f64 = 0.05;

/// A setting that may gain no more than this, by its interval, is not worth one: as much as [`SIMPLER`], in whole percent.
pub const NOT_WORTH: f64 = SIMPLER + 0.005;

/// A loss that is not noticeable, two times that documents call the same.
pub const NOTICEABLE: f64 = 0.05;

/// A headline, a variable of `export`, a row that `compare` calls changed, a choice of `tune` that comes to the same as
/// another: what two launches of one program differ by.
pub const HEADLINE: f64 = 0.03;

/// A kernel may be slower than libc by this much in no state: what a minute cannot see is added to it before the promise of
/// [`HEADLINE`] is broken.
pub const GUARD: f64 = 0.02;

/// Kernels so near (logarithm) are as good as equal to a race, and one of them may be wanted next door.
pub const EQUAL: f64 = 0.015;

/// A kernel that takes so much longer than libc (logarithm) has one round.
pub const HOPELESS: f64 = 0.4;

/// A change of kernel between two sizes has to gain so much over one octave (logarithm).
pub const SWITCH: f64 = 0.06;

/// A kernel that replaces the one in force has to be better by this much: two tunings should agree.
pub const IN_FORCE: f64 = 0.05;

/// Error that no number of a tuning's rounds removes: layouts differ by this much (logarithm).
pub const LAYOUTS: f64 = 0.004;

/// Error that no number of rounds removes: launches of one program lie apart by this much (logarithm).
pub const LAUNCHES: f64 = 0.006;

/// Error that no number of runs of a program removes (logarithm): a variable or a word more moves its stack.
pub const RUNS: f64 = 0.002;

/// Rounds that an interval of 95 % takes at least (2 x 0.5^5 is above 5 %).
pub const LEAST_ROUNDS: usize = 6;

/// Rounds of a race of which anything is said: below, two modes of a program are taken for one too often (simulated,
/// `tests/race.rs`).
pub const LEAST_LOOKED: usize = 4;

/// Rounds of an estimate whose scatter is that of many other comparisons.
pub const LEAST_POOLED: usize = 3;

/// Rounds of a tuning's estimates that have their own scatter: of operations beside a bystander, and of several threads.
pub const LEAST_BESIDE: usize = 4;
