//! What a program asks of the system once `main` has begun, in every mode: `docs/preload.md` lists
//! it.

use crate::learning::decide;
use crate::support::{compile, preloaded_two_ways, run, text};
use std::process::Command;

/// On x86-64; what the program asks for by itself.
const GETPPID: u32 = 110;

struct Program {
    file: std::path::PathBuf,
    section: std::path::PathBuf,
}

impl Program {
    /// What it says of each moment: the numbers of the system calls that were trapped.
    fn told(&self, how: &str, set: impl FnOnce(&mut Command)) -> Vec<(String, Vec<u32>)> {
        let mut command = preloaded_two_ways(&self.file);
        command.arg(how);
        set(&mut command);
        let output = run(&mut command);
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

    fn learn(&self, command: &mut Command) {
        command.env("CACHEWISE_PROGRAM", &self.section).env("CACHEWISE_LEARN", "trial");
    }
}

#[test]
fn no_mode_asks_the_system_for_anything_in_the_middle() {
    let directory = tempfile::tempdir().expect("a directory");
    let file =
        compile(directory.path(), "middle", &["-O1", "-fno-builtin", "-pthread", "-Wl,-z,now"]);
    let program = Program { file, section: directory.path().join("middle.program") };
    let nothing = ("middle".to_owned(), vec![]);
    let at_the_end = |told: &[(String, Vec<u32>)]| -> Vec<u32> {
        assert_eq!(told[0], nothing);
        assert!(told[1..].iter().all(|(moment, _)| moment == "end"), "{told:?}");
        told[1..].iter().flat_map(|(_, numbers)| numbers.clone()).collect()
    };
    // Alone; and the filter works.
    assert!(at_the_end(&program.told("end", |_| {})).is_empty());
    let own = program.told("filter", |_| {});
    assert_eq!(own, [("middle".to_owned(), vec![GETPPID])]);
    // Without a profile, with one that leaves everything to the C library, and with statistics.
    let none = |command: &mut Command| _ = command.env_remove("CACHEWISE_PROFILE");
    assert!(at_the_end(&program.told("end", none)).is_empty());
    let libc = crate::libc::leave_all(directory.path());
    let libcs = |command: &mut Command| _ = command.env("CACHEWISE_PROFILE", &libc);
    assert!(at_the_end(&program.told("end", libcs)).is_empty());
    let counts = directory.path().join("counts");
    let statistics = |command: &mut Command| {
        command.env("CACHEWISE_STATS", &counts);
    };
    assert!(!at_the_end(&program.told("end", statistics)).is_empty(), "they are printed then");

    // Learning: nothing is saved in the middle but where that is due.
    let learn = |command: &mut Command| program.learn(command);
    assert_eq!(program.told("", learn), std::slice::from_ref(&nothing));
    assert!(!at_the_end(&program.told("end", learn)).is_empty(), "it is saved then");
    let due = program.told("", |command| {
        program.learn(command);
        command.env("CACHEWISE_LEARN_SAVE", "0");
    });
    assert!(!due[0].1.is_empty(), "a saving that is due can be seen here");

    // Following what was learned.
    let mut unhindered = preloaded_two_ways(&program.file);
    program.learn(&mut unhindered);
    run(unhindered.arg("unhindered"));
    let learned = std::fs::read_to_string(&program.section).expect("saved");
    for way in ["nt", "temporal"] {
        std::fs::write(&program.section, decide(&learned, way)).expect("written");
        let follow = |command: &mut Command| {
            command.env("CACHEWISE_PROGRAM", &program.section);
        };
        assert!(at_the_end(&program.told("end", follow)).is_empty(), "followed: {way}");
    }
}
