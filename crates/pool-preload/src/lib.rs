//! `libcachewise_pool_preload.so`: large blocks of `malloc` and its relatives from a page pool, in
//! programs that nobody recompiles.
//!
//! ```text
//! CACHEWISE_POOL=1G LD_PRELOAD=/usr/lib/libcachewise_pool_preload.so program
//! ```
//!
//! Without `CACHEWISE_POOL` every call is handed on. With it, requests of 128 KiB to 256 MiB come
//! from a pool of that size, made at the first of them; smaller and larger ones, and all that the
//! pool cannot serve, go to the allocator that the program would have had. Which of the two a block
//! came from is told by its address.
//!
//! A library apart from `libcachewise_preload.so`, so that who has no use for a pool has neither
//! the standard library nor a detour in `malloc`.
//!
//! - `entries` has the exported functions.
//! - `next` finds the program's own allocator, and helps out until it is found.
//! - `pool` has the pool, and how long each of its blocks is.
//! - `stats` writes what it did.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![warn(missing_docs)]

#[cfg(fuzzing)]
pub mod entries;
#[cfg(not(fuzzing))]
mod entries;
mod next;
mod pool;
mod stats;

#[cfg(fuzzing)]
pub use pool::enable;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// Finds the program's own allocator, and reads `CACHEWISE_POOL`. What is asked for earlier is the
/// program's own allocator's.
extern "C" fn constructor() {
    // `errno` is 0 where `main` begins, and some programs rely on that.
    pool::undisturbed(begin);
}

fn begin() {
    next::resolve();
    let Some(size) = variable(c"CACHEWISE_POOL") else { return };
    note_stderr();
    if let Some(word) = variable(c"CACHEWISE_POOL_STATS") {
        let _ = WANTED.set(Wanted::new(word));
        // SAFETY: reads and changes no memory.
        KEPT.store(unsafe { libc::fcntl(2, libc::F_DUPFD_CLOEXEC, FIRST_KEPT) }, Relaxed);
    }
    match parse(size) {
        Some(_) if next::frees_by_itself() => say(format_args!(
            "CACHEWISE_POOL: the program's allocator is jemalloc, whose operator delete frees blocks past \
             this library; no pool"
        )),
        Some(bytes) => {
            pool::enable(bytes, idle());
            #[cfg(not(fuzzing))]
            pool::watch_main();
        }
        None => say(format_args!(
            "CACHEWISE_POOL: found \"{}\", accepted bytes with K, M, G or T behind them; no pool",
            size.to_string_lossy()
        )),
    }
}

/// `CACHEWISE_POOL_IDLE`: seconds.
fn idle() -> Option<u32> {
    let text = variable(c"CACHEWISE_POOL_IDLE")?;
    let seconds = text.to_str().ok().and_then(|text| text.trim().parse().ok());
    let seconds = seconds.filter(|seconds| (1..=86_400).contains(seconds));
    if seconds.is_none() {
        say(format_args!(
            "CACHEWISE_POOL_IDLE: found \"{}\", accepted 1 to 86400 seconds; it is 2",
            text.to_string_lossy()
        ));
    }
    seconds
}

/// Says what the pool did, where that is wanted.
extern "C" fn destructor() {
    // Whoever ends the program may have been cancelled: that is not to happen in the middle of its end.
    cachewise::uncancelled(tell);
}

/// What was asked for at the start: at its end the program may have another environment, and be elsewhere.
struct Wanted {
    word: CString,
    file: Option<CString>,
    quiet: bool,
}

static WANTED: OnceLock<Wanted> = OnceLock::new();

impl Wanted {
    fn new(word: &CStr) -> Wanted {
        let file = variable(c"CACHEWISE_POOL_STATS_FILE").map(|file| {
            let mut path = [0; libc::PATH_MAX as usize];
            cachewise::programs::absolute(file, &mut path).unwrap_or(file).to_owned()
        });
        Wanted { word: word.to_owned(), file, quiet: variable(c"CACHEWISE_QUIET").is_some() }
    }
}

