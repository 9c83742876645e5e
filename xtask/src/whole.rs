//! Whole programs that nobody here wrote, run in turns: what the chores `programs` and `applications`
//! share.
//!
//! Each chore measures one program after the other. A program has its share of `--minutes`; what one
//! does not need is the others'. Ctrl-C keeps the programs that are finished. A program that fails does
//! not keep the others from being run; in the end the status is 1. The tables go to stdout and, as
//! Markdown and JSON, to the files that are named.
//!
//! [`script`] starts them, [`counts`] adds up what was called; what runs them is
//! `cachewise_measure::whole`.

mod counts;
pub mod programs;
mod script;

use crate::command::{Lacking, accepted};
use anyhow::{Context as _, Result, bail, ensure};
use cachewise_measure::stats::LEAST_ROUNDS;
use cachewise_measure::whole::{self, Ended, Run, Times, Verdict, run};
use cachewise_measure::{children, turns};
use cachewise_report::Table;
use fs_err as fs;
use serde_json::{Value, json};
use signal_hook::flag;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write everything as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
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

/// Status of a chore that the user ended.
const INTERRUPTED: i32 = 130;

/// What a program is given by its chore.
pub struct Turn<'a> {
    /// Its name.
    pub name: &'a str,
    /// How long it may take, and since when.
    pub share: Duration,
    pub begun: Instant,
    /// A directory of its own that is not there yet, and is removed afterwards.
    pub directory: PathBuf,
    /// Whether somebody wants to stop.
    pub stop: &'a AtomicBool,
}

impl Turn<'_> {
    /// What is left of its time.
    fn left(&self) -> Duration {
        self.share.saturating_sub(self.begun.elapsed())
    }
}

/// What a program that was run shows: lines of the table after its name, what the JSON says, and what
/// was wrong.
pub struct Shown {
    lines: Vec<Vec<String>>,
    json: Value,
    wrong: Option<String>,
}

