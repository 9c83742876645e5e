//! `advise` on programs of every kind; what it finds depends on the machine, and nothing here asks for that.

use crate::exec::asked_beside;
use crate::support::{Folder, Said, has, piped, program, said, signal};
use cachewise_measure::record::{self, names};
use rustix::process::Signal;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// `advise` with these options, on a line of the shell.
fn shell(options: &[&str], line: &str) -> Said {
    let mut asked = program();
    asked.env("CACHEWISE_LIBRARY", crate::exec::libraries());
    said(asked.arg("advise").args(options).args(["--", "sh", "-c", line]))
}

#[test]
fn a_short_program_has_an_answer_in_three_lines() {
    let found = shell(&["--budget=3s"], "echo done");
    assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
    has(&found.out, &["of a run can be gained (page faults", "gain here:", "trust:", "what next:"]);
    has(&found.err, &["plain run"]);
}

#[test]
fn a_program_that_fails_or_hangs_or_is_not_there_is_told_in_a_line() {
    let failed = shell(&["--budget=3s"], "echo why >&2; exit 3").with(1);
    has(
        failed.err.lines().last().expect("a line"),
        &["sh: the plain run: exit status: 3: why", "--load"],
    );
    assert!(failed.out.is_empty(), "{failed:#?}");
    let begun = Instant::now();
    let hung = shell(&["--budget=1s"], "sleep 600").with(1);
    has(hung.err.lines().last().expect("a line"), &["still running after 1 s: ended"]);
    assert!(begun.elapsed() < Duration::from_secs(300), "it was waited for");
    said(program().args(["advise", "--", "/nonexistent/program"])).with(127);
}

/// Mistakes are told before anything is run, and by their own names.
#[test]
fn options_that_are_none_and_inputs_that_are_missing_are_told_at_once() {
    let refused = |words: &[&str]| {
        let found = said(program().args(words));
        assert!(found.out.is_empty() && !found.err.contains("plain run"), "{found:#?}");
        found
    };
    let misspelt = refused(&["advise", "--bugdet", "1min", "--", "true"]).with(2);
    has(
        &misspelt.err,
        &["found \"--bugdet\", which is neither an option nor a program; nearest: --budget"],
    );
    has(&refused(&["exec", "--stat", "--", "true"]).with(2).err, &["nearest: --stats"]);
    has(
        &refused(&["advise", "--at-most=3%", "--", "true"]).with(2).err,
        &["--at-most needs --goal memory or peak"],
    );
    has(&refused(&["advise", "--settle=2", "--", "true"]).with(2).err, &["--settle needs --load"]);
    let missing = refused(&["advise", "--input=/nonexistent/file", "--", "cat"]).with(1);
    has(&missing.err, &["--input /nonexistent/file", "No such file"]);
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a pipe");
    let input = format!("--input={pipe}");
    has(&refused(&["advise", &input, "--", "cat"]).with(1).err, &["found a pipe, accepted a file"]);
    let script = folder.path("job.py");
    fs::write(&script, "print(1)\n").expect("written");
    has(&refused_late(&script).err, &["job.py: it is not executable (chmod +x)"]);
}

/// A program that cannot be started.
fn refused_late(program_file: &str) -> Said {
    said(program().args(["advise", "--budget=2s", "--", program_file])).with(1)
}

#[test]
fn a_load_that_fails_is_not_the_servers_fault() {
    let serve = "import socket, time\ns = socket.create_server(('127.0.0.1', 0))\ntime.sleep(600)";
    let found = said(program().args([
        "advise",
        "--budget=5s",
        "--load",
        "exit 3",
        "--",
        "python3",
        "-c",
        serve,
    ]))
    .with(1);
    has(
        found.err.lines().last().expect("a line"),
        &[
            "the plain run: the load: exit status: 3; accepted: a server that listens, and a load that ends with status 0",
        ],
    );
}

