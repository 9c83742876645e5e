//! Leases as clients see them, and clients that try to see more. Clients that die, fork or change their user, and
//! servers in namespaces, are this program again (`child`).

use cachewise_pages::Scrub;
use cachewise_pages::lease::{self, Lease, LeaseError};
use cachewise_scrubd::memory::{Pages, Source};
use cachewise_scrubd::status::{Files, Status};
use cachewise_scrubd::zeroer::Method;
use cachewise_scrubd::{ServeError, Settings, serve, systemd};
use memmap2::MmapMut;
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketType};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const PAGE: usize = 2 * MIB;
/// Nobody's, who may do nothing.
const OTHER: u32 = 65534;

/// A server in this process.
struct Server {
    socket: PathBuf,
    stop: UnixStream,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
    directory: tempfile::TempDir,
}

fn pages() -> Pages {
    if Source::find(Pages::Auto).is_ok() { Pages::Auto } else { Pages::Small }
}

fn settings(socket: &Path, size: usize) -> Settings {
    Settings {
        socket: socket.to_owned(),
        size: size as u64,
        keep: 0,
        segment: Some(PAGE as u64),
        user_most: u64::MAX,
        mode: 0o666,
        group: None,
        pages: pages(),
        method: Method::System,
        scrub: Scrub { cpu_share: 1.0, ..Scrub::default() },
        goes_first: false,
    }
}

fn server(size: usize, change: impl FnOnce(&mut Settings)) -> Server {
    let directory = tempfile::tempdir().expect("a directory");
    // Another user may come in.
    rustix::fs::chmod(directory.path(), Mode::from_raw_mode(0o755)).expect("its own");
    let socket = directory.path().join("socket");
    let mut settings = settings(&socket, size);
    change(&mut settings);
    started(settings, directory)
}

fn started(settings: Settings, directory: tempfile::TempDir) -> Server {
    started_with(settings, directory, systemd::Passed::default())
}

fn started_with(
    settings: Settings,
    directory: tempfile::TempDir,
    passed: systemd::Passed,
) -> Server {
    let (stop, told) = UnixStream::pair().expect("a pair");
    let socket = settings.socket.clone();
    let body = move || serve(settings, passed, told.as_fd(), &mut |_| {});
    let thread = Some(std::thread::spawn(body));
    let server = Server { socket, stop, thread, directory };
    wait_for("the socket", || {
        let ended = server.thread.as_ref().is_some_and(JoinHandle::is_finished);
        assert!(!ended, "the server ended");
        lease::status(&server.socket).is_ok()
    });
    server.wait_until_full();
    server
}

fn wait_for(what: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Server {
    fn status(&self) -> Status {
        let text = lease::status(&self.socket).expect("it is running");
        serde_json::from_str(&text).expect("its own")
    }

    /// Waits until all memory is ready, leased or in use after its lease.
    fn wait_until_full(&self) {
        wait_for("memory", || {
            let status = self.status();
            status.zeroing == 0 && status.untaken == 0
        });
    }

    fn take(&self, bytes: usize) -> Memory {
        Memory::of(Lease::take(&self.socket, bytes).expect("a lease"))
    }

    /// The figures once nothing is leased or being zeroed; they add up.
    fn at_rest(&self) -> Status {
        let mut status = self.status();
        wait_for("rest", || {
            status = self.status();
            status.leased == 0 && status.zeroing == 0
        });
        assert_eq!(status.ready, status.size, "{status:?}");
        assert_eq!(status.given, status.returned, "{status:?}");
        assert_eq!(status.failed, 0, "{status:?}");
        status
    }

    fn stop(&mut self) -> Result<(), ServeError> {
        self.stop.write_all(b"x").expect("it listens");
        self.thread.take().expect("once").join().expect("no panic")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let ended = self.stop();
            assert!(std::thread::panicking() || ended.is_ok(), "{ended:?}");
        }
    }
}

/// A lease and its memory.
struct Memory {
    file: File,
    map: MmapMut,
}

impl Memory {
    fn of(lease: Lease) -> Memory {
        let bytes = lease.bytes();
        let file = File::from(lease.into_file());
        assert_eq!(file.metadata().expect("a file").len(), bytes as u64);
        // SAFETY: the file is this lease's, and nobody makes it shorter meanwhile.
        let map = unsafe { MmapMut::map_mut(&file) }.expect("memory");
        let memory = Memory { file, map };
        assert!(memory.is_zero(), "a stale byte");
        memory
    }

    fn is_zero(&self) -> bool {
        // One comparison of the C library's: a test is not optimised.
        self.map[0] == 0 && self.map[1..] == self.map[..self.map.len() - 1]
    }
}

/// This program as a client: what it does, and the words for it.
fn child(what: &str, words: &[&str]) -> Command {
    under(&[], what, words)
}

/// The same, started by another program.
fn under(other: &[&str], what: &str, words: &[&str]) -> Command {
    let own = std::env::current_exe().expect("a path");
    let mut command = match other {
        [] => Command::new(own),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(own);
            command
        }
    };
    command.args(["as_a_client", "--exact", "--nocapture", "--quiet"]);
    let words = [&[what], words].concat().join(" ");
    command.env("CACHEWISE_TEST_CHILD", words).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Waits until a client says that it is ready.
