//! The scripts that run programs nobody here wrote: prepared once, with as much of their input as there
//! is time for, and run.
//!
//! `sh script.sh prepare` makes the input once, in a directory of its own, and says with status 77
//! that what it needs is not here; `sh script.sh run`, in an empty directory, does the work and
//! prints what must be the same each time. They find in their environment:
//!
//! | | |
//! |---|---|
//! | `SCRIPT`, `COMMON` | themselves, and `common.sh`, which ours begin by reading |
//! | `PREPARED` | the directory that `prepare` was run in |
//! | `PERCENT` | so much of the usual input |
//! | `SECONDS_FILE` | where one that knows better how long its own work took writes it |
//! | `REPOSITORY` | this project |
//! | `PYTHON` | the Python to use, where a chore has one of its own |

use super::{Turn, fitting, open_to_all, ran};
use crate::command::{Lacking, root, text};
use anyhow::{Context as _, Result, bail, ensure};
use cachewise_measure::whole::Run;
use fs_err as fs;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Status of a script that lacks what it needs.
const SKIPPED: i32 = 77;

const COMMON: &str = include_str!("../../programs/common.sh");

/// What a preloaded library is told by, which is nobody's business but ours.
const OURS: &str = "PYTHON GLIBC_TUNABLES LD_PRELOAD CACHEWISE_STATS CACHEWISE_PROGRAM";

/// The Python that scripts are told of, if any: not the first that is found.
pub static PYTHON: OnceLock<PathBuf> = OnceLock::new();

/// What nobody has seen run gets this long.
const FIRST_LIMIT: Duration = Duration::from_secs(600);

/// No input is made smaller than this many percent.
const LEAST_PERCENT: u32 = 10;

/// A variable of the environment.
pub type Setting = (&'static str, OsString);

/// A script, prepared in its program's directory.
pub struct Script<'a> {
    turn: &'a Turn<'a>,
    argument: &'a str,
    limit: Duration,
    /// How much of its input it uses.
    pub percent: u32,
    /// What it printed first, which it has to print ever after.
    expected: Vec<u8>,
    /// What was wrong, if anything.
    pub wrong: Option<String>,
}

impl<'a> Script<'a> {
    /// Prepares a script and runs it once without anything, in so many seconds. Where the share of the
    /// time has no room for so many runs, its input is made smaller: two runs that follow each other
    /// differ by about as much whether they take a tenth of a second or two.
    ///
    /// # Errors
    /// What it lacks, as [`Lacking`], and what fails.
    pub fn prepare(
        turn: &'a Turn<'a>,
        source: &str,
        argument: &'a str,
        runs: f64,
    ) -> Result<(Script<'a>, f64)> {
        let mut script = Script::new(turn, argument, 100);
        loop {
            let made = script.make(source)?;
            match made.status.code() {
                Some(0) => {}
                Some(SKIPPED) => bail!(Lacking(text(&made.output).trim().to_owned())),
                _ => bail!("prepare: {}: {}", made.status, made.told),
            }
            let (whole, first) = script.timed(&[]).context("without the library")?;
            let took = Duration::from_secs_f64(whole);
            let percent = fitting(100, LEAST_PERCENT, turn.share, runs, took);
            if script.percent < 100 || percent == 100 {
                // Far longer: the machine may be suspended meanwhile.
                script.limit = Duration::from_secs_f64(180.0 + 10.0 * whole.min(3600.0));
                script.expected = first.output;
                return Ok((script, first.seconds));
            }
            fs::remove_dir_all(&turn.directory)?;
            script.percent = percent;
        }
    }

    fn new(turn: &'a Turn<'a>, argument: &'a str, percent: u32) -> Script<'a> {
        let (limit, expected) = (FIRST_LIMIT, Vec::new());
        Script { turn, argument, limit, percent, expected, wrong: None }
    }

    /// Makes the directory, with the script in it, and has the script prepare its input.
    fn make(&self, source: &str) -> Result<Run> {
        let directory = &self.turn.directory;
        fs::create_dir(directory)?;
        open_to_all(directory)?;
        fs::write(directory.join("script.sh"), source)?;
        fs::write(directory.join("common.sh"), COMMON)?;
        self.step("prepare", directory, &[])
    }

    /// A run that has to print what the first one did, and `how` it is done.
    pub fn run(&mut self, settings: &[Setting], how: &str) -> Result<Run> {
        let (_, run) = self.timed(settings).with_context(|| how.to_owned())?;
        if run.output != self.expected {
            let [found, expected] =
                [&run.output, &self.expected].map(|bytes| text(&bytes[..bytes.len().min(4096)]));
            eprintln!("{}: {how}: found\n{found}\nexpected\n{expected}", self.turn.name);
            self.wrong.get_or_insert_with(|| format!("another output {how}"));
        }
        Ok(run)
    }

    /// Runs in a directory of its own, the same one each time: some programs' output names it. The
    /// time is the script's own where it writes one to `$SECONDS_FILE`; before it stands that of the
    /// whole run.
    fn timed(&self, settings: &[Setting]) -> Result<(f64, Run)> {
        let directory = self.turn.directory.join("run");
        fs::create_dir(&directory)?;
        open_to_all(&directory)?;
        let mut ran = self.step("run", &directory, settings)?;
        let own = fs::read_to_string(directory.join("seconds")).ok();
        fs::remove_dir_all(&directory)?;
        ensure!(ran.status.success(), "{}: {}", ran.status, ran.told);
        let whole = ran.seconds;
        if let Some(text) = own {
            let text = text.trim();
            ran.seconds = text.parse().with_context(|| format!("seconds: found \"{text}\""))?;
        }
        Ok((whole, ran))
    }

    /// A command that a step of the script is, or that starts one: in a directory, and with what the
    /// script finds in its environment.
    pub fn command(&self, program: &Path, directory: &Path) -> Command {
        let prepared = &self.turn.directory;
        let mut command = Command::new(program);
        command.current_dir(directory).stdin(Stdio::null());
        for name in OURS.split(' ') {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").env("TZ", "UTC").env("CACHEWISE_QUIET", "1");
        command.env("SCRIPT", prepared.join("script.sh")).env("COMMON", prepared.join("common.sh"));
        command.env("PREPARED", prepared).env("SECONDS_FILE", directory.join("seconds"));
        command.env("REPOSITORY", root()).env("PERCENT", self.percent.to_string());
        command.envs(PYTHON.get().map(|python| ("PYTHON", python)));
        command
    }

    fn step(&self, step: &str, directory: &Path, settings: &[Setting]) -> Result<Run> {
        let mut command = self.command(Path::new("sh"), directory);
        command.arg(self.turn.directory.join("script.sh")).args([step, self.argument]);
        command.envs(settings.iter().cloned());
        ran(&mut command, self.turn, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    #[test]
    fn a_smaller_input_is_a_part_rounded_up() {
        let (scratch, stop) = (tempfile::tempdir().expect("a directory"), AtomicBool::new(false));
        for (percent, told) in [(100, "40\n3\n"), (10, "4\n1\n"), (34, "14\n2\n")] {
            let directory = scratch.path().join(percent.to_string());
            let (begun, share) = (Instant::now(), FIRST_LIMIT);
            let turn = Turn { name: "parts", share, begun, directory, stop: &stop };
            let source = ". \"$COMMON\"\npart 40; part 3\nneed sh no-such-program-here\n";
            let made = Script::new(&turn, "", percent).make(source).expect("a shell");
            assert_eq!(made.status.code(), Some(SKIPPED), "{}", made.told);
            assert_eq!(text(&made.output), format!("{told}no-such-program-here not installed\n"));
        }
    }
}
