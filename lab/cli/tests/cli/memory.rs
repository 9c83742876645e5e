//! `advise --goal memory`, `--blame` and `--unit`, on programs whose memory is known.

use crate::exec::{compiled, libraries};
use crate::support::{Folder, Said, has, piped, program, said, signal};
use cachewise_measure::record::{self, names};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Blocks of 200 KiB: from the first that is freed on, glibc takes them from the heap, whose top the last one pins.
const KEEPS: &str = r"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    enum { N = 150 };
    static char *blocks[N];
    free(memset(malloc(400 << 10), 1, 400 << 10));
    for (int i = 0; i < N; i++)
        blocks[i] = memset(malloc(200 << 10), 1, 200 << 10);
    for (int i = 0; i < N - 1; i++)
        free(blocks[i]);
    usleep(250000);
    return 0;
}
";

/// Keeps all that it allocates: 12 MiB a second, in blocks of 40 KiB, beside others that it frees.
const LEAKS: &str = r"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 750; i++) {
        char *other = memset(malloc(300 << 10), 2, 300 << 10);
        char *volatile lost = memset(malloc(40 << 10), 1, 40 << 10);
        free(other);
        usleep(3000);
        (void)lost;
    }
    return 0;
}
";

fn advise(options: &[&str], words: &[&str]) -> Said {
    let mut asked = program();
    asked.env("CACHEWISE_LIBRARY", libraries());
    said(asked.arg("advise").args(options).arg("--").args(words))
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_setting_that_gives_memory_back_is_found_and_both_sides_are_said() {
    let folder = Folder::new();
    let keeps = compiled(KEEPS, &folder, "keeps");
    let [json, html, write] = ["a.jsonl", "a.html", "advised.conf"].map(|name| folder.path(name));
    let files = [format!("--json={json}"), format!("--html={html}"), format!("--write={write}")];
    let mut options: Vec<&str> = files.iter().map(String::as_str).collect();
    options.extend([
        "--goal=memory",
        "--at-most=100%",
        "--rounds=6",
        "--only=^both thresholds at 128 KiB$",
    ]);
    let found = advise(&options, &[&keeps]).with(0);
    has(
        &found.out,
        &[
            "gain here:  yes: both thresholds at 128 KiB: memory after the load 0.0",
            "), time ",
            "allocator: glibc 2.",
            "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=131072",
            "Memory over time",
        ],
    );
    has(&found.err, &[&format!("wrote {write}: both thresholds at 128 KiB")]);
    let record = record::read(Path::new(&json)).expect("a record");
    let row = |state: &str, name: &str| {
        let found = record.rows.iter().find(|row| row.cell.state == state && row.candidate == name);
        found.unwrap_or_else(|| panic!("{state} {name}"))
    };
    let plain = row(names::ADVISED_RACE, names::PLAIN);
    assert!((28e6..40e6).contains(&plain.figure(names::HELD_BYTES).expect("memory")), "{plain:?}");
    let own = row(names::ADVISED_RACE, "both thresholds at 128 KiB");
    assert!(own.figure(names::HELD_HIGH).expect("an interval") < 0.2, "{own:?}");
    assert!(own.ratio.is_some_and(|ratio| ratio.has_interval()), "the time's");
    assert!(record.rows.iter().any(|row| row.cell.state == names::ADVISED_MEMORY));
    let allocator = &record.header.surroundings.as_ref().expect("surroundings").allocator;
    assert!(allocator.starts_with("glibc 2."), "{allocator}");
    has(
        &std::fs::read_to_string(&write).expect("written"),
        &["[Service]", "Environment=\"GLIBC_TUNABLES=glibc"],
    );
    has(
        &std::fs::read_to_string(&html).expect("a page"),
        &["Memory over time", "after the load 0.0"],
    );
    let again = said(program().args(["report", &json])).with(0);
    has(&again.out, &["keeps: settings beside the plain program", "both thresholds at 128 KiB"]);
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_leak_is_called_one_and_leads_to_the_stacks() {
    let folder = Folder::new();
    let leaks = compiled(LEAKS, &folder, "leaks");
    let json = folder.path("a.jsonl");
    let written = format!("--json={json}");
    let options = ["--goal=memory", "--rounds=6", "--only=^both thresholds", &written];
    let found = advise(&options, &[&leaks]);
    // Two settings may lie within 2 % of each other or not; the growth is the same.
    assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
    let growth = "this program's own memory grows: ";
    has(
        &found.out,
        &[
            growth,
            "MiB a minute or more, plain and under every one of 3 settings",
            "no setting of the allocator brings it back",
            &format!("what next:  cachewise advise --blame memory -- {leaks}"),
        ],
    );
    let record = record::read(Path::new(&json)).expect("a record");
    let end = record.end.expect("an end");
    has(&end.verdicts.join("\n"), &[growth, "Trust: "]);
    assert!(end.seconds > 10.0, "{}: the seconds of the race, not those of writing", end.seconds);
}

#[test]
fn words_that_mean_nothing_for_memory_are_refused() {
    for (option, told) in [
        ("--at-most=lots", "lots"),
        ("--also=narenas", "accepted NAME=VALUE"),
        ("--blame=heap", "possible values: faults, copies, memory"),
    ] {
        let refused = advise(&["--goal=memory", option], &["true"]);
        assert!(matches!(refused.status, Some(1 | 2)), "{refused:#?}");
        has(&refused.err, &[told]);
    }
    let refused = said(program().args(["advise", "--goal=memory", "--unit=../x"]));
    assert!(matches!(refused.status, Some(1 | 2)), "{refused:#?}");
    has(&refused.err, &["accepted the name of a unit"]);
}

#[test]
fn faults_are_blamed_in_a_table_a_file_and_a_flame_graph() {
    let folder = Folder::new();
    let keeps = compiled(KEEPS, &folder, "keeps");
    let [folded, html] = ["stacks", "a.html"].map(|name| folder.path(name));
    let found = advise(
        &["--blame=faults", &format!("--folded={folded}"), &format!("--html={html}")],
        &[&keeps],
    )
    .with(0);
    has(&found.out, &["page faults in all", "keeps: page faults", "memset"]);
    let stacks = std::fs::read_to_string(&folded).expect("stacks");
    let is_ours = |line: &str| {
        line.starts_with("keeps;") && line.contains(";main;") && line.contains("memset")
    };
    assert!(stacks.lines().any(is_ours), "{stacks}");
    has(&std::fs::read_to_string(&html).expect("a page"), &["class=\"flame\"", "<svg", "main ("]);
}

/// Without a privilege, as long as the system's setting allows it: a sentence, or the stacks.
#[test]
fn blame_needs_no_privilege_or_names_the_setting_that_forbids_it() {
    if !rustix::process::geteuid().is_root() {
        // Then every other test of this file is this one.
        return;
    }
    let folder = Folder::new();
    let keeps = compiled(KEEPS, &folder, "keeps");
    let command = folder.path("cachewise");
    std::fs::copy(env!("CARGO_BIN_EXE_cachewise"), &command).expect("copied");
    for path in [folder.path(""), command.clone(), keeps.clone()] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
    }
    let mut asked = Command::new("setpriv");
    asked.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        &command,
        "advise",
        "--blame=faults",
        "--",
        &keeps,
    ]);
    let found = said(asked.env("HOME", "/nonexistent").env("TMPDIR", "/tmp"));
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").expect("a level");
    match level.trim().parse::<i32>().expect("a number") {
        ..=2 => {
            has(&found.with(0).out, &["page faults in all", "main"]);
        }
        _ => has(&found.with(1).err, &["kernel.perf_event_paranoid"]),
    }
}

