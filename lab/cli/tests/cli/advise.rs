//! `advise` on programs of every kind. What a machine gains is not asked for: planted settings are, by the variable `PLANT`.

use crate::exec::{asked_beside, compiled, libraries};
use crate::scrubd::hold;
use crate::support::{Folder, Said, documented, has, piped, program, said, signal};
use cachewise_host::Group;
use cachewise_measure::Record;
use cachewise_measure::record::{self, names};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// `advise` with these options, on a line of the shell; and its record.
fn advised(options: &[&str], line: &str) -> (Said, Option<Record>) {
    on(options, &["sh", "-c", line])
}

fn on(options: &[&str], words: &[&str]) -> (Said, Option<Record>) {
    let folder = Folder::new();
    let json = folder.path("a.jsonl");
    let mut asked = program();
    asked.env("CACHEWISE_LIBRARY", libraries());
    asked.args(["advise", "--json", &json]).args(options).arg("--").args(words);
    let found = said(&mut asked);
    let record =
        Path::new(&json).exists().then(|| record::read(Path::new(&json)).expect("a record"));
    (found, record)
}

/// The planted setting alone, six times.
const PLANT: [&str; 4] = ["--rounds=6", "--only=^PLANT", "--also=PLANT=1", "--seed=1"];

/// The word of an answer, and what became of the planted setting.
fn word(record: &Record) -> (String, String) {
    let verdict = &record.end.as_ref().expect("an end").verdicts[0];
    let fate = record.header.settings["fates"]["PLANT=1"].as_str().unwrap_or_default();
    (verdict.split(':').next().unwrap_or_default().to_owned(), fate.to_owned())
}

fn row<'r>(record: &'r Record, name: &str) -> &'r cachewise_measure::Row {
    let mut rows = record.rows.iter().filter(|row| row.cell.state == names::ADVISED_RACE);
    rows.find(|row| row.candidate == name).unwrap_or_else(|| panic!("{name}"))
}

/// Grounds of an answer, by what the planted setting does: the exit status, the word, its fate.
#[test]
fn an_answer_rests_on_work_that_was_done_and_was_the_same() {
    let folder = Folder::new();
    let (count, once) = (folder.path("count"), folder.path("once"));
    let counted = format!("n=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) >{count}");
    let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
    for (line, status, answer, fate) in [
        // Slower, shown by the clock: the program waits.
        ("sleep ${PLANT:-0}.3; echo ok", 0, "no", "no gain"),
        // Wrong once where the plain program never is.
        (
            &*format!("{counted}; [ -n \"$PLANT\" ] && [ $n -gt 6 ] && echo 43 || echo 42"),
            4,
            "cannot tell",
            "disqualified",
        ),
        // A first run that prints more is no other output.
        (
            &*format!("[ -e {once} ] || echo built; touch {once}; echo ${{PLANT:+other}}"),
            4,
            "cannot tell",
            "disqualified",
        ),
        // Numbers that differ from run to run.
        ("echo $$; sleep ${PLANT:-0}.3", 0, "no", "no gain"),
        ("echo $$; [ -z \"$PLANT\" ] || echo more", 4, "cannot tell", "disqualified"),
        // A clock that changes all outputs disqualifies none.
        (&*format!("{counted}; echo line$((n / 5)); sleep ${{PLANT:-0}}.3"), 0, "no", "no gain"),
        ("[ -z \"$PLANT\" ] || echo 'error: lost' >&2", 4, "cannot tell", "disqualified"),
        ("[ -z \"$PLANT\" ] || exit 3", 4, "cannot tell", "disqualified"),
        // Settings that do not arrive where the work is done.
        (&*format!("exec env -i sh -c '{busy}'"), 4, "cannot tell", ""),
        (&*format!("exec env -u PLANT sh -c '{busy}'"), 4, "cannot tell", "disqualified"),
        (&*format!("exec env PLANT=2 sh -c '{busy}'"), 4, "cannot tell", "disqualified"),
    ] {
        for file in [&count, &once] {
            let _ = fs::remove_file(file);
        }
        let (found, record) = advised(&PLANT, line);
        assert_eq!(found.status, Some(status), "{line}: {found:#?}");
        let record = record.expect("a record");
        let (word, was) = word(&record);
        assert_eq!((word.as_str(), was.as_str()), (answer, fate), "{line}: {found:#?}");
    }
}

