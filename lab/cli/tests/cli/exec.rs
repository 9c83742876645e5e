//! `exec`: what programs get, and each refusal.

#[path = "../../../../lib/preload/tests/preload/built.rs"]
mod built;

use crate::support::{Folder, asked, has, piped, said, text};
use built::built;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder of the preload library as it ships; it is built once.
pub fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let packages = ["cachewise-preload", "cachewise-preload-stats", "cachewise-probe"];
    BUILT.get_or_init(|| built(&packages))
}

/// The command, which finds the preload library.
pub fn asked_beside(arguments: &str) -> Command {
    let mut command = asked(arguments);
    command.env("CACHEWISE_LIBRARY", libraries());
    command
}

/// A program of that text, compiled in that folder.
pub fn compiled(text: &str, folder: &Folder, name: &str) -> String {
    let (source, program) = (folder.write("p.c", text), folder.path(name));
    said(Command::new("cc").args(["-O1", "-fno-builtin", "-o", &program, &source])).with(0);
    program
}

/// No file of its may become larger than this. That is an error of each write, as on a full disk, where the signal for it is
/// ignored.
pub fn limited(command: &mut Command, bytes: u64, signal: libc::sighandler_t) -> &mut Command {
    let limit = move || {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        // SAFETY: `limit` is readable.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
        // SAFETY: nothing is called when it comes.
        unsafe { libc::signal(libc::SIGXFSZ, signal) };
        Ok(())
    };
    // SAFETY: system calls alone, which a forked child may make.
    unsafe { command.pre_exec(limit) }
}

