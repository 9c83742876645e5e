//! Ten seconds of everything at once, and more where a slow machine needs them. The long form is `cargo run --release -p xtask -- soak`.

use crate::alone;
use cachewise_pages::soak::{Plan, run};
use std::time::Duration;

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn ten_seconds_of_mixed_sizes_threads_forks_trims_and_faulty_engines() {
    let _alone = alone();
    let plan = Plan {
        duration: Duration::from_secs(10),
        round: Duration::from_millis(1200),
        capacity: 48 << 20,
        threads: 3,
        seed: 20_261_121,
    };
    let report = run(&plan).expect("nothing wrong");
    println!("{report:?}");
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
