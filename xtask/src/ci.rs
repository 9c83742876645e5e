//! Stages of CI. `.ci/run` installs what a bare machine lacks and calls this.

use crate::command::{self, Lacking, accepted, run as run_command};
use crate::{emulate, emulate_arch, linux};
use anyhow::{Result, bail, ensure};
use fs_err as fs;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

type Stage = (&'static str, fn() -> Result<()>);

/// In the order in which they begin: a short one last, so that none is waited for alone.
const STAGES: &[Stage] = &[
    ("lint", || {
        cargo("fmt --all --check")?;
        cargo("clippy --workspace --all-targets --all-features -- -D warnings")
    }),
    // The wheel, its tests under two releases of NumPy, and NumPy's own tests in the pool.
    ("python", crate::python::run),
    // The README's test command, and what only optimised code can show: the hot path calls nothing and
    // keeps off the stack.
    ("test", || {
        test()?;
        cargo("test --release -p cachewise --test assembly")
    }),
    // The kernel series applies, compiles, proves the order of its locks and keeps its promises.
    ("linux", linux::proves_locks),
    // And the crates, each from its own files alone.
    ("install", || {
        crate::audit::crates()?;
        cargo("test -p xtask --features installation --test install --test dist")
    }),
    // Every AVX-512 kernel and entry on an emulated CPU.
    ("avx512-emulated", || {
        let (kernels, effort) = ("avx512".to_owned(), "small".to_owned());
        emulate::run(&emulate::Options { kernels, effort, limit: 12, required: true })
    }),
    ("powerpc64le-emulated", || emulate_arch::run(emulate_arch::find("powerpc64le")?, "small")),
    ("aarch64-emulated", || emulate_arch::run(emulate_arch::find("aarch64")?, "small")),
    // Each parser, each operation, and calls of a pool.
    ("fuzz", || crate::fuzz::run(&[], 4)),
    // Unordered accesses of the threads that meet in tests.
    ("thread-sanitizer", crate::nightly::thread_sanitizer),
    // Each access of what is pure, interpreted and looked at.
    ("miri", crate::nightly::miri),
    // All interleavings of allocate, free, scrub and trim.
    ("loom", loom),
    // Without an operating system: the page allocator, the library, and a program at boot.
    ("no-std", || {
        cargo("build -p cachewise-pages --no-default-features --lib")?;
        cargo("test -p cachewise --no-default-features")?;
        crate::bare_metal::run()
    }),
    ("conformance", || crate::conformance::run(None, None)),
    ("documents", || {
        crate::checklist::run()?;
        crate::links::run()?;
        let mut doc = command::cargo("doc --workspace --no-deps --document-private-items");
        run_command(doc.env("RUSTDOCFLAGS", "-D warnings"))
    }),
    ("report-in-browser", || crate::browser::run(&crate::browser::newest_tuning()?)),
    ("matrix", crate::matrix::run),
];

/// No stage begins later: whoever runs all of them waits an hour at most, what is installed before included.
const TOGETHER: Duration = Duration::from_secs(51 * 60);

/// Runs the stages named, or all, each in a process whose output is kept in `target/ci/STAGE.log`:
/// shown are the closing lines of test runners, and the end of what a stage that failed printed. The
/// other stages run all the same. One that lacks something fails, unless skips are allowed. Two run at once, where
/// there are two CPUs: most wait for an emulator, a model checker or one test at times. With `verbose` they run in
/// this process, one after the other, and all that they print is shown.
pub fn run(names: &[String], allow_skips: bool, verbose: bool) -> Result<()> {
    accepted("stage", names, &STAGES.iter().map(|(stage, _)| *stage).collect::<Vec<_>>())?;
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let wanted = STAGES.iter().filter(|(name, _)| is_wanted(name));
    let logs = command::target().join("ci");
    fs::create_dir_all(&logs)?;
    let (begun, ended) = (Instant::now(), Mutex::new(Vec::new()));
    let next = Mutex::new(wanted.enumerate());
    let stages = || {
        // Taken by itself, so that the list is free while the stage runs.
        let taken = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((place, (name, stage))) = taken() {
            let run = |shown: &mut Vec<String>| match verbose {
                true => Lacking::allowed(stage(), allow_skips),
                false => apart(name, allow_skips, &logs, shown),
            };
            let said = timed(name, begun, run);
            ended.lock().unwrap_or_else(PoisonError::into_inner).push((place, *name, said));
        }
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = if verbose { 1 } else { cpus.min(2) };
    std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(stages))));
    let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.sort_by_key(|(place, ..)| *place);
    println!("=== stages, all in {} s", begun.elapsed().as_secs());
    for (_, name, said) in &ended {
        println!("{name}: {}", said.as_ref().unwrap_or_else(|failed| failed));
    }
    let failed: Vec<&str> =
        ended.iter().filter(|(.., said)| said.is_err()).map(|(_, name, _)| *name).collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// A stage, and how it ended: as an error where it failed.
