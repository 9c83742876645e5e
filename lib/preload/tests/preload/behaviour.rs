//! Behaviour of the library as programs see it: the right bytes, at every moment, and the C library's manners.

use crate::decided::decided;
use crate::support::{compile, library, plain, preloaded, run, statistics_library, text, watched};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

/// Every call is a call, so that it reaches the library.
const CALLS: &[&str] = &["-O1", "-fno-builtin"];

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn every_length_alignment_and_overlap() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "exhaustive", &[CALLS, &["-ldl"]].concat());
    let output = run(preloaded(&program).arg("libcachewise_preload"));
    assert_eq!(text(&output.stdout), "every byte right\n");
    assert_eq!(text(&output.stderr), "");
    // The functions that count are others: they have to be right as well.
    let counts = directory.path().join("counts");
    run(watched(&program, &counts).arg("libcachewise_preload_stats"));
    assert!(std::fs::read_to_string(counts).expect("counts").contains("overlap"));
}

/// Against libc itself: pages that must not be touched beside the operands, overlap by little, equal pointers, null pointers
/// where nothing is copied, results. Where libc succeeds on memory that may only be read, so does the library.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn what_succeeds_in_libc_has_the_same_result() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "differs", CALLS);
    let [theirs, ours, counting] =
        [plain(&program), preloaded(&program), watched(&program, directory.path().join("counts"))]
            .map(|mut command| text(&run(&mut command).stdout));
    let alone: Vec<&str> = theirs.lines().filter(|line| line.starts_with("read-only")).collect();
    let survived = alone.iter().filter(|line| !line.contains("signal")).count();
    assert!(survived > 100, "{survived} of {} calls succeed in libc", alone.len());
    for ours in [ours, counting] {
        assert_eq!(ours.lines().count(), theirs.lines().count());
        for (ours, theirs) in ours.lines().zip(theirs.lines()) {
            assert!(ours == theirs || theirs.contains("signal"), "{ours}; in libc {theirs}");
        }
    }
}

/// `mempcpy` has its own way into each.
#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn every_length_by_each_entry_that_a_profile_may_name() {
    use cachewise::entry::{self, Operation};
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "exhaustive", &[CALLS, &["-ldl"]].concat());
    let here = cachewise_kernels::Features::detect();
    for found in entry::variants(Operation::Copy).iter().filter(|entry| entry.runs_on(here)) {
        let of = |operation| format!("entry {operation} {}\n", found.name);
        let entries = cachewise::profile::OPERATIONS.map(of).concat();
        let profile = decided(directory.path(), found.name, &entries);
        let mut command = preloaded(&program);
        command.env("CACHEWISE_PROFILE", &profile).args(["libcachewise_preload", "profile"]);
        let output = run(&mut command);
        assert_eq!(text(&output.stdout), "every byte right\n", "{}", found.name);
        assert_eq!(text(&output.stderr), "", "{}", found.name);
    }
}

/// Lines that need a missing feature are passed over, and the rest of the profile followed.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn a_profile_that_names_what_this_cpu_lacks_is_followed_where_it_can_be() {
    use cachewise_kernels::{Features, TABLE};
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "exhaustive", &[CALLS, &["-ldl"]].concat());
    let here = Features::detect();
    let mut decisions = String::new();
    for operation in cachewise::profile::OPERATIONS {
        let mut all = TABLE.iter().filter(|of| of.deploy && of.operation() == operation);
        if let Some(beyond) = all.find(|of| !of.runs_on(here)) {
            decisions += &format!("decide {operation} unknown 256 max {}\n", beyond.name);
        }
    }
    decisions += "decide copy soon 256 max libc\n";
    let profile = decided(directory.path(), "beyond", &decisions);
    let mut command = preloaded(&program);
    command.env("CACHEWISE_PROFILE", &profile).args(["libcachewise_preload", "profile"]);
    let output = run(&mut command);
    assert_eq!((&*text(&output.stdout), &*text(&output.stderr)), ("every byte right\n", ""));
}

/// Both have little room for thread-local storage of libraries.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn it_runs_under_an_auditor_and_opened_late() {
    let directory = tempfile::tempdir().expect("a directory");
    let [source, auditor] = ["auditor.c", "auditor.so"].map(|name| directory.path().join(name));
    let audit = "unsigned la_version(unsigned version) { return version; }\n";
    std::fs::write(&source, audit).expect("written");
    run(Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&auditor, &source]));
    let begins = compile(directory.path(), "begins", &[]);
    let counts = directory.path().join("counts");
    for mut command in [preloaded(&begins), watched(&begins, &counts)] {
        let output = run(command.env("LD_AUDIT", &auditor));
        assert_eq!((&*text(&output.stdout), &*text(&output.stderr)), ("0\n", ""));
    }
    assert!(counts.exists(), "it counted");
    let late = compile(directory.path(), "late", &["-ldl"]);
    run(plain(&late).args([library(), statistics_library()]));
}

