//! Leases: a server made up for the test lends memory, or does not answer; and forks of a program that has
//! memory which the system does not copy.

use crate::alone;
use crate::common::{Asked, Made, Zero, eager, has_its_own_process, is_clean, quiet, until};
use crate::fork::{fork, wait};
use cachewise_pages::inject::{Call, fail};
use cachewise_pages::lease::{self, Lease, LeaseError};
use cachewise_pages::{Builder, Note, PageSize, Pool, PoolError};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::net::{self, AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::net::{RecvFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

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

/// Huge pages reserved for the test, if it may; they are the system's.
struct Reserved(Option<String>);

const RESERVE: &str = "/proc/sys/vm/nr_hugepages";

impl Reserved {
    fn more(pages: u64) -> Reserved {
        let before = std::fs::read_to_string(RESERVE).expect("Linux");
        let after = before.trim().parse::<u64>().expect("a number") + pages;
        let written = std::fs::write(RESERVE, after.to_string());
        Reserved(written.is_ok().then_some(before))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = std::fs::write(RESERVE, before);
        }
    }
}

/// The parent writes after the fork and before the child looks, the child writes, and each has its own.
fn each_has_its_own(pool: &Pool) {
    let mut blocks: Vec<_> = (0..3).map(|_| pool.alloc_bytes(3 * MIB).expect("room")).collect();
    // A gap, and a block that a thread's cache gave out.
    drop(blocks.remove(1));
    let mut page = pool.alloc(0).expect("a page");
    page.fill(7);
    for (number, block) in blocks.iter_mut().enumerate() {
        block.fill(1 + number as u8);
    }
    let (mut ours, mut its) = UnixStream::pair().expect("a pair");
    let child = fork(|| {
        its.read_exact(&mut [0]).expect("the parent has written");
        let mut well = page.iter().all(|byte| *byte == 7);
        for (number, block) in blocks.iter_mut().enumerate() {
            well &= block.iter().all(|byte| *byte == 1 + number as u8);
            block.fill(0xCC);
        }
        // The rest is a pool as any other.
        let more = pool.zalloc_bytes(4 * MIB).expect("room");
        well &= more.is_zero();
        more.into_dirty().fill(0xCD);
        let freed = blocks.pop().expect("two").give_back().is_ok();
        well &= freed && pool.trim().expect("returned") > 0;
        pool.is_sound();
        pool.resume_scrubber();
        pool.alloc_bytes(2 * MIB).expect("room").fill(1);
        until("the child's own scrubber", || is_clean(pool));
        pool.is_sound();
        // And its children have what it has.
        let grandchild = fork(|| blocks[0].iter().all(|byte| *byte == 0xCC));
        well & (wait(grandchild) == 0)
    });
    for block in &mut blocks {
        block.fill(0xEE);
    }
    ours.write_all(&[1]).expect("told");
    assert_eq!(wait(child), 0);
    assert!(blocks.iter().all(|block| block.iter().all(|byte| *byte == 0xEE)));
    assert!(page.iter().all(|byte| *byte == 7));
    drop((blocks, page));
    pool.is_sound();
}

#[test]
fn a_child_has_a_copy_of_a_leased_pool() {
    let _alone = alone();
    let pool = leased(16 * MIB, MemfdFlags::empty(), Pool::builder().scrub(eager()));
    assert_eq!(pool.notes(), []);
    for _ in 0..3 {
        each_has_its_own(&pool);
    }
}

/// Without a page to copy to, the system takes pages from the child: it was ended when it read.
#[test]
fn a_child_has_a_copy_of_a_pool_of_explicit_huge_pages() {
    let _alone = alone();
    let _reserved = Reserved::more(16 * MIB as u64 / cachewise_pages::hugetlb_size() as u64);
    let builder = Pool::builder().scrub(eager()).page_size(PageSize::Hugetlb);
    let pool = builder.capacity(16 * MIB).initial(16 * MIB).made();
    each_has_its_own(&pool);
    drop(pool);
    if let Ok(file) = rustix::fs::memfd_create("huge", MemfdFlags::HUGETLB)
        && rustix::fs::ftruncate(&file, 16 * MIB as u64).is_ok()
    {
        drop(file);
        each_has_its_own(&leased(16 * MIB, MemfdFlags::HUGETLB, Pool::builder().scrub(eager())));
    }
}

fn stderr_to(file: &impl std::os::fd::AsRawFd) {
    // SAFETY: two descriptors of this process.
    assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), 2) }, 2);
}

