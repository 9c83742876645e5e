//! `xtask conformance`: other people's tests of memory functions and allocators, under the preload
//! libraries: glibc's (Debian package `glibc-source`) and jemalloc's (crate `tikv-jemalloc-sys`).
//!
//! Every test of a suite is either run, or in [`LEFT_OUT`] with the reason; a new one is neither, and
//! fails.

use crate::command::{self, files_in, output, root};
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::{Duration, Instant};

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

/// glibc's support library, as far as the tests above need it; and all of `support/x*.c`.
const SUPPORT: &str = "blob_repeat check delayed_exit ignore_stderr next_to_fault oom_error \
    support_isolate_in_subprocess support_quote_blob support_quote_string \
    support_record_failure support_set_small_thread_stack_size support_shared_allocate \
    support_subprocess support_test_compare_blob support_test_compare_failure \
    support_test_compare_string support_test_main support_test_verify_impl temp_file timespec \
    write_message";

/// Of `support/x*.c`, what takes more of glibc's inner headers than the tests need.
const NOT_SUPPORT: &[&str] = &["xclone", "xreadlink"];

/// Headers that glibc's tests include and no system has.
const INNER_HEADERS: &str = "include/array_length.h include/intprops.h include/libc-diag.h \
    include/libc-pointer-arith.h sysdeps/generic/malloc-alignment.h \
    sysdeps/generic/malloc-size.h";

/// Longest that one test may take, on a slow machine beside others.
const LIMIT: Duration = Duration::from_secs(300);