fn ready(child: &mut Child) {
    let out = child.stdout.as_mut().expect("a pipe");
    let mut said = String::new();
    while !said.contains("ready") {
        let mut byte = [0];
        assert_ne!(out.read(&mut byte).expect("a pipe"), 0, "it ended: {said}");
        said.push(char::from(byte[0]));
    }
}

fn say_ready_and_wait() {
    println!("ready");
    // Until the other end is closed or killed.
    let _ = std::io::stdin().read(&mut [0]);
}

fn die() -> ! {
    // SAFETY: ends this process.
    unsafe { libc::raise(libc::SIGKILL) };
    unreachable!("it was killed")
}

fn become_other() {
    become_user(OTHER);
}

fn become_user(user: u32) {
    // SAFETY: numbers alone.
    let groups = unsafe { libc::setgroups(0, std::ptr::null()) };
    // SAFETY: numbers alone.
    let group = unsafe { libc::setgid(user) };
    // SAFETY: numbers alone.
    let user = unsafe { libc::setuid(user) };
    assert_eq!((groups, group, user), (0, 0, 0));
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn reopened(file: &impl rustix::fd::AsFd) -> rustix::io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    rustix::fs::open(path, OFlags::RDWR, Mode::empty())
}

/// Does what a child is told; nothing in a run of the tests.
#[test]
fn as_a_client() {
    let Ok(words) = std::env::var("CACHEWISE_TEST_CHILD") else { return };
    let words: Vec<_> = words.split(' ').collect();
    let socket = Path::new(words[1]);
    let take = |bytes| Memory::of(Lease::take(socket, bytes).expect("a lease"));
    match words[0] {
        "dies" => {
            let step: u32 = words[2].parse().expect("a number");
            let at = |now| {
                if now == step {
                    die();
                }
            };
            let family = AddressFamily::UNIX;
            let connection = rustix::net::socket(family, SocketType::SEQPACKET, None);
            let connection = connection.expect("a socket");
            at(0);
            let address = SocketAddrUnix::new(socket).expect("a path");
            rustix::net::connect(&connection, &address).expect("a server");
            at(1);
            rustix::net::send(&connection, b"lease 2097152", SendFlags::NOSIGNAL).expect("sent");
            at(2);
            // Answered, and not received.
            std::thread::sleep(Duration::from_millis(20));
            at(3);
            let mut memory = take(PAGE);
            at(4);
            memory.map.fill(0xA5);
            at(5);
            let Memory { file, map } = memory;
            drop(file);
            at(6);
            drop(map);
            at(7);
        }
        "forks" => {
            let mut memory = take(PAGE);
            memory.map.fill(0xA5);
            drop(memory.file);
            // SAFETY: the child makes system calls only.
            if unsafe { libc::fork() } == 0 {
                // Only the mapping is left, until standard input ends.
                // SAFETY: its own memory.
                unsafe { libc::read(0, memory.map.as_mut_ptr().cast(), 1) };
                // SAFETY: ends this process at once.
                unsafe { libc::_exit(0) };
            }
            println!("ready");
            // The parent ends; the child has its pipes.
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(0) };
        }
        "passes" => {
            let memory = take(PAGE);
            let (one, _other) = UnixStream::pair().expect("a pair");
            let files = [memory.file.as_fd()];
            let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
            control.push(rustix::net::SendAncillaryMessage::ScmRights(&files));
            let parts = [std::io::IoSlice::new(b"x")];
            rustix::net::sendmsg(&one, &parts, &mut control, SendFlags::empty()).expect("sent");
            drop(memory);
            // The only descriptor is in a message that nobody has received.
            say_ready_and_wait();
        }
        "other" => {
            become_other();
            let lease = Lease::take(socket, PAGE).expect("a lease");
            assert_eq!(reopened(&lease).expect_err("opened again"), rustix::io::Errno::ACCESS);
            drop(Memory::of(lease));
            let lease = Lease::take_path(socket, PAGE).expect("a lease");
            let again = reopened(&lease).expect("by its own user");
            let name = format!("/proc/self/fd/{}", again.as_raw_fd());
            // A name for the file that nobody counts.
            let name = rustix::fs::open(name, OFlags::PATH, Mode::empty()).expect("a name");
            let mut memory = Memory::of(lease);
            memory.map.fill(0xA5);
            drop(memory);
            println!("ready: the second description is left");
            let _ = std::io::stdin().read(&mut [0]);
            drop(again);
            let mut byte = [0];
            // The file of the name is not leased again: its memory is gone.
            wait_for("the end", || match reopened(&name) {
                Ok(file) => {
                    rustix::io::pread(&file, &mut byte, 0).expect("readable");
                    byte[0] == 0
                }
                Err(errno) => errno == rustix::io::Errno::ACCESS,
            });
            let Err(LeaseError::Refused(why)) = Lease::take(socket, 3 * PAGE) else {
                panic!("more than a user may have")
            };
            assert!(why.contains("a user"), "{why}");
        }
        "shut-out" => {
            become_other();
            let Err(LeaseError::Unreachable { source, .. }) = Lease::take(socket, PAGE) else {
                panic!("let in")
            };
            assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
        }
        "namespace" => {
            become_other();
            match Source::find(Pages::Tmpfs) {
                Ok(source) => println!("ready: {}", source.name()),
                Err(tried) => println!("ready: none, {tried:?}"),
            }
        }
        "few-files" => {
            let limit = rustix::process::Rlimit { current: Some(64), maximum: Some(64) };
            let files = rustix::process::Resource::Nofile;
            rustix::process::setrlimit(files, limit).expect("less than before");
            let (_stop, told) = UnixStream::pair().expect("a pair");
            let settings = settings(socket, 8 * PAGE);
            let passed = systemd::Passed::default();
            let ended = serve(settings, passed, told.as_fd(), &mut |_| {}).expect_err("refused");
            assert!(ended.to_string().contains("LimitNOFILE"), "{ended}");
        }
        "short-of-memory" => {
            let (_stop, told) = UnixStream::pair().expect("a pair");
            let settings = Settings { pages: Pages::Small, ..settings(socket, 4 * PAGE) };
            let body =
                move || serve(settings, systemd::Passed::default(), told.as_fd(), &mut |_| {});
            let _server = std::thread::spawn(body);
            wait_for("the memory", || {
                let status = lease::status(socket).ok();
                let status = status.and_then(|text| serde_json::from_str::<Status>(&text).ok());
                status.is_some_and(|status| status.ready == status.size)
            });
            let memory = rustix::process::Resource::As;
            let before = rustix::process::getrlimit(memory);
            let pages = std::fs::read_to_string("/proc/self/statm").expect("figures");
            let pages: u64 = pages.split(' ').next().expect("the first").parse().expect("a number");
            let limit = rustix::process::Rlimit {
                current: Some(pages * rustix::param::page_size() as u64 + MIB as u64),
                ..before
            };
            rustix::process::setrlimit(memory, limit).expect("less than before");
            say_ready_and_wait();
            rustix::process::setrlimit(memory, before).expect("as before");
            say_ready_and_wait();
        }
        // A server until its standard input ends: its method's name, bytes, and what a client of it may have.
        "serves" => {
            let (mut stop, told) = UnixStream::pair().expect("a pair");
            let size: usize = words[3].parse().expect("a number");
            let mut settings = settings(socket, size);
            settings.method = if words[2] == "around" { Method::Around } else { Method::System };
            settings.user_most = words[4].parse().expect("a number");
            let passed = systemd::Passed::default();
            let body = move || serve(settings, passed, told.as_fd(), &mut |_| {});
            let server = std::thread::spawn(body);
            wait_for("the socket", || {
                assert!(!server.is_finished(), "the server ended");
                lease::status(socket).is_ok()
            });
            say_ready_and_wait();
            stop.write_all(b"x").expect("it listens");
            server.join().expect("no panic").expect("no error");
        }
        // Keeps a page of a lease in a pipe, and looks later what is in it.
        "keeps-a-page" => {
            become_user(words[2].parse().expect("a number"));
            let memory = take(PAGE);
            let (reads, writes) = rustix::pipe::pipe().expect("a pipe");
            splice(&memory.file, &writes, 4096);
            drop(memory);
            say_ready_and_wait();
            let mut page = [0; 4096];
            rustix::io::read(&reads, &mut page).expect("a page");
            assert!(!page.contains(&0x5A), "a byte of the next client");
        }
        "writes" => {
            become_user(words[2].parse().expect("a number"));
            let mut memory = take(PAGE);
            memory.map.fill(0x5A);
            say_ready_and_wait();
        }
        // A name of the file, and memory beyond its end.
        "beyond-the-end" => {
            become_other();
            let memory = take(PAGE);
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(&memory.file, flags, 0, PAGE as u64).expect("a hole");
            let beyond = FallocateFlags::KEEP_SIZE;
            let _ = rustix::fs::fallocate(&memory.file, beyond, PAGE as u64, PAGE as u64);
            let name = format!("/proc/self/fd/{}", memory.file.as_raw_fd());
            let name = rustix::fs::open(name, OFlags::PATH, Mode::empty()).expect("a name");
            drop(memory);
            wait_for("its memory", || rustix::fs::fstat(&name).expect("a file").st_blocks == 0);
        }
        "loses-its-helper" => {
            become_other();
            let Ok(source @ Source::UserTmpfs(_)) = Source::find(Pages::Tmpfs) else {
                println!("ready: none");
                return;
            };
            let children = std::fs::read_to_string("/proc/thread-self/children").expect("children");
            let helper: i32 = children.trim().parse().expect("one child");
            drop(source.file(PAGE as u64).expect("a file"));
            // SAFETY: numbers alone.
            assert_eq!(unsafe { libc::kill(helper, libc::SIGKILL) }, 0);
            drop(source.file(PAGE as u64).expect("a file of another helper"));
            println!("ready");
        }
        "random" => {
            let mut random = fastrand::Rng::with_seed(words[2].parse().expect("a number"));
            let mut held = Vec::new();
            for _ in 0..random.u32(1..400) {
                let bytes = PAGE * if random.u8(..) < 32 { 2 } else { 1 };
                match Lease::take(socket, bytes) {
                    Ok(lease) => held.push(Memory::of(lease)),
                    Err(LeaseError::Refused(_)) => {
                        held.clear();
                        continue;
                    }
                    Err(other) => panic!("{other}"),
                }
                println!("taken");
                if let Some(memory) = held.last_mut() {
                    // A byte in each page would show as well as all of them.
                    let byte = random.u8(1..);
                    memory.map.iter_mut().step_by(4096).for_each(|first| *first = byte);
                }
                if random.u8(..) < 2 {
                    die();
                }
                while held.len() > random.usize(..3) {
                    held.swap_remove(random.usize(..held.len()));
                }
            }
            die();
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_lease_is_zero_and_comes_back_when_its_last_trace_is_gone() {
    let server = server(8 * PAGE, |_| {});
    let status = server.status();
    assert_eq!((status.ready, status.leased), (8 * PAGE as u64, 0));
    if pages() == Pages::Auto {
        assert_eq!(status.small, 0, "{status:?}");
    }
    let mut first = server.take(PAGE);
    let mut second = server.take(3 * PAGE - 5);
    assert_eq!(second.map.len(), 3 * PAGE);
    first.map.fill(1);
    second.map.fill(2);
    let status = server.status();
    assert_eq!((status.leased, status.leases.len()), (4 * PAGE as u64, 2));
    assert_eq!(status.leases[0].process, std::process::id() as i32);
    // The descriptor alone, the mapping alone.
    let Memory { file, map } = first;
    drop(map);
    drop(second.file);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(server.status().leased, 4 * PAGE as u64);
    drop((file, second.map));
    let status = server.at_rest();
    assert_eq!((status.given, status.made), (2, 1));
    // A client that leaves without a word, and then nothing to do.
    let silent = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None);
    let address = SocketAddrUnix::new(&server.socket).expect("a path");
    rustix::net::connect(silent.as_ref().expect("a socket"), &address).expect("a server");
    std::thread::sleep(Duration::from_millis(20));
    drop(silent);
    let turns = server.status().turns;
    std::thread::sleep(Duration::from_millis(300));
    // Its end, and the two questions.
    assert!(server.status().turns - turns < 10, "it does not rest");
}

#[test]
fn a_killed_client_gives_back_whatever_it_was_doing() {
    let server = server(4 * PAGE, |_| {});
    for step in 0..8 {
        let ended = child("dies", &[&server.socket.to_string_lossy(), &step.to_string()]).output();
        assert_eq!(ended.expect("it ran").status.signal(), Some(libc::SIGKILL), "step {step}");
    }
    wait_for("rest", || {
        let status = server.status();
        status.leased == 0 && status.zeroing == 0 && status.ready == status.size
    });
    assert!(server.take(4 * PAGE).is_zero());
}

#[test]
fn a_mapping_in_a_forked_child_and_a_descriptor_in_a_message_are_leases() {
    let server = server(4 * PAGE, |_| {});
    for what in ["forks", "passes"] {
        let mut client = child(what, &[&server.socket.to_string_lossy()]).spawn().expect("it runs");
        ready(&mut client);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(server.status().leased, PAGE as u64, "{what}");
        // All others have none of it.
        let others: Vec<_> = (0..3).map(|_| server.take(PAGE)).collect();
        assert!(matches!(Lease::take(&server.socket, PAGE), Err(LeaseError::Refused(_))));
        drop(others);
        drop(client.stdin.take());
        client.wait().expect("it ended");
        server.at_rest();
    }
}

/// A page that a pipe holds has no descriptor and no mapping: nobody can see it, and zeroing it in place
/// would leave it where the next client writes.
#[test]
fn a_page_kept_in_a_pipe_shows_nothing_of_the_next_lease() {
    let server = server(2 * PAGE, |_| {});
    let mut memory = server.take(PAGE);
    memory.map.fill(0xA5);
    let (reads, writes) = rustix::pipe::pipe().expect("a pipe");
    let mut from = 0;
    let flags = rustix::pipe::SpliceFlags::empty();
    let kept = rustix::pipe::splice(&memory.file, Some(&mut from), &writes, None, 4096, flags);
    assert_eq!(kept, Ok(4096));
    drop(memory);
    let mut next = server.take(PAGE);
    next.map.fill(0x5A);
    let mut page = [0; 4096];
    rustix::io::read(&reads, &mut page).expect("a page");
    assert!(!page.contains(&0x5A), "a byte of the next client");
}

fn splice(file: &File, pipe: &OwnedFd, bytes: usize) {
    let mut from = 0;
    let flags = rustix::pipe::SpliceFlags::empty();
    let kept = rustix::pipe::splice(file, Some(&mut from), pipe, None, bytes, flags);
    assert_eq!(kept, Ok(bytes));
}

#[test]
fn memory_that_a_pipe_keeps_counts_as_its_users_until_it_is_back() {
    let server = server(4 * PAGE, |settings| settings.user_most = 2 * PAGE as u64);
    let mut pipes = Vec::new();
    let taken = || Lease::take(&server.socket, PAGE).map(Memory::of);
    let held = || server.status().held.iter().map(|held| held.bytes).sum::<u64>();
    if !is_root() && pages() == Pages::Auto {
        eprintln!("pages in use after a lease: SKIPPED, only root sees them");
        return;
    }
    for round in 1..=2 {
        let memory = taken().expect("a lease");
        let pipe = rustix::pipe::pipe().expect("a pipe");
        splice(&memory.file, &pipe.1, 1);
        pipes.push(pipe);
        drop(memory);
        wait_for("what a pipe keeps", || held() == round * PAGE as u64);
    }
    server.wait_until_full();
    let status = server.status();
    assert_eq!((status.ready, status.held.len()), (2 * PAGE as u64, 1), "{status:?}");
    assert_eq!(status.held[0].user, Some(rustix::process::geteuid().as_raw()));
    let Err(LeaseError::Refused(why)) = taken() else { panic!("more than a user may have") };
    assert!(why.contains("a user"), "{why}");
    drop(pipes);
    wait_for("the memory", || held() == 0);
    server.wait_until_full();
    assert!(taken().expect("a lease").is_zero());
    server.at_rest();
}

#[test]
fn memory_beyond_the_end_of_a_file_comes_back_too() {
    if !is_root() {
        eprintln!("another user: SKIPPED, only root can become one");
        return;
    }
    let server = server(4 * PAGE, |_| {});
    let ended = child("beyond-the-end", &[&server.socket.to_string_lossy()]).status();
    assert!(ended.expect("it ran").success());
    server.at_rest();
}

/// A server in namespaces of its own; `None` where they cannot be had.
fn server_under(other: &[&str], socket: &Path, method: &str, limit: usize) -> Option<Child> {
    let words = [&*socket.to_string_lossy(), method, &(4 * PAGE).to_string(), &limit.to_string()];
    let possible = Command::new(other[0]).args(&other[1..]).arg("true").status();
    if !is_root() || !possible.is_ok_and(|ended| ended.success()) {
        eprintln!("a server in namespaces: SKIPPED, {other:?} takes root");
        return None;
    }
    let mut server = under(other, "serves", &words).spawn().expect("it runs");
    ready(&mut server);
    rustix::fs::chmod(socket, Mode::from_raw_mode(0o666)).expect("its own");
    Some(server)
}

fn stop(mut server: Child) {
    drop(server.stdin.take());
    assert!(server.wait().expect("it ended").success());
}

fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    rustix::fs::chmod(directory.path(), Mode::from_raw_mode(0o755)).expect("its own");
    directory
}

