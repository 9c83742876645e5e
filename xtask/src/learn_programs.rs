//! `xtask learn-programs`: `cachewise learn --prove` on real programs that nobody here wrote: every
//! table of call sites, and a verdict on each whole program.
//!
//! For a quiet machine. Nothing of the user's is touched: the profile in force is copied, and what
//! is learned stays in a directory that is removed, unless `--keep` names one. Ctrl-C keeps what is
//! finished.
//!
//! Each program has its share of `--minutes`; what one does not need is the others'. A run without
//! the library tells how long one takes: where the share has no room for [`RUNS`] of them, the input
//! is made smaller. Two runs that follow each other differ by about as much whether they take a
//! tenth of a second or two: many short ones tell more than few long ones. Then runs learn, none of
//! them timed, until no site is left that more of them could decide, or a third of the share is
//! spent. Then the number of rounds is settled, and the three candidates take turns in random
//! order.

use crate::interrupt::{INTERRUPTED, Interrupt, progress};
use crate::markdown::Outputs;
use crate::programs::{ENDING, minutes};
use crate::scripts::{self, SKIPPED, open_to_all, with_input};
use anyhow::{Context as _, Result, bail};
use cachewise_measure::stats::LEAST_ROUNDS;
use cachewise_measure::{children, turns};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What to learn, and how thoroughly.
#[derive(Debug, clap::Args)]
pub struct LearnPrograms {
    /// Only these, by name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// At most so many runs that learn: fewer once no site is left that more could decide, or a third
    /// of the program's share of the minutes is spent, but 3
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// At most so many runs each without the library, with the profile and with what was learned: as
    /// many as the program's share of the minutes has room for, but 6
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u32).range(6..=1000))]
    rounds: u32,
    /// About this long in all, divided among the programs
    #[arg(long, value_name = "MINUTES", default_value_t = 30.0, value_parser = minutes)]
    minutes: f64,
    /// The profile to start from [default: the one in force]
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Keep what is learned, and the pages, in this directory
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// This program in place of one built for release first
    #[arg(long, value_name = "FILE", requires = "library")]
    cachewise: Option<PathBuf>,
    /// This preload library in place of one built for release first
    #[arg(long, value_name = "FILE", requires = "cachewise")]
    library: Option<PathBuf>,
    #[command(flatten)]
    out: Outputs,
}

/// Room for so many runs of a program is wanted: one to see how long it takes, a third of them to
/// learn, and one to warm up and a hundred and fifty that count of each of three. Where the times of
/// two runs differ by a tenth, that is an interval of 2 % to each side.
const RUNS: f64 = 1.0 + 1.5 * 3.0 * (1.0 + 150.0);
/// Runs that learn, whatever the time.
const LEAST_RUNS: u32 = 3;
/// And their part of a program's share.
const LEARNING: f64 = 1.0 / 3.0;
/// How often it says how far that is.
const SAID_EVERY: Duration = Duration::from_secs(15);
/// A site is hardly decided by fewer calls (docs/learning.md).
const CALLS: f64 = 350.0;

macro_rules! scripts {
    ($($name:literal = $file:literal),*) => {
        [$(($name, include_str!(concat!("../programs/", $file, ".sh")))),*]
    };
}

/// Work of a few seconds, most of it with large buffers; the last two are there for not having any.
/// All of them read `PERCENT`.
const SCRIPTS: [(&str, &str); 9] = scripts![
    "numpy-large" = "learn/numpy-large",
    "sqlite-memory" = "learn/sqlite-memory",
    "bytearray" = "learn/bytearray",
    "redis-large" = "learn/redis-large",
    "postgres-large" = "learn/postgres-large",
    "zstd-large" = "learn/zstd-large",
    "rustc" = "learn/rustc",
    "xz" = "xz",
    "gzip" = "gzip"
];

/// No program may be slower than this against no library.
const SLOWER: f64 = 0.98;
/// And an interval within this of 1 is no difference.
const SAME: f64 = 0.02;

