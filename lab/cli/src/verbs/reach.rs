//! Effect of preloading on a program: its file is looked at as the kernel and the dynamic linker will.

use crate::program as programs;
use object::elf::{DT_NEEDED, DT_SONAME, FileHeader64};
use object::read::elf::{Dyn as _, ElfFile64, ElfSymbol64, FileHeader as _, ProgramHeader as _};
use object::read::{ReadCache, ReadRef as _};
use object::{Endianness, Object as _, ObjectSymbol as _};
use rustix::fs::StatVfsMountFlags;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// How a program is reached.
#[derive(Debug, PartialEq, Eq)]
pub enum Reach {
    /// Programs that it starts are reached, but not the program itself: the reason.
    Itself(&'static str),
    /// Not at all, since its dynamic linker would complain or end it: why.
    Nothing(String),
    /// By preloading, after these libraries: sanitizers, which insist on being the first.
    After(Vec<OsString>),
}

/// Interpreters of interpreters that Linux goes through (`exec_binprm`).
const DEEPEST: usize = 5;

/// How preloading the library reaches the program, which is started with these arguments. Where the file says nothing,
/// the kernel will.
pub fn of(program: &Path, arguments: &[OsString], library: &Path) -> Reach {
    run(program, arguments, library).unwrap_or(Reach::After(Vec::new()))
}

/// A program that a dynamic linker is started with.
pub struct Linked {
    /// The program's file.
    pub program: PathBuf,
    /// Folders in which that linker looks for libraries first.
    folders: Vec<PathBuf>,
}

/// The program that a command runs if its file is a dynamic linker, as in `ld.so --library-path lib PROGRAM`.
pub fn linked(linker: &Path, arguments: &[OsString]) -> Option<Linked> {
    /// glibc's and musl's options with a value.
    const WITH_VALUE: [&str; 7] = [
        "--library-path",
        "--inhibit-rpath",
        "--audit",
        "--preload",
        "--argv0",
        "--glibc-hwcaps-prepend",
        "--glibc-hwcaps-mask",
    ];
    if !is_linker(linker) {
        return None;
    }
    let mut folders = Vec::new();
    let mut words = arguments.iter();
    let program = loop {
        let word = words.next()?;
        if !word.as_bytes().starts_with(b"--") {
            break word;
        }
        let text = word.to_string_lossy();
        let (option, value) = match text.split_once('=') {
            Some((option, value)) => (option, Some(OsString::from(value))),
            None if WITH_VALUE.contains(&&*text) => (&*text, words.next().cloned()),
            None => (&*text, None),
        };
        match (option, value) {
            ("--", _) => break words.next()?,
            ("--library-path", Some(value)) => folders.extend(std::env::split_paths(&value)),
            _ => {}
        }
    };
    Some(Linked { program: PathBuf::from(program), folders })
}

/// Returns whether an ELF file is run by itself and has a name as a library: of what is run so, dynamic linkers alone have.
fn is_linker(file: &Path) -> bool {
    let has_name = || {
        let file = ReadCache::new(programs::regular(file).ok()?);
        let header = FileHeader64::<Endianness>::parse(&file).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, &file).ok()?;
        if segments.iter().any(|of| matches!(of.interpreter(endian, &file), Ok(Some(_)))) {
            return None;
        }
        let (entries, _) = header.sections(endian, &file).ok()?.dynamic(endian, &file).ok()??;
        entries.iter().find(|entry| entry.tag(endian) == DT_SONAME).map(drop)
    };
    has_name().is_some()
}

fn run(program: &Path, arguments: &[OsString], library: &Path) -> Option<Reach> {
    if let Some(linked) = linked(program, arguments) {
        return elf(&linked.program, library, Some((program, &linked.folders)));
    }
    let mut program = program.to_owned();
    for _ in 0..=DEEPEST {
        let mut line = Vec::new();
        programs::regular(&program).ok()?.take(4096).read_to_end(&mut line).ok()?;
        let Some(line) = line.strip_prefix(b"#!") else {
            // The bits of a script count for nothing, those of its interpreter do.
            if is_secure(&program) {
                let why = "it runs with more privilege than its caller, so nothing is preloaded";
                return Some(Reach::Itself(why));
            }
            return elf(&program, library, None);
        };
        // A script's interpreter may be a script.
        let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii();
        let interpreter = line.split(|byte| byte.is_ascii_whitespace()).next()?;
        program = PathBuf::from(OsStr::from_bytes(interpreter));
    }
    None
}

