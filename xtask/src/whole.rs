//! Whole programs that nobody here wrote, run in turns: what the chores `programs`, `applications`,
//! `learn-programs` and `learn-known` share.
//!
//! Each chore measures one program after the other. A program has its share of `--minutes`; what one
//! does not need is the others'. Ctrl-C keeps the programs that are finished. A program that fails does
//! not keep the others from being run; in the end the status is 1. The tables go to stdout and, as
//! Markdown and JSON, to the files that are named.
//!
//! [`script`] starts them, [`counts`] adds up what was called; what runs them is
//! `cachewise_measure::whole`.

pub mod applications;
mod counts;
pub mod known;
pub mod learn;
pub mod programs;
mod script;

use crate::interrupt::{INTERRUPTED, Interrupt, progress};
use crate::outputs::Outputs;
use crate::scripts::{chosen, open_to_all};
use anyhow::{Context as _, Result, bail};
use cachewise_measure::stats::LEAST_ROUNDS;
use cachewise_measure::whole::{Ended, Run, Times, Verdict};
use cachewise_measure::{PairedRatio, children, turns};
use cachewise_report::Table;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What every such chore is told.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Only these, by name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// About this long in all, divided among the programs; each has its 6 rounds nevertheless
    #[arg(long, value_name = "MINUTES", default_value_t = 20.0, value_parser = minutes)]
    minutes: f64,
    /// At most this many rounds: as many as a program's share of the minutes has room for, but 6,
    /// without which there is no interval
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(6..=1000))]
    rounds: u32,
    #[command(flatten)]
    out: Outputs,
    /// With this preload library [default: built for release first]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// A number of minutes on the command line.
fn minutes(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if (0.0..=1440.0).contains(&minutes) => Ok(minutes),
        _ => Err("accepted 0 to 1440".to_owned()),
    }
}

/// What a program is given by its chore.
pub struct Turn<'a> {
    /// Its name.
    pub name: &'a str,
    /// How long it may take.
    pub share: Duration,
    /// A directory of its own that is not there yet, and is removed afterwards.
    pub directory: PathBuf,
    /// Whether somebody wants to stop.
    pub interrupt: &'a Interrupt,
}

/// What became of a program that the user did not interrupt.
pub enum Outcome {
    /// It was run: lines of the table, what the JSON says, and what was wrong.
    Shown { lines: Vec<Vec<String>>, json: Value, wrong: Option<String> },
    /// What it needs is not here.
    Skipped(String),
}

/// A run that ended by itself; another is an error, which [`campaign`] does not show after Ctrl-C.
fn whole(ended: Ended, limit: Duration) -> Result<Run> {
    match ended {
        Ended::Run(run) => Ok(run),
        Ended::TooLong => bail!("still running after {:.0} s: ended", limit.as_secs_f64()),
        Ended::Stopped => bail!("interrupted"),
    }
}

/// Rounds that the time has room for after one to warm up. They are fixed before the first of them:
/// rounds that end when the interval looks good have none.
fn rounds(left: Duration, round: Duration, most: u32) -> usize {
    turns::rounds(left.saturating_sub(round), round, LEAST_ROUNDS, most as usize)
}

/// What a chore has from its beginning to its end.
struct Begun {
    interrupt: Interrupt,
    scratch: tempfile::TempDir,
}

/// Begins a chore of that name: whether its results can be written is known before anything is built.
fn begin(common: &Common, name: &str) -> Result<Begun> {
    common.out.check()?;
    let interrupt = Interrupt::new()?;
    let scratch = tempfile::Builder::new().prefix(&format!("cachewise-{name}")).tempdir()?;
    open_to_all(scratch.path())?;
    Ok(Begun { interrupt, scratch })
}