/// C promises it, and programs that look at `errno` after `strtol` rely on it. A file that could not be opened
/// once left its error there.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn errno_is_zero_where_main_begins() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "begins", &[]);
    let missing = directory.path().join("missing/file");
    let mut commands = [preloaded(&program), preloaded(&program), watched(&program, &missing)];
    commands[1].env("CACHEWISE_PROFILE", &missing);
    for command in &mut commands {
        assert_eq!(text(&run(command).stdout), "0\n", "{command:?}");
    }
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn at_every_moment_of_a_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "moments", &[CALLS, &["-pthread"]].concat());
    for statistics in ["0", directory.path().join("counts").to_str().expect("UTF-8")] {
        let output = run(&mut watched(&program, statistics));
        assert_eq!(text(&output.stdout), "at every moment\n");
        assert_eq!(text(&output.stderr), "");
    }
}

/// The dynamic linker relocates what `LD_PRELOAD` names behind all libraries of the program. One
/// library refers to a function of another, whose resolver copies, and finds this one as it lies in
/// its file.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn in_a_resolver_before_it_is_relocated() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path().to_str().expect("UTF-8");
    let shared = ["-O1", "-shared", "-fPIC", "-Wl,-z,now"];
    let resolver =
        compile(directory.path(), "resolver", &[&shared[..], &["-fno-builtin"]].concat());
    let source = |name: &str, text: &str, flags: &[&str]| {
        let (source, built) =
            (directory.path().join(format!("{name}.c")), directory.path().join(name));
        std::fs::write(&source, text).expect("written");
        let mut compiler = Command::new("cc");
        compiler.arg("-o").arg(&built).arg(&source).args(flags).arg(format!("-Wl,-rpath,{here}"));
        assert!(compiler.status().expect("a C compiler").success());
        built
    };
    let resolver = resolver.to_str().expect("UTF-8");
    let refers = source(
        "refers.so",
        "int chosen(void);\nint call(void) { return chosen(); }\n",
        &[&shared[..], &[resolver]].concat(),
    );
    let program = source(
        "asks",
        "#include <stdio.h>\nint call(void);\nint main(void) { printf(\"%d\\n\", call()); }\n",
        &[refers.to_str().expect("UTF-8"), resolver],
    );
    assert_eq!(text(&run(&mut plain(&program)).stdout), "42\n");
    assert_eq!(text(&run(&mut preloaded(&program)).stdout), "42\n");
}

/// The same program without the library says what is right. It is bound when it is loaded: to find
/// a function at its first call takes the dynamic linker more of a stack than there is, on a CPU
/// with AVX-512, whatever the function.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn where_there_is_least_room() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "edges", &[CALLS, &["-Wl,-z,now"]].concat());
    let edges = |mut command: Command, room: &str| run(command.args([room, "strict"])).stdout;
    let expected = text(&edges(plain(&program), "512"));
    assert_eq!(expected.lines().count(), 5, "{expected}");
    for statistics in ["0", directory.path().join("counts").to_str().expect("UTF-8")] {
        assert_eq!(text(&edges(watched(&program, statistics), "512")), expected);
    }
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn checked_forms_end_the_program_as_glibcs_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "overflow", CALLS);
    let counts = directory.path().join("counts");
    for form in ["c", "m", "p", "s", "z", "b", "e"] {
        for n in [1_usize, 16, 100, 129, 300, 5000, 100_000] {
            for statistics in [Path::new("0"), &counts] {
                let call = |mut command: Command, room: usize| {
                    command.args([form, &n.to_string(), &room.to_string()]);
                    command.output().expect("it starts")
                };
                assert_eq!(
                    call(watched(&program, statistics), n).status.code(),
                    Some(0),
                    "{form} {n}"
                );
                assert_eq!(
                    call(watched(&program, statistics), n + 4).status.code(),
                    Some(0),
                    "{form} {n}"
                );
                let (ours, glibcs) =
                    (call(watched(&program, statistics), n - 1), call(plain(&program), n - 1));
                assert_eq!(ours.status.signal(), Some(6), "{form} {n}");
                assert_eq!(ours.status, glibcs.status);
                assert_eq!(text(&ours.stderr), text(&glibcs.stderr));
                assert!(text(&ours.stderr).contains("*** buffer overflow detected ***"));
            }
        }
    }
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn explicit_bzero_really_clears() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "clears", &["-O2"]);
    assert_eq!(text(&run(&mut preloaded(&program)).stdout), "cleared\n");
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_profile_is_read_and_a_bad_one_is_told_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "moments", &[CALLS, &["-pthread"]].concat());
    let missing = directory.path().join("no-such-profile");
    let output = run(preloaded(&program).env("CACHEWISE_PROFILE", &missing));
    let told = text(&output.stderr);
    // One line of the process; its children were forked after it was told.
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("no-such-profile") && told.contains("no such file"), "{told}");
    let quiet = preloaded(&program)
        .env("CACHEWISE_PROFILE", &missing)
        .env("CACHEWISE_QUIET", "1")
        .output()
        .expect("it starts");
    assert_eq!(text(&quiet.stderr), "");
}

