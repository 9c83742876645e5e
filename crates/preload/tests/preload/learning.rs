//! `CACHEWISE_LEARN` and `CACHEWISE_PROGRAM`: bytes stay right whatever is tried, what is learned
//! is saved and followed, and what cannot be used is told. Which way is found better is not asked
//! here: that depends on the machine (`cargo run -p xtask -- learn-programs`).

use crate::support::{compile, plain, preloaded_two_ways, run, text};
use cachewise_learn::section::{Section, write_end};
use cachewise_learn::sites::Operation;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn program(directory: &Path) -> PathBuf {
    compile(directory, "sites", &["-O1", "-fno-builtin", "-rdynamic", "-pthread"])
}

fn learning(program: &Path, file: &Path, arguments: [&str; 3]) -> Command {
    let mut command = preloaded_two_ways(program);
    command.env("CACHEWISE_LEARN", "trial").env("CACHEWISE_PROGRAM", file).args(arguments);
    command
}

fn right(command: &mut Command) {
    let output = run(command);
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("right\n".into(), String::new()));
}

/// Operation, octave and calls of each site.
fn sites(file: &Path) -> Vec<(Operation, u32, u64)> {
    let bytes = std::fs::read(file).expect("a section was saved");
    let section =
        Section::parse(&bytes).unwrap_or_else(|error| panic!("{error}: {}", text(&bytes)));
    let mut sites: Vec<_> =
        section.sites().map(|site| (site.operation, site.octave, site.left.calls)).collect();
    sites.sort();
    sites
}

#[test]
fn each_site_is_tried_saved_and_taken_up_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = program(directory.path());
    let file = directory.path().join("sites.program");
    right(&mut learning(&program, &file, ["cmfz", "60", "16384"]));
    let all = [Operation::Copy, Operation::Move, Operation::Fill, Operation::Zero];
    assert_eq!(sites(&file), all.map(|operation| (operation, 24, 60)));
    let first = std::fs::read(&file).expect("saved");
    let section = Section::parse(&first).expect("a section");
    assert!(section.text("program").ends_with("/sites"), "{}", section.text("program"));
    let module = section.modules().next().expect("a module");
    assert!(module.path.ends_with("/sites") && module.id.len() >= 16, "{module:?}");
    assert!(section.sites().any(|site| site.left.explored > 0), "nothing was tried");

    right(&mut learning(&program, &file, ["cz", "40", "16384"]));
    assert_eq!(
        sites(&file),
        [(all[0], 24, 100), (all[1], 24, 60), (all[2], 24, 60), (all[3], 24, 100)],
        "calls of both runs, and what the second did not call is kept"
    );
}

#[test]
fn mempcpy_is_learned_as_memcpy_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = program(directory.path());
    let file = directory.path().join("sites.program");
    right(&mut learning(&program, &file, ["cp", "60", "16384"]));
    assert_eq!(sites(&file), [(Operation::Copy, 24, 60); 2], "a site each");
    let section = std::fs::read(&file).expect("saved");
    let section = Section::parse(&section).expect("a section");
    assert!(section.sites().all(|site| site.left.explored > 0), "both were tried");
    right(&mut learning(&program, &directory.path().join("small"), ["p", "100", "32"]));
    right(preloaded_two_ways(&program).args(["p", "20", "16384"]));
}

#[test]
fn small_calls_are_nobodys_business() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("sites.program");
    right(&mut learning(&program(directory.path()), &file, ["cmfz", "2000", "32"]));
    assert!(!file.exists(), "no site of 64 KiB, and no section");
}

