//! The server as users start and stop it, its figures, programs on a lease, and a restart under a service
//! manager: this test in systemd's place.

use crate::support::{Folder, asked, piped, program, root, said, signal};
use cachewise_pages::lease::Lease;
use cachewise_scrubd::memory::{Pages, Source};
use cachewise_scrubd::pressure::Group;
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

fn wait_for(what: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Huge pages where there are any.
fn pages() -> &'static str {
    if Source::find(Pages::Auto).is_ok() { "auto" } else { "small" }
}

fn arguments(socket: &Path) -> String {
    let socket = socket.display();
    format!("scrubd --size 8M --segment 4M --load 1000 --pages {} --socket {socket}", pages())
}

fn server(socket: &Path) -> Child {
    let server = piped(asked(&arguments(socket)));
    wait_for("the memory", || socket.exists() && status(socket)["ready"] == 8 << 20);
    server
}

fn status(socket: &Path) -> serde_json::Value {
    let said = said(&mut asked(&format!("scrubd status --json --socket {}", socket.display())));
    serde_json::from_str(&said.with(0).out).expect("JSON")
}

#[test]
fn a_server_serves_programs_until_it_is_told_to_stop() {
    let folder = Folder::new();
    let socket = PathBuf::from(folder.path("socket"));
    let shown = socket.display();
    let mut server = server(&socket);
    let lease = |words: &[&str]| {
        let mut command = asked(&format!("lease --size 3M --socket {shown} --"));
        said(command.args(words))
    };
    let script = "wc -c < {path}; tr -d '\\000' < {path} | wc -c; echo used > {path}; exit 7";
    let told = lease(&["sh", "-c", script]).with(7);
    assert_eq!(told.out.split_whitespace().collect::<Vec<_>>(), ["4194304", "0"]);
    assert!(lease(&["true"]).with(2).err.contains("{path}"));
    lease(&["no-such-program", "{path}"]).with(127);
    let more = said(&mut asked(&format!("lease --size 9M --socket {shown} -- cat {{path}}")));
    assert!(more.with(1).err.contains("accepted at most"));
    wait_for("rest", || status(&socket)["ready"] == 8 << 20);
    let text = said(&mut asked(&format!("scrubd status --socket {shown}"))).with(0).out;
    assert!(text.contains("ready      8 MiB (2 of 4 MiB)"), "{text}");
    let prometheus = asked(&format!("scrubd status --prometheus --socket {shown}"));
    let prometheus = said(&mut { prometheus }).with(0).out;
    assert!(prometheus.contains("\ncachewise_scrubd_leases_total 1\n"), "{prometheus}");
    assert!(said(&mut asked(&arguments(&socket))).with(2).err.contains("a server at work"));
    signal(&server, Signal::TERM);
    assert_eq!(server.wait().expect("it ended").code(), Some(0));
    assert!(!socket.exists());
    let gone = said(&mut asked(&format!("scrubd status --socket {shown}"))).with(1);
    assert!(gone.err.contains("running `cachewise scrubd`"), "{}", gone.err);
    let mut again = self::server(&socket);
    signal(&again, Signal::INT);
    assert_eq!(again.wait().expect("it ended").code(), Some(130));
}

/// Descriptors that a service manager keeps.
struct Manager {
    socket: UnixDatagram,
    files: BTreeMap<String, OwnedFd>,
    ready: bool,
}

