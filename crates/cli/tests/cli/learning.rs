//! `learn`, `exec`, `explain --program` and `forget`, once each for real, and each refusal. Which way
//! is found better depends on the machine and is not asked.

use super::exec_pool::{compiled, library};
use crate::support::{program, text};
use std::path::PathBuf;
use std::process::{Command, Output};

const LIBRARY: &str = "libcachewise_preload.so";

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) void passes_on(char *to, const char *from, size_t n) { memcpy(to, from, n); }
int main(int count, char **arguments) {
    size_t n = 16 << 20;
    char *from = calloc(1, n), *to = malloc(n);
    if (count > 1) return atoi(arguments[1]);
    for (int i = 0; i < 40; i++) passes_on(to, from, n);
    puts(to[n - 1] == 0 ? "right" : "wrong");
}
"#;

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        let directory = tempfile::tempdir().expect("a directory");
        compiled(PROGRAM, directory.path(), "passes");
        Home(directory)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn program(&self) -> String {
        self.path("passes")
    }

    fn cachewise(&self, arguments: &[&str]) -> Output {
        let mut command = program();
        command.args(arguments).env("XDG_CONFIG_HOME", self.0.path().join("config"));
        command.output().expect("the program starts")
    }

    fn with_library(&self, verb: &str, arguments: &[&str]) -> Output {
        let library = library(LIBRARY);
        let mut all = vec![verb, "--library", &library];
        all.extend(arguments);
        self.cachewise(&all)
    }

    fn refused(&self, arguments: &[&str], status: i32, told: &str) {
        let output = self.cachewise(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(told), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_program_is_learned_explained_followed_and_forgotten() {
    let home = Home::new();
    let program = home.program();
    let [page, record] = ["page.html", "record.json"].map(|name| home.path(name));
    let arguments = ["--runs", "2", "--html", &page, "--json", &record, "--", &program];
    let output = home.with_library("learn", &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert_eq!(told.matches("right\n").count(), 2, "{told}");
    let row = told.lines().find(|line| line.contains("passes_on+0x")).expect("the call site");
    assert!(row.contains("copy") && row.contains(" 80 ") && row.contains("16 MiB"), "{row}");
    // The line that is named is that of the call.
    let named = told.split_once("addr2line -e ").expect("a command").1;
    let named = named.lines().next().expect("its line");
    let (file, offset) = named.split_once(' ').expect("a file and an offset");
    let line = Command::new("addr2line").args(["-f", "-e", file, offset]).output();
    let line = line.expect("addr2line");
    assert!(text(&line.stdout).starts_with("passes_on\n"), "{named}: {}", text(&line.stdout));
    assert!(std::fs::read_to_string(&page).expect("a page").contains("passes_on"));
    let record = std::fs::read(&record).expect("a record");
    let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
    let sites = record["sites"].as_array().expect("sites");
    let site = sites.iter().find(|site| site["calls"] == 80).expect("the call site");
    assert_eq!((&site["operation"], &site["octave"]), (&"copy".into(), &24.into()));
    assert!(site["function"].as_str().expect("text").contains(" passes_on+0x"), "{site}");
    assert!(record["proof"].is_null());

    let explained = home.cachewise(&["explain", "--program", "passes"]);
    assert!(text(&explained.stdout).contains(row), "{}", text(&explained.stdout));
    let followed = home.with_library("exec", &["--", &program]);
    assert_eq!((text(&followed.stdout), text(&followed.stderr)), ("right\n".into(), String::new()));
    let unlearned = home.with_library("exec", &["--unlearned", "--", &program]);
    assert_eq!(text(&unlearned.stdout), "right\n");

    home.refused(&["explain", "--program", "other"], 1, "programs: passes");
    let forgotten = home.cachewise(&["forget", "passes"]);
    assert_eq!(text(&forgotten.stdout), "forgotten: passes\n");
    home.refused(&["forget", "passes"], 1, "nothing was learned of \"passes\"; programs: none yet");
    assert!(text(&home.cachewise(&["forget", "--all"]).stdout).contains("nothing to forget"));
}

#[test]
fn the_proof_runs_all_three_and_compares_their_output() {
    let home = Home::new();
    let arguments = ["--prove", "--rounds", "6", "--name", "named", "--", &home.program()];
    let output = home.with_library("learn", &arguments);
    let told = text(&output.stdout);
    // 3 would be "slower", which a loaded machine may well find.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{told}{}", text(&output.stderr));
    assert!(told.contains("output: the same in every run"), "{told}");
    for on in ["libc", "profile only", "learned"] {
        assert!(told.lines().any(|line| line.starts_with(on)), "{on}: {told}");
    }
    let followed = home.with_library("exec", &["--name", "named", "--", &home.program()]);
    assert_eq!(text(&followed.stdout), "right\n");
}

#[test]
fn the_programs_status_is_ours_and_nothing_is_learned_from_nothing() {
    let home = Home::new();
    let output = home.with_library("learn", &["--", &home.program(), "7"]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(told.contains("nothing learned") || told.contains("call sites"), "{told}");
}

#[test]
fn what_cannot_be_done_is_refused_in_a_line() {
    let home = Home::new();
    home.refused(&["learn"], 2, "PROGRAM");
    home.refused(&["learn", "--runs", "0", "--", "true"], 2, "--runs");
    home.refused(&["learn", "--rounds", "6", "--", "true"], 2, "--prove");
    home.refused(&["learn", "--library", "/nonexistent", "--", "true"], 1, "/nonexistent");
    home.refused(&["explain"], 2, "--op");
    home.refused(&["explain", "--program", "p", "--op", "copy"], 2, "cannot be used with");
    home.refused(&["explain", "--program", "../p"], 1, "accepted a name without a slash");
    home.refused(&["explain", "--program", "p"], 1, "nothing was learned of \"p\"");
    home.refused(&["forget"], 2, "PROGRAM");
    let missing = home.with_library("learn", &["--", "no-such-program-anywhere"]);
    assert_eq!(missing.status.code(), Some(127));
}

/// The program's section, wherever the profile's name puts it.
fn section(home: &Home, name: &str) -> PathBuf {
    let config = home.0.path().join("config/cachewise");
    let programs = std::fs::read_dir(config).expect("made").next().expect("one").expect("listed");
    programs.path().join(format!("{name}.program"))
}

#[test]
fn a_program_has_one_name_however_it_is_called() {
    let home = Home::new();
    let [link, script] = ["link", "script.sh"].map(|name| home.path(name));
    std::os::unix::fs::symlink(home.program(), &link).expect("made");
    std::fs::write(&script, format!("#!/bin/sh\nexec {}\n", home.program())).expect("written");
    std::process::Command::new("chmod").arg("+x").arg(&script).status().expect("chmod");
    assert!(home.with_library("learn", &["--", &link]).status.success());
    assert!(section(&home, "passes").exists(), "by the file, not the link");
    // A service's own learning saves under the same name.
    let mut service = Command::new(&link);
    service.env("LD_PRELOAD", library(LIBRARY)).env("CACHEWISE_LEARN", "1");
    service.env("XDG_CONFIG_HOME", home.0.path().join("config"));
    assert!(service.output().expect("starts").status.success());
    let explained = home.cachewise(&["explain", "--program", "passes"]);
    let told = text(&explained.stdout);
    assert!(told.lines().any(|line| line.contains(" 80 ")), "40 calls each: {told}");
    // And as it is called: what a person types is found.
    let other = home.cachewise(&["explain", "--program", &link]);
    assert_eq!(text(&other.stdout), told, "{}", text(&other.stderr));
    // A script has its own, which the programs that it starts share.
    assert!(home.with_library("learn", &["--", &script]).status.success());
    assert!(section(&home, "script.sh").exists());
    assert_eq!(text(&home.cachewise(&["forget", &link]).stdout), "forgotten: passes\n");
}

#[test]
fn a_damaged_section_does_not_end_learning_and_a_foreign_one_is_refused() {
    let home = Home::new();
    let program = home.program();
    assert!(home.with_library("learn", &["--", &program]).status.success());
    let file = section(&home, "passes");
    let whole = std::fs::read(&file).expect("saved");
    let lines = b"cachewise-program 2\ncolour red\n";
    for damaged in [lines, &whole[..whole.len() / 2], b"", b"cachewise-program 1\n"] {
        std::fs::write(&file, damaged).expect("written");
        let output = home.with_library("learn", &["--", &program]);
        let told = text(&output.stderr);
        assert!(output.status.success(), "{told}");
        assert!(damaged != lines || told.contains("passes.program: line 2, key:"), "{told}");
        assert!(text(&output.stdout).contains(" 40 "), "{}", text(&output.stdout));
    }
    std::fs::write(&file, "a letter\n").expect("written");
    let output = home.with_library("learn", &["--", &program]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("passes.program: line 1"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "", "nothing was run");
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "a letter\n", "left alone");
}

/// What others wrote is shown, and does nothing: a module that is a pipe, or without end, and names that
/// would move the terminal.
#[test]
fn a_hostile_section_is_only_text() {
    use cachewise_learn::section::write_end;
    let home = Home::new();
    assert!(home.with_library("learn", &["--", &home.program()]).status.success());
    let file = section(&home, "passes");
    let whole = std::fs::read_to_string(&file).expect("saved");
    let pipe = home.path("pipe");
    Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    for path in [pipe.as_str(), "/dev/zero", "/proc/kcore", "/x/\u{1b}]0;title\u{7}\u{1b}[2J"] {
        let mut hostile: String = whole
            .lines()
            .filter(|line| !line.starts_with("end "))
            .map(|line| match line.split_once(" /") {
                Some((begin, _)) if line.starts_with("module ") => format!("{begin} {path}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let body = hostile.clone();
        write_end(&mut hostile, body.as_bytes()).expect("written");
        std::fs::write(&file, hostile).expect("written");
        let output = home.cachewise(&["explain", "--program", "passes"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let told = text(&output.stdout);
        assert!(told.contains(" 40 ") && !told.contains(['\u{1b}', '\u{7}']), "{told}");
    }
}

#[test]
fn where_the_library_was_looked_for_is_one_line() {
    let home = Home::new();
    let alone = home.0.path().join("cachewise");
    std::fs::copy(env!("CARGO_BIN_EXE_cachewise"), &alone).expect("copied");
    let place = home.0.path().join("elsewhere");
    let ask = |variable: &str| {
        let mut command = Command::new(&alone);
        command.args(["exec", "--", "/bin/true"]).env("XDG_CONFIG_HOME", "/nonexistent");
        for other in ["CACHEWISE_LIBRARY", "LD_LIBRARY_PATH", "LD_PRELOAD"] {
            command.env_remove(other);
        }
        command.env(variable, &place).output().expect("starts")
    };
    for variable in ["CACHEWISE_LIBRARY", "LD_LIBRARY_PATH"] {
        let output = ask(variable);
        let told = text(&output.stderr);
        assert_eq!((output.status.code(), told.lines().count()), (Some(1), 1), "{told}");
        assert!(told.contains("libcachewise_preload.so not found; looked for "), "{told}");
        assert!(told.contains("elsewhere/libcachewise_preload.so"), "{told}");
    }
    std::fs::create_dir(&place).expect("made");
    std::fs::copy(library(LIBRARY), place.join(LIBRARY)).expect("copied");
    for variable in ["CACHEWISE_LIBRARY", "LD_LIBRARY_PATH"] {
        let output = ask(variable);
        assert!(output.status.success(), "{variable}: {}", text(&output.stderr));
    }
}

#[test]
fn why_nothing_was_learned_is_one_cause() {
    let home = Home::new();
    let told = text(&home.with_library("learn", &["--", "/bin/true"]).stdout);
    let none = told.strip_prefix("true: no copy or fill of ").expect(&told);
    assert!(none.contains(" or more went through the dynamic linker"), "{told}");
    let killed = home.with_library("learn", &["--", "/bin/sh", "-c", "kill -9 $$"]);
    assert!(text(&killed.stdout).contains(": ended by signal 9, before it"), "{killed:?}");
    // A profile with one way: nothing can be tried.
    let cpu = cachewise::cpu::Signature::detect();
    let mut body = format!("cachewise-profile 1\ncpu {cpu}\ncaches 1 2 3\n");
    for operation in ["copy", "move", "fill", "zero"] {
        for hint in ["unknown", "soon", "never"] {
            body += &format!("decide {operation} {hint} 256 max {operation}.sse2\n");
        }
    }
    let sum = cachewise::profile::fnv1a64(body.as_bytes());
    let end = format!("end {} fnv1a64:{sum:016x}\n", body.lines().count());
    let profile = home.path("one-way.profile");
    std::fs::write(&profile, body + &end).expect("written");
    let told = home.with_library("learn", &["--profile", &profile, "--", &home.program()]);
    let why = "passes: the profile has no non-temporal stores, so there is nothing to try: nothing \
               learned\n";
    assert!(text(&told.stdout).contains(why), "{}", text(&told.stdout));
}