/// Before anything is run: no run ends in a name that tells no form, or in somebody else's file.
#[test]
fn a_file_to_write_has_a_form_and_is_nobody_elses() {
    let folder = Folder::new();
    let [chart, compose] = ["values.yaml", "compose.yaml"].map(|name| folder.path(name));
    let refused = shell(&[&format!("--write={chart}")], "exit 3").with(2);
    has(
        &refused.err,
        &["values.yaml: found a name that tells no form; accepted: *.sh,", "*k8s*.yaml"],
    );
    std::fs::write(&compose, "services:\n  mine: {}\n").expect("written");
    let refused = shell(&[&format!("--write={compose}")], "exit 3").with(2);
    has(
        &refused.err,
        &["compose.yaml: found a file that this command did not write; accepted: a new file"],
    );
    assert_eq!(std::fs::read_to_string(&compose).expect("read"), "services:\n  mine: {}\n");
    // A run's own file is replaced: this one goes as far as the program.
    let own = folder.path("own.sh");
    std::fs::write(&own, "# x: 2 times the speed, by cachewise advise\n").expect("written");
    let failed = shell(&["--budget=3s", &format!("--write={own}")], "exit 3").with(1);
    has(&failed.err, &["the plain run: exit status: 3"]);
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn other_output_each_time_is_not_compared_unless_a_file_is_named() {
    let notes = "differs from run to run";
    let found = shell(&["--budget=2s"], "echo $$");
    has(&found.out, &[notes]);
    let folder = Folder::new();
    let file = folder.path("same");
    let line = format!("echo $$; echo same >{file}");
    let found = shell(&["--budget=2s", &format!("--compare={file}")], &line);
    assert!(!found.out.contains(notes), "{found:#?}");
    let missing = shell(&["--budget=2s", "--compare=/nonexistent/file"], "true").with(1);
    has(missing.err.lines().last().expect("a line"), &["--compare /nonexistent/file"]);
}

#[test]
fn what_a_program_leaves_running_is_ended_and_named() {
    let folder = Folder::new();
    let file = folder.path("number");
    let line = format!("setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! >{file}");
    let found = shell(&["--budget=1s"], &line);
    has(&found.out, &["leaves 1 process running: ended after each run"]);
    let number = std::fs::read_to_string(&file).expect("its number");
    assert!(!Path::new("/proc").join(number.trim()).exists(), "{number}");
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn every_setting_runs_as_often_as_asked_and_all_is_written_down() {
    let folder = Folder::new();
    let [json, html, write] = ["a.jsonl", "a.html", "advised.sh"].map(|name| folder.path(name));
    let files = [format!("--json={json}"), format!("--html={html}"), format!("--write={write}")];
    let options: Vec<&str> = files.iter().map(String::as_str).collect();
    let only = ["--rounds=6", "--only=^keep freed memory$", "--name=zeros"];
    let found = shell(&[&options[..], &only].concat(), "head -c 3000000 /dev/zero | cksum");
    assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
    has(&found.out, &["keep freed memory", "| from the left:", "fresh runs of the best"]);
    let record = record::read(Path::new(&json)).expect("a record");
    assert_eq!((record.experiment(), record.name()), (Some("advise"), Some("zeros")));
    has(&found.out, &["zeros: settings beside the plain program"]);
    let row = record.rows.iter().find(|row| row.candidate == names::PLAIN).expect("a row");
    assert_eq!(row.operation_ns.len(), 6);
    // A shell's memory is its own, not what this command measured with.
    let peak = row.figure(names::PEAK).expect("a peak");
    assert!(peak > 0.0 && peak < 48e6 && row.figure(names::PAGE_FAULTS) > Some(0.0), "{peak}");
    let page = std::fs::read_to_string(&html).expect("a page");
    has(&page, &["keep freed memory", "Time over the plain program"]);
    // The answer is the headline, and the end row was there when the page was drawn.
    let answer = record.end.as_ref().expect("an end").verdicts[0].clone();
    let headline = format!("{}{}", answer[..1].to_uppercase(), &answer[1..]);
    has(&page, &[&format!("<h1>{headline}")]);
    assert!(!page.contains("stopped before its end") && !page.contains("dropped as slow"));
    let first = found.out.lines().next().expect("a line");
    assert!(first.starts_with("gain here:"), "the answer comes first: {first}");
    for verb in ["report", "compare"] {
        let both = [json.as_str(), json.as_str()];
        let files = if verb == "compare" { &both[..] } else { &both[..1] };
        let said = said(program().arg(verb).args(files));
        assert!(matches!(said.status, Some(0 | 4)), "{said:#?}");
    }
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_control_c_says_what_is_known() {
    for (line, known) in
        [("sleep 600", "gain here:  cannot tell"), ("sleep 0.1", "of a run can be gained")]
    {
        let mut command = program();
        command.args(["advise", "--rounds=1000", "--", "sh", "-c", line]);
        let mut child = piped(command);
        std::thread::sleep(Duration::from_millis(2500));
        signal(&child, Signal::INT);
        let mut out = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{line}: {out}");
        has(&out, &[known, "it was stopped"]);
    }
}

/// Listens on a socket and answers each client with what it has sent.
const SERVER: &str = r"
import socketserver, sys
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline())
socketserver.UnixStreamServer(sys.argv[1], Echo).serve_forever()
";
const CLIENT: &str = r"
import socket, sys
for _ in range(20):
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    client.sendall(b'hello\n')
    assert client.recv(100) == b'hello\n'
print('rate 1250 per second')
";

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_server_is_loaded_and_ended_and_its_figure_taken() {
    let folder = Folder::new();
    let [server, client, socket] =
        ["server.py", "client.py", "socket"].map(|name| folder.path(name));
    std::fs::write(&server, SERVER).expect("written");
    std::fs::write(&client, CLIENT).expect("written");
    let json = folder.path("a.jsonl");
    let load = format!("python3 {client} {socket}");
    let line = format!("rm -f {socket}; exec python3 {server} {socket}");
    let options = ["--rounds=6", "--only=^keep freed memory$", "--figure=rate ([0-9]+)"];
    let json_option = format!("--json={json}");
    let found = shell(&[&["--load", &load, &json_option][..], &options].concat(), &line);
    assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
    let record = record::read(Path::new(&json)).expect("a record");
    let row = record.rows.iter().find(|row| row.candidate == names::PLAIN).expect("a row");
    let expected = 1e9 / 1250.0;
    assert!(row.operation_ns.iter().all(|cost| (cost / expected - 1.0).abs() < 1e-3), "{row:?}");
    let refused = shell(&["--load=false", "--budget=60s"], &line).with(1);
    has(refused.err.lines().last().expect("a line"), &["the plain run: the load: exit status: 1"]);
    // One that a setting keeps from listening is out, and the others go on.
    let line = format!("[ -z \"$GLIBC_TUNABLES\" ] || exit 3; {line}");
    let options = ["--rounds=6", "--only=^keep freed memory$", "--load", &load];
    let found = shell(&options, &line);
    has(&found.out, &["disqualified: the server ended before it listened"]);
}

#[test]
fn a_program_of_ones_own_has_no_more_privilege() {
    let folder = Folder::new();
    let copy = folder.path("privileged");
    std::fs::copy("/bin/true", &copy).expect("copied");
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o4755)).expect("set");
    let found = said(program().args(["advise", "--rounds=6", "--", &copy]));
    assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
    // Nobody gains anything by a set-user-id bit of their own.
    assert!(!found.out.contains("more privilege"), "{found:#?}");
}

