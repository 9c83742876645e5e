//! Every bad input once: one clear line, the right exit status, nothing lost, nothing partial.

use crate::support::{DECIDED, Folder, Said, asked, cachewise, ok, piped, profile, refused};
use crate::support::{has, root, said, signal, text};
use cachewise::Reuse;
use cachewise::profile::{Decision, Profile};
use cachewise_tune::recording;
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// Command lines that are refused before anything is measured: status, and what the one line names. `@` stands for a
/// folder with the files of [`prepared`].
const REFUSED: &[(&str, i32, &[&str])] = &[
    // The nearest names.
    ("run copy-matrix --kernels copy.avx.mt", 2, &["copy.avx.mt", "copy.avx.nt"]),
    ("run copy-matrix --kernels copy(", 2, &["copy("]),
    ("run copy-metrics", 2, &["\"copy-metrics\"", "copy-matrix"]),
    // Values.
    ("run copy-matrix --size 12q", 2, &["12q"]),
    ("run copy-matrix --residency L7", 2, &["L7"]),
    ("run copy-matrix --rounds 3", 2, &["15..=100000"]),
    ("list kernels --op shred", 2, &["shred"]),
    ("explain --op copy --size 4K --reuse later", 2, &["later"]),
    ("run page-clear --size 5000", 2, &["5000"]),
    ("run copy-matrix --size 1T", 2, &["1 TiB"]),
    ("run copy-matrix --memory 1M", 2, &["--memory", "1 MiB"]),
    ("run peers --launches 5", 2, &["6..=1000"]),
    ("run peers --op shred", 2, &["\"shred\""]),
    ("run peers --peer nonsense", 2, &["\"nonsense\"", "NAME=PATH:SYMBOL"]),
    ("run peers --peer x=libc.so.6:frob", 2, &["\"frob\""]),
    ("run peers --peer x=libc.so.6:memcpy@fly", 2, &["memcpy@fly"]),
    ("run peers --peer x=@/none.so:memcmp", 1, &["--peer x: ", "/none.so: cannot open"]),
    ("run peers --peer x=libc.so.6:my_memcmp", 1, &["--peer x: ", "undefined symbol: my_memcmp"]),
    ("run peers --peer x=@/text:memcpy", 1, &["--peer x: ", "/text: "]),
    ("compare a b --margin -3", 2, &["\"-3\""]),
    ("advise --name ../x -- true", 2, &["\"../x\""]),
    ("advise --bugdet 1min -- true", 2, &["nearest: --budget"]),
    ("advise --at-most=3% -- true", 2, &["--at-most needs --goal"]),
    ("advise --settle=2 -- true", 2, &["--settle needs --load"]),
    ("advise --goal=memory --at-most=lots -- true", 2, &["lots"]),
    ("advise --goal=memory --at-most=310% --also=narenas -- true", 2, &["NAME=VALUE"]),
    ("advise --input=@/none -- true", 1, &["No such file"]),
    ("advise --write @/values.yaml -- true", 2, &["*.conf"]),
    ("advise --write @/others.sh -- true", 2, &["did not write"]),
    ("completions tcsh", 2, &["tcsh"]),
    ("tune --budget 0", 2, &["\"0\""]),
    ("tune --budget 0s", 2, &["\"0s\""]),
    ("tune --budget 10", 2, &["\"10\""]),
    ("tune --budget .5", 2, &["\".5\""]),
    ("tune --budget 99h", 2, &["\"99h\""]),
    // A number with a sign is a wrong value, and no option.
    ("explain --op copy --size -1", 2, &["\"-1\""]),
    ("run copy-matrix --size -1", 2, &["\"-1\""]),
    ("run copy-matrix --seed -1", 2, &["'-1'", "--seed"]),
    ("tune --budget -5", 2, &["\"-5\""]),
    // Options that exclude each other, or would do nothing.
    ("tune --quick --budget 1s", 2, &["--quick", "--budget"]),
    ("tune --from r.jsonl --quick", 2, &["--from", "--quick"]),
    ("explain --op copy --size 4K --html p.html", 2, &["'--html'"]),
    ("explain --op memcmp --size 4K --reuse never", 2, &["compare"]),
    ("list experiments --op copy", 2, &["--op"]),
    // A page is no record; there is one stdout.
    ("run copy-matrix -o rows.jsonl", 2, &["*.jsonl", "*.html"]),
    ("report a --html rows.csv", 2, &["*.csv", "*.html"]),
    ("tune --html p.json", 2, &["*.json", "*.html"]),
    ("advise --html p.jsonl.gz -- true", 2, &["*.jsonl.gz", "*.html"]),
    ("run copy-matrix --json - --csv -", 2, &[]),
    ("compare a b --json - --csv -", 2, &[]),
    ("report a -o - --csv -", 2, &[]),
    // Removed words: what takes their place.
    ("export json", 2, &["`export json`", "`cachewise doctor`"]),
    ("export glibc --untried", 2, &["--untried", "advise"]),
    ("man --to x", 2, &["`man`", "--help"]),
    ("exec --pool 1G -- echo run", 2, &["--pool", "glibc.malloc.mmap_max=0:"]),
    ("advise --blame=faults -- true", 2, &["perf"]),
    ("advise --unit=x -- true", 2, &["--load"]),
    ("exec --pool=many echo run", 2, &["--pool", "cachewise advise"]),
    // Outputs that cannot be written.
    ("run roofline --json @/none/f", 1, &["/none/f"]),
    ("run roofline --csv @/none/f", 1, &["/none/f"]),
    ("run roofline --markdown @/none/f", 1, &["/none/f"]),
    ("run roofline --html @/none/f", 1, &["/none/f"]),
    ("tune --quick --output @/none/f", 1, &["/none/f"]),
    ("tune --quick --html @/none/f", 1, &["/none/f"]),
    // Profiles.
    ("exec --profile @/bad.profile -- echo ran", 1, &["--profile", "bad.profile"]),
    ("explain --op copy --size 4K --profile @/bad.profile", 1, &["bad.profile"]),
    ("exec --profile @/none -- echo ran", 1, &["--profile", "/none"]),
    // Pipes that nobody writes to.
    ("report @/pipe", 1, &["/pipe"]),
    ("tune --from @/pipe", 1, &["/pipe"]),
    ("compare @/pipe @/pipe", 1, &["/pipe"]),
    ("run peers --op compare --distribution @/pipe", 1, &["/pipe"]),
    ("run peers --distribution @/none", 1, &["/none: expected a readable file, ", "No such file"]),
    ("run peers --distribution @/text", 1, &["--distribution ", "/text:1: expected ", ", found "]),
    ("explain --op copy --size 1M --profile @/pipe", 1, &["/pipe"]),
    ("export glibc --profile @/pipe", 1, &["/pipe"]),
    ("exec --profile @/pipe -- true", 1, &["/pipe"]),
    // Files that the dynamic linker would wait for, or pass over.
    ("exec --library @/pipe -- echo run", 1, &["--library", "/pipe", "a pipe"]),
    ("exec --library @/socket -- echo run", 1, &["--library", "/socket", "a socket"]),
    ("exec --library @/. -- echo run", 1, &["--library", "a directory"]),
    ("exec --library /dev/zero -- echo run", 1, &["--library", "a device"]),
    ("exec --library @/text -- echo run", 1, &["--library", "/text"]),
    ("exec --library @/large -- echo run", 1, &["--library", "/large"]),
    ("exec --library @/absent -- echo run", 1, &["--library", "/absent"]),
];

