//! `xtask programs`: real programs with the preload library and without, in turns: whether their
//! output is the same, the ratio of their times with its interval, and what they called.
//!
//! A program is a script of `xtask/programs/`, or one of the user's: `prepare` makes its input once
//! and says, with status 77, that what it needs is not here; `run` does the work in an empty directory
//! and prints what must be the same each time. Everything the script starts runs under the library.
//!
//! [`script`] starts them, [`plan`] says how often and what the times mean, [`counts`] adds up what
//! was called, [`table`] shows it all.

mod counts;
mod plan;
mod script;
mod table;

use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::markdown::Outputs;
use crate::scripts;
use crate::scripts::open_to_all;
use anyhow::{Context as _, Result, bail};
use cachewise_measure::stats::LEAST_ROUNDS;
use cachewise_measure::{children, turns};
use counts::Counts;
use plan::{Stopped, Times, Took, Way};
use script::{Place, Prepared, Under, shared_file};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(crate) use script::ENDING;

/// What to run, and where to write.
#[derive(Debug, clap::Args)]
pub struct Programs {
    /// Only these, by name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// A script of your own in place of ours: `sh FILE prepare`, then `sh FILE run` each time
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    script: Vec<PathBuf>,
    /// At most this many rounds each, of a run with the library and two without: as many as its share
    /// of the minutes has room for by its first run, and 6, without which there is no interval
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(6..=1000))]
    rounds: u32,
    /// About this long in all; each program has its 6 rounds nevertheless
    #[arg(long, value_name = "MINUTES", default_value_t = 20.0, value_parser = minutes)]
    minutes: f64,
    #[command(flatten)]
    out: Outputs,
    /// Under this library [default: built for release first]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// With this profile [default: the one in force]
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
}

/// A number of minutes on the command line.
pub(crate) fn minutes(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if (0.0..=1440.0).contains(&minutes) => Ok(minutes),
        _ => Err("accepted 0 to 1440".to_owned()),
    }
}

macro_rules! scripts {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../programs/", $name, ".sh")))),*]
    };
}

const SCRIPTS: [(&str, &str); 10] =
    scripts!["cpython", "git", "gcc", "gzip", "xz", "zstd", "sqlite", "redis", "postgres", "numpy"];

/// Seed of the order in each round.
const SEED: u64 = 1;

/// Room for so many runs of a program is wanted: one to see how long it takes, one that is counted, and
/// a hundred of each of three. Where there is none its input is made smaller: two runs that follow
/// each other differ by about as much whether they take a tenth of a second or two.
const RUNS: f64 = 2.0 + 3.0 * 100.0;

/// How often it says how far it is.
const SAID_EVERY: Duration = Duration::from_secs(15);

/// So much of an output that is not the expected one is shown.
const TOLD: usize = 4096;

/// What is known of one program.
struct Shown {
    name: String,
    /// The first line of its script.
    about: String,
    times: Times,
    /// How much of its input was used.
    percent: u32,
    /// Rounds that were settled on before they began.
    planned: usize,
    stopped: Stopped,
    counts: Counts,
    /// The first thing that went wrong: another output, a status, a hang.
    wrong: Option<String>,
}

impl Shown {
    fn new(name: &str, script: &str) -> Shown {
        let about = script.lines().find(|line| line.starts_with('#') && !line.starts_with("#!"));
        Shown {
            name: name.to_owned(),
            about: about.unwrap_or_default().trim_start_matches('#').trim().to_owned(),
            times: Times::default(),
            percent: 100,
            planned: 0,
            stopped: Stopped::Failed,
            counts: Counts::default(),
            wrong: None,
        }
    }
}

