//! `xtask conformance`: other people's tests of memory functions and allocators, under the preload
//! libraries: glibc's (Debian package `glibc-source`) and jemalloc's (crate `tikv-jemalloc-sys`).
//!
//! Every test of a suite is either run, or in [`LEFT_OUT`] with the reason; a new one is neither, and
//! fails.

use crate::command::{
    cargo, command, files_in, output, printed, root, run as run_command, stem, text,
};
use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
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

/// Longest that one test may take, in seconds, on a slow machine beside others.
const LIMIT: &str = "300";

/// A test's program, and what it is run under.
struct Built {
    name: String,
    program: PathBuf,
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

/// Runs the suites; those tests alone whose names contain `only`. The last line counts them.
pub fn run(only: Option<&str>) -> Result<()> {
    let release = crate::install::built("cachewise-pool-preload")?;
    crate::install::built("cachewise-preload")?;
    let scratch = tempfile::tempdir()?;
    let scratch = scratch.path();
    let mut left_out = 0;
    let mut built = glibc(scratch, only, &mut left_out)?;
    built.extend(jemalloc(scratch, only, &mut left_out)?);
    let runs: Vec<(&Built, &Setting)> = built
        .iter()
        .flat_map(|test| test.settings.iter().map(move |setting| (test, setting)))
        .collect();
    let (tests, times) = (built.len(), runs.len());
    ensure!(tests > 0, "no test has such a name");
    let wrong = |(test, setting)| wrong(test, setting, &release, scratch);
    let failed: Vec<String> = runs.into_par_iter().filter_map(wrong).collect();
    ensure!(failed.is_empty(), "{} runs failed:\n{}", failed.len(), failed.join("\n"));
    println!(
        "conformance: {tests} tests passed in {times} runs, {left_out} left out for the reasons above"
    );
    Ok(())
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
    let [told, errors] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
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
    command.args(["-k", "5", LIMIT, "env"]);
    let paths = libraries.iter().map(|library| release.join(library).display().to_string());
    let preload = paths.collect::<Vec<_>>().join(":");
    command.args((!preload.is_empty()).then(|| format!("LD_PRELOAD={preload}")));
    command.args(pool.map(|pool| format!("CACHEWISE_POOL={pool}")));
    command.arg(program).current_dir(scratch).env("HOME", "/nonexistent").env("TMPDIR", scratch);
    command.env_remove("CACHEWISE_PROFILE");
    command.output().context("timeout(1) could not be started")
}

/// glibc's tests of its memory functions and its malloc, built against the system's own.
fn glibc(scratch: &Path, only: Option<&str>, left_out: &mut usize) -> Result<Vec<Built>> {
    let archives = files_in(Path::new("/usr/src/glibc"), "glibc-", ".tar.xz").unwrap_or_default();
    let archive = archives.first();
    let archive =
        archive.context("/usr/src/glibc: no sources; install the Debian package glibc-source")?;
    run_command(command("tar xf").arg(archive).arg("-C").arg(scratch))?;
    let source = scratch.join(stem(archive).trim_end_matches(".tar"));
    let shims = scratch.join("glibc-shims");
    fs::create_dir(&shims)?;
    for file in INNER_HEADERS.split(' ') {
        let from = source.join(file);
        let name = from.file_name().context("a header's name")?;
        fs::copy(&from, shims.join(name))?;
    }
    let ours = root().join("xtask/conformance/glibc");
    let compile = |arguments: &[&Path], file: &Path| -> Result<()> {
        let mut cc = command("cc -std=gnu11 -O2 -w -D_GNU_SOURCE -DTIMEOUTFACTOR=4");
        cc.args(["-include", "limits.h", "-I"]).arg(&ours).arg("-I").arg(&shims);
        // After the system's own: what is left to find are the tests' headers.
        cc.arg("-idirafter").arg(&source).arg("-idirafter").arg(source.join("support"));
        cc.args(arguments).arg("-o").arg(file).args(["-lpthread", "-ldl"]);
        output(&mut cc).map(drop)
    };
    let mut support: Vec<PathBuf> =
        SUPPORT.split_whitespace().map(|name| source.join(format!("support/{name}.c"))).collect();
    support.extend(files_in(&source.join("support"), "x", ".c")?);
    support.retain(|file| !NOT_SUPPORT.contains(&stem(file)));
    support.push(ours.join("paths.c"));
    let mut objects = Vec::new();
    for file in support {
        let object = shims.join(stem(&file)).with_extension("o");
        compile(&[Path::new("-c"), &file], &object)?;
        objects.push(object);
    }
    let library = shims.join("libsupport.a");
    output(command("ar rcs").arg(&library).args(&objects))?;

    let mut built = Vec::new();
    for (folder, beginning, settings) in [
        ("string", "test-mem", MEMORY),
        ("string", "test-bcopy", MEMORY),
        ("string", "test-bzero", MEMORY),
        ("malloc", "tst-", ALLOCATOR),
    ] {
        for file in files_in(&source.join(folder), beginning, ".c")? {
            let name = stem(&file);
            if chosen(name, only, left_out) {
                let program = scratch.join(name);
                compile(&[&file, &library], &program)?;
                built.push(Built { name: format!("glibc {name}"), program, settings });
            }
        }
    }
    Ok(built)
}

/// jemalloc's integration tests, with C's own functions behind them.
fn jemalloc(scratch: &Path, only: Option<&str>, left_out: &mut usize) -> Result<Vec<Built>> {
    let ours = root().join("xtask/conformance");
    let mut metadata = cargo("metadata --format-version 1 --locked --manifest-path");
    let told = printed(metadata.arg(ours.join("sources/Cargo.toml")))?;
    let metadata: serde_json::Value = serde_json::from_str(&told)?;
    let packages = metadata["packages"].as_array().context("packages")?;
    let package = packages.iter().find(|package| package["name"] == "tikv-jemalloc-sys");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = Path::new(manifest.context("tikv-jemalloc-sys")?);
    let folder = manifest.with_file_name("jemalloc/test/integration");
    let mut built = Vec::new();
    for file in files_in(&folder, "", ".c")? {
        let name = stem(&file);
        if chosen(name, only, left_out) {
            let program = scratch.join(format!("jemalloc-{name}"));
            // Without builtins the compiler does not think away what is allocated and freed.
            let mut cc = command("cc -std=gnu11 -O1 -w -fno-builtin -I");
            output(cc.arg(ours.join("jemalloc")).arg(&file).arg("-o").arg(&program))?;
            let name = format!("jemalloc {name}");
            built.push(Built { name, program, settings: ALLOCATOR });
        }
    }
    Ok(built)
}