/// A run that ended by itself; another is an error, which [`campaign`] does not show after Ctrl-C.
fn ran(command: &mut Command, turn: &Turn<'_>, limit: Duration) -> Result<Run> {
    let ended = run(command, &turn.directory, limit, turn.stop);
    match ended.with_context(|| command.get_program().display().to_string())? {
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

/// How much of a run's work, `most` where there is room, is done so that so many runs fit into the share of the
/// time, where one of all of it took so long. Not less than `least`: that would be start and end only.
fn fitting(most: u32, least: u32, share: Duration, runs: f64, took: Duration) -> u32 {
    let room = share.as_secs_f64() / runs / took.as_secs_f64().max(1e-3);
    ((f64::from(most) * room) as u32).max(least).min(most)
}

/// What a chore has from its beginning to its end.
struct Begun {
    stop: Arc<AtomicBool>,
    scratch: tempfile::TempDir,
    /// The preload library, copied where every user may read it and no build replaces it.
    library: PathBuf,
}

/// Begins a chore of that name, on the preload library of that package: whether its results can be
/// written is known before anything is built.
///
/// Ctrl-C no longer ends this process by itself: it ends the program that runs, and then this one
/// stops by its own. A second one ends it.
fn begin(common: &Common, name: &str, package: &str) -> Result<Begun> {
    for file in [&common.markdown, &common.json].into_iter().flatten() {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))
            .with_context(|| file.display().to_string())?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    let scratch = tempfile::Builder::new().prefix(&format!("cachewise-{name}")).tempdir()?;
    open_to_all(scratch.path())?;
    let file = format!("lib{}.so", package.replace('-', "_"));
    let built = match &common.library {
        Some(library) => library.clone(),
        None => crate::install::built(package)?.join(&file),
    };
    let library = copied(&built, &scratch.path().join(file))?;
    Ok(Begun { stop, scratch, library })
}

/// All programs, one after the other: their table and their record. An error where anything was wrong.
fn campaign<T>(
    common: &Common,
    programs: &[(String, T)],
    mut table: Table,
    Begun { stop, scratch, .. }: Begun,
    one: &mut dyn FnMut(&Turn<'_>, &T) -> Result<Shown>,
) -> Result<()> {
    children::adopt_orphans();
    let (begun, time) = (Instant::now(), Duration::from_secs_f64(common.minutes * 60.0));
    let (mut shown, mut skipped) = (Vec::new(), Vec::new());
    let (mut stopped, mut wrong) = (Vec::new(), Vec::new());
    let interrupted = || stop.load(Ordering::Relaxed);
    for (at, (name, program)) in programs.iter().enumerate() {
        let mut ended = None;
        if !interrupted() {
            let left = time_left(at, programs.len(), begun.elapsed().as_secs_f64());
            eprintln!("{name}: {} of {}{left}", at + 1, programs.len());
            let share = turns::share(time.saturating_sub(begun.elapsed()), programs.len() - at);
            let directory = scratch.path().join(at.to_string());
            let turn = Turn { name, share, begun: Instant::now(), directory, stop: &stop };
            ended = Some(one(&turn, program));
            // Only for the room: what cannot be removed yet goes with the rest, and no table is lost.
            let _ = fs::remove_dir_all(&turn.directory);
        }
        let mut left_out = |why: &str| table.push(vec![name.clone(), cell(why)]);
        match ended.filter(|_| !interrupted()) {
            None => {
                stopped.push(name.clone());
                left_out("interrupted");
            }
            Some(Ok(Shown { lines, mut json, wrong: what })) => {
                for line in lines {
                    table.push([vec![name.clone()], line].concat());
                }
                json["program"] = name.as_str().into();
                json["wrong"] = what.clone().into();
                shown.push(json);
                if let Some(what) = what {
                    eprintln!("{name}: WRONG: {what}");
                    wrong.push(name.clone());
                }
            }
            Some(Err(error)) => {
                if let Some(Lacking(why)) = error.downcast_ref() {
                    eprintln!("{name}: skipped: {why}");
                    left_out(&format!("skipped: {why}"));
                    skipped.push(json!({ "program": name, "skipped": why }));
                    continue;
                }
                // Others may do better.
                let what = format!("{error:#}");
                eprintln!("{name}: {what}");
                left_out(&format!("WRONG: {what}"));
                shown.push(json!({ "program": name, "wrong": what }));
                wrong.push(name.clone());
            }
        }
    }
    let machine = cachewise_measure::Machine::describe().summary_line();
    let record = json!({
        "machine": machine,
        "programs": shown,
        "skipped": skipped,
        "interrupted": stopped,
    });
    let text = format!("{machine}\n\n{}", table.markdown());
    print!("{text}");
    let record = serde_json::to_string_pretty(&record)? + "\n";
    for (file, text) in [(&common.markdown, &text), (&common.json, &record)] {
        if let Some(file) = file {
            cachewise_measure::write_file(file, text.as_bytes())
                .with_context(|| file.display().to_string())?;
        }
    }
    ensure!(wrong.is_empty(), "failed, or not as it has to be: {}", wrong.join(", "));
    if interrupted() {
        // Destructors are not run by what follows.
        drop(scratch);
        std::process::exit(INTERRUPTED);
    }
    Ok(())
}

/// How long the rest will take, from what the others took.
fn time_left(done: usize, all: usize, took: f64) -> String {
    if done == 0 {
        return String::new();
    }
    let seconds = took / done as f64 * (all - done) as f64;
    match seconds {
        0.0..90.0 => format!(", some {seconds:.0} s left"),
        _ => format!(", some {:.0} min left", seconds / 60.0),
    }
}

/// What of `all` is named by `--only`, in their own order; all where nothing is named.
fn chosen<T: Copy>(all: &[(&str, T)], only: &[String]) -> Result<Vec<(String, T)>> {
    accepted("--only", only, &all.iter().map(|(name, _)| *name).collect::<Vec<_>>())?;
    let wanted = all.iter().filter(|(name, _)| only.is_empty() || only.iter().any(|o| o == name));
    Ok(wanted.map(|(name, one)| ((*name).to_owned(), *one)).collect())
}

/// Servers that refuse to run as root are run as somebody else.
fn open_to_all(path: &Path) -> Result<()> {
    Ok(fs::set_permissions(path, Permissions::from_mode(0o755))?)
}

fn copied(from: &Path, to: &Path) -> Result<PathBuf> {
    fs::copy(from, to)?;
    open_to_all(to)?;
    Ok(to.to_owned())
}

/// The profile that is named, or the one in force, as a copy.
fn profile(named: Option<&Path>, to: &Path) -> Result<Option<PathBuf>> {
    use cachewise::Source::{Environment, Machine, User};
    let from = match (named, cachewise::profile_source()) {
        (Some(named), _) => named,
        (None, Environment(path) | User(path) | Machine(path)) => path.as_path(),
        _ => return Ok(None),
    };
    // A profile that the library passes over would be measured as if it were followed.
    let parsed = cachewise::profile::Profile::read(from)?;
    cachewise::load(&parsed).with_context(|| from.display().to_string())?;
    copied(from, to).map(Some)
}

/// Runs candidates in turns, and says how far the rounds are; none stops it all.
fn in_turns(
    turn: &Turn<'_>,
    candidates: usize,
    rounds: usize,
    mut run: impl FnMut(usize) -> Result<Option<Run>>,
) -> Result<Times> {
    let name = turn.name;
    let mut say = |done, left| eprintln!("{name}: round {done} of {rounds}, some {left:.0} s left");
    let mut timed = |at| Ok(run(at)?.map(|run| (run.seconds, run.cpu)));
    whole::in_turns(candidates, rounds, &mut say, &mut timed)
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
            value["speed"] = json!(speed);
            value["cpu_ratio"] = json!(times.cpu(at, 0));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_gets_less_to_do() {
        let second = Duration::from_secs(1);
        let fits = |most, share, took| fitting(most, 200, share, 100.0, took);
        assert_eq!(fits(800, 101 * second, second), 800);
        assert_eq!(fits(800, 100 * second, 2 * second), 400);
        assert_eq!(fits(800, 100 * second, 1000 * second), 200);
        assert_eq!(fits(800, Duration::ZERO, second), 200);
        assert_eq!(fits(800, 40 * second, Duration::ZERO), 800);
        assert_eq!(fits(100, Duration::ZERO, second), 100, "what was asked for is not raised");
    }

    #[test]
    fn the_time_left_is_that_of_what_is_done() {
        assert_eq!(time_left(0, 5, 0.1), "");
        assert_eq!(time_left(2, 5, 20.0), ", some 30 s left");
        assert_eq!(time_left(1, 5, 60.0), ", some 4 min left");
    }

    #[test]
    fn only_what_is_named_is_chosen_and_what_is_not_known_is_refused() {
        let all = [("one", 1), ("two", 2), ("three", 3)];
        let chosen = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            chosen(&all, &only).map(|found| found.iter().map(|(_, one)| *one).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[]).expect("all"), [1, 2, 3]);
        assert_eq!(chosen(&["three", "one"]).expect("two"), [1, 3]);
        let told = chosen(&["one", "four"]).expect_err("not known").to_string();
        assert_eq!(told, "--only: found \"four\", accepted one, two, three");
    }
}
