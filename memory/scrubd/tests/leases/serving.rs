//! Servers: sizes, limits, clients that misbehave, restarts, and pools on a lease.

use super::*;

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
    assert!(did(output.status), "{output:?}");
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
    assert!(did(client.wait().expect("it ended")));
    wait_for("rest", || limited.status().ready == 8 * PAGE as u64);
    limited.stop().expect("no error");
    let closed = server(PAGE, |settings| settings.mode = 0o600);
    let ended = child("shut-out", &[&closed.socket.to_string_lossy()]).status();
    assert!(did(ended.expect("it ran")));
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
    assert!(did(server.wait().expect("it ended")));
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
    assert!(did(ended.expect("it ran")));
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