#[test]
fn a_program_that_cannot_run_twice_is_no_gain_and_no_nothing() {
    let folder = Folder::new();
    let once = folder.path("once");
    let line = format!("mkdir {once} || exit 9; head -c 60000000 /dev/zero | tail -c 1");
    for options in [&["--budget=5s"][..], &["--rounds=6", "--only=^keep freed memory$"]] {
        let found = shell(options, &line).with(4);
        has(
            &found.out,
            &["gain here:  cannot tell", "failed when it was run again: exit status: 9"],
        );
        std::fs::remove_dir(&once).expect("made by the plain run");
    }
}

#[test]
fn children_that_were_there_before_are_left_alone() {
    let folder = Folder::new();
    let file = folder.path("number");
    let program = program().get_program().to_string_lossy().into_owned();
    let line = format!(
        "sleep 300 >/dev/null 2>&1 & echo $! >{file}; exec {program} advise --budget=2s -- true"
    );
    let mut command = std::process::Command::new("bash");
    let found =
        said(command.args(["-c", &line]).env("CACHEWISE_LIBRARY", crate::exec::libraries()));
    assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
    assert!(!found.out.contains("leaves"), "{found:#?}");
    let number = std::fs::read_to_string(&file).expect("its number");
    let place = Path::new("/proc").join(number.trim());
    let name = std::fs::read_to_string(place.join("comm")).expect("it is alive");
    assert_eq!(name.trim(), "sleep");
    let number = number.trim().parse().expect("a number");
    let pid = rustix::process::Pid::from_raw(number).expect("a process");
    rustix::process::kill_process(pid, Signal::KILL).expect("ended");
}

/// The options of a test that runs one setting and looks at its effects alone.
const KEEP: [&str; 2] = ["--rounds=6", "--only=^keep freed memory$"];