#[test]
fn threads_forks_signal_handlers_and_short_threads_learn_and_stay_right() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = program(directory.path());
    for (letters, calls) in [("cmfzt", 400), ("cmfzk", 150), ("cmfzs", 300), ("cmfzd", 300)] {
        let file = directory.path().join(letters);
        right(&mut learning(&program, &file, [letters, &calls.to_string(), "2048"]));
        let found = sites(&file);
        assert!(found.iter().any(|(operation, ..)| *operation == Operation::Copy), "{found:?}");
        let least = if letters.ends_with('k') { 2 * calls } else { calls };
        assert!(found.iter().all(|(.., seen)| *seen >= least * 9 / 10), "{letters}: {found:?}");
        assert_eq!(
            std::fs::read_dir(directory.path())
                .expect("listed")
                .filter(|entry| {
                    let name = entry.as_ref().expect("an entry").file_name();
                    let name = name.to_string_lossy().into_owned();
                    name.starts_with(letters) && name != letters && !name.ends_with(".lock")
                })
                .count(),
            0,
            "no half-written file is left"
        );
    }
}

#[test]
fn many_processes_share_one_section() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = program(directory.path());
    let file = directory.path().join("shared");
    let mut children: Vec<_> = ["c", "m", "f", "z", "cm", "fz"]
        .map(|letters| learning(&program, &file, [letters, "80", "4096"]))
        .map(|mut command| command.stdout(Stdio::null()).spawn().expect("starts"))
        .into();
    for child in &mut children {
        assert!(child.wait().expect("ends").success());
    }
    let found = sites(&file);
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found.iter().all(|(.., calls)| *calls >= 80), "{found:?}");
}

/// A section whose sites are decided by hand.
pub fn decide(learned: &str, way: &str) -> String {
    let mut decided: String = learned
        .lines()
        .filter(|line| !line.starts_with("end "))
        .map(|line| format!("{}\n", line.replace("too-few-calls", way)))
        .collect();
    let body = decided.clone();
    write_end(&mut decided, body.as_bytes()).expect("written");
    decided
}

/// What starting costs cannot be timed in a test, but system calls can be counted: once there were
/// three hundred more than needed.
#[test]
fn a_program_that_starts_waits_for_few_system_calls() {
    let directory = tempfile::tempdir().expect("a directory");
    let tracer = compile(directory.path(), "start", &["-O1"]);
    let count = |command: &mut Command| {
        let output = command.arg("/bin/true").output().expect("it starts");
        match output.status.code() {
            Some(0) => text(&output.stdout).trim().parse::<u32>().ok(),
            Some(77) => None,
            _ => panic!("{output:?}"),
        }
    };
    let Some(alone) = count(&mut plain(&tracer)) else {
        return eprintln!("not seen: nobody may trace a process here");
    };
    let with = |command: &mut Command| count(command).expect("as before").saturating_sub(alone);

    let none = with(&mut preloaded_two_ways(&tracer));
    assert!((1..=20).contains(&none), "the library: {none} more than {alone}");

    let program = program(directory.path());
    let file = directory.path().join("sites.program");
    right(&mut learning(&program, &file, ["cmfz", "30", "16384"]));
    let learned = std::fs::read_to_string(&file).expect("saved");
    std::fs::write(&file, decide(&learned, "temporal")).expect("written");
    let following = with(preloaded_two_ways(&tracer).env("CACHEWISE_PROGRAM", &file));
    assert!((none + 1..=none + 15).contains(&following), "a section: {following}, without {none}");
    // Where all that was decided is what is done anyway, there is nothing to follow.
    let file = directory.path().join("usual.program");
    right(&mut learning(&program, &file, ["c", "30", "2048"]));
    let learned = std::fs::read_to_string(&file).expect("saved");
    assert!(learned.contains(" temporal too-few-calls "), "2 MiB go through the cache: {learned}");
    std::fs::write(&file, decide(&learned, "temporal")).expect("written");
    let usual = with(preloaded_two_ways(&tracer).env("CACHEWISE_PROGRAM", &file));
    assert!((none + 1..following).contains(&usual), "as usual: {usual}, a section: {following}");
}

