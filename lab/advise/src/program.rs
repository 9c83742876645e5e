//! Programs under test: started plain or by a setting, alone or under load; timed; their output compared.

use crate::executable::{not_started, regular};
use crate::figure::Pattern;
use crate::figures::{Format, Kind, Own};
use crate::load::Load;
use crate::output::{Compared, Outputs, Printed, digest};
use crate::settings::Candidate;
use crate::watched::{MARK, Watched};
use anyhow::Context as _;
use cachewise_host::{Group, Groups};
use cachewise_judge::race::{self, Ran, Stage};
use cachewise_measure::held::{self, Held, Sampler};
use cachewise_measure::units::bytes;
use cachewise_measure::whole::{self, Ended, Run};
use regex_lite::Regex;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A run is given up after so many times the first one's time, and some seconds.
const PATIENCE: f64 = 10.0;
const AT_LEAST: Duration = Duration::from_secs(5);
/// Seconds over which memory is read after a load.
const READ: f64 = 0.25;
/// The shell that runs a script without `#!`, as the C library does.
const SHELL: &str = "/bin/sh";
const SUSPENDED: &str = "a signal stopped it and no SIGCONT followed: ended";
/// Words for the end of a run at `--limit`, before its size.
pub(crate) const KILLED: &str = "killed at --limit ";
const GROUP: &str = "--limit: no control group can be made here: expected root, or a group that is delegated to the user \
                     (systemd-run --user --scope -p Delegate=yes cachewise ...)";
/// The name of the figure that `--figure` reads.
pub const NAMED: &str = "";

/// The figures of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Seconds by the clock; under load the load's.
    pub wall: f64,
    /// Seconds of CPU, of all processes; under load the server's.
    pub cpu: f64,
    /// The system's part of it.
    pub system: f64,
    /// Bytes that were held at most: by the largest process, or by all together where memory is read.
    pub peak: f64,
    /// Bytes at the end, or after the load; NaN where memory is not read.
    pub level: f64,
    /// Page faults.
    pub faults: f64,
    /// Seconds of waiting for a CPU, as far as they were seen.
    pub delay: f64,
    /// Threads of one process, at most.
    pub threads: f64,
    /// Figures that the program prints, by name.
    pub own: BTreeMap<String, Own>,
    /// Memory over time; none where it is not read.
    pub held: Option<Held>,
}

/// A figure of a run, as a cost: small is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Seconds by the clock.
    Wall,
    /// Seconds of CPU.
    Cpu,
    /// Most memory at a time.
    Peak,
    /// Memory at the end.
    Level,
    /// Page faults.
    Faults,
    /// One that the program prints.
    Own(String),
}

impl Figure {
    /// The figure of a run.
    #[must_use]
    pub fn of(&self, sample: &Sample) -> f64 {
        match self {
            Figure::Wall => sample.wall,
            Figure::Cpu => sample.cpu,
            Figure::Peak => sample.peak,
            Figure::Level => sample.level,
            Figure::Faults => sample.faults,
            Figure::Own(name) => sample.own.get(name).map_or(f64::NAN, |own| own.cost),
        }
    }

    /// Its name in a sentence and over a column.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Figure::Wall => "time",
            Figure::Cpu => "CPU time",
            Figure::Peak => "peak memory",
            Figure::Level => "memory at the end",
            Figure::Faults => "page faults",
            Figure::Own(name) if name == NAMED => "figure",
            Figure::Own(name) => name,
        }
    }

    /// The kind of figure, by which it is printed.
    #[must_use]
    pub fn kind(&self, sample: Option<&Sample>) -> Kind {
        match self {
            Figure::Wall | Figure::Cpu => Kind::Seconds,
            Figure::Peak | Figure::Level => Kind::Bytes,
            Figure::Faults => Kind::Count,
            Figure::Own(name) => {
                sample.and_then(|sample| sample.own.get(name)).map_or(Kind::Count, |own| own.kind)
            }
        }
    }

    /// Returns whether it is a time, of which a gain is a speed.
    #[must_use]
    pub fn is_time(&self) -> bool {
        matches!(self, Figure::Wall | Figure::Cpu | Figure::Own(_))
    }
}