/// What the whole program's speed against libc says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Faster,
    Same,
    NotSlower,
    Slower,
    CannotTell,
    /// No call that could go two ways.
    NothingToGain,
    Skipped,
    NotBegun,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Same => "same",
            Verdict::NotSlower => "not slower than 0.98",
            Verdict::Slower => "SLOWER",
            Verdict::CannotTell => "cannot tell",
            Verdict::NothingToGain => "nothing to gain",
            Verdict::Skipped => "SKIPPED",
            Verdict::NotBegun => "NOT BEGUN",
        }
    }

    /// `speed`: median and the ends of its 95 % interval.
    fn of([_, low, high]: [f64; 3]) -> Verdict {
        if high < SLOWER {
            Verdict::Slower
        } else if low > 1.0 + SAME {
            Verdict::Faster
        } else if low >= SLOWER && high <= 1.0 + SAME {
            Verdict::Same
        } else if low >= SLOWER {
            Verdict::NotSlower
        } else {
            Verdict::CannotTell
        }
    }
}

/// One program.
struct Shown {
    name: &'static str,
    verdict: Verdict,
    /// The output with the library is another one than without.
    wrong: bool,
    /// Why it was skipped; or what was said of its output.
    told: String,
    /// What `cachewise learn` wrote.
    record: Value,
    how: How,
}

/// How a program was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct How {
    /// Of its usual input.
    percent: u32,
    /// Runs that learned.
    runs: u32,
}

impl Shown {
    fn without(name: &'static str, verdict: Verdict, told: String) -> Shown {
        Shown { name, verdict, wrong: false, told, record: Value::Null, how: How::default() }
    }

    /// From the record of `cachewise learn --prove`.
    fn of(name: &'static str, record: Value) -> Result<Shown> {
        let sites = record["sites"].as_array().context("a record without sites")?;
        let proof = &record["proof"];
        let told = proof["output"].as_str().unwrap_or("not compared").to_owned();
        let wrong = proof["comparable"] == true && proof["same_output"] == false;
        let verdict = if sites.is_empty() {
            Verdict::NothingToGain
        } else {
            match speed(proof, "learned") {
                Some(speed) => Verdict::of(speed),
                None => bail!("a record without a proof"),
            }
        };
        Ok(Shown { name, verdict, wrong, told, record, how: How::default() })
    }

    fn is_bad(&self) -> bool {
        self.wrong || self.verdict == Verdict::Slower
    }
}

/// The speed against libc: median, and the ends of its interval.
fn speed(proof: &Value, on: &str) -> Option<[f64; 3]> {
    interval(&proof["speed_against_libc"][on])
}

fn interval(of: &Value) -> Option<[f64; 3]> {
    Some([of["median"].as_f64()?, of["low"].as_f64()?, of["high"].as_f64()?])
}

/// How many of the sites that are not decided could be by so many more runs, given so many so far.
fn open_sites(sites: &[Value], runs: u32, more: u32) -> usize {
    let open = |site: &&Value| {
        let calls = site["calls"].as_f64().unwrap_or(0.0);
        let outcome = site["outcome"].as_str().unwrap_or("?");
        matches!(outcome, "too-few-calls" | "reopened")
            && calls / f64::from(runs) * f64::from(runs + more) >= CALLS
    };
    sites.iter().filter(open).count()
}

