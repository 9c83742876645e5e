//! Packages as they ship, and commands that have to succeed. Tests of other packages include this.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder in which `cargo build --release` leaves these packages, built without any other's features.
pub fn built(packages: &[&str]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--target-dir"]).arg(target);
    cargo.args(packages.iter().flat_map(|package| ["-p", package]));
    run(cargo.current_dir(env!("CARGO_MANIFEST_DIR")));
    target.join("release")
}

/// Runs what has to succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    output
}