/// A program that computes has a low bound: *no* before any race. The bound says nothing of a setting of the user's own, of
/// a figure, or of a program on another C library.
#[test]
fn what_is_not_counted_is_not_bounded() {
    let folder = Folder::new();
    let text = "#include <stdio.h>\nint main(void) { volatile unsigned long n = 100000000; \
                while (--n) ; puts(\"rate 5\"); return 0; }";
    let computes = compiled(text, &folder, "computes");
    let fixed = folder.path("fixed");
    said(std::process::Command::new("cc").args(["-static", "-o", &fixed, &folder.path("p.c")]))
        .with(0);
    for (options, program, is_bounded) in [
        (&[][..], &computes, true),
        (&["--also=PLANT=1"], &computes, false),
        (&["--figure=rate ([0-9]+)"], &computes, false),
        (&["--load=true", "--ready=true"], &computes, false),
        (&[], &fixed, false),
    ] {
        let (found, record) = on(&[options, &["--budget=4s"]].concat(), &[program]);
        let record = record.expect("a record");
        let raced =
            record.header.settings["settings"].as_object().is_some_and(|all| !all.is_empty());
        let is_no = word(&record).0 == "no";
        assert_eq!(is_no && !raced, is_bounded, "{options:?} {program}: {found:#?}");
    }
}

/// Each is another reason for which nothing can be told, with another next step.
#[test]
fn what_cannot_be_told_leads_to_what_would_tell() {
    let folder = Folder::new();
    let once = folder.path("once");
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done";
    for (options, line, next) in [
        (&PLANT[..], format!("mkdir {once} || exit 9"), "--prepare"),
        (
            &["--budget=3s"],
            format!("[ -e {once}.o ] || {{ {busy}; }}; touch {once}.o"),
            "--prepare",
        ),
        (&["--budget=2s", "--also=PLANT=1"], "sleep 0.7".to_owned(), "--budget"),
    ] {
        let (found, record) = advised(options, &line);
        assert_eq!(found.status, Some(4), "{line}: {found:#?}");
        assert_eq!(word(&record.expect("a record")).0, "cannot tell", "{line}: {found:#?}");
        let step = found.out.lines().find(|line| line.starts_with("what next:")).expect("a step");
        has(step, &[next]);
    }
    // With it the runs are alike.
    let prepare = format!("--prepare=rm -f {once}.o");
    let line = format!("[ -e {once}.o ] || sleep 0.1; touch {once}.o");
    let (found, record) = advised(&[&PLANT[..], &[&prepare]].concat(), &line);
    let record = record.expect("a record");
    let times = &row(&record, names::PLAIN).operation_ns;
    assert!(times.iter().all(|time| *time > 0.09e9), "{times:?} {found:#?}");
}

/// A client waits for the process that does its work: the answer names the way to ask for that one.
#[test]
fn a_program_whose_work_is_anothers_is_told_whom_to_ask() {
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
    for (line, is_told) in [("sleep 1", true), (busy, false)] {
        let (found, record) = advised(&PLANT, line);
        let record = record.expect("a record");
        let verdict = &record.end.as_ref().expect("an end").verdicts[0];
        assert_eq!(verdict.contains("--load"), is_told, "{line}: {found:#?}");
    }
}

