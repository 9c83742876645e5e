//! `learn`, `exec`, `explain --program` and `forget`, once each for real, and each refusal. Which way
//! is found better depends on the machine and is not asked.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

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

/// The library as it ships, built once.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
        let output = Command::new(env!("CARGO"))
            .args(["build", "--release", "-p", "cachewise-preload", "--target-dir"])
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        target.join("release/libcachewise_preload.so")
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        let directory = tempfile::tempdir().expect("a directory");
        let source = directory.path().join("p.c");
        std::fs::write(&source, PROGRAM).expect("written");
        let output = Command::new("cc")
            .args(["-O1", "-fno-builtin", "-o"])
            .arg(directory.path().join("passes"))
            .arg(&source)
            .output()
            .expect("a C compiler");
        assert!(output.status.success(), "{}", text(&output.stderr));
        Home(directory)
    }

    fn program(&self) -> String {
        self.0.path().join("passes").to_string_lossy().into_owned()
    }

    fn cachewise(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cachewise"));
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("CACHEWISE_") {
                command.env_remove(&variable);
            }
        }
        command.args(arguments).env("XDG_CONFIG_HOME", self.0.path().join("config"));
        command.output().expect("the program starts")
    }

    fn with_library(&self, verb: &str, arguments: &[&str]) -> Output {
        let library = library().to_string_lossy().into_owned();
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
    let page = home.0.path().join("page.html");
    let page = page.to_string_lossy().into_owned();
    let record = home.0.path().join("record.json").to_string_lossy().into_owned();
    let arguments = ["--runs", "2", "--html", &page, "--json", &record, "--", &program];
    let output = home.with_library("learn", &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert_eq!(told.matches("right\n").count(), 2, "{told}");
    let row = told.lines().find(|line| line.contains("passes_on+0x")).expect("the call site");
    assert!(row.contains("copy") && row.contains(" 80 ") && row.contains("16 MiB"), "{row}");
    assert!(std::fs::read_to_string(&page).expect("a page").contains("passes_on"));
    let record = std::fs::read(&record).expect("a record");
    let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
    let sites = record["sites"].as_array().expect("sites");
    let site = sites.iter().find(|site| site["calls"] == 80).expect("the call site");
    assert_eq!((&site["operation"], &site["octave"]), (&"copy".into(), &24.into()));
    assert!(site["function"].as_str().expect("text").starts_with("passes_on+0x"), "{site}");
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
    assert!(told.contains("nothing to learn") || told.contains("call sites"), "{told}");
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
    // A damaged section is told with its file and line, before anything is run.
    let learned = home.with_library("learn", &["--", &home.program()]);
    assert!(learned.status.success());
    let config = home.0.path().join("config/cachewise");
    let section = std::fs::read_dir(&config).expect("made").next().expect("one").expect("entry");
    let section = section.path().join("passes.program");
    std::fs::write(&section, "cachewise-program 2\ncolour red\n").expect("written");
    let output = home.with_library("learn", &["--", &home.program()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("passes.program: line 2, key:"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(text(&output.stdout), "", "nothing was run");
}
