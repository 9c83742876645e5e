//! `compare` of two commands: figures that do not depend on the clock.

use crate::support::{asked, documented, keys, program, root};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A program that touches so many MiB of a file in memory, beside an interpreter's own.
fn holds(mib: u32) -> String {
    format!("python3 -c 'b = bytearray({mib} << 20); print(len(b) > 0)'")
}

#[test]
fn commands_are_compared_by_figures_and_by_what_they_print() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (name, text) in [
        ("bench-old", "#!/bin/sh\necho copy 1.0 ms; echo fill 2 ms; echo gone 1 s\n"),
        ("bench-new", "#!/bin/sh\necho copy 1.5 ms; echo fill 2 ms; echo fresh 1 s\n"),
        ("go", "#!/bin/sh\necho 'BenchmarkX-2 100 50 ns/op'\n"),
    ] {
        fs::write(at(name), text).expect("a script");
        fs::set_permissions(at(name), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("is its own");
    }
    fs::write(at("input"), "words\n").expect("a file");
    let [bench_old, bench_new, go, input] = ["bench-old", "bench-new", "go", "input"].map(at);
    let [small, large] = [holds(4), holds(64)];
    let by = |options: &[&str], old: &str, new: &str| {
        let mut command = program();
        command.args(["compare", "--json", "-", "--budget", "5min"]).args(options).args([old, new]);
        command.current_dir(folder.path());
        command
    };
    for (mut command, status, answer, names) in [
        (by(&["--judge", "peak"], &small, &large), 3, "slower", vec![]),
        (by(&["--judge", "peak"], &large, &small), 0, "faster", vec![]),
        (by(&["--judge", "peak"], &large, &large), 0, "same", vec![]),
        (
            by(&["--judge", "peak,faults"], &small, &large),
            3,
            "slower",
            vec!["page faults", "peak memory"],
        ),
        (by(&["--figures", "lines"], &bench_old, &bench_new), 3, "slower", vec!["copy"]),
        (by(&["--figures", "lines"], &bench_new, &bench_old), 0, "faster", vec!["copy"]),
        (by(&["--figures", "go"], &go, &go), 0, "same", vec![]),
        // Variables, folders and the same input of both sides.
        (
            by(
                &["--figures", "lines", "--env-new", "T=2"],
                "sh -c 'echo x ${T:-1} s'",
                "sh -c 'echo x ${T:-1} s'",
            ),
            3,
            "slower",
            vec!["x"],
        ),
        (
            by(
                &["--figures", "lines", "--input", &input],
                "sh -c 'echo x $(wc -c) s'",
                "sh -c 'echo x $(wc -c) s'",
            ),
            0,
            "same",
            vec![],
        ),
        (
            by(
                &["--figures", "lines", "--prepare", "echo 1 > prepared", "--directory-new", "/"],
                "sh -c 'echo x $(cat prepared) s'",
                &format!("sh -c 'echo x $(cat {}) s'", at("prepared")),
            ),
            0,
            "same",
            vec![],
        ),
        (
            by(&["--judge", "peak", "--any-output"], "sh -c 'echo 1'", "sh -c 'echo 2'"),
            0,
            "same",
            vec![],
        ),
    ] {
        let output = command.output().expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        let shown = format!("{command:?}: {told}");
        assert_eq!(output.status.code(), Some(status), "{shown}");
        let found: Value = serde_json::from_slice(&output.stdout).expect(&shown);
        assert_eq!(found["answer"], answer, "{found}");
        let lines = found["lines"].as_array().expect("lines");
        let mut different: Vec<&str> = lines
            .iter()
            .filter(|line| line["verdict"] == "slower" || line["verdict"] == "faster")
            .filter_map(|line| line["name"].as_str())
            .collect();
        different.sort_unstable();
        if !names.is_empty() {
            assert_eq!(different, names, "{found}");
        }
    }
    let output = by(&["--figures", "lines"], &bench_old, &bench_new).output().expect("it starts");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(
        (&found["only_old"][0], &found["only_new"][0]),
        (&Value::from("gone"), &Value::from("fresh"))
    );
    assert_eq!(keys(&found), documented("docs/guide/old-and-new.md", "| `answer`"));
    let [runs, pairs] = ["runs", "pairs"].map(|key| found[key].as_u64().expect(key));
    assert!(runs >= 2 * pairs + 2, "runs before the pairs cost, too: {found}");
}

