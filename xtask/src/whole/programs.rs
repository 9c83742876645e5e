//! `xtask programs`: real programs with the preload library and without, in turns: whether their
//! output is the same, the ratio of their times with its interval, and what they called.
//!
//! A program is a script of `xtask/programs/`, or one of the user's: `prepare` makes its input once
//! and says, with status 77, that what it needs is not here; `run` does the work in an empty directory
//! and prints what must be the same each time. Everything the script starts runs under the library.

use super::counts::Counts;
use super::script::{Script, Setting};
use super::{Common, Shown, Turn, begin, campaign, chosen, in_turns, rounds, times_json};
use crate::command::{stem, text};
use anyhow::{Context as _, Result};
use cachewise_measure::stats::median;
use cachewise_measure::whole::{Times, Verdict};
use cachewise_report::Table;
use fs_err as fs;
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to run, and where to write.
#[derive(Debug, clap::Args)]
pub struct Programs {
    #[command(flatten)]
    common: Common,
    /// A script of your own in place of ours: `sh FILE prepare`, then `sh FILE run` each time
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    script: Vec<PathBuf>,
    /// With this profile [default: the one in force]
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
}

macro_rules! scripts {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../programs/", $name, ".sh")))),*]
    };
}

const SCRIPTS: [(&str, &str); 10] =
    scripts!["cpython", "git", "gcc", "gzip", "xz", "zstd", "sqlite", "redis", "postgres", "numpy"];

/// Room for so many runs of a program is wanted: one to see how long it takes, one that is counted, and
/// a hundred and one of each of three.
const RUNS: f64 = 2.0 + 3.0 * 101.0;

/// Who runs in a round: without the library, with it, and without once more. What the first and the
/// last differ by is the noise.
const CANDIDATES: [&str; 3] = ["without", "with", "without again"];

/// Call sites of each program in the JSON.
const SITES: usize = 16;

/// Ranges of sizes for the record: name and the size it ends before. What is larger is "more".
const RANGES: [(&str, u64); 5] = [
    ("below 128 B", 128),
    ("to 4 KiB", 4 << 10),
    ("to 64 KiB", 64 << 10),
    ("to 1 MiB", 1 << 20),
    ("to 16 MiB", 16 << 20),
];

/// Runs them; an error where any output differs.
pub fn run(args: &Programs) -> Result<()> {
    let programs = all(args)?;
    let begun = begin(&args.common, "programs", "cachewise-preload")?;
    let file = "libcachewise_preload_stats.so";
    let counter = crate::install::built("cachewise-preload-stats")?.join(file);
    let counter = super::copied(&counter, &begun.scratch.path().join(file))?;
    let copy = begun.scratch.path().join("machine.profile");
    let profile = super::profile(args.profile.as_deref(), &copy)?;
    let mut settings = vec![("LD_PRELOAD", begun.library.clone().into_os_string())];
    settings.extend(profile.map(|path| ("CACHEWISE_PROFILE", path.into_os_string())));
    let mut table = Table::of(
        "",
        "program | verdict | >speed with the library | >control | >rounds | >without, s | >CPU \
         | >input, %",
    );
    table.remark(
        "speed: time without the library over time with it, of the same round: above 1 the library \
         is faster; control: the same of two runs without; CPU: CPU time with it over that \
         without; 95 % intervals",
    );
    let mut one = |turn: &Turn<'_>, script: &String| {
        one(turn, script, &settings, &counter, args.common.rounds)
    };
    campaign(&args.common, &programs, table, begun, &mut one)
}

/// Names and texts of the scripts to run.
fn all(args: &Programs) -> Result<Vec<(String, String)>> {
    if args.script.is_empty() {
        let ours = chosen(&SCRIPTS, &args.common.only)?;
        return Ok(ours.into_iter().map(|(name, text)| (name, text.to_owned())).collect());
    }
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(file).with_context(|| format!("--script {}", file.display()));
        Ok((stem(file).to_owned(), text?))
    };
    args.script.iter().map(read).collect()
}

/// One program: prepared, run once without and once counted, then in turns.
fn one(
    turn: &Turn<'_>,
    source: &str,
    with: &[Setting],
    counter: &Path,
    most: u32,
) -> Result<Shown> {
    let name = turn.name;
    let (mut script, seconds) = Script::prepare(turn, source, "", RUNS)?;
    let counted = turn.directory.join("counts");
    // Any user may write to it: some servers refuse to run as root.
    fs::write(&counted, "")?;
    fs::set_permissions(&counted, Permissions::from_mode(0o666))?;
    let counting = [("LD_PRELOAD", counter.into()), ("CACHEWISE_STATS", counted.clone().into())];
    let counting = [with, &counting].concat();
    script.run(&counting, "while counted")?;
    let counts = Counts::read(&text(&fs::read(&counted)?));
    let round = Duration::from_secs_f64(3.0 * seconds);
    let rounds = rounds(turn.left(), round, most);
    let (percent, long) = (script.percent, round.as_secs_f64() * (rounds + 1) as f64);
    eprintln!("{name}: {rounds} rounds of {percent} % of its input, some {long:.0} s");
    let times = in_turns(turn, 3, rounds, |at| {
        let (settings, how) = match at {
            1 => (with, "with the library"),
            _ => (&[][..], "without the library"),
        };
        let is_right = script.wrong.is_none();
        is_right.then(|| script.run(settings, how)).transpose()
    })?;
    Ok(shown(source, &times, percent, &counts, script.wrong))
}