/// One way to run a program: 0 is the plain program, or the old one.
#[derive(Clone, Debug, Default)]
pub struct Arm {
    /// The program's file.
    pub file: PathBuf,
    /// The words of its command line, its own name first.
    pub words: Vec<OsString>,
    /// The folder in which it starts; the caller's, if none is named.
    pub directory: Option<PathBuf>,
    /// Standard input; none is an empty one.
    pub input: Option<PathBuf>,
    /// Variables that are set.
    pub variables: Vec<(String, OsString)>,
    /// The setting by which it runs.
    pub setting: Option<Candidate>,
}

/// The figures that a program prints.
#[derive(Clone, Debug)]
pub enum Prints {
    /// One, found by a pattern.
    Pattern(Pattern),
    /// Rows in a format.
    Rows(Format),
}

/// Conditions of every run: what goes before it, and what of it counts.
#[derive(Clone, Default)]
pub struct Conditions {
    /// A line of the shell before each run.
    pub prepare: Option<String>,
    /// The load, where the program is a server.
    pub load: Option<Load>,
    /// Figures that are read from the output.
    pub prints: Option<Prints>,
    /// Lines that no run may print.
    pub errors: Option<Regex>,
    /// Files that have to be the same after each run, in place of what is printed.
    pub compared: Vec<PathBuf>,
    /// True if each may print what it likes.
    pub any_output: bool,
    /// True if memory is read while it runs.
    pub sampled: bool,
    /// Seconds between the end of the load and the reading of memory.
    pub settle: f64,
    /// Bytes that a run may have: it is killed at more.
    pub fits: Option<u64>,
}

/// Shows a stage, seconds spent and seconds left.
pub type Shown = Box<dyn FnMut(&str, f64, f64)>;

/// Programs under test: the one runner of real ones.
pub struct Programs {
    /// The plain program, then those that are compared with it.
    pub arms: Vec<Arm>,
    /// The conditions of every run.
    pub conditions: Conditions,
    /// The first arm that has that limit: 1 where the plain program does not survive it.
    pub limited_from: usize,
    /// The most that a run of each arm had of them.
    pub peaks: Vec<u64>,
    /// A folder for what is printed.
    pub directory: tempfile::TempDir,
    /// Set by Ctrl-C.
    pub stop: Arc<AtomicBool>,
    /// Shows a stage, seconds spent and seconds left.
    pub progress: Shown,
    /// The beginning of it all.
    pub begun: Instant,
    /// Longer runs are ended.
    pub limit: Duration,
    /// Outputs of plain runs.
    pub outputs: Outputs,
    /// Notes for the reader, found while it ran.
    pub notes: Vec<String>,
    /// Processes that runs left behind and that were ended, at most.
    pub left: usize,
    /// Runs of each arm.
    pub runs: Vec<usize>,
    /// The first run's seconds, once that has been.
    seconds: Option<f64>,
    by_shell: bool,
    /// The unit of the figure in the first run.
    unit: Option<String>,
    /// The file of a setting is looked for in the running program once.
    verified: Vec<bool>,
}

/// A run that ended well.
pub struct Measured {
    /// Its figures.
    pub sample: Sample,
    /// Its output.
    pub printed: Printed,
    /// Its processes.
    pub watched: Watched,
}

/// The part of a run, with the waiting for a CPU, from which on CPU time stands for it.
const MOSTLY: f64 = 0.8;
/// The part of a run that a program works, below which its work is somebody else's.
pub(crate) const WORKS: f64 = 0.1;

impl Sample {
    /// Returns whether it waited for nothing but a CPU.
    #[must_use]
    pub fn is_mostly_cpu(&self) -> bool {
        let &Sample { cpu, wall, delay, .. } = self;
        cpu >= WORKS * wall && cpu + delay >= MOSTLY * wall
    }
}