/// Runs them; an error where any output differs or any program is slower.
pub fn run(args: &LearnPrograms) -> Result<()> {
    let wanted = scripts::chosen(&SCRIPTS, &args.only, |(name, _)| name)?;
    args.out.check()?;
    let interrupt = Interrupt::new()?;
    let scratch = tempfile::Builder::new().prefix("cachewise-learn").tempdir()?;
    open_to_all(scratch.path())?;
    children::adopt_orphans();
    let kept = match &args.keep {
        Some(directory) => {
            fs::create_dir_all(directory)?;
            fs::canonicalize(directory)?
        }
        None => scratch.path().to_owned(),
    };
    let tools = Tools::new(args, scratch.path(), kept)?;
    let (began, mut shown) = (Instant::now(), Vec::new());
    let time = Duration::from_secs_f64(60.0 * args.minutes);
    for (done, (name, script)) in wanted.iter().enumerate() {
        if interrupt.came() {
            shown.push(Shown::without(name, Verdict::NotBegun, "interrupted".to_owned()));
            continue;
        }
        progress(name, done, wanted.len(), began);
        let share = turns::share(time.saturating_sub(began.elapsed()), wanted.len() - done);
        let directory = scratch.path().join(name);
        match tools.one(name, script, &directory, args, share, &interrupt) {
            _ if interrupt.came() => {
                shown.push(Shown::without(name, Verdict::NotBegun, "interrupted".to_owned()));
            }
            Ok(one) => {
                eprintln!("{name}: {}", one.verdict.name());
                shown.push(one);
            }
            Err(error) => return Err(error.context(*name)),
        }
        // Only what is ours: the directory was made for it.
        fs::remove_dir_all(&directory)?;
    }
    let text = tables(&shown);
    args.out.write(&text, &as_json(&shown))?;
    if interrupt.came() {
        // Destructors are not run by what follows.
        drop(scratch);
        std::process::exit(INTERRUPTED);
    }
    let bad: Vec<_> = shown.iter().filter(|one| one.is_bad()).map(|one| one.name).collect();
    if !bad.is_empty() {
        bail!("slower, or other output: {}", bad.join(", "));
    }
    Ok(())
}

/// The program and the library, built for release.
fn build() -> Result<(PathBuf, PathBuf)> {
    let release = crate::install::build()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    let built = build.args(["build", "--release", "-p", "cachewise-cli"]).status()?;
    if !built.success() {
        bail!("cargo build --release -p cachewise-cli ended with {built}");
    }
    Ok((release.join("cachewise"), release.join("libcachewise_preload.so")))
}

struct Tools {
    cachewise: PathBuf,
    library: PathBuf,
    config: PathBuf,
    profile: Option<PathBuf>,
    kept: PathBuf,
}

impl Tools {
    fn new(args: &LearnPrograms, scratch: &Path, kept: PathBuf) -> Result<Tools> {
        let (cachewise, built) = match (&args.cachewise, &args.library) {
            (Some(cachewise), Some(library)) => (fs::canonicalize(cachewise)?, library.clone()),
            _ => build()?,
        };
        // Copies where every user may read them: servers that refuse to run as root are run as
        // somebody else, who saves what he learned too.
        let library = scratch.join("libcachewise_preload.so");
        fs::copy(&built, &library).with_context(|| built.display().to_string())?;
        open_to_all(&library)?;
        let in_force = cachewise::profile::user_path().filter(|path| path.exists());
        let own = kept.join("learned.profile");
        let profile = match args.profile.clone().or(in_force) {
            Some(from) => {
                fs::copy(&from, &own).with_context(|| from.display().to_string())?;
                fs::set_permissions(&own, fs::Permissions::from_mode(0o644))?;
                Some(own.clone())
            }
            None => None,
        };
        let config = kept.join("config");
        let programs = match &profile {
            Some(_) => own.with_extension("programs"),
            None => {
                let name = cachewise::profile::user_path().context("no HOME")?;
                let name = name.file_name().context("a profile has a name")?.to_owned();
                config.join("cachewise").join(name).with_extension("programs")
            }
        };
        fs::create_dir_all(&programs)?;
        // Each user's process saves there.
        fs::set_permissions(&programs, fs::Permissions::from_mode(0o777))?;
        let mut above = programs.parent();
        while let Some(directory) = above.filter(|directory| directory.starts_with(&kept)) {
            open_to_all(directory)?;
            above = directory.parent();
        }
        Ok(Tools { cachewise, library, config, profile, kept })
    }

