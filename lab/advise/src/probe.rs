//! Asks a program that runs with `libcachewise_probe.so` (`lib/probe`, which says how) for what its allocators hold, and has it
//! give memory back.

#[path = "../../../lib/probe/src/control.rs"]
mod control;

use control::{Control, SIGNAL, TEXT, VARIABLE, kind};
use memmap2::MmapRaw;
use object::read::{Object as _, ObjectSymbol as _, ReadCache, ReadRef};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// Its name among the libraries that the command carries.
pub const LIBRARY: &str = "libcachewise_probe.so";
/// A question is given up after so long: the copy takes a second at most, and copying what a program holds takes time.
const PATIENCE: Duration = Duration::from_secs(10);
/// Tries of a question whose copy meets a lock that is held, and the milliseconds that the first copy may take:
/// each next one may take twice as many.
const TRIES: u32 = 6;
const FIRST: u32 = 40;
/// Files of fewer bytes are read as a whole.
const READ_WHOLE: u64 = 256 << 20;
/// Threads that are tried for one that waits.
const TRIED: usize = 16;
/// Threads beside the first that are asked for a heap of their own, at most.
const THREADS: usize = 64;
/// The system calls in which a thread waits for others, and holds no lock of an allocator.
const WAITS: [i64; 28] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_flock,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_msgrcv,
    libc::SYS_semtimedop,
    libc::SYS_mq_timedreceive,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_futex,
];
#[cfg(target_arch = "x86_64")]
const OLD_WAITS: [i64; 4] =
    [libc::SYS_epoll_wait, libc::SYS_poll, libc::SYS_select, libc::SYS_pause];
#[cfg(not(target_arch = "x86_64"))]
const OLD_WAITS: [i64; 0] = [];

/// Answer of one allocator of a process, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// glibc: of each arena what it has of the system and what of it is free, the main one first; and large blocks.
    Glibc {
        /// Bytes of the system, and those of them that are free.
        arenas: Vec<[u64; 2]>,
        /// Bytes in blocks of their own.
        mapped: u64,
    },
    /// Another one, by its name: what the program has of it, and what it has of the system.
    Other {
        /// Its name.
        name: String,
        /// Bytes in blocks.
        live: u64,
        /// Bytes of the system.
        whole: u64,
    },
    /// One that does not say: why.
    Silent(String),
}

impl Said {
    fn why(self) -> Option<String> {
        match self {
            Said::Silent(why) => Some(why),
            _ => None,
        }
    }
}

/// A call that gave memory back.
#[derive(Clone, Debug, PartialEq)]
pub struct Trimmed {
    /// Name of the allocator.
    pub name: String,
    /// Bytes that it returned.
    pub returned: u64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// A function of an allocator in a file.
#[derive(Clone, Debug)]
struct Found {
    kind: u32,
    name: String,
    /// Addresses of what is called, as the file has them; and for giving back.
    asks: [u64; 3],
    trims: u64,
}

/// The asker's side of the file.
pub struct Probe {
    path: PathBuf,
    shared: MmapRaw,
    number: u32,
    /// Tries of a question; fewer where it will be asked again soon.
    pub tries: u32,
    /// Findings in a file, by device and number.
    files: BTreeMap<(u64, u64), Vec<Found>>,
}

impl Probe {
    /// A new file in a directory of the caller's own.
    ///
    /// # Errors
    /// The file cannot be made or mapped.
    pub fn new(directory: &Path) -> io::Result<Probe> {
        let path = directory.join("probe");
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        let file = std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600).open(&path)?;
        file.set_len(size_of::<Control>() as u64)?;
        let shared = MmapRaw::map_raw(&file)?;
        let (path, files) = (path.canonicalize()?, BTreeMap::new());
        Ok(Probe { path, shared, number: 0, tries: TRIES, files })
    }

