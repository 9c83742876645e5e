//! `xtask applications`: programs that allocate much, on Debian's glibc, with the page pool and with
//! three other allocators, in turns: whether their output is the same, and the ratios of their times
//! and of their CPU with intervals.
//!
//! A program is a script as in `xtask programs`; one that knows better than the clock on the wall how
//! long its own work took writes it to `$SECONDS_FILE`. Ctrl-C ends the program under way; those that
//! were finished are in the tables, and the status is 130.

use crate::interrupt::{INTERRUPTED, Interrupt, progress};
use crate::markdown::Outputs;
use crate::programs::{ENDING, minutes};
use crate::scripts::{self, SKIPPED};
use anyhow::{Context as _, Result, bail};
use cachewise_measure::stats::{LEAST_ROUNDS, PairedRatio, geometric_mean, median};
use cachewise_measure::{children, turns};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What to run, and where to write.
#[derive(Debug, clap::Args)]
pub struct Applications {
    /// Only these, by name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// How often each is run with each allocator, after once to warm up; an interval needs some ten
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// About this long in all: fewer rounds where a program's share has no room for them, but 6
    #[arg(long, value_name = "MINUTES", value_parser = minutes)]
    minutes: Option<f64>,
    /// The pool's size, as `CACHEWISE_POOL` takes it
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pool: String,
    /// Seconds that one run of a program may take; one that takes longer is skipped, and said to be
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    limit: u32,
    #[command(flatten)]
    out: Outputs,
    /// The pool's preload library [default: built for release first]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// Name, script, and what the script is told.
const SCRIPTS: [(&str, &str, &str); 8] = [
    ("numpy-expression", include_str!("../applications/numpy.sh"), "expression"),
    ("numpy-copy", include_str!("../applications/numpy.sh"), "copy"),
    ("numpy-concatenate", include_str!("../applications/numpy.sh"), "concatenate"),
    ("numpy-zeros", include_str!("../applications/numpy.sh"), "zeros"),
    ("c-calloc", include_str!("../applications/calloc.sh"), ""),
    ("rust-vec", include_str!("../applications/rust-vec.sh"), ""),
    ("sqlite", include_str!("../programs/sqlite.sh"), ""),
    ("redis", include_str!("../applications/redis.sh"), ""),
];

/// The three whose geometric mean is asked for.
const TEMPORARIES: [&str; 3] = ["numpy-expression", "numpy-copy", "numpy-concatenate"];

/// Seed of the order in each round.
const SEED: u64 = 1;

const REFERENCE: &str = "glibc";
const POOL: &str = "pool";

/// Other allocators: name, the Debian package, the library it installs.
const OTHERS: [(&str, &str, &str); 3] = [
    ("jemalloc", "libjemalloc2", "libjemalloc.so.2"),
    ("mimalloc", "libmimalloc2.0", "libmimalloc.so.2"),
    ("tcmalloc", "libtcmalloc-minimal4", "libtcmalloc_minimal.so.4"),
];

/// An allocator under test.
struct Allocator {
    name: &'static str,
    preload: Option<PathBuf>,
}

/// One program's times, by allocator.
struct Shown {
    name: &'static str,
    same: bool,
    times: Vec<(&'static str, Vec<f64>, Vec<f64>)>,
}

impl Shown {
    /// Above 1: faster than with glibc alone.
    fn speed(&self, allocator: &str) -> Option<PairedRatio> {
        let wall = |name| self.times.iter().find(|(of, ..)| *of == name).map(|(_, wall, _)| wall);
        Some(PairedRatio::in_turns(wall(REFERENCE)?, wall(allocator)?))
    }

