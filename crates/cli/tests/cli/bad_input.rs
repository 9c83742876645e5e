//! Every bad input once: one clear line, the right exit status, nothing lost, nothing partial.

use crate::support::{has, ok, piped, profile, program, refused, refused_with, stderr, stdout};
use cachewise::Reuse;
use cachewise::profile::{Decision, MAX_SIZE, Profile};
use cachewise_lab::tune::again;
use cachewise_measure::record;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

#[test]
fn an_unknown_kernel_brings_the_nearest_names() {
    refused_with("run copy-matrix --kernels copy.avx.mt", 2, &["copy.avx.mt", "copy.avx.nt"]);
}

#[test]
fn an_unknown_experiment_brings_the_list() {
    refused_with("run copy-metrics", 2, &["copy-matrix"]);
}

#[test]
fn bad_sizes_levels_and_operations_say_what_is_accepted() {
    for arguments in [
        "run copy-matrix --size 12q",
        "run copy-matrix --residency L7",
        "run copy-matrix --rounds 3",
        "list kernels --op shred",
    ] {
        let text = refused(arguments, 2);
        let value = arguments.rsplit(' ').next().expect("a word");
        assert!(text.contains(value) && text.contains("15") | text.contains("accepted"), "{text}");
    }
    refused("explain --op copy --size 4K --reuse later", 2);
    // Refused by the experiment itself.
    refused_with("run page-clear --size 5000", 2, &["found 5000, accepted whole pages"]);
}

#[test]
fn a_size_over_the_memory_bound_is_refused_with_the_bound() {
    refused_with("run copy-matrix --size 2G", 2, &["2147483648", "accepted"]);
    refused_with("run copy-matrix --memory 1M", 2, &["1048576", "accepted"]);
}

#[test]
fn unwritable_outputs_are_refused_before_anything_is_measured() {
    // Whoever measures first says so: by a line at least about the machine.
    let run = ["--json", "--csv", "--markdown", "--html"].map(|flag| ("run roofline", flag));
    let tune = ["--output", "--html"].map(|flag| ("tune --quick", flag));
    for (command, flag) in run.into_iter().chain(tune) {
        let file = "/nonexistent/directory/file";
        let text = refused_with(&format!("{command} {flag} {file}"), 1, &[file]);
        assert_eq!(text.lines().count(), 1, "it measured first: {text}");
    }
}

#[test]
fn a_full_disk_is_one_line_and_leaves_no_file() {
    let arguments = "run copy-matrix --kernels copy0 --size 1K --residency L1 --json /dev/full";
    refused_with(arguments, 1, &["space"]);
    let device = Path::new("/dev/full").metadata();
    assert!(device.is_ok_and(|metadata| !metadata.is_file()), "the device was replaced");
}

/// Started, with its messages in a pipe.
fn heard(command: &mut Command) -> Child {
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    child.expect("the program starts")
}

fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is running");
}

#[test]
fn ctrl_c_keeps_the_finished_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    let record_path = directory.path().join("a.jsonl");
    let mut command = program();
    command.args("run copy-matrix --kernels copy\\.sse2 --rounds 3000 --json".split(' '));
    let mut child = heard(command.arg(&record_path));
    // Until the unfinished record holds rows; the end is minutes away.
    let has_rows = || {
        let paths = files(directory.path()).into_iter();
        let mut texts = paths.filter_map(|path| std::fs::read_to_string(path).ok());
        texts.any(|text| text.matches("\"type\":\"row\"").count() > 2)
    };
    while !has_rows() && child.try_wait().expect("ours").is_none() {
        std::thread::sleep(Duration::from_millis(50));
    }
    interrupt(&child);
    let status = child.wait().expect("it ends");
    let mut text = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut text).expect("text");
    assert_eq!(status.code(), Some(130), "{text}");
    assert!(text.contains("finished rows kept"), "{text}");
    let read = record::read(&record_path).expect("a whole record");
    assert!(read.end.expect("an end").interrupted);
    assert!(!read.rows.is_empty());
    assert_eq!(files(directory.path()), [record_path]);
}