/// Files that are none of what is asked for, in a folder; the socket lives as long as the second is kept.
fn prepared() -> (Folder, std::os::unix::net::UnixListener) {
    let folder = Folder::new();
    said(Command::new("mkfifo").arg(folder.path("pipe"))).with(0);
    let socket = std::os::unix::net::UnixListener::bind(folder.path("socket")).expect("a socket");
    folder.write("text", "no library\n");
    folder.write("others.sh", "echo mine\n");
    folder.write("bad.profile", "cachewise-profile 2\n");
    let endless = std::fs::File::create(folder.path("large")).expect("made");
    endless.set_len(1 << 30).expect("a length");
    (folder, socket)
}

#[test]
fn bad_input_is_one_line_with_its_status() {
    let (folder, _socket) = prepared();
    let before = folder.names();
    for (arguments, status, parts) in REFUSED {
        let arguments = arguments.replace("@/", &folder.path(""));
        let refusal = refused(&arguments, *status, parts);
        // Whoever measures first says so: by a line at least about the machine.
        let is_early = !arguments.contains("/none/f") || refusal.err.lines().count() == 1;
        let is_early = is_early && !refusal.err.contains("plain run");
        assert!(is_early, "it measured first: {refusal:?}");
    }
    assert_eq!(folder.names(), before, "something was left");
    assert_eq!(folder.read("others.sh"), "echo mine\n");
    // A device that is there and cannot be opened: a terminal where there is none.
    for flag in ["--json", "--csv", "--markdown", "--html", "-o"] {
        let mut run = asked(&format!("run roofline {flag} /dev/tty"));
        let apart = || rustix::process::setsid().map(drop).map_err(Into::into);
        // SAFETY: a system call alone, which a forked child may make.
        let ended = said(unsafe { run.pre_exec(apart) }).with(1);
        has(ended.line(), &["/dev/tty"]);
        assert_eq!(ended.err.lines().count(), 1, "it measured first: {ended:?}");
    }
}