/// A control that says the same program differs from itself leaves nothing to be told.
fn verdict(times: &Times) -> Verdict {
    let control = Verdict::of(&times.speed(2, 0));
    match Verdict::of(&times.speed(1, 0)) {
        _ if matches!(control, Verdict::Faster | Verdict::Slower) => Verdict::CannotTell,
        verdict => verdict,
    }
}

fn shown(
    script: &str,
    times: &Times,
    percent: u32,
    counts: &Counts,
    wrong: Option<String>,
) -> Shown {
    let about = script.lines().find(|line| line.starts_with('#') && !line.starts_with("#!"));
    let mut json = json!({
        "about": about.unwrap_or_default().trim_start_matches('#').trim(),
        "same_output": wrong.is_none(),
        "input_percent": percent,
        "candidates": times_json(&CANDIDATES, times),
        "processes": counts.processes,
        "calls_and_bytes": calls(counts),
        "large_call_sites": counts.largest_sites(SITES),
    });
    let line = match &wrong {
        Some(what) => vec![format!("WRONG: {what}")],
        None => {
            let (speed, verdict) = (times.speed(1, 0), verdict(times));
            json["verdict"] = verdict.name().into();
            json["speed"] = json!(speed);
            vec![
                verdict.name().to_owned(),
                speed.to_string(),
                times.speed(2, 0).to_string(),
                times.rounds().to_string(),
                format!("{:.3}", median(&times.wall[0])),
                times.cpu(1, 0).to_string(),
                percent.to_string(),
            ]
        }
    };
    Shown { lines: vec![line], json, wrong }
}

/// Calls and bytes, by operation and range of sizes.
fn calls(counts: &Counts) -> Value {
    let mut all = json!({});
    for ((operation, first), (calls, bytes)) in &counts.calls {
        let range = RANGES.iter().find(|(_, to)| first < to);
        let sum = &mut all[operation][range.map_or("more", |(name, _)| name)];
        let before = [0, 1].map(|at| sum[at].as_u64().unwrap_or(0));
        *sum = json!([before[0] + calls, before[1] + bytes]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(with: f64, again: f64) -> Times {
        let times =
            |seconds: f64| (0..8).map(|i| seconds + f64::from(i) * 1e-4).collect::<Vec<_>>();
        let wall = vec![times(1.0), times(with), times(again)];
        Times { cpu: wall.clone(), wall }
    }

    #[test]
    fn a_program_that_differs_from_itself_decides_nothing() {
        for (with, again, expected) in [
            (0.8, 1.0, Verdict::Faster),
            (1.2, 1.0, Verdict::Slower),
            (0.8, 0.9, Verdict::CannotTell),
            (1.2, 1.1, Verdict::CannotTell),
        ] {
            assert_eq!(verdict(&times(with, again)), expected, "{with} {again}");
        }
    }

    #[test]
    fn what_is_wrong_has_no_verdict() {
        let counts = Counts::read(
            "cachewise: calls of process 7 (/bin/x)\ncopy 64..128 15 1500\ncopy 8..16 1 9\n\
             copy 1G..2G 1 2000000000\n",
        );
        let shown = |with, what: Option<&str>| {
            let what = what.map(str::to_owned);
            shown("#!/bin/sh\n# Sorts.\n", &times(with, 1.0), 40, &counts, what)
        };
        let Shown { lines, json, wrong } = shown(0.8, None);
        assert_eq!((&*lines[0][0], &*lines[0][6], wrong), ("faster", "40", None));
        assert_eq!((&json["about"], &json["same_output"]), (&json!("Sorts."), &json!(true)));
        let calls = json!({ "below 128 B": [16, 1509], "more": [1, 2_000_000_000] });
        assert_eq!(json["calls_and_bytes"], json!({ "copy": calls }));
        assert_eq!(json["candidates"][1]["verdict"], "faster");
        let Shown { lines, json, wrong } = shown(0.8, Some("another output"));
        assert!(lines[0][0].starts_with("WRONG: another output") && wrong.is_some(), "{lines:?}");
        assert!(json["verdict"].is_null(), "{json}");
    }
}
