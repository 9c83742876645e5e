//! Programs of `tests/c`, each under the libraries and profiles that its case names: the right bytes at every moment, and
//! the C library's manners.

use crate::decided::decided;
use crate::support::{
    CALLS, compile, installed, library, plain, preloaded, run, statistics_library, text, watched,
};
use cachewise::profile::{OPERATIONS, hints};
use cachewise_kernels::{Features, TABLE};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A profile for this CPU that leaves everything to the C library.
fn leave_all(directory: &Path) -> PathBuf {
    let rows = OPERATIONS.into_iter().flat_map(|of| hints(of).iter().map(move |hint| (of, hint)));
    let line = |(of, hint)| format!("decide {of} {hint} 256 max libc {of}.bytes\n");
    decided(directory, "libc.profile", &rows.map(line).collect::<String>())
}

/// A profile that names kernels which this CPU lacks: these lines are passed over, and the rest followed.
fn beyond(directory: &Path) -> PathBuf {
    let here = Features::detect();
    let mut decisions = "decide copy soon 256 max libc\n".to_owned();
    for operation in OPERATIONS {
        let mut all = TABLE.iter().filter(|of| of.deploy && of.operation() == operation);
        if let Some(beyond) = all.find(|of| !of.runs_on(here)) {
            decisions += &format!("decide {operation} unknown 256 max {}\n", beyond.name);
        }
    }
    decided(directory, "beyond.profile", &decisions)
}

/// Output of a program under both libraries, without a profile, with one that leaves everything to the C library, and
/// with one that this CPU cannot follow in all.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn every_program_prints_what_it_should_with_every_profile() {
    let directory = tempfile::tempdir().expect("a directory");
    let profiles = [None, Some(leave_all(directory.path())), Some(beyond(directory.path()))];
    for (name, flags, told) in [
        // Every length, alignment and overlap, between pages that nobody may touch.
        ("exhaustive", CALLS, "every byte right\n"),
        // In a resolver, before `main`, in signal handlers, in forked children, in threads, at exit.
        ("moments", CALLS, "at every moment\n"),
        // `errno` is 0 where `main` begins.
        ("begins", &[], "0\n"),
        // `explicit_bzero` is a call although nobody reads what it cleared.
        ("clears", &["-O2"], "cleared\n"),
    ] {
        let program = compile(directory.path(), name, flags);
        for profile in &profiles {
            let counts = directory.path().join("counts");
            let mut commands = [preloaded(&program), watched(&program, &counts)];
            for (command, library) in
                commands.iter_mut().zip(["libcachewise_preload.so", "libcachewise_preload_stats"])
            {
                command.envs(profile.iter().map(|profile| ("CACHEWISE_PROFILE", profile)));
                if name == "exhaustive" {
                    command.arg(library);
                }
                let output = run(command);
                let said = (text(&output.stdout), text(&output.stderr));
                assert_eq!(said, (told.to_owned(), String::new()), "{name} {profile:?}");
            }
            assert!(std::fs::remove_file(&counts).is_ok(), "{name}: it counted");
        }
    }
}

/// By name the dynamic linker takes the build for this CPU, by path the one that is there: every byte is right in each that
/// the CPU can run.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn by_name_the_build_for_this_cpu_is_loaded_and_by_path_the_one_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "exhaustive", CALLS);
    let installed = installed();
    let path = |level: &str| installed.join(level).join("libcachewise_preload.so");
    // What `ld.so --help` says of levels, from the highest down; with their kernels' features it is less than a level asks for.
    let mut linker = Command::new("/lib64/ld-linux-x86-64.so.2");
    let told = text(&run(linker.arg("--help")).stdout);
    let has = |level: &&str| told.contains(&format!("{level} (supported, searched)"));
    let levels = ["x86-64-v4"].into_iter().filter(has);
    let folders: Vec<String> = levels.map(|level| format!("glibc-hwcaps/{level}")).collect();
    let fits = folders.first().map_or("", String::as_str);
    let by_path = folders.iter().map(|folder| (path(folder), path(folder)));
    let plain = (path(""), path(""));
    for (preload, expected) in
        [("libcachewise_preload.so".into(), path(fits)), plain].into_iter().chain(by_path)
    {
        let mut command = preloaded(&program);
        command.env("LD_PRELOAD", &preload).env("LD_LIBRARY_PATH", &installed).arg(&expected);
        let output = run(&mut command);
        let said = (text(&output.stdout), text(&output.stderr));
        assert_eq!(said, ("every byte right\n".to_owned(), String::new()), "{preload:?}");
    }
}

