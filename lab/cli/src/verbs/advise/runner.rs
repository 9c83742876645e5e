//! Runs the program: plain or by a setting, alone or under load; times it; compares what it printed.

use super::looks::Watched;
use crate::progress::Bar;
use anyhow::{Context as _, bail};
use cachewise_advise::candidates::Candidate;
use cachewise_advise::race::{Program, Ran, Sample, Stage};
use cachewise_measure::whole::{self, Ended, Run};
use regex_lite::Regex;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Variables that are the settings' alone while candidates run.
const OURS: [&str; 4] =
    ["GLIBC_TUNABLES", "CACHEWISE_STATS", "CACHEWISE_PROGRAM", "CACHEWISE_PROFILE"];

/// A number in the output that is measured in place of the time.
pub struct Figure {
    pub pattern: Regex,
    /// Whether less of it is better.
    pub less: bool,
}

impl Figure {
    /// The geometric mean of all its numbers, as a cost: what is better is smaller.
    fn cost(&self, output: &[u8]) -> anyhow::Result<f64> {
        let text = String::from_utf8_lossy(output);
        let numbers = self.pattern.captures_iter(&text).filter_map(|found| {
            let number = found.get(1).or_else(|| found.get(0))?.as_str();
            number.replace(',', "").parse::<f64>().ok().filter(|number| *number > 0.0)
        });
        let logs: Vec<f64> = numbers.map(f64::ln).collect();
        if logs.is_empty() {
            bail!(
                "--figure: found no number above 0 by \"{}\" in the output",
                self.pattern.as_str()
            );
        }
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        Ok(if self.less { mean } else { 1.0 / mean })
    }
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
    /// What it printed or wrote first; `None` where that differs from run to run.
    pub expected: Option<Vec<Vec<u8>>>,
    /// Profiles that candidates follow until one of them is kept, by the candidate's name.
    pub profiles: BTreeMap<String, PathBuf>,
    /// Processes that runs left behind and that were ended, at most.
    pub left: usize,
}

/// What a run was, with what it printed or wrote.
pub struct Measured {
    pub sample: Sample,
    pub system: f64,
    pub seconds: f64,
    pub printed: Vec<Vec<u8>>,
}

/// A run that is of no use.
pub enum Failed {
    /// It ended otherwise than well.
    Wrong(String),
    Stopped,
}

impl Runner<'_> {
    /// The command by a setting, and with further variables.
    fn command(&self, by: Option<&Candidate>, more: &[(&str, OsString)]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg0(&self.words[0]);
        for name in OURS {
            command.env_remove(name);
        }
        if let Some(candidate) = by {
            command.args(&candidate.words);
            let profile = self.profiles.get(&candidate.name);
            command.envs(profile.map(|profile| ("CACHEWISE_PROFILE", profile)));
            for (name, value) in &candidate.variables {
                // What was to be preloaded anyway stays, behind it.
                match std::env::var(name).ok().filter(|_| name == "LD_PRELOAD") {
                    Some(others) if !others.is_empty() => {
                        command.env(name, format!("{value}:{others}"))
                    }
                    _ => command.env(name, value),
                };
            }
        }
        command.args(&self.words[1..]);
        command.envs(more.iter().map(|(name, value)| (name, value)));
        // One line in each of its processes would change what it prints.
        command.env("CACHEWISE_QUIET", "1");
        command
    }

    /// Runs it once.
    pub fn measure(
        &mut self,
        by: Option<&Candidate>,
        more: &[(&str, OsString)],
        watched: &mut Watched,
    ) -> anyhow::Result<Result<Measured, Failed>> {
        let mut command = self.command(by, more);
        match &self.input {
            Some(file) => command
                .stdin(File::open(file).with_context(|| format!("--input {}", file.display()))?),
            None => command.stdin(Stdio::null()),
        };
        let directory = self.directory.path();
        let watch = &mut |pid| watched.look(pid);
        let ended = match &self.load {
            None => whole::run(&mut command, directory, self.limit, &self.stop, watch, true),
            Some(load) => load.run(&mut command, directory, self.limit, &self.stop, watch),
        };
        let ended = match ended {
            // A server's own words: another setting may be better off.
            Err(error) if error.kind() == std::io::ErrorKind::Other => {
                return Ok(Err(Failed::Wrong(error.to_string())));
            }
            ended => ended.with_context(|| self.program.display().to_string())?,
        };
        let run = match ended {
            Ended::Stopped => return Ok(Err(Failed::Stopped)),
            Ended::TooLong => {
                let limit = self.limit.as_secs_f64();
                return Ok(Err(Failed::Wrong(format!("still running after {limit:.0} s: ended"))));
            }
            Ended::Run(run) => run,
        };
        self.left = self.left.max(run.left);
        if !run.status.success() {
            let told = run.told.lines().last().unwrap_or_default();
            let told = if told.is_empty() { String::new() } else { format!(": {told}") };
            return Ok(Err(Failed::Wrong(format!("{}{told}", run.status))));
        }
        let cost = match &self.figure {
            Some(figure) => figure.cost(&run.output)?,
            None => run.seconds,
        };
        let (faults, peak) = (run.faults as f64, run.resident as f64);
        let sample = Sample { cost, cpu: run.cpu, peak, faults };
        let (system, seconds) = (run.system, run.seconds);
        Ok(Ok(Measured { sample, system, seconds, printed: self.printed(run)? }))
    }

    /// What has to be the same: files, or what it printed; nothing under load unless files are named.
    fn printed(&self, run: Run) -> anyhow::Result<Vec<Vec<u8>>> {
        if self.compared.is_empty() {
            return Ok(if self.load.is_none() && self.figure.is_none() {
                vec![run.output]
            } else {
                vec![]
            });
        }
        let read = |file: &PathBuf| {
            fs::read(file).with_context(|| format!("--compare {}", file.display()))
        };
        self.compared.iter().map(read).collect()
    }
}

impl Program for Runner<'_> {
    type Error = anyhow::Error;

    fn run(&mut self, by: Option<&Candidate>) -> anyhow::Result<Ran> {
        let measured = match self.measure(by, &[], &mut Watched::default())? {
            Ok(measured) => measured,
            Err(Failed::Stopped) => return Ok(Ran::Stopped),
            Err(Failed::Wrong(why)) => return Ok(Ran::Wrong(why)),
        };
        if self.expected.as_ref().is_some_and(|expected| *expected != measured.printed) {
            return Ok(Ran::Wrong("another output".to_owned()));
        }
        Ok(Ran::Well(measured.sample))
    }

    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn progress(&mut self, stage: Stage, left: f64) {
        let what = match stage {
            Stage::Race => "race",
            Stage::Referee => "fresh runs of the best",
        };
        let spent = self.begun.elapsed().as_secs_f64();
        self.bar.expected(what, spent, left);
    }
}