    /// Below 1: less CPU than with glibc alone, the scrubber's included.
    fn cpu(&self, allocator: &str) -> Option<PairedRatio> {
        let cpu = |name| self.times.iter().find(|(of, ..)| *of == name).map(|(.., cpu)| cpu);
        Some(PairedRatio::in_turns(cpu(allocator)?, cpu(REFERENCE)?))
    }
}

/// How a program's runs ended.
enum Outcome {
    Shown(Shown),
    /// Why there are no figures of it.
    Skipped(String),
    /// The user stopped it.
    Stopped,
}

/// Runs them; an error where any output differs.
pub fn run(args: &Applications) -> Result<()> {
    let scripts = scripts::chosen(&SCRIPTS, &args.only, |(name, ..)| name)?;
    args.out.check()?;
    let scratch = tempfile::Builder::new().prefix("cachewise-applications").tempdir()?;
    let library = scratch.path().join("libcachewise_pool_preload.so");
    let built = match &args.library {
        Some(library) => library.clone(),
        None => {
            crate::install::built("cachewise-pool-preload")?.join("libcachewise_pool_preload.so")
        }
    };
    fs::copy(&built, &library).with_context(|| built.display().to_string())?;
    let mut allocators = vec![
        Allocator { name: REFERENCE, preload: None },
        Allocator { name: POOL, preload: Some(library) },
    ];
    let mut skipped = Vec::new();
    for (name, package, file) in OTHERS {
        match find(file) {
            Some(file) => allocators.push(Allocator { name, preload: Some(file) }),
            None => skipped.push((name, format!("install the Debian package {package}"))),
        }
    }
    let interrupt = Interrupt::new()?;
    children::adopt_orphans();
    let (begun, all) = (Instant::now(), scripts.len());
    let time = args.minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes));
    let mut shown = Vec::new();
    let mut stopped = false;
    for (done, (name, script, what)) in scripts.into_iter().enumerate() {
        progress(name, done, all, begun);
        let directory = scratch.path().join(name);
        let share = time.map(|time| turns::share(time.saturating_sub(begun.elapsed()), all - done));
        let how = (args, interrupt.flag(), share);
        match one(name, (script, what), &directory, &allocators, how)? {
            Outcome::Shown(one) => shown.push(one),
            Outcome::Skipped(why) => {
                eprintln!("{name}: skipped, {why}");
                skipped.push((name, why));
            }
            Outcome::Stopped => {
                skipped.push((name, "not finished: stopped".to_owned()));
                stopped = true;
                break;
            }
        }
        // Only what is ours: the directory was made by `one`.
        fs::remove_dir_all(&directory)?;
    }
    let text = table(&shown, &skipped);
    args.out.write(&text, &as_json(&shown, &skipped, args))?;
    let wrong: Vec<_> = shown.iter().filter(|one| !one.same).map(|one| one.name).collect();
    if !wrong.is_empty() {
        bail!("other output with another allocator: {}", wrong.join(", "));
    }
    if stopped {
        // No destructor runs after this.
        scratch.close()?;
        std::process::exit(INTERRUPTED);
    }
    Ok(())
}

fn find(file: &str) -> Option<PathBuf> {
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let places = [multiarch.as_str(), "/usr/lib64", "/usr/lib"];
    places.iter().map(|place| Path::new(place).join(file)).find(|path| path.exists())
}