    /// Prepared, with so much of its input; why it is skipped if it is.
    fn prepare(
        directory: &Path,
        script: &str,
        percent: u32,
    ) -> Result<std::result::Result<(), String>> {
        scripts::lay_out(directory, script)?;
        let prepared = with_input(scripts::step("prepare", directory, directory), percent);
        let prepared = { prepared }.output()?;
        if prepared.status.code() == Some(SKIPPED) {
            return Ok(Err(String::from_utf8_lossy(&prepared.stdout).trim().to_owned()));
        }
        if !prepared.status.success() {
            bail!("prepare: {}", String::from_utf8_lossy(&prepared.stderr).trim());
        }
        Ok(Ok(()))
    }

    /// Seconds of a run without the library, and its warmth for those that follow.
    fn pilot(directory: &Path, percent: u32) -> Result<f64> {
        let mut run = scripts::command(Path::new("sh"), directory, directory);
        run.args(["-c", WORK]);
        let began = Instant::now();
        let output = with_input(run, percent).output()?;
        let seconds = began.elapsed().as_secs_f64();
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("without the library: {}: {}", output.status, told.trim());
        }
        children::reap_orphans(ENDING);
        Ok(seconds)
    }

    /// One run that learns, or with `prove` so many rounds after it: what `cachewise learn` wrote.
    fn learn(
        &self,
        name: &str,
        directory: &Path,
        percent: u32,
        prove: Option<usize>,
    ) -> Result<Value> {
        let record = directory.join("record.json");
        let mut learn = scripts::command(&self.cachewise, directory, directory);
        learn.env("XDG_CONFIG_HOME", &self.config);
        learn.arg("learn").arg("--library").arg(&self.library).args(["--name", name]);
        if let Some(profile) = &self.profile {
            learn.arg("--profile").arg(profile);
        }
        if let Some(rounds) = prove {
            learn.args(["--prove", "--rounds", &rounds.to_string()]);
        }
        learn.arg("--json").arg(&record);
        learn.arg("--html").arg(self.kept.join(format!("{name}.html")));
        learn.args(["--", "sh", "-c", WORK]);
        let output = with_input(learn, percent).output()?;
        children::reap_orphans(ENDING);
        let text = fs::read_to_string(&record).map_err(|_| {
            let told = String::from_utf8_lossy(&output.stderr);
            anyhow::anyhow!("cachewise learn ended with {}: {}", output.status, told.trim())
        })?;
        fs::remove_file(&record)?;
        Ok(serde_json::from_str(&text)?)
    }

    fn one(
        &self,
        name: &'static str,
        script: &str,
        directory: &Path,
        args: &LearnPrograms,
        share: Duration,
        interrupt: &Interrupt,
    ) -> Result<Shown> {
        let began = Instant::now();
        let mut how = How { percent: 100, runs: 0 };
        if let Err(why) = Tools::prepare(directory, script, how.percent)? {
            return Ok(Shown::without(name, Verdict::Skipped, why));
        }
        let mut seconds = Tools::pilot(directory, how.percent)?;
        interrupt.check()?;
        how.percent = scripts::percent(share, RUNS, seconds);
        if how.percent < 100 {
            fs::remove_dir_all(directory)?;
            if let Err(why) = Tools::prepare(directory, script, how.percent)? {
                bail!("prepared once, and not again: {why}");
            }
            seconds = Tools::pilot(directory, how.percent)?;
        }
        let learning = share.mul_f64(LEARNING);
        let (learning_began, mut said) = (Instant::now(), Instant::now());
        // The last one learns before the proof, in the same command.
        while how.runs + 1 < args.runs {
            interrupt.check()?;
            let record = self.learn(name, directory, how.percent, None)?;
            how.runs += 1;
            let none = Vec::new();
            let sites = record["sites"].as_array().unwrap_or(&none);
            if sites.is_empty() {
                return Ok(Shown { how, ..Shown::of(name, record)? });
            }
            let one = learning_began.elapsed() / how.runs;
            let fit = turns::rounds(
                learning.saturating_sub(learning_began.elapsed()),
                one,
                LEAST_RUNS.saturating_sub(how.runs) as usize,
                args.runs.saturating_sub(how.runs) as usize,
            );
            let fit = u32::try_from(fit)?.min(args.runs.saturating_sub(how.runs));
            let open = open_sites(sites, how.runs, fit);
            let (runs, all) = (how.runs, sites.len());
            if runs == 1 || said.elapsed() >= SAID_EVERY {
                eprintln!(
                    "{name}: {runs} runs learned, {open} of {all} sites open, {fit} more at most"
                );
                said = Instant::now();
            }
            if fit <= 1 || open == 0 && how.runs + 1 >= LEAST_RUNS.min(args.runs) {
                break;
            }
        }
        interrupt.check()?;
        // Settled before the first of them: whoever stops when he likes the interval has none.
        let longest =
            seconds.max(learning_began.elapsed().as_secs_f64() / f64::from(how.runs.max(1)));
        let round = Duration::from_secs_f64(3.0 * longest);
        let left = share.saturating_sub(began.elapsed() + round);
        let rounds = turns::rounds(left, round, LEAST_ROUNDS, args.rounds as usize);
        let long = round.as_secs_f64() * (rounds + 1) as f64;
        let percent = how.percent;
        eprintln!("{name}: {rounds} rounds of {percent} % of its input, some {long:.0} s");
        let record = self.learn(name, directory, percent, Some(rounds))?;
        how.runs += 1;
        Ok(Shown { how, ..Shown::of(name, record)? })
    }
}

