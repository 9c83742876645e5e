//! The pool under programs that nobody recompiled: what they print is the same, and the pool served.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod library;

use cachewise_pages::Unit;
use library::{built, library};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn under(program: &Path, pool: Option<&str>) -> Command {
    let mut command = Command::new(program);
    for variable in ["LD_PRELOAD", "CACHEWISE_POOL", "CACHEWISE_QUIET", "CACHEWISE_PROFILE"] {
        command.env_remove(variable);
    }
    command.env("LC_ALL", "C").env("HOME", "/nonexistent").env("LD_PRELOAD", library());
    if let Some(pool) = pool {
        command.env("CACHEWISE_POOL", pool);
    }
    command.env("CACHEWISE_POOL_STATS", "1");
    command
}

fn told(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Large requests that the last line of statistics says were served.
fn served(stderr: &str) -> u64 {
    let line = stderr.lines().rev().find(|line| line.starts_with("cachewise: pool: "));
    let number = line.and_then(|line| line.split(' ').nth(2)).and_then(|word| word.parse().ok());
    number.unwrap_or(0)
}

/// A figure of the statistics in JSON.
fn figure(told: &str, name: &str) -> u64 {
    let (_, after) = told.split_once(&format!("\"{name}\":")).expect(name);
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect(name)
}

fn compiled(directory: &Path) -> PathBuf {
    compiled_from(directory, "sizes.c", &[])
}

fn compiled_from(directory: &Path, source: &str, more: &[&str]) -> PathBuf {
    let program = directory.join(source.trim_end_matches(".c"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
    // Without builtins the compiler does not think away what is allocated and freed.
    let flags = ["-std=gnu11", "-O1", "-g", "-fno-builtin", "-pthread", "-w"];
    let mut compiler = Command::new("cc");
    // What it is linked with comes after it.
    let output = compiler.args(flags).arg("-o").arg(&program).arg(source).args(more).output();
    let output = output.expect("a C compiler: Rust links with it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[test]
fn every_function_every_size_threads_and_forks() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled(directory.path());
    // Ample, scarce (most is handed on), one page, and none.
    for pool in [Some("256M"), Some("4M"), Some("4096"), None, Some("0")] {
        let output = under(&program, pool).output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert!(output.status.success(), "{pool:?}: {} {stderr}", output.status);
        assert_eq!(stdout, "all sizes hold\n", "{pool:?}");
        assert_eq!(
            served(&stderr) > 100,
            matches!(pool, Some("256M" | "4M")),
            "{pool:?}: {stderr}"
        );
    }
}

/// What few programs do, on both libraries and on this one alone: each learns, follows, and neither.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_in_rust_may_do_whatever_it_may_do_without() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("threads");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rust/threads.rs");
    // The compiler that is beside this cargo.
    let mut compiler = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"));
    compiler.args(["--edition", "2024", "-O", "-o"]).arg(&program).arg(source);
    let output = compiler.output().expect("rustc");
    assert!(output.status.success(), "{}", told(&output).1);
    let small = built("cachewise-preload");
    let both = format!("{}:{}", small.display(), library().display());
    let learned = directory.path().join("learned");
    let learns =
        [("CACHEWISE_PROGRAM", learned.to_str().expect("UTF-8")), ("CACHEWISE_LEARN", "trial")];
    let alone = library().to_str().expect("UTF-8");
    for (preload, pool, more) in [
        ("", None, &[][..]),
        (alone, None, &[]),
        (alone, Some("256M"), &[]),
        (alone, Some("2M"), &[]),
        (both.as_str(), Some("16M"), &[]),
        (&both, Some("64M"), &learns),
        (&both, Some("64M"), &learns[..1]),
    ] {
        let mut command = under(&program, pool);
        command.env("LD_PRELOAD", preload).envs(more.iter().copied());
        let output = command.output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert!(output.status.success(), "{preload} {pool:?}: {} {stderr}", output.status);
        assert_eq!(stdout, "threads hold\n", "{preload} {pool:?}");
        assert_eq!(served(&stderr) > 100, pool.is_some(), "{preload} {pool:?}: {stderr}");
    }
}

/// The search for the program's allocator once took a concurrent thread for itself, and that thread's
/// first `realloc` copied nothing.
#[test]
fn the_first_call_of_every_function_from_many_threads_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_from(directory.path(), "first_calls.c", &[]);
    for round in 0..100 {
        let pool = [None, Some("64M")][round % 2];
        let output = under(&program, pool).output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert!(output.status.success(), "round {round}, {pool:?}: {} {stderr}", output.status);
        assert_eq!(stdout, "first calls hold\n", "round {round}, {pool:?}");
    }
}

#[test]
fn a_programs_own_fork_handlers_may_allocate_and_free() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_from(directory.path(), "fork_handlers.c", &[]);
    for pool in [None, Some("64M"), Some("2M")] {
        for _ in 0..3 {
            let output = under(&program, pool).output().expect("it runs");
            let (stdout, stderr) = told(&output);
            assert!(output.status.success(), "{pool:?}: {} {stderr}", output.status);
            assert_eq!(stdout, "handlers hold\n", "{pool:?}");
        }
    }
}

/// Storage of a thread with a destructor is registered with the loader, under its lock.
#[test]
fn a_library_being_loaded_may_wait_for_threads_that_allocate() {
    let directory = tempfile::tempdir().expect("a directory");
    let plugin = compiled_from(directory.path(), "plugin.c", &["-shared", "-fPIC"]);
    let program = compiled_from(directory.path(), "load_plugin.c", &["-ldl"]);
    for pool in [None, Some("64M")] {
        for more in [&[][..], &["before"]] {
            let output = under(&program, pool).arg(&plugin).args(more).output().expect("it runs");
            let (stdout, stderr) = told(&output);
            assert!(output.status.success(), "{pool:?}: {} {stderr}", output.status);
            assert_eq!(stdout, "loaded\n", "{pool:?} {more:?}");
        }
    }
}

fn unusual(word: &str, pools: &[(Option<&str>, &str)]) {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_from(directory.path(), "unusual.c", &[]);
    for (pool, more) in pools {
        let mut command = under(&program, *pool);
        command
            .current_dir(directory.path())
            .args([word, more].iter().filter(|one| !one.is_empty()));
        let output = command.output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert!(output.status.success(), "{word} {pool:?}: {} {stderr}", output.status);
        assert_eq!(stdout, "well\n", "{word} {pool:?}: {stderr}");
    }
}

/// C promises that it is 0.
#[test]
fn errno_is_zero_where_main_begins() {
    unusual("names", &[(Some("nonsense"), ""), (Some("99999999T"), "")]);
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_from(directory.path(), "unusual.c", &[]);
    // Nothing can be said there, nor kept for the end.
    let mut shell = under(Path::new("/bin/sh"), None);
    shell.env_remove("LD_PRELOAD").arg("-c");
    shell.arg("LD_PRELOAD=$1 CACHEWISE_POOL=nonsense exec \"$0\" names 2>&-");
    let output = shell.arg(&program).arg(library()).output();
    let (stdout, stderr) = told(&output.expect("it runs"));
    assert_eq!((stdout.as_str(), stderr.as_str()), ("well\n", ""));
}

/// They are functions of the C library itself, which took a block of the pool for one of its own.
#[test]
fn the_c_librarys_other_names_know_the_pools_blocks() {
    unusual("names", &[(None, ""), (Some("64M"), ""), (Some("2M"), "")]);
}

/// To make the pool, files are read; a thread once ended there, in `malloc`, with its caller's lock.
#[test]
fn no_thread_is_cancelled_in_an_allocation() {
    unusual("cancelled", &[(None, ""), (Some("64M"), "")]);
}

/// That no pool could be made was once written into a file that the program had opened in stderr's place.
#[test]
fn nothing_is_said_where_stderr_is_another_file_by_now() {
    unusual("data", &[(None, ""), (Some("1G"), "")]);
}

/// Such a child waited for ever for who was making it, and got all its memory elsewhere.
#[test]
fn a_child_forked_while_the_pool_is_being_made_gets_one_of_its_own() {
    unusual("during", &[(Some("64M"), "pool"), (None, "")]);
}

/// The file's name was looked for at the end, in the directory and the environment of then.
#[test]
fn statistics_go_where_they_were_to_go_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_from(directory.path(), "unusual.c", &[]);
    let mut command = under(&program, Some("64M"));
    command.env("CACHEWISE_POOL_STATS", "json").env("CACHEWISE_POOL_STATS_FILE", "figures");
    let output = command.current_dir(directory.path()).arg("elsewhere").output().expect("it runs");
    assert_eq!(told(&output), ("well\n".to_owned(), String::new()));
    let figures = std::fs::read_to_string(directory.path().join("figures")).expect("written");
    assert_eq!(figure(&figures, "served"), 1, "{figures}");
}

