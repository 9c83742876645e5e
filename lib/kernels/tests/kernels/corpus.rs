//! Replays the fuzzers' corpus, `fuzz/corpus/<target>/*`, through the functions the fuzzers run.
//!
//! A crash that a fuzzer finds becomes a test by copying its file there. The seeds have their names from
//! what they spell: lengths on both sides of what kernels step by, distances of moves, orders of pages.

use crate::runner;
use crate::support::cases::replay;
use crate::support::watch;
use cachewise_kernels::Operation::{
    self, Compare, Copy, CopyPages, Equal, Fill, Move, Zero, ZeroPages,
};
use std::fs;
use std::path::Path;

/// Replays one target's files for the operations.
fn replay_target(target: &str, operations: &[Operation]) {
    watch::explain_crashes();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    if !corpus.exists() {
        runner::say(&format!("corpus: SKIPPED, {} is not here", corpus.display()));
        return;
    }
    let mut files = 0;
    for entry in fs::read_dir(corpus).expect("a corpus folder per target") {
        let path = entry.expect("a readable corpus folder").path();
        let bytes = fs::read(&path).expect("a readable corpus file");
        let result = std::panic::catch_unwind(|| replay(operations, &bytes));
        assert!(result.is_ok(), "with {}", path.display());
        files += 1;
    }
    assert!(files >= 10, "{target} has {files} corpus files, its seeds are missing");
}

#[test]
fn copy() {
    replay_target("copy", &[Copy, Move, Fill, Zero, CopyPages, ZeroPages]);
}

#[test]
fn compare() {
    replay_target("compare", &[Compare, Equal]);
}
