//! `xtask conformance`: other people's tests of memory functions and allocators, under the preload
//! libraries: glibc's (Debian package `glibc-source`) and jemalloc's (crate `tikv-jemalloc-sys`).
//!
//! Every test of a suite is either run, or in [`LEFT_OUT`] with the reason; a new one is neither, and
//! fails.

use crate::command::{
    cargo, command, files_in, output, printed, root, run as run_command, stem, text,
};
use anyhow::{Context as _, Result, ensure};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// Tests that are not run, by the beginning of their names: nothing of ours could fail in them.
const LEFT_OUT: &[(&str, &str)] = &[
    ("test-memccpy test-memchr test-memmem test-memrchr", "not a function that we export"),
    (
        "tst-alloc_buffer tst-dynarray tst-scratch_buffer",
        "glibc's inner interface, which it does not export",
    ),
    ("tst-compathooks tst-mallocstate", "hooks that glibc keeps for programs linked before 2.34"),
    // Seen to end by SIGSEGV in some runs with a pool, since its neighbours there are the pool's.
    (
        "tst-free-errno",
        "maps over the pages beside its block, which only glibc's own mapping leaves free",
    ),
    ("tst-interpose", "the program brings a malloc of its own, which comes before ours"),
    ("tst-malloc-usable", "tests libc_malloc_debug.so under its variables"),
    ("tst-safe-linking", "damages glibc's own heap and expects glibc's own words"),
    ("aligned_alloc", "expects EINVAL for an alignment that glibc accepts"),
    (
        "MALLOCX_ARENA allocated extent mallocx rallocx sdallocx slab_sizes smallocx thread_arena \
         thread_tcache_enabled xallocx",
        "jemalloc's own interface",
    ),
];

/// Longest that one test may take, in seconds, on a slow machine beside others.
const LIMIT: &str = "300";

/// A test's program below the scratch folder, and what it is run under.
struct Test {
    program: String,
    settings: &'static [Setting],
}

