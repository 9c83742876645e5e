//! `CACHEWISE_STATS`: what is counted, where it is printed.

use crate::support::{preloaded, run, text, watched};
use std::path::Path;

const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char from[1 << 20], to[1 << 20];
static volatile size_t small = 10, large = 100000, repeat = 7;
__attribute__((noinline)) void caller(void) { memcpy(to, from, large); }
int main(int count, char **arguments) {
    if (count > 1 && chdir(arguments[1])) return 1;
    for (size_t i = 0; i < repeat; i++) { memmove(to, from, small); caller(); }
    memset(to, 0, large);
    memset(to, 1, small);
    if (fork() == 0) { if (memcmp(from, from + 1, large)) abort(); exit(0); }
    int status;
    wait(&status);
    return status;
}
"#;

fn program(directory: &Path) -> std::path::PathBuf {
    let source = directory.join("counted.c");
    std::fs::write(&source, PROGRAM).expect("written");
    let program = directory.join("counted");
    let output = std::process::Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-fno-builtin", "-rdynamic", "-o"])
        .args([&program, &source])
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", text(&output.stderr));
    program
}

/// The calls and bytes of an operation and size in one process's part.
fn row(part: &str, operation: &str, size: &str) -> Option<(u64, u64)> {
    part.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        // And which kernels did them.
        let calls =
            words.len() > 4 && (matches!(words[4], "inlined" | "libc") || words[4].contains('.'));
        (calls && words[0] == operation && words[1] == size)
            .then(|| (words[2].parse().expect("calls"), words[3].parse().expect("bytes")))
    })
}

fn check(told: &str) {
    let parts: Vec<_> = told.split("cachewise: calls of process ").skip(1).collect();
    assert_eq!(parts.len(), 2, "the child's and the parent's: {told}");
    let (child, parent) = (parts[0], parts[1]);
    assert_eq!(row(parent, "copy", "64K..128K"), Some((7, 700_000)), "{told}");
    assert_eq!(row(parent, "move", "8..16"), Some((7, 70)), "{told}");
    assert_eq!(row(parent, "fill", "8..16"), Some((1, 10)), "{told}");
    assert_eq!(row(parent, "zero", "64K..128K"), Some((1, 100_000)), "{told}");
    assert_eq!(row(parent, "compare", "64K..128K"), None, "that was the child: {told}");
    assert_eq!(row(child, "compare", "64K..128K"), Some((1, 100_000)), "{told}");
    assert_eq!(row(child, "copy", "64K..128K"), None, "that was the parent: {told}");
    let site = parent.lines().find(|line| line.contains(" caller+0x")).expect("the call site");
    assert!(site.starts_with("copy") && site.contains("700000"), "{site}");
    assert!(site.contains("/counted+0x"), "module and offset: {site}");
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn calls_bytes_and_call_sites_go_where_they_are_wanted() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = program(directory.path());
    let told = run(&mut watched(&program, "1"));
    check(&text(&told.stderr));

    // Servers are started by links to one program.
    let link = directory.path().join("served");
    std::os::unix::fs::symlink(&program, &link).expect("a link");
    let told = text(&run(&mut watched(&link, "1")).stderr);
    assert!(told.contains("/counted as served)"), "{told}");

    // A relative path is the starting directory's, wherever the program goes.
    let mut command = watched(&program, "counts");
    command.arg("/").current_dir(directory.path());
    let told = run(&mut command);
    assert_eq!(text(&told.stderr), "");
    check(&std::fs::read_to_string(directory.path().join("counts")).expect("the counts"));
}

/// As all of coreutils do, to learn whether what they wrote arrived; and a daemon, in whose stderr's place
/// is another file by then.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn a_program_that_closes_stderr_prints_there_and_nowhere_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("closes.c");
    std::fs::write(
        &source,
        "#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
         static char from[1000], to[1000];\nstatic volatile size_t n = 1000;\nstatic const char *other;\n\
         static void last(void) { fclose(stderr); if (other) open(other, O_WRONLY | O_CREAT, 0600); }\n\
         int main(int count, char **arguments) {\n  if (count > 1) other = arguments[1];\n  \
         atexit(last);\n  memcpy(to, from, n);\n  return 0;\n}\n",
    )
    .expect("written");
    let program = directory.path().join("closes");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-O1", "-fno-builtin", "-o"]).arg(&program).arg(&source);
    assert!(compiler.status().expect("a C compiler").success());
    let told = text(&run(&mut watched(&program, "1")).stderr);
    assert_eq!(row(&told, "copy", "512..1K"), Some((1, 1000)), "{told}");
    let other = directory.path().join("other");
    let told = run(watched(&program, "1").arg(&other));
    assert!(text(&told.stderr).contains("calls of process"), "stderr is a pipe, kept");
    assert_eq!(std::fs::read(&other).expect("made").len(), 0);
}

