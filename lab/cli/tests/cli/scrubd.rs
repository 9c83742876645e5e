//! The server as users start and stop it, programs and other users on a lease, and neighbours that need its memory.

use crate::support::{Folder, asked, piped, program, refused, said, signal};
use crate::surroundings::{ANSWER, IF_EQUAL, LOAD, error, filtered, step};
use cachewise_host::Group;
use rustix::process::Signal;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn wait_for(what: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A server of 8 MiB, or of what `words` say, that is ended with this value.
struct Server {
    child: Child,
    socket: PathBuf,
    _folder: Folder,
}

/// Huge pages where there are any.
fn pages() -> &'static str {
    use cachewise_scrubd::memory::{Pages, Source};
    if Source::find(Pages::Auto).is_ok() { "auto" } else { "small" }
}

impl Server {
    fn start(words: &str, change: impl FnOnce(&mut Command)) -> Server {
        let folder = Folder::new();
        let socket = PathBuf::from(folder.path("socket"));
        let words = if words.is_empty() { "--size 8M --segment 4M" } else { words };
        let (pages, shown) = (pages(), socket.display());
        let mut command = asked(&format!("scrubd {words} --pages {pages} --socket {shown}"));
        change(&mut command);
        let server = Server { child: piped(command), socket, _folder: folder };
        let socket = &server.socket;
        wait_for("the memory", || socket.exists() && server.bytes("zeroing") == 0);
        server
    }

    fn status(&self) -> serde_json::Value {
        let words = format!("scrubd status --json --socket {}", self.socket.display());
        serde_json::from_str(&said(&mut asked(&words)).with(0).out).expect("JSON")
    }

    fn bytes(&self, name: &str) -> u64 {
        self.status()[name].as_u64().expect(name)
    }

    fn lease(&self, words: &[&str]) -> Command {
        let mut command = asked(&format!("lease --size 3M --socket {} --", self.socket.display()));
        command.args(words);
        command
    }