/// The thread that zeroes and gives back was started in the child, and ended with it: the parent had none, and
/// its pool might have been left locked.
#[test]
fn a_child_that_shares_its_parents_memory_starts_no_thread() {
    unusual("", &[(None, ""), (Some("64M"), "pool")]);
}

/// An allocator that frees blocks of `malloc` by a way of its own has no pool over it.
#[test]
fn an_allocator_that_frees_past_the_library_has_no_pool_over_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("UTF-8");
    let built = compiled_from(directory.path(), "sized.c", &["-DLIBRARY", "-shared", "-fPIC"]);
    let allocator = directory.path().join("liballocator.so");
    std::fs::rename(built, &allocator).expect("renamed");
    let rpath = format!("-Wl,-rpath,{path}");
    let linked = [allocator.to_str().expect("UTF-8"), &rpath];
    let program = compiled_from(directory.path(), "sized.c", &linked);
    for pool in [None, Some("64M")] {
        let output = under(&program, pool).output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert!(output.status.success(), "{pool:?}: {} {stderr}", output.status);
        assert_eq!(stdout, "freed\n", "{pool:?}");
        assert_eq!(stderr.contains("operator delete"), pool.is_some(), "{pool:?}: {stderr}");
    }
}

/// Another library's indirect function is chosen before the preload library is relocated, and its
/// resolver allocates; what it got is used and freed in `main`.
#[test]
fn a_resolver_may_allocate_before_the_library_is_relocated() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("UTF-8");
    let shared = ["-shared", "-fPIC", "-Wl,-z,now"];
    let resolver = compiled_from(directory.path(), "resolver.c", &shared);
    let rpath = format!("-Wl,-rpath,{path}");
    let resolver = resolver.to_str().expect("UTF-8");
    let linked = [&shared[..], &[resolver, &rpath]].concat();
    let refers = compiled_from(directory.path(), "refers.c", &linked);
    let refers = refers.to_str().expect("UTF-8");
    let program = compiled_from(directory.path(), "chosen.c", &[refers, resolver, &rpath]);
    let plain = Command::new(&program).env_remove("LD_PRELOAD").output().expect("it runs");
    assert_eq!(told(&plain).0, "chosen\n", "without the library: {}", told(&plain).1);
    for pool in [None, Some("64M")] {
        let output = under(&program, pool).output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert!(output.status.success(), "{pool:?}: {} {stderr}", output.status);
        assert_eq!(stdout, "chosen\n", "{pool:?}: {stderr}");
    }
}

