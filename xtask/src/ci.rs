//! What CI runs, stage by stage. `.ci/run` installs what a bare machine lacks and calls this.

use crate::command;
use crate::emulate::{self, Options};
use crate::emulate_arch;
use anyhow::{Context as _, Result, bail};
use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How a stage ended.
pub(crate) enum Ended {
    Passed,
    Skipped(String),
}

impl Ended {
    /// Without these Debian packages it cannot run.
    pub(crate) fn lacks(missing: &[&str]) -> Ended {
        Ended::Skipped(format!("install the Debian packages {}", missing.join(" ")))
    }

    /// Skipped where Rust's libraries for that target are not installed.
    pub(crate) fn without_target(target: &str) -> Result<Option<Ended>> {
        let mut told = command::rustc();
        told.args(["--print", "target-libdir", "--target", target]);
        let directory = command::text(&command::output(&mut told)?.stdout);
        let there = Path::new(directory.trim()).is_dir();
        Ok((!there).then(|| Ended::Skipped(format!("rustup target add {target}"))))
    }

    /// Skipped where one of these files is not there, each with the Debian package it comes from.
    pub(crate) fn lacking<'n>(
        needs: impl IntoIterator<Item = &'n (&'n str, &'n str)>,
    ) -> Option<Ended> {
        let missing = needs.into_iter().filter(|(file, _)| !Path::new(file).exists());
        let missing: Vec<&str> = missing.map(|(_, package)| *package).collect();
        (!missing.is_empty()).then(|| Ended::lacks(&missing))
    }

    /// Says so where it was skipped; that is an error unless skips are allowed.
    pub(crate) fn told(self, allow_skips: bool) -> Result<()> {
        match self {
            Ended::Passed => {}
            Ended::Skipped(why) if allow_skips => println!("SKIPPED, {why}"),
            Ended::Skipped(why) => bail!("cannot run: {why}"),
        }
        Ok(())
    }
}

type Stage = (&'static str, fn() -> Result<Ended>);

const STAGES: &[Stage] = &[
    ("format", || cargo(&["fmt", "--all", "--check"])),
    ("lint", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"])
    }),
    // The README's test command.
    ("test", test),
    // What only optimised code can show: the hot path calls nothing and keeps off the stack.
    ("assembly", || cargo(&["test", "--release", "-p", "cachewise", "--test", "assembly"])),
    // The page allocator without an operating system.
    ("no-std-pages", || {
        cargo(&["build", "-p", "cachewise-pages", "--no-default-features", "--lib"])
    }),
    // All interleavings of allocate, free, scrub and trim, and of threads at a site's gate.
    ("loom", loom),
    // Each access of what is pure, interpreted and looked at.
    ("miri", crate::nightly::miri),
    // Unordered accesses of the threads that meet in tests.
    ("thread-sanitizer", crate::nightly::thread_sanitizer),
    ("no-std", || cargo(&["test", "-p", "cachewise", "--no-default-features"])),
    ("matrix", || told(crate::matrix::run())),
    ("conformance", || told(crate::conformance::run(None))),
    ("install", || {
        cargo(&["test", "-p", "xtask", "--features", "installation", "--test", "install"])
    }),
    // The wheel, its tests under two releases of NumPy, and NumPy's own tests in the pool.
    ("python", crate::python::run),
    ("checklist", || crate::checklist::run().map(|()| Ended::Passed)),
    ("links", || crate::links::run().map(|()| Ended::Passed)),
    ("bare-metal", crate::bare_metal::run),
    ("i686", crate::i686::run),
    ("documentation", || cargo(&["doc", "--workspace", "--no-deps", "--document-private-items"])),
    // Each parser, each operation, and calls of a pool; a minute for each took a sixth of the hour.
    ("fuzz", || crate::fuzz::run(&[], 20).map(|()| Ended::Passed)),
    ("report-in-browser", || crate::browser::run(&crate::newest_tuning()?)),
    ("powerpc64le-emulated", || emulate_arch::run(emulate_arch::find("powerpc64le")?, "small")),
    ("aarch64-emulated", || emulate_arch::run(emulate_arch::find("aarch64")?, "small")),
    ("avx512-emulated", avx512),
    // The kernel series: every patch applies, every file that one touches compiles.
    ("linux", crate::linux::compiles),
    // Builds and boots it; the last, since it is left out where the hour is too short.
    (crate::linux::BOOT, crate::linux::boots),
];

/// How long all stages may take together: an hour, less what installing takes.
const TOGETHER: Duration = Duration::from_secs(55 * 60);