    fn ends(mut self, by: Signal, status: i32) {
        signal(&self.child, by);
        assert_eq!(self.child.wait().expect("it ended").code(), Some(status));
        assert!(!self.socket.exists());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_serves_programs_until_it_is_told_to_stop() {
    let server = Server::start("", |_| {});
    let script = "wc -c < {path}; tr -d '\\000' < {path} | wc -c; echo used > {path}; exit 7";
    let cases: [(&[&str], i32, &[&str]); 4] = [
        (&["sh", "-c", script], 7, &["4194304", "0"]),
        (&["sh", "-c", script], 7, &["4194304", "0"]),
        (&["true"], 2, &[]),
        (&["no-such-program", "{path}"], 127, &[]),
    ];
    for (words, status, out) in cases {
        let told = said(&mut server.lease(words)).with(status);
        assert_eq!(told.out.split_whitespace().collect::<Vec<_>>(), out, "{words:?}");
    }
    let shown = server.socket.display().to_string();
    refused(&format!("lease --size 9M --socket {shown} -- cat {{path}}"), 1, &["at most"]);
    refused(&format!("scrubd --size 8M --pages small --socket {shown}"), 2, &[&shown]);
    wait_for("rest", || server.bytes("ready") == 8 * MIB);
    let text = said(&mut asked(&format!("scrubd status --socket {shown}"))).with(0).out;
    assert!(text.contains("8 MiB (2 of 4 MiB)"), "{text}");
    server.ends(Signal::TERM, 0);
    refused(&format!("scrubd status --socket {shown}"), 1, &[&shown]);
    Server::start("", |_| {}).ends(Signal::INT, 130);
}

/// A program that is killed leaves nothing behind that has its lease.
#[test]
fn a_lease_ends_with_a_program_that_is_killed() {
    let server = Server::start("", |_| {});
    let mut client = piped(server.lease(&["sh", "-c", "echo used > {path}; read line"]));
    wait_for("the lease", || server.bytes("leased") == 4 * MIB);
    client.kill().expect("it is running");
    client.wait().expect("it ended");
    wait_for("the memory", || server.bytes("ready") == 8 * MIB);
}

#[test]
fn other_users_come_in_by_the_mode_and_open_nothing_again() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("another user: SKIPPED, only root can become one");
        return;
    }
    let as_nobody = |server: &Server, script: &str| {
        let folder = server.socket.parent().expect("a folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder, open).expect("its own");
        let mut command = server.lease(&["sh", "-c", script]);
        command.uid(65534).gid(65534);
        said(&mut command)
    };
    let closed = Server::start("", |_| {});
    as_nobody(&closed, ": {path}").with(1);
    let open = Server::start("--size 8M --segment 4M --user-limit 4M --mode 0666", |_| {});
    // Its own path may be opened again, and another of the same user's may not.
    let inner = format!(
        "cat {{path}} | wc -c; {} lease --size 3M --socket {} -- true '{{pa''th}}'",
        env!("CARGO_BIN_EXE_cachewise"),
        open.socket.display()
    );
    // The inner command asks for more than the user may have.
    let told = as_nobody(&open, &inner).with(1);
    assert_eq!(told.out.trim(), "4194304", "{told:?}");
    let status = open.status();
    assert_eq!((&status["given"], &status["refused"]), (&1.into(), &1.into()), "{status}");
}

/// Bad words, each refused with status 2, and removed ones.
#[test]
fn words_that_mean_nothing_are_refused() {
    for words in [
        "--load nan",
        "--load inf",
        "--load -1",
        "--mode 0",
        "--mode 0444",
        "--mode +600",
        "--mode 888",
        "--cpu-share 0",
        "--size nan",
        "--size +5",
        "--group no-such-group",
    ] {
        let folder = Folder::new();
        let size = if words.starts_with("--size") { "" } else { "--size 8M " };
        let socket = folder.path("socket");
        let words = format!("scrubd {size}{words} --pages small --socket {socket}");
        refused(&words, 2, &["found"]);
        assert!(folder.names().is_empty(), "{words}");
    }
    refused("scrubd status --prometheus", 2, &["--json"]);
    refused("scrubd --size 8M --engine around", 2, &["--engine"]);
}

#[test]
fn a_manager_hears_when_clients_are_served_and_a_deaf_one_stops_nobody() {
    let folder = Folder::new();
    let path = folder.path("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    let server = Server::start("", |command| {
        command.env("NOTIFY_SOCKET", &path);
    });
    let mut text = [0; 64];
    let read = manager.recv(&mut text).expect("a message");
    assert_eq!(&text[..read], b"READY=1\n");
    drop(server);
    // Its queue is full.
    let sender = UnixDatagram::unbound().expect("a socket");
    sender.set_nonblocking(true).expect("its own");
    while sender.send_to(b"x", &path).is_ok() {}
    let deaf = Server::start("", |command| {
        command.env("NOTIFY_SOCKET", &path);
    });
    deaf.ends(Signal::TERM, 0);
}