/// All programs, one after the other: their table and their record. An error where anything was wrong.
fn campaign<T>(
    common: &Common,
    programs: &[(String, T)],
    mut table: Table,
    Begun { interrupt, scratch }: Begun,
    one: &mut dyn FnMut(&Turn<'_>, &T) -> Result<Outcome>,
) -> Result<()> {
    children::adopt_orphans();
    let (begun, time) = (Instant::now(), Duration::from_secs_f64(common.minutes * 60.0));
    let (mut shown, mut skipped) = (Vec::new(), Vec::new());
    let (mut stopped, mut wrong) = (Vec::new(), Vec::new());
    let columns = table.columns.len();
    let left_out = |table: &mut Table, name: &str, why: String| {
        let mut line = vec![String::new(); columns];
        line[0] = name.to_owned();
        line[1] = cell(&why);
        table.push(line);
    };
    for (at, (name, program)) in programs.iter().enumerate() {
        if interrupt.came() {
            stopped.push(name.clone());
            left_out(&mut table, name, "interrupted".to_owned());
            continue;
        }
        progress(name, at, programs.len(), begun);
        let turn = Turn {
            name,
            share: turns::share(time.saturating_sub(begun.elapsed()), programs.len() - at),
            directory: scratch.path().join(at.to_string()),
            interrupt: &interrupt,
        };
        match one(&turn, program) {
            _ if interrupt.came() => {
                stopped.push(name.clone());
                left_out(&mut table, name, "interrupted".to_owned());
            }
            Ok(Outcome::Shown { lines, mut json, wrong: what }) => {
                for mut line in lines {
                    name.clone_into(&mut line[0]);
                    table.push(line);
                }
                json["program"] = name.as_str().into();
                json["wrong"] = what.clone().into();
                shown.push(json);
                if let Some(what) = what {
                    eprintln!("{name}: WRONG: {what}");
                    wrong.push(name.clone());
                }
            }
            Ok(Outcome::Skipped(why)) => {
                eprintln!("{name}: skipped: {why}");
                left_out(&mut table, name, format!("skipped: {why}"));
                skipped.push(json!({ "program": name, "skipped": why }));
            }
            // Others may do better.
            Err(error) => {
                let what = format!("{error:#}");
                eprintln!("{name}: {what}");
                left_out(&mut table, name, format!("WRONG: {what}"));
                shown.push(json!({ "program": name, "wrong": what }));
                wrong.push(name.clone());
            }
        }
        // Only for the room: what cannot be removed yet goes with the rest, and no table is lost.
        let _ = fs::remove_dir_all(&turn.directory);
    }
    let machine = cachewise_measure::Machine::describe().summary_line();
    let record = json!({
        "machine": machine,
        "programs": shown,
        "skipped": skipped,
        "interrupted": stopped,
    });
    common.out.write(&format!("{machine}\n\n{}", table.markdown()), &record)?;
    if !wrong.is_empty() {
        bail!("failed, or not as it has to be: {}", wrong.join(", "));
    }
    if interrupt.came() {
        // Destructors are not run by what follows.
        drop(scratch);
        std::process::exit(INTERRUPTED);
    }
    Ok(())
}

/// The preload library of that package, copied where every user may read it and no build replaces it.
fn library(common: &Common, package: &str, scratch: &Path) -> Result<PathBuf> {
    let name = format!("lib{}.so", package.replace('-', "_"));
    let built = match &common.library {
        Some(library) => library.clone(),
        None => crate::install::built(package)?.join(&name),
    };
    copied(&built, &scratch.join(name))
}

fn copied(from: &Path, to: &Path) -> Result<PathBuf> {
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    open_to_all(to)?;
    Ok(to.to_owned())
}

/// The profile that is named, or the one in force, as a copy.
fn profile(named: Option<&Path>, to: &Path) -> Result<Option<PathBuf>> {
    use cachewise::Source;
    let in_force = || match cachewise::profile_source() {
        Source::Environment(path) | Source::User(path) | Source::Machine(path) => {
            Some(path.as_path())
        }
        _ => None,
    };
    let Some(from) = named.or_else(in_force) else { return Ok(None) };
    // A profile that the library passes over would be measured as if it were followed.
    let parsed = cachewise::profile::Profile::read(from)?;
    cachewise::load(&parsed).with_context(|| from.display().to_string())?;
    copied(from, to).map(Some)
}

/// Says how far the rounds of a program are.
fn saying<'a>(name: &'a str, rounds: usize) -> impl FnMut(usize, f64) + 'a {
    move |done, left| eprintln!("{name}: round {done} of {rounds}, some {left:.0} s left")
}

/// A ratio with its interval.
fn interval(ratio: &PairedRatio) -> String {
    format!("{:.3} ({:.3} .. {:.3})", ratio.median, ratio.low, ratio.high)
}

fn interval_json(ratio: &PairedRatio) -> Value {
    json!({ "median": ratio.median, "low": ratio.low, "high": ratio.high })
}

/// Everything that was timed, by candidate, for the record.
fn times_json(names: &[&str], times: &Times) -> Value {
    let rounded = |all: &[f64]| all.iter().map(|s| (s * 1e6).round() / 1e6).collect::<Vec<_>>();
    let one = |(at, name): (usize, &&str)| {
        let mut value = json!({
            "candidate": name,
            "seconds": rounded(&times.wall[at]),
            "cpu_seconds": rounded(&times.cpu[at]),
        });
        if at > 0 {
            let speed = times.speed(at, 0);
            value["speed"] = interval_json(&speed);
            value["cpu_ratio"] = interval_json(&times.cpu(at, 0));
            value["verdict"] = Verdict::of(&speed).name().into();
        }
        value
    };
    names.iter().enumerate().map(one).collect()
}

/// The first line of a text that others wrote, for a table.
fn cell(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(120).collect()
}