#[test]
fn a_client_outside_the_servers_pid_namespace_is_served() {
    let directory = open_directory();
    let socket = directory.path().join("socket");
    let other = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let Some(server) = server_under(&other, &socket, "system", usize::MAX) else { return };
    let memory = Memory::of(Lease::take(&socket, PAGE).expect("a lease"));
    let text = lease::status(&socket).expect("it is running");
    let status: Status = serde_json::from_str(&text).expect("its own");
    assert_eq!(status.leases[0].process, 0, "{status:?}");
    assert!(status.text().contains("another namespace"), "{}", status.text());
    drop(memory);
    stop(server);
}

#[test]
fn users_who_look_alike_get_nothing_of_each_other() {
    let directory = open_directory();
    let socket = directory.path().join("socket");
    let other = ["unshare", "--user", "--map-root-user"];
    let Some(server) = server_under(&other, &socket, "around", 2 * PAGE) else { return };
    let shown = socket.to_string_lossy().into_owned();
    let client = |what: &str, user: &str| {
        let mut client = child(what, &[&shown, user]).spawn().expect("it runs");
        ready(&mut client);
        client
    };
    let status = || -> Status {
        serde_json::from_str(&lease::status(&socket).expect("it is running")).expect("its own")
    };
    let keeper = client("keeps-a-page", "1001");
    wait_for("the end of the lease", || status().leased == 0);
    let writers: Vec<_> = (0..2).map(|_| client("writes", "1002")).collect();
    let now = status();
    assert!(now.leases.iter().all(|lease| lease.user.is_none()), "{now:?}");
    // They have one limit between them, and root inside has its own.
    assert!(Lease::take(&socket, PAGE).is_ok());
    let third = child("writes", &[&shown, "1003"]).output().expect("it ran");
    assert!(!third.status.success(), "more than the unknown may have");
    stop(keeper);
    writers.into_iter().for_each(stop);
    stop(server);
}

