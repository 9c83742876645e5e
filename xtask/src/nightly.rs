//! The stages that need a nightly compiler: Miri and ThreadSanitizer. `.ci/nightly` names its date, so
//! that what passes today passes tomorrow; `.ci/run` installs it.

use crate::command::{self, command, printed, root, run, target};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;

const TOOLCHAIN: &str = include_str!("../../.ci/nightly");
const SANITIZED: &str = "x86_64-unknown-linux-gnu";
/// Flags of the sanitizer. It follows mappings through the C library only: a new one where another was has no past.
const SANITIZE: &str = "-Zsanitizer=thread --cfg rustix_use_libc";
const THREADS: &str = "thread-sanitizer";
/// For Miri: no crate has inline assembly there.
const INTERPRETED: &str = "powerpc64le-unknown-linux-gnu";

/// Tests that have no system call and no instruction of their own, and of these the ones that are left
/// out. `cfg!(miri)` makes the amount of work smaller where a test has much of it.
const PURE: [(&str, &[&str]); 2] = [
    // The parser of profiles; its other tests ask the CPU what it is.
    ("-p cachewise --test all corpus", &[]),
    ("-p cachewise-pages --no-default-features --lib --test pure", LONG),
];

/// Thousands of steps, or of frames: minutes each, interpreted. These modules have no unsafe code.
const LONG: &[&str] = &[
    "bookkeeping_is_16_bytes_per_page_and_orders_go_to_18",
    "every_size_and_order_takes_all_and_gives_all_back",
    "model_",
];

/// Tests whose threads meet. ThreadSanitizer sees what Rust compiles, and not the kernels' assembly.
const THREADED: &str = "-p cachewise-pages --lib --test all";

pub(crate) fn miri() -> Result<()> {
    installed(&["miri", "rust-src"])?;
    for (tests, left_out) in PURE {
        let mut miri = cargo("miri");
        miri.args(["miri", "test", "--target", INTERPRETED]).args(tests.split(' ')).arg("--");
        miri.args(left_out.iter().flat_map(|test| ["--skip", test]));
        // Corpora and the folder of a test are files.
        run(miri.env("MIRIFLAGS", "-Zmiri-disable-isolation"))?;
    }
    Ok(())
}

pub(crate) fn thread_sanitizer() -> Result<()> {
    installed(&["rust-src"])?;
    let mut tests = cargo(THREADS);
    tests.args(["test", "-Zbuild-std", "--target", SANITIZED]).args(THREADED.split(' '));
    tests.args(["--", "--include-ignored"]);
    // Tests of forks start threads in the child, which has a copy of this one thread alone.
    run(tests.env("RUSTFLAGS", SANITIZE).env("TSAN_OPTIONS", "die_after_fork=0"))?;
    c_under_thread_sanitizer()
}

/// One program of threads on both C interfaces. Its own accesses are followed too: those of two threads to
/// one block are ordered by the pool, or by nothing.
fn c_under_thread_sanitizer() -> Result<()> {
    let archives = target().join(THREADS).join(SANITIZED).join("debug");
    let scratch = tempfile::tempdir()?;
    let (object, program) = (scratch.path().join("threads.o"), scratch.path().join("threads"));
    let mut compile = command("cc -fsanitize=thread -g -O1 -DCOPIES -c");
    for (wing, package) in [("lib", "capi"), ("memory", "pool-capi")] {
        compile.arg("-I").arg(root().join(wing).join(package).join("include"));
        let mut build = cargo(THREADS);
        build.args(["rustc", "-Zbuild-std", "--target", SANITIZED, "--lib"]);
        build.args(["-p", &format!("cachewise-{package}"), "--crate-type", "staticlib"]);
        run(build.env("RUSTFLAGS", SANITIZE))?;
    }
    compile.arg(root().join("memory/pool-capi/tests/c/threads.c"));
    run(compile.arg("-o").arg(&object))?;
    // Rust's runtime of the sanitizer, and not that of the C compiler: there can be one.
    let sysroot = printed(&mut of_toolchain("rustc --print sysroot"))?;
    let runtimes = Path::new(sysroot.trim()).join("lib/rustlib").join(SANITIZED).join("lib");
    let mut link = command("cc -rdynamic -Wl,--whole-archive");
    link.arg("-o").arg(&program).arg(&object);
    link.arg(runtimes.join("librustc-nightly_rt.tsan.a")).arg("-Wl,--no-whole-archive");
    link.args(["libcachewise_pool_c.a", "libcachewise_c.a"].map(|name| archives.join(name)));
    run(link.args(["-lpthread", "-ldl", "-lm", "-lrt", "-lgcc_s"]))?;
    run(Command::new(&program).env("HOME", "/nonexistent"))
}

fn of_toolchain(words: &str) -> Command {
    command(&format!("rustup run {} {words}", TOOLCHAIN.trim()))
}

/// In a target folder of its own, since all is built with another configuration.
fn cargo(folder: &str) -> Command {
    let mut cargo = of_toolchain("cargo");
    cargo.env("CARGO_TARGET_DIR", target().join(folder)).current_dir(root());
    cargo
}

/// Fails where a component is missing, and says what installs it.
fn installed(components: &[&str]) -> Result<()> {
    let toolchain = TOOLCHAIN.trim();
    let listed = command("rustup component list --toolchain").arg(toolchain).output();
    let listed = listed.map(|output| command::text(&output.stdout)).unwrap_or_default();
    for component in components {
        let mut lines = listed.lines().filter(|line| line.starts_with(component));
        ensure!(
            lines.any(|line| line.trim_end().ends_with("(installed)")),
            "{component} of {toolchain} is not installed: rustup toolchain install {toolchain} \
             --profile minimal --component miri --component rust-src"
        );
    }
    Ok(())
}
