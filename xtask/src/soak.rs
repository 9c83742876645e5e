//! The long soak of the page pool; the ten-second one is a test.

use anyhow::{Result, bail};
use cachewise_pages::soak::{Plan, run as soak};
use std::time::Duration;

/// Runs it and prints what was done, or what was wrong.
pub fn run(minutes: u64, threads: usize, mebibytes: usize, seed: u64) -> Result<()> {
    if minutes == 0 || threads == 0 || mebibytes == 0 {
        bail!("minutes, threads and mebibytes: found 0, accepted 1 and more");
    }
    let plan = Plan {
        duration: Duration::from_secs(minutes * 60),
        round: Duration::from_secs(10),
        capacity: mebibytes << 20,
        threads,
        seed,
    };
    let report = match soak(&plan) {
        Ok(report) => report,
        Err(what) => bail!("soak: {what}"),
    };
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