/// What a test runs under: a name, the libraries, the pool's size.
type Setting = (&'static str, &'static [&'static str], Option<&'static str>);

const PLAIN: Setting = ("plain", &[], None);
const MEMORY: &[Setting] = &[("preload", &["libcachewise_preload.so"], None)];
const ALLOCATOR: &[Setting] = &[
    ("pool of 64M", &["libcachewise_pool_preload.so"], Some("64M")),
    ("no pool", &["libcachewise_pool_preload.so"], None),
    ("both", &["libcachewise_preload.so", "libcachewise_pool_preload.so"], Some("64M")),
];

/// Runs the suites; those tests alone whose names contain `only`. `conformance/Makefile` builds them. The last
/// line counts them.
pub fn run(only: Option<&str>) -> Result<()> {
    let release = crate::install::built("cachewise-pool-preload")?;
    crate::install::built("cachewise-preload")?;
    let scratch = tempfile::tempdir()?;
    let scratch = scratch.path();
    let (glibc, jemalloc) = (glibc(scratch)?, jemalloc()?);
    let (mut tests, mut left_out) = (Vec::new(), 0);
    for (suite, folder, beginning, settings) in [
        ("glibc", glibc.join("string"), "test-mem", MEMORY),
        ("glibc", glibc.join("string"), "test-bcopy", MEMORY),
        ("glibc", glibc.join("string"), "test-bzero", MEMORY),
        ("glibc", glibc.join("malloc"), "tst-", ALLOCATOR),
        ("jemalloc", jemalloc.clone(), "", ALLOCATOR),
    ] {
        for name in files_in(&folder, beginning, ".c")?.iter().map(|file| stem(file)) {
            if chosen(name, only, &mut left_out) {
                tests.push(Test { program: format!("{suite}/{name}"), settings });
            }
        }
    }
    ensure!(!tests.is_empty(), "no test has such a name");
    let mut make = command("make --silent --jobs");
    make.arg(rayon::current_num_threads().to_string()).arg("-C").arg(scratch);
    make.arg("-f").arg(root().join("xtask/conformance/Makefile"));
    make.arg(format!("GLIBC={}", glibc.display())).arg(format!("JEMALLOC={}", jemalloc.display()));
    output(make.args(tests.iter().map(|test| &test.program)))?;
    let runs: Vec<(&Test, &Setting)> = tests
        .iter()
        .flat_map(|test| test.settings.iter().map(move |setting| (test, setting)))
        .collect();
    let (tests, times) = (tests.len(), runs.len());
    let wrong = |(test, setting)| wrong(test, setting, &release, scratch);
    let failed: Vec<String> = runs.into_par_iter().filter_map(wrong).collect();
    ensure!(failed.is_empty(), "{} runs failed:\n{}", failed.len(), failed.join("\n"));
    println!(
        "conformance: {tests} tests passed in {times} runs, {left_out} left out for the reasons above"
    );
    Ok(())
}

/// Runs one test, and where it fails once more without our libraries; says whose fault it is.
fn wrong(test: &Test, setting: &Setting, release: &Path, scratch: &Path) -> Option<String> {
    let begun = Instant::now();
    let name = format!("{}, {}", test.program.replace('/', " "), setting.0);
    let program = scratch.join(&test.program);
    let output = match under(&program, setting, release, scratch) {
        Ok(output) => output,
        Err(error) => return Some(format!("{name}: {error:#}")),
    };
    if output.status.success() {
        println!("{name}: passed in {:.1} s", begun.elapsed().as_secs_f64());
        return None;
    }
    let [told, errors] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
    println!("{name}: FAILED, {}\n{told}{errors}", output.status);
    let plain = under(&program, &PLAIN, release, scratch);
    let alone = plain.is_ok_and(|output| output.status.success());
    let whose = if alone { "passes without" } else { "fails without as well" };
    Some(format!("{name}: {}; {whose}", output.status))
}

/// Whether a test is run; says so where it is not.
fn chosen(name: &str, only: Option<&str>, left_out: &mut usize) -> bool {
    if only.is_some_and(|only| !name.contains(only)) {
        return false;
    }
    let is_named = |names: &str| names.split(' ').any(|beginning| name.starts_with(beginning));
    let reason = LEFT_OUT.iter().find(|(names, _)| is_named(names));
    if let Some((_, reason)) = reason {
        println!("{name}: left out: {reason}");
        *left_out += 1;
    }
    reason.is_none()
}

fn under(program: &Path, setting: &Setting, release: &Path, scratch: &Path) -> Result<Output> {
    let (_, libraries, pool) = setting;
    // A test that hangs has failed.
    let mut command = Command::new("timeout");
    command.args(["-k", "5", LIMIT, "env"]);
    let paths = libraries.iter().map(|library| release.join(library).display().to_string());
    let preload = paths.collect::<Vec<_>>().join(":");
    command.args((!preload.is_empty()).then(|| format!("LD_PRELOAD={preload}")));
    command.args(pool.map(|pool| format!("CACHEWISE_POOL={pool}")));
    command.arg(program).current_dir(scratch).env("HOME", "/nonexistent").env("TMPDIR", scratch);
    command.env_remove("CACHEWISE_PROFILE");
    command.output().context("timeout(1) could not be started")
}

/// glibc's sources, unpacked.
fn glibc(scratch: &Path) -> Result<PathBuf> {
    let archives = files_in(Path::new("/usr/src/glibc"), "glibc-", ".tar.xz").unwrap_or_default();
    let archive = archives.first();
    let archive =
        archive.context("/usr/src/glibc: no sources; install the Debian package glibc-source")?;
    run_command(command("tar xf").arg(archive).arg("-C").arg(scratch))?;
    Ok(scratch.join(stem(archive).trim_end_matches(".tar")))
}

/// The folder of jemalloc's integration tests, which run with C's own functions behind them.
fn jemalloc() -> Result<PathBuf> {
    let mut metadata = cargo("metadata --format-version 1 --locked --manifest-path");
    let told = printed(metadata.arg(root().join("xtask/conformance/sources/Cargo.toml")))?;
    let metadata: serde_json::Value = serde_json::from_str(&told)?;
    let packages = metadata["packages"].as_array().context("packages")?;
    let package = packages.iter().find(|package| package["name"] == "tikv-jemalloc-sys");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = Path::new(manifest.context("tikv-jemalloc-sys")?);
    Ok(manifest.with_file_name("jemalloc/test/integration"))
}
