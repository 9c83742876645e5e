//! `cachewise exec`: a program on the library, by preload.

use crate::args::{self, Exec};
use crate::inherited;
use crate::output;
use crate::program as programs;
use anyhow::{Context as _, bail};
use cachewise_advise::executable::{self, Executable, Reach};
use cachewise_advise::gathered::Gathered;
use cachewise_experiments::LabError;
use cachewise_experiments::select::nearest;
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const LIBRARY: &str = "libcachewise_preload.so";
/// Library that also counts.
pub(super) const STATISTICS_LIBRARY: &str = "libcachewise_preload_stats.so";

/// Exit status of a shell for a program that cannot be run, and for one that is missing.
const NOT_EXECUTABLE: u8 = 126;
pub(super) const NOT_FOUND: u8 = 127;

/// Runs the program; its exit status is ours.
pub fn run(args: &Exec) -> anyhow::Result<u8> {
    let profile = args.profile.as_deref().map(programs::canonical).transpose()?;
    let file = if args.stats { STATISTICS_LIBRARY } else { LIBRARY };
    let library = library(file, "--library", args.library.as_deref())?;
    let Some(program) = program(&args.program[0], "exec")? else { return Ok(NOT_FOUND) };
    let reach = Executable::open(&program, &args.program[1..]).reach(&library);
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
    if args.stats
        && let Some(place) = statistics(matches!(reach, Reach::After(_)))
    {
        command.env(STATISTICS, place);
    }
    // In our place: status, signals and terminal are its own.
    Ok(not_started(&program, &command.exec()))
}

/// Errors of the profile are printed here, once, and those of the counts at the end: scripts
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
///
/// # Errors
/// A program that is not found, and reads as an option of `verb` that does not exist.
pub(super) fn program(name: &OsStr, verb: &str) -> anyhow::Result<Option<PathBuf>> {
    let name = Path::new(name);
    let program = programs::find(name);
    let shown = name.display();
    if program.is_none() && name.to_string_lossy().starts_with('-') {
        let accepted = args::options_of(verb);
        let nearest = nearest(&name.to_string_lossy(), accepted.iter().map(String::as_str));
        return Err(LabError::Usage(format!(
            "cachewise {verb}: found \"{shown}\", which is neither an option nor a program{nearest}"
        ))
        .into());
    }
    if program.is_none() {
        output::tell(&format!("cachewise: {shown}: program not found"));
    }
    Ok(program)
}

/// The variable that the counting library reads.
const STATISTICS: &str = "CACHEWISE_STATS";

/// The value of [`STATISTICS`]; `None` where the caller has named a file. All processes count in one place, and the first one prints,
/// if the library is in it (`docs/decisions/exec-stats.md`); otherwise each prints for itself.
fn statistics(is_reached: bool) -> Option<OsString> {
    let own = std::env::var_os(STATISTICS).unwrap_or_default();
    if !["", "0", "1"].iter().any(|value| own == *value) {
        return None;
    }
    let Some(gathered) = is_reached.then(Gathered::new).and_then(Result::ok) else {
        return Some("1".into());
    };
    let variable = gathered.variable();
    gathered.leave();
    Some(variable.into())
}

pub(super) fn not_started(program: &Path, error: &std::io::Error) -> u8 {
    output::tell(&format!("cachewise: {}", programs::not_started(program, error)));
    if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
}

