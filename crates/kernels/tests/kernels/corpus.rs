//! Replays the fuzzers' corpus, `fuzz/corpus/<target>/*`, through the functions the fuzzers run.
//!
//! A crash that a fuzzer finds becomes a test by copying its file there. The seeds are written by
//! `cargo test -p cachewise-kernels --test kernels -- --ignored write_seed_corpus`.

use crate::runner;
use crate::support::cases::{
    Case, CompareCase, CopyCase, Edge, FillCase, LONGEST, MoveCase, PagesCase, Place, ZeroCase,
    replay,
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
        runner::say(&format!("corpus of {target}: skipped, {} is not here", corpus().display()));
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

fn place(edge: Edge, shift: u8) -> Place {
    Place { edge, shift }
}

/// Lengths on both sides of what kernels step by, with a place for each: at the end's guard page
/// where reading or writing too far shows, at the start's where reaching back shows, and unaligned.
fn lengths_and_places() -> impl Iterator<Item = (usize, Place, Place)> {
    let places = [
        (place(Edge::End, 0), place(Edge::End, 0)),
        (place(Edge::Start, 0), place(Edge::Start, 0)),
        (place(Edge::Middle, 1), place(Edge::End, 3)),
        (place(Edge::End, 63), place(Edge::Middle, 17)),
    ];
    [
        0, 1, 3, 7, 8, 15, 16, 31, 33, 63, 64, 65, 127, 129, 255, 257, 320, 513, 1025, 2048, 3841,
        8193, 65_537, LONGEST,
    ]
    .into_iter()
    .zip(places.into_iter().cycle())
    .map(|(n, (dst, src))| (n, dst, src))
}

/// Positions and values of differences: the first, the last, a high bit against a low one, several
/// of opposite sign.
fn edits(turn: usize, n: usize) -> Vec<(usize, u8)> {
    match turn % 5 {
        0 => vec![],
        1 => vec![(0, 0x80)],
        2 => vec![(n.saturating_sub(1), 0x7f)],
        3 => vec![(n / 2, 0), (n / 2 + 1, 0xff)],
        _ => vec![(n / 3, 0xff), (n / 2, 0), (n.saturating_sub(1), 0xff)],
    }
}

#[test]
#[ignore = "writes fuzz/corpus"]
fn write_seed_corpus() {
    fn write<C: Case>(target: &str, name: &str, case: &C) {
        let folder = corpus().join(target);
        fs::create_dir_all(&folder).expect("a corpus folder");
        fs::write(folder.join(name), case.encode()).expect("a corpus file");
    }
    for (turn, (n, dst, src)) in lengths_and_places().enumerate() {
        let (seed, name) = (turn as u16, format!("n{n}"));
        write("copy", &name, &CopyCase { n, dst, src, seed });
        let value = [0, 0xff, 0x1a5, -1, 0x5a][turn % 5];
        write("fill", &name, &FillCase { n, dst, value, seed });
        write("zero", &name, &ZeroCase { n, dst, seed });
        for target in ["compare", "equal"] {
            let edits = edits(turn, n);
            write(target, &name, &CompareCase { n, left: src, right: dst, seed, edits });
        }
    }
    let distances = [1isize, -1, 8, -15, 16, -31, 64, -64, 129, 4096];
    for (turn, distance) in distances.into_iter().enumerate() {
        for (n, edge) in [(97 + 64 * turn, Edge::End), (4096 + 3 * turn, Edge::Start)] {
            let case = MoveCase { n, distance, span: place(edge, 0), seed: turn as u16 };
            write("move", &format!("n{n}-by{distance}"), &case);
        }
    }
    for order in 0..=4u8 {
        for (name, dst, src) in [
            ("end-start", place(Edge::End, 0), place(Edge::Start, 0)),
            ("start-end", place(Edge::Start, 0), place(Edge::End, 0)),
            ("middle", place(Edge::Middle, order), place(Edge::Middle, 1)),
            ("apart", place(Edge::End, 7), place(Edge::Start, order)),
        ] {
            let case = PagesCase { order: u32::from(order), dst, src, seed: order.into() };
            write("pages", &format!("order{order}-{name}"), &case);
        }
    }
}