/// Runs them; an error where any output differs.
pub fn run(args: &Programs) -> Result<()> {
    let scripts = chosen(args)?;
    args.out.check()?;
    let interrupt = Interrupt::new()?;
    let stop = interrupt.flag();
    let scratch = tempfile::Builder::new().prefix("cachewise-programs").tempdir()?;
    open_to_all(scratch.path())?;
    let bench = bench(args, scratch.path(), stop)?;
    children::adopt_orphans();

    let (mut shown, mut skipped, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let begun = Instant::now();
    let time = Duration::from_secs_f64(args.minutes * 60.0);
    for (at, (name, script)) in scripts.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            missing.push(name.clone());
            continue;
        }
        let left = time.saturating_sub(begun.elapsed());
        let (number, all, minutes) = (at + 1, scripts.len(), left.as_secs_f64() / 60.0);
        eprintln!("{name}: program {number} of {all}, {minutes:.1} minutes left");
        let share = turns::share(left, scripts.len() - at);
        let directory = scratch.path().join(at.to_string());
        match bench.one(name, script, &directory, share) {
            Ok(Outcome::Shown(one)) => {
                let verdict = one.wrong.as_deref().unwrap_or(one.times.verdict().name());
                eprintln!("{name}: {verdict}");
                shown.push(*one);
            }
            Ok(Outcome::Skipped(why)) => {
                eprintln!("{name}: SKIPPED, {why}");
                skipped.push((name.clone(), why));
            }
            Ok(Outcome::Interrupted) => missing.push(name.clone()),
            // Others may do better.
            Err(error) => {
                eprintln!("{name}: {error:#}");
                let mut one = Shown::new(name, script);
                one.wrong = Some(format!("{error:#}"));
                shown.push(one);
            }
        }
        // Only for the room: what cannot be removed yet goes with the rest, and no table is lost.
        let _ = fs::remove_dir_all(&directory);
    }
    let found = table::Found {
        machine: cachewise_measure::Machine::describe().summary_line(),
        profile: bench.profile_name,
        shown: &shown,
        skipped: &skipped,
        missing: &missing,
    };
    let text = table::markdown(&found);
    args.out.write_text(&text, &table::as_json(&found))?;
    let wrong: Vec<_> =
        shown.iter().filter(|one| one.wrong.is_some()).map(|one| one.name.as_str()).collect();
    if !wrong.is_empty() {
        bail!("failed, or other output with the library than without: {}", wrong.join(", "));
    }
    if stop.load(Ordering::Relaxed) {
        drop(scratch);
        eprintln!("interrupted: the tables hold what was finished");
        std::process::exit(INTERRUPTED);
    }
    Ok(())
}

/// Names and texts of the scripts to run.
fn chosen(args: &Programs) -> Result<Vec<(String, String)>> {
    if args.script.is_empty() {
        let ours = scripts::chosen(&SCRIPTS, &args.only, |(name, _)| name)?;
        let owned = |(name, script): (&str, &str)| (name.to_owned(), script.to_owned());
        return Ok(ours.into_iter().map(owned).collect());
    }
    let read = |file: &PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(file).with_context(|| format!("--script {}", file.display()));
        Ok((name, text?))
    };
    args.script.iter().map(read).collect()
}

/// The library and the profile, copied where every user may read them and no build replaces them.
fn bench<'a>(args: &Programs, scratch: &Path, stop: &'a AtomicBool) -> Result<Bench<'a>> {
    let library = scratch.join("libcachewise_preload.so");
    let built = match &args.library {
        Some(library) => library.clone(),
        None => crate::install::built("cachewise-preload")?.join("libcachewise_preload.so"),
    };
    fs::copy(&built, &library).with_context(|| built.display().to_string())?;
    open_to_all(&library)?;
    let in_force = || match std::env::var_os("CACHEWISE_PROFILE") {
        Some(file) => Some(PathBuf::from(file)),
        None => cachewise::profile::user_path(),
    };
    let named = args.profile.clone();
    let file = named.or_else(in_force).filter(|file| args.profile.is_some() || file.exists());
    let (profile, profile_name) = match file {
        Some(file) => {
            let copy = scratch.join("machine.profile");
            let parsed = cachewise::profile::Profile::read(&file)?;
            fs::copy(&file, &copy).with_context(|| file.display().to_string())?;
            open_to_all(&copy)?;
            // A profile that the library passes over would be measured as if it were followed.
            cachewise::load(&parsed).with_context(|| file.display().to_string())?;
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (Some(copy), name)
        }
        None => (None, cachewise::profile_source().to_string()),
    };
    Ok(Bench { library, profile, profile_name, rounds: args.rounds as usize, stop })
}

/// What all programs are run under.
struct Bench<'a> {
    library: PathBuf,
    profile: Option<PathBuf>,
    profile_name: String,
    rounds: usize,
    stop: &'a AtomicBool,
}

enum Outcome {
    Shown(Box<Shown>),
    Skipped(String),
    /// Before there was an interval.
    Interrupted,
}

