//! Ten seconds of everything at once, and more where a slow machine needs them. The long form is `cargo run --release -p xtask -- soak`.

mod mixed;

use crate::alone;
use mixed::{Plan, run};
use std::time::Duration;

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn mixed_sizes_threads_forks_trims_and_faulty_engines() {
    let _alone = alone();
    // Minutes, threads, mebibytes and seed of the long form.
    let asked = std::env::var("CACHEWISE_SOAK").ok();
    let plan = match &asked {
        None => Plan {
            duration: Duration::from_secs(10),
            round: Duration::from_millis(1200),
            capacity: 48 << 20,
            threads: 3,
            seed: 20_261_121,
        },
        Some(asked) => {
            let number = |word: &str| word.parse::<u64>().expect("a number");
            let numbers: Vec<u64> = asked.split(' ').map(number).collect();
            let [minutes, threads, mebibytes, seed] = numbers[..] else { panic!("{asked}") };
            Plan {
                duration: Duration::from_secs(minutes * 60),
                round: Duration::from_secs(10),
                capacity: (mebibytes as usize) << 20,
                threads: threads as usize,
                seed,
            }
        }
    };
    let report = run(&plan).unwrap_or_else(|what| panic!("soak: {what}"));
    let mib = |bytes: u64| bytes >> 20;
    println!(
        "soak: {} s, {} pools, {} blocks, {} MiB read as zero, {} forks, {} MiB trimmed, {} MiB scrubbed, \
         {} engine failures; resident {} MiB at most, {} MiB at the end; nothing wrong",
        plan.duration.as_secs(),
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
    assert!(report.rounds >= 4 && report.blocks > 1000 && report.forks > 10, "{report:?}");
    assert!(report.zero_bytes > 0 && report.trimmed > 0 && report.scrubbed > 0, "{report:?}");
    assert!(report.engine_faults > 0, "engines did fail: {report:?}");
}

/// Rather than to go on for ever.
#[test]
fn what_was_not_done_in_a_round_is_told() {
    let _alone = alone();
    let round = Duration::from_millis(1);
    let plan = Plan { duration: round, round, capacity: 4 << 20, threads: 0, seed: 1 };
    let told = run(&plan).expect_err("without a thread there are no blocks");
    assert!(told.contains("blocks: found 0, asked 300"), "{told}");
}