/// In a directory of its own, the same one each time: some programs' output names it.
const WORK: &str = "rm -rf run && mkdir run && cd run && exec sh \"$SCRIPT\" run";

fn ratio(of: Option<[f64; 3]>) -> String {
    of.map_or("-".to_owned(), |[median, low, high]| format!("{median:.3} ({low:.3} .. {high:.3})"))
}

/// The verdicts, and the sites of each program.
fn tables(shown: &[Shown]) -> String {
    let mut text = String::from(
        "| program | sites | decided | speed with the profile only | speed as learned | verdict \
         | output | CPU with the profile only | CPU as learned | runs that learned | rounds \
         | input asked for, % |\n|---|---:|---:|---:|---:|---|---|---:|---:|---:|---:|---:|\n",
    );
    let none = Vec::new();
    for one in shown {
        let sites = one.record["sites"].as_array().unwrap_or(&none);
        let decided = |site: &&Value| matches!(site["outcome"].as_str(), Some("temporal" | "nt"));
        let proof = &one.record["proof"];
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            one.name,
            sites.len(),
            sites.iter().filter(decided).count(),
            ratio(speed(proof, "profile only")),
            ratio(speed(proof, "learned")),
            one.verdict.name(),
            one.told,
            ratio(interval(&proof["cpu_over_libc"]["profile only"])),
            ratio(interval(&proof["cpu_over_libc"]["learned"])),
            one.how.runs,
            proof["rounds"].as_u64().map_or("-".to_owned(), |rounds| rounds.to_string()),
            one.how.percent,
        );
    }
    text += "\nSpeed: libc's time over the program's own, in turns, with its 95 % interval; above 1 is \
             faster, and the verdict is that of the speed as learned. CPU: the CPU time of all its \
             processes over that with libc; below 1 is less. The number of rounds was settled before \
             the first of them, by how long a run takes; runs that learned are none of them.\n";
    for one in shown {
        let mut sites = one.record["sites"].as_array().unwrap_or(&none).clone();
        if sites.is_empty() {
            continue;
        }
        sites.sort_by_key(|site| std::cmp::Reverse(site["bytes"].as_u64()));
        let _ = write!(
            text,
            "\n**{}**\n\n| site | operation | size | calls | tried | temporal, ms | non-temporal, ms \
             | decision |\n|---|---|---|---:|---:|---:|---:|---|\n",
            one.name
        );
        for site in sites {
            let word = |key: &str| site[key].as_str().unwrap_or("?").to_owned();
            let cost = |key: &str| match site[key]["mean"].as_f64() {
                Some(mean) if mean > 0.0 => format!("{:.3}", mean / 1e6),
                _ => "-".to_owned(),
            };
            let _ = writeln!(
                text,
                "| {} {} | {} | 2^{} | {} | {} | {} | {} | {} |",
                word("module"),
                word("function"),
                word("operation"),
                site["octave"],
                site["calls"],
                site["tried"],
                cost("temporal_ns"),
                cost("non_temporal_ns"),
                word("decision"),
            );
        }
    }
    text
}

