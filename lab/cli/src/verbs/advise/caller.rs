//! Processes that were there before: where the shell that executes `advise` has started some, they are children of this
//! process, and what ends a run's leftovers must not end them. So the work is done in a process of its own, which has
//! none; this one waits for it, and hands on the signals that it gets.

use anyhow::Context as _;
use cachewise_experiments::LabError;
use cachewise_measure::children;
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::Command;

/// The exit status of this command, executed by a child; `None` where this process has no children that are not its own.
pub fn apart() -> anyhow::Result<Option<u8>> {
    if !children::has_any() {
        return Ok(None);
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle Ctrl-C")?;
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let mut own = Command::new("/proc/self/exe").arg0(name).args(words).spawn()?;
    let child = Pid::from_child(&own);
    let pass_on = move || {
        for signal in signals.forever() {
            // A terminal sends it to the whole group.
            if signal == SIGINT && is_in_foreground() {
                continue;
            }
            // It is not waited for before this process ends, so that the number is its own.
            let _ = kill_process(child, Signal::from_named_raw(signal).unwrap_or(Signal::TERM));
        }
    };
    if let Err(error) = std::thread::Builder::new().spawn(pass_on) {
        // Nobody would pass on what this process is told.
        own.kill()?;
        own.wait()?;
        return Err(LabError::Thread(error).into());
    }
    let status = own.wait()?;
    Ok(Some(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8))
}

/// Returns whether a terminal's Ctrl-C reaches this process's group.
fn is_in_foreground() -> bool {
    // SAFETY: takes a number; where there is no terminal it says so.
    let group = unsafe { libc::tcgetpgrp(libc::STDERR_FILENO) };
    Pid::from_raw(group.max(0)) == Some(getpgrp())
}