/// Returns whether the kernel sets `AT_SECURE` for it (`bprm_fill_uid` and `cap_bprm_creds_from_file`): its user or
/// group would change, or a user who is not root gains capabilities.
pub fn is_secure(program: &Path) -> bool {
    let Ok(file) = fs::metadata(program) else { return false };
    let (mode, user, group) =
        (file.permissions().mode(), rustix::process::getuid(), rustix::process::getgid());
    let nosuid =
        rustix::fs::statvfs(program).is_ok_and(|of| of.f_flag.contains(StatVfsMountFlags::NOSUID));
    if nosuid || rustix::thread::no_new_privs().unwrap_or(false) {
        return false;
    }
    let (set_user, set_group) = (mode & 0o4000 != 0, mode & 0o2010 == 0o2010);
    let name = "security.capability";
    let gains =
        || rustix::fs::getxattr(program, name, &mut [0u8; 64]).is_ok_and(|length| length > 0);
    (set_user && file.uid() != user.as_raw())
        || (set_group && file.gid() != group.as_raw())
        || (!user.is_root() && gains())
}

/// Reach of an ELF file, with the dynamic linker and the folders that it is started with, if it is; `None` for other
/// files.
fn elf(program: &Path, library: &Path, by: Option<(&Path, &[PathBuf])>) -> Option<Reach> {
    let file = ReadCache::new(programs::regular(program).ok()?);
    let magic = (&file).read_bytes_at(0, 5).ok()?;
    if magic == b"\x7FELF\x01" {
        return Some(Reach::Nothing(
            "a 32-bit program, into which nothing is preloaded".to_owned(),
        ));
    }
    let header = FileHeader64::<Endianness>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &file).ok()?;
    let interpreter = segments.iter().find_map(|of| of.interpreter(endian, &file).ok().flatten());
    let own = interpreter.map(|name| Path::new(OsStr::from_bytes(name)));
    let Some((linker, folders)) = by.or(own.map(|linker| (linker, &[][..]))) else {
        return Some(Reach::Itself("a statically linked program, into which nothing is preloaded"));
    };
    if let Some(name) = missing(linker, folders, library) {
        return Some(Reach::Nothing(format!(
            "its C library lacks {name}, which the library calls"
        )));
    }
    let mut needed = needed(&file).unwrap_or_default();
    needed.retain(|name| is_sanitizer(name.as_bytes()));
    Some(Reach::After(needed))
}

/// The libraries that a file names.
fn needed(file: &ReadCache<fs::File>) -> Option<Vec<OsString>> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, file).ok()?;
    let Some((entries, link)) = sections.dynamic(endian, file).ok()? else {
        return Some(Vec::new());
    };
    let strings = sections.strings(endian, file, link).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED);
    let names = needed.filter_map(|entry| entry.string(endian, strings).ok());
    Some(names.map(|name| OsStr::from_bytes(name).to_owned()).collect())
}

/// Symbol that the library needs and that interpreter's C library lacks: in
/// `libc.so.6` in one of these folders or beside glibc's, in musl's itself.
fn missing(interpreter: &Path, folders: &[PathBuf], library: &Path) -> Option<String> {
    let interpreter = fs::canonicalize(interpreter).ok()?;
    let symbols = |file: &Path| {
        let file = ReadCache::new(programs::regular(file).ok()?);
        let parsed = ElfFile64::<Endianness, _>::parse(&file).ok()?;
        let names = |wanted: fn(&ElfSymbol64<'_, '_, Endianness, _>) -> bool| -> Vec<String> {
            let symbols = parsed.dynamic_symbols().filter(wanted);
            symbols.filter_map(|symbol| Some(symbol.name().ok()?.to_owned())).collect()
        };
        let alone = needed(&file)?.is_empty();
        let asked =
            names(|symbol| symbol.is_undefined() && symbol.is_global() && !symbol.is_weak());
        Some((names(|symbol| !symbol.is_undefined()), if alone { asked } else { Vec::new() }))
    };
    let mut places: Vec<PathBuf> = folders.iter().map(|folder| folder.join("libc.so.6")).collect();
    places.extend([interpreter.with_file_name("libc.so.6"), interpreter]);
    let mut found = places.iter().filter_map(|place| Some(symbols(place)?.0));
    let defined = found.find(|names| names.iter().any(|name| name == "getenv"))?;
    symbols(library)?.1.into_iter().find(|name| !defined.contains(name))
}

/// Returns whether a library insists on being the first: those of gcc and of clang.
fn is_sanitizer(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"libclang_rt.").or_else(|| name.strip_prefix(b"lib"));
    let names = [b"asan".as_slice(), b"tsan", b"msan", b"hwasan"];
    let rest = name.and_then(|name| names.iter().find_map(|of| name.strip_prefix(*of)));
    rest.is_some_and(|rest| rest.starts_with(b".") || rest.starts_with(b"-"))
}