/// While the machine is calibrated, in the race, while the decisions are checked: as soon as the program
/// says that it is there. What an earlier tuning left stays as it was.
#[test]
fn ctrl_c_in_any_stage_of_a_tuning_keeps_the_rows_and_the_profile_before() {
    for stage in ["getting to know the machine", "kernels against libc", "checking the decisions"] {
        let directory = tempfile::tempdir().expect("a directory");
        let profile = directory.path().join("p.profile");
        let before = directory.path().join("p.record.jsonl");
        std::fs::write(&profile, "a profile\n").expect("room");
        std::fs::write(&before, "its record\n").expect("room");
        let mut command = program();
        command.args("tune --budget 15s --memory 64M --output".split(' '));
        let mut child = heard(command.arg(&profile));
        let mut told = BufReader::new(child.stderr.take().expect("piped")).lines();
        let reached = told.any(|line| line.expect("text").contains(stage));
        assert!(reached, "{stage}");
        interrupt(&child);
        let last = told.map(|line| line.expect("text")).last();
        let status = child.wait().expect("it ends").code();
        let left = |path: &Path| std::fs::read_to_string(path).expect("text");
        if stage == "checking the decisions" && status == Some(0) {
            // There was nothing to check, and it was over before the signal came.
            assert!(left(&profile).starts_with("cachewise-profile"));
            assert!(record::read(&before).expect("a whole record").end.is_some());
            continue;
        }
        assert_eq!(status, Some(130), "{stage}");
        assert_eq!((left(&profile), left(&before)), ("a profile\n".into(), "its record\n".into()));
        let kept = directory.path().join("p.interrupted.jsonl");
        if kept.exists() {
            let read = record::read(&kept).expect("a whole record");
            assert!(read.end.expect("an end").interrupted && !read.rows.is_empty(), "{stage}");
            assert_eq!(files(directory.path()), [kept, profile, before]);
        } else {
            let nothing = "nothing was seen yet, nothing written";
            assert!(last.is_some_and(|line| line.ends_with(nothing)));
            assert!(stage != "checking the decisions");
            assert_eq!(files(directory.path()), [profile, before]);
        }
    }
}

#[test]
fn a_budget_is_a_duration_and_a_second_is_enough_for_a_profile() {
    for budget in ["0", "0s", "10", "-1s", "1 fortnight", "99h"] {
        let text = refused(&format!("tune --budget={budget}"), 2);
        has(&text, &["accepted a duration from 1s to 24h"]);
    }
    refused("tune --quick --budget 1s", 2);
    let directory = tempfile::tempdir().expect("a directory");
    let profile = directory.path().join("p.profile");
    ok(&format!("tune --budget 1s --memory 48M --output {}", profile.display()));
    let decided = Profile::read(&profile).expect("a profile").decisions;
    let libc = decided.iter().filter(|decision| decision.kernel == "libc").count();
    assert!(2 * libc > decided.len(), "{libc} of {} stay with libc", decided.len());
    // The record says what was in force: the shipped profile where there is one for this CPU, then the first one.
    let in_force = || {
        let read = record::read(&directory.path().join("p.record.jsonl")).expect("a record");
        again::previous(&read.header)
    };
    let unhinted = |profile: Profile| -> Vec<(u64, String)> {
        let plain = profile.decisions.into_iter().filter(|d| d.reuse == Reuse::Unknown);
        plain.map(|decision| (decision.from, decision.kernel)).collect()
    };
    let told = |decisions: Vec<Decision>| -> Vec<(u64, String)> {
        decisions.into_iter().map(|decision| (decision.from, decision.kernel)).collect()
    };
    let shipped = cachewise::shipped_profile().filter(|shipped| shipped.unfit.is_none());
    let shipped = shipped.map(|shipped| Profile::parse(shipped.text).expect("a profile"));
    assert_eq!(told(in_force()), shipped.map(unhinted).unwrap_or_default());
    let first = unhinted(Profile::read(&profile).expect("a profile"));
    ok(&format!("tune --budget 1s --memory 48M --output {}", profile.display()));
    assert_eq!(told(in_force()), first);
}

