//! `xtask programs`: real programs with the preload library and without, in turns: whether their
//! output is the same, the ratio of their times with its interval, and what they called.
//!
//! A program is a script of `xtask/programs/`: `prepare` makes its input once and says, with status
//! 77, that what it needs is not here; `run` does the work in an empty directory and prints what
//! must be the same each time. Everything the script starts runs under the library.

use anyhow::{Context as _, Result, bail};
use cachewise_measure::stats::{PairedRatio, median};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// What to run, and where to write.
#[derive(Debug, clap::Args)]
pub struct Programs {
    /// Only these, by name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// How often each is run with the library and as often without; an interval needs some ten
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write everything as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Under this library [default: built for release first]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

macro_rules! scripts {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../programs/", $name, ".sh")))),*]
    };
}

pub(crate) const SCRIPTS: [(&str, &str); 10] =
    scripts!["cpython", "git", "gcc", "gzip", "xz", "zstd", "sqlite", "redis", "postgres", "numpy"];

/// Status of a script that lacks what it needs.
pub(crate) const SKIPPED: i32 = 77;

/// Calls and bytes by operation and size, as the library prints them.
type Calls = BTreeMap<(String, String), (u64, u64)>;

struct Shown {
    name: &'static str,
    same: bool,
    with: Vec<f64>,
    without: Vec<f64>,
    calls: Calls,
    processes: usize,
}

impl Shown {
    /// Above 1: faster with the library.
    fn speed(&self) -> PairedRatio {
        PairedRatio::new(&self.without, &self.with, 1)
    }
}

/// Runs them; an error where any output differs.
pub fn run(args: &Programs) -> Result<()> {
    if let Some(unknown) =
        args.only.iter().find(|name| !SCRIPTS.iter().any(|(known, _)| known == name))
    {
        let known: Vec<_> = SCRIPTS.iter().map(|(name, _)| *name).collect();
        bail!("--only: found \"{unknown}\", accepted {}", known.join(", "));
    }
    let scratch = tempfile::Builder::new().prefix("cachewise-programs").tempdir()?;
    open_to_all(scratch.path())?;
    // A copy where every user may read it, and where no build replaces it meanwhile.
    let library = scratch.path().join("libcachewise_preload.so");
    let built = match &args.library {
        Some(library) => library.clone(),
        None => crate::install::build()?.join("libcachewise_preload.so"),
    };
    fs::copy(&built, &library).with_context(|| built.display().to_string())?;
    open_to_all(&library)?;

    let (mut shown, mut skipped) = (Vec::new(), Vec::new());
    for (name, script) in SCRIPTS {
        if !args.only.is_empty() && !args.only.iter().any(|wanted| wanted == name) {
            continue;
        }
        let directory = scratch.path().join(name);
        match one(name, script, &directory, &library, args.rounds)? {
            Ok(one) => shown.push(one),
            Err(why) => {
                eprintln!("{name}: SKIPPED, {why}");
                skipped.push((name, why));
            }
        }
        // Only what is ours: the directory was made above.
        fs::remove_dir_all(&directory)?;
    }
    let text = markdown(&shown, &skipped);
    print!("{text}");
    if let Some(file) = &args.markdown {
        fs::write(file, &text).with_context(|| file.display().to_string())?;
    }
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&as_json(&shown, &skipped))? + "\n";
        fs::write(file, text).with_context(|| file.display().to_string())?;
    }
    let wrong: Vec<_> = shown.iter().filter(|one| !one.same).map(|one| one.name).collect();
    if !wrong.is_empty() {
        bail!("other output with the library than without: {}", wrong.join(", "));
    }
    Ok(())
}

