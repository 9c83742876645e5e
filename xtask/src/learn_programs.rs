//! `xtask learn-programs`: `cachewise learn --prove` on real programs that nobody here wrote: every
//! table of call sites, and a verdict on each whole program.
//!
//! For a quiet machine. Nothing of the user's is touched: the profile in force is copied, and what
//! is learned stays in a directory that is removed, unless `--keep` names one. Programs are begun for
//! `--minutes`, and Ctrl-C keeps what is finished.

use crate::interrupt::{INTERRUPTED, Interrupt, progress};
use crate::markdown;
use crate::programs::SKIPPED;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What to learn, and how thoroughly.
#[derive(Debug, clap::Args)]
pub struct LearnPrograms {
    /// Only these, by name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Runs that learn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Runs each without the library, with the profile and with what was learned
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(6..=1000))]
    rounds: u32,
    /// Begin no further program after so many minutes
    #[arg(long, value_name = "N", default_value_t = 20)]
    minutes: u64,
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
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write everything as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

macro_rules! scripts {
    ($($name:literal = $file:literal),*) => {
        [$(($name, include_str!(concat!("../programs/", $file, ".sh")))),*]
    };
}

/// Work of a few seconds, most of it with large buffers; the last two are there for not having any.
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
        } else if low >= 1.0 - SAME && high <= 1.0 + SAME {
            Verdict::Same
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
}

impl Shown {
    fn without(name: &'static str, verdict: Verdict, told: String) -> Shown {
        Shown { name, verdict, wrong: false, told, record: Value::Null }
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
        Ok(Shown { name, verdict, wrong, told, record })
    }

    fn is_bad(&self) -> bool {
        self.wrong || self.verdict == Verdict::Slower
    }
}

/// The speed against libc: median, and the ends of its interval.
fn speed(proof: &Value, on: &str) -> Option<[f64; 3]> {
    let speed = &proof["speed_against_libc"][on];
    Some([speed["median"].as_f64()?, speed["low"].as_f64()?, speed["high"].as_f64()?])
}