fn tell() {
    let Some(Wanted { word, file, quiet }) = WANTED.get() else { return };
    let Some(figures) = pool::figures() else { return };
    let Some(form) = stats::Form::of(word.to_bytes()) else {
        return say(format_args!(
            "CACHEWISE_POOL_STATS: found \"{}\", accepted 1, text, json, prometheus",
            word.to_string_lossy()
        ));
    };
    let path = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = stats::written(&figures, form, &name, std::process::id());
    match file {
        Some(file) => append(file, &text),
        None if !quiet => {
            let stderr = [2, KEPT.load(Relaxed)].into_iter().find(|file| is_stderr(*file));
            stderr.into_iter().for_each(|file| drop(write_quietly(file, &text)));
        }
        None => {}
    }
}

/// stderr once more, since many programs close it before they end (all of coreutils); -1 for none.
static KEPT: AtomicI32 = AtomicI32::new(-1);
/// Which file it was at the start, as device and number: in its place may be another one, the program's data.
static STDERR: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
/// Numbers below are left to the program, some of which count on the next one that is free.
const FIRST_KEPT: i32 = 100;

fn note_stderr() {
    let Some(file) = identity(2) else { return };
    STDERR.iter().zip(file).for_each(|(known, part)| known.store(part, Relaxed));
}

fn is_stderr(file: i32) -> bool {
    identity(file).is_some_and(|found| {
        STDERR.iter().zip(found).all(|(known, part)| known.load(Relaxed) == part)
    })
}

fn identity(file: i32) -> Option<[u64; 2]> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `status` is writable for a stat.
    if unsafe { libc::fstat(file, status.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: all zero is a stat, and fstat succeeded.
    let status = unsafe { status.assume_init() };
    Some([status.st_dev, status.st_ino])
}

/// Appends to a file in one write, so that what several processes say does not mix.
fn append(file: &CStr, text: &str) {
    // Of a pipe that nobody reads it is refused, and does not keep the program from ending.
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    let flags = flags | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the name ends in NUL.
    let opened = unsafe { libc::open(file.as_ptr(), flags, 0o600) };
    if opened < 0 {
        let (name, why) = (file.to_string_lossy(), std::io::Error::last_os_error());
        return say(format_args!("CACHEWISE_POOL_STATS_FILE: {name}: {why}"));
    }
    let written = write_quietly(opened, text);
    // SAFETY: opened above, and nobody else's.
    unsafe { libc::close(opened) };
    if let Err(why) = written {
        let name = file.to_string_lossy();
        say(format_args!("CACHEWISE_POOL_STATS_FILE: {name}: {why}"));
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

/// An environment variable that is set, not empty and not `0`; none at all in a process with more
/// privilege than its caller.
fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: always callable; reads the auxiliary vector.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    // SAFETY: the name ends in NUL; nobody changes the environment before main and after exit.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv's promise: a string that ends in NUL.
    let value = unsafe { CStr::from_ptr(value) };
    (!value.is_empty() && value != c"0").then_some(value)
}

/// `64M` and the like.
fn parse(text: &CStr) -> Option<usize> {
    let text = text.to_str().ok()?.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    let bytes = number.parse::<usize>().ok()?.checked_mul(1 << shift)?;
    (bytes > 0).then_some(bytes)
}

/// One line on stderr, unless `CACHEWISE_QUIET` is set.
fn say(what: std::fmt::Arguments<'_>) {
    if variable(c"CACHEWISE_QUIET").is_none() && is_stderr(2) {
        let _ = write_quietly(2, &format!("cachewise: {what}\n"));
    }
}

/// Writes without a signal: a pipe whose reader is gone, or a limit of the file's size, does not end a
/// program that wrote nothing there.
fn write_quietly(file: i32, text: &str) -> std::io::Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match cachewise::saving::write(file, rest) {
            Ok(count) => rest = rest.get(count.max(1)..).unwrap_or(&[]),
            Err(why) if why.0 == libc::EINTR => {}
            Err(why) => return Err(std::io::Error::from_raw_os_error(why.0)),
        }
    }
    Ok(())
}
