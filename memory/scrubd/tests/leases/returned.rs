//! Memory that comes back: when a lease ends, what keeps it longer, and what is counted meanwhile.

use super::*;

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
    assert!(did(ended.expect("it ran")));
    server.at_rest();
}
