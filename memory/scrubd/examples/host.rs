//! Figures of a host that is old, full and shared: what `docs/guide/scrubd.md` prints. Run it as root on a machine that
//! does nothing else: `cargo run --release -p cachewise-scrubd --example host -- old 17`, then `cost`, `load`,
//! `pressure`. Servers and clients are this program again.

use cachewise_pages::lease::{self, Lease};
use cachewise_scrubd::memory::Pages;
use cachewise_scrubd::pressure::Host;
use cachewise_scrubd::status::Status;
use cachewise_scrubd::zeroer::Method;
use cachewise_scrubd::{Settings, serve, systemd};
use memmap2::{Advice, MmapMut, MmapOptions};
use rustix::fd::AsFd as _;
use std::fs::{File, read_to_string, write};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().expect("a number");
    match words[..] {
        ["old", gib] => old(number(gib)),
        ["cost"] => cost(),
        ["load"] => load(),
        ["pressure"] => pressure(),
        // The processes.
        ["serve", size, segment, group] => server(number(size), number(segment), group.as_ref()),
        ["use", kind, bytes, passes, socket] => {
            user(kind, number(bytes), number(passes), socket.as_ref());
        }
        ["fragment", gib] => fragment(number(gib)),
        ["spin"] => spin(),
        ["take", bytes, piece, pause_ms, group] => {
            take(number(bytes), number(piece), number(pause_ms), group.as_ref());
        }
        ["watch", group] => watch(group.as_ref()),
        _ => eprintln!("found {words:?}, accepted old GIB, cost, load, pressure"),
    }
}

fn child(words: &[&str]) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("it runs")
}

fn line(child: &mut Child) -> String {
    let mut text = String::new();
    let mut out = BufReader::with_capacity(1, child.stdout.as_mut().expect("a pipe"));
    out.read_line(&mut text).expect("a line");
    text.trim().to_owned()
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|word| word.parse().unwrap_or_else(|_| panic!("{text}"))).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn shown(values: &[f64]) -> String {
    let [low, high] = [f64::min as fn(f64, f64) -> f64, f64::max]
        .map(|of| values.iter().copied().reduce(of).expect("values"));
    format!("{:.1} ({low:.1} .. {high:.1})", median(values.to_vec()))
}

// A server.

struct Server {
    child: Child,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start(size: usize, segment: usize, group: Option<&Path>) -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("socket");
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        command.args(["serve", &size.to_string(), &segment.to_string()]);
        command.arg(group.unwrap_or("-".as_ref())).env("HOST_SOCKET", &socket);
        let child = command.stdin(Stdio::piped()).spawn().expect("it runs");
        let server = Server { child, socket, _folder: folder };
        server.wait(|status| status.zeroing == 0 && status.ready != 0);
        server
    }

    fn status(&self) -> Option<Status> {
        serde_json::from_str(&lease::status(&self.socket).ok()?).ok()
    }

    fn wait(&self, until: impl Fn(&Status) -> bool) -> Duration {
        let begun = Instant::now();
        while self.status().as_ref().is_none_or(|status| !until(status)) {
            assert!(begun.elapsed() < Duration::from_secs(280), "{:?}", self.status());
            std::thread::sleep(Duration::from_millis(5));
        }
        begun.elapsed()
    }

    fn wait_until_full(&self) -> Duration {
        self.wait(|status| status.ready == status.size)
    }

    /// CPU seconds of all its threads.
    fn cpu(&self) -> f64 {
        self.status().expect("it serves").cpu_seconds
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn server(size: usize, segment: usize, group: &Path) {
    enter(group);
    let (mut stop, told) = UnixStream::pair().expect("a pair");
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        let _ = std::io::Write::write(&mut stop, b"x");
    });
    let settings = Settings {
        socket: std::env::var_os("HOST_SOCKET").expect("a path").into(),
        size: size as u64,
        keep: 0,
        segment: Some(segment as u64),
        user_most: u64::MAX,
        mode: 0o600,
        group: None,
        pages: Pages::Auto,
        method: Method::System,
        scrub: cachewise_pages::Scrub::default(),
        goes_first: true,
    };
    let tell = &mut |line: &str| eprintln!("# scrubd: {line}");
    serve(settings, systemd::Passed::default(), told.as_fd(), tell).expect("no error");
}