impl Manager {
    fn hear(&mut self) {
        loop {
            let mut text = [0; 4096];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut text)];
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let Ok(came) = rustix::net::recvmsg(&self.socket, &mut parts, &mut control, flags)
            else {
                return;
            };
            let files = control.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(files) => Some(files),
                _ => None,
            });
            let file = files.flatten().next();
            let text = String::from_utf8_lossy(&text[..came.bytes]).into_owned();
            let name =
                text.lines().find_map(|line| line.strip_prefix("FDNAME=")).map(str::to_owned);
            match (text.lines().next(), name, file) {
                (Some("FDSTORE=1"), Some(name), Some(file)) => drop(self.files.insert(name, file)),
                (Some("FDSTOREREMOVE=1"), Some(name), None) => drop(self.files.remove(&name)),
                (Some("READY=1"), None, None) => self.ready = true,
                other => panic!("{other:?}"),
            }
        }
    }

    /// A server with what is kept, as systemd starts it.
    fn start(&mut self, path: &Path, socket: &Path) -> Child {
        self.start_as(path, &arguments(socket))
    }

    fn start_as(&mut self, path: &Path, arguments: &str) -> Child {
        self.ready = false;
        let mut command = Command::new("sh");
        // A manager that passes nothing says nothing of it.
        let passes = if self.files.is_empty() {
            "unset LISTEN_FDS LISTEN_FDNAMES;"
        } else {
            "LISTEN_PID=$$"
        };
        command.args(["-c", &format!("{passes} exec \"$0\" \"$@\"")]);
        command.arg(program().get_program()).args(arguments.split(' '));
        command.env("NOTIFY_SOCKET", path).env("LISTEN_FDS", self.files.len().to_string());
        let names: Vec<_> = self.files.keys().map(String::as_str).collect();
        command.env("LISTEN_FDNAMES", names.join(":"));
        // Above those that they become.
        let files = std::mem::take(&mut self.files);
        let high: Vec<_> = files
            .into_values()
            .map(|file| rustix::io::fcntl_dupfd_cloexec(&file, 100).expect("a descriptor"))
            .collect();
        let pass = move || {
            for (number, file) in high.iter().enumerate() {
                // SAFETY: numbers alone.
                if unsafe { libc::dup2(file.as_raw_fd(), 3 + number as i32) } < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        };
        // SAFETY: system calls alone, which a forked child may make.
        unsafe { command.pre_exec(pass) };
        let server = command.spawn().expect("it starts");
        drop(command);
        wait_for("the server", || {
            self.hear();
            self.ready
        });
        server
    }
}

#[test]
fn files_that_a_service_manager_keeps_are_taken_back() {
    let folder = Folder::new();
    let [socket, path] = ["socket", "notify"].map(|name| PathBuf::from(folder.path(name)));
    let heard = UnixDatagram::bind(&path).expect("a socket");
    let mut manager = Manager { socket: heard, files: BTreeMap::new(), ready: false };
    let mut server = manager.start(&path, &socket);
    let words = ["sh", "-c", "echo used > {path}; read line; cat {path} | head -c 4"];
    let mut client = asked(&format!("lease --size 4M --socket {} --", socket.display()));
    client.args(words);
    let mut client = piped(client);
    wait_for("the lease", || status(&socket)["leased"] == 4 << 20);
    let kinds = |manager: &Manager, kind: &str| {
        manager.files.keys().filter(|name| name.starts_with(&format!("cachewise-{kind}-"))).count()
    };
    wait_for("what the manager keeps", || {
        manager.hear();
        (kinds(&manager, "leased"), kinds(&manager, "new")) == (1, 1)
    });
    signal(&server, Signal::KILL);
    server.wait().expect("it ended");
    let mut server = manager.start(&path, &socket);
    let now = status(&socket);
    assert_eq!((&now["leased"], &now["ready"]), (&(4 << 20).into(), &(4 << 20).into()), "{now}");
    assert_eq!(now["leases"][0]["user"], rustix::process::getuid().as_raw());
    drop(client.stdin.take());
    let output = client.wait_with_output().expect("it ended");
    assert_eq!(output.stdout, b"used");
    wait_for("rest", || status(&socket)["ready"] == 8 << 20);
    signal(&server, Signal::TERM);
    assert_eq!(server.wait().expect("it ended").code(), Some(0));
}

