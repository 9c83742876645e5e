//! `xtask sanitizers`: the C interfaces with their tests and examples under AddressSanitizer and
//! ThreadSanitizer. Rust's standard library is built with them too (component `rust-src`), or what it
//! does between threads would look like races. The C side and the run-time are GCC's.

use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::process::Command;

const COMPILED_FOR: &str = "x86_64-unknown-linux-gnu";

/// The package, its static library, and what of its C sources is run.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    (
        "capi",
        "libcachewise_c.a",
        &[
            "tests/c/contract.c",
            "tests/c/parallel.c",
            "examples/log_ring.c",
            "examples/publisher.c",
        ],
    ),
    ("pool-capi", "libcachewise_pool_c.a", &["tests/c/contract.c", "examples/row_cache.c"]),
];

/// Builds and runs; returns how many programs ran.
pub fn run() -> Result<usize> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut ran = 0;
    for sanitizer in ["address", "thread"] {
        let target = root.join("target/sanitizers").join(sanitizer);
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--release", "-Zbuild-std=std,panic_abort", "--target", COMPILED_FOR]);
        cargo.args(["-p", "cachewise-capi", "-p", "cachewise-pool-capi", "--target-dir"]);
        cargo.arg(&target).current_dir(&root).env("RUSTC_BOOTSTRAP", "1");
        // Shared libraries are linked as well, where the run-time's symbols are the program's to bring.
        cargo.env("RUSTFLAGS", format!("-Zsanitizer={sanitizer}"));
        let status = cargo.status()?;
        ensure!(status.success(), "not built; `rustup component add rust-src`? {status}");
        for (package, library, sources) in PROGRAMS {
            let folder = root.join("crates").join(package);
            for source in *sources {
                let name = format!("{package}-{}", source.replace(['/', '.'], "-"));
                let program = target.join(&name);
                let mut compile = Command::new("cc");
                compile.args(["-std=gnu11", "-O1", "-g", "-pthread"]);
                compile.arg(format!("-fsanitize={sanitizer}"));
                compile.arg("-I").arg(folder.join("include")).arg("-o").arg(&program);
                compile.arg(folder.join(source));
                compile.arg(target.join(COMPILED_FOR).join("release").join(library));
                let output = compile.args(["-ldl", "-lm"]).output()?;
                let told = String::from_utf8_lossy(&output.stderr);
                ensure!(output.status.success(), "{compile:?}: {told}");
                let mut command = Command::new("timeout");
                command.args(["-k", "5", "300"]).arg(&program).env("HOME", "/nonexistent");
                command
                    .env("TSAN_OPTIONS", "halt_on_error=1")
                    .env("ASAN_OPTIONS", "detect_leaks=0");
                let output = command.output().context("timeout(1) could not be started")?;
                let told = String::from_utf8_lossy(&output.stderr);
                ensure!(output.status.success(), "{name}, {sanitizer}: {}\n{told}", output.status);
                println!("{name}, {sanitizer}: passed");
                ran += 1;
            }
        }
    }
    Ok(ran)
}
