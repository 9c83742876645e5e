//! Programs whose stacks are known.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use cachewise_blame::{Blamed, Recording, Stacks};
use std::process::Command;

const COMMON: &str = r"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define APART __attribute__((noinline))
static char *map(size_t n) { return mmap(0, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static APART void touch(volatile char *p, size_t n) { for (size_t i = 0; i < n; i += 4096) p[i] = 1; }
";

/// Compiles it, without frame pointers, and blames it.
fn blame(blamed: Blamed, faults: u64, source: &str) -> Stacks {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, program] = ["p.c", "program"].map(|name| folder.path().join(name));
    std::fs::write(&file, format!("{COMMON}{source}")).expect("written");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-fomit-frame-pointer", "-fno-builtin", "-pthread", "-o"])
        .arg(&program)
        .arg(&file);
    assert!(cc.status().expect("cc").success());
    run(blamed, faults, Command::new(&program))
}

fn run(blamed: Blamed, faults: u64, mut command: Command) -> Stacks {
    let recording = Recording::begin(blamed, faults).unwrap_or_else(|refused| panic!("{refused}"));
    let mut child = command.spawn().expect("it starts");
    let program = child.id().cast_signed();
    assert!(child.wait().expect("it ends").success());
    let stacks = recording.end(Some(program), true);
    let map = format!("/tmp/perf-{program}.map");
    assert!(!std::path::Path::new(&map).exists(), "{map} is left");
    stacks
}

/// The part of all counts whose stacks have this function.
fn part(stacks: &Stacks, function: &str) -> f64 {
    let found = stacks.functions().into_iter().find(|(name, _)| name == function);
    found.map_or(0.0, |(_, sum)| sum as f64) / stacks.total() as f64
}

#[test]
fn faults_are_blamed_on_those_who_touch_first_in_threads_and_children_too() {
    let source = r"
static APART void large(void) { touch(map(96 << 20), 96 << 20); }
static APART void small(void) { touch(map(32 << 20), 32 << 20); }
static void *thread(void *p) { large(); return p; }
int main(void) {
    pthread_t t; pthread_create(&t, 0, thread, 0); pthread_join(t, 0);
    if (!fork()) { small(); _exit(0); }
    wait(0); return 0;
}";
    let stacks = blame(Blamed::Faults, 32768, source);
    let [large, small] = ["large", "small"].map(|name| part(&stacks, name));
    assert!(
        (large - 0.75).abs() < 0.05 && (small - 0.25).abs() < 0.05,
        "{large} {small}\n{}",
        stacks.lines()
    );
    assert!((stacks.total() as f64 / 32768.0 - 1.0).abs() < 0.1, "{}", stacks.total());
    let whole = stacks
        .folded
        .keys()
        .any(|stack| stack.starts_with("program;") && stack.contains(";main;small;touch"));
    assert!(whole, "from main on:\n{}", stacks.lines());
    assert_eq!(stacks.lost, 0);
}

#[test]
fn memory_is_blamed_on_those_whose_pages_stay() {
    let source = r"
static APART void keeps(void) { touch(map(64 << 20), 64 << 20); }
static APART void drops(void) { char *p = map(128 << 20); touch(p, 128 << 20); munmap(p, 128 << 20); }
int main(void) { drops(); keeps(); usleep(600000); return 0; }";
    let stacks = blame(Blamed::Memory, 49152, source);
    assert!(part(&stacks, "keeps") > 0.95 && part(&stacks, "drops") < 0.02, "{}", stacks.lines());
    assert!((stacks.total() as f64 / 65536.0 - 1.0).abs() < 0.1, "{} KiB", stacks.total());
}

#[test]
fn a_huge_page_weighs_what_it_holds() {
    let source = r"
static APART void huge(void) { char *p = map(68 << 20); p = (char *)(((size_t)p + 0x1fffff) & ~0x1fffffUL);
    madvise(p, 64 << 20, 14); touch(p, 64 << 20); }
static APART void pages(void) { touch(map(64 << 20), 64 << 20); }
int main(void) { huge(); pages(); usleep(600000); return 0; }";
    let stacks = blame(Blamed::Memory, 17000, source);
    // If the system has no huge pages at hand, small ones stand in: the sum is the same.
    let [huge, pages] = ["huge", "pages"].map(|name| part(&stacks, name));
    assert!(
        (huge - 0.5).abs() < 0.1 && (pages - 0.5).abs() < 0.1,
        "{huge} {pages}\n{}",
        stacks.lines()
    );
}

#[test]
fn copies_are_blamed_on_their_callers() {
    let source = r#"
static char a[1 << 20], b[1 << 20];
static APART void copies(void) { for (int i = 0; i < 6000; i++) { memcpy(a, b, sizeof a); __asm__ volatile("" ::: "memory"); } }
static APART void counts(void) { for (volatile long i = 0; i < 200000000; i++); }
int main(void) { memset(b, 1, sizeof b); copies(); counts(); return 0; }"#;
    let stacks = blame(Blamed::Copies, 1, source);
    assert!(part(&stacks, "copies") > 0.9, "{}", stacks.lines());
    assert!(part(&stacks, "counts") == 0.0, "{}", stacks.lines());
    let leaf = |stack: &String| stack.rsplit(';').next().is_some_and(|leaf| leaf.contains("mem"));
    assert!(stacks.folded.keys().all(leaf), "{}", stacks.lines());
}

/// From 3.12 on Python names its functions in a perf map.
#[test]
fn python_functions_are_named_where_python_names_them() {
    let script = "import sys\ndef hoards():\n    return bytearray(b'x') * (64 << 20)\ndef main():\n    return len(hoards())\nmain()\n\
                  sys.exit(0)";
    let version =
        Command::new("python3").args(["-c", "import sys; print(sys.version_info[1])"]).output();
    let version = String::from_utf8(version.expect("python3").stdout).expect("text");
    let mut command = Command::new("python3");
    command.args(["-c", script]).env("PYTHONPERFSUPPORT", "1");
    let stacks = run(Blamed::Faults, 16384, command);
    let native = stacks.functions().iter().any(|(name, _)| name.contains("PyEval"));
    assert!(native, "{}", stacks.lines());
    if version.trim().parse::<u32>().expect("a version") >= 12 {
        let named = |stack: &String| {
            let [main, hoards] = ["py::main:", "py::hoards:"].map(|name| stack.find(name));
            main.is_some() && main < hoards
        };
        assert!(stacks.folded.keys().any(named), "{}", stacks.lines());
    }
}
