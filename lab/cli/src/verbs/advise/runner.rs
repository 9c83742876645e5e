//! Runs the program: plain or by a setting, alone or under load; times it; compares what it printed.

use super::figure::Figure;
use super::looks::Watched;
use super::unit::Unit;
use crate::program as programs;
use crate::progress::Bar;
use cachewise_advise::candidates::Candidate;
use cachewise_advise::sample::Sample;
use cachewise_judge::race::{self, Ran, Stage};
use cachewise_measure::held::{self, Held, Sampler};
use cachewise_measure::units::bytes;
use cachewise_measure::whole::{self, Ended, Run};
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Seconds over which memory is read after a load.
const READ: f64 = 0.25;

/// Switches transparent huge pages off for this process and those that it starts.
fn no_huge_pages() -> std::io::Result<()> {
    // SAFETY: numbers alone.
    match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The shell that runs a script without `#!`, as the C library does.
const SHELL: &str = "/bin/sh";
const SUSPENDED: &str = "a signal stopped it and no SIGCONT followed: ended";

fn too_much() -> String {
    format!("its output has more than {}: ended", bytes(whole::MOST_OUTPUT))
}

/// The program, how it is run, and what it has to print.
pub struct Runner<'a> {
    pub program: PathBuf,
    pub words: &'a [OsString],
    pub input: Option<PathBuf>,
    /// Files that it writes and that have to be the same each time, in place of what it prints.
    pub compared: Vec<PathBuf>,
    pub load: Option<super::load::Load>,
    pub figure: Option<Figure>,
    pub directory: tempfile::TempDir,
    pub stop: Arc<AtomicBool>,
    pub bar: Bar,
    pub begun: Instant,
    /// Longer runs are ended.
    pub limit: Duration,
    /// Seconds of the plain run, once that has been.
    pub seconds: Option<f64>,
    /// Its first output; `None` where that differs from run to run.
    pub expected: Option<Vec<u64>>,
    /// The settings that race, the simplest first.
    pub candidates: Vec<Candidate>,
    /// CPU time is judged in place of the time by the clock: on a busy machine the clock measures the scheduler.
    pub by_cpu: bool,
    /// True if memory is read while it runs.
    pub sampled: bool,
    /// Seconds between the end of the load and the reading of memory.
    pub settle: f64,
    /// Processes that runs left behind and that were ended, at most.
    pub left: usize,
    /// The file is a script without `#!`.
    pub by_shell: bool,
    /// It could be started, and was.
    pub has_run: bool,
    /// Notes for the reader, found while it ran.
    pub notes: Vec<String>,
}

/// A run, with what it printed or wrote.
pub struct Measured {
    pub sample: Sample,
    pub system: f64,
    pub seconds: f64,
    pub printed: Vec<u64>,
    /// Memory over time; none where it was not read.
    pub held: Option<Held>,
}

/// The reason why a run is of no use.
pub enum Failed {
    /// It ended otherwise than well.
    Wrong(String),
    Stopped,
}

