//! `--verify-only`: bytes without timings.

use crate::support::{cachewise, program, stderr, stdout};
use std::process::Output;

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    stdout(output)
}

#[test]
fn an_experiments_candidates_are_checked_and_counted() {
    let output = cachewise("run compare-matrix --verify-only --kernels .*\\.bytes --size 100,200");
    // compare and equal, of the table and of the C library; two sizes at three pairs of offsets;
    // equal buffers and three places both ways: 4 x 2 x 3 x 7.
    assert_eq!(
        said(&output),
        "compare-matrix: 2 kernels and 2 others checked, 168 calls, every byte right; \
         nothing was timed\n"
    );
}

#[test]
fn what_a_tuning_may_choose_is_checked_and_nothing_is_written() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut command = program();
    let output = command.args(["tune", "--verify-only"]).env("HOME", home.path()).output();
    let text = said(&output.expect("the program starts"));
    assert!(text.starts_with("tune: ") && text.contains(" and 12 others checked"), "{text}");
    let written = std::fs::read_dir(home.path()).expect("the directory").count();
    assert_eq!(written, 0, "no profile, no record");
}

#[test]
fn flags_of_a_measurement_are_refused() {
    for arguments in [
        "run copy-matrix --verify-only --json -",
        "run copy-matrix --verify-only --rounds 15",
        "run copy-matrix --verify-only --size 0",
        "tune --verify-only --quick",
    ] {
        assert_eq!(cachewise(arguments).status.code(), Some(2), "{arguments}");
    }
}
