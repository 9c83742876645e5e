//! Replays the fuzzers' corpus, `fuzz/corpus/<target>/*`, through the functions the fuzzers run.
//!
//! A crash that a fuzzer finds becomes a test by copying its file there. The seeds have their names from
//! what they spell: lengths on both sides of what kernels step by, distances of moves, orders of pages.

use crate::runner;
use crate::support::cases::{
    Case, CompareCase, CopyCase, FillCase, MoveCase, PagesCase, ZeroCase, replay,
};
use crate::support::watch;
use cachewise_kernels::Operation;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// Replays one target's files for each of the operations.
fn replay_target<C: Case + Debug>(target: &str, operations: &[Operation]) {
    watch::explain_crashes();
    if !corpus().exists() {
        runner::say(&format!("corpus of {target}: SKIPPED, {} is not here", corpus().display()));
        return;
    }
    let mut files = 0;
    for entry in fs::read_dir(corpus().join(target)).expect("a corpus folder per target") {
        let path = entry.expect("a readable corpus folder").path();
        let bytes = fs::read(&path).expect("a readable corpus file");
        for &operation in operations {
            let result = std::panic::catch_unwind(|| replay::<C>(operation, &bytes));
            assert!(result.is_ok(), "with {}", path.display());
        }
        files += 1;
    }
    assert!(files >= 10, "{target} has {files} corpus files, its seeds are missing");
}

#[test]
fn copy() {
    replay_target::<CopyCase>("copy", &[Operation::Copy]);
}

#[test]
fn r#move() {
    replay_target::<MoveCase>("move", &[Operation::Move]);
}

#[test]
fn fill() {
    replay_target::<FillCase>("fill", &[Operation::Fill]);
}

#[test]
fn zero() {
    replay_target::<ZeroCase>("zero", &[Operation::Zero]);
}

#[test]
fn compare() {
    replay_target::<CompareCase>("compare", &[Operation::Compare]);
}

#[test]
fn equal() {
    replay_target::<CompareCase>("equal", &[Operation::Equal]);
}

#[test]
fn pages() {
    replay_target::<PagesCase>("pages", &[Operation::CopyPages, Operation::ZeroPages]);
}