impl Runner<'_> {
    /// The command by a setting, and with further variables. The caller's variables are the program's too: a setting's
    /// lists hold them already (`lists`).
    fn command(&self, by: Option<&Candidate>, more: &[(&str, OsString)]) -> Command {
        let mut command =
            Command::new(if self.by_shell { Path::new(SHELL) } else { &self.program });
        match self.by_shell {
            true => command.arg(&self.program),
            false => command.arg0(&self.words[0]),
        };
        command.env_remove("CACHEWISE_STATS");
        if let Some(candidate) = by {
            command.args(&candidate.words);
            command.envs(candidate.variables.iter().map(|(name, value)| (name, value)));
        }
        command.args(&self.words[1..]);
        command.envs(more.iter().map(|(name, value)| (name, value)));
        // One line in each of its processes would change what it prints.
        command.env("CACHEWISE_QUIET", "1");
        if by.is_some_and(|candidate| candidate.no_huge_pages) {
            // SAFETY: a system call alone, which a forked child may make.
            unsafe { command.pre_exec(no_huge_pages) };
        }
        command
    }

    /// The runs that are accepted, for errors.
    pub fn accepted(&self) -> &'static str {
        match self.load {
            Some(_) => {
                "a server that listens, and a load that ends with status 0 within the budget"
            }
            None => {
                "a program that ends by itself with status 0 within the budget (--load is for servers)"
            }
        }
    }

    /// The time between a load's end and the end of a run, in which memory settles and is read.
    pub fn settled(&self) -> Duration {
        match (self.sampled, &self.load) {
            (true, Some(_)) => Duration::from_secs_f64(self.settle + READ),
            _ => Duration::ZERO,
        }
    }

    /// The seconds at the end of a run whose readings count; none for the run's last part.
    pub fn window(&self) -> Option<f64> {
        (self.settled() > Duration::ZERO).then_some(READ)
    }

    /// Runs it once.
    pub fn measure(
        &mut self,
        by: Option<&Candidate>,
        more: &[(&str, OsString)],
        watched: &mut Watched,
    ) -> anyhow::Result<Result<Measured, Failed>> {
        let wrong = |why: String| Ok(Err(Failed::Wrong(why)));
        let mut command = self.command(by, more);
        match &self.input {
            Some(file) => match programs::regular(file) {
                Ok(file) => command.stdin(file),
                Err(error) => return wrong(format!("--input {}: {error}", file.display())),
            },
            None => command.stdin(Stdio::null()),
        };
        let directory = self.directory.path();
        let last = self.window().or(self.seconds.map(held::last_part));
        let with_last = |sampler: Sampler| match last {
            Some(last) => sampler.with_last(last),
            None => sampler,
        };
        let mut sampler = self.sampled.then(|| with_last(Sampler::new()));
        let is_alone = self.load.is_none();
        let watch = &mut |pid| {
            watched.look(pid);
            sampler.iter_mut().for_each(|sampler| sampler.look(pid, is_alone));
        };
        let settle = self.settled();
        let ended = match &self.load {
            None => whole::run(&mut command, directory, self.limit, &self.stop, watch, true),
            Some(load) => load.run(&mut command, directory, self.limit, &self.stop, settle, watch),
        };
        let held = sampler.and_then(|sampler| sampler.held(self.window()));
        let ended = match ended {
            // A server's own words: another setting may be better off.
            Err(error) if error.kind() == std::io::ErrorKind::Other => {
                return wrong(error.to_string());
            }
            // The C library's functions and shells leave a file in no format of the kernel's to a shell.
            Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) && !self.by_shell => {
                self.by_shell = true;
                return self.measure(by, more, watched);
            }
            // It has run before: it takes itself away, or others do.
            Err(error) if self.has_run => {
                return wrong(programs::not_started(&self.program, &error));
            }
            Err(error) => anyhow::bail!(programs::not_started(&self.program, &error)),
            Ok(ended) => ended,
        };
        self.has_run = true;
        Ok(self.measured(ended, watched.threads, held))
    }

    /// The measurement of a run that ended well.
    fn measured(
        &mut self,
        ended: Ended,
        threads: usize,
        held: Option<Held>,
    ) -> Result<Measured, Failed> {
        let wrong = |why: String| Err(Failed::Wrong(why));
        let run = match ended {
            Ended::Run(run) => run,
            Ended::Stopped => return Err(Failed::Stopped),
            Ended::TooLong => {
                let limit = self.limit.as_secs_f64();
                return wrong(format!("still running after {limit:.0} s: ended"));
            }
            Ended::Suspended => return wrong(SUSPENDED.to_owned()),
            Ended::TooMuch => return wrong(too_much()),
        };
        self.left = self.left.max(run.left);
        if !run.status.success() {
            let told = run.told.lines().last().unwrap_or_default();
            let told = if told.is_empty() { String::new() } else { format!(": {told}") };
            let which = if self.load.is_some() { "the load: " } else { "" };
            return wrong(format!("{which}{}{told}", run.status));
        }
        let cost = self.cost(&run).map_err(Failed::Wrong)?;
        let (faults, peak, threads) = (run.faults as f64, run.resident as f64, threads as f64);
        let sample = Sample { cost, cpu: run.cpu, peak, faults, threads };
        let (system, seconds) = (run.system, run.seconds);
        let printed = self.printed(run).map_err(Failed::Wrong)?;
        Ok(Measured { sample, system, seconds, printed, held })
    }

    /// The cost of a run: its figure where one is named, its seconds otherwise.
    fn cost(&self, run: &Run) -> Result<f64, String> {
        let figure = self.figure.as_ref().map(|figure| figure.cost(&run.output));
        figure.unwrap_or(Ok(run.seconds)).map_err(|why| format!("{why:#}"))
    }

    /// The cost of a load's run, and the output that has to be the same.
    fn of_load(&self, run: Run) -> Result<(f64, Vec<u64>), String> {
        if !run.status.success() {
            let told = run.told.lines().last().unwrap_or("");
            return Err(format!("the load: {}: {told}", run.status));
        }
        Ok((self.cost(&run)?, self.printed(run)?))
    }

    /// Restarts a service by a setting, runs the load, and reads its memory. The seconds are the load's; of a service
    /// under its real load they are its CPU time.
    pub fn measure_unit(
        &mut self,
        unit: &mut Unit,
        by: Option<&Candidate>,
        watched: &mut Watched,
    ) -> anyhow::Result<Result<Measured, Failed>> {
        let wrong = |why: String| Ok(Err(Failed::Wrong(why)));
        let pid = match unit.restart(by) {
            Ok(pid) => pid,
            Err(why) if by.is_some() => return wrong(format!("{why:#}")),
            Err(why) => return Err(why),
        };
        let mut sampler = Sampler::new().with_last(READ);
        let stop = Arc::clone(&self.stop);
        let watch = &mut |_| {
            watched.look(pid);
            sampler.look(pid, false);
        };
        let mut seconds = None;
        let mut printed = Vec::new();
        if let Some(load) = &self.load {
            let mut shell = Command::new("sh");
            shell.args(["-c", &load.line]).stdin(Stdio::null());
            match whole::run(&mut shell, self.directory.path(), self.limit, &stop, watch, false)? {
                Ended::Stopped => return Ok(Err(Failed::Stopped)),
                Ended::TooLong => return wrong("the load is still running: ended".to_owned()),
                Ended::Suspended => return wrong(format!("the load: {SUSPENDED}")),
                Ended::TooMuch => return wrong(format!("the load: {}", too_much())),
                Ended::Run(run) => match self.of_load(run) {
                    Ok((cost, output)) => (seconds, printed) = (Some(cost), output),
                    Err(why) => return wrong(why),
                },
            }
        }
        if !super::load::rest(self.settled_unit(), &stop, pid, watch) {
            return Ok(Err(Failed::Stopped));
        }
        let Some(held) = sampler.held(Some(READ)) else {
            return wrong("its memory cannot be read".to_owned());
        };
        let cpu = unit.cpu_seconds().unwrap_or(f64::NAN);
        let seconds = seconds.unwrap_or(cpu);
        let threads = watched.threads as f64;
        let sample = Sample { cost: seconds, cpu, peak: held.peak, faults: f64::NAN, threads };
        Ok(Ok(Measured { sample, system: 0.0, seconds, printed, held: Some(held) }))
    }

    /// The same for a service, which is read even without a load.
    fn settled_unit(&self) -> Duration {
        Duration::from_secs_f64(self.settle + READ)
    }

    /// Output that has to be the same: files, or standard output; nothing under load unless files are named.
    fn printed(&self, run: Run) -> Result<Vec<u64>, String> {
        if self.compared.is_empty() {
            let is_compared = self.load.is_none() && self.figure.is_none();
            return Ok(if is_compared { vec![run.digest] } else { vec![] });
        }
        let read = |file: &PathBuf| {
            let read = whole::read(file).map(|(_, digest)| digest);
            read.map_err(|error| format!("--compare {}: {error}", file.display()))
        };
        self.compared.iter().map(read).collect()
    }

    /// Returns whether a run printed what the plain program did first.
    fn is_expected(&self, measured: &Measured) -> bool {
        self.expected.as_ref().is_none_or(|expected| *expected == measured.printed)
    }

    /// Runs it once more: `None` where that failed.
    fn once_more(&mut self, by: Option<&Candidate>) -> anyhow::Result<Option<Measured>> {
        Ok(self.measure(by, &[], &mut Watched::default())?.ok())
    }

    /// Judges other output: the plain program is asked again, since a date, a minute or a counter may have changed it for
    /// all; then the setting. Whether the setting changes it.
    fn changes_output(&mut self, by: &Candidate) -> anyhow::Result<bool> {
        let plain = self.once_more(None)?;
        if plain.is_some_and(|plain| !self.is_expected(&plain)) {
            self.ignore_output();
            return Ok(false);
        }
        let again = self.once_more(Some(by))?;
        // A run that was stopped says nothing.
        let stopped = self.stop.load(std::sync::atomic::Ordering::Relaxed);
        Ok(!stopped && again.is_none_or(|again| !self.is_expected(&again)))
    }

    /// From here on nothing that it prints is compared.
    pub fn ignore_output(&mut self) {
        self.expected = None;
        self.notes.push(
            "what it prints differs from run to run: not compared; --compare FILE names what has to be the same"
                .to_owned(),
        );
    }
}

