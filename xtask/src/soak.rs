//! The long soak of the page pool; the ten-second one is a test.

use anyhow::{Result, anyhow, ensure};
use cachewise_pages::soak::{Plan, run as soak};
use std::time::Duration;

/// Runs it and prints what was done, or what was wrong.
pub fn run(minutes: u64, threads: usize, mebibytes: usize, seed: u64) -> Result<()> {
    ensure!(
        minutes > 0 && threads > 0 && mebibytes > 0,
        "minutes, threads and mebibytes: found 0, accepted 1 and more"
    );
    let (duration, round) = (Duration::from_secs(minutes * 60), Duration::from_secs(10));
    let plan = Plan { duration, round, capacity: mebibytes << 20, threads, seed };
    let report = soak(&plan).map_err(|what| anyhow!("soak: {what}"))?;
    let mib = |bytes: u64| bytes >> 20;
    println!(
        "soak: {minutes} min, {} pools, {} blocks, {} MiB read as zero, {} forks, {} MiB trimmed, \
         {} MiB scrubbed, {} engine failures; resident {} MiB at most, {} MiB at the end; nothing wrong",
        report.rounds,
        report.blocks,
        mib(report.zero_bytes),
        report.forks,
        mib(report.trimmed),
        mib(report.scrubbed),
        report.engine_faults,
        mib(report.resident.0),
        mib(report.resident.1),
    );
    Ok(())
}