#[test]
fn the_callers_lists_are_extended_and_what_is_printed_was_measured() {
    let folder = Folder::new();
    let [log, same, json] = ["log", "same", "a.jsonl"].map(|name| folder.path(name));
    let line = format!("echo $GLIBC_TUNABLES >>{log}; echo same >{same}");
    let [compare, json_option] = [format!("--compare={same}"), format!("--json={json}")];
    let mut asked = program();
    asked.env("CACHEWISE_LIBRARY", crate::exec::libraries());
    asked.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=3");
    asked.arg("advise").args(KEEP).args([&compare, &json_option]);
    let found = said(asked.args(["--", "sh", "-c", &line]));
    assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
    let log = std::fs::read_to_string(&log).expect("a log");
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

#[test]
fn output_that_a_clock_changes_disqualifies_no_setting() {
    let folder = Folder::new();
    let file = folder.path("minute");
    // As a minute that ends while settings are run.
    let line =
        format!("n=$(cat {file} 2>/dev/null || echo 0); echo $((n + 1)) >{file}; echo $((n / 5))");
    let found = shell(&KEEP, &line);
    has(&found.out, &["differs from run to run"]);
    assert!(!found.out.contains("disqualified"), "{found:#?}");
    let changed = shell(&KEEP, "echo \"x$GLIBC_TUNABLES\"");
    has(&changed.out, &["keep freed memory: disqualified: another output"]);
}

#[test]
fn a_setting_without_what_is_measured_or_compared_is_out_alone() {
    let folder = Folder::new();
    let file = folder.path("same");
    let figure = "[ -n \"$GLIBC_TUNABLES\" ] || echo rate 8,25";
    let found = shell(&[&KEEP[..], &["--figure=rate ([0-9.,]+)"]].concat(), figure).with(4);
    has(&found.out, &["keep freed memory: disqualified: --figure: found no number above 0"]);
    let compared = format!("rm -f {file}; [ -n \"$GLIBC_TUNABLES\" ] || echo same >{file}");
    let found = shell(&[&KEEP[..], &[&format!("--compare={file}")]].concat(), &compared).with(4);
    has(&found.out, &["keep freed memory: disqualified: --compare"]);
    // The input is gone after the plain run.
    std::fs::write(&file, "x").expect("written");
    let found =
        shell(&[&KEEP[..], &[&format!("--input={file}")]].concat(), &format!("rm {file}")).with(4);
    has(&found.out, &["failed when it was run again: --input"]);
}

#[test]
fn a_name_that_no_setting_has_is_refused_and_a_question_that_hangs_ends() {
    let found = shell(&["--rounds=6", "--only=keep fried"], "true").with(2);
    let said = found.err.lines().last().expect("a line");
    has(said, &["--only: found \"keep fried\"", "accepted: keep freed memory"]);
    let begun = Instant::now();
    let hung = shell(&["--budget=2s", "--load=true", "--ready=sleep 600"], "sleep 600").with(1);
    has(hung.err.lines().last().expect("a line"), &["the server does not listen"]);
    assert!(begun.elapsed() < Duration::from_secs(120), "it was waited for");
}

fn executable(folder: &Folder, name: &str, text: &str) -> String {
    let file = folder.write(name, text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("its owner's");
    file
}

/// A shell runs a script without `#!`, and so does advise; what cannot be started is told with the reason, and what takes
/// itself away cannot be run twice.
#[test]
fn programs_start_as_in_a_shell_or_are_told_why_not() {
    let folder = Folder::new();
    let advised =
        |file: &str| said(program().args(["advise", "--budget=1s", "--", file, "an arg"]));
    let plain = executable(&folder, "plain", "[ \"$1\" = 'an arg' ] && echo ran\n");
    let found = advised(&plain);
    assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
    let line = "no/such interpreter";
    let last = |said: &Said| said.err.lines().last().expect("a line").to_owned();
    for (text, why) in [
        (&*format!("#!/{line} -x\n"), "its interpreter /no/such: "),
        ("#! /no/such\r\n", "its interpreter /no/such\\r: "),
    ] {
        let file = executable(&folder, "without", text);
        let found = advised(&file).with(1);
        has(&last(&found), &[&file, why, "No such file"]);
        let exec = said(asked_beside("exec --").arg(&file)).with(127);
        has(exec.line(), &[&file, why, "No such file"]);
    }
    has(&last(&advised("/usr").with(1)), &["/usr: found a directory, accepted a program"]);
    let gone = executable(&folder, "gone", "#!/bin/sh\nrm -f \"$0\"\n");
    let found = advised(&gone).with(4);
    has(&found.out, &["cannot tell: ", "No such file", "can be run twice"]);
}

/// Programs that wait for a signal, or print without an end, are not waited for, and are told.
#[test]
fn what_stops_itself_or_never_stops_printing_is_told() {
    for (line, why) in
        [("kill -STOP $$", "a signal stopped it"), ("exec yes", "its output has more than 1 GiB")]
    {
        let found = shell(&["--budget=300s"], line).with(1);
        has(found.err.lines().last().expect("a line"), &["the plain run: ", why, ": ended"]);
    }
}