#[test]
fn what_an_idle_program_freed_goes_back_to_the_system() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_from(directory.path(), "idle.c", &[]);
    for after in [None, Some("1")] {
        let mut command = under(&program, Some("1G"));
        command.env("CACHEWISE_POOL_STATS", "json");
        if let Some(after) = after {
            command.env("CACHEWISE_POOL_IDLE", after);
        }
        let output = command.output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert!(output.status.success(), "{} {stderr}", output.status);
        assert_eq!(stdout, "gone back\n");
        // The pool's own thread may be in it when a block is asked for.
        assert_eq!(figure(&stderr, "served") + figure(&stderr, "busy"), 61, "{stderr}");
        assert!(figure(&stderr, "given_back_bytes") > 0, "{stderr}");
    }
}

#[test]
fn statistics_name_the_program_and_every_reason_in_three_forms() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled(directory.path());
    let told_as = |form: &str, pool: &str| {
        let output = under(&program, Some(pool)).env("CACHEWISE_POOL_STATS", form).output();
        told(&output.expect("it runs")).1
    };
    let text = told_as("1", "4M");
    let last = text.lines().last().unwrap_or_default();
    assert!(last.contains(" in sizes[") && last.contains(": the pool was full"), "{text}");
    assert!(last.ends_with("the pool is too small for this program"), "{text}");
    assert!(!told_as("text", "512M").contains("too small"));
    let json = told_as("json", "4M");
    let last = json.lines().last().unwrap_or_default();
    assert!(last.starts_with("{\"cachewise_pool\":{\"program\":\"sizes\",\"pid\":"), "{json}");
    assert!(last.contains("\"too_small\":true,\"handed_on\":{\"full\":"), "{json}");
    assert_eq!(last.matches('{').count(), last.matches('}').count(), "{json}");
    let prometheus = told_as("prometheus", "512M");
    for line in prometheus.lines() {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        assert!(name.starts_with("cachewise_pool_") && name.ends_with('}'), "{line}");
        assert!(name.contains("program=\"sizes\"") && value.parse::<u64>().is_ok(), "{line}");
    }
    let has = |what: &str| prometheus.contains(what);
    // All that the C interface's structure has, in each form.
    for (name, unit, _) in cachewise_pages::Stats::default().figures() {
        let name = match name {
            "zero_hits" => "found_zeroed",
            "zero_misses" => "not_zeroed",
            "trimmed" => "given_back",
            "huge_broken" => "huge_pages_broken",
            "scrub_cpu_ns" => "scrub_cpu_nanoseconds",
            name => name,
        };
        let bytes = matches!(unit, Unit::Bytes | Unit::BytesSoFar);
        let name = if bytes { format!("{name}_bytes") } else { name.to_owned() };
        let sample = if unit == Unit::Bytes { name.clone() } else { format!("{name}_total") };
        assert!(has(&format!("cachewise_pool_{sample}{{")), "{sample}: {prometheus}");
        assert!(json.contains(&format!(",\"{name}\":")), "{name}: {json}");
        assert!(text.contains(&format!(", {name} ")), "{name}: {text}");
    }
    assert!(has("cachewise_pool_too_small{") && has("reason=\"busy\""), "{prometheus}");
    assert!(told_as("xml", "4M").contains("accepted 1, text, json, prometheus"));
    // Whoever makes no pool says nothing.
    for pool in [None, Some("64M")] {
        let output = under(Path::new("/bin/true"), pool).output().expect("it runs");
        assert_eq!(told(&output), (String::new(), String::new()));
    }
}