/// A limit on the size of files, a pipe that nobody reads: what the library cannot write it does not
/// write, and the program goes on, and dies of its own signals as before.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn what_cannot_be_written_ends_no_program() {
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("writes.c");
    let text = "#include <signal.h>\n#include <unistd.h>\n\
                int main(int count, char **arguments) { (void)arguments;\n\
                if (count > 1) { write(2, \"\", 1); raise(SIGXFSZ); } return 9; }\n";
    std::fs::write(&source, text).expect("written");
    let program = directory.path().join("writes");
    let mut compiler = std::process::Command::new("cc");
    assert!(compiler.arg("-o").arg(&program).arg(&source).status().expect("cc").success());
    let counts = directory.path().join("counts");
    for (variable, value) in [
        ("CACHEWISE_PROFILE", Path::new("/no-such-profile")),
        ("CACHEWISE_STATS", Path::new("1")),
        ("CACHEWISE_STATS", &counts),
    ] {
        for own in [false, true] {
            let (reader, unread) = std::io::pipe().expect("a pipe");
            drop(reader);
            let mut command = match variable {
                "CACHEWISE_STATS" => watched(&program, value),
                _ => preloaded(&program),
            };
            command.env(variable, value).stderr(unread).args(own.then_some("own"));
            let limit = || {
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                // SAFETY: `none` is readable.
                unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const none) };
                // SAFETY: as the program finds it without Rust's runtime before it.
                unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
                Ok(())
            };
            // SAFETY: system calls alone, which a forked child may make.
            let ended = unsafe { command.pre_exec(limit) }.status().expect("it starts");
            let expected = if own { (None, Some(libc::SIGPIPE)) } else { (Some(9), None) };
            assert_eq!((ended.code(), ended.signal()), expected, "{variable}={value:?}");
        }
    }
}

/// `AT_SECURE` is respected: first of a program that pretends, then of one that really is
/// set-user-id, where this test may make one.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn a_program_with_more_privilege_than_its_caller_ignores_the_environment() {
    let directory = tempfile::tempdir().expect("a directory");
    let counts = directory.path().join("counts");
    let watched = |program: &Path| {
        let mut command = watched(program, &counts);
        command.env("CACHEWISE_PROFILE", "/no-such-profile");
        command
    };
    let ordinary = compile(directory.path(), "secure", CALLS);
    let output = run(&mut watched(&ordinary));
    assert!(text(&output.stderr).contains("/no-such-profile"), "the environment is read at all");
    assert!(counts.exists());
    std::fs::remove_file(&counts).expect("removed");

    let disguised =
        compile(directory.path(), "secure", &[CALLS, &["-DDISGUISE", "-rdynamic"]].concat());
    let output = run(&mut watched(&disguised));
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("copied\n".into(), String::new()));
    assert!(!counts.exists());

    set_user_id(directory.path(), &counts);
}

/// A set-user-id program that was linked with the library, which `LD_PRELOAD` would not reach.
fn set_user_id(directory: &Path, counts: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    let root = std::fs::metadata("/proc/self").is_ok_and(|of| {
        use std::os::unix::fs::MetadataExt as _;
        of.uid() == 0
    });
    if !root {
        eprintln!("set-user-id: SKIPPED, only root can make such a program");
        return;
    }
    let library_copy = directory.join("libcachewise_preload_stats.so.0.2");
    std::fs::copy(statistics_library(), &library_copy).expect("copied");
    let search = format!("-Wl,-rpath,{},--no-as-needed", directory.display());
    let library_copy = library_copy.to_str().expect("UTF-8");
    let program = compile(directory, "secure", &[CALLS, &[&search, library_copy]].concat());
    for (path, mode) in [(directory, 0o755), (&program, 0o4755)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    }
    let mut command = plain(&program);
    command.env("CACHEWISE_STATS", counts).env("CACHEWISE_PROFILE", "/no-such-profile");
    let output = match command.uid(NOBODY).gid(NOBODY).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("set-user-id: SKIPPED, {error}");
            return;
        }
    };
    assert_eq!(text(&output.stdout), "copied\n", "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    assert!(!counts.exists());
    // The same program without the bit reads the environment: the test can fail.
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let mut command = plain(&program);
    let output = command.env("CACHEWISE_PROFILE", "/no-such-profile").output().expect("starts");
    assert!(text(&output.stderr).contains("/no-such-profile"));
}