#[test]
fn decisions_are_followed_without_being_asked_to_learn() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = program(directory.path());
    let file = directory.path().join("sites.program");
    right(&mut learning(&program, &file, ["cmfz", "30", "16384"]));
    // What is followed must be right either way.
    let learned = std::fs::read_to_string(&file).expect("saved");
    for way in ["nt", "temporal"] {
        let decided = decide(&learned, way);
        std::fs::write(&file, &decided).expect("written");
        let mut command = preloaded_two_ways(&program);
        right(command.env("CACHEWISE_PROGRAM", &file).args(["cmfz", "30", "16384"]));
        assert_eq!(
            std::fs::read_to_string(&file).expect("there"),
            decided,
            "following saves nothing"
        );
    }
}

#[test]
fn a_service_saves_to_the_users_directory_and_before_it_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = program(directory.path());
    let mut command = preloaded_two_ways(&program);
    command.env("CACHEWISE_LEARN", "1").env("HOME", directory.path());
    right(command.args(["c", "50", "4096"]));
    let programs = std::fs::read_dir(directory.path().join(".config/cachewise"));
    let programs = programs.expect("made").next().expect("a directory").expect("an entry").path();
    assert!(programs.to_string_lossy().ends_with(".programs"), "{programs:?}");
    assert_eq!(sites(&programs.join("sites.program")).len(), 1);

    // Killed: only what was saved meanwhile is there. It was: nought is a number of seconds.
    let file = directory.path().join("meanwhile");
    let mut command = learning(&program, &file, ["c", "1000000000", "1024"]);
    command.stdout(Stdio::null());
    let mut child = command.env("CACHEWISE_LEARN_SAVE", "0").spawn().expect("starts");
    while !file.exists() && child.try_wait().expect("ours").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().expect("it runs");
    assert_eq!(child.wait().expect("ends").signal(), Some(9), "it did not come to its end");
    assert_eq!(sites(&file).len(), 1);
}

/// Once an empty file, or one cut short, was the end of learning, with a line from every process.
#[test]
fn a_damaged_section_is_set_aside_by_the_first_process_that_meets_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = program(directory.path());
    let file = directory.path().join("sites.program");
    let aside = directory.path().join("sites.program.damaged");
    right(&mut learning(&program, &file, ["c", "3", "16384"]));
    let whole = std::fs::read_to_string(&file).expect("saved");
    let half = &whole[..whole.len() / 2];
    for follow in [false, true] {
        std::fs::write(&file, half).expect("written");
        let mut command = learning(&program, &file, ["c", "3", "16384"]);
        if follow {
            command.env_remove("CACHEWISE_LEARN");
        }
        let output = run(&mut command);
        assert_eq!(
            text(&output.stderr),
            format!(
                "cachewise: {}: found no end line: cut short; now FILE.damaged, and nothing is \
                 known of the program\n",
                file.display()
            )
        );
        assert_eq!(std::fs::read_to_string(&aside).expect("kept"), half);
        right(&mut command);
        right(&mut learning(&program, &file, ["c", "3", "16384"]));
        assert_eq!(sites(&file).len(), 1);
    }
    std::fs::write(&file, "").expect("written");
    right(&mut learning(&program, &file, ["c", "3", "16384"]));
    assert_eq!(sites(&file).len(), 1, "nothing in it, and nothing lost");
}

/// A name that no file of a person's has: what is written stays text, one line a thing.
#[test]
fn a_program_with_a_newline_in_its_path_is_learned_as_others_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let odd = directory.path().join("two\nlines");
    std::fs::create_dir(&odd).expect("made");
    let program = odd.join("si\ntes");
    std::fs::copy(self::program(directory.path()), &program).expect("copied");
    let mut command = preloaded_two_ways(&program);
    command.env("CACHEWISE_LEARN", "1").env("HOME", directory.path());
    right(command.args(["c", "50", "4096"]));
    right(&mut command);
    let programs = std::fs::read_dir(directory.path().join(".config/cachewise"));
    let programs = programs.expect("made").next().expect("a directory").expect("an entry").path();
    let file = programs.join("si_tes.program");
    assert_eq!(sites(&file), [(Operation::Copy, 22, 100)]);
    let section = std::fs::read(&file).expect("saved");
    let section = Section::parse(&section).expect("a section");
    assert!(section.text("program").ends_with("/two?lines/si?tes"), "{}", section.text("program"));
}

