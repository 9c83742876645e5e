//! Leases: a server made up for the test lends memory, or does not answer. Locked memory.

use crate::alone;
use crate::common::{Asked, Made, Zero, forked, has_its_own_process, quiet};
use crate::fork::refuses_all;
use cachewise_pages::lease::{self, Lease, LeaseError};
use cachewise_pages::{Builder, Note, Pool, PoolError};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::net::{self, AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::net::{RecvFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

const MIB: usize = 1 << 20;

fn socket() -> OwnedFd {
    net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .expect("a socket")
}

/// A socket that listens, in a folder of its own.
fn listening(folder: &tempfile::TempDir, backlog: i32) -> (PathBuf, OwnedFd) {
    let path = folder.path().join("socket");
    let listener = socket();
    net::bind(&listener, &SocketAddrUnix::new(&path).expect("short")).expect("bound");
    net::listen(&listener, backlog).expect("it listens");
    (path, listener)
}

/// Lends one client a file of that many bytes, and forgets it.
fn lend(listener: impl AsFd, bytes: usize, pages: MemfdFlags) {
    let client = net::accept(listener).expect("a client");
    let mut request = [0; 256];
    let (length, _) = net::recv(&client, &mut request, RecvFlags::empty()).expect("a request");
    assert!(request[..length].starts_with(b"lease "));
    let file = rustix::fs::memfd_create("lent", pages | MemfdFlags::CLOEXEC).expect("a file");
    rustix::fs::ftruncate(&file, bytes as u64).expect("its size");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
    let answer = format!("lease {bytes}");
    let parts = [IoSlice::new(answer.as_bytes())];
    net::sendmsg(&client, &parts, &mut control, SendFlags::NOSIGNAL).expect("sent");
}

/// A pool of `bytes` that are lent.
fn leased(bytes: usize, pages: MemfdFlags, builder: Builder) -> Pool {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, listener) = listening(&folder, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| lend(&listener, bytes, pages));
        builder.capacity(bytes).leased(&path).made()
    })
}

/// A leased pool is resident and zero from the start, gives blocks as large as it is, and nothing of it goes back.
#[test]
fn leased_pool_is_resident_and_zero_and_gives_all_of_it() {
    let _alone = alone();
    let pool = leased(16 * MIB, MemfdFlags::empty(), quiet().max_order(9));
    assert_eq!((pool.notes(), pool.figures().zero_resident), (vec![], 16 * MIB as u64));
    let mut all = pool.zalloc_bytes(16 * MIB).expect("one block").into_dirty();
    assert!(all.is_zero());
    all.fill(1);
    drop(all);
    assert_eq!(pool.trim().expect("nothing to do"), 0);
    assert!(pool.zalloc_bytes(16 * MIB).expect("all of it").is_zero());
    assert_eq!(forked(|| refuses_all(&pool)), 0, "a child's call is an error, and no signal");
    pool.is_sound();
}

/// Does that in a thread, and fails where it does not end.
fn ends<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(60)).expect("it waits for ever")
}

fn is_late<T: std::fmt::Debug>(answer: Result<T, LeaseError>) -> bool {
    matches!(answer, Err(LeaseError::Late { .. }))
}

/// A server that is stopped accepts connections, as the system does that for it, until its queue is full.
#[test]
fn a_server_that_does_not_answer_is_not_waited_for_for_ever() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let (path, listener) = listening(&folder, 0);
    let within = Duration::from_millis(50);
    for round in 0..4 {
        let place = path.clone();
        assert!(is_late(ends(move || Lease::take_within(&place, MIB, within))), "round {round}");
    }
    // Its queue is full now: the first to be refused a place in it would wait there.
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let socket = socket();
            rustix::io::ioctl_fionbio(&socket, true).expect("it does not block");
            let address = SocketAddrUnix::new(&path).expect("short");
            let connected = net::connect(&socket, &address);
            (socket, connected)
        })
        .collect();
    assert!(waiting.iter().any(|(_, connected)| connected.is_err()), "the queue is full");
    let place = path.clone();
    assert!(is_late(ends(move || Lease::take_within(&place, MIB, within))));
    let place = path.clone();
    assert!(is_late(ends(move || lease::status(&place))), "nor for figures");
    let place = path.clone();
    let pool = ends(move || quiet().capacity(4 * MIB).leased(&place).made());
    assert!(matches!(pool.notes()[..], [Note::NoLease(_)]), "{:?}", pool.notes());
    assert!(pool.zalloc_bytes(4 * MIB).expect("memory of its own").is_zero());
    drop(listener);
}

/// A process of a user who may lock little, and locks all it maps: what a pool may grow to is address space all
/// the same, and what it uses is locked up to the limit.
#[test]
fn where_all_is_locked_a_pool_may_be_larger_than_the_limit_and_what_is_used_is_locked() {
    let _alone = alone();
    let name =
        "lease::where_all_is_locked_a_pool_may_be_larger_than_the_limit_and_what_is_used_is_locked";
    if !has_its_own_process(name) {
        return;
    }
    let locked = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a line");
        line.split_whitespace().next().expect("KiB").parse::<usize>().expect("a number") << 10
    };
    const LIMIT: usize = 8 * MIB;
    let limit = libc::rlimit { rlim_cur: LIMIT as u64, rlim_max: LIMIT as u64 };
    // SAFETY: a valid limit, that of most systems.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) }, 0);
    // SAFETY: no memory is involved; where this is not root, it is an ordinary user already.
    unsafe { libc::setresuid(65534, 65534, 65534) };
    // SAFETY: no memory is involved.
    let refused = unsafe { libc::mlockall(libc::MCL_FUTURE) };
    assert_eq!(refused, 0, "{}", std::io::Error::last_os_error());
    let pool = quiet().capacity(1 << 30).cache_blocks(0).made();
    let before = locked();
    assert!(before < LIMIT, "{before}");
    let mut block = pool.zalloc_bytes(2 * MIB).expect("room under the limit");
    assert!(block.is_zero());
    let more = locked();
    assert!(more >= before + 2 * MIB, "{before}, {more}");
    // Up to the limit, and then it is an error.
    let mut held = Vec::new();
    let refused = loop {
        match pool.zalloc_bytes(2 * MIB) {
            Ok(block) => held.push(block),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, PoolError::NoMemory { .. }), "{refused}");
    assert!(locked() <= LIMIT);
    block = {
        let mut block = block.into_dirty();
        block.fill(9);
        drop(block);
        pool.zalloc_bytes(2 * MIB).expect("it came back")
    };
    assert!(block.is_zero());
    // Unlocks all memory.
    // SAFETY: no memory is involved.
    unsafe { libc::munlockall() };
    assert!(pool.zalloc_bytes(64 * MIB).expect("no limit any more").is_zero());
    // Address space counts too.
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::mlockall(libc::MCL_CURRENT) }, -1);
    drop((block, held));
    pool.is_sound();
}