/// Has this process run in a control group.
fn enter(group: &Path) {
    if group.is_dir() {
        write(group.join("cgroup.procs"), "0").expect("in the group");
    }
}

// A client, or a process with memory of its own.

fn memory(kind: &str, bytes: usize, socket: &Path) -> MmapMut {
    if kind == "leased" {
        let file = File::from(Lease::take(socket, bytes).expect("a lease").into_file());
        // SAFETY: the file is this lease's, and nobody makes it shorter meanwhile.
        let map = unsafe { MmapMut::map_mut(&file) }.expect("memory");
        let _ = map.advise(Advice::HugePage);
        return map;
    }
    let map = MmapOptions::new().len(bytes).map_anon().expect("memory");
    map.advise(if kind == "huge" { Advice::HugePage } else { Advice::NoHugePage }).expect("advice");
    map
}

/// Prints ms until all is resident, the share of it in huge pages, and ms of the first pass.
fn user(kind: &str, bytes: usize, passes: usize, socket: &Path) {
    let begun = Instant::now();
    let mut map = memory(kind, bytes, socket);
    for at in (0..bytes).step_by(4096) {
        let place = map.as_mut_ptr().wrapping_add(at);
        // SAFETY: inside the mapping, which is this function's.
        unsafe { place.write_volatile(0) };
    }
    let resident = begun.elapsed();
    let then = Instant::now();
    for pass in 0..passes {
        map.fill(pass as u8);
        std::hint::black_box(&mut map);
    }
    let pass = then.elapsed();
    let huge = if passes < 2 { huge(&map) } else { 0.0 };
    println!("{:.3} {huge:.3} {:.1}", resident.as_secs_f64() * 1e3, pass.as_secs_f64() * 1e3);
}

fn huge(map: &MmapMut) -> f64 {
    let first = map.as_ptr().addr();
    let (mut inside, mut kib) = (false, 0.0);
    for line in read_to_string("/proc/self/smaps").expect("maps").lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or("");
        if let Some((from, to)) = name.split_once('-')
            && let (Ok(from), Ok(to)) =
                (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
        {
            inside = from <= first && first < to;
        } else if inside && ["AnonHugePages:", "ShmemPmdMapped:"].contains(&name) {
            kib += words.next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
        }
    }
    kib * 1024.0 / map.len() as f64
}

fn used(kind: &str, bytes: usize, passes: usize, socket: &Path) -> Vec<f64> {
    let socket = socket.to_string_lossy();
    let mut child = child(&["use", kind, &bytes.to_string(), &passes.to_string(), &socket]);
    let said = line(&mut child);
    child.wait().expect("it ended");
    numbers(&said)
}

// The old host.

/// Fragments free memory: takes most of it in small pages, gives all but one locked page of every 2 MiB back.
fn fragment(gib: usize) {
    let bytes = gib * GIB;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: memory of this process's own, wherever the system puts it.
    let map = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    assert_ne!(map, libc::MAP_FAILED);
    let at = |place: usize| map.wrapping_byte_add(place);
    // SAFETY: the mapping above.
    assert_eq!(unsafe { libc::madvise(map, bytes, libc::MADV_NOHUGEPAGE) }, 0);
    for place in (0..bytes).step_by(4096) {
        // SAFETY: inside the mapping above.
        unsafe { at(place).cast::<u8>().write_volatile(1) };
    }
    for place in (0..bytes).step_by(2 * MIB) {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::mlock(at(place), 4096) }, 0, "a locked page");
        let rest = at(place + 4096);
        // SAFETY: as above; nobody reads it again.
        assert_eq!(unsafe { libc::madvise(rest, 2 * MIB - 4096, libc::MADV_DONTNEED) }, 0);
    }
    println!("ready");
    let _ = std::io::stdin().read(&mut [0]);
}

