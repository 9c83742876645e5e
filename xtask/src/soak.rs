//! The long soak of the page pool, which is a test of its package.

use crate::command::{cargo, run as run_command};
use anyhow::{Result, ensure};

/// Runs it; the test prints what was done, or what was wrong.
pub fn run(minutes: u64, threads: usize, mebibytes: usize, seed: u64) -> Result<()> {
    ensure!(
        minutes > 0 && threads > 0 && mebibytes > 0,
        "minutes, threads and mebibytes: found 0, accepted 1 and more"
    );
    let mut test = cargo("test --release -p cachewise-pages --test process --");
    test.args([
        "--exact",
        "soak::mixed_sizes_threads_forks_trims_and_faulty_engines",
        "--ignored",
        "--nocapture",
    ]);
    run_command(test.env("CACHEWISE_SOAK", format!("{minutes} {threads} {mebibytes} {seed}")))
}