impl Bench<'_> {
    /// One program: prepared, run once without and once counted, then in turns.
    fn one(&self, name: &str, script: &str, directory: &Path, share: Duration) -> Result<Outcome> {
        let begun = Instant::now();
        let mut place = match Place::prepare(directory, script, 100)? {
            Prepared::Ready(place) => place,
            Prepared::Skipped(why) => return Ok(Outcome::Skipped(why)),
        };
        let mut first = place.run(None).context("without the library")?;
        let mut shown = Shown::new(name, script);
        shown.percent = scripts::percent(share, RUNS, first.whole);
        if shown.percent < 100 {
            fs::remove_dir_all(directory)?;
            place = match Place::prepare(directory, script, shown.percent)? {
                Prepared::Ready(place) => place,
                Prepared::Skipped(why) => bail!("prepared once, and not again: {why}"),
            };
            first = place.run(None).context("without the library")?;
        }
        place.usually(first.seconds);
        let expected = first.output;
        let counts = directory.join("counts");
        shared_file(&counts)?;
        let counting = self.with(Some(&counts));
        shown.wrong = wrong(name, place.run(Some(counting)), &expected, "while counted").err();
        let told = String::from_utf8_lossy(&fs::read(&counts)?).into_owned();
        shown.counts = Counts::read(&told);

        // Settled before the first of them: whoever stops when he likes the interval has none.
        let left = share.saturating_sub(begun.elapsed());
        let round = Duration::from_secs_f64(3.0 * first.whole);
        let rounds = turns::rounds(left, round, LEAST_ROUNDS, self.rounds);
        shown.planned = rounds;
        let (percent, long) = (shown.percent, round.as_secs_f64() * rounds as f64);
        eprintln!("{name}: {rounds} rounds of {percent} % of its input, some {long:.0} s");
        let (rounds_begun, mut said) = (Instant::now(), Instant::now());
        for (done, order) in turns::orders(3, rounds, SEED).into_iter().enumerate() {
            if shown.wrong.is_some() {
                return Ok(Outcome::Shown(Box::new(shown)));
            }
            match self.round(name, &place, &order, &expected) {
                Ok(Some(ran)) => shown.times.push(ran),
                Ok(None) if done >= LEAST_ROUNDS => {
                    shown.stopped = Stopped::Interrupted;
                    return Ok(Outcome::Shown(Box::new(shown)));
                }
                Ok(None) => return Ok(Outcome::Interrupted),
                Err(what) => shown.wrong = Some(what),
            }
            let done = done + 1;
            let left = rounds_begun.elapsed().as_secs_f64() / done as f64 * (rounds - done) as f64;
            if said.elapsed() >= SAID_EVERY {
                eprintln!("{name}: round {done} of {rounds}, some {left:.0} s left");
                said = Instant::now();
            }
        }
        if shown.wrong.is_none() {
            shown.stopped = Stopped::Rounds;
        }
        Ok(Outcome::Shown(Box::new(shown)))
    }

    fn with<'a>(&'a self, counts: Option<&'a Path>) -> Under<'a> {
        Under { library: &self.library, profile: self.profile.as_deref(), counts }
    }

    /// What it took with the library, without, and without again; `None` where somebody wants to stop. The
    /// error is what went wrong.
    fn round(
        &self,
        name: &str,
        place: &Place,
        order: &[usize],
        expected: &[u8],
    ) -> std::result::Result<Option<[Took; 3]>, String> {
        let mut took = [Took::default(); 3];
        for way in order.iter().map(|at| Way::ALL[*at]) {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let (under, how) = match way {
                Way::With => (Some(self.with(None)), "with the library"),
                Way::Without | Way::Again => (None, "without the library"),
            };
            took[way as usize] = wrong(name, place.run(under), expected, how)?;
        }
        // A run that was disturbed by the end of it all is none.
        Ok((!self.stop.load(Ordering::Relaxed)).then_some(took))
    }
}

/// What the run took, or what was wrong with it, of which more is told at once.
fn wrong(
    name: &str,
    ran: Result<script::Ran>,
    expected: &[u8],
    how: &str,
) -> std::result::Result<Took, String> {
    match ran {
        Ok(ran) if ran.output == expected => Ok(Took { wall: ran.seconds, cpu: ran.cpu }),
        Ok(ran) => {
            let start =
                |text: &[u8]| String::from_utf8_lossy(&text[..text.len().min(TOLD)]).into_owned();
            let [found, expected] = [start(&ran.output), start(expected)];
            eprintln!("{name}: {how}: found\n{found}\nexpected\n{expected}");
            Err(format!("another output {how}"))
        }
        Err(error) => {
            eprintln!("{name}: {how}: {error:#}");
            Err(format!("{how}: {error:#}"))
        }
    }
}