#[test]
fn what_cannot_be_used_is_told_in_one_line_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = program(directory.path());
    let file = directory.path().join("file");
    let told = |learn: &str, save: &str, content: &str| {
        std::fs::write(&file, content).expect("written");
        let mut command = preloaded_two_ways(&program);
        command.env("CACHEWISE_LEARN", learn).env("CACHEWISE_LEARN_SAVE", save);
        command.env("CACHEWISE_PROGRAM", &file);
        let output = run(command.args(["c", "3", "4096"]));
        assert_eq!(text(&output.stdout), "right\n");
        assert_eq!(std::fs::read_to_string(&file).expect("there"), content, "left alone");
        text(&output.stderr)
    };
    let end = "; call sites are not learned\n";
    assert_eq!(
        told("perhaps", "1", ""),
        format!("cachewise: CACHEWISE_LEARN: accepted 0, 1 or trial{end}")
    );
    assert_eq!(
        told("1", "soon", ""),
        format!("cachewise: CACHEWISE_LEARN_SAVE: accepted a number of seconds{end}")
    );
    assert_eq!(
        told("1", "1", "something else\n"),
        format!("cachewise: {}: line 1: accepted \"cachewise-program 2\"{end}", file.display())
    );
    let mut foreign = String::from("cachewise-program 2\ncpu GenuineIntel 1 1 1\n");
    let body = foreign.clone();
    write_end(&mut foreign, body.as_bytes()).expect("written");
    assert_eq!(
        told("1", "1", &foreign),
        format!("cachewise: {}: line cpu: found another CPU than this one{end}", file.display())
    );
    // And a program that does not ask is not touched by any of it.
    right(plain(&program).args(["c", "3", "4096"]));
    right(preloaded_two_ways(&program).args(["c", "3", "4096"]));
}

/// A module that is loaded where another one was: its calls are not saved as the other's.
#[test]
fn a_module_in_anothers_place_has_its_own_identity() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, salt) in [("one", "1"), ("two", "2")] {
        let source = directory.path().join("plugin.c");
        std::fs::write(
            &source,
            format!(
                "#include <string.h>\nchar salt[] = \"{salt}\";\n__attribute__((noinline)) void copies(char *to, \
                 const char *from, size_t n, int times) {{\n  while (times--) {{ memcpy(to, from, n); \
                 to[0]++; }}\n}}\n"
            ),
        )
        .expect("written");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-fno-builtin", "-shared", "-fPIC", "-Wl,--build-id", "-o"]);
        compiler.arg(directory.path().join(format!("{name}.so"))).arg(&source);
        assert!(compiler.status().expect("a C compiler").success());
    }
    let program = compile(directory.path(), "plugins", &["-O1", "-ldl"]);
    let file = directory.path().join("plugins.program");
    let mut command = preloaded_two_ways(&program);
    command.env("CACHEWISE_LEARN", "trial").env("CACHEWISE_PROGRAM", &file);
    let told = text(&run(command.current_dir(directory.path())).stdout);
    if told != "the same place\n" {
        return eprintln!("not seen: the second was loaded elsewhere");
    }
    // The first was called 30 times, the second 50. Whose the sum is nobody can say: it is not
    // saved.
    assert!(!file.exists(), "{}", std::fs::read_to_string(&file).expect("it exists"));
    // In a place of its own each is known.
    let mut command = preloaded_two_ways(&program);
    command.env("CACHEWISE_LEARN", "trial").env("CACHEWISE_PROGRAM", &file).arg("stays");
    run(command.current_dir(directory.path()));
    let mut calls: Vec<_> = sites(&file).into_iter().map(|(.., calls)| calls).collect();
    calls.sort_unstable();
    assert_eq!(calls, [30, 50]);
}