/// A control group with a limit; gone when dropped, if all in it have ended.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

impl Group {
    /// One of 128 MiB inside this process's own, of either version; none where it may not make one.
    fn limited(name: &str) -> Option<Group> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let made = [
            (":memory:/", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("0::/", "/sys/fs/cgroup", "memory.max"),
        ]
        .into_iter()
        .find_map(|(controller, root, limit)| {
            let path = groups.lines().find_map(|line| line.split_once(controller))?.1;
            let name = format!("cachewise-{name}-{}", std::process::id());
            let group = Group(Path::new(root).join(path).join(name));
            std::fs::create_dir(&group.0).ok()?;
            std::fs::write(group.0.join(limit), "134217728").ok()?;
            Some(group)
        });
        if made.is_none() {
            eprintln!("SKIPPED: no memory controller, or no right to make a group");
        }
        made
    }

    /// A program in it, under the library.
    fn runs(&self, program: &Path, pool: Option<&str>) -> Command {
        let enter = r#"echo $$ > "$1/cgroup.procs" && shift && exec "$@""#;
        let mut command = under(Path::new("/bin/sh"), pool);
        command.args(["-c", enter, "sh"]).arg(&self.0).arg(program);
        command
    }
}

/// Version 1's memory controller: its limit was not looked at once.
#[test]
fn a_pool_above_the_control_groups_limit_is_refused_and_one_below_serves() {
    let Some(group) = Group::limited("refuses") else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_from(directory.path(), "busy.c", &[]);
    let inside = |pool| {
        let mut command = group.runs(&program, Some(pool));
        told(&command.args(["2", "1048576", "50", "1"]).output().expect("it runs"))
    };
    let (refused, accepted) = (inside("1G").1, inside("64M").1);
    assert!(refused.contains("accepted at most the") && !refused.contains("served"), "{refused}");
    assert!(served(&accepted) > 50, "{accepted}");
}

