//! Leases by the thousand, with clients, neighbours and servers that are ended at any moment: every byte of every lease
//! is read, memory is short again and again, and the server does not grow. The processes are this program again.
//!
//! `CACHEWISE_SOAK="LEASES KILLS"` says how many; the short form is what CI runs. All stand still for as long as there is
//! a file `CACHEWISE_SOAK_PAUSE`.

use cachewise_pages::lease::{self, Lease, LeaseError};
use cachewise_scrubd::memory::{Pages, Source};
use cachewise_scrubd::pressure::Group;
use cachewise_scrubd::status::Status;
use cachewise_scrubd::zeroer::Method;
use cachewise_scrubd::{Settings, serve, systemd};
use memmap2::MmapMut;
use rustix::fd::AsFd as _;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PAGE: usize = 2 << 20;
/// Leased memory in all, and what the server and its neighbour may have together.
const SIZE: usize = 24 * PAGE;
const LIMIT: usize = 128 << 20;
/// Clients at a time.
const CLIENTS: usize = 4;
/// One in so many kills is the server's, in the first half of the leases: in the second one server has to stay small.
const SERVERS: u64 = 8;

fn child(what: &str, socket: &Path, group: Option<&Path>) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["as_a_process", "--exact", "--include-ignored", "--nocapture", "--quiet"]);
    command.env("CACHEWISE_TEST_CHILD", what).env("CACHEWISE_TEST_SOCKET", socket);
    command.env("CACHEWISE_TEST_GROUP", group.unwrap_or("".as_ref()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs")
}

#[test]
#[ignore = "a child: other tests start it"]
fn as_a_process() {
    let Ok(what) = std::env::var("CACHEWISE_TEST_CHILD") else { return };
    let of = |name| PathBuf::from(std::env::var_os(name).unwrap_or_default());
    let (socket, group) = (of("CACHEWISE_TEST_SOCKET"), of("CACHEWISE_TEST_GROUP"));
    if group.is_dir() {
        std::fs::write(group.join("cgroup.procs"), "0").expect("in the group");
    }
    match what.as_str() {
        "server" => server(&socket),
        "neighbour" => neighbour(),
        seed => client(&socket, seed.parse().expect("a number")),
    }
}

fn server(socket: &Path) {
    let (_stop, told) = UnixStream::pair().expect("a pair");
    let settings = Settings {
        socket: socket.to_owned(),
        size: SIZE as u64,
        keep: 2 * PAGE as u64,
        segment: Some(PAGE as u64),
        user_most: u64::MAX,
        mode: 0o600,
        group: None,
        pages: if Source::find(Pages::Auto).is_ok() { Pages::Auto } else { Pages::Small },
        method: Method::System,
        scrub: cachewise_pages::Scrub { cpu_share: 1.0, ..Default::default() },
        goes_first: true,
    };
    if let Err(error) = serve(settings, systemd::Passed::default(), told.as_fd(), &mut |_| {}) {
        eprintln!("a server: {error}");
        std::process::exit(1);
    }
}

/// Needs most of what the server has ready, lets go of it, and again; then leaves it alone until it takes memory again.
fn neighbour() {
    for time in 1.. {
        let memory = vec![1u8; LIMIT / 2];
        assert_eq!(std::hint::black_box(&memory)[LIMIT / 4], 1);
        println!("n");
        drop(memory);
        std::thread::sleep(Duration::from_millis(if time % 10 == 0 { 12_000 } else { 100 }));
    }
}

fn client(socket: &Path, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut held = Vec::new();
    loop {
        let bytes = PAGE * if random.u8(..) < 8 { 3 } else { 1 };
        let lease = match random.bool() {
            true => Lease::take(socket, bytes),
            false => Lease::take_path(socket, bytes),
        };
        let lease = match lease {
            Ok(lease) => lease,
            Err(LeaseError::Refused(_)) => {
                held.clear();
                continue;
            }
            // The server was ended just now.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(2));
                continue;
            }
        };
        let file = File::from(lease.into_file());
        // SAFETY: the file is this lease's, and nobody makes it shorter meanwhile.
        let mut map = unsafe { MmapMut::map_mut(&file) }.expect("memory");
        if map[0] != 0 || map[1..] != map[..map.len() - 1] {
            println!("stale");
            return;
        }
        println!("t");
        let byte = random.u8(1..);
        map.iter_mut().step_by(4096).for_each(|first| *first = byte);
        held.push((random.bool().then_some(file), map));
        while held.len() > random.usize(..3) {
            held.swap_remove(random.usize(..held.len()));
        }
    }
}

