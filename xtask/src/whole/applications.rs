//! `xtask applications`: programs that allocate much, with Debian's glibc as it is and tuned, with three
//! other allocators, with the page pool over glibc and over the best of the others, in turns: whether
//! their output is the same, the ratios of their times and of their CPU with intervals, and the memory
//! they hold at most.
//!
//! A program is a script as in `xtask programs`; one that knows better than the clock on the wall how
//! long its own work took writes it to `$SECONDS_FILE`. Python's packages come from pip, into an
//! environment of this chore's own under Cargo's target directory, made once.

use super::script::{PYTHON, Script, Setting};
use super::{Common, Shown, Turn, begin, campaign, chosen, in_turns, rounds, times_json};
use crate::{command, python};
use anyhow::{Context as _, Result};
use cachewise_measure::stats::{LEAST_ROUNDS, median};
use cachewise_report::{Align, Table};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

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
const SCRIPTS: [(&str, (&str, &str)); 10] = [
    ("numpy-expression", (include_str!("../../applications/numpy.sh"), "expression")),
    ("numpy-zeros", (include_str!("../../applications/numpy.sh"), "zeros")),
    ("pandas", (include_str!("../../applications/pandas.sh"), "")),
    ("duckdb", (include_str!("../../applications/duckdb.sh"), "")),
    ("pillow", (include_str!("../../applications/pillow.sh"), "")),
    ("sqlite", (include_str!("../../programs/sqlite.sh"), "")),
    ("redis", (include_str!("../../applications/redis.sh"), "")),
    ("c-calloc", (include_str!("../../applications/calloc.sh"), "")),
    ("rust-vec", (include_str!("../../applications/rust-vec.sh"), "")),
    ("cpp-vector", (include_str!("../../applications/cpp-vector.sh"), "")),
];

/// Other allocators: name, and the library that its Debian package installs (`libjemalloc2`,
/// `libmimalloc2.0`, `libtcmalloc-minimal4`).
const OTHERS: [(&str, &str); 3] = [
    ("jemalloc", "libjemalloc.so.2"),
    ("mimalloc", "libmimalloc.so.2"),
    ("tcmalloc", "libtcmalloc_minimal.so.4"),
];
/// Of these the one over which there is no pool, which the pool's library says (`docs/page-pool.md`, Limits).
const NO_POOL_OVER: &str = "jemalloc";
/// What makes glibc keep large blocks: none by mmap, and the heap's top is given back above 1 GiB.
const TUNED: &str = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1073741824";
/// Packages of the Python programs.
const PACKAGES: [&str; 4] = ["numpy", "pandas", "duckdb", "pillow"];

/// Room for so many runs of a program is wanted: one to see how long it takes, one of each allocator to
/// find the best, a round to warm up, and the rounds that an interval takes.
const RUNS: f64 = 1.0 + 5.0 + 7.0 * (1.0 + LEAST_ROUNDS as f64);

/// A way to run a program.
#[derive(Clone, Debug)]
struct Candidate {
    name: String,
    settings: Vec<Setting>,
}

impl Candidate {
    fn new(name: &str, settings: Vec<Setting>) -> Candidate {
        Candidate { name: name.to_owned(), settings }
    }

    /// The pool, with this one behind it.
    fn under(&self, pool: &Candidate) -> Candidate {
        let mut settings = pool.settings.clone();
        for (name, value) in &self.settings {
            match settings.iter_mut().find(|(known, _)| known == name) {
                // What stands first in the list answers first, and hands on to the next.
                Some((_, before)) => {
                    before.push(":");
                    before.push(value);
                }
                None => settings.push((name, value.clone())),
            }
        }
        Candidate { name: format!("pool over {}", self.name), settings }
    }
}