/// A test's program.
struct Built {
    name: String,
    program: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Memory functions.
    Memory,
    /// Allocators.
    Allocator,
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

/// Runs the suites; those tests alone whose names contain `only`. Returns a line that counts them.
pub fn run(only: Option<&str>) -> Result<String> {
    let release = crate::install::built("cachewise-pool-preload")?;
    crate::install::built("cachewise-preload")?;
    let scratch = tempfile::tempdir()?;
    let mut left_out = 0;
    let mut built = glibc(scratch.path(), only, &mut left_out)?;
    built.extend(jemalloc(scratch.path(), only, &mut left_out)?);
    let mut runs: Vec<(&Built, &Setting)> = Vec::new();
    for test in &built {
        let settings = if test.kind == Kind::Memory { MEMORY } else { ALLOCATOR };
        runs.extend(settings.iter().map(|setting| (test, setting)));
    }
    let (tests, times) = (built.len(), runs.len());
    ensure!(tests > 0, "no test has such a name");
    let failed = Mutex::new(Vec::new());
    let waiting = Mutex::new(runs);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.pop());
    std::thread::scope(|scope| {
        for _ in 0..cpus {
            scope.spawn(|| {
                while let Some((test, setting)) = next() {
                    let why = wrong(test, setting, &release, scratch.path());
                    if let (Some(why), Ok(mut failed)) = (why, failed.lock()) {
                        failed.push(why);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_default();
    ensure!(failed.is_empty(), "{} runs failed:\n{}", failed.len(), failed.join("\n"));
    Ok(format!(
        "conformance: {tests} tests passed in {times} runs, {left_out} left out for the reasons above"
    ))
}

/// Runs one test, and where it fails once more without our libraries; says whose fault it is.
fn wrong(test: &Built, setting: &Setting, release: &Path, scratch: &Path) -> Option<String> {
    let begun = Instant::now();
    let name = format!("{}, {}", test.name, setting.0);
    let output = match under(&test.program, setting, release, scratch) {
        Ok(output) => output,
        Err(error) => return Some(format!("{name}: {error:#}")),
    };
    if output.status.success() {
        println!("{name}: passed in {:.1} s", begun.elapsed().as_secs_f64());
        return None;
    }
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{name}: FAILED, {}\n{told}{errors}", output.status);
    let plain = under(&test.program, &PLAIN, release, scratch);
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
    command.arg("-k").arg("5").arg(LIMIT.as_secs().to_string()).arg("env");
    if !libraries.is_empty() {
        let paths: Vec<_> =
            libraries.iter().map(|library| release.join(library).display().to_string()).collect();
        command.arg(format!("LD_PRELOAD={}", paths.join(":")));
    }
    if let Some(pool) = pool {
        command.arg(format!("CACHEWISE_POOL={pool}"));
    }
    command.arg(program).current_dir(scratch).env("HOME", "/nonexistent").env("TMPDIR", scratch);
    command.env_remove("CACHEWISE_PROFILE");
    command.output().context("timeout(1) could not be started")
}

/// glibc's tests of its memory functions and its malloc, built against the system's own.
fn glibc(scratch: &Path, only: Option<&str>, left_out: &mut usize) -> Result<Vec<Built>> {
    let archives = files_in(Path::new("/usr/src/glibc"), "glibc-", ".tar.xz").unwrap_or_default();
    let archive = archives
        .first()
        .context("/usr/src/glibc: no sources; install the Debian package glibc-source")?;
    command::run(Command::new("tar").arg("xf").arg(archive).arg("-C").arg(scratch))?;
    let name = archive.file_name().and_then(|name| name.to_str()).context("an archive's name")?;
    let source = scratch.join(name.trim_end_matches(".tar.xz"));
    let shims = scratch.join("glibc-shims");
    fs::create_dir(&shims)?;
    for file in INNER_HEADERS.split(' ') {
        let from = source.join(file);
        let name = from.file_name().context("a header's name")?;
        fs::copy(&from, shims.join(name)).with_context(|| from.display().to_string())?;
    }
    let ours = root().join("xtask/conformance/glibc");
    let compile = |arguments: &[&Path], file: &Path| -> Result<()> {
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-O2", "-w", "-D_GNU_SOURCE", "-DTIMEOUTFACTOR=4"]);
        command.args(["-include", "limits.h", "-I"]).arg(&ours).arg("-I").arg(&shims);
        // After the system's own: what is left to find are the tests' headers.
        command.arg("-idirafter").arg(&source).arg("-idirafter").arg(source.join("support"));
        command.args(arguments).arg("-o").arg(file).args(["-lpthread", "-ldl"]);
        output(&mut command).map(drop)
    };
    let mut support: Vec<PathBuf> =
        SUPPORT.split(' ').map(|name| source.join(format!("support/{name}.c"))).collect();
    support.extend(files_in(&source.join("support"), "x", ".c")?.into_iter().filter(|file| {
        !NOT_SUPPORT.iter().any(|name| file.file_stem().is_some_and(|stem| stem == *name))
    }));
    support.push(ours.join("paths.c"));
    let mut objects = Vec::new();
    for file in support {
        let object = shims.join(file.file_name().context("a source's name")?).with_extension("o");
        compile(&[Path::new("-c"), &file], &object)?;
        objects.push(object);
    }
    let library = shims.join("libsupport.a");
    output(Command::new("ar").arg("rcs").arg(&library).args(&objects))?;

    let mut built = Vec::new();
    for (folder, beginning, kind) in [
        ("string", "test-mem", Kind::Memory),
        ("string", "test-bcopy", Kind::Memory),
        ("string", "test-bzero", Kind::Memory),
        ("malloc", "tst-", Kind::Allocator),
    ] {
        for file in files_in(&source.join(folder), beginning, ".c")? {
            let name = file.file_stem().and_then(|name| name.to_str()).context("a name")?;
            if chosen(name, only, left_out) {
                let program = scratch.join(name);
                compile(&[&file, &library], &program)?;
                built.push(Built { name: format!("glibc {name}"), program, kind });
            }
        }
    }
    Ok(built)
}

/// jemalloc's integration tests, with C's own functions behind them.
fn jemalloc(scratch: &Path, only: Option<&str>, left_out: &mut usize) -> Result<Vec<Built>> {
    let ours = root().join("xtask/conformance");
    let mut cargo =
        command::cargo(&["metadata", "--format-version", "1", "--locked", "--manifest-path"]);
    let told = output(cargo.arg(ours.join("sources/Cargo.toml")))?;
    let metadata: serde_json::Value = serde_json::from_slice(&told.stdout)?;
    let packages = metadata["packages"].as_array().context("packages")?;
    let package = packages.iter().find(|package| package["name"] == "tikv-jemalloc-sys");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let folder = Path::new(manifest.context("tikv-jemalloc-sys")?)
        .parent()
        .context("a folder")?
        .join("jemalloc/test/integration");
    let mut built = Vec::new();
    for file in files_in(&folder, "", ".c")? {
        let name = file.file_stem().and_then(|name| name.to_str()).context("a name")?;
        if chosen(name, only, left_out) {
            let program = scratch.join(format!("jemalloc-{name}"));
            let mut command = Command::new("cc");
            // Without builtins the compiler does not think away what is allocated and freed.
            command.args(["-std=gnu11", "-O1", "-w", "-fno-builtin", "-I"]);
            command.arg(ours.join("jemalloc")).arg(&file).arg("-o").arg(&program);
            output(&mut command)?;
            built.push(Built { name: format!("jemalloc {name}"), program, kind: Kind::Allocator });
        }
    }
    Ok(built)
}