/// A system that refuses the question whether a lease has ended: asked at the start, and said.
#[test]
fn a_system_on_which_no_end_can_be_seen_is_refused_at_once() {
    let folder = Folder::new();
    let words = format!("scrubd --size 8M --pages small --socket {}", folder.path("socket"));
    let mut command = asked(&words);
    // The low half of the second argument.
    let steps = [
        step(LOAD, 0, 0, 0),
        step(IF_EQUAL, 0, 3, libc::SYS_fcntl as u32),
        step(LOAD, 0, 0, 24),
        step(IF_EQUAL, 0, 1, libc::F_SETLEASE as u32),
        error(libc::EINVAL),
        step(ANSWER, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let told = said(filtered(&mut command, steps)).with(1);
    assert!(told.line().contains("F_SETLEASE") && told.err.lines().count() == 1, "{told:?}");
    assert!(folder.names().is_empty());
}

/// More memory than is there at once, and the end before it is.
#[test]
fn it_serves_and_ends_before_all_memory_is_there() {
    let folder = Folder::new();
    let socket = folder.path("socket");
    let words = format!("scrubd --size 1G --segment 2M --pages {} --socket {socket}", pages());
    let mut server = asked(&words).spawn().expect("it starts");
    wait_for("the socket", || Path::new(&socket).exists());
    signal(&server, Signal::TERM);
    assert_eq!(server.wait().expect("it ended").code(), Some(0));
    assert!(folder.names().is_empty());
}

/// A process namespace, in which a client outside has no number, and a limit of file sizes.
#[test]
fn surroundings_that_hide_or_forbid_something() {
    let folder = Folder::new();
    let words = format!("scrubd --size 8M --pages small --socket {}", folder.path("socket"));
    let mut limited = Command::new("sh");
    let program = program().get_program().to_string_lossy().into_owned();
    limited.args(["-c", &format!("ulimit -f 1000; exec {program} {words}")]);
    assert!(said(&mut limited).with(2).err.contains("LimitFSIZE"));
    let namespace = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
    let possible = Command::new(namespace[0]).args(&namespace[1..]).arg("true").status();
    if !possible.is_ok_and(|ended| ended.success()) {
        eprintln!("process namespaces: SKIPPED, none can be made");
        return;
    }
    let mut command = Command::new(namespace[0]);
    let socket = folder.path("socket");
    command.args(&namespace[1..]).arg(program).args(words.split(' '));
    let server = Server { child: piped(command), socket: socket.into(), _folder: folder };
    wait_for("the memory", || server.socket.exists() && server.bytes("zeroing") == 0);
    let mut client = piped(server.lease(&["sh", "-c", "read line; : {path}"]));
    wait_for("the lease", || server.bytes("leased") != 0);
    assert_eq!(server.status()["leases"][0]["process"], 0);
    drop(client.stdin.take());
    assert!(client.wait().expect("it ended").success());
}

/// Has a command begin in the group.
pub fn hold(group: &Group, command: &mut Command) {
    let file = std::fs::File::options().write(true).open(group.processes()).expect("its processes");
    // SAFETY: a system call alone, which a forked child may make; 0 stands for the process that writes.
    unsafe {
        command.pre_exec(move || rustix::io::write(&file, b"0").map(drop).map_err(Into::into));
    }
}

/// A neighbour in the same control group gets what scrubd holds ready; what is to be kept stays, and more than the group
/// may have is not taken.
#[test]
fn ready_memory_goes_back_before_a_neighbour_is_ended() {
    let Ok(group) = Group::with_limit(256 * MIB) else {
        eprintln!("memory under pressure: SKIPPED, no control group can be made");
        return;
    };
    let words = "--size 192M --segment 32M --keep 32M";
    let server = Server::start(words, |command| hold(&group, command));
    assert_eq!(server.bytes("ready"), 192 * MIB);
    let score = std::fs::read_to_string(format!("/proc/{}/oom_score_adj", server.child.id()));
    assert_eq!(score.expect("its score").trim(), "1000");
    // 160 MiB beside 192 of 256, 10 MiB at a time. `tail` keeps what it reads until the end of a line.
    let mut neighbour = Command::new("sh");
    let script = "for i in $(seq 16); do head -c 10M /dev/zero; sleep 0.05; done | tail | wc -c";
    neighbour.args(["-c", script]);
    hold(&group, &mut neighbour);
    assert_eq!(said(&mut neighbour).with(0).out.trim(), (160 * MIB).to_string());
    let status = server.status();
    let [ready, given, untaken] =
        ["ready", "given_back", "untaken"].map(|name| status[name].as_u64().expect(name));
    assert!(ready >= 32 * MIB && given >= 64 * MIB && untaken >= given, "{status}");
    server.ends(Signal::TERM, 0);
    let mut too_much = asked("scrubd --size 250M --pages small --socket /nonexistent/socket");
    hold(&group, &mut too_much);
    said(&mut too_much).with(2);
}
