//! `learn`, `exec`, `explain --program` and `forget`, once each for real, and each refusal. Which way
//! is found better depends on the machine and is not asked.

use crate::exec::{asked_beside, compiled, libraries};
use crate::support::{Folder, Said, has, names, profile, said};
use cachewise_learn::section::write_end;
use std::fs;
use std::path::Path;
use std::process::Command;

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

/// A user's folder, with the program in it.
struct Home(Folder);

impl Home {
    fn new() -> Home {
        let folder = Folder::new();
        compiled(PROGRAM, &folder, "passes");
        Home(folder)
    }

    /// Where `passes` is a program.
    fn run(&self, command: &mut Command) -> Said {
        let path = std::env::var("PATH").expect("a path");
        command.env("PATH", format!("{}:{path}", self.0.path("")));
        said(command.env("XDG_CONFIG_HOME", self.0.path("config")))
    }

    fn cachewise(&self, arguments: &str) -> Said {
        self.run(&mut asked_beside(arguments))
    }

    #[track_caller]
    fn refused(&self, arguments: &str, status: i32, told: &str) {
        has(&self.cachewise(arguments).with(status).err, &[told]);
    }

    /// A program's section by its name here, wherever the profile's name puts it.
    fn section(&self, name: &str) -> String {
        let programs = names(Path::new(&self.0.path("config/cachewise"))).pop().expect("one");
        format!("config/cachewise/{programs}/{name}.program")
    }
}

#[test]
fn a_program_is_learned_explained_followed_and_forgotten() {
    let home = Home::new();
    let [page, record] = ["page.html", "record.json"].map(|name| home.0.path(name));
    let learn = format!("learn --runs 2 --html {page} --json {record} -- passes");
    let told = home.cachewise(&learn).with(0).out;
    assert_eq!(told.matches("right\n").count(), 2, "{told}");
    let row = told.lines().find(|line| line.contains("passes_on+0x")).expect("the call site");
    has(row, &["copy", " 80 ", "16 MiB"]);
    // The line that is named is that of the call.
    let named = told.split_once("addr2line -e ").expect("a command").1;
    let named = named.lines().next().expect("its line");
    let (file, offset) = named.split_once(' ').expect("a file and an offset");
    let line = said(Command::new("addr2line").args(["-f", "-e", file, offset]));
    assert!(line.out.starts_with("passes_on\n"), "{named}: {line:?}");
    has(&home.0.read("page.html"), &["passes_on"]);
    let record: serde_json::Value =
        serde_json::from_str(&home.0.read("record.json")).expect("JSON");
    let sites = record["sites"].as_array().expect("sites");
    let site = sites.iter().find(|site| site["calls"] == 80).expect("the call site");
    assert_eq!((&site["operation"], &site["octave"]), (&"copy".into(), &24.into()));
    has(site["function"].as_str().expect("text"), &[" passes_on+0x"]);
    assert!(record["proof"].is_null());

    has(&home.cachewise("explain --program passes").out, &[row]);
    let followed = home.cachewise("exec -- passes");
    assert_eq!((&*followed.out, &*followed.err), ("right\n", ""));
    let unlearned = home.cachewise("exec --unlearned -- passes");
    assert_eq!(unlearned.out, "right\n");

    home.refused("explain --program other", 1, "programs: passes");
    assert_eq!(home.cachewise("forget passes").out, "forgotten: passes\n");
    home.refused("forget passes", 1, "nothing was learned of \"passes\"; programs: none yet");
    has(&home.cachewise("forget --all").out, &["nothing to forget"]);
}

#[test]
fn the_proof_runs_all_three_and_compares_their_output() {
    let home = Home::new();
    let told = home.cachewise("learn --prove --rounds 6 --name named -- passes");
    // 3 would be "slower", which a loaded machine may well find.
    assert!(matches!(told.status, Some(0 | 3)), "{told:?}");
    has(&told.out, &["output: the same in every run", "\nlibc", "\nprofile only", "\nlearned"]);
    let followed = home.cachewise("exec --name named -- passes");
    assert_eq!(followed.out, "right\n");
}

#[test]
fn what_cannot_be_done_is_refused_in_a_line() {
    let home = Home::new();
    home.refused("learn", 2, "PROGRAM");
    home.refused("learn --runs 0 -- true", 2, "--runs");
    home.refused("learn --rounds 6 -- true", 2, "--prove");
    home.refused("learn --library /nonexistent -- true", 1, "/nonexistent");
    home.refused("explain", 2, "--op");
    home.refused("explain --program p --op copy", 2, "cannot be used with");
    home.refused("explain --program ../p", 1, "accepted a name without a slash");
    home.refused("explain --program p", 1, "nothing was learned of \"p\"");
    home.refused("forget", 2, "PROGRAM");
    home.cachewise("learn -- no-such-program-anywhere").with(127);
}

