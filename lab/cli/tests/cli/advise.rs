//! `advise` on programs of every kind; what it finds depends on the machine, and nothing here asks for that.

use crate::support::{Folder, Said, has, piped, program, said, signal};
use cachewise_measure::record::{self, names};
use rustix::process::Signal;
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
    let only = ["--rounds=6", "--only=^the heap keeps freed blocks$", "--name=zeros"];
    let found = shell(&[&options[..], &only].concat(), "head -c 3000000 /dev/zero | cksum");
    assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
    has(&found.out, &["the heap keeps freed blocks", "| from the left:", "fresh runs of the best"]);
    let record = record::read(Path::new(&json)).expect("a record");
    assert_eq!((record.experiment(), record.name()), (Some("advise"), Some("zeros")));
    has(&found.out, &["zeros: settings beside the plain program"]);
    let row = record.rows.iter().find(|row| row.candidate == names::PLAIN).expect("a row");
    assert_eq!(row.operation_ns.len(), 6);
    // A shell's memory is its own, not what this command measured with.
    let peak = row.figure(names::PEAK).expect("a peak");
    assert!(peak > 0.0 && peak < 48e6 && row.figure(names::PAGE_FAULTS) > Some(0.0), "{peak}");
    let page = std::fs::read_to_string(&html).expect("a page");
    has(&page, &["the heap keeps freed blocks", "Time over the plain program"]);
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
    let options = ["--rounds=6", "--only=^the heap keeps freed blocks$", "--figure=rate ([0-9]+)"];
    let json_option = format!("--json={json}");
    let found = shell(&[&["--load", &load, &json_option][..], &options].concat(), &line);
    assert!(matches!(found.status, Some(0 | 4)), "{found:#?}");
    let record = record::read(Path::new(&json)).expect("a record");
    let row = record.rows.iter().find(|row| row.candidate == names::PLAIN).expect("a row");
    let expected = 1e9 / 1250.0;
    assert!(row.operation_ns.iter().all(|cost| (cost / expected - 1.0).abs() < 1e-3), "{row:?}");
    let refused = shell(&["--load=false", "--budget=60s"], &line).with(1);
    has(refused.err.lines().last().expect("a line"), &["the plain run: exit status: 1"]);
    // One that a setting keeps from listening is out, and the others go on.
    let line = format!("[ -z \"$GLIBC_TUNABLES\" ] || exit 3; {line}");
    let options = ["--rounds=6", "--only=^the heap keeps freed blocks$", "--load", &load];
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
