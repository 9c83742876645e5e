//! CPU time of whole programs: where neighbours take the CPU away, it repeats when the clock on the
//! wall does not.
//!
//! The kernel adds up what children, and theirs, used once they were waited for (getrusage(2),
//! `RUSAGE_CHILDREN`). A server that detaches itself from who started it would escape that;
//! [`adopt_orphans`] makes it a child of ours, and [`reap_orphans`] waits for it.

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, wait, waitid,
};
use std::collections::HashSet;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Resources that this thread, this process or its children used so far: getrusage(2) of `RUSAGE_THREAD`,
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
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 * 1e-6
}

/// Resources that a child used, and those that it waited for itself (wait4(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// Seconds of CPU, user's and system's.
    pub cpu: f64,
    /// Seconds of CPU in the system.
    pub system: f64,
    /// Bytes of memory that the largest of them held at most.
    pub peak: u64,
    /// Page faults that read nothing from a disk.
    pub faults: u64,
    /// Seconds that its first thread waited for a CPU: of a child whose work is another's, or several threads', a part.
    pub delay: f64,
}

/// Seconds that a thread has waited for a CPU (proc(5), `schedstat`), by its folder below `/proc`; 0 where that is not told.
#[must_use]
pub fn delay(folder: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{folder}/schedstat")).unwrap_or_default();
    let field = text.split_whitespace().nth(1);
    field.and_then(|field| field.parse().ok()).unwrap_or(0.0) * 1e-9
}

/// Waits for a child, which nobody has waited for: how it ended, and what it used.
///
/// # Errors
/// The child has been waited for already.
pub fn wait_for(child: &mut Child) -> io::Result<(ExitStatus, Used)> {
    let number = i32::try_from(child.id()).map_err(io::Error::other)?;
    // Ended and not waited for, it still tells how long it waited for a CPU; a short one is not seen to its end before.
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(Pid::from_child(child)), ended), Err(Errno::INTR)) {}
    let delay = delay(&number.to_string());
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
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    let system = seconds(usage.ru_stime);
    let used = Used {
        cpu: seconds(usage.ru_utime) + system,
        system,
        // In kibibytes on Linux.
        peak: count(usage.ru_maxrss) << 10,
        faults: count(usage.ru_minflt),
        delay,
    };
    Ok((ExitStatus::from_raw(status), used))
}

/// Forgets how much memory this process held at most (proc(5), `clear_refs`): the kernel counts it for a child too,
/// which is a copy of this process until it executes its program. What this process holds now, a child's peak
/// is never below.
pub fn forget_peak() {
    // Elsewhere than on Linux there is no such file; then peaks are too high, as documented.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
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
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Ends all children that are left, and theirs: asked first, killed after `grace`. How many there were.
///
/// Only where all children are a program's that has ended: see [`adopt_orphans`], by which those of a child
/// that ends become ours in turn.
pub fn end_all(grace: Duration) -> usize {
    let mut ended = HashSet::new();
    let begun = Instant::now();
    loop {
        let signal = if begun.elapsed() < grace { Signal::TERM } else { Signal::KILL };
        for child in own_children() {
            if signal == Signal::KILL || !ended.contains(&child) {
                // It may have ended just now; nobody has waited for it, so that the number is its own.
                let _ = kill_process(child, signal);
            }
            ended.insert(child);
        }
        let is_over = begun.elapsed() > 4 * grace;
        if reap_orphans(Duration::from_millis(10)) || is_over {
            return ended.len();
        }
    }
}

/// Returns whether this process has children: after an `exec`, those that its shell had started.
#[must_use]
pub fn has_any() -> bool {
    !own_children().is_empty()
}

/// Children of this process, from proc(5).
fn own_children() -> Vec<Pid> {
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let child = |entry: std::fs::DirEntry| {
        let number: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name before it, in brackets, may hold anything: state and parent follow the last bracket.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        (fields.nth(1)? == own).then(|| Pid::from_raw(number)).flatten()
    };
    processes.filter_map(child).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_waited_for_once_and_says_what_it_held() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "exit 3"]).spawn().expect("sh");
        let (status, used) = wait_for(&mut child).expect("a child");
        assert_eq!(status.code(), Some(3));
        assert!(used.peak >= 64 << 10 && used.faults > 10, "no shell does with less: {used:?}");
        assert!(wait_for(&mut child).is_err(), "it was waited for");
    }
}