/// Runs them; an error where any output differs or any program is slower.
pub fn run(args: &LearnPrograms) -> Result<()> {
    if let Some(unknown) =
        args.only.iter().find(|name| !SCRIPTS.iter().any(|(known, _)| known == name))
    {
        let known: Vec<_> = SCRIPTS.iter().map(|(name, _)| *name).collect();
        bail!("--only: found \"{unknown}\", accepted {}", known.join(", "));
    }
    let interrupt = Interrupt::new()?;
    let scratch = tempfile::Builder::new().prefix("cachewise-learn").tempdir()?;
    open(scratch.path(), 0o755)?;
    let kept = match &args.keep {
        Some(directory) => {
            fs::create_dir_all(directory)?;
            fs::canonicalize(directory)?
        }
        None => scratch.path().to_owned(),
    };
    let tools = Tools::new(args, scratch.path(), kept)?;
    let wanted: Vec<_> = SCRIPTS
        .into_iter()
        .filter(|(name, _)| args.only.is_empty() || args.only.iter().any(|one| one == name))
        .collect();
    let (began, mut shown) = (Instant::now(), Vec::new());
    for (done, (name, script)) in wanted.iter().enumerate() {
        if began.elapsed().as_secs() >= 60 * args.minutes {
            let why = format!("{} minutes were over; alone: --only {name}", args.minutes);
            shown.push(Shown::without(name, Verdict::NotBegun, why));
            continue;
        }
        progress(name, done, wanted.len(), began);
        let directory = scratch.path().join(name);
        match tools.one(name, script, &directory, args) {
            _ if interrupt.came() => break,
            Ok(one) => shown.push(one),
            Err(error) => return Err(error.context(*name)),
        }
        // Only what is ours: the directory was made for it.
        fs::remove_dir_all(&directory)?;
    }
    let text = tables(&shown);
    print!("{text}");
    markdown::write(args.markdown.as_deref(), &text)?;
    markdown::write_json(args.json.as_deref(), &as_json(&shown))?;
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

fn open(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| path.display().to_string())
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
        open(&library, 0o755)?;
        let in_force = cachewise::profile::user_path().filter(|path| path.exists());
        let own = kept.join("learned.profile");
        let profile = match args.profile.clone().or(in_force) {
            Some(from) => {
                fs::copy(&from, &own).with_context(|| from.display().to_string())?;
                open(&own, 0o644)?;
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
        open(&programs, 0o777)?;
        let mut above = programs.parent();
        while let Some(directory) = above.filter(|directory| directory.starts_with(&kept)) {
            open(directory, 0o755)?;
            above = directory.parent();
        }
        Ok(Tools { cachewise, library, config, profile, kept })
    }

    fn one(
        &self,
        name: &'static str,
        script: &str,
        directory: &Path,
        args: &LearnPrograms,
    ) -> Result<Shown> {
        fs::create_dir(directory)?;
        open(directory, 0o755)?;
        let file = directory.join("script.sh");
        fs::write(&file, script)?;
        let with = |mut command: Command| {
            command.current_dir(directory).stdin(Stdio::null());
            command.env("LC_ALL", "C").env("TZ", "UTC");
            command.env("SCRIPT", &file).env("PREPARED", directory);
            command.env("XDG_CONFIG_HOME", &self.config);
            command.env("REPOSITORY", Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
            command
        };
        let mut prepare = Command::new("sh");
        prepare.arg(&file).arg("prepare");
        let prepared = with(prepare).output()?;
        if prepared.status.code() == Some(SKIPPED) {
            let why = String::from_utf8_lossy(&prepared.stdout).trim().to_owned();
            return Ok(Shown::without(name, Verdict::Skipped, why));
        }
        if !prepared.status.success() {
            bail!("prepare: {}", String::from_utf8_lossy(&prepared.stderr).trim());
        }
        let record = directory.join("record.json");
        let mut learn = Command::new(&self.cachewise);
        learn.arg("learn").arg("--library").arg(&self.library).args(["--name", name]);
        if let Some(profile) = &self.profile {
            learn.arg("--profile").arg(profile);
        }
        learn.args(["--runs", &args.runs.to_string(), "--prove"]);
        learn.args(["--rounds", &args.rounds.to_string()]).arg("--json").arg(&record);
        learn.arg("--html").arg(self.kept.join(format!("{name}.html")));
        // In a directory of its own, the same one each time: some programs' output names it.
        let work = "rm -rf run && mkdir run && cd run && exec sh \"$SCRIPT\" run";
        learn.args(["--", "sh", "-c", work]);
        let output = with(learn).output()?;
        let text = fs::read_to_string(&record).map_err(|_| {
            let told = String::from_utf8_lossy(&output.stderr);
            anyhow::anyhow!("cachewise learn ended with {}: {}", output.status, told.trim())
        })?;
        Shown::of(name, serde_json::from_str(&text)?)
    }
}

fn ratio(speed: Option<[f64; 3]>) -> String {
    speed.map_or("-".to_owned(), |[median, low, high]| {
        format!("{median:.3} ({low:.3} .. {high:.3})")
    })
}

/// The verdicts, and the sites of each program.
fn tables(shown: &[Shown]) -> String {
    let mut text = String::from(
        "| program | sites | decided | speed with the profile only | speed as learned | verdict \
         | output |\n|---|---:|---:|---:|---:|---|---|\n",
    );
    let none = Vec::new();
    for one in shown {
        let sites = one.record["sites"].as_array().unwrap_or(&none);
        let decided = |site: &&Value| matches!(site["outcome"].as_str(), Some("temporal" | "nt"));
        let proof = &one.record["proof"];
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            one.name,
            sites.len(),
            sites.iter().filter(decided).count(),
            ratio(speed(proof, "profile only")),
            ratio(speed(proof, "learned")),
            one.verdict.name(),
            one.told,
        );
    }
    text += "\nSpeed: libc's time over the program's own, in turns, with its 95 % interval; above 1 is \
             faster.\n";
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
            ([1.08, 0.99, 1.17], Verdict::CannotTell),
            ([1.005, 0.99, 1.015], Verdict::Same),
            ([1.005, 1.001, 1.01], Verdict::Same),
            ([0.985, 0.981, 0.99], Verdict::Same),
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
}
