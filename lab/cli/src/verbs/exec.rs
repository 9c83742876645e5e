//! `cachewise exec`: a program on the library, by preload.

use super::program as programs;
use super::reach::{self, Reach};
use crate::args::Exec;
use crate::inherited;
use crate::progress::is_ignored;
use crate::{output, status};
use anyhow::{Context as _, bail};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitId, WaitIdOptions, kill_process, set_dumpable_behavior,
    waitid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(super) const LIBRARY: &str = "libcachewise_preload.so";
/// The same, counting.
pub(super) const STATISTICS_LIBRARY: &str = "libcachewise_preload_stats.so";

/// What takes the place of `--pool`.
const NO_POOL: &str = "--pool: there is no pool under unmodified programs; glibc is as fast with \
    GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1073741824, and `cachewise advise -- \
    PROGRAM` says what a program gains";

/// What a shell says of a program that cannot be run, and of one that is not there.
const NOT_EXECUTABLE: u8 = 126;
pub(super) const NOT_FOUND: u8 = 127;

/// Runs the program; its exit status is ours.
pub fn run(args: &Exec) -> anyhow::Result<u8> {
    if args.pool.is_some() {
        output::tell(&format!("cachewise: {NO_POOL}"));
        return Ok(status::USAGE);
    }
    let profile = args.profile.as_deref().map(programs::canonical).transpose()?;
    let file = if args.stats { STATISTICS_LIBRARY } else { LIBRARY };
    let library = library(file, "--library", args.library.as_deref())?;
    let Some(program) = program(&args.program[0]) else { return Ok(NOT_FOUND) };
    let reach = reach::of(&program, &library);
    let why = match &reach {
        Reach::After(_) => None,
        Reach::Itself(why) => Some((*why, "it runs without the library")),
        Reach::Nothing(why) => {
            Some((why.as_str(), "it and what it starts run without the library"))
        }
    };
    if let Some((why, without)) = why {
        output::tell(&format!("cachewise: warning: {}: {why}; {without}", program.display()));
    }
    let mut command = Command::new(&program);
    // The name it was called by, which some programs look at.
    command.arg0(&args.program[0]).args(&args.program[1..]);
    inherited::hand_on(&mut command);
    let preloaded = preload(&library, if let Reach::After(first) = &reach { first } else { &[] })?;
    if !matches!(reach, Reach::Nothing(_)) {
        command.env("LD_PRELOAD", preloaded);
    }
    say_once(profile, &mut command);
    command.envs(hinted(args, &program)?.map(|name| ("CACHEWISE_PROGRAM", name)));
    if let Some(left) = programs::left_by_learn()
        && std::env::var_os("CACHEWISE_QUIET").is_none()
    {
        let left = left.display();
        output::tell(&format!(
            "cachewise: {left}: left by `cachewise learn`; nothing reads it any more"
        ));
    }
    if args.stats {
        return with_statistics(command, &program);
    }
    // In our place: status, signals and terminal are its own.
    Ok(not_started(&program, &command.exec()))
}

/// What is wrong with the profile is said here, once, and what is wrong with the counts at the end: scripts
/// that configure take any word on stderr of any process for an error.
fn say_once(profile: Option<PathBuf>, command: &mut Command) {
    if let Some(profile) = profile {
        command.env("CACHEWISE_PROFILE", &profile);
        // SAFETY: no other thread of this process reads or changes the environment.
        unsafe { std::env::set_var("CACHEWISE_PROFILE", profile) };
    }
    // As the program's own library does when it is loaded.
    cachewise::init();
    if std::env::var_os("CACHEWISE_QUIET").is_none() {
        command.env("CACHEWISE_QUIET", "1");
    }
}

/// The program's file. Where there is none, that is said.
pub(super) fn program(name: &OsStr) -> Option<PathBuf> {
    let name = Path::new(name);
    let program = programs::find(name);
    if program.is_none() {
        output::tell(&format!("cachewise: {}: program not found", name.display()));
    }
    program
}

/// The name under which the profile has hints for the program; none where it has none, or where the
/// environment names one.
fn hinted(args: &Exec, program: &Path) -> anyhow::Result<Option<String>> {
    let profile = args.profile.as_deref();
    if let Some(name) = &args.name {
        programs::hints_for(name, profile)?;
        return Ok(Some(name.clone()));
    }
    let name = cachewise::profile::program_name(program);
    let inherited = std::env::var_os("CACHEWISE_PROGRAM").is_some();
    Ok((!inherited && programs::has_hints(&name, profile)).then_some(name))
}

