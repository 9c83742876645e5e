//! The tuner: which kernel does what on this machine, by a deadline.
//!
//! | module | what it is |
//! |---|---|
//! | [`seam`] | everything the tuner may ask of a machine |
//! | [`tuner`] | race, decide, referee: pure |
//! | [`rounds`] | what was seen |
//! | [`tuning`] | what a tuning is set to, and what it amounts to |
//! | [`hardware`] | the machine that this process runs on, behind the seam |
//! | [`recording`], [`again`], [`pooled`] | a tuning as a record; decided from it again; several as one |
//! | [`say`] | what is printed of a tuning, from its record |
//!
//! A simulated machine behind the same seam is in `tests/machines`. Nothing here prints.
#![warn(missing_docs)]

pub mod again;
mod field;
pub mod hardware;
mod hints;
mod never;
mod plan;
pub mod pooled;
mod race;
mod ranges;
pub mod recording;
mod referee;
pub mod rounds;
pub mod say;
pub mod scripts;
pub mod seam;
pub mod tuner;
pub mod tuning;
mod visits;
