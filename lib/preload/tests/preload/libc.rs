//! Sizes that the profile leaves to the C library: its own routines do them, at every moment of a
//! process, and this library's `memcpy` never ends in itself.

use crate::decided::decided;
use crate::support::{compile, library, preloaded, run, text, watched};
use std::path::{Path, PathBuf};

const CALLS: &[&str] = &["-O1", "-fno-builtin"];

/// A profile for this CPU that leaves everything to the C library.
pub fn leave_all(directory: &Path) -> PathBuf {
    let mut decisions = String::new();
    for operation in ["copy", "move", "fill", "zero", "compare", "equal"] {
        let hints: &[&str] = match operation {
            "compare" | "equal" => &["unknown"],
            _ => &["unknown", "soon", "never"],
        };
        for hint in hints {
            decisions
                .push_str(&format!("decide {operation} {hint} 256 max libc {operation}.bytes\n"));
        }
    }
    decided(directory, "libc.profile", &decisions)
}

/// The next definition in the order of look-up is the one that is called, and called once per call:
/// what `next` itself hands on would come back to it for ever if anything led back.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_next_definition_is_called_and_never_this_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let flags = ["-O1", "-shared", "-fPIC", "-fno-builtin", "-fno-tree-loop-distribute-patterns"];
    let next = compile(directory.path(), "next", &flags);
    let program = compile(directory.path(), "calls", CALLS);
    let both = format!("{}:{}", library().display(), next.display());
    let profile = leave_all(directory.path());
    let mut command = preloaded(&program);
    command.env("LD_PRELOAD", &both).env("CACHEWISE_PROFILE", &profile);
    let output = run(&mut command);
    assert_eq!(text(&output.stdout), "every byte right\n");
    // Those from 2 KiB on; smaller ones stay where a look-up would cost more than it brings.
    assert_eq!(text(&output.stderr), "next: 8 copies, 8 moves, 16 fills, 16 compares\n");
    // With computed defaults none other arrives there, and some stores do; how many, and of comparisons those of
    // more than 256 bytes or none, is by the CPU.
    let defaults = decided(directory.path(), "defaults.profile", "");
    let mut command = preloaded(&program);
    let output = run(command.env("LD_PRELOAD", &both).env("CACHEWISE_PROFILE", &defaults));
    let told = text(&output.stderr);
    let counts: Vec<u32> = told.split(' ').filter_map(|word| word.parse().ok()).collect();
    let within = |(found, most): (&u32, u32)| (1..=most).contains(found);
    assert!(counts.len() == 4 && counts.iter().zip([8, 8, 16]).all(within), "{told}");
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn every_length_alignment_and_overlap_by_libc() {
    let directory = tempfile::tempdir().expect("a directory");
    let profile = leave_all(directory.path());
    let program = compile(directory.path(), "exhaustive", &[CALLS, &["-ldl"]].concat());
    let counts = directory.path().join("counts");
    for statistics in [Path::new("0"), &counts] {
        let mut command = watched(&program, statistics);
        command.env("CACHEWISE_PROFILE", &profile);
        let output = run(command.arg("libcachewise_preload"));
        assert_eq!(text(&output.stdout), "every byte right\n");
        assert_eq!(text(&output.stderr), "");
    }
    assert!(std::fs::read_to_string(counts).expect("counts").contains("overlap"));
}

/// In a resolver, before `main`, in signal handlers, in forked children, in threads, at exit; with
/// statistics as well.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn libc_at_every_moment_of_a_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let profile = leave_all(directory.path());
    let program = compile(directory.path(), "moments", &[CALLS, &["-pthread"]].concat());
    for statistics in [Path::new("0"), &directory.path().join("counts")] {
        let mut command = watched(&program, statistics);
        let output = run(command.env("CACHEWISE_PROFILE", &profile));
        assert_eq!(text(&output.stdout), "at every moment\n");
        assert_eq!(text(&output.stderr), "");
    }
}