#[test]
fn a_record_that_cannot_be_decided_from_is_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("r.jsonl");
    let name = path.to_str().expect("UTF-8");
    refused_with(&format!("tune --from {name}"), 1, &["r.jsonl"]);
    // Another experiment's, whole and cut off.
    ok(&format!("run roofline --size 1M --json {name}"));
    refused_with(&format!("tune --from {name}"), 2, &["r.jsonl", "no rows of a tuning"]);
    let whole = std::fs::read_to_string(&path).expect("a record");
    std::fs::write(&path, &whole[..whole.len() - 20]).expect("written");
    refused_with(&format!("tune --from {name}"), 1, &["r.jsonl"]);
    refused(&format!("tune --from {name} --quick"), 2);
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(directory).expect("a directory");
    let mut paths: Vec<PathBuf> = all.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut command = program();
    command.args(["list", "kernels"]);
    let mut child = piped(command);
    let mut first = String::new();
    BufReader::with_capacity(16, child.stdout.take().expect("piped"))
        .read_line(&mut first)
        .expect("a line");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
}

fn explain_with(profile: &Path, hint: &str) -> Output {
    let mut command = program();
    command.args(["explain", "--op", "copy", "--size", "4K", "--reuse", hint]);
    command.env("CACHEWISE_PROFILE", profile).output().expect("the program starts")
}

#[test]
fn what_a_profile_says_nothing_about_is_said_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("p.profile");
    std::fs::write(&path, profile(&[(256, MAX_SIZE, "copy.gpr64")]).to_text()).expect("written");
    let [decided, silent] = ["unknown", "never"].map(|hint| stdout(&explain_with(&path, hint)));
    has(&decided, &["p.profile (CACHEWISE_PROFILE)\n"]);
    assert!(!decided.contains("says nothing"), "{decided}");
    let said = "p.profile (CACHEWISE_PROFILE) says nothing about copy with reuse never\n";
    has(&silent, &["decided by: defaults computed", said]);
}

#[test]
fn a_bad_profile_is_one_warning_and_the_next_source_decides() {
    let directory = tempfile::tempdir().expect("a directory");
    let good = profile(&[(256, MAX_SIZE, "copy.gpr64")]).to_text();
    let path = directory.path().join("p.profile");
    std::fs::write(&path, &good).expect("written");
    assert!(stdout(&explain_with(&path, "unknown")).contains("copy.gpr64"));

    let foreign = good.replacen("cpu ", "cpu Somebody", 1);
    let cases = [
        ("damaged", good.replace("copy.gpr64", "copy.gpr46")),
        ("truncated", good[..good.len() / 2].to_owned()),
        ("newer", good.replacen("cachewise-profile 2", "cachewise-profile 3", 1)),
        ("foreign", resealed(&foreign)),
        ("empty", String::new()),
    ];
    for (name, text) in cases {
        std::fs::write(&path, text).expect("written");
        let output = explain_with(&path, "unknown");
        let warning = stderr(&output);
        assert!(output.status.success(), "{name}: {warning}");
        assert_eq!(warning.lines().count(), 1, "{name}: {warning}");
        assert!(warning.contains("p.profile"), "{name}: {warning}");
        let said = stdout(&output);
        assert!(!said.contains("copy.gpr64"), "{name}: it was followed: {said}");
        // Asked for by name, it is an error instead.
        let path = path.to_string_lossy();
        refused_with(&format!("explain --op copy --size 4K --profile {path}"), 1, &["p.profile"]);
    }
    // Unreadable: a directory in its place.
    let output = explain_with(directory.path(), "unknown");
    assert!(output.status.success());
    assert_eq!(stderr(&output).lines().count(), 1);
}

/// The text with a checksum that fits it, so that only its contents are wrong.
fn resealed(text: &str) -> String {
    let body_end = text.rfind("end ").expect("an end line");
    let body = &text[..body_end];
    let lines = body.lines().count();
    format!("{body}end {lines} fnv1a64:{:016x}\n", cachewise::profile::fnv1a64(body.as_bytes()))
}
