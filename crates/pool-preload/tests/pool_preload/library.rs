//! The library, built.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--release", "-p", "cachewise-pool-preload", "--target-dir"]);
        let output = build.arg(target).current_dir(env!("CARGO_MANIFEST_DIR")).output();
        let output = output.expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // A copy, since a build of the whole workspace may replace that file meanwhile; one for each
        // program of tests, which may be at it together.
        let name = format!("libcachewise_pool_preload-{}.so", env!("CARGO_CRATE_NAME"));
        let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::copy(target.join("release/libcachewise_pool_preload.so"), &copy).expect("a copy");
        copy
    })
}
