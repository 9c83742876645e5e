//! Threads beside the measuring one: a system that refuses one (`ulimit -u`, a control group's `pids.max`) is an error
//! in a line, where `Scope::spawn` panics.

use crate::error::LabError;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Starts a thread of a scope.
pub fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, LabError> {
    Builder::new().spawn_scoped(scope, work).map_err(LabError::Thread)
}
