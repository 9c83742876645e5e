//! One file per verb. Each returns the exit status.

pub mod compare;
pub mod doctor;
pub mod exec;
pub mod explain;
pub mod export;
pub mod forget;
pub mod fork_loop;
pub mod learn;
mod learned;
pub mod libc_loop;
pub mod list;
pub mod redraw;
pub mod report;
pub mod run;
pub mod shell;
pub mod time_calls;
pub mod time_libc;
pub mod tune;
pub mod verify;