impl race::Runner for Runner<'_> {
    type Sample = Sample;
    type Error = anyhow::Error;

    fn run(&mut self, who: usize) -> anyhow::Result<Ran<Sample>> {
        let by = who.checked_sub(1).map(|at| self.candidates[at].clone());
        let measured = match self.measure(by.as_ref(), &[], &mut Watched::default())? {
            Ok(measured) => measured,
            Err(Failed::Stopped) => return Ok(Ran::Stopped),
            Err(Failed::Wrong(why)) => return Ok(Ran::Wrong(why)),
        };
        if !self.is_expected(&measured) {
            match &by {
                None => self.ignore_output(),
                Some(by) if self.changes_output(by)? => {
                    return Ok(Ran::Wrong("another output".to_owned()));
                }
                Some(_) => {}
            }
        }
        let mut sample = measured.sample;
        if self.by_cpu {
            sample.cost = sample.cpu;
        }
        Ok(Ran::Well(sample))
    }

    fn cost(sample: &Sample) -> f64 {
        sample.cost
    }

    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn progress(&mut self, stage: Stage, left: f64) {
        let what = match stage {
            Stage::Race => "race",
            Stage::Fresh => "fresh runs of the best",
        };
        let spent = self.begun.elapsed().as_secs_f64();
        self.bar.expected(what, spent, left);
    }
}