/// The reason why a run is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// Failure: how it ended.
    Wrong(String),
    /// The user wants to stop.
    Stopped,
}

/// Switches transparent huge pages off for this process and those that it starts.
fn no_huge_pages() -> std::io::Result<()> {
    // SAFETY: numbers alone.
    match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Has a command start in a control group, with all that it starts.
fn starts_in(command: &mut Command, group: &Group) -> std::io::Result<()> {
    let file = std::fs::File::options().write(true).open(group.processes())?;
    let enter = move || rustix::io::write(&file, b"0").map(drop).map_err(Into::into);
    // SAFETY: a system call alone, which a forked child may make.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// The line that says why a program failed: the last of standard error, else of its output. The JVM prints its own there,
/// and what it was told by a variable to standard error.
fn last_words(run: &Run) -> Option<String> {
    let output = String::from_utf8_lossy(&run.output);
    let is_one = |line: &&str| !line.trim().is_empty() && !line.starts_with("Picked up ");
    let last = run.told.lines().rfind(is_one).or_else(|| output.lines().rfind(is_one));
    last.map(str::to_owned)
}

impl Programs {
    /// Programs that run until `limit` at first.
    ///
    /// # Errors
    /// No temporary folder can be made.
    pub fn new(
        arms: Vec<Arm>,
        conditions: Conditions,
        stop: Arc<AtomicBool>,
        limit: Duration,
        progress: Shown,
    ) -> std::io::Result<Programs> {
        let directory =
            tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o700)).tempdir()?;
        Ok(Programs {
            runs: vec![0; arms.len()],
            verified: vec![false; arms.len()],
            peaks: vec![0; arms.len()],
            limited_from: 0,
            arms,
            conditions,
            directory,
            stop,
            progress,
            begun: Instant::now(),
            limit,
            outputs: Outputs::default(),
            notes: Vec::new(),
            left: 0,
            seconds: None,
            by_shell: false,
            unit: None,
        })
    }

    /// Adds arms: the plain program by these settings.
    pub fn race(&mut self, settings: &[Candidate]) {
        let plain = self.arms[0].clone();
        self.arms.truncate(1);
        let arm = |setting: &Candidate| Arm { setting: Some(setting.clone()), ..plain.clone() };
        self.arms.extend(settings.iter().map(arm));
        self.race_on();
    }

    /// Counts the runs of arms that were added.
    pub(crate) fn race_on(&mut self) {
        self.runs.resize(self.arms.len(), 0);
        self.verified.resize(self.arms.len(), false);
        self.peaks.resize(self.arms.len(), 0);
    }

    /// The command of an arm, with further variables. The caller's variables are the program's too: a setting's lists hold
    /// them already (`lists`).
    fn command(&self, who: usize, more: &[(&str, OsString)]) -> Command {
        let arm = &self.arms[who];
        let mut command = Command::new(if self.by_shell { Path::new(SHELL) } else { &arm.file });
        match (self.by_shell, arm.words.first()) {
            (true, _) => command.arg(&arm.file),
            (false, Some(name)) => command.arg0(name),
            (false, None) => &mut command,
        };
        command.env_remove("CACHEWISE_STATS");
        command.envs(arm.variables.iter().map(|(name, value)| (name, value)));
        if let Some(setting) = &arm.setting {
            command.args(&setting.words);
            for name in &setting.unset {
                command.env_remove(name);
            }
            command.envs(setting.variables.iter().map(|(name, value)| (name, value)));
            if setting.no_huge_pages {
                // SAFETY: a system call alone, which a forked child may make.
                unsafe { command.pre_exec(no_huge_pages) };
            }
        }
        command.args(arm.words.iter().skip(1));
        command.envs(more.iter().map(|(name, value)| (name, value)));
        // One line in each of its processes would change what it prints.
        command.env(MARK, "1");
        if let Some(directory) = &arm.directory {
            command.current_dir(directory);
        }
        command
    }

    /// The plain program's command, for a run that is not timed.
    pub(crate) fn plain_command(&self, more: &[(&str, OsString)]) -> Command {
        let mut command = self.command(0, more);
        command.stdin(Stdio::null());
        command
    }

    /// Runs the plain program once, looked at while it runs and not timed; false where it did not end by itself.
    pub(crate) fn watched_run(
        &mut self,
        more: &[(&str, OsString)],
        watch: &mut dyn FnMut(rustix::process::Pid),
    ) -> anyhow::Result<bool> {
        let mut command = self.plain_command(more);
        if let Some(file) = &self.arms[0].input {
            command.stdin(regular(file)?);
        }
        let directory = self.directory.path();
        let ended = whole::run(&mut command, directory, self.limit, &self.stop, watch, true)?;
        Ok(matches!(ended, Ended::Run(_)))
    }

    /// Runs that are accepted, for errors.
    #[must_use]
    pub fn accepted(&self) -> &'static str {
        match self.conditions.load {
            Some(_) => {
                "a server that listens, and a load that ends with status 0 within the budget"
            }
            None => {
                "a program that ends by itself with status 0 within the budget (--load is for servers)"
            }
        }
    }

    /// The time between a load's end and the end of a run, in which memory settles and is read.
    #[must_use]
    pub fn settled(&self) -> Duration {
        match (self.conditions.sampled, &self.conditions.load) {
            (true, Some(_)) => Duration::from_secs_f64(self.conditions.settle + READ),
            _ => Duration::ZERO,
        }
    }

    /// Runs an arm once, with further variables.
    ///
    /// # Errors
    /// The arm was never started, or the system fails.
    pub fn measure(
        &mut self,
        who: usize,
        more: &[(&str, OsString)],
    ) -> anyhow::Result<Result<Measured, Failed>> {
        let wrong = |why: String| Ok(Err(Failed::Wrong(why)));
        if let Some(line) = &self.conditions.prepare {
            let mut shell = Command::new(SHELL);
            shell.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null());
            let prepared = shell.status()?;
            if !prepared.success() {
                return wrong(format!("--prepare: {prepared}"));
            }
        }
        let mut command = self.command(who, more);
        match &self.arms[who].input {
            Some(file) => match regular(file) {
                Ok(file) => command.stdin(file),
                Err(error) => return wrong(format!("--input {}: {error}", file.display())),
            },
            None => command.stdin(Stdio::null()),
        };
        let window = (self.settled() > Duration::ZERO).then_some(READ);
        let last = window.or(self.seconds.map(held::last_part));
        let mut sampler = self.conditions.sampled.then(|| match last {
            Some(last) => Sampler::new().with_last(last),
            None => Sampler::new(),
        });
        let is_alone = self.conditions.load.is_none();
        let mut watched = Watched::default();
        let watch = &mut |pid| {
            watched.look(pid);
            sampler.iter_mut().for_each(|sampler| sampler.look(pid, is_alone));
        };
        let fits = self.conditions.fits.filter(|_| who >= self.limited_from);
        let group = fits.map(Group::with_limit).transpose().context(GROUP)?;
        if let Some(group) = &group {
            starts_in(&mut command, group)?;
        }
        let (groups, directory) = (Groups::of_process(), self.directory.path());
        let killed = groups.oom_kills();
        let settle = self.settled();
        let ended = match &self.conditions.load {
            None => whole::run(&mut command, directory, self.limit, &self.stop, watch, true),
            Some(load) => load.run(&mut command, directory, self.limit, &self.stop, settle, watch),
        };
        let by_limit = (groups.oom_kills() > killed)
            .then(|| groups.memory_limit().map_or_else(String::new, bytes))
            .map(|limit| format!("killed at the memory limit of its control group, {limit}"));
        let by_limit = match (&group, fits) {
            (Some(group), Some(fits)) => {
                self.peaks[who] = self.peaks[who].max(group.peak().unwrap_or(0).min(fits));
                (group.oom_kills() > 0).then(|| format!("{KILLED}{}", bytes(fits)))
            }
            _ => by_limit,
        };
        let held = sampler.and_then(|sampler| sampler.held(window));
        let has_run = self.runs.iter().any(|runs| *runs > 0);
        let ended = match ended {
            // A server's own words: another setting may be better off.
            Err(error) if error.kind() == std::io::ErrorKind::Other => {
                return wrong(by_limit.unwrap_or_else(|| error.to_string()));
            }
            // The C library's functions and shells leave a file in no format of the kernel's to a shell.
            Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) && !self.by_shell => {
                self.by_shell = true;
                return self.measure(who, more);
            }
            // It has run before: it takes itself away, or others do.
            Err(error) if has_run => return wrong(not_started(&self.arms[who].file, &error)),
            Err(error) => anyhow::bail!(not_started(&self.arms[who].file, &error)),
            Ok(ended) => ended,
        };
        self.runs[who] += 1;
        let measured = self.measured(ended, watched, held);
        Ok(match (measured, by_limit) {
            // One of several processes may be killed, and the program go on without it.
            (_, Some(why)) if group.is_some() => Err(Failed::Wrong(why)),
            (Err(Failed::Wrong(_)), Some(why)) => Err(Failed::Wrong(why)),
            (measured, _) => measured,
        })
    }

    /// The measurement of a run that ended well.
    fn measured(
        &mut self,
        ended: Ended,
        watched: Watched,
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
            Ended::TooMuch => {
                return wrong(format!(
                    "its output has more than {}: ended",
                    bytes(whole::MOST_OUTPUT)
                ));
            }
        };
        self.left = self.left.max(run.left);
        if !run.status.success() {
            let told = last_words(&run).map_or_else(String::new, |line| format!(": {line}"));
            let which = if self.conditions.load.is_some() { "the load: " } else { "" };
            return wrong(format!("{which}{}{told}", run.status));
        }
        if let Some(line) = self.error_in(&run) {
            return wrong(format!("--errors: it prints \"{line}\""));
        }
        if self.conditions.sampled && held.is_none() {
            return wrong(
                "its memory cannot be read: it ended within a few milliseconds, or /proc is not mounted".to_owned(),
            );
        }
        let own = self.own(&run.output).map_err(Failed::Wrong)?;
        let printed = self.printed(&run).map_err(Failed::Wrong)?;
        if self.seconds.is_none() {
            self.seconds = Some(run.seconds);
            let long = Duration::from_secs_f64(run.seconds * PATIENCE);
            self.limit = long.max(Duration::from_secs_f64(run.seconds) + AT_LEAST);
        }
        let of_held = |figure: fn(&Held) -> f64, other: f64| held.as_ref().map_or(other, figure);
        let sample = Sample {
            wall: run.seconds,
            cpu: run.cpu,
            system: run.system,
            // Readings miss a short peak; what the system says of the largest process does not.
            peak: of_held(|held| held.peak, 0.0).max(run.resident as f64),
            level: of_held(|held| held.level, f64::NAN),
            faults: run.faults as f64,
            // A short run ends between two looks at it.
            delay: watched.delay().max(run.delay),
            threads: watched.threads as f64,
            own,
            held,
        };
        Ok(Measured { sample, printed, watched })
    }

    fn error_in(&self, run: &Run) -> Option<String> {
        let errors = self.conditions.errors.as_ref()?;
        let output = String::from_utf8_lossy(&run.output);
        let mut lines = output.lines().chain(run.told.lines());
        lines.find(|line| errors.is_match(line)).map(|line| line.trim().to_owned())
    }

    /// The figures that it prints.
    fn own(&mut self, output: &[u8]) -> Result<BTreeMap<String, Own>, String> {
        match &self.conditions.prints {
            None => Ok(BTreeMap::new()),
            Some(Prints::Rows(format)) => format.read(output),
            Some(Prints::Pattern(pattern)) => {
                let (own, unit) = pattern.read(output)?;
                let first = self.unit.get_or_insert_with(|| unit.clone());
                match *first == unit {
                    true => Ok([(NAMED.to_owned(), own)].into()),
                    false => Err(format!(
                        "--figure: found a number in \"{unit}\", expected \"{first}\" as in the first run"
                    )),
                }
            }
        }
    }

    /// Output, or files that it wrote. Bytes have to be the same, unless numbers in them are measured, or they are a load's.
    fn printed(&self, run: &Run) -> Result<Printed, String> {
        let exact = match &self.conditions.compared[..] {
            [] => (self.conditions.load.is_none() && self.conditions.prints.is_none())
                .then_some(run.digest),
            files => {
                let read = |file: &PathBuf| {
                    let read = whole::read(file).map(|(_, digest)| digest.to_ne_bytes().to_vec());
                    read.map_err(|error| format!("--compare {}: {error}", file.display()))
                };
                Some(digest(&files.iter().map(read).collect::<Result<Vec<_>, _>>()?))
            }
        };
        if self.conditions.compared.is_empty() {
            return Ok(Printed::of(&run.output, &run.told, exact));
        }
        // Files stand for the output's words, but not for the errors in it.
        let told = format!("{}\n{}", run.told, String::from_utf8_lossy(&run.output));
        Ok(Printed::of(&[], &told, exact))
    }

    /// The reason why a setting's run does not count: it is not in force, or the output is another one. Runs the plain program
    /// again where that has to be asked.
    fn refused(&mut self, who: usize, measured: &Measured) -> anyhow::Result<Option<String>> {
        let setting = self.arms[who].setting.clone();
        if let Some(setting) = setting.filter(|_| !self.verified[who]) {
            if let Some(not) = measured.watched.lacks(Some(&setting)) {
                let why = format!("not in force: {} runs without {}", not.process, not.what);
                return Ok(Some(why));
            }
            self.verified[who] = true;
        }
        if self.conditions.any_output {
            return Ok(None);
        }
        let mut found = self.outputs.compare(&measured.printed, false);
        if found == Compared::Ask {
            match self.measure(0, &[])? {
                Ok(plain) => self.outputs.add(plain.printed),
                Err(_) => return Ok(None),
            }
            found = self.outputs.compare(&measured.printed, true);
        }
        Ok(match found {
            Compared::Wrong(why) => Some(format!("{why}, in 1 of {} runs", self.runs[who])),
            Compared::Differs(line) => {
                let name = self.arms[who].setting.as_ref().map_or("new", |setting| &setting.name);
                let note = format!("what is printed differs by {name}: {line}");
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
                None
            }
            Compared::Same | Compared::Ask => None,
        })
    }
}