/// In place, a client's pages stay its user's; what is known of that ends with the server.
#[test]
fn after_a_restart_nobody_gets_pages_that_another_had() {
    let folder = Folder::new();
    let [socket, path] = ["socket", "notify"].map(|name| PathBuf::from(folder.path(name)));
    let heard = UnixDatagram::bind(&path).expect("a socket");
    let mut manager = Manager { socket: heard, files: BTreeMap::new(), ready: false };
    let arguments = format!("{} --engine around", arguments(&socket));
    let mut server = manager.start_as(&path, &arguments);
    // All of it, a page of each in a pipe.
    let leases = [(); 2].map(|()| Lease::take(&socket, 4 << 20).expect("a lease"));
    let kept = leases.map(|lease| {
        let (reads, writes) = std::io::pipe().expect("a pipe");
        let mut from = 0;
        let (file, pipe) = (lease.as_fd().as_raw_fd(), writes.as_raw_fd());
        let none = std::ptr::null_mut();
        // SAFETY: two descriptors that are open, and an offset that is here.
        let kept = unsafe { libc::splice(file, &raw mut from, pipe, none, 4096, 0) };
        assert_eq!(kept, 4096);
        reads
    });
    wait_for("rest", || status(&socket)["ready"] == 8 << 20);
    signal(&server, Signal::KILL);
    server.wait().expect("it ended");
    manager.hear();
    let mut server = manager.start_as(&path, &arguments);
    let leases = [(); 2].map(|()| {
        let lease = Lease::take(&socket, 4 << 20).expect("a lease");
        rustix::io::pwrite(&lease, b"secret", 0).expect("written");
        lease
    });
    for reads in kept {
        let mut page = [0; 4096];
        rustix::io::read(&reads, &mut page).expect("a page");
        assert_ne!(&page[..6], b"secret");
    }
    drop(leases);
    signal(&server, Signal::TERM);
    assert_eq!(server.wait().expect("it ended").code(), Some(0));
}

/// A manager that hears nothing, more memory than is there at once, and the end before it is.
#[test]
fn it_serves_and_ends_before_all_memory_is_there() {
    let folder = Folder::new();
    let [socket, path] = ["socket", "notify"].map(|name| PathBuf::from(folder.path(name)));
    let _deaf = UnixDatagram::bind(&path).expect("a socket");
    let words =
        format!("scrubd --size 1G --segment 2M --pages {} --socket {}", pages(), socket.display());
    let mut server = asked(&words).env("NOTIFY_SOCKET", &path).spawn().expect("it starts");
    wait_for("the socket", || socket.exists());
    let now = status(&socket);
    assert_ne!(now["ready"], 1 << 30, "{now}");
    signal(&server, Signal::TERM);
    assert_eq!(server.wait().expect("it ended").code(), Some(0));
    let left: Vec<_> = std::fs::read_dir(folder.path("")).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Limits of the system, each with its name in one line, and nobody ended by a signal.
#[test]
fn what_the_system_refuses_is_named() {
    let folder = Folder::new();
    let socket = PathBuf::from(folder.path("socket"));
    let words = format!("exec {} {}", program().get_program().display(), arguments(&socket));
    let shell = |before: &str, prefix: &[&str]| {
        let mut command = Command::new(prefix.first().copied().unwrap_or("sh"));
        if !prefix.is_empty() {
            command.args(&prefix[1..]).arg("sh");
        }
        command.arg("-c").arg(format!("{before}; {words}"));
        said(&mut command)
    };
    let files = shell("ulimit -f 1000", &[]).with(2);
    assert!(files.err.contains("file sizes: found a limit of"), "{}", files.err);
    let namespace = ["unshare", "--user", "--map-root-user"];
    let possible = Command::new(namespace[0]).args(&namespace[1..]).arg("true").status();
    if !possible.is_ok_and(|ended| ended.success()) {
        eprintln!("limits of inotify: SKIPPED, no user namespaces");
        return;
    }
    // Without them it goes on, and says so.
    for name in ["instances", "watches"] {
        let before = format!("echo 0 > /proc/sys/user/max_inotify_{name}");
        let mut command = Command::new(namespace[0]);
        command.args(&namespace[1..]).args(["sh", "-c", &format!("{before}; {words}")]);
        let server = piped(command);
        wait_for("the memory", || socket.exists() && status(&socket)["ready"] == 8 << 20);
        for _ in 0..3 {
            drop(Lease::take(&socket, 4 << 20).expect("a lease"));
        }
        wait_for("rest", || status(&socket)["ready"] == 8 << 20);
        signal(&server, Signal::TERM);
        let output = server.wait_with_output().expect("it ended");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains(&format!("fs.inotify.max_user_{name} used up")), "{told}");
        assert_eq!(told.matches("inotify").count(), 2, "{told}");
    }
}

