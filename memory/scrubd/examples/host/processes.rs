//! The processes: this program again. One that changes the system ignores the terminal's signals, and undoes the change
//! when its standard input ends: whatever ends its parent, all is as before.

use cachewise_pages::lease::{self, Lease};
use cachewise_pages::{Pool, Scrub};
use cachewise_scrubd::memory::Pages;
use cachewise_scrubd::pressure::{Group, Host};
use cachewise_scrubd::status::Status;
use cachewise_scrubd::zeroer::Method;
use cachewise_scrubd::{Settings, serve, systemd};
use memmap2::{Advice, MmapMut, MmapOptions};
use rustix::fd::{AsFd as _, AsRawFd as _};
use std::fs::{File, read_to_string, write};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const MIB: usize = 1 << 20;
pub const GIB: usize = 1 << 30;
const HUGE: usize = 2 * MIB;
/// Memory that stays available to others while free memory is fragmented.
const SPARE: u64 = 5 << 30;

/// Does what a process is started for; false if that is none of them.
pub fn run(words: &[&str]) -> bool {
    let number = |text: &str| text.parse::<usize>().expect("a number");
    match *words {
        ["serve", method, size, segment, keep, group] => {
            let method = if method == "around" { Method::Around } else { Method::System };
            serves(method, [size, segment, keep].map(number), group.as_ref());
        }
        ["use", kind, bytes, passes, socket] => {
            uses(kind, number(bytes), number(passes), socket.as_ref());
        }
        ["fork", kind, bytes, socket] => forks(kind, number(bytes), socket.as_ref()),
        ["with-lease", bytes, socket, ref program @ ..] => {
            with_lease(number(bytes), socket.as_ref(), program);
        }
        ["fragment", gib] => fragment(number(gib)),
        ["set", path, value] => {
            let _changed = Changed::set(path, value);
            say_and_wait(read_to_string(path).unwrap_or_default().trim());
        }
        ["group", mib] => group(number(mib)),
        ["spin"] => spin(),
        ["take", bytes, piece, pause_ms, group] => {
            take([bytes, piece, pause_ms].map(number), group.as_ref());
        }
        ["watch", group] => watch(group.as_ref()),
        _ => return false,
    }
    true
}

/// A process of this program, and its end with this value.
pub struct Process(pub Child);

impl Process {
    pub fn start(words: &[&str]) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        Process::of(command.args(words))
    }

    pub fn of(command: &mut Command) -> Process {
        Process(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs"))
    }

    /// Its next line; empty at the end.
    pub fn line(&mut self) -> String {
        let mut text = String::new();
        let mut out = BufReader::with_capacity(1, self.0.stdout.as_mut().expect("a pipe"));
        out.read_line(&mut text).expect("a line");
        text.trim().to_owned()
    }

    pub fn numbers(&mut self) -> Vec<f64> {
        let text = self.line();
        let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("found {text:?}"));
        text.split_whitespace().map(number).collect()
    }

    /// Tells it to end.
    pub fn stop(&mut self) {
        drop(self.0.stdin.take());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
        let _ = self.0.wait();
    }
}

/// Says that what it is started for is there, and waits for the parent's end.
fn say_and_wait(text: &str) {
    println!("{text}");
    let _ = std::io::stdin().read(&mut [0]);
}

/// Has the terminal's signals ignored: the end of standard input is this process's end.
fn ends_with_its_parent() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: no handler, thus no code that would run in one.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// A setting of the system's that is as before when this value goes.
struct Changed<'a>(&'a str, String);

impl Changed<'_> {
    fn set<'a>(path: &'a str, value: &str) -> Changed<'a> {
        ends_with_its_parent();
        let before = read_to_string(path).unwrap_or_default();
        let _ = write(path, value);
        Changed(path, before)
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        let _ = write(self.0, &self.1);
    }
}

// A server.

pub struct Server {
    _process: Process,
    pub socket: PathBuf,
}

impl Server {
    /// A server with the system's memory or a control group's, which has all that it can get.
    pub fn start(sizes: [usize; 3], group: &str) -> Server {
        Server::of("system", sizes, group)
    }

    /// A server that zeroes in place, for one user.
    pub fn in_place(sizes: [usize; 3]) -> Server {
        Server::of("around", sizes, "-")
    }

    fn of(method: &str, sizes: [usize; 3], group: &str) -> Server {
        let [size, segment, keep] = sizes.map(|bytes| bytes.to_string());
        let mut process = Process::start(&["serve", method, &size, &segment, &keep, group]);
        let socket = PathBuf::from(process.line());
        assert!(!socket.as_os_str().is_empty(), "no server");
        let server = Server { _process: process, socket };
        server.wait(|status| status.zeroing == 0 && status.ready != 0);
        server
    }

