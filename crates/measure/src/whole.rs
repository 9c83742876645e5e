//! Whole programs: started, waited for, timed, run in turns, and compared.
//!
//! Everything that runs programs which nobody here wrote does it by these: `cachewise advise`. How many rounds there are is settled before the first one
//! ([`turns::rounds`]).

use crate::stats::{LEAST_ROUNDS, PairedRatio};
use crate::{children, turns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a server that a program has ended may take to end after it, so that its CPU time is known.
pub const ENDING: Duration = Duration::from_millis(200);
/// A program that may be slower than this is not called "not slower".
pub const MARGIN: f64 = 0.02;
/// Seed of the order in each round.
pub const SEED: u64 = 1;
/// How often a run in turns says how far it is.
const SAID_EVERY: Duration = Duration::from_secs(15);
/// How often it is looked whether to stop.
const LOOK: i64 = 50_000_000;
/// And how soon after the start.
const SOON: i64 = 1_500_000;

/// One run of a program.
#[derive(Debug)]
pub struct Run {
    /// By the clock on the wall.
    pub seconds: f64,
    /// Of CPU, of all that it started and of the servers that it left to end.
    pub cpu: f64,
    /// Bytes of memory that the largest of its processes held at most, of those that it waited for
    /// itself.
    pub resident: u64,
    /// Seconds of CPU in the system, of the same processes.
    pub system: f64,
    /// Their page faults that read nothing from a disk.
    pub faults: u64,
    /// Processes that it left running, and that were ended after it.
    pub left: usize,
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub output: Vec<u8>,
    /// What it said on stderr, without white space around it.
    pub told: String,
}

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    /// By itself.
    Run(Run),
    /// It was killed after its time.
    TooLong,
    /// It was killed because somebody wants to stop.
    Stopped,
}

/// Runs it in a process group of its own, which is killed after `limit`, or once `stop` is set. Its
/// output goes to files in `directory`: what it leaves running holds no pipe open that is waited for, and is
/// ended after [`ENDING`].
///
/// # Errors
/// The program cannot be started, or its files cannot be written.
pub fn run(
    command: &mut Command,
    directory: &Path,
    limit: Duration,
    stop: &AtomicBool,
) -> io::Result<Ended> {
    run_watched(command, directory, limit, stop, &mut |_| ())
}

/// The same, and `watch` is told its number now and then while it runs, and soon after its start.
///
/// # Errors
/// Those of [`run`].
pub fn run_watched(
    command: &mut Command,
    directory: &Path,
    limit: Duration,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Pid),
) -> io::Result<Ended> {
    run_one(command, directory, limit, stop, watch, true)
}

/// The same beside another child of this process, which is left alone; and so is what the program leaves.
///
/// # Errors
/// Those of [`run`].
pub fn run_beside(
    command: &mut Command,
    directory: &Path,
    limit: Duration,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Pid),
) -> io::Result<Ended> {
    run_one(command, directory, limit, stop, watch, false)
}

fn run_one(
    command: &mut Command,
    directory: &Path,
    limit: Duration,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Pid),
    alone: bool,
) -> io::Result<Ended> {
    let [output, errors] = ["output", "errors"].map(|name| directory.join(name));
    command.stdout(File::create(&output)?).stderr(File::create(&errors)?).process_group(0);
    children::forget_peak();
    let (begun, used) = (Instant::now(), children::cpu_seconds());
    let mut child = command.spawn()?;
    let group = Pid::from_child(&child);
    let watched = pidfd_open(group, PidfdFlags::empty())?;
    let mut look = SOON;
    let cut = loop {
        let next = Timespec { tv_sec: 0, tv_nsec: look };
        match poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&next)) {
            Ok(0) if stop.load(Ordering::Relaxed) => break Some(Ended::Stopped),
            Ok(0) if begun.elapsed() >= limit => break Some(Ended::TooLong),
            Ok(0) => {
                watch(group);
                look = (look + look / 2).min(LOOK);
            }
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break None,
            Err(error) => return Err(error.into()),
        }
    };
    if cut.is_some() {
        // Not waited for yet, so that its number is still its own.
        kill_process_group(group, Signal::KILL)?;
    }
    let (status, used_itself) = children::wait_for(&mut child)?;
    let seconds = begun.elapsed().as_secs_f64();
    let is_over = !alone || children::reap_orphans(ENDING);
    let left = if is_over { 0 } else { children::end_all(ENDING) };
    if let Some(cut) = cut {
        return Ok(cut);
    }
    let told = String::from_utf8_lossy(&fs::read(&errors)?).trim().to_owned();
    let cpu = children::cpu_seconds() - used;
    let children::Used { system, peak: resident, faults, .. } = used_itself;
    let output = fs::read(&output)?;
    Ok(Ended::Run(Run { seconds, cpu, resident, system, faults, left, status, output, told }))
}

/// What runs in turns took, by candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Seconds by the clock on the wall.
    pub wall: Vec<Vec<f64>>,
    /// Seconds of CPU.
    pub cpu: Vec<Vec<f64>>,
}