#[test]
fn a_program_has_one_name_however_it_is_called() {
    let home = Home::new();
    let link = home.0.path("link");
    std::os::unix::fs::symlink(home.0.path("passes"), &link).expect("made");
    let script = home.0.write("script.sh", format!("#!/bin/sh\nexec {}\n", home.0.path("passes")));
    said(Command::new("chmod").args(["+x", &script])).with(0);
    home.cachewise(&format!("learn -- {link}")).with(0);
    // By the file, not the link.
    home.0.read(&home.section("passes"));
    // A service's own learning saves under the same name.
    let mut service = Command::new(&link);
    service.env("LD_PRELOAD", libraries().join(LIBRARY)).env("CACHEWISE_LEARN", "1");
    home.run(&mut service).with(0);
    let told = home.cachewise("explain --program passes").out;
    assert!(told.lines().any(|line| line.contains(" 80 ")), "40 calls each: {told}");
    // And as it is called: what a person types is found.
    assert_eq!(home.cachewise(&format!("explain --program {link}")).out, told);
    // A script has its own, which the programs that it starts share.
    home.cachewise(&format!("learn -- {script}")).with(0);
    home.0.read(&home.section("script.sh"));
    assert_eq!(home.cachewise(&format!("forget {link}")).out, "forgotten: passes\n");
}

#[test]
fn a_damaged_section_does_not_end_learning_and_a_foreign_one_is_refused() {
    let home = Home::new();
    home.cachewise("learn -- passes").with(0);
    let file = home.section("passes");
    let whole = home.0.read(&file);
    let lines = "cachewise-program 2\ncolour red\n";
    for damaged in [lines, &whole[..whole.len() / 2], "", "cachewise-program 1\n"] {
        home.0.write(&file, damaged);
        let told = home.cachewise("learn -- passes").with(0);
        assert!(damaged != lines || told.err.contains("passes.program: line 2, key:"), "{told:?}");
        has(&told.out, &[" 40 "]);
    }
    home.0.write(&file, "a letter\n");
    let told = home.cachewise("learn -- passes").with(1);
    has(&told.err, &["passes.program: line 1"]);
    assert_eq!(told.out, "", "nothing was run");
    assert_eq!(home.0.read(&file), "a letter\n", "left alone");
}

/// What others wrote is shown, and does nothing: a module that is a pipe, or without end, and names that
/// would move the terminal.
#[test]
fn a_hostile_section_is_only_text() {
    let home = Home::new();
    home.cachewise("learn -- passes").with(0);
    let file = home.section("passes");
    let whole = home.0.read(&file);
    let pipe = home.0.path("pipe");
    said(Command::new("mkfifo").arg(&pipe)).with(0);
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
        home.0.write(&file, hostile);
        let told = home.cachewise("explain --program passes").with(0).out;
        assert!(told.contains(" 40 ") && !told.contains(['\u{1b}', '\u{7}']), "{told}");
    }
}

#[test]
fn where_the_library_was_looked_for_is_one_line() {
    let home = Home::new();
    let alone = home.0.path("cachewise");
    fs::copy(env!("CARGO_BIN_EXE_cachewise"), &alone).expect("copied");
    let variables = ["CACHEWISE_LIBRARY", "LD_LIBRARY_PATH"];
    let ask = |variable: &str, status: i32| {
        let mut command = Command::new(&alone);
        command.args(["exec", "--", "/bin/true"]);
        for other in variables.iter().chain(&["LD_PRELOAD"]) {
            command.env_remove(other);
        }
        home.run(command.env(variable, home.0.path("elsewhere"))).with(status)
    };
    for variable in variables {
        let told = ask(variable, 1);
        has(&told.err, &["libcachewise_preload.so not found; looked for "]);
        has(&told.err, &["elsewhere/libcachewise_preload.so"]);
        assert_eq!(told.err.lines().count(), 1, "{told:?}");
    }
    fs::create_dir(home.0.path("elsewhere")).expect("made");
    fs::copy(libraries().join(LIBRARY), home.0.path("elsewhere/libcachewise_preload.so"))
        .expect("copied");
    for variable in variables {
        ask(variable, 0);
    }
}

#[test]
fn the_programs_status_is_ours_and_why_nothing_was_learned_is_one_cause() {
    let home = Home::new();
    let told = home.cachewise("learn -- passes 7").with(7).out;
    assert!(told.contains("nothing learned") || told.contains("call sites"), "{told}");
    let told = home.cachewise("learn -- /bin/true").out;
    let none = told.strip_prefix("true: no copy or fill of ").expect(&told);
    has(none, &[" or more went through the dynamic linker"]);
    let killed = home.run(asked_beside("learn -- /bin/sh -c").arg("kill -9 $$"));
    has(&killed.out, &[": ended by signal 9, before it"]);
    // A profile with one way: nothing can be tried.
    let lines = ["copy", "move", "fill", "zero"].map(|operation| {
        let line = |hint| format!("decide {operation} {hint} 256 max {operation}.sse2");
        ["unknown", "soon", "never"].map(line).join("\n")
    });
    let profile = home.0.write("one-way.profile", profile(&lines.join("\n")));
    let told = home.cachewise(&format!("learn --profile {profile} -- passes"));
    let why = "passes: the profile has no non-temporal stores, so there is nothing to try: nothing \
               learned\n";
    has(&told.out, &[why]);
}