/// A server keeps no file for another user that a client has had, whatever it is called when it comes back.
#[test]
fn a_file_says_itself_that_a_client_has_had_it() {
    use cachewise_scrubd::memory::mark_given;
    use cachewise_scrubd::store::State;
    let source = Source::find(pages()).expect("pages");
    let make = |given: bool| {
        let file = source.file(PAGE as u64).expect("a file");
        rustix::io::pwrite(&file, &vec![0; PAGE], 0).expect("written");
        if given {
            mark_given(&file, false).expect("marked");
        }
        file
    };
    let name = |id| systemd::Name { id, bytes: PAGE as u64, state: State::Ready };
    let (fresh, given, held) = (make(false), make(true), make(true));
    rustix::io::pwrite(&given, &[0x5A], 0).expect("written");
    rustix::io::pwrite(&held, &[0x5A], 0).expect("written");
    let client = reopened(&held).expect("a client's");
    let stranger = tempfile::tempfile().expect("a file");
    stranger.set_len(PAGE as u64).expect("its length");
    rustix::io::pwrite(&stranger, b"precious", 0).expect("written");
    let copy = stranger.try_clone().expect("a descriptor");
    let files = [(1, fresh), (2, given), (3, held), (4, OwnedFd::from(stranger))];
    let files = files.into_iter().map(|(id, file)| (Some(name(id)), file)).collect();
    let directory = tempfile::tempdir().expect("a directory");
    let settings = settings(&directory.path().join("socket"), 3 * PAGE);
    let passed = systemd::Passed { listeners: Vec::new(), files };
    let server = started_with(settings, directory, passed);
    let status = server.status();
    assert_eq!((status.ready, status.leased), (2 * PAGE as u64, PAGE as u64), "{status:?}");
    assert_eq!(status.leases[0].user, None);
    // Files in use stay as they are; so do files that are no server's.
    let mut byte = [0];
    rustix::io::pread(&client, &mut byte, 0).expect("read");
    assert_eq!(byte[0], 0x5A);
    let mut precious = [0; 8];
    rustix::io::pread(&copy, &mut precious, 0).expect("read");
    assert_eq!(&precious, b"precious");
    drop(client);
    let all = || (0..3).map(|_| server.take(PAGE)).collect::<Vec<_>>();
    wait_for("the memory", || server.status().ready == 3 * PAGE as u64);
    drop(all());
    wait_for("the memory", || server.status().ready == 3 * PAGE as u64);
}