/// Runs them; an error where any output differs.
pub fn run(args: &Applications) -> Result<()> {
    let programs = chosen(&SCRIPTS, &args.common.only)?;
    let begun = begin(&args.common, "applications", "cachewise-pool-preload")?;
    let mut table = Table::new("", &["program", "output", ">glibc, s", ">rounds"]);
    let mut candidates = vec![
        Candidate::new("glibc", Vec::new()),
        Candidate::new("glibc tuned", vec![("GLIBC_TUNABLES", TUNED.into())]),
    ];
    for (name, file) in OTHERS {
        match find(file) {
            Some(file) => candidates.push(Candidate::new(name, vec![("LD_PRELOAD", file.into())])),
            None => table.remarks.push(format!("{name} left out: {file} is not installed")),
        }
    }
    let (library, size) = (begun.library.clone().into(), OsString::from(&args.pool));
    candidates
        .push(Candidate::new("pool", vec![("LD_PRELOAD", library), ("CACHEWISE_POOL", size)]));
    let folder = command::target().join("applications-python");
    match python::environment(&folder, &PACKAGES.join(" "), &PACKAGES) {
        Ok(python) => _ = PYTHON.set(python),
        Err(error) => table.remarks.push(format!("Python as it is installed: {error:#}")),
    }
    let speeds = candidates[1..].iter().map(|candidate| format!("{}, speed", candidate.name));
    let others = ["pool over the best other", "over that one alone", "CPU, pool"];
    let memory = ["MiB, glibc", "MiB, pool"];
    let columns = speeds.chain(others.into_iter().chain(memory).map(str::to_owned));
    table.columns.extend(columns.map(|name| (name, Align::Right)));
    table.remarks.push(format!(
        "speed over glibc's allocator: above 1 is faster; 95 % intervals. glibc tuned: {TUNED}. The best \
         other: the fastest of a first run each; its name, and the pool over it, over glibc and over \
         that one alone (no pool stands over {NO_POOL_OVER}: refused). CPU: over glibc's. MiB: resident at most, of the largest process, median"
    ));
    let mut one = |turn: &Turn<'_>, program: &(&str, &str)| {
        one(turn, program, &candidates, args.common.rounds)
    };
    campaign(&args.common, &programs, table, begun, &mut one)
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
    candidates: &[Candidate],
    most: u32,
) -> Result<Shown> {
    let (mut script, _) = Script::prepare(turn, text, argument, RUNS)?;
    let mut ran = |of: &Candidate| script.run(&of.settings, &format!("with {}", of.name));
    let known = candidates.len();
    let (pool, others) = candidates.split_last().context("the pool is the last")?;
    let settling = Instant::now();
    let first: Vec<f64> =
        others.iter().map(|other| Ok(ran(other)?.seconds)).collect::<Result<_>>()?;
    let at_best = (1..known - 1).min_by(|a, b| first[*a].total_cmp(&first[*b]));
    let at_best = at_best.context("glibc tuned is a candidate")?;
    let best_other = &candidates[at_best];
    let stacked = (best_other.name != NO_POOL_OVER).then(|| best_other.under(pool));
    let candidates: Vec<_> = candidates.iter().cloned().chain(stacked).collect();
    let all = candidates.len();
    // As those runs took, with what a process needs to begin and end; those with the pool are taken to
    // be like them.
    let round = settling.elapsed().mul_f64(all as f64 / (known - 1) as f64);
    let rounds = rounds(turn.left(), round, most);
    let mut resident = vec![Vec::new(); all];
    let times = in_turns(turn, all, rounds, |at| {
        let run = ran(&candidates[at])?;
        resident[at].push(run.resident as f64 / f64::from(1 << 20));
        Ok(Some(run))
    })?;
    let Script { wrong, percent, .. } = script;
    let names: Vec<&str> = candidates.iter().map(|candidate| candidate.name.as_str()).collect();
    let mebibytes: Vec<f64> = resident.iter().map(|of| median(of)).collect();
    let best_other = &candidates[at_best].name;
    let over = (known..all).next().map(|at| (times.speed(at, 0), times.speed(at, at_best)));
    let mut line = vec![
        wrong.clone().unwrap_or_else(|| "same".to_owned()),
        format!("{:.3}", median(&times.wall[0])),
        times.rounds().to_string(),
    ];
    line.extend((1..known).map(|at| times.speed(at, 0).to_string()));
    line.extend(match &over {
        Some((speed, alone)) => [format!("{best_other}: {speed}"), alone.to_string()],
        None => [format!("{best_other}: refused"), "-".to_owned()],
    });
    line.push(times.cpu(known - 1, 0).to_string());
    line.extend([0, known - 1].map(|at| format!("{:.0}", mebibytes[at])));
    let json = json!({
        "same_output": wrong.is_none(),
        "input_percent": percent,
        "candidates": times_json(&names, &times),
        "best_other": best_other,
        "stacked_over_it_alone": over.map(|(_, alone)| alone),
        "resident_mib": mebibytes,
    });
    Ok(Shown { lines: vec![line], json, wrong })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_stands_before_the_allocator_that_it_hands_on_to() {
        let pool = Candidate::new(
            "pool",
            vec![("LD_PRELOAD", "/pool.so".into()), ("CACHEWISE_POOL", "1G".into())],
        );
        let other = Candidate::new("other", vec![("LD_PRELOAD", "/other.so".into())]);
        let both = other.under(&pool);
        assert_eq!(both.name, "pool over other");
        let expected: [(&str, OsString); 2] =
            [("LD_PRELOAD", "/pool.so:/other.so".into()), ("CACHEWISE_POOL", "1G".into())];
        assert_eq!(both.settings, expected);
        let tuned = Candidate::new("tuned", vec![("GLIBC_TUNABLES", TUNED.into())]);
        assert_eq!(tuned.under(&pool).settings.len(), 3, "its own variable is kept");
    }
}
