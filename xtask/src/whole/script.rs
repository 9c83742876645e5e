//! A program's script: prepared once, with as much of its input as there is time for, and run.

use super::{Outcome, Turn};
use crate::scripts::{self, SKIPPED, open_to_all, with_input};
use anyhow::{Context as _, Result, bail};
use cachewise_measure::whole::{Ended, Run, run};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What nobody has seen run gets this long.
const FIRST_LIMIT: Duration = Duration::from_secs(600);

/// A variable of the environment, or its absence.
pub type Setting<'a> = (&'a str, &'a OsStr);

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
            let ended = script.step("prepare", script.prepared, &[])?;
            let Some(prepared) = ended else { return Ok(Err(Outcome::Stopped)) };
            match prepared.status.code() {
                Some(0) => {}
                Some(SKIPPED) => {
                    let why = String::from_utf8_lossy(&prepared.output).trim().to_owned();
                    return Ok(Err(Outcome::Skipped(why)));
                }
                _ => bail!("prepare: {}: {}", prepared.status, prepared.told),
            }
            let first = script.run(&[]).context("without the library")?;
            let Some((whole, first)) = first else { return Ok(Err(Outcome::Stopped)) };
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
    /// whole run. `None` where somebody wants to stop.
    pub fn run(&self, settings: &[Setting<'_>]) -> Result<Option<(f64, Run)>> {
        let directory = self.prepared.join("run");
        fs::create_dir(&directory)?;
        open_to_all(&directory)?;
        let ended = self.step("run", &directory, settings)?;
        let own = fs::read_to_string(directory.join("seconds")).ok();
        fs::remove_dir_all(&directory)?;
        let Some(mut ran) = ended else { return Ok(None) };
        if !ran.status.success() {
            bail!("{}: {}", ran.status, ran.told);
        }
        let whole = ran.seconds;
        if let Some(text) = own {
            let text = text.trim();
            ran.seconds = text.parse().with_context(|| format!("seconds: found \"{text}\""))?;
        }
        Ok(Some((whole, ran)))
    }

    /// A program that is told of this script by its environment.
    pub fn command(&self, program: &Path) -> Command {
        with_input(scripts::command(program, self.prepared, self.prepared), self.percent)
    }

    /// Runs a command as a step of this script is run, for as long as it takes.
    pub fn start(&self, command: &mut Command) -> Result<Option<Run>> {
        let ever = Duration::from_secs(24 * 3600);
        match run(command, self.prepared, ever, self.stop)? {
            Ended::Run(run) => Ok(Some(run)),
            Ended::TooLong => bail!("still running after a day"),
            Ended::Stopped => Ok(None),
        }
    }

    fn step(&self, step: &str, directory: &Path, settings: &[Setting<'_>]) -> Result<Option<Run>> {
        let mut command = with_input(scripts::step(step, self.prepared, directory), self.percent);
        command.arg(self.argument).envs(settings.iter().copied());
        match run(&mut command, self.prepared, self.limit, self.stop).context("sh")? {
            Ended::Run(run) => Ok(Some(run)),
            Ended::TooLong => bail!("still running after {:.0} s: ended", self.limit.as_secs_f64()),
            Ended::Stopped => Ok(None),
        }
    }
}