/// A server that calls itself something else (`redis-server *:6379`), and one at a fixed address:
/// what is printed is what `addr2line` takes.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn call_sites_are_named_by_their_file_whatever_the_program_calls_itself() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, flags) in [("moves", &["-fPIE", "-pie"]), ("stays", &["-fno-pie", "-no-pie"])] {
        let source = directory.path().join("renamed.c");
        std::fs::write(
            &source,
            "#include <string.h>\n#include <sys/prctl.h>\n\
             static char from[1 << 20], to[1 << 20];\nstatic volatile size_t large = 100000;\n\
             __attribute__((noinline)) void caller(void) {\n  memcpy(to, from, large);\n  \
             to[0]++;\n}\nint main(int count, char **arguments) {\n  (void)count;\n  \
             memset(arguments[0], '*', strlen(arguments[0]));\n  prctl(PR_SET_NAME, \"*:6379\");\n  \
             caller();\n  return 0;\n}\n",
        )
        .expect("written");
        let program = directory.path().join(name);
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-g", "-O1", "-fno-builtin"]).args(flags).arg("-o").arg(&program);
        assert!(compiler.arg(&source).status().expect("a C compiler").success());
        let told = text(&run(&mut watched(&program, "1")).stderr);
        let site = told.lines().find(|line| line.starts_with("copy") && line.contains(" site "));
        let site = site.expect("the call site").split_whitespace().last().expect("a place");
        let (file, offset) = site.rsplit_once('+').expect("a file and an offset");
        assert_eq!(Path::new(file), program.canonicalize().expect("there"), "{told}");
        // The call is before where it returns to.
        let offset = u64::from_str_radix(offset.trim_start_matches("0x"), 16).expect("digits") - 1;
        let mut lines = std::process::Command::new("addr2line");
        let found = lines.args(["-f", "-e", file, &format!("{offset:#x}")]).output();
        let found = text(&found.expect("addr2line, of the compiler's package").stdout);
        assert!(found.starts_with("caller\n") && found.contains("renamed.c:6"), "{site}: {found}");
    }
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn nothing_is_printed_without_being_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = program(directory.path());
    for value in [None, Some(""), Some("0")] {
        let mut command = watched(&program, "1");
        match value {
            Some(value) => command.env("CACHEWISE_STATS", value),
            None => command.env_remove("CACHEWISE_STATS"),
        };
        assert_eq!(text(&run(&mut command).stderr), "");
    }
    // The library that does not count says nothing of it.
    assert_eq!(text(&run(preloaded(&program).env("CACHEWISE_STATS", "1")).stderr), "");
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn a_file_that_cannot_be_written_is_told_and_the_program_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = program(directory.path());
    let mut command = watched(&program, "/no-such-directory/counts");
    let output = run(&mut command);
    assert_eq!(
        text(&output.stderr),
        "cachewise: CACHEWISE_STATS=/no-such-directory/counts: no such file or directory; \
         no statistics\n"
    );
    assert_eq!(text(&run(command.env("CACHEWISE_QUIET", "1")).stderr), "");
}

/// A process that a signal ends prints nothing; one that ends by `_exit` all but its call sites; overlapping buffers and
/// blocks are reported.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn how_a_process_ends_decides_what_it_prints() {
    const ENDS: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char from[1 << 20], to[1 << 20];
static volatile size_t large = 100000;
int main(int count, char **arguments) {
    char *block = calloc(3, large);
    memcpy(to, from, large);
    memcpy(to, to + 1, large);
    block = realloc(block, large);
    free(block);
    if (count > 1 && arguments[1][0] == 'k') raise(SIGKILL);
    if (count > 1) _exit(7);
    return 7;
}
"#;
    let directory = tempfile::tempdir().expect("a directory");
    let [source, program] = ["ends.c", "ends"].map(|name| directory.path().join(name));
    std::fs::write(&source, ENDS).expect("written");
    run(std::process::Command::new("cc")
        .args(["-O1", "-fno-builtin", "-o"])
        .args([&program, &source]));
    let told = |words: &[&str]| {
        let ended = watched(&program, "1").args(words).output().expect("it starts");
        (ended.status.code(), text(&ended.stderr))
    };
    let (status, whole) = told(&[]);
    assert_eq!(status, Some(7), "{whole}");
    let words = |begin: &str| whole.lines().find(|line| line.starts_with(begin)).map(str::to_owned);
    assert!(words("block").is_some(), "{whole}");
    assert!(whole.contains("overlap"), "{whole}");
    assert!(whole.contains(" site "), "{whole}");
    let (status, part) = told(&["_exit"]);
    assert_eq!(status, Some(7), "{part}");
    assert!(part.contains("copy") && !part.contains(" site "), "{part}");
    assert_eq!(told(&["kill"]), (None, String::new()));
}
