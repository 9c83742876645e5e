//! `xtask programs` on small scripts, for real: with the library, without it, and what goes wrong.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// `xtask programs` on these scripts, its tables written into the directory.
fn start(directory: &Path, scripts: &[(&str, &str)]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["programs", "--minutes", "0", "--rounds", "6"]);
    // The build of the tests: what it has built is not built again elsewhere.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    command.env("CARGO_TARGET_DIR", target);
    for (name, text) in scripts {
        let file = directory.join(format!("{name}.sh"));
        fs::write(&file, text).expect("written");
        command.arg("--script").arg(file);
    }
    command.arg("--json").arg(directory.join("found.json"));
    command.arg("--markdown").arg(directory.join("found.md"));
    command.env("DIRECTORY", directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("started")
}

/// How it ended, what it said on stderr, and the JSON and the table that it wrote.
fn ended(child: Child, directory: &Path) -> (Output, String, Value, String) {
    let output = child.wait_with_output().expect("waited");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let [json, table] = ["found.json", "found.md"]
        .map(|name| fs::read_to_string(directory.join(name)).unwrap_or_else(|_| panic!("{told}")));
    (output, told, serde_json::from_str(&json).expect("JSON"), table)
}

/// Copies and compares large and small, and prints what does not depend on how.
const SOUND: &str = r#"# Perl moves text.
[ "$1" = run ] || exit 0
exec perl -e '
    my $text = join ",", 1 .. 30000;
    my $twice = $text . $text;
    substr($twice, 7, 3, "moved");
    print length $twice, " ", $twice eq $text . $text ? "same" : "other", " ", unpack("%32C*", $twice), "\n";'
"#;

#[test]
fn a_small_program_is_run_both_ways_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let child = start(directory.path(), &[("sound", SOUND)]);
    let (output, told, found, table) = ended(child, directory.path());
    assert!(output.status.success(), "{told}");
    let one = &found["programs"][0];
    assert_eq!(one["program"], "sound");
    assert_eq!(one["about"], "Perl moves text.");
    assert_eq!(one["same_output"], true);
    for at in 0..3 {
        let seconds = &one["candidates"][at]["seconds"];
        assert_eq!(seconds.as_array().map(Vec::len), Some(6), "{at}: {one}");
    }
    assert!(one["processes"].as_u64().is_some_and(|processes| processes > 0), "{one}");
    assert!(one["calls_and_bytes"]["copy"].is_object(), "{one}");
    let sites = one["large_call_sites"].as_array().expect("sites");
    assert!(sites.iter().any(|site| site[3].as_u64() > Some(100_000)), "{one}");
    assert_eq!(table, String::from_utf8_lossy(&output.stdout));
    assert!(table.contains("| sound | "), "{table}");
    assert!(told.contains("sound: 6 rounds of "), "{told}");
}

#[test]
fn what_is_not_the_same_ends_with_status_1_and_the_others_are_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let differs = "[ $1 = run ] || exit 0\necho \"under ${LD_PRELOAD:-nothing}\"\n";
    let fails = "[ $1 = run ] || exit 0\n[ -z \"${LD_PRELOAD-}\" ] || kill -SEGV $$\n";
    let unprepared = "[ $1 = run ] || { echo no luck >&2; exit 4; }\n";
    let absent = "echo no such thing; exit 77\n";
    let scripts = [
        ("differs", differs),
        ("fails", fails),
        ("unprepared", unprepared),
        ("absent", absent),
        ("sound", SOUND),
    ];
    let child = start(directory.path(), &scripts);
    let (output, told, found, _) = ended(child, directory.path());
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("has to be: differs, fails, unprepared\n"), "{told}");
    assert!(told.contains("expected\nunder nothing\n"), "{told}");
    let wrong = |at: usize| found["programs"][at]["wrong"].as_str().unwrap_or("").to_owned();
    assert_eq!(wrong(0), "another output while counted");
    assert!(wrong(1).contains("signal: 11"), "{found}");
    assert!(wrong(2).starts_with("prepare: ") && wrong(2).contains("no luck"), "{found}");
    assert_eq!(found["programs"][3]["same_output"], true);
    assert_eq!(found["skipped"][0]["skipped"], "no such thing");
}

#[test]
fn ctrl_c_keeps_what_is_finished() {
    let directory = tempfile::tempdir().expect("a directory");
    let endless = "[ $1 = run ] || exit 0\n: >\"$DIRECTORY/begun\"\nsleep 900\n";
    let child =
        start(directory.path(), &[("sound", SOUND), ("endless", endless), ("never", SOUND)]);
    while !directory.path().join("begun").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupt = ["-INT".to_owned(), child.id().to_string()];
    assert!(Command::new("kill").args(interrupt).status().expect("kill").success());
    let (output, told, found, table) = ended(child, directory.path());
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert_eq!(found["programs"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found["interrupted"], serde_json::json!(["endless", "never"]));
    assert!(table.contains("| endless | interrupted | "), "{table}");
}

#[test]
fn bad_arguments_are_told_before_anything_is_run() {
    for (arguments, expected) in [
        (vec!["--only", "nothing"], "--only: found \"nothing\", accepted cpython, git"),
        (vec!["--rounds", "5"], "5 is not in 6..=1000"),
        (vec!["--minutes=-1"], "accepted 0 to 1440"),
        (vec!["--minutes=NaN"], "accepted 0 to 1440"),
        (vec!["--json", "/nowhere/at/all.json"], "/nowhere/at/all.json"),
        (vec!["--script", "/nowhere.sh"], "--script /nowhere.sh"),
        (vec!["--library", "/nowhere.so"], "/nowhere.so"),
        (vec!["--library", "Cargo.toml", "--profile", "/nowhere.profile"], "/nowhere.profile"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        let output = command.arg("programs").args(&arguments).output().expect("started");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(expected), "{arguments:?}: {told}");
    }
}