fn as_json(shown: &[Shown]) -> Value {
    let programs = shown.iter().map(|one| {
        json!({
            "program": one.name,
            "verdict": one.verdict.name(),
            "told": one.told,
            "input_percent": one.how.percent,
            "learning_runs": one.how.runs,
            "learned": one.record,
        })
    });
    json!({ "learned_programs": programs.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_about_the_whole_interval() {
        for (speed, expected) in [
            ([0.95, 0.93, 0.979], Verdict::Slower),
            ([0.95, 0.90, 0.99], Verdict::CannotTell),
            ([1.08, 1.05, 1.11], Verdict::Faster),
            ([1.08, 0.97, 1.17], Verdict::CannotTell),
            ([1.005, 0.99, 1.015], Verdict::Same),
            ([1.005, 1.001, 1.01], Verdict::Same),
            ([0.985, 0.981, 0.99], Verdict::Same),
            ([1.05, 0.99, 1.17], Verdict::NotSlower),
            ([1.005, 0.979, 1.015], Verdict::CannotTell),
        ] {
            assert_eq!(Verdict::of(speed), expected, "{speed:?}");
        }
    }

    fn record(sites: Value, same: bool) -> Value {
        let speed = json!({ "median": 1.1, "low": 1.05, "high": 1.2 });
        json!({
            "sites": sites,
            "proof": {
                "speed_against_libc": { "learned": speed, "profile only": speed },
                "output": "told", "same_output": same, "comparable": true,
            },
        })
    }

    #[test]
    fn a_record_is_judged_and_shown() {
        let site = json!({
            "module": "m.so", "function": "f+0x3", "operation": "copy", "octave": 21, "calls": 9,
            "bytes": 99, "tried": 4, "temporal_ns": { "mean": 2.5e6 }, "non_temporal_ns": {},
            "outcome": "nt", "decision": "nt, not temporal",
        });
        let good = Shown::of("good", record(json!([site]), true)).expect("a record");
        assert_eq!((good.verdict, good.is_bad()), (Verdict::Faster, false));
        let text = tables(&[good]);
        assert!(
            text.contains(
                "| good | 1 | 1 | 1.100 (1.050 .. 1.200) | 1.100 (1.050 .. 1.200) | faster | told |"
            ),
            "{text}"
        );
        assert!(
            text.contains("| m.so f+0x3 | copy | 2^21 | 9 | 4 | 2.500 | - | nt, not temporal |")
        );
        let wrong = Shown::of("wrong", record(json!([site]), false)).expect("a record");
        assert!(wrong.is_bad());
        let none = Shown::of("none", json!({ "sites": [], "proof": null })).expect("a record");
        assert_eq!((none.verdict, none.is_bad()), (Verdict::NothingToGain, false));
        assert!(Shown::of("none", json!({ "sites": [site], "proof": null })).is_err());
    }

    #[test]
    fn a_site_is_open_while_more_runs_could_decide_it() {
        let site = |outcome: &str, calls: u64| json!({ "outcome": outcome, "calls": calls });
        let open = |outcome: &str, calls, runs, more| {
            open_sites(&[site(outcome, calls), site("temporal", 5000)], runs, more)
        };
        for outcome in ["too-few-calls", "reopened"] {
            assert_eq!(open(outcome, 100, 1, 3), 1);
            assert_eq!(open(outcome, 100, 1, 2), 0, "300 calls do not decide");
            assert_eq!(open(outcome, 100, 2, 4), 0);
            assert_eq!(open(outcome, 100, 2, 5), 1);
        }
        for settled in ["temporal", "nt", "no-difference", "unconfirmed"] {
            assert_eq!(open(settled, 10_000, 1, 30), 0, "{settled}");
        }
    }
}
