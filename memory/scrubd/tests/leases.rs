//! Leases as clients see them, clients that try to see more, and settings that cannot work. Clients that are other
//! processes or users are in the command's tests.

use cachewise_pages::Scrub;
use cachewise_pages::lease::{self, Lease, LeaseError};
use cachewise_scrubd::memory::{Pages, Source};
use cachewise_scrubd::status::{Files, Status};
use cachewise_scrubd::{ServeError, Settings, serve};
use memmap2::MmapMut;
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketType};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const PAGE: usize = 2 << 20;

/// A server in this process.
struct Server {
    socket: PathBuf,
    stop: UnixStream,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
    directory: tempfile::TempDir,
}

fn settings(socket: &Path, size: usize) -> Settings {
    Settings {
        socket: socket.to_owned(),
        size: size as u64,
        keep: 0,
        segment: Some(PAGE as u64),
        user_most: u64::MAX,
        mode: 0o600,
        group: None,
        pages: if Source::find(Pages::Auto).is_ok() { Pages::Auto } else { Pages::Small },
        scrub: Scrub { cpu_share: 1.0, ..Scrub::default() },
    }
}

fn server(size: usize, change: impl FnOnce(&mut Settings)) -> Server {
    let directory = tempfile::tempdir().expect("a directory");
    let mut settings = settings(&directory.path().join("socket"), size);
    change(&mut settings);
    started(settings, None, directory)
}

