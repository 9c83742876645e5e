//! The library, built.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("cachewise-pool-preload"))
}

/// By itself, since what is built together has the features of all.
pub fn built(package: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "-p", package, "--target-dir"]).arg(target);
    let output = build.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // A copy, since a build of the whole workspace may replace that file meanwhile; one for each
    // program of tests, which may be at it together.
    let name = format!("lib{}", package.replace('-', "_"));
    let copy = format!("{name}-{}.so", env!("CARGO_CRATE_NAME"));
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(copy);
    std::fs::copy(target.join("release").join(name + ".so"), &copy).expect("a copy");
    copy
}