/// Refuses a library that the dynamic linker could not load, with what it is that hinders it: the linker's own line would
/// come from every process of the program.
fn check_loadable(path: &Path) -> anyhow::Result<()> {
    let other = |why: &str| Err(anyhow::anyhow!("{}: {why}", path.display()));
    let file = programs::regular(path).with_context(|| path.display().to_string())?;
    let own = programs::regular(Path::new("/proc/self/exe")).ok();
    let head = beginning(&file).with_context(|| path.display().to_string())?;
    // Class, byte order and machine of ELF's header, and that it is a shared object.
    let kind = |head: &[u8]| Some([head.get(4..6)?.to_owned(), head.get(18..20)?.to_owned()]);
    if !head.starts_with(b"\x7FELF") || head.get(16..18).is_none_or(|of| !of.contains(&3)) {
        return other("expected a shared library, found something else");
    }
    let own = own.and_then(|file| kind(&beginning(&file).ok()?));
    if own.is_some_and(|own| kind(&head) != Some(own)) {
        return other("expected a library for this machine, found one for another");
    }
    let (access, flags) = (ProtFlags::READ | ProtFlags::EXEC, MapFlags::PRIVATE);
    // SAFETY: a new mapping, which nothing refers to.
    let mapped = unsafe { rustix::mm::mmap(std::ptr::null_mut(), 4096, access, flags, &file, 0) };
    match mapped {
        // SAFETY: made above.
        Ok(start) => drop(unsafe { rustix::mm::munmap(start, 4096) }),
        Err(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => {
            return other(
                "its file system is mounted noexec: copy it elsewhere, and name the directory by \
                 CACHEWISE_LIBRARY or the file by --library",
            );
        }
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    }
    Ok(())
}

/// The library that the option names, or the one that is found.
pub(super) fn library(
    library: &str,
    option: &str,
    named: Option<&Path>,
) -> anyhow::Result<PathBuf> {
    if let Some(file) = named {
        let named = || format!("{option} {}", file.display());
        let path = fs::canonicalize(file).with_context(named)?;
        check_loadable(&path).with_context(|| option.to_owned())?;
        return Ok(path);
    }
    // Without /proc it does not know where it is; others may.
    let own = std::env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
    let [named, searched] = ["CACHEWISE_LIBRARY", "LD_LIBRARY_PATH"].map(|name| {
        let list = std::env::var_os(name).unwrap_or_default();
        std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect::<Vec<_>>()
    });
    let places = places(library, own.parent().unwrap_or(Path::new("/")), &named, &searched);
    let mut hindered = None;
    let level = level();
    for found in places.iter().flat_map(|place| builds(place, level)).filter(|file| file.is_file())
    {
        let path = fs::canonicalize(found)?;
        match check_loadable(&path) {
            Ok(()) => return Ok(path),
            Err(why) => hindered = hindered.or(Some(why)),
        }
    }
    if let Some(why) = hindered {
        return Err(why);
    }
    let carried = level.map(|level| format!("{level}/{library}"));
    let carried = carried.filter(|file| cachewise_libraries::embedded(file).is_some());
    let own = crate::libraries::written_out(carried.as_deref().unwrap_or(library));
    if let Some(written_out) = own.with_context(|| {
        format!(
            "{library}: beside the command it was not found, and the copy inside the command was not \
             written out ({option} or CACHEWISE_LIBRARY names another)"
        )
    })? {
        check_loadable(&written_out)?;
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

/// Folder beside a library with its build for x86-64-v4, if this CPU has that and keeps its clock with it.
fn level() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! has {
            ($($feature:tt)+) => { $(std::is_x86_feature_detected!($feature))&&+ };
        }
        let third = has!("avx" "avx2" "bmi1" "bmi2" "f16c" "fma" "lzcnt" "movbe");
        let fourth = third && has!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl");
        // Servers before Ice Lake lower their clock after vectors of 64 bytes; there it was not measured.
        let is_later = fourth && has!("avx512vbmi2");
        is_later.then_some("glibc-hwcaps/x86-64-v4")
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// A library's builds, the one for this CPU first.
fn builds(plain: &Path, level: Option<&str>) -> impl Iterator<Item = PathBuf> {
    let name = plain.file_name().unwrap_or_default();
    let beside = level.map(|level| plain.with_file_name(level).join(name));
    beside.into_iter().chain([plain.to_owned()])
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

/// Value of `LD_PRELOAD`: the library, after what has to come first.
pub(super) fn preload(library: &Path, first: &[OsString]) -> anyhow::Result<OsString> {
    if library.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        bail!(
            "{}: found a space or a colon in the library's path, where LD_PRELOAD ends a path",
            library.display()
        );
    }
    Ok(executable::preload(library, first, std::env::var_os("LD_PRELOAD")))
}

/// First bytes of a file.
fn beginning(file: &fs::File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(64).read_to_end(&mut bytes)?;
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
    fn the_build_for_this_cpu_comes_before_the_plain_one() {
        let plain = Path::new("/usr/lib/libx.so");
        let of_cpu = Path::new("/usr/lib/glibc-hwcaps/x86-64-v4/libx.so");
        let found = builds(plain, Some("glibc-hwcaps/x86-64-v4"));
        assert!(found.eq([of_cpu, plain]));
        assert!(builds(plain, None).eq([plain]));
    }

    #[test]
    fn a_path_that_ld_preload_cannot_hold_is_refused() {
        assert!(preload(Path::new("/a b/library.so"), &[]).is_err());
        assert!(preload(Path::new("/a:b/library.so"), &[]).is_err());
        let one = preload(Path::new("/a/library.so"), &[]).expect("it fits");
        assert!(one.to_string_lossy().starts_with("/a/library.so"), "{one:?}");
    }
}