fn old(gib: usize) {
    let bytes = 2 * GIB;
    let server = Server::start(bytes, bytes, None);
    let rows = |state: &str| {
        for kind in ["huge", "small", "leased"] {
            let mut found: [Vec<f64>; 3] = Default::default();
            for _ in 0..5 {
                let row = used(kind, bytes, 1, &server.socket);
                row.iter().zip(&mut found).for_each(|(value, all)| all.push(*value));
                server.wait_until_full();
            }
            let [resident, huge, pass] = found;
            println!(
                "{state}, {kind}: resident after {} ms, in huge pages {:.3}, first pass {} ms",
                shown(&resident),
                median(huge),
                shown(&pass)
            );
        }
    };
    println!("2 GiB in a new process, median (range of 5)");
    rows("as it was found");
    let setting = "/proc/sys/vm/compact_unevictable_allowed";
    let before = read_to_string(setting).unwrap_or_default();
    let _ = write(setting, "0");
    let mut holder = child(&["fragment", &gib.to_string()]);
    assert_eq!(line(&mut holder), "ready");
    println!(
        "# {}",
        read_to_string("/proc/buddyinfo").unwrap_or_default().trim().replace('\n', "; ")
    );
    rows("fragmented");
    drop(holder.stdin.take());
    holder.wait().expect("it ended");
    let _ = write(setting, before);
}

// Total cost.

/// Wall and CPU ms of one process after another, the server's included until all is ready again.
fn processes(kind: &str, number: usize, bytes: usize, server: &Server) -> (f64, f64) {
    server.wait_until_full();
    let (before, own, begun) = (server.cpu(), children_cpu(), Instant::now());
    for _ in 0..number {
        used(kind, bytes, 2, &server.socket);
    }
    let wall = begun.elapsed();
    server.wait_until_full();
    let asked = server.cpu() - before;
    (wall.as_secs_f64() * 1e3, (children_cpu() - own + asked) * 1e3)
}

/// CPU seconds of children that have ended.
fn children_cpu() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: a place for what is told.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    // SAFETY: zeros are a value of it, too.
    let usage = unsafe { usage.assume_init() };
    let of = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    of(usage.ru_utime) + of(usage.ru_stime)
}

fn cost() {
    let bytes = 512 * MIB;
    let server = Server::start(2 * GIB, bytes, None);
    // The server's own polling while it is waited for is of no process.
    println!(
        "start, writing all of 512 MiB twice, exit; ms, median (range of rounds); CPU with scrubd's"
    );
    for (number, rounds) in [(1, 9), (20, 3)] {
        let mut found: Vec<(&str, Vec<f64>, Vec<f64>)> =
            ["huge", "small", "leased"].map(|kind| (kind, Vec::new(), Vec::new())).into();
        for _ in 0..rounds {
            for (kind, wall, cpu) in &mut found {
                let (all, busy) = processes(kind, number, bytes, &server);
                wall.push(all / number as f64);
                cpu.push(busy / number as f64);
            }
        }
        for (kind, wall, cpu) in &found {
            println!(
                "{number} in turn, {kind}: wall {}, CPU {} a process",
                shown(wall),
                shown(cpu)
            );
        }
        let of = |place: usize| (median(found[place].1.clone()), median(found[place].2.clone()));
        for (place, (kind, ..)) in found.iter().enumerate().take(2) {
            let ((wall, cpu), (leased, all)) = (of(place), of(2));
            println!(
                "{number} in turn, leased / {kind}: wall {:.2}, CPU {:.2}",
                leased / wall,
                all / cpu
            );
        }
    }
}

// Under load.

fn spin() {
    let begun = Instant::now();
    let mut count = 0u64;
    println!("ready");
    while begun.elapsed() < Duration::from_secs(280) {
        count += 1;
        if count.is_multiple_of(1 << 16) && read_ends() {
            break;
        }
        std::hint::black_box(count);
    }
    println!("{}", count as f64 / begun.elapsed().as_secs_f64());
}

/// Returns whether the parent has closed our standard input.
fn read_ends() -> bool {
    let mut wait = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, in a place that is here.
    let ready = unsafe { libc::poll(&raw mut wait, 1, 0) };
    ready > 0
}