    /// The figures; `None` while it does not serve yet.
    pub fn status(&self) -> Option<Status> {
        serde_json::from_str(&lease::status(&self.socket).ok()?).ok()
    }

    /// The figures once they are so.
    pub fn wait(&self, until: impl Fn(&Status) -> bool) -> Status {
        let begun = Instant::now();
        loop {
            let status = self.status();
            if let Some(status) = status.filter(|status| until(status)) {
                return status;
            }
            assert!(begun.elapsed() < Duration::from_secs(280), "{:?}", self.status());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn wait_until_full(&self) -> Status {
        self.wait(|status| status.ready == status.size)
    }
}

fn serves(method: Method, [size, segment, keep]: [usize; 3], group: &Path) {
    ends_with_its_parent();
    enter(group);
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    println!("{}", socket.display());
    let (mut stop, told) = UnixStream::pair().expect("a pair");
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        let _ = stop.write_all(b"x");
    });
    let settings = Settings {
        socket,
        size: size as u64,
        keep: keep as u64,
        segment: Some(segment as u64),
        user_most: u64::MAX,
        mode: 0o600,
        group: None,
        pages: Pages::Auto,
        method,
        scrub: Scrub::default(),
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
    if kind.starts_with("leased") {
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

/// Prints ms until all is resident, ms of the passes, each of which writes all, and the share of memory in huge pages.
fn uses(kind: &str, bytes: usize, passes: usize, socket: &Path) {
    let begun = Instant::now();
    let mut map = memory(kind, bytes, socket);
    map.advise(Advice::PopulateWrite).expect("resident");
    let resident = begun.elapsed();
    let then = Instant::now();
    for pass in 0..passes {
        map.fill(pass as u8);
        std::hint::black_box(&mut map);
    }
    let written = then.elapsed();
    let huge = if passes < 2 { huge(&map) } else { f64::NAN };
    println!("{} {} {huge}", resident.as_secs_f64() * 1e3, written.as_secs_f64() * 1e3);
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

/// Has a program run in this process's place, with a lease as `{path}`.
fn with_lease(bytes: usize, socket: &Path, program: &[&str]) {
    let lease = Lease::take_path(socket, bytes).expect("a lease");
    rustix::io::fcntl_setfd(&lease, rustix::io::FdFlags::empty()).expect("passed on");
    let path = format!("/proc/self/fd/{}", lease.as_fd().as_raw_fd());
    let words = program[1..].iter().map(|word| word.replace("{path}", &path));
    panic!("{}: {}", program[0], Command::new(program[0]).args(words).exec());
}

/// A process with so much in use forks; the child writes all of it. Prints ms of the fork, ms of the child's writing, MiB
/// that the child has alone before it writes, and the status that it ended with.
fn forks(kind: &str, bytes: usize, socket: &Path) {
    let mut pool = None;
    let mut map = None;
    let of_pool = |builder: cachewise_pages::Builder| {
        let scrub = Scrub { enabled: false, ..Scrub::default() };
        builder.capacity(bytes + bytes / 2).scrub(scrub).build().expect("a pool")
    };
    match kind {
        "pool, leased" => pool = Some(of_pool(Pool::builder().leased(socket))),
        "pool, private" => pool = Some(of_pool(Pool::builder())),
        _ => map = Some(memory("huge", bytes, socket)),
    }
    let mut blocks: Vec<_> = pool
        .iter()
        .flat_map(|pool| (0..bytes / HUGE).map(|_| pool.alloc_bytes(HUGE).expect("room")))
        .collect();
    if let Some(pool) = &pool {
        assert!(pool.notes().is_empty(), "{:?}", pool.notes());
    }
    blocks.iter_mut().for_each(|block| block.fill(7));
    map.iter_mut().for_each(|map| map.fill(7));
    let (mut own, mut childs) = UnixStream::pair().expect("a pair");
    let begun = Instant::now();
    // SAFETY: the child uses the pool, which is made for it, reads files, and leaves without destructors.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no process to be had");
    if child == 0 {
        let alone = private();
        let then = Instant::now();
        let mut well = true;
        let all = blocks
            .iter_mut()
            .map(|block| &mut block[..])
            .chain(map.iter_mut().map(|map| &mut map[..]));
        for part in all {
            well &= part.iter().step_by(4096).all(|byte| *byte == 7);
            part.fill(9);
        }
        let text = format!("{} {alone} {}", then.elapsed().as_secs_f64() * 1e3, u8::from(well));
        let _ = childs.write_all(text.as_bytes());
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(0) };
    }
    let forked = begun.elapsed().as_secs_f64() * 1e3;
    drop(childs);
    let (mut said, mut status) = (String::new(), 0);
    own.read_to_string(&mut said).expect("the child's words");
    // SAFETY: a child of this process, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    let same = blocks.iter().map(|block| &block[..]).chain(map.iter().map(|map| &map[..]));
    let same = same.flat_map(|part| part.iter().step_by(4096)).all(|byte| *byte == 7);
    println!("{forked} {said} {} {status}", u8::from(same));
}

/// MiB of this process's alone.
fn private() -> f64 {
    let text = read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let mine = text.lines().filter(|line| line.starts_with("Private_"));
    let kib = mine.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.sum::<f64>() / 1024.0
}

// A host that is old.

/// Fragments free memory: takes so much in small pages, gives all but one locked page of every 2 MiB back, and holds what is
/// still whole. Says how many 2 MiB are whole at the end.
fn fragment(gib: usize) {
    // A killer's first choice, and no other's.
    let _ = write("/proc/self/oom_score_adj", "1000");
    let _changed = Changed::set("/proc/sys/vm/compact_unevictable_allowed", "0");
    let bytes = gib * GIB;
    let mut map = memory("small", bytes, Path::new(""));
    // The parent may end at any time: then all goes.
    for place in (0..bytes).step_by(64 * MIB) {
        if read_ends() {
            return;
        }
        map.advise_range(Advice::PopulateWrite, place, 64 * MIB).expect("resident");
    }
    for place in (0..bytes).step_by(HUGE) {
        if read_ends() {
            return;
        }
        rustix::io::retry_on_intr(|| {
            // SAFETY: inside the mapping above.
            unsafe { rustix::mm::mlock(map.as_mut_ptr().wrapping_add(place).cast(), 4096) }
        })
        .expect("a locked page");
        // SAFETY: as above; nobody reads it again.
        unsafe {
            map.unchecked_advise_range(
                memmap2::UncheckedAdvice::DontNeed,
                place + 4096,
                HUGE - 4096,
            )
        }
        .expect("given back");
    }
    let mut host = Host::new();
    let most = host.look().whole as usize;
    let mut whole = MmapOptions::new().len(most).no_reserve_swap().map_anon().expect("memory");
    whole.advise(Advice::HugePage).expect("advice");
    let mut places = (0..most).step_by(HUGE);
    while whole_blocks() > 16 && host.look().available > SPARE && !read_ends() {
        let some = places.by_ref().take(16);
        let taken = some.map(|place| whole[place] = 1).count();
        if taken == 0 {
            break;
        }
    }
    say_and_wait(&whole_blocks().to_string());
}

/// The number of free blocks of 2 MiB that are whole, larger ones counted as several.
fn whole_blocks() -> u64 {
    let text = read_to_string("/proc/buddyinfo").unwrap_or_default();
    let of = |line: &str| {
        let counts = line.split_whitespace().skip(4).enumerate();
        let count = |(order, word): (usize, &str)| {
            let number = word.parse::<u64>().unwrap_or(0);
            if order < 9 { 0 } else { number << (order - 9) }
        };
        counts.map(count).sum::<u64>()
    };
    text.lines().filter(|line| !line.contains("zone      DMA ")).map(of).sum()
}

// A host that is shared.

/// Computes until it is told to end, and says how fast.
fn spin() {
    let begun = Instant::now();
    let mut count = 0u64;
    println!("ready");
    while !count.is_multiple_of(1 << 16) || !read_ends() {
        count += 1;
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

/// Makes a control group, says where, and removes it at the end.
fn group(mib: usize) {
    ends_with_its_parent();
    match Group::new("host", (mib * MIB) as u64) {
        Ok(group) => say_and_wait(&format!("{} {}", group.version, group.path.display())),
        Err(error) => println!("0 {error}"),
    }
}

/// Takes memory in pieces, each written at once, and says how many ms it took; the killer's first choice.
fn take([bytes, piece, pause_ms]: [usize; 3], group: &Path) {
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

/// Says the longest time in ms in which less than the margin was available, looked at every 1/2 ms until told to end.
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
    longest = longest.max(since.map_or(Duration::ZERO, |then| then.elapsed()));
    println!("{}", longest.as_secs_f64() * 1e3);
}