/// Runs the stages named, or all, each in a process whose output is kept in `target/ci/STAGE.log`:
/// shown are the closing lines of test runners, and the end of what a stage that failed printed. The
/// other stages run all the same. One that lacks something fails, unless skips are allowed.
pub fn run(names: &[String], allow_skips: bool, verbose: bool) -> Result<()> {
    if let Some(unknown) = names.iter().find(|name| !STAGES.iter().any(|(stage, _)| stage == name))
    {
        let known: Vec<_> = STAGES.iter().map(|(stage, _)| *stage).collect();
        bail!("stage: found \"{unknown}\", accepted {}", known.join(", "));
    }
    let logs = command::target().join("ci");
    fs::create_dir_all(&logs).with_context(|| format!("{}", logs.display()))?;
    let (mut told, mut failed) = (Vec::new(), Vec::new());
    let all_begun = Instant::now();
    for (name, stage) in STAGES {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        let left = TOGETHER.saturating_sub(all_begun.elapsed());
        if *name == crate::linux::BOOT && left < crate::linux::BOOT_LIMIT {
            told.push(format!("{name}: SKIPPED, {} minutes are left", left.as_secs() / 60));
            continue;
        }
        println!("=== {name}");
        let begun = Instant::now();
        let ended = if verbose {
            stage().and_then(|ended| ended.told(allow_skips))
        } else {
            apart(name, allow_skips, &logs)
        };
        let seconds = begun.elapsed().as_secs();
        match ended {
            Ok(()) => told.push(format!("{name}: passed in {seconds} s")),
            Err(error) => {
                println!("{name}: {error:#}");
                told.push(format!("{name}: FAILED in {seconds} s, {error:#}"));
                failed.push(*name);
            }
        }
    }
    println!("=== stages");
    for line in told {
        println!("{line}");
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// A stage in a process of its own.
fn apart(name: &str, allow_skips: bool, logs: &Path) -> Result<()> {
    let (reader, writer) = std::io::pipe()?;
    // The file itself: `cargo test` builds another one in its place.
    let mut command = Command::new("/proc/self/exe");
    command.args(["ci", "--verbose", name]).stdin(Stdio::null());
    if allow_skips {
        command.arg("--allow-skips");
    }
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // It keeps copies of the pipe's end to write to, which would never close.
    drop(command);
    let path = logs.join(format!("{name}.log"));
    let mut log = BufWriter::new(fs::File::create(&path)?);
    let mut last = VecDeque::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        writeln!(log, "{line}")?;
        if is_closing(&line) {
            println!("{line}");
        }
        last.push_back(line);
        if last.len() > SHOWN {
            last.pop_front();
        }
    }
    log.flush()?;
    let status = child.wait()?;
    if !status.success() {
        println!("--- the last lines of {}", path.display());
        for line in &last {
            println!("{line}");
        }
        println!("---");
        bail!("{status}");
    }
    Ok(())
}

/// How much of what a failed stage printed is shown.
const SHOWN: usize = 120;

/// What is shown of a stage that passes, or before the end of one that fails.
fn is_closing(line: &str) -> bool {
    let begins =
        ["test result:", "     Running", "   Doc-tests", "matrix:", "conformance:", "fuzz:"];
    begins.iter().any(|begin| line.starts_with(begin))
        || line.starts_with("emulated ")
        || line.starts_with("python: ")
        || (line.contains(" passed") && line.contains(" in "))
        || line.ends_with("... FAILED")
        || line.contains("SKIPPED, ")
}

fn cargo(arguments: &[&str]) -> Result<Ended> {
    let mut command = command::cargo(arguments);
    if arguments.first() == Some(&"doc") {
        command.env("RUSTDOCFLAGS", "-D warnings");
    }
    command::run(&mut command).map(|()| Ended::Passed)
}

/// All tests; what one of them left out for want of something is known by a word in its output.
fn test() -> Result<Ended> {
    let mut command =
        command::cargo(&["test", "--workspace", "--no-fail-fast", "--", "--show-output"]);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("a pipe")?;
    let mut left_out = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        if line.contains(": SKIPPED, ") {
            left_out.push(line);
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("cargo test --workspace ended with {status}");
    }
    Ok(if left_out.is_empty() { Ended::Passed } else { Ended::Skipped(left_out.join("; ")) })
}

/// The page allocator and the sites' gate under the model checker, in a target folder of its own since
/// everything is built with another configuration.
fn loom() -> Result<Ended> {
    // The pool's tests are built with the library, and that with the table of sites, which loom's
    // gate is not made for.
    let parts = [("cachewise-learn", "--cfg loom_gate"), ("cachewise-pages", "--cfg loom")];
    for (package, flags) in parts {
        let mut command =
            command::cargo(&["test", "--release", "-p", package, "--no-default-features"]);
        command
            .args(["--test", "loom", "--", "--test-threads=1"])
            .env("RUSTFLAGS", flags)
            .env("CARGO_TARGET_DIR", command::target().join("loom"));
        command::run(&mut command)?;
    }
    Ok(Ended::Passed)
}

/// Passed, with a closing line.
fn told(line: Result<String>) -> Result<Ended> {
    println!("{}", line?);
    Ok(Ended::Passed)
}

/// Every AVX-512 kernel and entry on an emulated CPU.
fn avx512() -> Result<Ended> {
    let (kernels, effort) = ("avx512".to_owned(), "small".to_owned());
    emulate::emulate_avx512(&Options { kernels, effort, limit: 12, required: true })
}