impl race::Runner for Programs {
    type Sample = Sample;
    type Error = anyhow::Error;

    fn run(&mut self, who: usize) -> anyhow::Result<Ran<Sample>> {
        let measured = match self.measure(who, &[])? {
            Ok(measured) => measured,
            Err(Failed::Stopped) => return Ok(Ran::Stopped),
            Err(Failed::Wrong(why)) => return Ok(Ran::Wrong(why)),
        };
        if who == 0 {
            self.outputs.add(measured.printed);
        } else if let Some(why) = self.refused(who, &measured)? {
            return Ok(Ran::Wrong(why));
        }
        Ok(Ran::Well(measured.sample))
    }

    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn progress(&mut self, stage: Stage, left: f64) {
        let what = match stage {
            Stage::Look => "look: each once",
            Stage::Show => "show: the best against the plain program",
        };
        let spent = self.begun.elapsed().as_secs_f64();
        (self.progress)(what, spent, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_stands_for_the_clock_where_a_program_waits_for_nothing_else() {
        for (cpu, delay, mostly) in [
            (0.95, 0.0, true),
            (0.5, 0.4, true),
            (0.11, 0.85, true),
            (0.06, 0.0, false),
            (0.06, 0.94, false),
            (0.7, 0.05, false),
        ] {
            let sample = Sample { wall: 1.0, cpu, delay, ..Sample::default() };
            assert_eq!(sample.is_mostly_cpu(), mostly, "{cpu} {delay}");
        }
    }
}