#[test]
fn one_path_has_one_server() {
    let first = server(PAGE, |_| {});
    // Also while clients do not find it yet, or no longer.
    std::fs::remove_file(&first.socket).expect("it was there");
    let (_stop, told) = UnixStream::pair().expect("a pair");
    let passed = systemd::Passed::default();
    let ended = serve(settings(&first.socket, PAGE), passed, told.as_fd(), &mut |_| {});
    let said = ended.expect_err("two servers").to_string();
    assert!(said.contains("a server at work"), "{said}");
}

#[test]
fn a_helper_that_was_ended_is_started_again() {
    if !is_root() {
        eprintln!("another user: SKIPPED, only root can become one");
        return;
    }
    let output = child("loses-its-helper", &["none"]).output().expect("it ran");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn one_request_of_another_size_takes_no_segment_for_good() {
    let server = server(8 * PAGE, |settings| settings.segment = Some(4 * PAGE as u64));
    for bytes in [1, 2 * PAGE, 3 * PAGE] {
        drop(server.take(bytes));
        let status = server.at_rest();
        let files = [Files { bytes: 4 * PAGE as u64, number: 2 }];
        assert_eq!(status.files, files, "{bytes}");
    }
}

#[test]
fn memory_is_taken_again_whatever_the_load() {
    // A load that is always above the limit.
    let server =
        server(2 * PAGE, |settings| settings.scrub = Scrub { load: -1.0, ..Scrub::default() });
    drop(server.take(PAGE));
    server.at_rest();
}

#[test]
fn holes_and_other_lengths_hurt_nobody_else() {
    let server = server(4 * PAGE, |_| {});
    let other = server.take(PAGE);
    let memory = server.take(2 * PAGE);
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&memory.file, flags, 0, PAGE as u64).expect("a hole");
    let (file, map) = (memory.file, memory.map);
    drop(map);
    // More than it is: the file system is full, or a seal holds.
    let longer = file.set_len(64 * PAGE as u64).and_then(|()| {
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 64 * PAGE as u64)?;
        Ok(())
    });
    assert!(longer.is_err());
    let _ = file.set_len(4096);
    drop(file);
    let all: Vec<_> = (0..3).map(|_| server.take(PAGE)).collect();
    assert!(all.iter().chain([&other]).all(Memory::is_zero));
    drop((all, other));
    server.at_rest();
}