fn started(settings: Settings, passed: Option<OwnedFd>, directory: tempfile::TempDir) -> Server {
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
    server.at_rest();
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

    fn take(&self, bytes: usize) -> Memory {
        Memory::of(Lease::take(&self.socket, bytes).expect("a lease"))
    }

    /// The figures once all is ready; they add up.
    fn at_rest(&self) -> Status {
        wait_for("rest", || self.status().ready == self.status().size);
        let status = self.status();
        let Status { leased, zeroing, untaken, failed, .. } = status;
        assert_eq!((leased, zeroing, untaken, failed), (0, 0, 0, 0), "{status:?}");
        assert_eq!(status.given, status.returned, "{status:?}");
        status
    }

    fn stop(&mut self) -> Result<(), ServeError> {
        self.stop.write_all(b"x").expect("it listens");
        self.thread.take().expect("once").join().expect("no panic")
    }

    fn connect(&self) -> rustix::io::Result<OwnedFd> {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(&self.socket)?)?;
        Ok(socket)
    }

    /// The answer to a request in raw bytes.
    fn answer(&self, request: &[u8]) -> String {
        let socket = self.connect().expect("a server");
        rustix::net::send(&socket, request, SendFlags::NOSIGNAL).expect("sent");
        let mut text = [0; 256];
        let read = rustix::net::recv(&socket, &mut text, rustix::net::RecvFlags::empty());
        String::from_utf8_lossy(&text[..read.expect("an answer").1]).into_owned()
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

#[test]
fn a_lease_is_zero_and_ends_with_its_last_trace() {
    let server = server(8 * PAGE, |_| {});
    let small = if server.status().pages == "small pages" { 16 * MIB } else { 0 };
    assert_eq!(server.status().small, small);
    let mut first = server.take(PAGE);
    let mut second = server.take(3 * PAGE - 5);
    let mut third = server.take(PAGE);
    assert_eq!(second.map.len(), 3 * PAGE);
    for memory in [&mut first, &mut second, &mut third] {
        memory.map.fill(1);
    }
    let status = server.status();
    assert_eq!((status.leased, status.leases.len()), (10 * MIB, 3));
    let own = (rustix::process::getuid().as_raw(), std::process::id() as i32);
    assert_eq!((status.leases[0].user, status.leases[0].process), own);
    // A descriptor alone, a mapping alone, and a descriptor in a message that nobody has received.
    let Memory { file: kept, map } = first;
    drop(map);
    drop(second.file);
    let (one, other) = UnixStream::pair().expect("a pair");
    let files = [third.file.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
    control.push(rustix::net::SendAncillaryMessage::ScmRights(&files));
    let parts = [std::io::IoSlice::new(b"x")];
    rustix::net::sendmsg(&one, &parts, &mut control, SendFlags::empty()).expect("sent");
    drop(third);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(server.status().leased, 10 * MIB);
    drop((kept, second.map, one, other));
    let status = server.at_rest();
    assert_eq!((status.given, status.made), (3, 1));
}

/// Files of each kind are zero, keep their length and are huge where they are said to be; what a kind lacks is named.
#[test]
fn every_kind_of_pages_serves_or_says_what_it_lacks() {
    let kinds = [Pages::Tmpfs, Pages::Hugetlb, Pages::Memfd, Pages::Small];
    let names = ["tmpfs", "hugetlb", "memfd", "small pages"];
    let found = kinds.map(Source::find);
    let first = found[..3].iter().find_map(|kind| kind.as_ref().ok());
    assert_eq!(Source::find(Pages::Auto).ok().as_ref(), first);
    for ((pages, name), found) in kinds.into_iter().zip(names).zip(found) {
        if let Err(lacks) = found {
            assert!(lacks.starts_with(&format!("{name}: ")) && !lacks.contains(';'), "{lacks}");
            continue;
        }
        let server = server(2 * PAGE, |settings| settings.pages = pages);
        for _ in 0..3 {
            let mut memory = server.take(PAGE);
            memory.map.fill(3);
            let _ = memory.file.set_len(64 * PAGE as u64);
            let beyond = FallocateFlags::empty();
            assert!(rustix::fs::fallocate(&memory.file, beyond, 0, 64 * PAGE as u64).is_err());
        }
        let status = server.at_rest();
        assert_eq!((&*status.pages, status.small == 0), (name, pages != Pages::Small));
    }
}

/// A client keeps a page in a pipe, a name for the file, and memory beyond its end: none shows the next lease anything, and
/// what is beyond the end comes back.
#[test]
fn what_a_client_keeps_shows_nothing_of_the_next_lease() {
    let server = server(2 * PAGE, |_| {});
    let mut memory = server.take(PAGE);
    memory.map.fill(0xA5);
    let (reads, writes) = rustix::pipe::pipe().expect("a pipe");
    let mut from = 0;
    let flags = rustix::pipe::SpliceFlags::empty();
    let kept = rustix::pipe::splice(&memory.file, Some(&mut from), &writes, None, 4096, flags);
    assert_eq!(kept, Ok(4096));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&memory.file, hole, 0, PAGE as u64).expect("a hole");
    let beyond = FallocateFlags::KEEP_SIZE;
    let _ = rustix::fs::fallocate(&memory.file, beyond, PAGE as u64, PAGE as u64);
    let name = format!("/proc/self/fd/{}", memory.file.as_raw_fd());
    let name = rustix::fs::open(name, OFlags::PATH, Mode::empty()).expect("a name");
    drop(memory);
    wait_for("its memory", || rustix::fs::fstat(&name).expect("a file").st_blocks == 0);
    let mut next = server.take(PAGE);
    next.map.fill(0x5A);
    let mut page = [0; 4096];
    rustix::io::read(&reads, &mut page).expect("a page");
    assert!(!page.contains(&0x5A), "a byte of the next client");
    drop(next);
    server.at_rest();
}

#[test]
fn holes_and_other_lengths_hurt_nobody_else() {
    let server = server(4 * PAGE, |_| {});
    let other = server.take(PAGE);
    let memory = server.take(2 * PAGE);
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&memory.file, hole, 0, PAGE as u64).expect("a hole");
    let Memory { file, map } = memory;
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
fn requests_that_are_none_and_clients_that_say_nothing_stop_nobody() {
    let server = server(2 * PAGE, |settings| settings.user_most = 3 * MIB);
    let long = [b'9'; 4000];
    let cases: [(&[u8], &str); 15] = [
        (b"lea", "another request"),
        (b"lease", "another request"),
        (b"lease 0", "another request"),
        (b"lease -1", "another request"),
        (b"lease +5", "another request"),
        (b"lease 0x10", "another request"),
        (b"lease 1 ", "another request"),
        (b"lease 1 x", "another request"),
        (b"lease 1 path 2", "another request"),
        (b"lease 18446744073709551615", "another request"),
        (b"\xFF", "another request"),
        (&long, "another request"),
        (b"lease 99999999999", "at most 0.004 GiB"),
        (b"lease 4194304", "at most 0.003 GiB a user"),
        (b"status ", "another request"),
    ];
    for (request, part) in cases {
        let said = server.answer(request);
        assert!(said.starts_with("refused ") && said.contains(part), "{request:?}: {said}");
    }
    // As many as there may be of one user, of which none says anything.
    let silent: Vec<_> = (0..300).map_while(|_| server.connect().ok()).collect();
    assert!(silent.len() >= 256);
    wait_for("a turn", || Lease::take(&server.socket, PAGE).is_ok());
    drop(silent);
    let status = server.at_rest();
    assert!(status.refused >= 15, "{status:?}");
}

#[test]
fn a_user_has_so_much_at_most_and_a_full_server_refuses() {
    let server = server(4 * PAGE, |settings| settings.user_most = 6 * MIB);
    let held: Vec<_> = (0..3).map(|_| server.take(PAGE)).collect();
    assert!(matches!(Lease::take(&server.socket, PAGE), Err(LeaseError::Refused(_))));
    drop(held);
    let status = server.at_rest();
    assert_eq!((status.given, status.refused), (3, 1));
}

#[test]
fn one_request_of_another_size_takes_no_segment_for_good() {
    let server = server(8 * PAGE, |settings| settings.segment = Some(4 * PAGE as u64));
    for bytes in [1, 2 * PAGE, 3 * PAGE] {
        drop(server.take(bytes));
        let files = [Files { bytes: 8 * MIB, number: 2 }];
        assert_eq!(server.at_rest().files, files, "{bytes}");
    }
}

#[test]
fn memory_is_taken_again_whatever_the_load() {
    // A load that is always above the limit.
    let scrub = Scrub { load: -1.0, ..Scrub::default() };
    let server = server(2 * PAGE, |settings| settings.scrub = scrub);
    drop(server.take(PAGE));
    server.at_rest();
}

#[test]
fn leases_outlive_the_server() {
    let mut first = server(2 * PAGE, |_| {});
    let mut memory = first.take(PAGE);
    memory.map.fill(7);
    first.stop().expect("no error");
    assert!(!first.socket.exists());
    memory.map[5] = 8;
    assert!(matches!(Lease::take(&first.socket, PAGE), Err(LeaseError::Unreachable { .. })));
    let directory = std::mem::replace(&mut first.directory, tempfile::tempdir().expect("another"));
    let second = started(settings(&first.socket, 2 * PAGE), None, directory);
    let whole = second.take(2 * PAGE);
    assert!(whole.is_zero() && memory.map[5] == 8 && memory.map[6] == 7);
}

#[test]
fn a_socket_that_was_passed_is_the_managers() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let flags = rustix::net::SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, kind, flags, None).expect("a socket");
    let address = SocketAddrUnix::new(&path).expect("a path");
    rustix::net::bind(&socket, &address).expect("bound");
    rustix::net::listen(&socket, 8).expect("it listens");
    let mut server = started(settings(&path, PAGE), Some(socket), directory);
    assert!(server.take(PAGE).is_zero());
    server.stop().expect("no error");
    assert!(path.exists());
}

