//! `run compare-latency` starts processes of its own, and records what they measured.

use crate::support::{has, ok};

#[test]
fn three_launches_are_three_processes_and_their_histograms_are_recorded() {
    let directory = tempfile::tempdir().expect("a directory");
    let record = directory.path().join("a.jsonl");
    let printed = ok(&format!(
        "run compare-latency --quick --kernels compare\\.gpr64 --size 64 --json {}",
        record.display()
    ));
    has(&printed, &["3 launches, each a process of its own"]);
    has(&printed, &["compare.gpr64, single calls to 5000 ns"]);
    let read = cachewise_measure::record::read(&record).expect("a whole record");
    let mut launches = std::collections::BTreeSet::new();
    for row in &read.rows {
        let Some(histogram) = &row.histogram else { continue };
        launches.insert(row.cell.axes["launch"] as u64);
        let counted = histogram.counts.iter().sum::<u64>() + histogram.above;
        assert_eq!(counted, u64::from(row.calls), "every call is counted once");
    }
    assert_eq!(launches.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(read.header.figures.len(), 4);
    let verdicts = read.end.expect("an end").verdicts;
    assert!(verdicts[0].contains("ns a comparison"), "{verdicts:?}");
}
