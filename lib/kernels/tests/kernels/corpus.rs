//! Replays the fuzzers' corpus through the functions the fuzzers run.
//!
//! The seeds have their names from what they spell: lengths on both sides of what kernels step by, distances of moves,
//! orders of pages.

#[path = "../../../../fuzz/replaying.rs"]
mod replaying;

use crate::support::{cases::replay, watch};
use cachewise_kernels::Operation::{Compare, Copy, CopyPages, Equal, Fill, Move, Zero, ZeroPages};

#[test]
fn copy() {
    watch::explain_crashes();
    let operations = [Copy, Move, Fill, Zero, CopyPages, ZeroPages];
    replaying::replay_corpus("copy", 10, |bytes| replay(&operations, bytes));
}

#[test]
fn compare() {
    watch::explain_crashes();
    replaying::replay_corpus("compare", 10, |bytes| replay(&[Compare, Equal], bytes));
}