#[test]
fn a_planted_gain_is_the_answer_in_headline_row_and_record() {
    let folder = Folder::new();
    let file = folder.path("set.sh");
    let write = format!("--write={file}");
    let (found, record) = advised(
        &["--also=PLANT=1", "--budget=20s", "--only=^PLANT", &write],
        "[ -n \"$PLANT\" ] || sleep 0.1",
    );
    let record = record.expect("a record");
    assert_eq!((found.status, word(&record).0.as_str()), (Some(0), "yes"), "{found:#?}");
    let own = row(&record, "PLANT=1");
    let speed = own.ratio.expect("a ratio").inverse();
    assert!(speed.low > 1.02 && own.operation_ns.len() >= 4, "{own:?}");
    let interval = |line: &str| {
        let (_, rest) = line.split_once('(').expect("an interval");
        rest.split(')').next().unwrap_or_default().to_owned()
    };
    let rows =
        found.out.lines().filter(|line| line.starts_with("PLANT=1 ") && line.contains(" .. "));
    let headline = interval(found.out.lines().next().expect("a line"));
    assert!(rows.take(1).all(|row| interval(row) == headline), "{found:#?}");
    assert_eq!(record.header.settings[names::RECOMMENDED]["PLANT"].as_str(), Some("1"));
    let keys: BTreeSet<String> = record.header.settings.keys().cloned().collect();
    assert_eq!(keys, documented("docs/advise.md", "| `experiment`"));
    assert!(fs::read_to_string(&file).expect("written").contains("export PLANT=1"));
}

/// A shell sets no variable of that name.
#[test]
fn a_file_that_does_not_set_what_was_raced_is_no_answer() {
    let folder = Folder::new();
    let write = format!("--write={}", folder.path("set.sh"));
    let line = "grep -qz '^A\\.B=' /proc/$$/environ || sleep 0.1";
    let options = ["--also=A.B=1", "--budget=20s", "--only=^A.B", &write];
    let (found, record) = advised(&options, line);
    let record = record.expect("a record");
    assert_eq!((found.status, &*word(&record).0), (Some(4), "cannot tell"), "{found:#?}");
    assert!(row(&record, "A.B=1").ratio.expect("a ratio").high < 0.9, "{found:#?}");
}

#[test]
fn the_callers_own_variable_may_be_what_costs() {
    let mut asked = program();
    asked.env("CACHEWISE_LIBRARY", libraries()).env("MALLOC_TOP_PAD_", "1");
    asked.args(["advise", "--budget=20s", "--only=^without MALLOC_TOP_PAD_", "--", "sh", "-c"]);
    let found = said(asked.arg("[ -z \"$MALLOC_TOP_PAD_\" ] || sleep 0.1")).with(0);
    has(found.out.lines().nth(2).expect("three lines"), &["env -u MALLOC_TOP_PAD_ sh"]);
}

#[test]
fn a_program_that_fails_or_hangs_or_is_not_there_is_told_in_a_line() {
    let begun = Instant::now();
    for (options, line, parts) in [
        (&["--budget=3s"][..], "echo why >&2; exit 3", &["exit status: 3: why", "--load"][..]),
        // The JVM's reason is the last line of its output.
        (&["--budget=3s"], "echo why; echo 'Picked up A: b' >&2; exit 1", &["exit status: 1: why"]),
        (&["--budget=1s"], "sleep 600", &["still running after 1 s"]),
        (&["--budget=300s"], "kill -STOP $$", &["a signal stopped it"]),
        (&["--budget=300s"], "exec yes", &["more than 1 GiB"]),
        (&["--budget=300s"], "truncate -s 1T /proc/self/fd/1", &["more than 1 GiB"]),
        (&["--budget=3s", "--errors=lost"], "echo lost", &["--errors"]),
        (&["--budget=3s", "--compare=/nonexistent/file"], "true", &["--compare /nonexistent/file"]),
        (&["--budget=3s", "--figure=rate ([0-9]+)"], "echo 'rate 1,000,000'", &["--figure"]),
        (
            &["--budget=5s", "--load=exit 3", "--ready=true"],
            "sleep 600",
            &["the load: exit status: 3"],
        ),
        (&["--budget=2s", "--load=true", "--ready=sleep 600"], "sleep 600", &["does not listen"]),
        (&["--prepare=exit 2"], "true", &["--prepare: exit status: 2"]),
    ] {
        let (found, record) = advised(options, line);
        assert_eq!(found.status, Some(1), "{line}: {found:#?}");
        assert!(record.is_none() && found.out.is_empty(), "{found:#?}");
        has(found.err.lines().last().expect("a line"), parts);
    }
    assert!(begun.elapsed() < Duration::from_secs(300), "it was waited for");
    said(program().args(["advise", "--", "/nonexistent/program"])).with(127);
    let (refused, _) = advised(&["--rounds=6", "--only=keep fried"], "true");
    assert_eq!(refused.status, Some(2), "{refused:#?}");
}