/// What the pool keeps of freed memory is the kernel's to take when the group is full: the program was
/// killed.
#[test]
fn a_program_that_frees_large_blocks_and_fills_small_ones_lives_in_a_small_group() {
    let Some(group) = Group::limited("fills") else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_from(directory.path(), "fills.c", &[]);
    for (pool, size) in
        [(None, "1024"), (Some("120M"), "200"), (Some("120M"), "1024"), (Some("120M"), "51200")]
    {
        let output = group.runs(&program, pool).arg(size).output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert!(output.status.success(), "{pool:?}, {size}: {} {stderr}", output.status);
        assert_eq!(stdout, "filled\n", "{pool:?}, {size}");
    }
}

/// Threads that find each other in the pool are served by the program's own allocator: none waits,
/// no block is two threads', and each is counted once.
#[test]
fn every_block_of_many_threads_is_served_or_handed_on_with_its_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_from(directory.path(), "busy.c", &[]);
    for (threads, bytes, calls, fill) in [(8, 1 << 17, 4000, "0"), (4, 1 << 19, 250, "1")] {
        let mut command = under(&program, Some("256M"));
        command.env("CACHEWISE_POOL_STATS", "json");
        let words = [threads.to_string(), bytes.to_string(), calls.to_string(), fill.to_owned()];
        let output = command.args(words).output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert!(output.status.success(), "{} {stdout} {stderr}", output.status);
        let figure = |name: &str| figure(&stderr, name);
        let all = threads * calls;
        assert_eq!(figure("served") + figure("busy") + figure("full"), all, "{stderr}");
        assert_eq!((figure("allocated_bytes"), figure("frees")), (0, figure("served")), "{stderr}");
        // Each block is taken and given back under the lock.
        assert!(figure("lock_holds") >= 2 * figure("served"), "{stderr}");
    }
}

#[test]
fn the_standards_words_on_every_function_hold() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_from(directory.path(), "contract.c", &[]);
    let alone = Command::new(&program).env_remove("LD_PRELOAD").output().expect("it runs");
    assert_eq!(told(&alone).0, "contract holds\n", "without the library: {}", told(&alone).1);
    for pool in [None, Some("4096"), Some("4M"), Some("64M"), Some("512M")] {
        let output = under(&program, pool).output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert!(output.status.success(), "{pool:?}: {} {stderr}", output.status);
        assert_eq!(stdout, "contract holds\n", "{pool:?}");
    }
}

/// A process whose main thread leaves ends with the last thread of the program, though the pool has one
/// more; so does a forked child, whose main thread is another one.
#[test]
fn a_program_whose_main_thread_leaves_ends_with_its_last_thread() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_from(directory.path(), "leaves.c", &[]);
    for (pool, words, ends) in [
        (None, &[] as &[&str], 1),
        (Some("64M"), &[], 1),
        (Some("64M"), &["forks"], 2),
        (Some("64M"), &["forks", "others alone"], 2),
    ] {
        // A process that is left with the pool's thread alone takes no signal but this one.
        let mut command = under(Path::new("timeout"), pool);
        command.args(["-s", "KILL", "60"]).arg(&program).args(words);
        let output = command.output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert!(output.status.success(), "{pool:?} {words:?}: {} {stderr}", output.status);
        assert_eq!(stdout, "ended\n".repeat(ends), "{pool:?} {words:?}: {stderr}");
    }
}

/// Nobody reads from the pipe: that is said, and the program ends.
#[test]
fn a_file_for_statistics_that_is_a_pipe_holds_no_program_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo(1)");
    assert!(made.success());
    let mut command = under(Path::new("timeout"), Some("64M"));
    command.args(["-s", "KILL", "60"]).arg(compiled(directory.path()));
    let output = command.env("CACHEWISE_POOL_STATS_FILE", &pipe).output().expect("it runs");
    let (_, stderr) = told(&output);
    assert!(output.status.success(), "{} {stderr}", output.status);
    assert!(stderr.contains("CACHEWISE_POOL_STATS_FILE: "), "{stderr}");
}