/// The library, after what has to come first and before what was to be preloaded anyway.
pub fn preload(library: &Path, first: &[OsString], others: Option<OsString>) -> OsString {
    let others = others.unwrap_or_default();
    let listed = others.as_bytes().split(|byte| matches!(byte, b':' | b' '));
    let others: Vec<OsString> = listed
        .filter(|name| !name.is_empty())
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect();
    // A sanitizer that somebody preloads is the first for a reason.
    let leads =
        |name: &&OsString| is_sanitizer(Path::new(name).file_name().unwrap_or_default().as_bytes());
    let (before, after): (Vec<_>, Vec<_>) = others.iter().partition(leads);
    let before = if before.is_empty() { first.iter().collect() } else { before };
    let own = library.as_os_str().to_owned();
    let all: Vec<&OsStr> = before
        .into_iter()
        .map(OsString::as_os_str)
        .chain([own.as_os_str()])
        .chain(after.into_iter().map(OsString::as_os_str))
        .collect();
    all.join(OsStr::new(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two scripts that are each other's interpreter were once the end of the stack.
    #[test]
    fn a_circle_of_interpreters_and_files_that_are_none_are_left_to_the_kernel() {
        let directory = tempfile::tempdir().expect("a directory");
        let [one, other, pipe] = ["one", "other", "pipe"].map(|name| directory.path().join(name));
        fs::write(&one, format!("#!{}\n", other.display())).expect("written");
        fs::write(&other, format!("#!{}\n", one.display())).expect("written");
        let (left, none) = (Reach::After(Vec::new()), Path::new(""));
        assert_eq!(of(&one, &[], none), left);
        let name = std::ffi::CString::new(pipe.as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the path ends in NUL.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for endless in [pipe.as_path(), Path::new("/dev/zero")] {
            assert_eq!(of(endless, &[], none), left);
            fs::write(&one, format!("#!{}\n", endless.display())).expect("written");
            assert_eq!(of(&one, &[], none), left);
        }
        for text in ["\x7FELF\x02\x01 and no more", "text", ""] {
            fs::write(&one, text).expect("written");
            assert_eq!(of(&one, &[], none), left);
        }
        fs::write(&one, "\x7FELF\x01\x01 of 32 bits").expect("written");
        assert!(matches!(of(&one, &[], none), Reach::Nothing(_)));
    }

    /// The kernel's rule, and not the bits of the file that is named.
    #[test]
    fn what_has_more_privilege_than_its_caller_is_told_by_what_would_change() {
        let directory = tempfile::tempdir().expect("a directory");
        let [program, script] = ["program", "script"].map(|name| directory.path().join(name));
        let none = Path::new("");
        fs::copy("/bin/sh", &program).expect("copied");
        fs::write(&script, "#!/bin/sh\n").expect("written");
        for file in [&program, &script] {
            // Its owner is who runs it: nothing changes.
            fs::set_permissions(file, fs::Permissions::from_mode(0o6755)).expect("its owner may");
            assert_eq!(of(file, &[], none), Reach::After(Vec::new()), "{}", file.display());
        }
        // Somebody else's.
        let (mine, other) = (rustix::process::getuid(), rustix::process::Uid::from_raw(65534));
        if mine.is_root() && rustix::fs::chown(&program, Some(other), None).is_ok() {
            fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("root may");
            let nosuid = rustix::fs::statvfs(&program).expect("a file system").f_flag;
            let changes = !nosuid.contains(StatVfsMountFlags::NOSUID);
            assert_eq!(matches!(of(&program, &[], none), Reach::Itself(_)), changes);
            fs::write(&script, format!("#!{}\n", program.display())).expect("written");
            assert_eq!(
                matches!(of(&script, &[], none), Reach::Itself(_)),
                changes,
                "its interpreter's bits count"
            );
        } else {
            eprintln!("set-user-id: SKIPPED, only root can give a program away");
        }
    }

    #[test]
    fn sanitizers_come_first_and_the_library_before_all_others() {
        let (library, none) = (Path::new("/l.so"), &[][..]);
        let all = |first: &[OsString], others: &str| {
            preload(library, first, (!others.is_empty()).then(|| others.into()))
        };
        assert_eq!(all(none, ""), "/l.so");
        assert_eq!(all(none, "/a.so:b.so"), "/l.so:/a.so:b.so");
        assert_eq!(all(none, "/x/libasan.so.8:/a.so"), "/x/libasan.so.8:/l.so:/a.so");
        assert_eq!(all(&["libtsan.so.2".into()], "/a.so"), "libtsan.so.2:/l.so:/a.so");
        assert_eq!(all(&["libasan.so.8".into()], "/x/libasan.so.8"), "/x/libasan.so.8:/l.so");
        for of_clang in ["asan-x86_64", "hwasan", "msan-aarch64", "tsan"] {
            let name = format!("/x/libclang_rt.{of_clang}.so");
            assert_eq!(all(none, &format!("/a.so:{name}")), *format!("{name}:/l.so:/a.so"));
        }
    }
}