#[test]
fn what_a_program_leaves_running_is_ended_and_what_was_there_before_is_not() {
    let folder = Folder::new();
    let file = folder.path("number");
    let is_alive = || {
        let number = fs::read_to_string(&file).expect("its number");
        Path::new("/proc").join(number.trim()).join("exe").exists()
    };
    advised(
        &["--budget=1s"],
        &format!("setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! >{file}"),
    );
    assert!(!is_alive());
    let command = program().get_program().to_string_lossy().into_owned();
    let line = format!(
        "sleep 300 >/dev/null 2>&1 & echo $! >{file}; exec {command} advise --budget=2s -- true"
    );
    let mut shell = std::process::Command::new("bash");
    said(shell.args(["-c", &line]).env("CACHEWISE_LIBRARY", libraries()));
    assert!(is_alive());
    let number = fs::read_to_string(&file).expect("its number").trim().parse().expect("a number");
    let pid = rustix::process::Pid::from_raw(number).expect("a process");
    rustix::process::kill_process(pid, Signal::KILL).expect("ended");
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_control_c_says_what_is_known() {
    for line in ["sleep 600", "sleep 0.1"] {
        let mut command = program();
        command.args(["advise", "--rounds=1000", "--also=A=1", "--", "sh", "-c", line]);
        let mut child = piped(command);
        std::thread::sleep(Duration::from_millis(2500));
        signal(&child, Signal::INT);
        let mut out = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{line}: {out}");
        has(&out, &["gain here:  cannot tell"]);
    }
}

/// Listens on a socket and answers each client; with `PLANT` by errors.
const SERVER: &str = r"
import os, socketserver, sys
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline()
        self.wfile.write(b'ERROR 500\n' if os.environ.get('PLANT') == 'errors' else line)
socketserver.UnixStreamServer(sys.argv[1], Echo).serve_forever()
";
const CLIENT: &str = r"
import socket, sys
for _ in range(20):
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    client.sendall(b'hello\n')
    print(client.recv(100).decode().strip())
print('rate 1.25 MB/s')
";

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_server_is_loaded_and_ended_its_figure_taken_and_its_errors_counted() {
    let folder = Folder::new();
    let [server, client] =
        [("server.py", SERVER), ("client.py", CLIENT)].map(|(name, text)| folder.write(name, text));
    let socket = folder.path("socket");
    let load = format!("python3 {client} {socket}");
    let serve = format!("rm -f {socket}; exec python3 {server} {socket}");
    for (line, setting, status, answer, fate) in [
        (serve.clone(), "PLANT=1", 0, "no", "no gain"),
        (serve.clone(), "PLANT=errors", 4, "cannot tell", "disqualified"),
        // One that a setting keeps from listening is out.
        (
            format!("[ -z \"$PLANT\" ] || exit 3; {serve}"),
            "PLANT=1",
            4,
            "cannot tell",
            "disqualified",
        ),
    ] {
        let also = format!("--also={setting}");
        let options =
            ["--rounds=6", "--only=^PLANT", &also, "--figure=rate ([0-9.]+)", "--load", &load];
        let (found, record) = advised(&options, &line);
        let record = record.expect("a record");
        assert_eq!((found.status, &*word(&record).0), (Some(status), answer), "{found:#?}");
        assert_eq!(record.header.settings["fates"][setting].as_str(), Some(fate), "{found:#?}");
        let rate = 1.0 / row(&record, names::PLAIN).figure(names::JUDGED).expect("a figure");
        assert!((rate / 1.25e6 - 1.0).abs() < 1e-6, "{rate}");
    }
}

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

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_setting_that_gives_memory_back_is_found_and_both_sides_are_said() {
    let folder = Folder::new();
    let keeps = compiled(KEEPS, &folder, "keeps");
    let [html, write] = ["a.html", "advised.conf"].map(|name| folder.path(name));
    let [html_option, write_option] = [format!("--html={html}"), format!("--write={write}")];
    let name = "both thresholds at 128 KiB";
    let only = format!("--only=^{name}$");
    let options =
        ["--goal=memory", "--at-most=100%", "--rounds=6", &only, &html_option, &write_option];
    let (found, record) = on(&options, &[&keeps]);
    let record = record.expect("a record");
    assert_eq!(found.status, Some(0), "{found:#?}");
    let plain = row(&record, names::PLAIN).figure(names::JUDGED).expect("memory");
    assert!((28e6..40e6).contains(&plain), "{plain}");
    let own = row(&record, name);
    assert!(own.ratio.expect("memory").high < 0.2, "{own:?}");
    assert!(own.figure(names::LOSS_HIGH).is_some_and(f64::is_finite), "time beside: {own:?}");
    assert!(record.rows.iter().any(|row| row.cell.state == names::ADVISED_MEMORY));
    let variable = record.header.settings[names::RECOMMENDED]["GLIBC_TUNABLES"].to_string();
    assert!(variable.contains("mmap_threshold=131072:glibc.malloc.trim_threshold=131072"));
    assert!(fs::read_to_string(&write).expect("written").contains("Environment=\"GLIBC_TUNABLES"));
    has(&fs::read_to_string(&html).expect("a page"), &["Memory over time", name]);
}

/// The four numbers come from one run with its loads, whatever is left for a race.
#[test]
fn memory_is_told_by_its_parts_before_any_race() {
    let held = include_str!("../../../../xtask/programs/held/held.c");
    for (mode, word, trimmed) in [("top", "held", 50.0..80.0), ("leak", "leaked", 0.0..200.0)] {
        let folder = Folder::new();
        let program = compiled(held, &folder, "held");
        let load = format!("{program} load {}", folder.path("s"));
        let options =
            ["--goal=memory", "--budget=1s", "--settle=0", "--only=^1 MiB|^both", "--load", &load];
        let server = format!("cd {}; exec ./held {mode} s", folder.path(""));
        let (found, record) = on(&options, &["sh", "-c", &server]);
        assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
        let memory = &record.expect("a record").header.settings["memory"];
        let keys: BTreeSet<String> =
            memory.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
        let mut documented = documented("docs/advise.md", "Of `memory`");
        assert!(documented.remove("memory") && keys == documented, "{memory}");
        let of = |name: &str| memory[name].as_f64().unwrap_or(f64::NAN) / 1048576.0;
        if memory["lives"].as_array().is_some_and(|lives| lives.len() >= 3) {
            assert_eq!(memory["word"], word, "{memory}");
        }
        assert!(trimmed.contains(&of("trimmed")) && of("next_load") > 0.0, "{memory}");
        assert!(of("live") < of("level") && of("level") > 40.0, "{memory}");
    }
}

/// A setting under which the program is killed is out; it takes a control group that can be made here.
#[test]
fn what_a_limit_kills_is_no_answer() {
    let line = "python3 -c 'import os; b = bytearray((200 if os.environ.get(\"PLANT\") else 20) << 20); print(len(b) > 0)'";
    let options = ["--limit=100M", "--rounds=6", "--only=^PLANT", "--also=PLANT=1"];
    let (found, record) = advised(&options, line);
    if found.status == Some(1) && found.err.contains("--limit") {
        eprintln!("no control group can be made here");
        return;
    }
    let record = record.expect("a record");
    assert!(record.notes.iter().any(|note| note.text.contains("PLANT=1: disqualified: killed at")));
    // Where the plain program does not survive, the fastest that does is the answer.
    let (found, record) =
        advised(&options, &line.replace("200 if", "20 if").replace("else 20", "else 200"));
    assert_eq!(found.status, Some(0), "{found:#?}");
    assert_eq!(word(&record.expect("a record")).0, "yes");
    // A limit of the caller's own is told by its size.
    let group = Group::with_limit(100 << 20).expect("as before");
    let mut asked = program();
    hold(&group, &mut asked);
    asked.args(["advise", "--", "sh", "-c", &line.replace("else 20", "else 200")]);
    has(said(&mut asked).with(1).err.lines().last().expect("a line"), &["memory limit", "100 MiB"]);
}

#[test]
fn the_callers_lists_are_extended_and_what_is_printed_was_measured() {
    let folder = Folder::new();
    let (log, json) = (folder.path("log"), folder.path("a.jsonl"));
    let mut asked = program();
    asked.env("CACHEWISE_LIBRARY", libraries());
    asked.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=3");
    asked.args(["advise", "--rounds=6", "--only=^keep freed memory$", "--json", &json]);
    let found = said(asked.args(["--", "sh", "-c", &format!("echo $GLIBC_TUNABLES >>{log}")]));
    assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
    let log = fs::read_to_string(&log).expect("a log");
    let (plain, set): (Vec<&str>, Vec<&str>) =
        log.lines().partition(|line| *line == "glibc.malloc.tcache_count=3");
    assert!(plain.len() >= 7 && set.len() >= 6, "{log}");
    let record = record::read(Path::new(&json)).expect("a record");
    let printed = record.header.settings["settings"]["keep freed memory"].to_string();
    for line in set {
        assert!(line.starts_with("glibc.malloc.tcache_count=3:glibc.malloc.mmap_max=0:"), "{line}");
        assert!(printed.contains(&format!("GLIBC_TUNABLES={line} sh")), "{printed}");
    }
}

/// A shell runs a script without `#!`, and so does advise; what cannot be started is told with the reason.
#[test]
fn programs_start_as_in_a_shell_or_are_told_why_not() {
    let folder = Folder::new();
    let executable = |name: &str, text: &str| {
        let file = folder.write(name, text);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("its owner's");
        file
    };
    let advised =
        |file: &str| said(program().args(["advise", "--budget=1s", "--", file, "an arg"]));
    let last = |said: &Said| said.err.lines().last().expect("a line").to_owned();
    let plain = executable("plain", "[ \"$1\" = 'an arg' ] && echo ran\n");
    assert!(matches!(advised(&plain).status, Some(0 | 4)));
    for (text, why) in [
        ("#!/no/such interpreter -x\n", "its interpreter /no/such: "),
        ("#! /no/such\r\n", "its interpreter /no/such\\r: "),
    ] {
        let file = executable("without", text);
        has(&last(&advised(&file).with(1)), &[&file, why]);
        has(said(asked_beside("exec --").arg(&file)).with(127).line(), &[&file, why]);
    }
    let script = folder.write("job.py", "print(1)\n");
    has(&last(&advised(&script).with(1)), &["not executable"]);
    has(&last(&advised("/usr").with(1)), &["found a directory"]);
    let gone = executable("gone", "#!/bin/sh\nrm -f \"$0\"\n");
    advised(&gone).with(4);
    // Nobody gains anything by a set-user-id bit of their own.
    let copy = folder.path("privileged");
    fs::copy("/bin/true", &copy).expect("copied");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).expect("set");
    assert!(matches!(advised(&copy).status, Some(0 | 4)));
}
