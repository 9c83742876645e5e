//! `xtask learn-programs`: `cachewise learn --prove` on real programs, those of `xtask/programs/`, and
//! on larger work of some of them: every table of call sites, and a table of verdicts.
//!
//! For a quiet machine. Nothing of the user's is touched: the profile in force is copied, and what
//! is learned stays in a directory that is removed, unless `--keep` names one.

use crate::programs::{SCRIPTS, SKIPPED};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What to learn, and how thoroughly.
#[derive(Debug, clap::Args)]
pub struct LearnPrograms {
    /// Only these, by name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Runs that learn
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: u32,
    /// Runs each without the library, with the profile and with what was learned
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(6..=1000))]
    rounds: u32,
    /// The profile to start from [default: the one in force]
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Keep what is learned, and the pages, in this directory
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
}

/// Work with large copies, beside the scripts that `xtask programs` runs.
const LARGE: [(&str, &str); 3] = [
    ("numpy-large", include_str!("../programs/learn/numpy-large.sh")),
    ("sqlite-memory", include_str!("../programs/learn/sqlite-memory.sh")),
    ("bytearray", include_str!("../programs/learn/bytearray.sh")),
];

/// Runs them; an error where any output differs or any program is slower.
pub fn run(args: &LearnPrograms) -> Result<()> {
    let all: Vec<(&str, &str)> = LARGE.into_iter().chain(SCRIPTS).collect();
    if let Some(unknown) = args.only.iter().find(|name| !all.iter().any(|(known, _)| known == name))
    {
        let known: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        bail!("--only: found \"{unknown}\", accepted {}", known.join(", "));
    }
    let scratch = tempfile::Builder::new().prefix("cachewise-learn").tempdir()?;
    crate::programs::open_to_all(scratch.path())?;
    let kept = match &args.keep {
        Some(directory) => {
            fs::create_dir_all(directory)?;
            fs::canonicalize(directory)?
        }
        None => scratch.path().to_owned(),
    };
    let release = crate::install::build()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo).args(["build", "--release", "-p", "cachewise-cli"]).status()?;
    if !built.success() {
        bail!("cargo build --release -p cachewise-cli ended with {built}");
    }
    let profile = match &args.profile {
        Some(profile) => Some(profile.clone()),
        None => cachewise::profile::user_path().filter(|path| path.exists()),
    };
    let tools = Tools {
        cachewise: release.join("cachewise"),
        library: release.join("libcachewise_preload.so"),
        config: kept.join("config"),
        profile: profile
            .map(|profile| -> Result<PathBuf> {
                let copy = kept.join("learned.profile");
                fs::copy(&profile, &copy).with_context(|| profile.display().to_string())?;
                Ok(copy)
            })
            .transpose()?,
        kept,
    };
    let mut verdicts = Vec::new();
    for (name, script) in all {
        if !args.only.is_empty() && !args.only.iter().any(|wanted| wanted == name) {
            continue;
        }
        let verdict = tools.one(name, script, &scratch.path().join(name), args)?;
        verdicts.push((name, verdict));
    }
    println!("\n| program | verdict |\n|---|---|");
    for (name, verdict) in &verdicts {
        println!("| {name} | {} |", verdict.text);
    }
    let bad: Vec<_> = verdicts.iter().filter(|(_, v)| v.bad).map(|(name, _)| *name).collect();
    if !bad.is_empty() {
        bail!("slower, or other output: {}", bad.join(", "));
    }
    Ok(())
}

struct Verdict {
    text: String,
    bad: bool,
}

struct Tools {
    cachewise: PathBuf,
    library: PathBuf,
    config: PathBuf,
    profile: Option<PathBuf>,
    kept: PathBuf,
}

impl Tools {
    fn one(
        &self,
        name: &str,
        script: &str,
        directory: &Path,
        args: &LearnPrograms,
    ) -> Result<Verdict> {
        fs::create_dir(directory)?;
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
            return Ok(Verdict { text: format!("SKIPPED, {why}"), bad: false });
        }
        if !prepared.status.success() {
            bail!("{name}: prepare: {}", String::from_utf8_lossy(&prepared.stderr).trim());
        }
        let mut learn = Command::new(&self.cachewise);
        learn.arg("learn").arg("--library").arg(&self.library).args(["--name", name]);
        if let Some(profile) = &self.profile {
            learn.arg("--profile").arg(profile);
        }
        learn.args(["--runs", &args.runs.to_string(), "--prove"]);
        learn.args(["--rounds", &args.rounds.to_string()]);
        learn.arg("--html").arg(self.kept.join(format!("{name}.html")));
        // In a directory of its own, the same one each time: some programs' output names it.
        let work = "rm -rf run && mkdir run && cd run && exec sh \"$SCRIPT\" run";
        learn.args(["--", "sh", "-c", work]);
        let output = with(learn).stderr(Stdio::inherit()).output()?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("\n{told}");
        let line = |start: &str| told.lines().find_map(|line| line.trim().strip_prefix(start));
        let speed = line("learned against libc: ");
        let text = match (speed, line("output: ")) {
            (Some(speed), Some(same)) => format!("{speed}; output {same}"),
            _ if told.contains("nothing to learn") => "no large call: nothing to learn".to_owned(),
            _ => format!("ended with {}", output.status),
        };
        Ok(Verdict { text, bad: !output.status.success() })
    }
}