#[test]
fn half_requests_and_silent_clients_stop_nobody() {
    let server = server(2 * PAGE, |_| {});
    let connect = || {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None);
        let socket = socket.expect("a socket");
        let address = SocketAddrUnix::new(&server.socket).expect("a path");
        rustix::net::connect(&socket, &address).map(|()| socket)
    };
    let answer = |request: &[u8]| {
        let socket = connect().expect("a server");
        rustix::net::send(&socket, request, SendFlags::NOSIGNAL).expect("sent");
        let mut text = [0; 256];
        let read = rustix::net::recv(&socket, &mut text, rustix::net::RecvFlags::empty());
        String::from_utf8_lossy(&text[..read.expect("an answer").1]).into_owned()
    };
    let long = [b'9'; 4000];
    for request in [
        &b"lea"[..],
        b"lease",
        b"lease 0",
        b"lease -1",
        b"lease 1 x",
        b"lease 1 path 2",
        b"\xFF",
        &long,
    ] {
        assert!(answer(request).starts_with("refused found another request"), "{request:?}");
    }
    let too_much = b"lease 18446744073709551615";
    assert!(answer(too_much).starts_with("refused found"));
    assert!(answer(b"lease 99999999999").contains("accepted at most"));
    // As many as there may be, of which none says anything.
    let silent: Vec<_> = (0..300).map_while(|_| connect().ok()).collect();
    assert!(silent.len() >= 256);
    wait_for("a turn", || Lease::take(&server.socket, PAGE).is_ok());
    drop(silent);
    let memory = server.take(2 * PAGE);
    let Err(LeaseError::Refused(why)) = Lease::take(&server.socket, PAGE) else { panic!("given") };
    assert!(why.contains("not leased are"), "{why}");
    drop(memory);
}

#[test]
fn another_user_has_no_second_way_in() {
    if !is_root() {
        eprintln!("another user: SKIPPED, only root can become one");
        return;
    }
    let mut limited = server(8 * PAGE, |settings| settings.user_most = 2 * PAGE as u64);
    // The test's own program must be one that everybody can read.
    let mut client = child("other", &[&limited.socket.to_string_lossy()]).spawn().expect("it runs");
    ready(&mut client);
    std::thread::sleep(Duration::from_millis(100));
    let status = limited.status();
    assert_eq!((status.leased, status.leases[0].user), (PAGE as u64, Some(OTHER)), "{status:?}");
    drop(client.stdin.take());
    assert!(client.wait().expect("it ended").success());
    wait_for("rest", || limited.status().ready == 8 * PAGE as u64);
    limited.stop().expect("no error");
    let closed = server(PAGE, |settings| settings.mode = 0o600);
    let ended = child("shut-out", &[&closed.socket.to_string_lossy()]).status();
    assert!(ended.expect("it ran").success());
}

