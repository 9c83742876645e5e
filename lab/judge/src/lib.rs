//! The judge: is A faster than B, by how much, how sure? Pure functions; every random one takes a seed.
//!
//! | module | answers |
//! |---|---|
//! | [`ratio`] | one time over another, round by round or launch by launch |
//! | [`interval`] | where the true ratio lies: of paired rounds, of unpaired runs, at every moment of a race |
//! | [`fastest`] | the same by the fastest runs alone |
//! | [`estimate`] | what some rounds show of a logarithm, and whether a bound on a loss is kept |
//! | [`agreement`] | do two choices come to the same? |
//! | [`margin`] | which differences matter: every threshold, with its reason |
//! | [`verdict`] | faster, slower, same or unknown, and the sentences for them |
//! | [`family`] | what stands of many comparisons at once |
//! | [`race`] | which of several contestants is best: a look at all, then rounds of the best |
//! | [`turns`] | the order of contestants in each round |
//! | [`order`] | medians, quantiles, means |
//!
//! The rules and their reasons: `docs/decisions/the-judge.md`.
#![warn(missing_docs)]

pub mod agreement;
pub mod estimate;
pub mod family;
pub mod fastest;
pub mod interval;
pub mod margin;
pub mod order;
pub mod race;
pub mod ratio;
pub mod rounded;
pub mod turns;
mod unpaired;
pub mod verdict;

pub use ratio::Ratio;
pub use verdict::Verdict;