impl Times {
    /// Rounds in which all were run.
    pub fn rounds(&self) -> usize {
        self.wall.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// The reference's time over its own: above 1 is faster.
    pub fn speed(&self, of: usize, reference: usize) -> PairedRatio {
        PairedRatio::in_turns(&self.wall[reference], &self.wall[of])
    }

    /// Its CPU time over the reference's: below 1 takes less. Where neighbours take the CPU away it is
    /// the steadier of the two; no verdict is made of it, since waiting counts for nothing in it.
    pub fn cpu(&self, of: usize, reference: usize) -> PairedRatio {
        PairedRatio::in_turns(&self.cpu[of], &self.cpu[reference])
    }
}

/// Runs candidates in turns, once to warm up and then so many rounds, the order of each drawn. `run`
/// is told whom to run, and says what that took, by the clock and of CPU; `None` stops it all, and the
/// rounds that are whole are kept. `say` is told now and then how many rounds are done, and the seconds
/// that the others will take.
pub fn in_turns<E>(
    candidates: usize,
    rounds: usize,
    say: &mut dyn FnMut(usize, f64),
    run: &mut dyn FnMut(usize) -> Result<Option<(f64, f64)>, E>,
) -> Result<Times, E> {
    let mut times = Times { wall: vec![Vec::new(); candidates], cpu: vec![Vec::new(); candidates] };
    let warming = std::iter::once((0..candidates).collect());
    let (mut begun, mut said) = (Instant::now(), Instant::now());
    for (round, order) in warming.chain(turns::orders(candidates, rounds, SEED)).enumerate() {
        let mut took = vec![(0.0, 0.0); candidates];
        for at in order {
            match run(at)? {
                Some(seconds) => took[at] = seconds,
                None => return Ok(times),
            }
        }
        if round == 0 {
            begun = Instant::now();
            continue;
        }
        for (at, (wall, cpu)) in took.into_iter().enumerate() {
            times.wall[at].push(wall);
            times.cpu[at].push(cpu);
        }
        if said.elapsed() >= SAID_EVERY {
            say(round, begun.elapsed().as_secs_f64() / round as f64 * (rounds - round) as f64);
            said = Instant::now();
        }
    }
    Ok(times)
}

/// What a whole program's speed says: by where its whole interval lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Above 1 by more than [`MARGIN`].
    Faster,
    /// Within [`MARGIN`] of 1.
    Same,
    /// Not below 1 by more than [`MARGIN`].
    NotSlower,
    /// Below 1 by more than [`MARGIN`].
    Slower,
    /// None of these, or too few rounds.
    CannotTell,
}

impl Verdict {
    /// Of a speed: above 1 is faster.
    pub fn of(speed: &PairedRatio) -> Verdict {
        let (slower, faster) = (1.0 - MARGIN, 1.0 + MARGIN);
        if speed.rounds < LEAST_ROUNDS {
            Verdict::CannotTell
        } else if speed.high < slower {
            Verdict::Slower
        } else if speed.low > faster {
            Verdict::Faster
        } else if speed.low >= slower && speed.high <= faster {
            Verdict::Same
        } else if speed.low >= slower {
            Verdict::NotSlower
        } else {
            Verdict::CannotTell
        }
    }

    /// As people say it.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Same => "same",
            Verdict::NotSlower => "not slower than 0.98",
            Verdict::Slower => "SLOWER",
            Verdict::CannotTell => "cannot tell",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_where_the_whole_interval_lies() {
        let speed = |low: f64, high: f64, rounds| PairedRatio {
            median: f64::midpoint(low, high),
            low,
            high,
            rounds,
        };
        for (low, high, expected) in [
            (0.93, 0.979, Verdict::Slower),
            (0.90, 0.99, Verdict::CannotTell),
            (1.05, 1.11, Verdict::Faster),
            (0.97, 1.17, Verdict::CannotTell),
            (0.99, 1.015, Verdict::Same),
            (0.981, 0.99, Verdict::Same),
            (0.99, 1.17, Verdict::NotSlower),
            (0.979, 1.015, Verdict::CannotTell),
            (f64::NAN, f64::NAN, Verdict::CannotTell),
        ] {
            assert_eq!(Verdict::of(&speed(low, high, 8)), expected, "{low} .. {high}");
        }
        assert_eq!(Verdict::of(&speed(0.5, 0.6, 5)), Verdict::CannotTell);
    }

    #[test]
    fn the_first_round_warms_up_and_a_round_that_is_cut_off_does_not_count() {
        let mut runs = 0;
        let mut run = |at: usize| {
            runs += 1;
            // 3 to warm up, 7 whole rounds, and one run more.
            Ok::<_, ()>(
                (runs <= 3 + 3 * 7 + 1).then_some(([1.0, 0.5, 2.0][at], [3.0, 1.0, 1.0][at])),
            )
        };
        let times = in_turns(3, 100, &mut |_, _| {}, &mut run).expect("no error");
        assert_eq!(times.rounds(), 7);
        assert!((times.speed(1, 0).median - 2.0).abs() < 1e-9);
        assert!((times.speed(2, 0).median - 0.5).abs() < 1e-9);
        assert!((times.cpu(1, 0).median - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(in_turns(2, 3, &mut |_, _| {}, &mut |_| Err::<_, ()>(())), Err(()));
    }
}
