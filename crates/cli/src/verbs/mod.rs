//! One file per verb. Each returns the exit status.

pub mod doctor;
pub mod explain;
pub mod export;
pub mod list;
pub mod run;
pub mod time_libc;
pub mod tune;
pub mod verify;