/// Names for what a process has open, pipes and devices are written into, and what is there already stays.
#[test]
fn what_is_open_already_is_written_into() {
    let folder = Folder::new();
    let some = "run copy-matrix --kernels copy0 --size 1K --residency L1 --rounds 15 --csv";
    let begins = "experiment,";
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let file = folder.write("out", "before\n");
        let out = OpenOptions::new().append(true).open(&file).expect("opened");
        let ended = asked(&format!("{some} {name}")).stdout(out).status().expect("it starts");
        assert!(ended.success(), "{name}");
        let out = folder.read("out");
        assert!(out.starts_with("before\n") && out.matches(begins).count() == 1, "{name}: {out}");
        assert!(!out.contains("gain here"), "one file on stdout replaces the tables: {out}");
    }
    for name in ["/dev/fd/2", "/dev/stderr", "/proc/self/fd/2"] {
        let file = folder.write("err", "before\n");
        let err = OpenOptions::new().append(true).open(&file).expect("opened");
        let ended = asked(&format!("{some} {name}")).stderr(err).output().expect("it starts");
        assert!(ended.status.success(), "{name}");
        let err = folder.read("err");
        assert!(err.starts_with("before\n") && err.contains(begins), "{name}: {err}");
    }
    let pipe = folder.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().expect("cat");
    cachewise(&format!("{some} {pipe}")).with(0);
    let read = text(&reader.wait_with_output().expect("its end").stdout);
    assert_eq!(read.matches(begins).count(), 1, "{read}");
    assert_eq!(folder.names(), ["err", "out", "pipe"]);
}

/// By Ctrl-C, or because a connection by `ssh` breaks.
#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_run_that_is_ended_keeps_the_finished_rows() {
    for ended_by in [Signal::INT, Signal::HUP] {
        let folder = Folder::new();
        let mut run = asked("run copy-matrix --kernels copy\\.sse2 --rounds 3000 --json");
        run.arg(folder.path("a.jsonl"));
        let mut child = piped(run);
        // The end is minutes away.
        folder.wait_for_rows(&mut child);
        signal(&child, ended_by);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        has(&text(&output.stderr), &["finished rows kept"]);
        let read = folder.record("a.jsonl");
        assert!(read.end.expect("an end").interrupted && read.rows.len() > 2);
        assert_eq!(folder.names(), ["a.jsonl"]);
    }
}