/// Against libc itself, line by line: pages that must not be touched beside the operands, overlap by little, equal pointers,
/// null pointers where nothing is copied, results; the smallest stack, faults half-way, `vfork` and seccomp's strict mode. Where libc
/// succeeds on memory that may only be read, so does the library.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn what_succeeds_in_libc_has_the_same_result() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, words, least) in [("differs", &[][..], 100), ("edges", &["512", "strict"], 0)] {
        let program = compile(directory.path(), name, CALLS);
        let counting = watched(&program, directory.path().join("counts"));
        let [theirs, ours, counting] = [plain(&program), preloaded(&program), counting]
            .map(|mut command| text(&run(command.args(words)).stdout));
        let read_only = |line: &&str| line.starts_with("read-only") && !line.contains("signal");
        let survived = theirs.lines().filter(read_only).count();
        assert!(survived >= least && theirs.lines().count() > 4, "{name}: {theirs}");
        for ours in [ours, counting] {
            assert_eq!(ours.lines().count(), theirs.lines().count());
            for (ours, theirs) in ours.lines().zip(theirs.lines()) {
                assert!(ours == theirs || theirs.contains("signal"), "{ours}; in libc {theirs}");
            }
        }
    }
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
        assert_eq!(text(&run(command.env("LD_AUDIT", &auditor)).stdout), "0\n");
    }
    assert!(counts.exists(), "it counted");
    let late = compile(directory.path(), "late", &["-ldl"]);
    run(plain(&late).args([library(), statistics_library()]));
}

/// The dynamic linker relocates what `LD_PRELOAD` names behind all libraries of the program. One
/// library refers to a function of another, whose resolver copies, and finds this one as it lies in
/// its file.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn in_a_resolver_before_it_is_relocated() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = format!("-Wl,-rpath,{}", directory.path().display());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/resolver.c");
    for (name, part, flags, libraries) in [
        ("chosen.so", "CHOSEN", &["-shared"][..], &[][..]),
        ("refers.so", "REFERS", &["-shared"], &["chosen.so"]),
        ("asks", "ASKS", &[], &["refers.so", "chosen.so"]),
    ] {
        let mut compiler = Command::new("cc");
        compiler.current_dir(&directory).args([
            "-O1",
            "-fPIC",
            "-Wl,-z,now",
            "-fno-builtin",
            &here,
        ]);
        run(compiler
            .args(flags)
            .arg(format!("-D{part}"))
            .arg("-o")
            .arg(name)
            .arg(&source)
            .args(libraries));
    }
    let program = directory.path().join("asks");
    let counts = directory.path().join("counts").display().to_string();
    for mut command in [plain(&program), preloaded(&program), watched(&program, &counts)] {
        assert_eq!(text(&run(&mut command).stdout), "42\n");
    }
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn checked_forms_end_the_program_as_glibcs_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "overflow", CALLS);
    for form in ["c", "m", "p", "s", "z", "b", "e"] {
        for n in [1_usize, 16, 129, 5000] {
            for make in [preloaded, |program: &Path| watched(program, "1")] {
                let call = |mut command: Command, room: usize| {
                    command.args([form, &n.to_string(), &room.to_string()]);
                    command.output().expect("it starts")
                };
                for room in [n, n + 4] {
                    assert_eq!(call(make(&program), room).status.code(), Some(0), "{form} {n}");
                }
                let (ours, glibcs) = (call(make(&program), n - 1), call(plain(&program), n - 1));
                assert_eq!(ours.status.signal(), Some(6), "{form} {n}");
                assert_eq!((ours.status, ours.stderr), (glibcs.status, glibcs.stderr));
            }
        }
    }
}

/// One line of the process; its children were forked after it was told.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn a_bad_profile_is_told_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "moments", CALLS);
    let missing = directory.path().join("no-such-profile");
    for (quiet, lines) in [("0", 1), ("1", 0)] {
        let mut command = preloaded(&program);
        command.env("CACHEWISE_PROFILE", &missing).env("CACHEWISE_QUIET", quiet);
        let told = text(&run(&mut command).stderr);
        assert_eq!(told.lines().count(), lines, "{told}");
        assert_eq!(told.matches("no-such-profile").count(), lines, "{told}");
    }
}

/// A limit on the size of files, a pipe that nobody reads: what the library cannot write it does not
/// write, and the program goes on, and dies of its own signals as before.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn what_cannot_be_written_ends_no_program() {
    use std::os::unix::process::CommandExt as _;
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "writes", &[]);
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