/// A program that never writes to stderr does not learn that nobody reads there: it ends as without the
/// library, with statistics and with a line of refusal.
#[test]
fn a_stderr_that_nobody_reads_ends_no_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled(directory.path());
    for (pool, file) in [("64M", false), ("lots", false), ("64M", true)] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = under(&program, Some(pool));
        if file {
            command.env("CACHEWISE_POOL_STATS_FILE", "/dev/stderr");
        }
        let output = command.stderr(writer).output().expect("it runs");
        assert!(output.status.success(), "{pool}, {file}: {}", output.status);
    }
}

#[test]
fn a_block_freed_twice_ends_the_program_with_a_word() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = under(&compiled(directory.path()), Some("64M")).arg("twice").output();
    let output = output.expect("it runs");
    let (_, stderr) = told(&output);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{stderr}");
    assert!(stderr.contains("no block in use begins there; aborting"), "{stderr}");
}

#[test]
fn a_size_that_is_none_is_said_once_and_the_program_runs() {
    let shell = Path::new("/bin/sh");
    for (size, says) in [
        ("lots", "CACHEWISE_POOL: found \"lots\", accepted bytes"),
        ("-1", "found \"-1\""),
        ("99999999T", "found \"99999999T\""),
    ] {
        let output = under(shell, Some(size)).args(["-c", "echo runs"]).output().expect("it runs");
        let (stdout, stderr) = told(&output);
        assert_eq!(stdout, "runs\n");
        assert_eq!(stderr.matches(says).count(), 1, "{size}: {stderr}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled(directory.path());
    // More than there is: known when the pool is made.
    let output = under(&program, Some("1T")).output().expect("it runs");
    let (stdout, stderr) = told(&output);
    assert_eq!(stdout, "all sizes hold\n", "{stderr}");
    assert!(stderr.contains("accepted at most the"), "{stderr}");
    let quiet = under(&program, Some("1T")).env("CACHEWISE_QUIET", "1").output().expect("it runs");
    assert_eq!(told(&quiet).1, "");
}

/// Python calls a shell, which forks and execs; NumPy where it is.
#[test]
fn real_programs_print_the_same() {
    let numpy = "import numpy as np\na=np.arange(3e6)\nb=np.zeros(3000000)\n\
                 c=(a+b)*a-b\nprint(c.sum(), b.sum(), np.concatenate([a,c]).sum())";
    let plain = "import os,sys\nx=[bytearray(500000+i) for i in range(40)]\n\
                 print(sum(map(sum,x)), os.system('echo child'), sys.getsizeof(x[3])); \
                 y=b'z'*700000; print(hash(y*3) == hash(y+y+y), os.popen('cat /dev/null').read())";
    let sql = "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n \
               where i<20000) insert into t select i, hex(zeroblob(400000)) from n limit 8; \
               select count(*), sum(length(b)) from t;";
    for (program, arguments, large) in [
        ("/usr/bin/python3", vec!["-c", plain], true),
        ("/usr/bin/python3", vec!["-c", numpy], true),
        ("/usr/bin/sqlite3", vec![":memory:", sql], true),
        ("/bin/ls", vec!["/"], false),
    ] {
        let program = Path::new(program);
        if !program.exists() {
            eprintln!("{}: SKIPPED, not installed", program.display());
            continue;
        }
        let run = |pool| under(program, pool).args(&arguments).output().expect("it runs");
        let (without, with) = (run(None), run(Some("512M")));
        if !without.status.success() {
            eprintln!("{arguments:?}: SKIPPED, {}", told(&without).1);
            continue;
        }
        assert_eq!(with.status, without.status, "{}", told(&with).1);
        assert_eq!(told(&with).0, told(&without).0);
        assert_eq!(served(&told(&with).1) > 0, large, "{}", told(&with).1);
    }
}
