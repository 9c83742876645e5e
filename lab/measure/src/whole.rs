//! Whole programs: started, waited for, and timed.
//!
//! Everything that runs programs which nobody here wrote does it by these: `cachewise advise`.

use crate::children;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time that a server that a program has ended may take to end after it, so that its CPU time is known.
pub const ENDING: Duration = Duration::from_millis(200);
/// Time between two looks whether to stop.
const LOOK: i64 = 50_000_000;
/// And how soon after the start.
const SOON: i64 = 1_500_000;
/// Bytes of output after which a program is ended: one that prints without an end would fill the disk.
pub const MOST_OUTPUT: u64 = 1 << 30;
/// Bytes of output that are kept; a digest is made of all.
pub const KEPT: u64 = 16 << 20;
/// Bytes that are read at a time.
const PART: u64 = 256 << 10;
/// Bytes of standard error that are kept: its end.
const TOLD: u64 = 64 << 10;
/// Time that a program may be stopped by a signal: nobody is there who would let it go on.
const MOST_STOPPED: Duration = Duration::from_secs(2);

/// One run of a program.
#[derive(Debug)]
pub struct Run {
    /// By the clock on the wall.
    pub seconds: f64,
    /// CPU seconds, with all processes that it started and the servers that it left to end.
    pub cpu: f64,
    /// Bytes of memory that the largest of its processes held at most, of those that it waited for
    /// itself.
    pub resident: u64,
    /// Seconds of CPU in the system, of the same processes.
    pub system: f64,
    /// Their page faults that read nothing from a disk.
    pub faults: u64,
    /// Seconds that it waited for a CPU: [`children::Used::delay`], and the wait of this process when it had ended.
    pub delay: f64,
    /// Processes that it left running, and that were ended after it.
    pub left: usize,
    pub status: ExitStatus,
    /// The beginning of standard output: [`KEPT`] bytes at most.
    pub output: Vec<u8>,
    /// Digest of all of it.
    pub digest: u64,
    /// The end of standard error, without white space around it.
    pub told: String,
}

#[derive(Debug)]
pub enum Ended {
    Run(Run),
    /// Killed after its time.
    TooLong,
    /// Killed on the user's request to stop.
    Stopped,
    /// Killed, since a signal had stopped it and no SIGCONT followed.
    Suspended,
    /// Killed, since its output had [`MOST_OUTPUT`].
    TooMuch,
}

/// Runs it in a process group of its own, which is killed after `limit`, or once `stop` is set. Its
/// output goes to files in `directory`: what it leaves running holds no pipe open that is waited for, and is
/// ended after [`ENDING`]. `watch` gets its process id soon after its start, and now and then while it runs.
/// With `alone` false, another child of this process runs meanwhile: then what the program leaves running is
/// not ended.
///
/// # Errors
/// The program cannot be started, or its files cannot be written.
pub fn run(
    command: &mut Command,
    directory: &Path,
    limit: Duration,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Pid),
    alone: bool,
) -> io::Result<Ended> {
    let [output, errors] = ["output", "errors"].map(|name| directory.join(name));
    let (read_output, mut read_errors) = (private(&output)?, private(&errors)?);
    let for_program = |path| OpenOptions::new().write(true).open(path);
    command.stdout(for_program(&output)?).stderr(for_program(&errors)?).process_group(0);
    children::forget_peak();
    let (begun, used) = (Instant::now(), children::cpu_seconds());
    let mut child = command.spawn()?;
    let group = Pid::from_child(&child);
    let watched = pidfd_open(group, PidfdFlags::empty())?;
    let (mut look, mut stopped) = (SOON, None);
    let printed = |file: &File| file.metadata().map_or(0, |metadata| metadata.len());
    let own_delay = || children::delay("thread-self");
    let mut before = own_delay();
    let cut = loop {
        let next = Timespec { tv_sec: 0, tv_nsec: look };
        match poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&next)) {
            Ok(0) if stop.load(Ordering::Relaxed) => break Some(Ended::Stopped),
            Ok(0) if begun.elapsed() >= limit => break Some(Ended::TooLong),
            Ok(0) if printed(&read_output) + printed(&read_errors) >= MOST_OUTPUT => {
                break Some(Ended::TooMuch);
            }
            Ok(0) => {
                stopped = is_stopped(group).then(|| stopped.unwrap_or_else(Instant::now));
                if stopped.is_some_and(|since| since.elapsed() >= MOST_STOPPED) {
                    break Some(Ended::Suspended);
                }
                watch(group);
                look = (look + look / 2).min(LOOK);
                before = own_delay();
            }
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break None,
            Err(error) => return Err(error.into()),
        }
    };
    let seconds = begun.elapsed().as_secs_f64();
    let late = own_delay() - before;
    if cut.is_some() {
        // Not waited for yet, so that its number is still its own.
        kill_process_group(group, Signal::KILL)?;
    }
    let (status, used_itself) = children::wait_for(&mut child)?;
    let is_over = !alone || children::reap_orphans(ENDING);
    let left = if is_over { 0 } else { children::end_all(ENDING) };
    if let Some(cut) = cut {
        return Ok(cut);
    }
    // A program may have put its end anywhere, even where it did not write.
    if printed(&read_output) + printed(&read_errors) > MOST_OUTPUT {
        return Ok(Ended::TooMuch);
    }
    let mut told = Vec::new();
    read_errors.seek(SeekFrom::Start(printed(&read_errors).saturating_sub(TOLD)))?;
    read_errors.take(TOLD).read_to_end(&mut told)?;
    let told = String::from_utf8_lossy(&told).trim().to_owned();
    let cpu = children::cpu_seconds() - used;
    let children::Used { system, peak: resident, faults, delay, .. } = used_itself;
    let (output, digest) = kept_of(read_output)?;
    Ok(Ended::Run(Run {
        seconds,
        cpu,
        resident,
        system,
        faults,
        delay: delay + late,
        left,
        status,
        output,
        digest,
        told,
    }))
}

/// The beginning of a file, [`KEPT`] bytes at most, and the digest of all of it.
///
/// # Errors
/// Returns the error of opening or reading, and refuses what is no regular file or is larger than [`MOST_OUTPUT`].
pub fn read(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    // A pipe without a writer would be waited for.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("expected a regular file, found something else"));
    }
    kept_of(file)
}

fn kept_of(file: File) -> io::Result<(Vec<u8>, u64)> {
    let mut file = file.take(MOST_OUTPUT + 1);
    let (mut kept, mut part, mut length) = (Vec::new(), Vec::new(), 0);
    let mut digest = DefaultHasher::new();
    while file.by_ref().take(PART).read_to_end(&mut part)? != 0 {
        digest.write(&part);
        length += part.len() as u64;
        part.truncate((KEPT as usize).saturating_sub(kept.len()));
        kept.append(&mut part);
    }
    if length > MOST_OUTPUT {
        Err(io::ErrorKind::FileTooLarge.into())
    } else {
        Ok((kept, digest.finish()))
    }
}

/// A new file for reading and writing that other users cannot open, whatever the umask, in the place of an old one.
///
/// # Errors
/// Returns the file system's refusal.
pub fn private(path: &Path) -> io::Result<File> {
    let _ = fs::remove_file(path);
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Returns whether a signal has stopped a process; one that a debugger holds is in its hands.
fn is_stopped(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    // Behind the name, which may have any characters.
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|state| state.starts_with(" T")))
}
