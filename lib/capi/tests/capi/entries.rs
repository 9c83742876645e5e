//! The entries in programs linked and started in every way.

use crate::decided::decided;
use crate::support::{Linked, compile, libraries, run};
use std::process::Command;

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_entries_are_right_however_the_program_is_linked_and_started() {
    let directory = tempfile::tempdir().expect("a directory");
    let by_name = libraries().join("libcachewise.so");
    let gnu: &[&str] = &["-std=gnu11"];
    let programs = [
        (gnu, Linked::Shared, None),
        (gnu, Linked::Static, None),
        (&["-std=gnu11", "-static"], Linked::Static, None),
        (&["-std=gnu11", "-static-pie"], Linked::Static, None),
        (&["-std=gnu11", "-DBY_NAME", "-ldl"], Linked::Shared, Some(&by_name)),
    ];
    let programs = programs.map(|(flags, linked, argument)| {
        let built = compile(directory.path(), "tests/c/entries.c", flags, linked);
        // The next one has the same name.
        let program = directory.path().join(format!("{linked:?}{}", flags.join("")));
        std::fs::rename(built, &program).expect("renamed");
        (program, argument)
    });
    let profile = decided(directory.path(), "own.profile", "");
    for (program, argument) in &programs {
        for now in [false, true] {
            let mut command = Command::new(program);
            command.env("CACHEWISE_PROFILE", &profile).args(*argument).env_remove("LD_PRELOAD");
            if now {
                command.env("LD_BIND_NOW", "1");
            }
            let output = run(&mut command);
            let told = [output.stdout, output.stderr]
                .map(|text| String::from_utf8_lossy(&text).into_owned());
            let expected = format!("{} (CACHEWISE_PROFILE)\n", profile.display());
            assert_eq!(told, [expected, String::new()], "{}", program.display());
        }
    }
}

/// A damaged profile is told by the first call that has a choice, and by none that is the same with every profile.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_first_call_with_a_choice_reads_the_profile() {
    let directory = tempfile::tempdir().expect("a directory");
    let damaged = directory.path().join("damaged");
    std::fs::write(&damaged, "cachewise-profile 2\n").expect("written");
    for linked in [Linked::Shared, Linked::Static] {
        let program = compile(directory.path(), "tests/c/first.c", &["-std=c99"], linked);
        for (operation, none, first) in [
            ("copy", 64, 65),
            ("move", 64, 65),
            ("fill", 64, 65),
            ("zero", 64, 65),
            ("compare", 1, 2),
            ("equal", 1, 2),
        ] {
            for (n, lines) in [(none, 0), (first, 1), (32, usize::from(first < 32)), (300, 1)] {
                let mut command = Command::new(&program);
                command.env("CACHEWISE_PROFILE", &damaged).env_remove("CACHEWISE_QUIET");
                let output =
                    run(command.args([operation, &n.to_string()]).env_remove("LD_PRELOAD"));
                let told = String::from_utf8_lossy(&output.stderr);
                assert_eq!(told.lines().count(), lines, "{linked:?} {operation} {n}: {told}");
            }
        }
    }
}