/// Signals, streams and variables of a program are those that it has without the command.
#[test]
fn a_program_begins_as_it_would_without_the_command() {
    let begun = |words: &str, script: &str| {
        let mut command = match words {
            "" => Command::new("/bin/sh"),
            words => {
                let mut command = asked_beside(words);
                command.arg("/bin/sh");
                command
            }
        };
        command.args(["-c", script]);
        let ignored = || {
            for signal in [libc::SIGPIPE, libc::SIGCHLD, libc::SIGINT, libc::SIGQUIT] {
                // SAFETY: nothing is called when it comes.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
            for signal in [libc::SIGTERM, libc::SIGHUP] {
                // SAFETY: as above.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            // SAFETY: the program is to begin without it.
            unsafe { libc::close(0) };
            Ok(())
        };
        // SAFETY: system calls alone, which a forked child may make.
        said(unsafe { command.pre_exec(ignored) })
    };
    // By the shell alone: while it starts a program, it blocks signals itself.
    let script = "while read -r line; do case $line in SigIgn*|SigBlk*|SigCgt*) echo \"$line\";; esac; done \
                  3</proc/$$/status <&3; [ -e /proc/$$/fd/0 ] || echo no stdin; exit 7";
    let plain = begun("", script).with(7).out;
    assert!(plain.contains("no stdin"), "{plain}");
    for words in ["exec --", "exec --stats --"] {
        assert_eq!(begun(words, script).with(7).out, plain, "{words}");
    }
}

#[test]
fn a_program_is_found_and_run_as_the_c_library_does() {
    let folder = Folder::new();
    let script = folder.write("script", "echo from a script; exit 5\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("set");
    for words in ["exec", "exec --stats"] {
        let told = said(&mut asked_beside(&format!("{words} -- {script}"))).with(5);
        assert_eq!(told.out, "from a script\n", "{words}: without a first line that says by what");
        said(asked_beside(&format!("{words} -- true")).env_remove("PATH")).with(0);
    }
}

/// The program is the process that the caller started, with statistics too: nothing passes signals on, waits for it
/// or is left when it ends.
#[test]
fn a_program_takes_the_commands_place() {
    for words in ["exec -- sh -c", "exec --stats -- sh -c"] {
        let mut command = asked_beside(words);
        let script = "echo $$ $PPID; cat /proc/$$/task/$$/children; exit 7";
        let child = piped({
            command.arg(script);
            command
        });
        let (own, started) = (std::process::id(), child.id());
        let ended = child.wait_with_output().expect("it ends");
        let told = text(&ended.stdout);
        let (first, children) = told.split_once('\n').expect("a line");
        assert_eq!(first, format!("{started} {own}"), "{words}");
        // The one that prints this.
        assert_eq!(children.split_whitespace().count(), 1, "{words}: {children}");
        assert_eq!(ended.status.code(), Some(7), "{words}");
    }
}

/// Whatever kills or outlives the program, and whatever limits it.
#[test]
fn statistics_leave_no_file_and_change_no_status() {
    let folder = Folder::new();
    let temporary = folder.path("");
    let mut killed = asked_beside("exec --stats -- sh -c");
    killed.arg("kill -9 $$").env("TMPDIR", &temporary);
    assert_eq!(said(&mut killed).status, None, "it was killed");
    let mut asked = asked_beside("exec --stats -- sh -c");
    asked.arg("ls / >/dev/null && exit 3").env("TMPDIR", &temporary);
    let told = said(limited(&mut asked, 0, libc::SIG_DFL)).with(3);
    assert_eq!(told.err.matches("calls of process").count(), 2, "each prints its own: {told:?}");
    let mut left = asked_beside("exec --stats -- sh -c");
    left.arg("(while [ -e /proc/$$/fd/2 ]; do sleep 0.01; done; ls / >/dev/null) & exit 3");
    let told = said(left.env("TMPDIR", &temporary)).with(3);
    let of_ls = |line: &&str| line.starts_with("cachewise: ") && line.contains("/ls");
    assert_eq!(told.err.lines().find(of_ls), None, "by a process that is left: {told:?}");
    assert_eq!(folder.names(), [""; 0]);
}

/// Processes that ended before it, also one that closed all that it inherited.
#[test]
fn a_programs_first_process_prints_for_all() {
    let folder = Folder::new();
    let closes = "#include <unistd.h>\nint main(int c, char **v) { (void)c; \
        for (int n = 3; n < 300; n++) close(n); execvp(v[1], v + 1); return 1; }\n";
    let closes = compiled(closes, &folder, "closes");
    let mut command = asked_beside("exec --stats -- sh -c");
    let told =
        said(command.arg(format!("ls / >/dev/null; {closes} cat /dev/null; exit 5"))).with(5);
    assert_eq!(told.err.matches("cachewise: calls of 3 processes").count(), 1, "{told:?}");
    let sum = told.err.lines().last().expect("a line");
    let calls: u64 = sum.split(' ').nth(1).expect("a number").parse().expect(sum);
    let counted = |line: &str| -> Option<u64> {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.get(1) == Some(&"all") && !["block", "cachewise:"].contains(&words[0]))
            .then(|| words[2].parse().expect(line))
    };
    assert_eq!(calls, told.err.lines().filter_map(counted).sum::<u64>(), "{told:?}");
    // A service is ended by SIGTERM, but as process 1 of a container.
    let text = "#include <signal.h>\n#include <string.h>\nstatic char all[9000];\nint main(int c, char **v) \
                { (void)v; memset(all, 1, 8999 + c); raise(SIGTERM); memset(all, 2, 8999 + c); return 5; }";
    let ends = compiled(text, &folder, "ends");
    let unshared = |line: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["--pid", "--fork", "sh", "-c", line, env!("CARGO_BIN_EXE_cachewise")]);
        shell.env("CACHEWISE_LIBRARY", libraries()).env("HOME", folder.path(""));
        said(&mut shell)
    };
    let service = said(&mut asked_beside(&format!("exec --stats -- {ends}")));
    let first = unshared(&format!("exec \"$0\" exec --stats -- {ends}"));
    let is_allowed = unshared("exit 0").status == Some(0);
    for (told, status, fills) in [(service, None, "1"), (first, Some(5), "2")] {
        if status.is_none() || is_allowed {
            let line = told.err.lines().find(|line| line.starts_with("fill "));
            let words = line.map(|line| line.split_whitespace().nth(2));
            assert_eq!((told.status, words), (status, Some(Some(fills))), "{told:?}");
        }
    }
    // A file that the caller named is where each goes.
    let (file, mut command) = (folder.path("counts"), asked_beside("exec --stats -- sh -c"));
    let told = said(command.arg("ls / >/dev/null; exit 5").env("CACHEWISE_STATS", &file)).with(5);
    assert_eq!(told.err, "");
    let counts = std::fs::read_to_string(&file).expect("the counts");
    assert_eq!(counts.matches("calls of process").count(), 2, "{counts}");
}

