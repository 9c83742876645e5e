//! System calls of a program after `main` has begun, in every mode: `docs/preload.md` lists
//! it.

use crate::support::{compile, preloaded, run, text, watched};
use std::process::Command;

/// On x86-64; what the program asks for by itself.
const GETPPID: u32 = 110;

/// The program's report for each moment: the numbers of the system calls that were trapped.
fn told(mut command: Command, how: &str) -> Vec<(String, Vec<u32>)> {
    let output = run(command.arg(how));
    assert_eq!(text(&output.stderr), "");
    let line = |line: &str| {
        let (moment, numbers) = line.split_once(':').expect("a colon");
        let numbers = numbers.split_whitespace().map(|word| word.parse().expect("a number"));
        let numbers: Vec<u32> = numbers.collect();
        let (moment, count) = moment.split_once(' ').expect("a count");
        assert_eq!(count, numbers.len().to_string(), "{line}");
        (moment.to_owned(), numbers)
    };
    text(&output.stdout).lines().map(line).collect()
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn no_mode_asks_the_system_for_anything_in_the_middle() {
    let directory = tempfile::tempdir().expect("a directory");
    let program =
        compile(directory.path(), "middle", &["-O1", "-fno-builtin", "-pthread", "-Wl,-z,now"]);
    let nothing = ("middle".to_owned(), vec![]);
    let at_the_end = |told: &[(String, Vec<u32>)]| -> Vec<u32> {
        assert_eq!(told[0], nothing);
        assert!(told[1..].iter().all(|(moment, _)| moment == "end"), "{told:?}");
        told[1..].iter().flat_map(|(_, numbers)| numbers.clone()).collect()
    };
    // The filter works.
    let own = told(preloaded(&program), "filter");
    assert_eq!(own, [("middle".to_owned(), vec![GETPPID])]);
    // Without a profile, with one that leaves everything to the C library, and with statistics.
    assert!(at_the_end(&told(preloaded(&program), "end")).is_empty());
    let mut libcs = preloaded(&program);
    libcs.env("CACHEWISE_PROFILE", crate::libc::leave_all(directory.path()));
    assert!(at_the_end(&told(libcs, "end")).is_empty());
    let counting = watched(&program, directory.path().join("counts"));
    assert!(!at_the_end(&told(counting, "end")).is_empty(), "they are printed then");
}