/// The program is told at the fork, and what it asks of the pool is refused.
#[test]
fn without_memory_for_a_copy_the_childs_pool_is_closed_and_a_line_says_so() {
    let _alone = alone();
    let pool = leased(4 * MIB, MemfdFlags::empty(), quiet());
    let mut block = pool.alloc_bytes(MIB).expect("room");
    block.fill(3);
    let (mut said, its_stderr) = UnixStream::pair().expect("a pair");
    let before = rustix::io::dup(std::io::stderr()).expect("stderr");
    stderr_to(&its_stderr);
    fail(Call::Map, 1, libc::ENOMEM);
    let child = fork(|| matches!(pool.alloc(0), Err(PoolError::Closed)));
    stderr_to(&before);
    assert_eq!(wait(child), 0);
    drop(its_stderr);
    let mut text = String::new();
    said.read_to_string(&mut text).expect("a line");
    assert!(text.contains("no memory to copy a pool for a forked child"), "{text:?}");
    assert!(block.iter().all(|byte| *byte == 3));
    block.fill(4);
    drop(block);
    let child = fork(|| pool.alloc(0).is_ok());
    assert_eq!(wait(child), 0, "the next time there is memory");
}

/// Programs that the standard library starts without `fork` cause no copy.
#[test]
fn programs_started_without_a_fork_copy_nothing() {
    let _alone = alone();
    let pool = leased(4 * MIB, MemfdFlags::empty(), quiet());
    let mut block = pool.alloc_bytes(MIB).expect("room");
    block.fill(3);
    fail(Call::Map, 1, libc::ENOMEM);
    assert!(std::process::Command::new("true").status().expect("it runs").success());
    quiet().capacity(MIB).build().expect_err("the failure is still to come");
    quiet().capacity(MIB).build().expect("the next time");
}

/// Does that in a thread, and fails where it does not end.
fn ends<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(60)).expect("it waits for ever")
}

fn is_late<T: std::fmt::Debug>(answer: Result<T, LeaseError>) -> bool {
    matches!(&answer, Err(error @ LeaseError::Late { .. }) if error.to_string().contains("no answer in"))
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
    let notes = pool.notes();
    assert!(
        matches!(&notes[..], [Note::NoLease(why)] if why.contains("no answer in")),
        "{notes:?}"
    );
    assert!(pool.zalloc_bytes(4 * MIB).expect("memory of its own").is_zero());
    drop(listener);
}

/// Signals that interrupt it do not make it wait longer, nor give up.
#[test]
fn a_lease_is_waited_for_through_signals() {
    extern "C" fn nothing(_: i32) {}
    let name = "lease::a_lease_is_waited_for_through_signals";
    let _alone = alone();
    if !has_its_own_process(name) {
        return;
    }
    // SAFETY: all zero is a valid action without flags: calls are interrupted.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as *const () as usize;
    // SAFETY: a valid action, no old one wanted.
    unsafe { libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()) };
    let tick = libc::timeval { tv_sec: 0, tv_usec: 5000 };
    let timer = libc::itimerval { it_interval: tick, it_value: tick };
    let folder = tempfile::tempdir().expect("a folder");
    let (path, listener) = listening(&folder, 1);
    let of_this_thread = |path: &Path, within| {
        // SAFETY: a valid timer, no old one wanted.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
        Lease::take_within(path, MIB, within)
    };
    let begun = Instant::now();
    assert!(is_late(of_this_thread(&path, Duration::from_millis(300))));
    assert!(begun.elapsed() >= Duration::from_millis(300));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The one that gave up comes first.
            drop(net::accept(&listener).expect("a client"));
            std::thread::sleep(Duration::from_millis(100));
            lend(&listener, MIB, MemfdFlags::empty());
        });
        assert!(of_this_thread(&path, Duration::from_secs(60)).is_ok());
    });
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