/// Settings that cannot work, each refused in one line before anything is taken.
#[test]
fn settings_that_cannot_work_are_refused() {
    let busy = server(PAGE, |_| {});
    let at = |name: &str| busy.directory.path().join(name);
    std::fs::write(at("file"), "").expect("written");
    let long = at(&"x".repeat(200));
    type Change = Box<dyn Fn(&mut Settings)>;
    let path = |path: PathBuf| -> Change {
        Box::new(move |settings: &mut Settings| settings.socket.clone_from(&path))
    };
    let cases: Vec<(Change, &str)> = vec![
        (path(busy.socket.clone()), "a server at work"),
        (path(at("file")), "another file"),
        (path(at("missing/socket")), "there is no directory"),
        (path(long), ""),
        (Box::new(|settings| settings.size = 1), "--size: expected 2 MiB or more, found 1 B"),
        (
            Box::new(|settings| settings.size = 1 << 50),
            "--size: expected at most *, found 1024 TiB",
        ),
        (
            Box::new(|settings| settings.segment = Some(3 * MIB)),
            "--segment: expected at most *, found 3 MiB",
        ),
        (Box::new(|settings| settings.keep = 3 * MIB), "--keep: expected at most *, found 3 MiB"),
        (
            Box::new(|settings| settings.user_most = 1),
            "--user-limit: expected 2 MiB or more, found 1 B",
        ),
        (
            Box::new(|settings| settings.user_most = 0),
            "--user-limit: expected 2 MiB or more, found 0 B",
        ),
    ];
    for (change, part) in cases {
        let mut settings = settings(&at("other"), PAGE);
        change(&mut settings);
        let (_stop, told) = UnixStream::pair().expect("a pair");
        let ended = serve(settings, None, told.as_fd(), &mut |_| {});
        let said = ended.expect_err(part).to_string();
        let has_all = part.split('*').all(|part| said.contains(part));
        assert!(has_all && !said.contains('\n'), "{part}: {said}");
    }
    // Nothing is left of them.
    assert!(!at("other").exists() && !at("other.lock").exists() && !at("other.new").exists());
}
