//! What is the process's: forks, and system calls that fail. One test at a time.

#[path = "cuda/device.rs"]
mod device;
mod eager;
mod fork;
mod injection;
#[path = "support/rerun.rs"]
mod rerun;
mod schedule;
mod soak;

use rerun::rerun;
use std::sync::{Mutex, MutexGuard, PoisonError};

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