#[test]
fn a_server_without_memory_refuses_and_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("socket");
    let mut server =
        child("short-of-memory", &[&socket.to_string_lossy()]).spawn().expect("it runs");
    ready(&mut server);
    let Err(LeaseError::Refused(why)) = Lease::take(&socket, 3 * PAGE) else {
        panic!("there was no memory for it")
    };
    assert!(why.contains("no memory was to be had") && !why.contains('\n'), "{why}");
    // Memory that is there already is leased all the same.
    drop(Memory::of(Lease::take(&socket, PAGE).expect("it is there")));
    server.stdin.as_mut().expect("a pipe").write_all(b"x").expect("it reads");
    ready(&mut server);
    drop(Memory::of(Lease::take(&socket, 3 * PAGE).expect("there is memory again")));
    drop(server.stdin.take());
    assert!(server.wait().expect("it ended").success());
}

/// A file system in which nothing more can be made, mounted nowhere.
fn full() -> rustix::io::Result<OwnedFd> {
    use rustix::mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
        fsopen,
    };
    let system = fsopen(c"tmpfs", FsOpenFlags::empty())?;
    // Its own folder is the only one.
    fsconfig_set_string(&system, c"nr_inodes", c"1")?;
    fsconfig_create(&system)?;
    fsmount(&system, FsMountFlags::empty(), MountAttrFlags::empty())
}

#[test]
fn a_full_file_system_is_said_in_one_line() {
    let Ok(full) = full() else {
        eprintln!("a full file system: SKIPPED, making one takes CAP_SYS_ADMIN");
        return;
    };
    let socket = PathBuf::from(format!("/proc/self/fd/{}/socket", full.as_raw_fd()));
    let (_stop, told) = UnixStream::pair().expect("a pair");
    let passed = systemd::Passed::default();
    let ended = serve(settings(&socket, PAGE), passed, told.as_fd(), &mut |_| {});
    let said = ended.expect_err("no room for a socket").to_string();
    assert!(said.contains("No space left") && !said.contains('\n'), "{said}");
}

#[test]
fn huge_pages_without_root_come_from_a_namespace_or_not_at_all() {
    if !is_root() {
        eprintln!("another user: SKIPPED, only root can become one");
        return;
    }
    let output = child("namespace", &["none"]).output().expect("it ran");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("tmpfs in a user namespace") || said.contains("ready: none, "), "{said}");
}

#[test]
fn in_place_pages_stay_with_their_user() {
    let server = server(2 * PAGE, |settings| settings.method = Method::Around);
    for round in 0..4 {
        let mut memory = server.take(PAGE);
        memory.map.fill(round + 1);
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&memory.file, flags, 0, 8192).expect("a hole");
    }
    let status = server.at_rest();
    assert!(status.engine.contains("in place"), "{status:?}");
    assert!(status.zeroed >= 3 * PAGE as u64, "{status:?}");
}

#[test]
fn leases_outlive_the_server() {
    let mut first = server(2 * PAGE, |_| {});
    let mut memory = first.take(PAGE);
    memory.map.fill(7);
    first.stop().expect("no error");
    assert!(!first.socket.exists());
    memory.map[5] = 8;
    let Err(LeaseError::Unreachable { .. }) = Lease::take(&first.socket, PAGE) else {
        panic!("nobody is there")
    };
    let directory = std::mem::replace(&mut first.directory, tempfile::tempdir().expect("another"));
    let second = started(settings(&first.socket, 2 * PAGE), directory);
    let whole = second.take(2 * PAGE);
    assert!(whole.is_zero() && memory.map[5] == 8 && memory.map[6] == 7);
}

#[test]
fn what_cannot_work_is_said_in_one_line() {
    let busy = server(PAGE, |_| {});
    let missing = busy.directory.path().join("missing/socket");
    let file = busy.directory.path().join("file");
    std::fs::write(&file, "").expect("written");
    let stale = busy.directory.path().join("stale");
    let refused = |settings: Settings, part: &str| {
        let (_stop, told) = UnixStream::pair().expect("a pair");
        let ended = serve(settings, systemd::Passed::default(), told.as_fd(), &mut |_| {});
        let said = ended.expect_err("refused").to_string();
        assert!(said.contains(part) && !said.contains('\n'), "{said}");
    };
    refused(settings(&busy.socket, PAGE), "a server at work");
    refused(settings(&missing, PAGE), "there is no directory");
    refused(settings(&file, PAGE), "found another file");
    refused(settings(&stale, 4096), "accepted 2 MiB and more");
    refused(settings(&stale, 1 << 50), "the memory there is here");
    let long = busy.directory.path().join("x".repeat(120));
    refused(settings(&long, PAGE), "xxx");
    let larger = Settings { segment: Some(2 * PAGE as u64), ..settings(&stale, PAGE) };
    refused(larger, "--segment");
    // A socket that a dead server left is no server.
    let dead = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("one");
    rustix::net::bind(&dead, &SocketAddrUnix::new(&stale).expect("a path")).expect("bound");
    drop(dead);
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(started(settings(&stale, PAGE), directory).status().ready, PAGE as u64);
    let few = busy.directory.path().join("few");
    let ended = child("few-files", &[&few.to_string_lossy()]).status();
    assert!(ended.expect("it ran").success());
}