    /// The variables by which a program has the probe; the caller's preloads stand before it.
    pub fn variables(&self, library: &Path) -> [(&'static str, OsString); 2] {
        let mut preload = std::env::var_os("LD_PRELOAD").filter(|own| !own.is_empty());
        let list = preload.get_or_insert_default();
        if !list.is_empty() {
            list.push(":");
        }
        list.push(library);
        [("LD_PRELOAD", list.clone()), (VARIABLE, self.path.clone().into_os_string())]
    }

    fn control(&self) -> &Control {
        // SAFETY: mapped with this length as long as `self` is; all fields are atomic but the text, which is copied out.
        unsafe { &*self.shared.as_ptr().cast::<Control>() }
    }

    /// Memory that the allocators of a process hold, or why it cannot be asked.
    ///
    /// # Errors
    /// A reason for the reader.
    pub fn ask(&mut self, process: i32) -> Result<Vec<Said>, String> {
        let (asked, found) = self.prepared(process)?;
        let said = |one: &Found| match self.of_one(&asked, one) {
            Ok(said) => said,
            Err(why) => Said::Silent(format!("{}: {why}", one.name)),
        };
        let said: Vec<Said> = found.iter().map(said).collect();
        // With one answer the others' silence is a part; without any it is all.
        match said.iter().all(|one| matches!(one, Said::Silent(_))) {
            true => Err(said.into_iter().find_map(Said::why).unwrap_or_default()),
            false => Ok(said),
        }
    }

    /// Answer of one allocator.
    fn of_one(&mut self, asked: &Asked, one: &Found) -> Result<Said, String> {
        let numbers = self.asked(asked, &asked.threads[0], one, false)?;
        let mut said = self.read(one, numbers)?;
        // Each thread has its heap.
        if let (kind::MIMALLOC, Said::Other { live, whole, .. }) = (one.kind, &mut said) {
            for thread in asked.threads[1..].iter().take(THREADS) {
                let [used, committed, _] = self.asked(asked, thread, one, false)?;
                (*live, *whole) = (*live + used, *whole + committed);
            }
        }
        Ok(said)
    }

    /// Has the allocators of a process give back what they can.
    ///
    /// # Errors
    /// A reason for the reader; memory may have been given back by some of them.
    pub fn trim(&mut self, process: i32) -> Result<Vec<Trimmed>, String> {
        let (asked, mut found) = self.prepared(process)?;
        found.retain(|one| one.trims != 0);
        let mut all = Vec::new();
        for one in &found {
            let mut done = Err("each of its threads is at work".to_owned());
            for thread in asked.threads.iter().take(TRIED) {
                done = self.asked(&asked, thread, one, true);
                if done.is_ok() {
                    break;
                }
            }
            let done = done.map_err(|why| format!("{}: {why}", one.name))?;
            let [returned, nanoseconds, _] = done;
            let name = one.name.clone();
            all.push(Trimmed { name, returned, seconds: nanoseconds as f64 * 1e-9 });
        }
        Ok(all)
    }

    /// Everything that a question needs, or why there is none.
    fn prepared(&mut self, process: i32) -> Result<(Asked, Vec<Found>), String> {
        let place = PathBuf::from(format!("/proc/{process}"));
        let text = |name: &str| fs::read_to_string(place.join(name)).map_err(|_| GONE.to_owned());
        let (status, maps) = (text("status")?, text("maps")?);
        if !maps.lines().any(|line| line.ends_with(&*self.path.to_string_lossy())) {
            return Err(self.unreached(&place, &maps));
        }
        if field(&status, "Seccomp").is_some_and(|mode| mode != "0") {
            return Err("it runs under a seccomp filter".to_owned());
        }
        let has = |name: &str, status: &str| {
            let set = field(status, name).and_then(|set| u64::from_str_radix(set, 16).ok());
            set.is_some_and(|set| set >> (SIGNAL - 1) & 1 == 1)
        };
        if !has("SigCgt", &status) {
            return Err(format!("it takes signal {SIGNAL} for itself"));
        }
        let innermost = |status: &str| {
            let last = field(status, "NSpid").and_then(|all| all.split_whitespace().last());
            last.and_then(|last| last.parse::<i32>().ok())
        };
        let mut threads = Vec::new();
        for task in fs::read_dir(place.join("task")).map_err(|_| GONE.to_owned())?.flatten() {
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let outer = task.file_name().to_string_lossy().parse().ok();
            if let (Some(outer), Some(inner), false) =
                (outer, innermost(&status), has("SigBlk", &status))
            {
                threads.push(Thread { outer, inner });
            }
        }
        threads.sort_by_key(|thread| thread.outer != process);
        let inner = innermost(&status).ok_or(GONE)?;
        if threads.is_empty() {
            return Err(format!("its threads block signal {SIGNAL}"));
        }
        let found = self.found(&place, &maps);
        if found.is_empty() {
            return Err("no allocator with symbols is mapped".to_owned());
        }
        Ok((Asked { outer: process, inner, threads }, found))
    }

    /// Why the probe is not in a process.
    fn unreached(&self, place: &Path, maps: &str) -> String {
        let has = |name: &str| maps.contains(name);
        let program = fs::read_link(place.join("exe")).unwrap_or_default();
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match () {
            () if has("/ld-musl") => format!("{name} has musl, which says nothing"),
            () if !has("/ld-linux") && !has("/ld64.so") => format!("{name} is linked statically"),
            () => format!("the probe did not reach {name}"),
        }
    }

    /// The functions in all files that a process has mapped, by their addresses there.
    fn found(&mut self, place: &Path, maps: &str) -> Vec<Found> {
        let mut bases: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for line in maps.lines() {
            let (Some(at), mut fields) = (line.find('/'), line.split_whitespace()) else {
                continue;
            };
            let range = fields.next().and_then(|range| range.split_once('-'));
            let first = range.and_then(|(from, _)| u64::from_str_radix(from, 16).ok());
            let inode = fields.nth(3).and_then(|inode| inode.parse().ok());
            let (Some(first), Some(inode)) = (first, inode) else { continue };
            bases.entry(&line[at..]).or_insert((first, inode));
        }
        let mut all: Vec<Found> = Vec::new();
        for (path, (base, inode)) in bases {
            let file = place.join("root").join(path.trim_start_matches('/'));
            let Ok(about) = fs::metadata(&file) else { continue };
            if about.ino() != inode || !about.is_file() {
                continue;
            }
            let key = (about.dev(), inode);
            let of_file =
                self.files.entry(key).or_insert_with(|| in_file(&file).unwrap_or_default());
            all.extend(of_file.iter().cloned().map(|mut one| {
                let there = |address: &mut u64| *address += if *address == 0 { 0 } else { base };
                one.asks.iter_mut().for_each(there);
                there(&mut one.trims);
                one
            }));
        }
        all
    }

    /// One question, until a copy comes to its end.
    fn asked(
        &mut self,
        asked: &Asked,
        thread: &Thread,
        function: &Found,
        trims: bool,
    ) -> Result<[u64; 3], String> {
        let mut why = String::new();
        for again in 0..self.tries {
            std::thread::sleep(Duration::from_millis(10 * u64::from(again)));
            self.control().patience.store(FIRST << again, Relaxed);
            match self.once(asked, thread, function, trims)? {
                Ok(numbers) => return Ok(numbers),
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }

    /// Asks once: the inner error is one that may pass.
    fn once(
        &mut self,
        asked: &Asked,
        thread: &Thread,
        function: &Found,
        trims: bool,
    ) -> Result<Result<[u64; 3], String>, String> {
        self.number += 1;
        let number = self.number;
        let control = self.control();
        control.process.store(asked.inner, Relaxed);
        control.thread.store(thread.inner, Relaxed);
        let line =
            fs::read_to_string(format!("/proc/{}/task/{}/syscall", asked.outer, thread.outer));
        let call = line.ok().and_then(|line| seen_in(&line)).unwrap_or([0; 9]);
        if trims && !waits(call[0]) {
            return Ok(Err("each of its threads is at work".to_owned()));
        }
        let places = control.call.registers.iter().chain([&control.call.stack, &control.call.at]);
        places.zip(call).for_each(|(place, value)| place.store(value, Relaxed));
        let (of, addresses) = match trims {
            true => (kind::TRIM + function.kind, [function.trims, 0, 0]),
            false => (function.kind, function.asks),
        };
        control.kind.store(of, Relaxed);
        control.addresses.iter().zip(addresses).for_each(|(to, from)| to.store(from, Relaxed));
        control.asked.store(number, Release);
        // SAFETY: a signal that the probe in that process takes, by what it has mapped and catches.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, asked.outer, thread.outer, SIGNAL) };
        if sent != 0 {
            return Err(io::Error::last_os_error().to_string());
        }
        let begun = Instant::now();
        while control.answered.load(Acquire) != number {
            let is_gone =
                !Path::new(&format!("/proc/{}/task/{}", asked.outer, thread.outer)).exists();
            if is_gone || begun.elapsed() > PATIENCE {
                return Err(if is_gone { GONE } else { "it did not answer" }.to_owned());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let ended = control.ended.load(Relaxed);
        if ended < 0 {
            let error = io::Error::from_raw_os_error(-ended);
            return Err(format!("no copy of it could be made: {error}"));
        }
        if ended == 0 && control.refused.load(Relaxed) == 1 {
            return Err("it was built without statistics".to_owned());
        }
        if ended != 0 {
            return Ok(Err("a lock that it needs is held".to_owned()));
        }
        if trims && control.waited.load(Relaxed) != 1 {
            return Ok(Err("each of its threads is at work".to_owned()));
        }
        Ok(Ok(control.numbers.each_ref().map(|one| one.load(Relaxed))))
    }

    /// An answer by what was asked.
    fn read(&self, one: &Found, numbers: [u64; 3]) -> Result<Said, String> {
        let [first, second, third] = numbers;
        let name = one.name.clone();
        let other = |live: u64, whole: u64| Said::Other { name: name.clone(), live, whole };
        let said = match one.kind {
            kind::JEMALLOC => Some(other(first.saturating_sub(third), second)),
            kind::MIMALLOC => Some(other(first, second)),
            kind::TCMALLOC => Some(other(first, second.saturating_sub(third))),
            kind::GLIBC => of_glibc(&self.text(first)),
            _ => of_python(&self.text(first)).map(|(live, whole)| other(live, whole)),
        };
        said.ok_or_else(|| format!("{name}: an answer of another form"))
    }

    fn text(&self, length: u64) -> String {
        let mut bytes = vec![0u8; length.min(TEXT as u64) as usize];
        let place = self.control().text.get().cast::<u8>();
        // SAFETY: as long as the vector, and inside of the text; the question is answered, so that nobody writes.
        unsafe { std::ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), bytes.len()) };
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

const GONE: &str = "it has ended";

/// A process by its numbers here and in its own namespace, and its threads, the first one first.
struct Asked {
    outer: i32,
    inner: i32,
    threads: Vec<Thread>,
}

struct Thread {
    outer: i32,
    inner: i32,
}

/// The value behind a name in `/proc/PID/status`.
fn field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(str::trim)
}

/// A line of `/proc/PID/task/TID/syscall`: number, six arguments, stack pointer, place; none of a thread that runs.
fn seen_in(line: &str) -> Option<[u64; 9]> {
    let mut words = line.split_whitespace();
    let number = words.next()?.parse::<u64>().ok()?;
    let mut call = [number; 9];
    for place in &mut call[1..] {
        *place = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some(call)
}

fn waits(number: u64) -> bool {
    WAITS.iter().chain(&OLD_WAITS).any(|one| *one == number as i64)
}

/// The allocators with symbols in an ELF file; none in a file of another kind.
fn in_file(path: &Path) -> Option<Vec<Found>> {
    let file = File::open(path).ok()?;
    // The cache reads each symbol's name by itself: seconds for the 400,000 of Node.
    match file.metadata().ok()?.len() {
        ..READ_WHOLE => of_symbols(fs::read(path).ok()?.as_slice()),
        _ => of_symbols(&ReadCache::new(file)),
    }
}

/// Functions by the symbols of a file.
fn of_symbols<'d, R: ReadRef<'d>>(data: R) -> Option<Vec<Found>> {
    let file = object::File::parse(data).ok()?;
    let mut symbols: BTreeMap<String, u64> = BTreeMap::new();
    for symbol in file.dynamic_symbols().chain(file.symbols()) {
        let name = symbol.name().unwrap_or_default();
        if symbol.is_definition() && is_asked(name) {
            let name = name.split('@').next().unwrap_or(name);
            symbols.entry(name.to_owned()).or_insert(symbol.address());
        }
    }
    // Where an address of the file lies is its distance from the first one that is mapped.
    let first = first_address(&file);
    let at = |name: &str| symbols.get(name).map_or(0, |address| address.wrapping_sub(first));
    let mut found: Vec<Found> = Vec::new();
    let mut one = |kind: u32, name: String, asks: [u64; 3], needed: usize, trims: u64| {
        if asks[..needed].iter().all(|address| *address != 0)
            && !found.iter().any(|other| other.asks == asks)
        {
            found.push(Found { kind, name, asks, trims });
        }
    };
    one(kind::GLIBC, "glibc".to_owned(), [at("malloc_info"), 0, 0], 1, at("malloc_trim"));
    for name in symbols.keys().filter(|name| name.ends_with("mallctl")) {
        let prefix = name.trim_end_matches("mallctl");
        let called = if prefix.is_empty() { String::new() } else { format!(" ({prefix})") };
        one(kind::JEMALLOC, format!("jemalloc{called}"), [at(name), 0, 0], 1, at(name));
    }
    let asks = [at("mi_heap_visit_blocks"), at("mi_heap_get_default"), at("mi_collect")];
    one(kind::MIMALLOC, "mimalloc".to_owned(), asks, 3, at("mi_collect"));
    let asks = [at("MallocExtension_GetNumericProperty"), 0, 0];
    one(kind::TCMALLOC, "tcmalloc".to_owned(), asks, 1, at("MallocExtension_ReleaseFreeMemory"));
    let asks = [at("_PyObject_DebugMallocStats"), at("PyGILState_Ensure"), 0];
    one(kind::PYTHON, "Python".to_owned(), asks, 2, 0);
    Some(found)
}

fn is_asked(name: &str) -> bool {
    let name = name.split('@').next().unwrap_or(name);
    name == "mallctl"
        || name.ends_with("_mallctl")
        || [
            "malloc_info",
            "malloc_trim",
            "mi_heap_visit_blocks",
            "mi_heap_get_default",
            "mi_collect",
            "MallocExtension_GetNumericProperty",
            "MallocExtension_ReleaseFreeMemory",
            "_PyObject_DebugMallocStats",
            "PyGILState_Ensure",
        ]
        .contains(&name)
}

/// The page of the first segment that is loaded.
fn first_address<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> u64 {
    use object::ObjectSegment as _;
    let first = file.segments().map(|segment| segment.address()).min().unwrap_or(0);
    first & !(rustix::param::page_size() as u64 - 1)
}

/// Output of `malloc_info` (mallinfo(3), malloc_info(3)).
fn of_glibc(text: &str) -> Option<Said> {
    let (heaps, totals) = text.rsplit_once("</heap>")?;
    let sized = |text: &str, what: &str| {
        let at = text.rfind(what)?;
        let size = text[at..].split_once("size=\"")?.1.split_once('"')?.0;
        size.parse::<u64>().ok()
    };
    let arena = |heap: &str| {
        let [fast, rest] =
            ["<total type=\"fast\"", "<total type=\"rest\""].map(|what| sized(heap, what));
        Some([sized(heap, "<system type=\"current\"")?, fast? + rest?])
    };
    let arenas = heaps.split("<heap nr=").skip(1).map(arena).collect::<Option<Vec<_>>>()?;
    Some(Said::Glibc { arenas, mapped: sized(totals, "<total type=\"mmap\"").unwrap_or(0) })
}

/// Output of Python: bytes in blocks that live, and in its arenas; zeros of one that has none.
fn of_python(text: &str) -> Option<(u64, u64)> {
    let number = |line: &str| {
        let digits: String =
            line.rsplit_once('=')?.1.chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()
    };
    let line = |part: &str| text.lines().find(|line| line.contains(part)).and_then(number);
    Some((line("# bytes in allocated blocks")?, line(" bytes/arena")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let text = "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n  <size from=\"1\" to=\"9\" total=\"9\" count=\"1\"/>\n</sizes>\n\
                    <total type=\"fast\" count=\"0\" size=\"16\"/>\n<total type=\"rest\" count=\"1\" size=\"1000\"/>\n\
                    <system type=\"current\" size=\"135168\"/>\n<system type=\"max\" size=\"9\"/>\n</heap>\n<heap nr=\"1\">\n<sizes/>\n\
                    <total type=\"fast\" count=\"0\" size=\"0\"/>\n<total type=\"rest\" count=\"1\" size=\"7\"/>\n\
                    <system type=\"current\" size=\"4096\"/>\n</heap>\n<total type=\"rest\" count=\"2\" size=\"1007\"/>\n\
                    <total type=\"mmap\" count=\"1\" size=\"40\"/>\n<system type=\"current\" size=\"139264\"/>\n</malloc>\n";
        let arenas = vec![[135168, 1016], [4096, 7]];
        assert_eq!(of_glibc(text), Some(Said::Glibc { arenas, mapped: 40 }));
        assert_eq!(of_glibc("nothing"), None);
        let python = "3 arenas * 1048576 bytes/arena     =            3,145,728\n# bytes in allocated blocks    =  1,234\n";
        assert_eq!(of_python(python), Some((1234, 3145728)));
        let waiting = "7 0x7ffc 0x1 0xffffffff 0x0 0x0 0x0 0x7ffc80 0x7f01\n";
        assert_eq!(
            seen_in(waiting).map(|call| [call[0], call[3], call[8]]),
            Some([7, 0xffff_ffff, 0x7f01])
        );
        for not in ["running\n", "-1 0x7ffc 0x7f01\n", ""] {
            assert_eq!(seen_in(not), None);
        }
    }
}