/// Servers that refuse to run as root are run as somebody else.
fn open_to_all(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

/// One program: prepared, run in turns, and once more to count. `Err` inside: why it was skipped.
fn one(
    name: &'static str,
    script: &str,
    directory: &Path,
    library: &Path,
    rounds: u32,
) -> Result<std::result::Result<Shown, String>> {
    fs::create_dir(directory)?;
    open_to_all(directory)?;
    let file = directory.join("script.sh");
    fs::write(&file, script)?;
    let at = Place { script: &file, prepared: directory };
    let prepared = at.start("prepare", directory, None)?;
    if prepared.status.code() == Some(SKIPPED) {
        return Ok(Err(String::from_utf8_lossy(&prepared.stdout).trim().to_owned()));
    }
    if !prepared.status.success() {
        bail!("{name}: prepare: {}", String::from_utf8_lossy(&prepared.stderr).trim());
    }

    let mut shown = Shown {
        name,
        same: true,
        with: vec![],
        without: vec![],
        calls: Calls::new(),
        processes: 0,
    };
    let mut expected = None;
    let mut agree = |output: Vec<u8>, how: &str| {
        let text = String::from_utf8_lossy(&output).into_owned();
        let expected = expected.get_or_insert_with(|| text.clone());
        if *expected != text {
            eprintln!("{name}: {how}: found\n{text}\nexpected\n{expected}");
        }
        *expected == text
    };
    for round in 0..rounds {
        // Who goes first changes from round to round: the later finds warmer files.
        let first = round % 2 == 1;
        for with in [first, !first] {
            let under = if with { Some((library, None)) } else { None };
            let (seconds, output) = at.timed(name, under)?;
            shown.same &= agree(output, if with { "with the library" } else { "without" });
            if with { shown.with.push(seconds) } else { shown.without.push(seconds) }
        }
        eprintln!("{name}: round {} of {rounds}", round + 1);
    }
    let counts = directory.join("counts");
    fs::write(&counts, "")?;
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&counts, fs::Permissions::from_mode(0o666))?;
    }
    let (_, output) = at.timed(name, Some((library, Some(&counts))))?;
    shown.same &= agree(output, "while counted");
    let told = String::from_utf8_lossy(&fs::read(&counts)?).into_owned();
    (shown.calls, shown.processes) = calls(&told);
    Ok(Ok(shown))
}

/// Where a script is, and what it prepared.
struct Place<'a> {
    script: &'a Path,
    prepared: &'a Path,
}

impl Place<'_> {
    fn start(
        &self,
        step: &str,
        directory: &Path,
        under: Option<(&Path, Option<&Path>)>,
    ) -> Result<Output> {
        let mut command = Command::new("sh");
        command.arg(self.script).arg(step).current_dir(directory).stdin(Stdio::null());
        command.env("LC_ALL", "C").env("TZ", "UTC").env("CACHEWISE_QUIET", "1");
        command.env("SCRIPT", self.script).env("PREPARED", self.prepared);
        command.env("REPOSITORY", Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        command.env_remove("CACHEWISE_STATS").env_remove("LD_PRELOAD");
        if let Some((library, counts)) = under {
            command.env("LD_PRELOAD", library);
            if let Some(counts) = counts {
                command.env("CACHEWISE_STATS", counts);
            }
        }
        command.output().context("sh")
    }

    /// Runs in a directory of its own, the same one each time: some programs' output names it.
    fn timed(&self, name: &str, under: Option<(&Path, Option<&Path>)>) -> Result<(f64, Vec<u8>)> {
        let directory = self.prepared.join("run");
        fs::create_dir(&directory)?;
        open_to_all(&directory)?;
        let begun = Instant::now();
        let output = self.start("run", &directory, under)?;
        let seconds = begun.elapsed().as_secs_f64();
        fs::remove_dir_all(&directory)?;
        if !output.status.success() {
            let how = if under.is_some() { "with the library" } else { "without it" };
            let told = String::from_utf8_lossy(&output.stderr);
            bail!("{name}, {how}: {}: {}", output.status, told.trim());
        }
        Ok((seconds, output.stdout))
    }
}

/// Adds up what the processes printed; how many there were.
fn calls(told: &str) -> (Calls, usize) {
    let mut all = Calls::new();
    for line in told.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [operation, size, calls, bytes] = words[..]
            && let (Ok(calls), Ok(bytes)) = (calls.parse::<u64>(), bytes.parse::<u64>())
            && size != "all"
            && size != "site"
        {
            let sum = all.entry((operation.to_owned(), size.to_owned())).or_default();
            *sum = (sum.0 + calls, sum.1 + bytes);
        }
    }
    (all, told.matches("cachewise: calls of process ").count())
}