/// Signals are for the program: we stay to tell what came of it. Whether one came.
pub(super) fn leave_signals_to_the_program() -> std::io::Result<Arc<AtomicBool>> {
    let came = Arc::new(AtomicBool::new(false));
    // What the caller ignores, the program ignores too.
    let of_terminal = [SIGINT, SIGQUIT].into_iter().filter(|signal| !is_ignored(*signal));
    for signal in of_terminal.chain(passed_on()) {
        signal_hook::flag::register(signal, Arc::clone(&came))?;
    }
    Ok(came)
}

/// Signals that nobody sends to a whole group: a supervisor means the program.
fn passed_on() -> impl Iterator<Item = i32> {
    [SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal))
}

/// Runs it as a child, which writes what it counted into a file.
fn with_statistics(mut command: Command, program: &Path) -> anyhow::Result<u8> {
    let counts = Counts::new()?;
    command.env("CACHEWISE_STATS", &counts.path);
    leave_signals_to_the_program()?;
    let ended = match ended(&mut command)? {
        Ok(ended) => ended,
        Err(error) => return Ok(not_started(program, &error)),
    };
    // What cannot be told leaves the program's status as it is.
    match counts.told() {
        Err(why) => output::tell(&format!("cachewise: --stats: {why:#}")),
        Ok(told) if told.is_empty() => {
            output::tell("cachewise: no statistics: the program ended without saying any");
        }
        Ok(told) => {
            let sums = cachewise_advise::counts::Counts::read(&told);
            output::tell_all(&(told + &sums.summary().unwrap_or_default()));
        }
    }
    Ok(pass_on(ended))
}

/// Where processes append what they counted: a file without a name, which ends with this process whatever
/// happens; where there is no `/proc` to find it by, a temporary file.
struct Counts {
    file: File,
    path: PathBuf,
    _named: Option<tempfile::TempPath>,
}

impl Counts {
    fn new() -> anyhow::Result<Counts> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::memfd_create("cachewise-statistics", flags) {
            let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
            if Path::new(&path).exists() {
                return Ok(Counts { file: file.into(), path: path.into(), _named: None });
            }
        }
        let named = output::temporary("--stats", tempfile::NamedTempFile::new)?;
        let (file, path) = named.into_parts();
        Ok(Counts { file, path: path.to_path_buf(), _named: Some(path) })
    }

    fn told(mut self) -> anyhow::Result<String> {
        let why = || self.path.display().to_string();
        let mut told = Vec::new();
        self.file.seek(SeekFrom::Start(0)).with_context(why)?;
        self.file.read_to_end(&mut told).with_context(why)?;
        if told.is_empty() {
            // Whether they could have: a limit on the size of files is an error then, and no signal.
            // SAFETY: nothing is called when it comes.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
            self.file.write_all(b"\n").with_context(why)?;
        }
        Ok(String::from_utf8_lossy(&told).into_owned())
    }
}

/// How a child ended, to which signals were passed on meanwhile; or why it was not started.
pub(super) fn ended(command: &mut Command) -> std::io::Result<Result<ExitStatus, std::io::Error>> {
    let mut signals = Signals::new(passed_on())?;
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Err(error)),
    };
    let (pid, handle) = (Pid::from_child(&child), signals.handle());
    let pass_on = std::thread::spawn(move || {
        for signal in signals.forever().filter_map(Signal::from_named_raw) {
            // It may have ended just now.
            let _ = kill_process(pid, signal);
        }
    });
    // Not taken away yet: until the thread has ended, the number is the program's.
    let there = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(pid), there), Err(Errno::INTR)) {}
    handle.close();
    let _ = pass_on.join();
    Ok(Ok(child.wait()?))
}

/// The status to end with; a program that died of a signal is followed.
pub(super) fn pass_on(ended: ExitStatus) -> u8 {
    if let Some(signal) = ended.signal() {
        // A core is the program's, and no second one takes its place.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        // Dies of it unless it is one that stops or is ignored.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        return 128 + (signal & 0x7F) as u8;
    }
    ended.code().map_or(status::ERROR, |code| code as u8)
}

pub(super) fn not_started(program: &Path, error: &std::io::Error) -> u8 {
    output::tell(&format!("cachewise: {}: {error}", program.display()));
    if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
}