/// While the machine is calibrated, in the race, while the decisions are checked: as soon as the program
/// says that it is there. What an earlier tuning left stays as it was.
#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn ctrl_c_in_any_stage_of_a_tuning_keeps_the_rows_and_the_profile_before() {
    for stage in ["getting to know the machine", "kernels against libc", "checking the decisions"] {
        let folder = Folder::new();
        folder.write("p.record.jsonl", "its record\n");
        let mut tune = asked("tune --budget 15s --memory 64M --output");
        tune.arg(folder.write("p.profile", "a profile\n"));
        let mut child = piped(tune);
        let mut told = BufReader::new(child.stderr.take().expect("piped")).lines();
        let reached = told.any(|line| line.expect("text").contains(stage));
        assert!(reached, "{stage}");
        signal(&child, Signal::INT);
        let last = told.map(|line| line.expect("text")).last();
        let status = child.wait().expect("it ends").code();
        if stage == "checking the decisions" && status == Some(0) {
            // There was nothing to check, and it was over before the signal came.
            assert!(folder.read("p.profile").starts_with("cachewise-profile"));
            assert!(folder.record("p.record.jsonl").end.is_some());
            continue;
        }
        assert_eq!(status, Some(130), "{stage}");
        let left = ["p.profile", "p.record.jsonl"].map(|name| folder.read(name));
        assert_eq!(left, ["a profile\n", "its record\n"]);
        let names = folder.names();
        if names.len() == 3 {
            let read = folder.record("p.interrupted.jsonl");
            assert!(read.end.expect("an end").interrupted && !read.rows.is_empty(), "{stage}");
        } else {
            assert_eq!(names, ["p.profile", "p.record.jsonl"]);
            let nothing = "nothing was seen yet, nothing written";
            assert!(last.is_some_and(|line| line.ends_with(nothing)));
            assert!(stage != "checking the decisions");
        }
    }
}

