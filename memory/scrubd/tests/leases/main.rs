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

mod returned;
mod serving;
mod users;

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
    command.args(["as_a_client", "--exact", "--include-ignored", "--nocapture", "--quiet"]);
    let words = [&[what], words].concat().join(" ");
    command.env("CACHEWISE_TEST_CHILD", words).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Status of a client that did what it was told to: not that of a run of the tests in which it is one of them.
const DID: i32 = 42;

fn did(status: std::process::ExitStatus) -> bool {
    status.code() == Some(DID)
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

/// Does what a child is told.
#[test]
#[ignore = "a child: other tests start it"]
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
                std::process::exit(DID)
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
    std::process::exit(DID)
}

fn splice(file: &File, pipe: &OwnedFd, bytes: usize) {
    let mut from = 0;
    let flags = rustix::pipe::SpliceFlags::empty();
    let kept = rustix::pipe::splice(file, Some(&mut from), pipe, None, bytes, flags);
    assert_eq!(kept, Ok(bytes));
}