/// `AT_SECURE` is respected: first of a program that pretends, then of one that really is set-user-id and was linked with the
/// library, which `LD_PRELOAD` would not reach, where this test may make one.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn a_program_with_more_privilege_than_its_caller_ignores_the_environment() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    let directory = tempfile::tempdir().expect("a directory");
    let counts = directory.path().join("counts");
    let reads = |command: &mut Command| {
        let _ = std::fs::remove_file(&counts);
        command.env("CACHEWISE_STATS", &counts).env("CACHEWISE_PROFILE", "/no-such-profile");
        let output = command.output().expect("it starts");
        assert_eq!(text(&output.stdout), "copied\n", "{}", text(&output.stderr));
        (text(&output.stderr).contains("/no-such-profile"), counts.exists())
    };
    let ordinary = compile(directory.path(), "secure", CALLS);
    assert_eq!(reads(&mut watched(&ordinary, "1")), (true, true), "the test can fail");
    let flags = [CALLS, &["-DDISGUISE", "-rdynamic"]].concat();
    let disguised = compile(directory.path(), "secure", &flags);
    assert_eq!(reads(&mut watched(&disguised, "1")), (false, false));

    if std::fs::metadata("/proc/self").expect("there").uid() != 0 {
        eprintln!("set-user-id: SKIPPED, only root can make such a program");
        return;
    }
    let copy = directory.path().join("libcachewise_preload_stats.so.0.2");
    std::fs::copy(statistics_library(), &copy).expect("copied");
    let search = format!("-Wl,-rpath,{},--no-as-needed", directory.path().display());
    let flags = [CALLS, &[&search, copy.to_str().expect("UTF-8")]].concat();
    let program = compile(directory.path(), "secure", &flags);
    let allow = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    };
    allow(directory.path(), 0o777);
    for (mode, expected) in [(0o4755, (false, false)), (0o755, (true, true))] {
        allow(&program, mode);
        assert_eq!(reads(plain(&program).uid(NOBODY).gid(NOBODY)), expected, "{mode:o}");
    }
}

/// The next definition in the order of look-up is the one that is called, and called once per call:
/// what `next` itself hands on would come back to it for ever if anything led back.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_next_definition_is_called_and_never_this_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let flags = ["-O1", "-shared", "-fPIC", "-fno-builtin", "-fno-tree-loop-distribute-patterns"];
    let next = compile(directory.path(), "next", &flags);
    let program = compile(directory.path(), "calls", CALLS);
    let both = format!("{}:{}", library().display(), next.display());
    let counts = |profile: &Path| -> Vec<u32> {
        let mut command = preloaded(&program);
        command.env("LD_PRELOAD", &both).env("CACHEWISE_PROFILE", profile);
        let output = run(&mut command);
        assert_eq!(text(&output.stdout), "every byte right\n");
        text(&output.stderr).split(' ').filter_map(|word| word.parse().ok()).collect()
    };
    // Copies, moves, fills and compares from 2 KiB on; smaller ones stay where a look-up would cost more than it brings.
    assert_eq!(counts(&leave_all(directory.path())), [8, 8, 16, 16]);
    // With computed defaults none other arrives there, and some stores do; how many, and of comparisons those of
    // more than 256 bytes or none, is by the CPU.
    let defaults = counts(&decided(directory.path(), "defaults.profile", ""));
    let within = |(found, most): (&u32, u32)| (1..=most).contains(found);
    assert!(defaults.len() == 4 && defaults.iter().zip([8, 8, 16]).all(within), "{defaults:?}");
}

/// System calls of a program after `main` has begun, trapped by a filter: none in the middle, without a profile, with one that
/// leaves everything to the C library, and with statistics, which are printed at the end; `docs/preload.md` lists it.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn no_mode_asks_the_system_for_anything_in_the_middle() {
    /// On x86-64; what the program asks for by itself.
    const GETPPID: &str = " 110";
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "middle", CALLS);
    let mut libcs = preloaded(&program);
    libcs.env("CACHEWISE_PROFILE", leave_all(directory.path()));
    let counting = watched(&program, directory.path().join("counts"));
    for (mut command, how, middle, at_the_end) in [
        (preloaded(&program), "filter", GETPPID, false),
        (preloaded(&program), "end", "", false),
        (libcs, "end", "", false),
        (counting, "end", "", true),
    ] {
        let output = run(command.arg(how));
        let told = text(&output.stdout);
        let calls = middle.split_whitespace().count();
        assert!(told.starts_with(&format!("middle {calls}:{middle}\n")), "{how}: {told}");
        assert_eq!((told.contains("\nend "), text(&output.stderr)), (at_the_end, String::new()));
    }
}