/// Ranges of sizes for the table: name and the size it ends before.
const RANGES: [(&str, u64); 6] = [
    ("to 128", 128),
    ("to 4K", 4 << 10),
    ("to 64K", 64 << 10),
    ("to 1M", 1 << 20),
    ("to 16M", 16 << 20),
    ("more", u64::MAX),
];

/// The first size of a class as the library names it: `0`, `2..4`, `1K..2K`.
fn first_size(class: &str) -> u64 {
    let first = class.split("..").next().unwrap_or(class);
    let digits = first.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &first[digits.len()..] {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        "P" => 50,
        _ => 0,
    };
    digits.parse::<u64>().unwrap_or(0) << unit
}

fn markdown(shown: &[Shown], skipped: &[(&str, String)]) -> String {
    let mut text = String::new();
    let mut line = |one: String| {
        let _ = writeln!(text, "{one}");
    };
    line("| program | same output | speed with / without, 95 % interval | without, s | rounds | calls | bytes |".into());
    line("|---|---|---|---:|---:|---:|---:|".into());
    for one in shown {
        let ratio = one.speed();
        let (calls, bytes) = one.calls.values().fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1));
        line(format!(
            "| {} | {} | {:.3} [{:.3}, {:.3}] | {:.2} | {} | {calls} | {bytes} |",
            one.name,
            if one.same { "yes" } else { "NO" },
            ratio.median,
            ratio.low,
            ratio.high,
            median(&one.without),
            ratio.rounds,
        ));
    }
    for (name, why) in skipped {
        line(format!("| {name} | skipped: {why} | | | | | |"));
    }
    line(String::new());
    line(format!(
        "| program | processes | operation | {} |",
        RANGES.map(|(name, _)| name).join(" | ")
    ));
    line(format!("|---|---:|---|{}", "---:|".repeat(RANGES.len())));
    for one in shown {
        let mut names: Vec<_> = one.calls.keys().map(|(name, _)| name.as_str()).collect();
        names.dedup();
        for name in names {
            let mut sums = [(0_u64, 0_u64); RANGES.len()];
            for ((operation, class), (calls, bytes)) in &one.calls {
                let at = RANGES.iter().position(|(_, end)| first_size(class) < *end);
                if operation == name
                    && let Some(sum) = at.and_then(|at| sums.get_mut(at))
                {
                    *sum = (sum.0 + calls, sum.1 + bytes);
                }
            }
            let sums = sums.map(|(calls, bytes)| format!("{calls} ({bytes} B)"));
            line(format!("| {} | {} | {name} | {} |", one.name, one.processes, sums.join(" | ")));
        }
    }
    text
}

fn as_json(shown: &[Shown], skipped: &[(&str, String)]) -> Value {
    let programs = shown.iter().map(|one| {
        let ratio = one.speed();
        let calls = one.calls.iter().map(|((operation, size), (calls, bytes))| {
            json!({ "operation": operation, "size": size, "calls": calls, "bytes": bytes })
        });
        json!({
            "program": one.name,
            "same_output": one.same,
            "speed": { "median": ratio.median, "low": ratio.low, "high": ratio.high },
            "seconds_with": one.with,
            "seconds_without": one.without,
            "processes": one.processes,
            "calls": calls.collect::<Vec<_>>(),
        })
    });
    let skipped = skipped.iter().map(|(name, why)| json!({ "program": name, "skipped": why }));
    json!({ "programs": programs.collect::<Vec<_>>(), "skipped": skipped.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_prints_is_added_up() {
        let part = "cachewise: calls of process 7 (/bin/x)\n\
            operation size calls bytes\n\
            copy 2..4 3 8\ncopy all 3 8\nzero 1M..2M 1 1048576\nzero all 1 1048576\n\
            call sites of 64K and more:\nzero site 1 1048576 /bin/x+0x10 f+0x2\n";
        let (all, processes) = calls(&part.repeat(2));
        assert_eq!(processes, 2);
        let expected = [(("copy", "2..4"), (6, 16)), (("zero", "1M..2M"), (2, 2 << 20))];
        let expected = expected.map(|((name, size), sum)| ((name.into(), size.into()), sum));
        assert_eq!(all, Calls::from(expected));
        assert_eq!(["0", "1", "64..128", "1M..2M"].map(first_size), [0, 1, 64, 1 << 20]);
    }
}
