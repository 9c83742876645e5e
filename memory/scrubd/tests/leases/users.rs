//! Users: what one gets of another, also through other namespaces.

use super::*;

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
    assert!(did(server.wait().expect("it ended")));
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
    assert_eq!(third.status.code(), Some(101), "more than the unknown may have");
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