/// Pages of `vm.nr_hugepages`, as many as there were when it is dropped.
struct Reserved(String);

impl Reserved {
    const PATH: &str = "/proc/sys/vm/nr_hugepages";

    fn new(more: u64) -> Option<Reserved> {
        let before = std::fs::read_to_string(Reserved::PATH).ok()?;
        let number: u64 = before.trim().parse().ok()?;
        std::fs::write(Reserved::PATH, (number + more).to_string()).ok()?;
        let reserved = Reserved(before);
        let now = std::fs::read_to_string(Reserved::PATH).ok()?;
        (now.trim().parse() == Ok(number + more)).then_some(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let _ = std::fs::write(Reserved::PATH, &self.0);
    }
}

#[test]
fn explicit_huge_pages_and_small_ones_are_leased_too() {
    let kinds = [(Pages::Small, None), (Pages::Hugetlb, Reserved::new(8))];
    for (pages, reserved) in kinds {
        if pages == Pages::Hugetlb && reserved.is_none() {
            eprintln!("explicit huge pages: SKIPPED, none can be reserved");
            continue;
        }
        let server = server(4 * PAGE, |settings| settings.pages = pages);
        for _ in 0..3 {
            let mut memory = server.take(2 * PAGE);
            memory.map.fill(3);
            // Sealed.
            assert!(memory.file.set_len(PAGE as u64).is_err());
            assert!(memory.file.set_len(8 * PAGE as u64).is_err());
        }
        let status = server.at_rest();
        assert_eq!(status.small == 0, pages == Pages::Hugetlb, "{status:?}");
    }
}

/// Clients that come, take, write and die as a seed says; all bytes of all leases are read.
#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn thousands_of_leases_by_clients_that_die() {
    let thorough = std::env::var("CACHEWISE_TEST_EFFORT").is_ok_and(|effort| effort == "thorough");
    let most = if thorough { 10_000 } else { 1_000 };
    let server = server(64 * PAGE, |_| {});
    let taken = std::sync::atomic::AtomicU32::new(0);
    let seeds = std::sync::atomic::AtomicU32::new(0);
    let order = std::sync::atomic::Ordering::Relaxed;
    let socket = server.socket.to_string_lossy().into_owned();
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                while taken.load(order) < most {
                    let seed = seeds.fetch_add(1, order).to_string();
                    let ended = child("random", &[&socket, &seed]).output().expect("it ran");
                    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
                    assert_eq!(ended.status.signal(), Some(libc::SIGKILL), "seed {seed}: {said}");
                    taken.fetch_add(said.matches("taken").count() as u32, order);
                }
            });
        }
    });
    let status = server.at_rest();
    assert!(status.given >= u64::from(most), "{status:?}");
}

#[test]
fn a_pool_takes_its_memory_from_a_lease_or_has_its_own() {
    use cachewise_pages::{Note, Pool, PoolError};
    let server = server(8 * PAGE, |_| {});
    let pool = |socket: &Path| {
        // Dirty memory stays so until the test has it zeroed.
        let scrub = cachewise_pages::Scrub { enabled: false, ..Default::default() };
        let builder = Pool::builder().capacity(4 * PAGE).max_order(9).scrub(scrub);
        builder.leased(socket).build().expect("a pool")
    };
    let leased = pool(&server.socket);
    assert!(leased.notes().is_empty(), "{:?}", leased.notes());
    assert_eq!(server.status().leased, 4 * PAGE as u64);
    assert_eq!(leased.resident().expect("it can be asked"), 4 * PAGE);
    let blocks: Vec<_> = (0..4).map(|_| leased.zalloc(9).expect("a block")).collect();
    assert!(blocks.iter().all(|block| block[0] == 0 && block[1..] == block[..PAGE - 1]));
    assert!(matches!(leased.zalloc(0), Err(PoolError::Exhausted { .. })));
    for block in blocks {
        block.into_dirty().fill(9);
    }
    assert_eq!(leased.trim().expect("nothing to do"), 0);
    assert_eq!(leased.scrub_now(usize::MAX).expect("it zeroes"), 4 * PAGE);
    assert!(leased.zalloc(9).expect("a block").iter().all(|byte| *byte == 0));
    let mut block = leased.zalloc(9).expect("a block").into_dirty();
    block.fill(7);
    // SAFETY: the child uses its copy of the pool, which is made for one, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let copied = block.iter().all(|byte| *byte == 7);
        block.fill(8);
        let works = leased.zalloc(9).is_ok_and(|block| block.iter().all(|byte| *byte == 0));
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(i32::from(!(copied && works))) };
    }
    let mut status = 1;
    // SAFETY: our child, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child has a copy");
    assert!(block.iter().all(|byte| *byte == 7), "and nothing but a copy");
    drop(block);
    drop(leased);
    server.at_rest();
    let own = pool(&server.socket.with_extension("none"));
    let notes = own.notes();
    assert!(matches!(&notes[..], [Note::NoLease(why)] if why.contains("scrubd")), "{notes:?}");
    assert!(own.zalloc(9).expect("a block").iter().all(|byte| *byte == 0));
}
