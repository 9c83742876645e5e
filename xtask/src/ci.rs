//! Stages of CI: lists of commands. `.ci/run` installs what a bare machine lacks and calls this.

use crate::command::{self, accepted, root};
use anyhow::{Context as _, Result, bail, ensure};
use fs_err as fs;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A name, and commands that run one after the other until one fails; `xtask CHORE` is a chore of this program. In the
/// order in which they begin: a short one last, so that none is waited for alone.
const STAGES: &[(&str, &[&str])] = &[
    (
        "lint",
        &[
            "cargo fmt --all --check",
            "cargo clippy --workspace --all-targets --features $FEATURES,xtask/installation -- -D warnings",
        ],
    ),
    // The README's test command, with more cases; then what only optimised code can show.
    (
        "test",
        &[
            "CACHEWISE_TEST_EFFORT=normal cargo test --workspace --no-fail-fast --features $FEATURES -- --show-output --include-ignored",
            "cargo test --release -p cachewise --test assembly",
        ],
    ),
    ("linux", &["xtask linux"]),
    ("python", &["xtask python"]),
    // And the crates, each from its own files alone.
    (
        "install",
        &[
            "cargo package --allow-dirty --quiet -p cachewise-kernels -p cachewise -p cachewise-host -p cachewise-pages",
            "cargo test -p xtask --features installation --test install --test dist",
            // The static command and the wheel for musl, which dist makes.
            "cargo check --quiet --workspace --exclude xtask --lib --bins --target x86_64-unknown-linux-musl",
        ],
    ),
    ("avx512-emulated", &["xtask emulate-avx512 --limit 30"]),
    ("powerpc64le-emulated", &["xtask emulate-arch powerpc64le"]),
    ("aarch64-emulated", &["xtask emulate-arch aarch64"]),
    ("fuzz", &["xtask fuzz --seconds 4"]),
    ("thread-sanitizer", &["xtask thread-sanitizer"]),
    ("miri", &["xtask miri"]),
    // All interleavings of allocate, free, scrub and trim.
    (
        "loom",
        &[
            "RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=$TARGET/loom cargo test --release --no-default-features --test loom -p cachewise-pages -- --test-threads=1",
        ],
    ),
    (
        "no-std",
        &[
            "cargo build -p cachewise-pages --no-default-features --lib",
            "cargo test -p cachewise --no-default-features",
        ],
    ),
    ("conformance", &["xtask conformance"]),
    (
        "documents",
        &[
            "xtask splice --check",
            "xtask links",
            "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --document-private-items --features $FEATURES",
        ],
    ),
    ("report-in-browser", &["xtask report-in-browser"]),
    ("matrix", &["xtask matrix"]),
    ("size", &["xtask size"]),
];

/// Features of the workspace, the same wherever it is built, so that crates compile once.
const FEATURES: &str = include_str!("../../.ci/features");

/// Lines shown of what a failed stage printed.
const SHOWN: usize = 120;

/// Runs the stages named, or all, two at once where there are two CPUs; their output is kept in
/// `target/ci/STAGE.log`. Shown are the closing lines of test runners, and the end of what a stage that failed printed;
/// with `verbose` everything, one stage after the other. A stage that skips a part fails, unless skips are allowed.
pub fn run(names: &[String], allow_skips: bool, verbose: bool) -> Result<()> {
    accepted("stage", names, &STAGES.iter().map(|(stage, _)| *stage).collect::<Vec<_>>())?;
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let logs = command::target().join("ci");
    fs::create_dir_all(&logs)?;
    let (begun, ended) = (Instant::now(), Mutex::new(Vec::new()));
    let next = Mutex::new(STAGES.iter().enumerate().filter(|(_, (name, _))| is_wanted(name)));
    let work = || {
        // Taken by itself, so that the list is free while the stage runs.
        let taken = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((place, (name, commands))) = taken() {
            println!("=== {name} begins");
            let (begun, mut shown) = (Instant::now(), Vec::new());
            let outcome = stage(commands, &logs.join(format!("{name}.log")), verbose, &mut shown);
            let seconds = begun.elapsed().as_secs();
            let told = match outcome {
                Ok((cpu, skipped)) if skipped.is_empty() || allow_skips => {
                    Ok(format!("passed in {seconds} s, {cpu:.0} s of CPU"))
                }
                Ok((_, skipped)) => Err(format!("FAILED in {seconds} s: {}", skipped.join("; "))),
                Err(error) => Err(format!("FAILED in {seconds} s: {error:#}")),
            };
            println!("=== {name}\n{}", shown.join("\n"));
            ended.lock().unwrap_or_else(PoisonError::into_inner).push((place, *name, told));
        }
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = if verbose { 1 } else { cpus.min(2) };
    std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work))));
    let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.sort_by_key(|(place, ..)| *place);
    println!("=== stages, all in {} s", begun.elapsed().as_secs());
    for (_, name, told) in &ended {
        println!("{name}: {}", told.as_ref().unwrap_or_else(|failed| failed));
    }
    let failed: Vec<&str> =
        ended.iter().filter(|(.., told)| told.is_err()).map(|(_, name, _)| *name).collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Runs the commands of a stage. Its CPU seconds, and the lines that say what was skipped.
fn stage(
    commands: &[&str],
    path: &Path,
    verbose: bool,
    shown: &mut Vec<String>,
) -> Result<(f64, Vec<String>)> {
    let mut log = BufWriter::new(fs::File::create(path)?);
    let (mut cpu, mut skipped) = (0.0, Vec::new());
    for words in commands {
        let (reader, writer) = std::io::pipe()?;
        // The shell tells the CPU time of all that it started in its last line.
        let script = format!(
            "xtask() {{ \"$XTASK\" \"$@\"; }}; TIMEFORMAT='CPU %U %S'; time {{ {words}; }}"
        );
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(root()).stdin(Stdio::null());
        // The file itself: `cargo test` builds another one in its place.
        shell.env("XTASK", format!("/proc/{}/exe", std::process::id()));
        shell.env("FEATURES", FEATURES.trim()).env("TARGET", command::target());
        shell.stdout(writer.try_clone()?).stderr(writer);
        let mut child = shell.spawn().context("bash")?;
        // It keeps copies of the pipe's end to write to, which would never close.
        drop(shell);
        for line in BufReader::new(reader).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            writeln!(log, "{line}")?;
            if verbose {
                println!("{line}");
            }
            if let Some(times) = line.strip_prefix("CPU ") {
                cpu += times.split(' ').filter_map(|time| time.parse::<f64>().ok()).sum::<f64>();
            }
            skipped.extend(line.contains("SKIPPED, ").then(|| line.clone()));
            shown.extend((!verbose && is_closing(&line)).then_some(line));
        }
        log.flush()?;
        let status = child.wait()?;
        if status.code() == Some(command::LACKING.into()) {
            skipped.push(format!("{words}: SKIPPED, see {}", path.display()));
        } else if !status.success() {
            let told = fs::read_to_string(path)?;
            let lines: Vec<&str> = told.lines().collect();
            shown.push(format!("--- the last lines of {}", path.display()));
            shown.push(lines[lines.len().saturating_sub(SHOWN)..].join("\n") + "\n---");
            bail!("{words}: {status}");
        }
    }
    Ok((cpu, skipped))
}

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
        "size: ",
    ];
    beginnings.iter().any(|beginning| line.starts_with(beginning))
        || (line.contains(" passed") && line.contains(" in "))
        || line.ends_with("... FAILED")
        || line.contains("SKIPPED, ")
}