fn load() {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let server = Server::start(GIB, GIB, None);
    let spun = |take: bool| {
        let mut busy: Vec<_> = (0..2 * cpus).map(|_| child(&["spin"])).collect();
        busy.iter_mut().for_each(|one| assert_eq!(line(one), "ready"));
        std::thread::sleep(Duration::from_secs(2));
        let mut seconds = 0.0;
        if take {
            used("leased", GIB, 1, &server.socket);
            let begun = Instant::now();
            server.wait_until_full();
            seconds = begun.elapsed().as_secs_f64();
        } else {
            std::thread::sleep(Duration::from_secs(10));
        }
        busy.iter_mut().for_each(|one| drop(one.stdin.take()));
        let rate: f64 = busy.iter_mut().map(|one| numbers(&line(one))[0]).sum();
        busy.iter_mut().for_each(|one| drop(one.wait()));
        (seconds, rate)
    };
    let quiet: Vec<f64> = (0..3)
        .map(|_| {
            used("leased", GIB, 1, &server.socket);
            server.wait_until_full().as_secs_f64()
        })
        .collect();
    println!("1 GiB ready again on a quiet machine: {} s", shown(&quiet));
    for _ in 0..3 {
        let (_, alone) = spun(false);
        let (seconds, beside) = spun(true);
        println!(
            "{} busy threads on {cpus} CPUs: ready again after {seconds:.1} s; their speed beside it {:.3}",
            2 * cpus,
            beside / alone
        );
    }
}

// Under pressure.

struct Group(PathBuf);

impl Group {
    fn new(bytes: usize) -> Group {
        let root = Path::new("/sys/fs/cgroup");
        let old = root.join("memory/memory.limit_in_bytes").exists();
        let (folder, limit) = if old {
            (root.join("memory"), "memory.limit_in_bytes")
        } else {
            (root.to_owned(), "memory.max")
        };
        let group = Group(folder.join(format!("cachewise-host-{}", std::process::id())));
        std::fs::create_dir(&group.0).expect("a control group");
        write(group.0.join(limit), bytes.to_string()).expect("a limit");
        group
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..1000 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Takes memory in pieces, each written at once, and says how long it took; the killer's first choice.
fn take(bytes: usize, piece: usize, pause_ms: usize, group: &Path) {
    enter(group);
    let _ = write("/proc/self/oom_score_adj", "900");
    let begun = Instant::now();
    let mut all = Vec::new();
    for _ in 0..bytes / piece {
        all.push(vec![1u8; piece]);
        std::thread::sleep(Duration::from_millis(pause_ms as u64));
    }
    println!("{}", begun.elapsed().as_secs_f64() * 1e3);
    std::hint::black_box(all);
}

/// The longest time in ms in which less than the margin was available, looked at every 1/2 ms until told to end.
fn watch(group: &Path) {
    enter(group);
    let mut host = Host::new();
    println!("ready");
    let (mut since, mut longest) = (None::<Instant>, Duration::ZERO);
    while !read_ends() {
        if host.look().missing() == 0 {
            longest = longest.max(since.take().map_or(Duration::ZERO, |then| then.elapsed()));
        } else {
            since.get_or_insert_with(Instant::now);
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    println!("{}", longest.as_secs_f64() * 1e3);
}

fn pressure() {
    let mixes = [
        ("group of 600 MiB, 400 ready, a neighbour takes 300 at once", 600, 400, 300, 300, 0),
        ("the same, 10 MiB each 100 ms", 600, 400, 300, 10, 100),
        ("the same, 1 MiB each ms", 600, 400, 300, 1, 1),
        (
            "group of 2 GiB, 1800 MiB ready, a neighbour takes 1200 at once",
            2048,
            1800,
            1200,
            1200,
            0,
        ),
    ];
    for (what, limit, size, bytes, piece, pause) in mixes {
        let (mut killed, mut times, mut shortest) = (0, Vec::new(), Vec::new());
        for _ in 0..5 {
            let group = Group::new(limit * MIB);
            let server = Server::start(size * MIB, 50 * MIB, Some(&group.0));
            let shown = group.0.to_string_lossy().into_owned();
            let mut watcher = child(&["watch", &shown]);
            assert_eq!(line(&mut watcher), "ready");
            let [all, one, rest] =
                [bytes * MIB, piece * MIB, pause].map(|number| number.to_string());
            let mut neighbour = child(&["take", &all, &one, &rest, &shown]);
            let said = line(&mut neighbour);
            if neighbour.wait().expect("it ran").success() {
                times.push(numbers(&said)[0]);
            } else {
                killed += 1;
            }
            drop(watcher.stdin.take());
            shortest.push(numbers(&line(&mut watcher))[0]);
            watcher.wait().expect("it ended");
            drop(server);
        }
        let times = if times.is_empty() { "none".into() } else { shown(&times) };
        println!(
            "{what}: {killed} of 5 killed; it took {times} ms; below the margin for {} ms at most",
            shown(&shortest)
        );
    }
}