#[test]
fn arguments_of_both_are_behind_two_dashes_and_every_file_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let mut command = program();
    command.args(["compare", "--judge", "peak", "--budget", "5min"]);
    for (option, name) in
        [("--json", "c.json"), ("--csv", "c.csv"), ("--markdown", "c.md"), ("--html", "c.html")]
    {
        command.arg(option).arg(at(name));
    }
    let status =
        command.args(["python3", "python3", "--", "-c", "print(1)"]).status().expect("it starts");
    assert_eq!(status.code(), Some(0));
    let read = |name: &str| fs::read_to_string(at(name)).expect(name);
    let found: Value = serde_json::from_str(&read("c.json")).expect("one object");
    let pairs = found["pairs"].as_u64().expect("a number") as usize;
    assert_eq!(read("c.html").matches("<circle").count(), pairs);
    assert!(read("c.csv").lines().count() > 3 && read("c.md").contains("| figure |"));
}

/// Two builds of the command: rows of their records, whatever the machine says of them.
#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn records_are_a_format_of_figures() {
    let this = env!("CARGO_BIN_EXE_cachewise");
    let mut command = asked("compare --json - --budget 5min --margin 50% --figures cachewise");
    command.args([this, this]);
    command.args("-- run page-clear --quick --size 4K --kernels zero.(avx|sse2)".split(' '));
    let output = command.output().expect("it starts");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let rows = found["lines"].as_array().expect("lines").len();
    let expected = [("same", 0), ("faster", 0), ("slower", 3), ("cannot-tell", 4)];
    let of = |(word, status): (&str, i32)| {
        found["answer"] == word && output.status.code() == Some(status)
    };
    assert!(rows >= 2 && expected.into_iter().any(of), "{found} {output:?}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path().join("runs");
    let fails_later = format!("sh -c 'echo >>{0}; [ $(wc -l <{0}) -lt 6 ]'", runs.display());
    for (arguments, status) in [
        (&["true", "no-such-program-here"][..], 127),
        (&["true 'open", "true"], 2),
        (&["", "true"], 2),
        (&["A=1 true", "true"], 2),
        (&["false", "true"], 1),
        (&["true", "false"], 1),
        (&[&*fails_later, "true"], 1),
        // Another output is not the same work.
        (&["sh -c 'echo 1'", "sh -c 'echo 2'"], 1),
        (&["--budget", "1s", "sleep 0.4", "sleep 0.4"], 1),
        (&["--figures", "lines", "echo none", "echo none"], 1),
        (&["--figures", "lines", "echo x 5 points", "echo x 5 points"], 1),
        (&["--figures", "words", "true", "true"], 2),
        (&["--env-new", "=1", "true", "true"], 2),
        (&["--input", "no-such-file", "true", "true"], 1),
        (&["--judge", "time", "--figures", "lines", "true", "true"], 2),
    ] {
        let output = program().arg("compare").args(arguments).output().expect("it starts");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {output:?}");
    }
}

/// The Action, as the runner of a pull request calls it: base and head are two commits of one repository.
#[test]
fn the_action_builds_both_commits_and_fails_where_the_head_is_slower() {
    let folder = tempfile::tempdir().expect("a folder");
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        let settings = "-c user.name=a -c user.email=a@b -c init.defaultBranch=main";
        command.args(settings.split(' '));
        let status = command.args(words).current_dir(folder.path()).status().expect("git starts");
        assert!(status.success(), "{words:?}");
    };
    let commit = |milliseconds: &str| {
        let text = format!("#!/bin/sh\necho work {milliseconds} ms\n");
        fs::write(folder.path().join("bench.in"), text).expect("a file");
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "a change"]);
    };
    git(&["init", "-q"]);
    commit("10");
    let script = root().join("packaging/action/compare.sh");
    let beside = std::path::Path::new(env!("CARGO_BIN_EXE_cachewise")).parent().expect("a folder");
    let path = format!("{}:{}", beside.display(), std::env::var("PATH").expect("a list"));
    for (milliseconds, status, word) in
        [("12", 3, "worse"), ("12.01", 0, "no difference"), ("10", 0, "better")]
    {
        commit(milliseconds);
        let summary = folder.path().join("summary.md");
        fs::write(&summary, "").expect("a file");
        let mut command = Command::new("bash");
        command.arg(&script).current_dir(folder.path()).env("GITHUB_STEP_SUMMARY", &summary);
        command.envs([
            ("PATH", &*path),
            ("BASE", "HEAD^"),
            ("BUILD", "cp bench.in bench && chmod +x bench"),
            ("COMMAND", "./bench"),
            ("FIGURES", "lines"),
            ("OPTIONS", "--budget 5min"),
        ]);
        let output = command.output().expect("bash starts");
        assert_eq!(output.status.code(), Some(status), "{milliseconds}: {output:?}");
        let summary = fs::read_to_string(&summary).expect("it was written");
        assert!(summary.contains(word) && summary.contains("| figure |"), "{summary}");
        fs::remove_file(folder.path().join("bench")).expect("it was built");
    }
}