/// A folder without room, as `/run` may be; `None` where this user may mount nothing. It is seen by this thread and the
/// processes that it starts.
struct Full(PathBuf);

impl Full {
    fn new(folder: &Path) -> Option<Full> {
        use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
        // SAFETY: this thread alone has other mounts, and uses no file of them that it has open.
        let own = unsafe { libc::unshare(libc::CLONE_NEWNS) };
        let alone = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        (own == 0 && mount_change("/", alone).is_ok()).then_some(())?;
        mount("full", folder, "tmpfs", MountFlags::empty(), c"size=64k,nr_inodes=16").ok()?;
        let full = Full(folder.to_owned());
        std::fs::write(folder.join("fills"), vec![1; 128 << 10]).expect_err("room is left");
        Some(full)
    }

    /// Leaves no room for names either, while that is done.
    fn without_names(&self, done: impl FnOnce()) {
        let name = |number: u32| self.0.join(format!("name{number}"));
        let made = (0..16).take_while(|number| std::fs::File::create(name(*number)).is_ok());
        let made = made.count() as u32;
        done();
        (0..made).for_each(|number| std::fs::remove_file(name(number)).expect("made before"));
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

fn tell(processes: &[Child], signal: Signal) {
    processes.iter().for_each(|process| {
        let _ = kill_process(Pid::from_child(process), signal);
    });
}

fn status(socket: &Path) -> Option<Status> {
    serde_json::from_str(&lease::status(socket).ok()?).ok()
}

/// Bytes of a process's own memory: not those of files.
fn own_memory(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Counts the lines that a process says, until it ends.
fn count(out: impl std::io::Read, lines: &AtomicU64) {
    let mut out = std::io::BufReader::new(out);
    let (mut said, mut part) = (String::new(), [0; 4096]);
    while let Ok(read @ 1..) = out.read(&mut part) {
        said.push_str(&String::from_utf8_lossy(&part[..read]));
        assert!(!said.contains("stale"), "a stale byte");
        lines.fetch_add(said.matches('\n').count() as u64, Ordering::Relaxed);
        said.drain(..said.rfind('\n').map_or(0, |last| last + 1));
    }
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn nothing_is_lost_stale_or_grown() {
    let words = std::env::var("CACHEWISE_SOAK").unwrap_or("3000 60".into());
    let numbers: Vec<u64> = words.split(' ').map(|word| word.parse().expect("a number")).collect();
    let [leases, kills] = numbers[..] else { panic!("found {words:?}, accepted \"LEASES KILLS\"") };
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("socket");
    let group = Group::new("soak", LIMIT as u64).ok();
    let group_path = group.as_ref().map(|group| group.path.as_path());
    if group.is_none() {
        eprintln!("memory under pressure: SKIPPED, no control group can be made");
    }
    let full = Full::new(directory.path());
    if full.is_none() {
        eprintln!("a socket in a full folder: SKIPPED, nothing can be mounted");
    }
    let begun = Instant::now();
    let start_server = || {
        let server = child("server", &socket, group_path);
        let begun = Instant::now();
        while status(&socket).is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no server");
            std::thread::sleep(Duration::from_millis(2));
        }
        server
    };
    let (taken, needed, given_back) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let mut random = fastrand::Rng::with_seed(7);
    let (mut killed, mut seed, mut servers) = (0, 0, 0);
    let mut server = start_server();
    let (mut grown, mut paused) = (0, Duration::ZERO);
    let pause = std::env::var_os("CACHEWISE_SOAK_PAUSE").map(PathBuf::from);
    std::thread::scope(|scope| {
        let (taken, needed) = (&taken, &needed);
        let start = |seed: u64| {
            let mut client = child(&seed.to_string(), &socket, None);
            let out = client.stdout.take().expect("a pipe");
            scope.spawn(move || count(out, taken));
            client
        };
        let mut clients: Vec<_> = (0..CLIENTS as u64).map(|seed| start(1000 + seed)).collect();
        let mut neighbour = group_path.map(|group| {
            let mut neighbour = child("neighbour", &socket, Some(group));
            let out = neighbour.stdout.take().expect("a pipe");
            scope.spawn(move || count(out, needed));
            neighbour
        });
        let mut warm = None;
        while taken.load(Ordering::Relaxed) < leases || killed < kills {
            std::thread::sleep(Duration::from_millis(random.u64(..40)));
            if pause.as_ref().is_some_and(|path| path.exists()) {
                let all = |signal| {
                    tell(&clients, signal);
                    tell(neighbour.as_slice(), signal);
                };
                let begun = Instant::now();
                all(Signal::STOP);
                while pause.as_ref().is_some_and(|path| path.exists()) {
                    std::thread::sleep(Duration::from_secs(1));
                }
                all(Signal::CONT);
                paused += begun.elapsed();
            }
            if killed * leases > taken.load(Ordering::Relaxed) * kills {
                continue;
            }
            // The server's memory, from a while after its start.
            if status(&socket).is_some_and(|now| now.given > 200) {
                let own = own_memory(server.id());
                let first = *warm.get_or_insert(own);
                grown = grown.max(own.saturating_sub(first));
            }
            killed += 1;
            if killed % 500 == 0 {
                let taken = taken.load(Ordering::Relaxed);
                eprintln!("{taken} leases and {killed} kills after {:?}", begun.elapsed());
            }
            // While all clients are stopped, memory is ready, and goes back when the neighbour needs it.
            if killed % 500 == 30 {
                let given = || status(&socket).map_or(0, |now| now.given_back);
                tell(&clients, Signal::STOP);
                let (stopped, before) = (Instant::now(), given());
                while given() == before && stopped.elapsed() < Duration::from_secs(30) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                given_back.fetch_add(given() - before, Ordering::Relaxed);
                tell(&clients, Signal::CONT);
            }
            if killed % SERVERS == 0 && taken.load(Ordering::Relaxed) < leases.div_ceil(2) {
                servers += 1;
                server.kill().and_then(|()| server.wait()).expect("it ran");
                if let Some(full) = full.as_ref().filter(|_| servers == 1) {
                    full.without_names(|| {
                        let ended = child("server", &socket, group_path).wait().expect("it ran");
                        assert!(!ended.success(), "a server without a socket");
                    });
                }
                (server, warm) = (start_server(), None);
                continue;
            }
            let place = random.usize(..clients.len());
            if random.bool() {
                let id = Pid::from_child(&clients[place]);
                let _ = kill_process(id, Signal::STOP);
                std::thread::sleep(Duration::from_millis(random.u64(..20)));
            }
            let mut client = std::mem::replace(&mut clients[place], start(seed));
            seed += 1;
            client.kill().and_then(|()| client.wait()).expect("it ran");
        }
        for client in clients.iter_mut().chain(&mut neighbour) {
            assert!(client.try_wait().expect("ours").is_none(), "one was ended");
            client.kill().and_then(|()| client.wait()).expect("it ran");
        }
    });
    let took = (begun.elapsed() - paused).as_secs_f64();
    let begun = Instant::now();
    // All of it is back, and what was given up is taken again.
    while status(&socket).is_none_or(|now| now.ready != now.size) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", status(&socket));
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill().and_then(|()| server.wait()).expect("it ran");
    eprintln!(
        "{} leases in {took:.0} s, {:.0} a second, none stale or lost; {killed} kills, {servers} of them the server's; \
         a neighbour needed memory {} times, {} MiB given back; the server grew by {} KiB",
        taken.load(Ordering::Relaxed),
        taken.load(Ordering::Relaxed) as f64 / took,
        needed.load(Ordering::Relaxed),
        given_back.load(Ordering::Relaxed) >> 20,
        grown >> 10,
    );
    assert!(grown <= 1 << 20, "the server grew by {grown} bytes");
}