/// A number of a descriptor or a process is no name: by the time something is written it may be another one's.
#[test]
fn statistics_are_written_into_no_file_but_their_own() {
    let folder = Folder::new();
    let data = folder.write("data", "RECORD 1\n");
    // Every number that the file could have is this one's, in this process and in a child with other numbers.
    let takes = format!(
        "#include <fcntl.h>\n#include <string.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
         static char from[100], to[100];\nstatic volatile size_t n = 100;\n\
         int main(void) {{\n memcpy(to, from, n);\n int data = open(\"{data}\", O_RDWR | O_APPEND);\n\
         for (int n = 3; n < 300; n++) if (n != data) dup2(data, n);\n\
         if (fork() == 0) {{ execlp(\"ls\", \"ls\", \"/\", (char *)0); _exit(1); }}\n\
         int status; wait(&status); return status; }}\n"
    );
    let takes = compiled(&takes, &folder, "takes");
    let unshared = "unshare --pid --fork --mount-proc";
    let allowed = Command::new("sh").args(["-c", &format!("{unshared} true")]).output();
    let allowed = allowed.is_ok_and(|ended| ended.status.success());
    if !allowed {
        eprintln!("PID namespaces: SKIPPED, refused here");
    }
    let sandboxes = if allowed { &["", unshared][..] } else { &[""] };
    for within in sandboxes {
        for nested in sandboxes {
            // As process 1 of a container, whose program starts another sandbox.
            let script =
                format!("exec {within} \"$0\" exec --stats -- {nested} {takes} >/dev/null");
            let mut command = Command::new("sh");
            command.args(["-c", &script, env!("CARGO_BIN_EXE_cachewise")]);
            command.env("CACHEWISE_LIBRARY", libraries()).env("HOME", folder.path(""));
            let told = said(&mut command).with(0);
            assert_eq!(std::fs::read(&data).expect("there"), b"RECORD 1\n", "{script}");
            // The first one prints, and nobody else.
            let tables = told.err.matches("cachewise: calls of ").count();
            assert_eq!(tables, 1, "{script}: {told:?}");
        }
    }
}

/// A script that configures takes any word on stderr of a compiler for an error.
#[test]
fn what_is_wrong_with_the_profile_is_said_once_for_all_processes() {
    let folder = Folder::new();
    let profile = folder.write("damaged.profile", "cachewise-profile 1\n");
    for words in ["exec -- sh -c", "exec --stats -- sh -c"] {
        let mut exec = asked_beside(words);
        exec.arg("/bin/true; /bin/true; /bin/ls >/dev/null").env("CACHEWISE_PROFILE", &profile);
        let told = said(&mut exec).with(0);
        assert_eq!(told.err.matches("profile ignored").count(), 1, "{told:?}");
        assert!(words.contains("--stats") || told.err.lines().count() == 1, "{told:?}");
    }
}

/// One that brings its own, as an AppImage does: here glibc's dynamic linker beside a `libc.so.6` of few functions.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_program_whose_c_library_has_too_little_runs_without_the_library() {
    let folder = Folder::new();
    let linker = folder.path("ld.so");
    std::fs::copy("/lib64/ld-linux-x86-64.so.2", &linker).expect("glibc's");
    let source = folder.write(
        "p.c",
        "#include <stdio.h>\n#include <stdlib.h>\n\
        int main(void) { puts(getenv(\"LD_PRELOAD\") ? \"with\" : \"without\"); return 4; }\n",
    );
    let program = folder.path("program");
    let linked = format!("-Wl,--dynamic-linker={linker}");
    said(Command::new("cc").args([&*linked, "-o", &program, &source])).with(0);
    let little =
        "__errno_location abort dl_iterate_phdr environ getenv madvise mmap munmap strlen syscall";
    for (names, with, lines) in
        [(little.to_owned() + " getauxval", "with\n", 0), (little.to_owned(), "without\n", 1)]
    {
        let text: String = names.split(' ').map(|name| format!("int {name};\n")).collect();
        let source = folder.write("libc.c", text);
        let libc = folder.path("libc.so.6");
        let mut cc = Command::new("cc");
        said(cc.args(["-w", "-fno-builtin", "-shared", "-nostdlib", "-o", &libc, &source])).with(0);
        for words in ["exec", "exec --stats"] {
            let told = said(&mut asked_beside(&format!("{words} -- {program}"))).with(4);
            assert_eq!(told.out, with, "{told:?}");
            assert_eq!(
                told.err.matches("its C library lacks getauxval,").count(),
                lines,
                "{told:?}"
            );
        }
    }
}

/// A C library of its own kind, none to preload into, 32 bits: all run as they do without the command.
#[cfg(target_arch = "x86_64")]
#[test]
fn programs_of_every_kind_run() {
    let folder = Folder::new();
    let copies = "#include <stdio.h>\n#include <string.h>\nint main(int c, char **v) {\n\
        char b[3000]; memset(b, 48 + c, 3000); memmove(b + 1, b, 2999); b[2999] = 0;\n\
        printf(\"%s %.9s\\n\", v[0] + strlen(v[0]) - 1, b); fputs(\"told\\n\", stderr); return 6; }\n";
    let narrow = "static int call(int n, int a, const void *b, int c) {\n\
        __asm__ volatile(\"int $0x80\" : \"+a\"(n) : \"b\"(a), \"c\"(b), \"d\"(c) : \"memory\"); return n; }\n\
        void _start(void) { call(4, 1, \"32\\n\", 3); call(4, 2, \"told\\n\", 5); call(1, 6, 0, 0); }\n";
    let none = "a statically linked program, into which nothing is preloaded";
    for (compiler, flags, text, told) in [
        ("musl-gcc", "-O1", copies, ""),
        ("musl-gcc", "-static", copies, none),
        ("cc", "-static-pie", copies, none),
        ("cc", "-m32 -O1 -ffreestanding -fno-pie -nostdlib -static", narrow, "a 32-bit program"),
    ] {
        let (source, program) = (folder.write("p.c", text), folder.path("p"));
        let mut build = Command::new(compiler);
        build.args(flags.split(' ')).args(["-fno-builtin", "-o", &program, &source]);
        match build.status() {
            Err(error) => {
                eprintln!("{compiler}: SKIPPED, {error}");
                continue;
            }
            Ok(status) => assert!(status.success(), "{build:?}"),
        }
        let plain = said(&mut Command::new(&program)).with(6);
        assert_eq!(plain.err, "told\n");
        for words in ["exec --", "exec -- sh -c", "exec --stats --"] {
            let found = said(asked_beside(words).arg(&program)).with(6);
            assert_eq!(found.out, plain.out, "{words} {build:?}");
            let line = found.err.lines().find(|line| line.starts_with("cachewise: warning: "));
            if words.ends_with("-c") || told.is_empty() {
                assert_eq!(line, None, "{words} {build:?}");
            } else {
                has(line.expect("a warning"), &[told]);
            }
            let others = found.err.lines().filter(|other| Some(*other) != line).collect::<Vec<_>>();
            assert!(
                words.contains("--stats") || others == ["told"],
                "{words} {build:?}: {found:?}"
            );
        }
    }
}

/// gcc's, and clang's where it is installed: the shared ones insist on being the first.
#[test]
fn a_program_with_a_sanitizer_runs() {
    let folder = Folder::new();
    let source = folder.write(
        "p.c",
        "#include <string.h>\n#include <stdio.h>\nint main(int c, char **v) {\n\
        char b[64]; memset(b, 0, 64); memcpy(b, v[0], 3); return puts(\"runs\") < 0; }\n",
    );
    let program = folder.path("sanitized");
    let runtimes = Command::new("clang").arg("--print-runtime-dir").output();
    let runtimes = runtimes.map(|told| text(&told.stdout));
    let of_clang = runtimes.as_ref().map_or(&[][..], |_| &["address -shared-libsan", "memory"]);
    let of_clang = of_clang.iter().map(|flags| ("clang", *flags));
    for (compiler, flags) in [("cc", "address")].into_iter().chain(of_clang) {
        let mut build = Command::new(compiler);
        build.args(format!("-fsanitize={flags}").split(' ')).args(["-o", &program, &source]);
        let found = format!("-Wl,-rpath,{}", runtimes.as_deref().unwrap_or_default().trim());
        said(build.arg(found)).with(0);
        let told = said(&mut asked_beside(&format!("exec -- {program}"))).with(0);
        assert_eq!((&*told.out, &*told.err), ("runs\n", ""), "{build:?}");
    }
}
