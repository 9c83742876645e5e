//! Facts that the system tells of this machine, read in one place: text files below a root ([`Tree`]), control groups of both
//! versions ([`Groups`]), `/proc/meminfo` ([`Meminfo`]), the memory that is left ([`Room`]), and the words for sizes ([`units`]).
//!
//! Everything is read below a root, so that tests can make up a machine. No dependencies; nothing here prints or decides.
#![warn(missing_docs)]

mod group;
mod groups;
mod memory;
mod tree;
pub mod units;

pub use group::Group;
pub use groups::{Groups, Limit};
pub use memory::{Meminfo, Room};
pub use tree::{Tree, cpus, cpus_in_list, plant};

#[cfg(test)]
mod tests;
