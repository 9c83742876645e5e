//! `xtask applications`: programs that allocate much, on Debian's glibc, with the page pool and with
//! three other allocators, in turns: whether their output is the same, and the ratios of their times
//! and of their CPU with intervals.
//!
//! A program is a script as in `xtask programs`; one that knows better than the clock on the wall how
//! long its own work took writes it to `$SECONDS_FILE`.

use super::script::{Prepared, Script, Setting};
use super::{Common, Outcome, Turn, campaign, chosen, interval, saying, times_json};
use crate::interrupt::Interrupt;
use anyhow::{Context as _, Result};
use cachewise_measure::stats::{LEAST_ROUNDS, median};
use cachewise_measure::turns;
use cachewise_measure::whole::in_turns;
use cachewise_report::Table;
use serde_json::json;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to run, and where to write.
#[derive(Debug, clap::Args)]
pub struct Applications {
    #[command(flatten)]
    common: Common,
    /// The pool's size, as `CACHEWISE_POOL` takes it
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pool: String,
}

/// Name; script, and what the script is told.
const SCRIPTS: [(&str, (&str, &str)); 8] = [
    ("numpy-expression", (include_str!("../../applications/numpy.sh"), "expression")),
    ("numpy-copy", (include_str!("../../applications/numpy.sh"), "copy")),
    ("numpy-concatenate", (include_str!("../../applications/numpy.sh"), "concatenate")),
    ("numpy-zeros", (include_str!("../../applications/numpy.sh"), "zeros")),
    ("c-calloc", (include_str!("../../applications/calloc.sh"), "")),
    ("rust-vec", (include_str!("../../applications/rust-vec.sh"), "")),
    ("sqlite", (include_str!("../../programs/sqlite.sh"), "")),
    ("redis", (include_str!("../../applications/redis.sh"), "")),
];

/// Other allocators: name, and the library that its Debian package installs.
const OTHERS: [(&str, &str); 3] = [
    ("jemalloc", "libjemalloc.so.2"),
    ("mimalloc", "libmimalloc.so.2"),
    ("tcmalloc", "libtcmalloc_minimal.so.4"),
];

/// Room for so many runs of a program is wanted: one to see how long it takes, and ten and one of each.
const RUNS: f64 = 1.0 + 5.0 * 11.0;

/// Runs them; an error where any output differs.
pub fn run(args: &Applications) -> Result<()> {
    let programs = chosen(&args.common, &SCRIPTS)?;
    args.common.out.check()?;
    let interrupt = Interrupt::new()?;
    let scratch = tempfile::Builder::new().prefix("cachewise-applications").tempdir()?;
    let pool = super::library(&args.common, "cachewise-pool-preload", scratch.path())?;
    let mut allocators: Vec<(&str, Option<PathBuf>)> = vec![("glibc", None), ("pool", Some(pool))];
    let mut table = Table::new("", &["program", "output", ">glibc, s", ">rounds", ">CPU, pool"]);
    table.columns[4].0 = "CPU, pool over glibc".to_owned();
    for (name, file) in OTHERS {
        match find(file) {
            Some(file) => allocators.push((name, Some(file))),
            None => table.remarks.push(format!("{name} left out: {file} is not installed")),
        }
    }
    for (name, _) in &allocators[1..] {
        table.columns.push((format!("{name}, speed"), cachewise_report::Align::Right));
    }
    table
        .remarks
        .push("speed over glibc's allocator: above 1 is faster; 95 % intervals".to_owned());
    let mut one = |turn: &Turn<'_>, program: &(&str, &str)| {
        one(turn, program, &allocators, OsStr::new(&args.pool), args.common.rounds as usize)
    };
    campaign(&args.common, &programs, table, &interrupt, scratch, &mut one)
}

fn find(file: &str) -> Option<PathBuf> {
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let places = [multiarch.as_str(), "/usr/lib64", "/usr/lib"];
    places.iter().map(|place| Path::new(place).join(file)).find(|path| path.exists())
}

/// One program, run with each allocator in turns.
fn one(
    turn: &Turn<'_>,
    (text, argument): &(&str, &str),
    allocators: &[(&str, Option<PathBuf>)],
    pool: &OsStr,
    most: usize,
) -> Result<Outcome> {
    let (name, begun) = (turn.name, Instant::now());
    let (script, first) = match Script::prepare(turn, text, argument, RUNS)? {
        Prepared::Ready(script, first) => (script, first),
        Prepared::Skipped(why) => return Ok(Outcome::Skipped(why)),
        Prepared::Stopped => return Ok(Outcome::Stopped),
    };
    // Settled before the first of them: whoever stops when he likes the interval has none.
    let all = allocators.len();
    let round = Duration::from_secs_f64(all as f64 * first.seconds);
    let left = turn.share.saturating_sub(begun.elapsed() + round);
    let rounds = turns::rounds(left, round, LEAST_ROUNDS, most);
    let mut wrong = None;
    let times = in_turns(all, rounds, &mut saying(name, rounds), &mut |at| {
        let (allocator, library) = &allocators[at];
        let mut settings: Vec<Setting<'_>> = Vec::new();
        settings.extend(library.iter().map(|library| ("LD_PRELOAD", library.as_os_str())));
        if *allocator == "pool" {
            settings.push(("CACHEWISE_POOL", pool));
        }
        let run = script.run(&settings).with_context(|| (*allocator).to_owned())?;
        if run.as_ref().is_some_and(|(_, run)| run.output != first.output) {
            wrong.get_or_insert_with(|| format!("another output with {allocator}"));
        }
        Ok::<_, anyhow::Error>(run.map(|(_, run)| (run.seconds, run.cpu)))
    })?;
    if times.rounds() < LEAST_ROUNDS {
        return Ok(Outcome::Stopped);
    }
    let names: Vec<&str> = allocators.iter().map(|(name, _)| *name).collect();
    let mut line = vec![
        String::new(),
        wrong.clone().unwrap_or_else(|| "same".to_owned()),
        format!("{:.3}", median(&times.wall[0])),
        times.rounds().to_string(),
        interval(&times.cpu(1, 0)),
    ];
    line.extend((1..all).map(|at| interval(&times.speed(at, 0))));
    let json = json!({
        "same_output": wrong.is_none(),
        "input_percent": script.percent,
        "candidates": times_json(&names, &times),
    });
    Ok(Outcome::Shown { lines: vec![line], json, wrong })
}