/// What a step of a script said, and how it ended.
struct Ran {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

/// Why a step was ended before its time.
enum Cut {
    TooLong,
    Stopped,
}

/// How often a step under way is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a step with its output in files of `directory`, as a process group of its own, which is ended
/// after `limit` or when the user says so.
fn step(
    mut command: Command,
    directory: &Path,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<std::result::Result<Ran, Cut>> {
    use rustix::process::{Pid, Signal, kill_process_group};
    use std::os::unix::process::CommandExt as _;
    let (out, err) = (directory.join("stdout"), directory.join("stderr"));
    command.stdout(fs::File::create(&out)?).stderr(fs::File::create(&err)?).process_group(0);
    let begun = Instant::now();
    let mut child = command.spawn().context("sh")?;
    let group = Pid::from_child(&child);
    let (ended, over) = mpsc::channel::<()>();
    // Whoever waits for the child is not made late by looking at the clock.
    let (status, cut) = std::thread::scope(|scope| {
        let watch = scope.spawn(move || {
            loop {
                if over.recv_timeout(LOOK) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return None;
                }
                let cut = if stop.load(Ordering::Relaxed) {
                    Cut::Stopped
                } else if begun.elapsed() >= limit {
                    Cut::TooLong
                } else {
                    continue;
                };
                // Gone already: then there is nobody to end.
                let _ = kill_process_group(group, Signal::KILL);
                return Some(cut);
            }
        });
        let status = child.wait();
        drop(ended);
        (status, watch.join().unwrap_or(None))
    });
    let ran = Ran {
        status: status?,
        stdout: String::from_utf8_lossy(&fs::read(&out)?).into_owned(),
        stderr: String::from_utf8_lossy(&fs::read(&err)?).trim().to_owned(),
    };
    Ok(match cut {
        Some(cut) => Err(cut),
        None => Ok(ran),
    })
}

/// One program: prepared, and run with each allocator in turns.
fn one(
    name: &'static str,
    (script, what): (&str, &str),
    directory: &Path,
    allocators: &[Allocator],
    (args, stop, share): (&Applications, &AtomicBool, Option<Duration>),
) -> Result<Outcome> {
    let begun = Instant::now();
    scripts::lay_out(directory, script)?;
    let start = |what_step: &str, place: &Path, allocator: Option<&Allocator>, limit| {
        let mut command = scripts::step(what_step, directory, place);
        command.arg(what);
        if let Some(Allocator { name, preload: Some(library) }) = allocator {
            command.env("LD_PRELOAD", library);
            if *name == POOL {
                command.env("CACHEWISE_POOL", &args.pool);
            }
        }
        step(command, place, limit, stop)
    };
    // Some are compiled first.
    let prepared = match start("prepare", directory, None, Duration::from_secs(300))? {
        Ok(prepared) => prepared,
        Err(Cut::TooLong) => return Ok(Outcome::Skipped("preparing took over 300 s".to_owned())),
        Err(Cut::Stopped) => return Ok(Outcome::Stopped),
    };
    if prepared.status.code() == Some(SKIPPED) {
        return Ok(Outcome::Skipped(prepared.stdout.trim().to_owned()));
    }
    if !prepared.status.success() {
        bail!("{name}: prepare: {}", prepared.stderr);
    }
    let times = allocators.iter().map(|allocator| (allocator.name, vec![], vec![])).collect();
    let mut shown = Shown { name, same: true, times };
    let mut expected: Option<String> = None;
    // The first round brings files and pages to where the others find them, and is not counted; by
    // its time the number of the others is settled, before the first of them.
    let first = (0..allocators.len()).collect::<Vec<_>>();
    let mut orders = vec![first].into_iter();
    let (mut round, mut rounds, mut rounds_begun) = (0, 0, Instant::now());
    while let Some(order) = orders.next() {
        for at in order {
            let place = directory.join("run");
            fs::create_dir(&place)?;
            let (begun, cpu) = (Instant::now(), children::cpu_seconds());
            let limit = Duration::from_secs(u64::from(args.limit));
            let ran = start("run", &place, Some(&allocators[at]), limit)?;
            let wall = begun.elapsed().as_secs_f64();
            children::reap_orphans(ENDING);
            let cpu = children::cpu_seconds() - cpu;
            let own = fs::read_to_string(place.join("seconds")).ok();
            fs::remove_dir_all(&place)?;
            let ran = match ran {
                Ok(ran) => ran,
                Err(Cut::TooLong) => {
                    let (limit, with) = (args.limit, allocators[at].name);
                    let why = format!("a run with {with} took longer than {limit} s (--limit)");
                    return Ok(Outcome::Skipped(why));
                }
                Err(Cut::Stopped) => return Ok(Outcome::Stopped),
            };
            if !ran.status.success() {
                bail!("{name}, {}: {}: {}", allocators[at].name, ran.status, ran.stderr);
            }
            let text = ran.stdout;
            let expected = expected.get_or_insert_with(|| text.clone());
            if *expected != text {
                eprintln!("{name}, {}: found\n{text}\nexpected\n{expected}", allocators[at].name);
                shown.same = false;
            }
            let seconds = own.map_or(Ok(wall), |text| text.trim().parse::<f64>());
            let seconds = seconds.with_context(|| format!("{name}: seconds"))?;
            if round > 0 {
                shown.times[at].1.push(seconds);
                shown.times[at].2.push(cpu);
            }
        }
        if round == 0 {
            rounds = args.rounds as usize;
            if let Some(share) = share {
                let (left, took) = (share.saturating_sub(begun.elapsed()), rounds_begun.elapsed());
                rounds = turns::rounds(left, took, LEAST_ROUNDS.min(rounds), rounds);
            }
            rounds_begun = Instant::now();
            orders = turns::orders(allocators.len(), rounds, SEED).into_iter();
        } else {
            let left = rounds_begun.elapsed().as_secs_f64() / round as f64;
            let left = left * (rounds - round) as f64;
            eprintln!("{name}: round {round} of {rounds}, some {left:.0} s left for it");
        }
        round += 1;
    }
    Ok(Outcome::Shown(shown))
}

fn interval(ratio: Option<PairedRatio>) -> String {
    ratio.map_or("-".to_owned(), |ratio| {
        format!("{:.2} [{:.2}, {:.2}]", ratio.median, ratio.low, ratio.high)
    })
}

/// Geometric mean of an allocator's speed over NumPy's temporaries, if all were run.
fn temporaries(shown: &[Shown], allocator: &str) -> Option<f64> {
    let speeds: Option<Vec<f64>> = TEMPORARIES
        .iter()
        .map(|name| {
            let one = shown.iter().find(|one| one.name == *name)?;
            Some(one.speed(allocator)?.median)
        })
        .collect();
    speeds.map(|speeds| geometric_mean(&speeds))
}

fn table(shown: &[Shown], skipped: &[(&str, String)]) -> String {
    let names = [POOL, "jemalloc", "mimalloc", "tcmalloc"];
    let mut text =
        String::from("Speed over glibc's allocator (above 1: faster), 95 % interval\n\n");
    let _ = writeln!(
        text,
        "| program | same output | glibc, s | {} | CPU, pool / glibc |",
        names.join(" | ")
    );
    let _ = writeln!(text, "|---|---|---:|{}---:|", "---:|".repeat(names.len()));
    for one in shown {
        let glibc = one.times.first().map_or(f64::NAN, |(_, wall, _)| median(wall));
        let same = if one.same { "yes" } else { "NO" };
        let speeds = names.map(|name| interval(one.speed(name)));
        let cpu = interval(one.cpu(POOL));
        let _ = writeln!(
            text,
            "| {} | {same} | {glibc:.3} | {} | {cpu} |",
            one.name,
            speeds.join(" | ")
        );
    }
    if temporaries(shown, POOL).is_some() {
        let means = names.map(|name| {
            temporaries(shown, name).map_or("-".to_owned(), |mean| format!("{mean:.2}"))
        });
        let _ =
            writeln!(text, "| NumPy temporaries, geometric mean | | | {} | |", means.join(" | "));
    }
    for (name, why) in skipped {
        let _ = writeln!(text, "\n{name}: skipped, {why}");
    }
    text
}

fn as_json(shown: &[Shown], skipped: &[(&str, String)], args: &Applications) -> Value {
    let interval = |ratio: Option<PairedRatio>| {
        ratio.map(|ratio| json!({ "median": ratio.median, "low": ratio.low, "high": ratio.high }))
    };
    let programs = shown.iter().map(|one| {
        let allocators = one.times.iter().map(|(name, wall, cpu)| {
            json!({
                "allocator": name,
                "seconds": wall,
                "cpu_seconds": cpu,
                "speed_over_glibc": interval(one.speed(name)),
                "cpu_over_glibc": interval(one.cpu(name)),
            })
        });
        let allocators: Vec<Value> = allocators.collect();
        json!({ "program": one.name, "same_output": one.same, "allocators": allocators })
    });
    let skipped = skipped.iter().map(|(name, why)| json!({ "name": name, "skipped": why }));
    json!({
        "pool": args.pool,
        "rounds": args.rounds,
        "order_seed": SEED,
        "machine": cachewise_measure::Machine::describe().summary_line(),
        "programs": programs.collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn ratios_and_their_mean_are_over_glibc() {
        let one = |name, factor: f64| Shown {
            name,
            same: true,
            times: vec![
                (REFERENCE, vec![factor; 5], vec![1.0; 5]),
                (POOL, vec![1.0; 5], vec![0.5; 5]),
            ],
        };
        let shown = [one(TEMPORARIES[0], 1.0), one(TEMPORARIES[1], 2.0), one(TEMPORARIES[2], 4.0)];
        assert!((temporaries(&shown, POOL).expect("all three") - 2.0).abs() < 1e-9);
        assert!(temporaries(&shown[..2], POOL).is_none());
        assert!(temporaries(&shown, "jemalloc").is_none());
        let text = table(&shown, &[("redis", "not installed".to_owned())]);
        assert!(text.contains("| 4.00 [4.00, 4.00] | - | - | - | 0.50 [0.50, 0.50] |"), "{text}");
        assert!(text.contains("geometric mean | | | 2.00 |"), "{text}");
        assert!(text.contains("redis: skipped, not installed"), "{text}");
    }

    fn shell(script: &str, place: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).current_dir(place);
        command
    }

    #[test]
    fn a_step_that_takes_too_long_is_ended_with_all_that_it_started() {
        let place = tempfile::tempdir().expect("a folder");
        let (long, go) = (Duration::from_secs(60), AtomicBool::new(false));
        let ran =
            step(shell("echo out; echo err >&2; exit 3", place.path()), place.path(), long, &go);
        let ran = ran.expect("a shell").ok().expect("ended by itself");
        assert_eq!((ran.status.code(), &*ran.stdout, &*ran.stderr), (Some(3), "out\n", "err"));
        let sleeps = "sleep 300 & echo $! >child; wait";
        let begun = Instant::now();
        let cut = step(shell(sleeps, place.path()), place.path(), Duration::from_millis(300), &go);
        assert!(matches!(cut.expect("a shell"), Err(Cut::TooLong)));
        let stop = AtomicBool::new(true);
        assert!(matches!(
            step(shell(sleeps, place.path()), place.path(), long, &stop).expect("a shell"),
            Err(Cut::Stopped)
        ));
        assert!(begun.elapsed() < long, "nobody waited for the sleepers");
        let child = fs::read_to_string(place.path().join("child")).expect("its number");
        let alive = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.trim()));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        // It was told to end; on a busy machine that takes a moment.
        while alive() {
            assert!(begun.elapsed() < long, "what the script started lives on");
            std::thread::sleep(LOOK);
        }
    }
}