/// The library that the option names, or the one that is found.
pub(super) fn library(
    library: &str,
    option: &str,
    named: Option<&Path>,
) -> anyhow::Result<PathBuf> {
    if let Some(file) = named {
        let path = fs::canonicalize(file).and_then(|path| {
            // The dynamic linker would wait for a pipe without end.
            let is_elf = beginning(&path)?.starts_with(b"\x7FELF");
            let accepted = "found something else, accepted a shared library";
            is_elf.then_some(path).ok_or_else(|| std::io::Error::other(accepted))
        });
        return path.with_context(|| format!("{option} {}", file.display()));
    }
    // Where there is no /proc, it does not know where it is; others may.
    let own = std::env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
    let [named, searched] = ["CACHEWISE_LIBRARY", "LD_LIBRARY_PATH"].map(|name| {
        let list = std::env::var_os(name).unwrap_or_default();
        std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect::<Vec<_>>()
    });
    let places = places(library, own.parent().unwrap_or(Path::new("/")), &named, &searched);
    if let Some(found) = places.iter().find(|place| place.is_file()) {
        return Ok(fs::canonicalize(found)?);
    }
    let own = crate::libraries::written_out(library);
    if let Some(written_out) = own.with_context(|| {
        format!(
            "{library}: beside the command it was not found, and the copy inside the command was not \
             written out ({option} or CACHEWISE_LIBRARY names another)"
        )
    })? {
        return Ok(written_out);
    }
    let looked: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    let package = library.trim_start_matches("lib").trim_end_matches(".so");
    bail!(
        "{library} not found; looked for {}; name its directory with CACHEWISE_LIBRARY, or the file with \
         {option}, or build it: cargo build --release -p {}",
        looked.join(", "),
        package.replace('_', "-")
    )
}

/// In the directories that `CACHEWISE_LIBRARY` names; beside the program, in the library directories of
/// the same tree, and in Cargo's release directory beside the debug one; then where the dynamic linker is
/// told to look.
fn places(
    library: &str,
    directory: &Path,
    named: &[PathBuf],
    searched: &[PathBuf],
) -> Vec<PathBuf> {
    let tree = directory.parent().unwrap_or(directory);
    // A library built for debugging is none to run programs on.
    let beside = if directory.ends_with("debug") { tree.join("release") } else { directory.into() };
    let multiarch = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let inside = ["lib", "lib64", "lib/cachewise", &multiarch].map(|inside| tree.join(inside));
    let own = [beside].into_iter().chain(inside);
    let all = named.iter().cloned().chain(own).chain(searched.iter().cloned());
    all.map(|place| place.join(library)).collect()
}

/// What is to be preloaded: the library, after what has to come first.
pub(super) fn preload(library: &Path, first: &[OsString]) -> anyhow::Result<OsString> {
    if library.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        bail!(
            "{}: found a space or a colon in the library's path, where LD_PRELOAD ends a path",
            library.display()
        );
    }
    Ok(reach::preload(library, first, std::env::var_os("LD_PRELOAD")))
}

/// What a regular file begins with.
fn beginning(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    programs::regular(file)?.take(4).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clones_debug_build_finds_the_release_library() {
        let found = places(LIBRARY, Path::new("/clone/target/debug"), &[], &[]);
        assert_eq!(found[0], Path::new("/clone/target/release").join(LIBRARY));
        let (named, searched) = (["/mine".into()], ["/opt/lib".into(), "/other".into()]);
        let found = places(LIBRARY, Path::new("/usr/bin"), &named, &searched);
        assert_eq!(found[0], Path::new("/mine").join(LIBRARY));
        assert_eq!(found[1], Path::new("/usr/bin").join(LIBRARY));
        assert_eq!(found[2], Path::new("/usr/lib").join(LIBRARY));
        assert_eq!(found.last(), Some(&Path::new("/other").join(LIBRARY)));
    }

    #[test]
    fn a_path_that_ld_preload_cannot_hold_is_refused() {
        assert!(preload(Path::new("/a b/library.so"), &[]).is_err());
        assert!(preload(Path::new("/a:b/library.so"), &[]).is_err());
        let one = preload(Path::new("/a/library.so"), &[]).expect("it fits");
        assert!(one.to_string_lossy().starts_with("/a/library.so"), "{one:?}");
    }
}
