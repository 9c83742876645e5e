//! Tests of process-wide state: forks, signals, and system calls that fail. One test at a time.

mod common;
#[path = "cuda/device.rs"]
mod device;
mod fork;
mod injection;
mod lease;

use std::sync::{Mutex, MutexGuard, PoisonError};

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
