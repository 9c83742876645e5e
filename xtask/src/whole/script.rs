//! A program's script: prepared once, with as much of its input as there is time for, and run.

use super::{Outcome, Turn, whole};
use crate::scripts::{self, SKIPPED, open_to_all};
use anyhow::{Context as _, Result, bail};
use cachewise_measure::whole::{Run, run};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What nobody has seen run gets this long.
const FIRST_LIMIT: Duration = Duration::from_secs(600);

/// A variable of the environment.
pub type Setting = (&'static str, OsString);

/// A script, prepared.
pub struct Script<'a> {
    prepared: &'a Path,
    argument: &'a str,
    stop: &'a AtomicBool,
    limit: Duration,
    /// How much of its input it uses.
    pub percent: u32,
}

/// The script and a run of it, or what becomes of the program without.
pub type Prepared<'a> = std::result::Result<(Script<'a>, Run), Outcome>;

impl<'a> Script<'a> {
    /// Prepares a script and runs it once without anything. Where the share of the time has no room
    /// for so many runs, its input is made smaller: two runs that follow each other differ by about as
    /// much whether they take a tenth of a second or two.
    pub fn prepare(
        turn: &'a Turn<'_>,
        text: &str,
        argument: &'a str,
        runs: f64,
    ) -> Result<Prepared<'a>> {
        let mut script = Script {
            prepared: &turn.directory,
            argument,
            stop: turn.interrupt.flag(),
            limit: FIRST_LIMIT,
            percent: 100,
        };
        loop {
            scripts::lay_out(script.prepared, text)?;
            let prepared = script.step("prepare", script.prepared, &[])?;
            match prepared.status.code() {
                Some(0) => {}
                Some(SKIPPED) => {
                    let why = String::from_utf8_lossy(&prepared.output).trim().to_owned();
                    return Ok(Err(Outcome::Skipped(why)));
                }
                _ => bail!("prepare: {}: {}", prepared.status, prepared.told),
            }
            let (whole, first) = script.run(&[]).context("without the library")?;
            let percent = scripts::percent(turn.share, runs, whole);
            if script.percent < 100 || percent == 100 {
                // Far longer: the machine may be suspended meanwhile.
                script.limit = Duration::from_secs_f64(180.0 + 10.0 * whole.min(3600.0));
                return Ok(Ok((script, first)));
            }
            fs::remove_dir_all(script.prepared)?;
            script.percent = percent;
        }
    }

    /// Runs in a directory of its own, the same one each time: some programs' output names it. The
    /// time is the script's own where it writes one to `$SECONDS_FILE`; before it stands that of the
    /// whole run.
    pub fn run(&self, settings: &[Setting]) -> Result<(f64, Run)> {
        let directory = self.prepared.join("run");
        fs::create_dir(&directory)?;
        open_to_all(&directory)?;
        let mut ran = self.step("run", &directory, settings)?;
        let own = fs::read_to_string(directory.join("seconds")).ok();
        fs::remove_dir_all(&directory)?;
        if !ran.status.success() {
            bail!("{}: {}", ran.status, ran.told);
        }
        let whole = ran.seconds;
        if let Some(text) = own {
            let text = text.trim();
            ran.seconds = text.parse().with_context(|| format!("seconds: found \"{text}\""))?;
        }
        Ok((whole, ran))
    }

    /// A program that is told of this script by its environment.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = scripts::command(program, self.prepared, self.prepared);
        command.env("PERCENT", self.percent.to_string());
        command
    }

    /// Runs a command as a step of this script is run, for as long as it takes.
    pub fn start(&self, command: &mut Command) -> Result<Run> {
        let day = Duration::from_secs(24 * 3600);
        whole(run(command, self.prepared, day, self.stop)?, day)
    }

    fn step(&self, step: &str, directory: &Path, settings: &[Setting]) -> Result<Run> {
        let mut command = scripts::step(step, self.prepared, directory);
        command.arg(self.argument).env("PERCENT", self.percent.to_string());
        command.envs(settings.iter().cloned());
        whole(run(&mut command, self.prepared, self.limit, self.stop).context("sh")?, self.limit)
    }
}