fn timed(
    name: &str,
    all_begun: Instant,
    run: impl FnOnce(&mut Vec<String>) -> Result<()>,
) -> Result<String, String> {
    let left = TOGETHER.saturating_sub(all_begun.elapsed());
    if left.is_zero() {
        return Ok("SKIPPED, no time is left".to_owned());
    }
    println!("=== {name} begins");
    let (begun, mut shown) = (Instant::now(), Vec::new());
    let ended = run(&mut shown);
    let seconds = begun.elapsed().as_secs();
    println!("=== {name}\n{}", shown.join("\n"));
    // A process of its own has said it, with its CPU time.
    let passed = shown.iter().rev().find_map(|line| line.strip_prefix(&format!("{name}: passed ")));
    let passed = || match passed {
        Some(how) => format!("passed {how}"),
        None => format!("passed in {seconds} s, {} s of CPU", children_cpu()),
    };
    ended.map(|()| passed()).map_err(|error| {
        println!("{name}: {error:#}");
        format!("FAILED in {seconds} s, {error:#}")
    })
}

/// CPU seconds of all processes that this one started and that ended (proc_pid_stat(5): `cutime` and `cstime`, in
/// hundredths).
fn children_cpu() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
    let times = fields.split_whitespace().skip(13).take(2);
    times.filter_map(|time| time.parse::<u64>().ok()).sum::<u64>() / 100
}

/// Runs a stage in a process of its own; what of its output is shown goes to `shown`.
fn apart(name: &str, allow_skips: bool, logs: &Path, shown: &mut Vec<String>) -> Result<()> {
    let (reader, writer) = std::io::pipe()?;
    // The file itself: `cargo test` builds another one in its place.
    let mut command = Command::new("/proc/self/exe");
    command.args(["ci", "--verbose", name]).stdin(Stdio::null());
    command.args(allow_skips.then_some("--allow-skips"));
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // It keeps copies of the pipe's end to write to, which would never close.
    drop(command);
    let path = logs.join(format!("{name}.log"));
    let mut log = BufWriter::new(fs::File::create(&path)?);
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        writeln!(log, "{line}")?;
        shown.extend(is_closing(&line).then_some(line));
    }
    log.flush()?;
    let status = child.wait()?;
    if !status.success() {
        let told = fs::read_to_string(&path)?;
        let lines: Vec<&str> = told.lines().collect();
        shown.push(format!("--- the last lines of {}", path.display()));
        shown.push(lines[lines.len().saturating_sub(SHOWN)..].join("\n") + "\n---");
        bail!("{status}");
    }
    Ok(())
}

/// How much of what a failed stage printed is shown.
const SHOWN: usize = 120;

/// Selects the lines shown of a stage that passes, or before the end of one that fails.
fn is_closing(line: &str) -> bool {
    let beginnings = [
        "test result:",
        "     Running",
        "   Doc-tests",
        "matrix:",
        "conformance:",
        "fuzz:",
        "emulated ",
        "python: ",
    ];
    beginnings.iter().any(|beginning| line.starts_with(beginning))
        || (line.contains(" passed") && line.contains(" in "))
        || line.ends_with("... FAILED")
        || line.contains("SKIPPED, ")
}

fn cargo(words: &str) -> Result<()> {
    run_command(&mut command::cargo(words))
}

/// All tests; what one of them left out for want of something is known by a word in its output.
fn test() -> Result<()> {
    let mut command = command::cargo("test --workspace --no-fail-fast --features");
    // Libraries as they are shipped; `.ci/run` begins to build the same.
    command.arg(include_str!("../../.ci/features").trim());
    command.args(["--", "--show-output", "--include-ignored"]);
    // More than a first look at a clone asks for, and more of the cases.
    command.env("CACHEWISE_TEST_EFFORT", "normal");
    let (reader, writer) = std::io::pipe()?;
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // It keeps copies of the pipe's end to write to, which would never close.
    drop(command);
    let mut left_out = Vec::new();
    for line in BufReader::new(reader).lines() {
        let line = line?;
        println!("{line}");
        if line.contains(": SKIPPED, ") {
            left_out.push(line);
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "cargo test --workspace ended with {status}");
    ensure!(left_out.is_empty(), Lacking(left_out.join("; ")));
    Ok(())
}

/// The page allocator under the model checker, in a target folder of its own since everything is built with
/// another configuration.
fn loom() -> Result<()> {
    let mut command =
        command::cargo("test --release --no-default-features --test loom -p cachewise-pages");
    command.args(["--", "--test-threads=1"]).env("RUSTFLAGS", "--cfg loom");
    run_command(command.env("CARGO_TARGET_DIR", command::target().join("loom")))?;
    Ok(())
}
