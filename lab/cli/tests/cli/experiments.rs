//! Experiments that start processes of their own.

use crate::support::{Folder, asked, has, ok, piped, text};
use std::io::Write as _;

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn three_launches_are_three_processes_and_their_histograms_are_recorded() {
    let folder = Folder::new();
    let printed = ok(&format!(
        "run compare-latency --quick --kernels compare\\.gpr64 --size 64 --json {}",
        folder.path("a.jsonl")
    ));
    has(&printed, &[" of 3"]);
    has(&printed, &["compare.gpr64, single calls to 5000 ns"]);
    let read = folder.record("a.jsonl");
    let mut launches = std::collections::BTreeSet::new();
    for row in &read.rows {
        let Some(histogram) = &row.histogram else { continue };
        launches.insert(row.cell.axes["launch"] as u64);
        let counted = histogram.counts.iter().sum::<u64>() + histogram.above;
        assert_eq!(counted, u64::from(row.calls), "every call is counted once");
    }
    assert_eq!(launches.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(read.header.figures.len(), 3);
    // One kernel alone has figures and no pair of candidates.
    has(&read.end.expect("an end").verdicts.concat(), &["004.9"]);
}

#[test]
fn the_kernels_fork_copies_the_buffers_pages() {
    let mut child = piped(asked("helper"));
    let mut stdin = child.stdin.take().expect("a pipe");
    for loops in [1, 10] {
        writeln!(stdin, r#"{{"fork":{{"buffer":65536,"loops":{loops}}}}}"#).expect("it reads");
    }
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let number = |line: &str| -> u64 {
        let faults = line.trim_start_matches("{\"Ok\":").trim_end_matches('}');
        faults.parse().unwrap_or_else(|_| panic!("{line}"))
    };
    let faults: Vec<u64> = text(&output.stdout).lines().map(number).collect();
    assert_eq!(faults.len(), 2);
    assert!(faults[1] >= 160, "16 pages in each of 10 children: {faults:?}");
}

#[cfg(target_arch = "x86_64")]
#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn page_copy_stands_beside_a_real_fork() {
    let folder = Folder::new();
    let text = ok(&format!(
        "run page-copy --quick --size 32K --kernels mmx_AP. --json {}",
        folder.path("copy.jsonl")
    ));
    // The second is the seed's counters.
    has(&text, &["32 KiB copying, 5x20000 loops", "300000/1600000", "the kernel's own fork"]);
    let written = folder.record("copy.jsonl");
    let fork = written.rows.iter().find(|row| row.candidate == "fork").expect("its row");
    assert!(fork.extra["faults_per_loop"] >= 8.0, "{:?}", fork.extra);
    assert_eq!(written.header.figures.len(), 3);
    has(&written.end.expect("an end").verdicts.concat(), &["000.10"]);
}
