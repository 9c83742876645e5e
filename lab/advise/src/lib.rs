//! Settings for one program. Pure: `cachewise advise` runs the program, or a simulation does.
//!
//! 1. [`bound`]: how much of a run anything here could gain, from one plain run and one observed.
//! 2. [`candidates`]: the settings that apply to this program, each with its condition; [`lists`] keeps the caller's.
//! 3. [`sample`]: the figures of a run. The race of settings is `cachewise_judge::race`.
//! 4. [`goal`], [`growth`]: less memory in place of less time, and memory that no setting gives back.
//! 5. [`verdict`]: the answer in sentences, with what it gains and costs.
//! 6. [`written`]: the setting for a shell, a systemd unit, a Dockerfile.
#![warn(missing_docs)]

pub mod bound;
pub mod candidates;
pub mod counts;
pub mod goal;
pub mod growth;
pub mod lists;
pub mod sample;
pub mod verdict;
pub mod written;
