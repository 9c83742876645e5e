//! CPU time of whole programs: where neighbours take the CPU away, it repeats when the clock on the
//! wall does not.
//!
//! The kernel adds up what children, and theirs, used once they were waited for (getrusage(2),
//! `RUSAGE_CHILDREN`). A server that detaches itself from who started it would escape that;
//! [`adopt_orphans`] makes it a child of ours, and [`reap_orphans`] waits for it.

use rustix::process::{WaitOptions, wait};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// What this thread, this process or its children used so far: getrusage(2) of `RUSAGE_THREAD`,
/// `RUSAGE_SELF` or `RUSAGE_CHILDREN`.
pub fn usage(of: i32) -> libc::rusage {
    // SAFETY: zeroes are a valid rusage.
    let mut usage = unsafe { std::mem::zeroed() };
    // SAFETY: a place for one rusage.
    unsafe { libc::getrusage(of, &raw mut usage) };
    usage
}

/// Seconds of CPU, user's and system's, of all children waited for so far and of theirs.
pub fn cpu_seconds() -> f64 {
    let usage = usage(libc::RUSAGE_CHILDREN);
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Waits for a child, which nobody has waited for. How it ended, and the bytes of memory that it, or the
/// largest of those that it waited for, held at most (wait4(2), `ru_maxrss`).
///
/// # Errors
/// Somebody has waited for it.
pub fn wait_for(child: &mut Child) -> io::Result<(ExitStatus, u64)> {
    let number = i32::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: zeroes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: places for a status and one rusage.
    while unsafe { libc::wait4(number, &raw mut status, 0, &raw mut usage) } != number {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // In kibibytes on Linux.
    let resident = u64::try_from(usage.ru_maxrss).unwrap_or(0) << 10;
    Ok((ExitStatus::from_raw(status), resident))
}

/// From now on, descendants whose parent has ended are children of this process (prctl(2),
/// `PR_SET_CHILD_SUBREAPER`); elsewhere than on Linux nothing.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        // Any process number says yes. Where it fails, orphans' CPU time is missing as it was.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
}

/// Waits for all children there are, and for those that are ending for so long; whether none is
/// left.
///
/// Only where every child that somebody else would wait for has been waited for: this takes all.
pub fn reap_orphans(limit: Duration) -> bool {
    let begun = Instant::now();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_waited_for_once_and_says_what_it_held() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "exit 3"]).spawn().expect("sh");
        let (status, resident) = wait_for(&mut child).expect("a child");
        assert_eq!(status.code(), Some(3));
        assert!(resident >= 64 << 10, "no shell does with less: {resident}");
        assert!(wait_for(&mut child).is_err(), "it was waited for");
    }
}
