//! Every bad input once: one clear line, the right exit status, nothing lost, nothing partial.

use crate::support::{line, ok, piped, profile, program, refused, stderr, stdout};
use cachewise::profile::{MAX_SIZE, Profile};
use cachewise_measure::record;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

#[test]
fn an_unknown_kernel_brings_the_nearest_names() {
    let text = refused("run copy-matrix --kernels copy.avx.mt", 2);
    assert!(line(&text).contains("copy.avx.mt") && line(&text).contains("copy.avx.nt"), "{text}");
}

#[test]
fn an_unknown_experiment_brings_the_list() {
    let text = refused("run copy-metrics", 2);
    assert!(line(&text).contains("copy-matrix"), "{text}");
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
    let text = refused("run page-clear --size 5000", 2);
    assert!(line(&text).contains("found 5000, accepted whole pages"), "{text}");
}

#[test]
fn a_size_over_the_memory_bound_is_refused_with_the_bound() {
    let text = refused("run copy-matrix --size 2G", 2);
    assert!(line(&text).contains("2147483648") && line(&text).contains("accepted"), "{text}");
    let text = refused("run copy-matrix --memory 1M", 2);
    assert!(line(&text).contains("1048576") && line(&text).contains("accepted"), "{text}");
}

#[test]
fn unwritable_outputs_are_refused_before_anything_is_measured() {
    // Whoever measures first says so: by a line at least about the machine.
    for flag in ["--json", "--csv", "--markdown", "--html"] {
        let text = refused(&format!("run roofline {flag} /nonexistent/directory/file"), 1);
        assert!(line(&text).contains("/nonexistent/directory/file"), "{text}");
        assert_eq!(text.lines().count(), 1, "it measured first: {text}");
    }
    for file in ["--output /nonexistent/a.profile", "--html /nonexistent/a.html"] {
        let text = refused(&format!("tune --quick {file}"), 1);
        assert!(line(&text).contains("/nonexistent/a"), "{text}");
        assert_eq!(text.lines().count(), 1, "it measured first: {text}");
    }
}

#[test]
fn a_full_disk_is_one_line_and_leaves_no_file() {
    let text =
        refused("run copy-matrix --kernels copy0 --size 1K --residency L1 --json /dev/full", 1);
    assert!(line(&text).contains("space"), "{text}");
    assert!(
        Path::new("/dev/full").metadata().is_ok_and(|m| !m.is_file()),
        "the device was replaced"
    );
}

#[test]
fn ctrl_c_keeps_the_finished_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    let record_path = directory.path().join("a.jsonl");
    let mut child = program()
        .args(["run", "copy-matrix", "--kernels", "copy\\.sse2", "--rounds", "3000", "--json"])
        .arg(&record_path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Until the unfinished record holds rows; the end is minutes away.
    let has_rows = || {
        files(directory.path())
            .iter()
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .any(|text| text.matches("\"type\":\"row\"").count() > 2)
    };
    while !has_rows() && child.try_wait().expect("ours").is_none() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is running");
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
        let mut child = program()
            .args(["tune", "--budget", "15s", "--memory", "64M", "--output"])
            .arg(&profile)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut told = BufReader::new(child.stderr.take().expect("piped")).lines();
        let reached = told.any(|line| line.expect("text").contains(stage));
        assert!(reached, "{stage}");
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is running");
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
            assert!(
                last.is_some_and(|line| line.ends_with("nothing was seen yet, nothing written"))
            );
            assert!(stage != "checking the decisions");
            assert_eq!(files(directory.path()), [profile, before]);
        }
    }
}

#[test]
fn a_budget_is_a_duration_and_a_second_is_enough_for_a_profile() {
    for budget in ["0", "0s", "10", "-1s", "1 fortnight", "99h"] {
        let argument = format!("--budget={budget}");
        let text = refused(&format!("tune {argument}"), 2);
        assert!(text.contains("accepted a duration from 1s to 24h"), "{text}");
    }
    refused("tune --quick --budget 1s", 2);
    let directory = tempfile::tempdir().expect("a directory");
    let profile = directory.path().join("p.profile");
    ok(&format!("tune --budget 1s --memory 48M --output {}", profile.display()));
    let decided = Profile::read(&profile).expect("a profile").decisions;
    let libc = decided.iter().filter(|decision| decision.kernel == "libc").count();
    assert!(2 * libc > decided.len(), "{libc} of {} stay with libc", decided.len());
}

#[test]
fn a_record_that_cannot_be_decided_from_is_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("r.jsonl");
    let name = path.to_str().expect("UTF-8");
    let text = refused(&format!("tune --from {name}"), 1);
    assert!(line(&text).contains("r.jsonl"), "{text}");
    // Another experiment's, whole and cut off.
    ok(&format!("run roofline --size 1M --json {name}"));
    let text = refused(&format!("tune --from {name}"), 2);
    assert!(line(&text).contains("r.jsonl") && text.contains("no rows of a tuning"), "{text}");
    let whole = std::fs::read_to_string(&path).expect("a record");
    std::fs::write(&path, &whole[..whole.len() - 20]).expect("written");
    let text = refused(&format!("tune --from {name}"), 1);
    assert!(line(&text).contains("r.jsonl"), "{text}");
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

fn explain_with(profile: &Path) -> Output {
    program()
        .args(["explain", "--op", "copy", "--size", "4K"])
        .env("CACHEWISE_PROFILE", profile)
        .output()
        .expect("the program starts")
}

#[test]
fn what_a_profile_says_nothing_about_is_said_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("p.profile");
    std::fs::write(&path, profile(&[(256, MAX_SIZE, "copy.gpr64")]).to_text()).expect("written");
    let told = |hint: &str| {
        let mut command = program();
        command.args(["explain", "--op", "copy", "--size", "4K", "--reuse", hint]);
        stdout(&command.env("CACHEWISE_PROFILE", &path).output().expect("it starts"))
    };
    let (decided, silent) = (told("unknown"), told("never"));
    assert!(decided.contains("p.profile (CACHEWISE_PROFILE)\n"), "{decided}");
    assert!(!decided.contains("says nothing"), "{decided}");
    assert!(silent.contains("decided by: defaults computed"), "{silent}");
    assert!(
        silent.contains("p.profile (CACHEWISE_PROFILE) says nothing about copy with reuse never\n"),
        "{silent}"
    );
}

#[test]
fn a_bad_profile_is_one_warning_and_the_next_source_decides() {
    let directory = tempfile::tempdir().expect("a directory");
    let good = profile(&[(256, MAX_SIZE, "copy.gpr64")]).to_text();
    let path = directory.path().join("p.profile");
    std::fs::write(&path, &good).expect("written");
    assert!(stdout(&explain_with(&path)).contains("copy.gpr64"));

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
        let output = explain_with(&path);
        let warning = stderr(&output);
        assert!(output.status.success(), "{name}: {warning}");
        assert_eq!(warning.lines().count(), 1, "{name}: {warning}");
        assert!(warning.contains("p.profile"), "{name}: {warning}");
        let said = stdout(&output);
        assert!(!said.contains("copy.gpr64"), "{name}: it was followed: {said}");
        // Asked for by name, it is an error instead.
        let path = path.to_string_lossy();
        let refused_with = refused(&format!("explain --op copy --size 4K --profile {path}"), 1);
        assert!(line(&refused_with).contains("p.profile"), "{name}: {refused_with}");
    }
    // Unreadable: a directory in its place.
    let output = explain_with(directory.path());
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
