//! What to set for one program. Pure: who runs the program is `cachewise advise`, or a simulation.
//!
//! 1. [`bound`]: how much of a run anything here could gain, from one plain run and one observed.
//! 2. [`candidates`]: the settings that apply to this program, each with its condition.
//! 3. [`race`]: candidates beside the plain program in random order, then a referee on fresh runs.
//! 4. [`verdict`]: the simplest setting among those not told apart, with what it gains and costs.
//! 5. [`written`]: the setting for a shell, a systemd unit, a Dockerfile.
#![warn(missing_docs)]

pub mod bound;
pub mod candidates;
pub mod counts;
pub mod race;
pub mod verdict;
pub mod written;