#[test]
fn a_second_is_enough_for_a_profile_whose_record_says_what_was_in_force() {
    let folder = Folder::new();
    let tune =
        format!("tune --budget 1s --memory 48M --force --output {}", folder.path("p.profile"));
    let told = |decisions: Vec<Decision>| -> Vec<(u64, String)> {
        decisions.into_iter().map(|decision| (decision.from, decision.kernel)).collect()
    };
    let unhinted = |mut profile: Profile| {
        profile.decisions.retain(|decision| decision.reuse == Reuse::Unknown);
        told(profile.decisions)
    };
    let tuned = || {
        ok(&tune);
        let in_force = told(recording::previous(&folder.record("p.record.jsonl").header));
        (in_force, Profile::parse(folder.read("p.profile").as_bytes()).expect("a profile"))
    };
    let (in_force, first) = tuned();
    let libc = first.decisions.iter().filter(|decision| decision.kernel == "libc").count();
    let all = first.decisions.len();
    assert!(2 * libc > all, "{libc} of {all} stay with libc");
    // The shipped profile where there is one for this CPU, then the first one.
    let shipped = cachewise::shipped_profile().filter(|shipped| shipped.unfit.is_none());
    let shipped = shipped.map(|shipped| Profile::parse(shipped.text).expect("a profile"));
    assert_eq!(in_force, shipped.map(unhinted).unwrap_or_default());
    assert_eq!(tuned().0, unhinted(first));
    // A longer tuning's profile is not replaced by a shorter one's unasked, and nothing is measured for it.
    let longer = folder.read("p.profile").replace("budget 1 s", "budget 600 s");
    let longer = crate::support::resealed(&longer);
    folder.write("p.profile", &longer);
    let tune = tune.replace("--force ", "");
    refused(&tune, 2, &["p.profile: a tuning of 600 s is there", "--force"]);
    assert_eq!(folder.read("p.profile"), longer);
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_record_that_cannot_be_decided_from_is_one_line() {
    let folder = Folder::new();
    let tune = format!("tune --from {}", folder.path("r.jsonl"));
    refused(&tune, 1, &["r.jsonl"]);
    // Another experiment's, whole and cut off.
    ok(&format!("run roofline --size 1M --json {}", folder.path("r.jsonl")));
    refused(&tune, 2, &["r.jsonl", "no rows of a tuning"]);
    let whole = folder.read("r.jsonl");
    folder.write("r.jsonl", &whole[..whole.len() - 20]);
    refused(&tune, 1, &["r.jsonl"]);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = piped(asked("list kernels"));
    let mut first = String::new();
    BufReader::with_capacity(16, child.stdout.take().expect("piped"))
        .read_line(&mut first)
        .expect("a line");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

fn explain_with(profile: &str, hint: &str) -> Said {
    let mut explain = asked(&format!("explain --op copy --size 4K --reuse {hint}"));
    said(explain.env("CACHEWISE_PROFILE", profile)).with(0)
}

#[test]
fn what_a_profile_says_nothing_about_is_said_so() {
    let folder = Folder::new();
    let path = folder.write("p.profile", profile(DECIDED));
    let [decided, silent] = ["unknown", "never"].map(|hint| explain_with(&path, hint).out);
    has(&decided, &["copy.gpr64", "p.profile (CACHEWISE_PROFILE)\n"]);
    assert!(!decided.contains("says nothing"), "{decided}");
    let said = "p.profile (CACHEWISE_PROFILE) says nothing about copy with reuse never\n";
    has(&silent, &["decided by: defaults computed", said]);
}

#[test]
fn a_pipe_with_a_writer_is_read() {
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    said(Command::new("mkfifo").arg(&pipe)).with(0);
    let record = root().join("record/2026-11-27-tune-quick-zen4-guest.jsonl.gz");
    let script = format!("cat {} > {pipe} & exec \"$0\" report {pipe}", record.display());
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_cachewise")]);
    assert!(said(&mut command).with(0).out.contains("copy"));
}

/// A record is anybody's: a figure in it is no reason to fail, or to take all memory.
#[test]
fn a_record_with_figures_beyond_all_bounds_is_decided_or_refused() {
    let folder = Folder::new();
    let kept = root().join("record/2026-11-27-tune-quick-zen4-guest.jsonl.gz");
    let kept = cachewise_measure::record::unpacked(&kept).expect("a record");
    let lines: Vec<&str> = kept.lines().collect();
    let with = |at: usize, pointer: &str| {
        let mut line: serde_json::Value = serde_json::from_str(lines[at]).expect("JSON");
        *line.pointer_mut(pointer).expect(pointer) = u64::MAX.into();
        let line = line.to_string();
        let all: Vec<&str> =
            lines.iter().enumerate().map(|(i, old)| if i == at { &*line } else { old }).collect();
        folder.write("r.jsonl", all.join("\n") + "\n")
    };
    let row = lines.iter().position(|line| line.contains("\"type\":\"row\"")).expect("a row");
    for (at, pointer) in [
        (0, "/machine/caches/l1d/bytes"),
        (0, "/machine/caches/l2/bytes"),
        (0, "/machine/caches/llc/bytes"),
        (0, "/machine/caches/llc_usable"),
        (0, "/machine/logical_cpus"),
        (0, "/machine/memory_bytes"),
        (0, "/machine/page_size"),
        (row, "/cell/size"),
    ] {
        let record = with(at, pointer);
        let mut command = Command::new("sh");
        let script = format!("ulimit -v 2000000; exec \"$0\" tune --from {record}");
        let told = said(command.args(["-c", &script, env!("CARGO_BIN_EXE_cachewise")]));
        assert!(matches!(told.status, Some(0 | 1)), "{pointer}: {:?} {}", told.status, told.err);
    }
}