/// A system that refuses the question whether a lease has ended: asked at the start, and said.
#[test]
#[cfg(target_endian = "little")]
fn a_system_on_which_no_end_can_be_seen_is_refused_at_once() {
    let filter = |code: u32, k: u32, jf: u8| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let [load, equal, ends] = [
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    ];
    // The number of the call, and the low half of its second argument.
    let mut program = [
        filter(load, 0, 0),
        filter(equal, libc::SYS_fcntl as u32, 3),
        filter(load, 24, 0),
        filter(equal, libc::F_SETLEASE as u32, 1),
        filter(ends, libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32, 0),
        filter(ends, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let folder = Folder::new();
    let mut command = asked(&arguments(folder.path("socket").as_ref()));
    let refuse = move || {
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: numbers alone.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        // SAFETY: a filter that is there until the call returns.
        let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter) };
        if set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: system calls alone, which a forked child may make.
    unsafe { command.pre_exec(refuse) };
    let told = said(&mut command).with(1);
    assert!(
        told.err.contains("F_SETLEASE") && told.err.trim().lines().count() == 1,
        "{}",
        told.err
    );
}

/// Has a command begin in a control group.
fn hold(group: &Group, command: &mut Command) {
    let path = std::ffi::CString::new(format!("{}/cgroup.procs", group.path.display()));
    let path = path.expect("a path");
    let enter = move || {
        // SAFETY: a path that ends in NUL.
        let file = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
        // SAFETY: one byte of a constant; 0 stands for the process that writes.
        let written = unsafe { libc::write(file, c"0".as_ptr().cast(), 1) };
        if written == 1 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: system calls alone, which a forked child may make.
    unsafe { command.pre_exec(enter) };
}

/// A neighbour in the same control group takes what scrubd holds ready, as fast as it can, and is not ended; what is to
/// be kept stays.
#[test]
fn ready_memory_goes_back_before_a_neighbour_is_ended() {
    let Ok(group) = Group::new("test", 256 << 20) else {
        eprintln!("memory under pressure: SKIPPED, no control group can be made");
        return;
    };
    let folder = Folder::new();
    let socket = PathBuf::from(folder.path("socket"));
    let words = format!(
        "scrubd --size 192M --segment 32M --keep 32M --pages {} --socket {}",
        pages(),
        socket.display()
    );
    let mut command = asked(&words);
    hold(&group, &mut command);
    let mut server = command.spawn().expect("it starts");
    wait_for("the memory", || socket.exists() && status(&socket)["zeroing"] == 0);
    let before = status(&socket);
    assert_eq!(before["ready"], 192 << 20, "{before}");
    // 160 MiB beside 192 of 256. `tail` keeps what it reads until the end of a line.
    let mut neighbour = Command::new("sh");
    neighbour.args(["-c", "head -c 160M /dev/zero | tail | wc -c"]);
    hold(&group, &mut neighbour);
    assert_eq!(said(&mut neighbour).with(0).out.trim(), (160 << 20).to_string());
    let after = status(&socket);
    let [ready, given] = ["ready", "given_back"].map(|name| after[name].as_u64().expect("bytes"));
    assert!(ready >= 32 << 20 && given >= 64 << 20, "{after}");
    assert!(after["untaken"].as_u64() >= Some(given), "{after}");
    signal(&server, Signal::TERM);
    assert_eq!(server.wait().expect("it ended").code(), Some(0));
    // Its score is that of what it holds while it can give it.
    let mut server = {
        let mut command = asked(&words);
        hold(&group, &mut command);
        command.spawn().expect("it starts")
    };
    let score = || std::fs::read_to_string(format!("/proc/{}/oom_score_adj", server.id()));
    wait_for("the score", || score().is_ok_and(|score| score.trim() == "1000"));
    signal(&server, Signal::TERM);
    server.wait().expect("it ended");
}

/// More than is there is not taken, and more than there can be is refused.
#[test]
fn a_size_that_others_need_is_not_taken() {
    let Ok(group) = Group::new("test", 64 << 20) else {
        eprintln!("memory under pressure: SKIPPED, no control group can be made");
        return;
    };
    let folder = Folder::new();
    let socket = PathBuf::from(folder.path("socket"));
    let words = |size: &str| {
        let mut command = asked(&format!(
            "scrubd --size {size} --segment 8M --pages {} --socket {}",
            pages(),
            socket.display()
        ));
        hold(&group, &mut command);
        command
    };
    assert!(said(&mut words("60M")).with(2).err.contains("accepted at most 48 MiB"));
    let mut server = words("48M").spawn().expect("it starts");
    wait_for("the memory", || socket.exists() && status(&socket)["zeroing"] == 0);
    let now = status(&socket);
    let [ready, untaken] = ["ready", "untaken"].map(|name| now[name].as_u64().expect("bytes"));
    assert!(ready <= 48 << 20 && ready + untaken == 48 << 20 && untaken != 0, "{now}");
    signal(&server, Signal::TERM);
    assert_eq!(server.wait().expect("it ended").code(), Some(0));
}

/// The test library in the driver's place: it zeroes well, leaves a hole, or has no device.
#[test]
fn a_gpu_zeroes_and_is_not_believed() {
    let folder = Folder::new();
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../memory/pages/tests/cuda/driver.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o", &folder.path("libcuda.so.1")]).arg(source);
    assert!(compiler.status().expect("a C compiler").success());
    for (mode, engine) in [
        ("good", "a GPU in place"),
        ("hole", "the CPU in place, since the GPU failed"),
        ("never", "the CPU in place, since the GPU failed"),
        ("none", "the CPU in place, around the cache"),
    ] {
        let [socket, log] =
            [mode, &format!("{mode}.log")].map(|name| PathBuf::from(folder.path(name)));
        let mut command = asked(&format!("{} --engine cuda", arguments(&socket)));
        command.env("LD_LIBRARY_PATH", folder.path("")).env("CACHEWISE_TEST_DRIVER", mode);
        let server = piped({
            command.env("CACHEWISE_TEST_DRIVER_LOG", &log);
            command
        });
        wait_for("the memory", || socket.exists() && status(&socket)["ready"] == 8 << 20);
        for round in 1..4 {
            let lease = Lease::take(&socket, 4 << 20).expect("a lease");
            let file = std::fs::File::from(lease.into_file());
            let mut bytes = vec![0; 4 << 20];
            file.read_exact_at(&mut bytes, 0).expect("all of it");
            assert!(bytes.iter().all(|byte| *byte == 0), "{mode}: a stale byte");
            file.write_all_at(&vec![round; 4 << 20], 0).expect("all of it");
            drop(file);
            wait_for("rest", || status(&socket)["ready"] == 8 << 20);
        }
        assert_eq!(status(&socket)["engine"], engine, "{mode}");
        signal(&server, Signal::TERM);
        let output = server.wait_with_output().expect("it ended");
        assert_eq!(output.status.code(), Some(0), "{mode}: {output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(told.contains("no device to zero with (cuInit: "), mode == "none", "{told}");
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        let count = |call: &str| log.lines().filter(|line| line.starts_with(call)).count();
        let registered = match mode {
            "good" => (3, 3),
            "hole" => (1, 1),
            "never" => (1, 0),
            _ => (0, 0),
        };
        assert_eq!((count("register"), count("unregister")), registered, "{mode}: {log}");
        assert!(!log.contains("wrong"), "{mode}: {told}");
    }
}

/// The program takes the unit's own words; whether systemd takes the units is asked in `guides`.
#[test]
fn the_program_takes_the_words_of_the_units() {
    let folder = Folder::new();
    let [service, socket] = ["service", "socket"].map(|kind| {
        let unit = root().join(format!("packaging/cachewise-scrubd.{kind}"));
        std::fs::read_to_string(unit).expect("a unit")
    });
    let value = |text: &str, key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key}=")));
        line.unwrap_or_else(|| panic!("no {key}")).to_owned()
    };
    let command = value(&service, "ExecStart");
    let listens = value(&socket, "ListenSequentialPacket");
    assert!(command.ends_with(&format!("--socket {listens}")), "{command}");
    let size = value(&service, "Environment=CACHEWISE_SCRUBD_SIZE");
    let words = command.replace("${CACHEWISE_SCRUBD_SIZE}", &size);
    let words = words.replace(&listens, &folder.path("none/socket"));
    let told = said(asked(words.split_once(' ').expect("words").1).env_remove("NOTIFY_SOCKET"));
    assert!(told.with(2).err.contains("there is no directory"));
}