/// A systemctl that knows one service: `$STATE` has its process, a log, and the folder of run-time units.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >>"$STATE/log"
start() {
    [ -f "$STATE/pid" ] && kill "$(cat "$STATE/pid")" 2>/dev/null
    variables=
    for file in "$STATE/run/systemd/system/fake.service.d"/*.conf; do
        [ -f "$file" ] && variables=$(sed -n 's/^Environment="\(.*\)"$/\1/p' "$file")
    done
    setsid env $variables "$SERVICE" >/dev/null 2>&1 </dev/null &
    echo $! >"$STATE/pid"
    echo "started with ${variables:-nothing}" >>"$STATE/log"
}
case $1 in
show)
    case $* in
    *UnitPath*) echo "/etc/systemd/system $STATE/run/systemd/system" ;;
    *other*) printf 'LoadState=not-found\nActiveState=inactive\nMainPID=0\n' ;;
    *) printf 'LoadState=loaded\nActiveState=active\nMainPID=%s\nCPUUsageNSec=1000000000\n' "$(cat "$STATE/pid")" ;;
    esac
    ;;
restart) start ;;
--user) exit 1 ;;
esac
"#;

struct Fake {
    folder: Folder,
}

impl Fake {
    fn new() -> Fake {
        let folder = Folder::new();
        let source = KEEPS.replace("usleep(250000)", "usleep(30000000)");
        compiled(&source, &folder, "service");
        std::fs::create_dir_all(folder.path("run/systemd/system")).expect("made");
        let systemctl = folder.write("systemctl", SYSTEMCTL);
        std::fs::set_permissions(&systemctl, std::fs::Permissions::from_mode(0o755)).expect("set");
        let fake = Fake { folder };
        said(&mut fake.command(&systemctl, &["restart", "fake.service"])).with(0);
        fake
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        self.surround(&mut command);
        command.args(words);
        command
    }

    fn surround(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.folder.path("")));
        command.env("STATE", self.folder.path("")).env("SERVICE", self.folder.path("service"));
    }

    fn advise(&self, options: &[&str]) -> Command {
        let mut asked = program();
        self.surround(&mut asked);
        asked.env("CACHEWISE_LIBRARY", libraries());
        asked.args([
            "advise",
            "--goal=memory",
            "--at-most=100%",
            "--load=sleep 0.1",
            "--settle=0.1",
        ]);
        asked.args(options);
        asked
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path("log")).expect("a log")
    }

    /// The drop-in and its folder are gone, and the last start was plain.
    fn is_restored(&self) -> bool {
        let last = self.log().lines().rfind(|line| line.starts_with("started")).map(str::to_owned);
        last.as_deref() == Some("started with nothing")
            && !Path::new(&self.folder.path("run/systemd/system/fake.service.d")).exists()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let number = std::fs::read_to_string(self.folder.path("pid")).unwrap_or_default();
        if let Some(pid) = number.trim().parse().ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_service_is_restarted_by_turns_and_restored() {
    let fake = Fake::new();
    let only = "--only=^both thresholds at 128 KiB$";
    let found = said(&mut fake.advise(&["--unit=fake", "--rounds=6", only])).with(0);
    has(&found.out, &["gain here:  yes: both thresholds at 128 KiB: memory after the load 0."]);
    let log = fake.log();
    let starts =
        |with: &str| log.lines().filter(|line| *line == format!("started with {with}")).count();
    let setting =
        "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=131072";
    assert!(starts(setting) >= 12 && starts("nothing") >= 13, "{log}");
    assert!(fake.is_restored(), "{log}");
    let refused = said(&mut fake.advise(&["--unit=other"])).with(1);
    has(
        &refused.err,
        &["--unit other: found not-found, inactive; accepted a service that is loaded and active"],
    );
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_service_is_restored_after_a_control_c_and_after_a_crash() {
    for with in [Signal::INT, Signal::KILL] {
        let fake = Fake::new();
        let child = piped(fake.advise(&["--unit=fake", "--rounds=900"]));
        let begun = Instant::now();
        while !fake.log().contains("started with GLIBC") {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", fake.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        signal(&child, with);
        let mut child = child;
        child.wait().expect("it ends");
        let begun = Instant::now();
        while !fake.is_restored() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{with:?}: {}", fake.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
