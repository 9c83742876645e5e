//! Executables: found, followed through `#!` and dynamic linkers to what runs in the end, and looked at as the kernel and the
//! dynamic linker will: linkage, exports, the effect of preloading.

use crate::settings::{ALLOCATORS, Installed};
use object::elf::{DT_NEEDED, DT_SONAME, DynamicTag, FileHeader64};
use object::read::elf::{Dyn as _, ElfFile64, FileHeader as _, ProgramHeader as _};
use object::read::{ReadCache, ReadRef as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};
use rustix::fs::StatVfsMountFlags;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

/// Interpreters of interpreters that Linux goes through (`exec_binprm`).
const DEEPEST: usize = 5;
/// Larger programs are not looked through.
const MOST_BYTES: u64 = 512 << 20;

/// Linkage of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// By glibc's dynamic linker.
    #[default]
    Glibc,
    /// By musl's.
    Musl,
    /// Statically, with glibc inside.
    StaticGlibc,
    /// Statically, without glibc.
    Static,
    /// By another dynamic linker, or not a program for 64 bits.
    Foreign,
    /// Runs with more privilege than its caller: neither preloads nor tunables reach it.
    Privileged,
}

/// The file that runs in the end: a script's interpreter, or what a dynamic linker is started with.
#[derive(Debug)]
pub struct Executable {
    /// The file.
    pub file: PathBuf,
    /// The dynamic linker, and the folders in which it looks first, where the command names them.
    by: Option<(PathBuf, Vec<PathBuf>)>,
}

/// Reach of preloading into a program.
#[derive(Debug, PartialEq, Eq)]
pub enum Reach {
    /// Programs that it starts are reached, but not the program itself: the reason.
    Itself(&'static str),
    /// Not at all, since its dynamic linker would complain or end it: why.
    Nothing(String),
    /// By preloading, after these libraries: sanitizers, which insist on being the first.
    After(Vec<OsString>),
}

impl Executable {
    /// Follows a program that is started with these arguments.
    #[must_use]
    pub fn open(program: &Path, arguments: &[OsString]) -> Executable {
        if let Some((file, folders)) = linked(program, arguments) {
            return Executable { file, by: Some((program.to_owned(), folders)) };
        }
        let mut file = program.to_owned();
        for _ in 0..=DEEPEST {
            let begin = beginning(&file);
            let Some(line) = begin.strip_prefix(b"#!") else {
                // A script without that line is a shell's.
                let is_text = !begin.is_empty() && !begin.contains(&0);
                return Executable {
                    file: if is_text { "/bin/sh".into() } else { file },
                    by: None,
                };
            };
            let line = line.split(|byte| *byte == b'\n').next().unwrap_or(b"").trim_ascii();
            let mut words = line.split(|byte| byte.is_ascii_whitespace());
            let named = PathBuf::from(OsStr::from_bytes(words.next().unwrap_or(b"")));
            file = match words.find(|word| !word.is_empty() && !word.starts_with(b"-")) {
                // `#!/usr/bin/env python3`
                Some(word) if named.ends_with("env") => {
                    find(Path::new(OsStr::from_bytes(word))).unwrap_or(named)
                }
                _ => named,
            };
        }
        Executable { file, by: None }
    }

    /// Its linkage.
    #[must_use]
    pub fn linkage(&self) -> Linkage {
        if is_secure(&self.file) {
            return Linkage::Privileged;
        }
        let Some(elf) = Elf::read(&self.file) else { return Linkage::Foreign };
        let named = self.by.as_ref().map(|(linker, _)| linker.as_os_str().to_owned());
        let linker = named.or_else(|| elf.interpreter()).map(|name| name.into_encoded_bytes());
        let has = |part: &[u8]| {
            linker.as_ref().is_some_and(|name| name.windows(part.len()).any(|at| at == part))
        };
        match linker {
            Some(_) if has(b"/ld-linux") || has(b"/ld64.so") => Linkage::Glibc,
            Some(_) if has(b"/ld-musl") => Linkage::Musl,
            Some(_) => Linkage::Foreign,
            None if elf.contains(b"GLIBC_TUNABLES") => Linkage::StaticGlibc,
            None => Linkage::Static,
        }
    }

    /// Reach of a preloaded library. Where the file says nothing, the kernel will.
    #[must_use]
    pub fn reach(&self, library: &Path) -> Reach {
        self.reached(library).unwrap_or(Reach::After(Vec::new()))
    }

    fn reached(&self, library: &Path) -> Option<Reach> {
        // The bits of a script count for nothing, those of its interpreter do.
        if is_secure(&self.file) {
            let why = "it runs with more privilege than its caller, so nothing is preloaded";
            return Some(Reach::Itself(why));
        }
        if beginning(&self.file).starts_with(b"\x7FELF\x01") {
            let why = "a 32-bit program, into which nothing is preloaded";
            return Some(Reach::Nothing(why.to_owned()));
        }
        let elf = Elf::read(&self.file)?;
        let own = elf.interpreter().map(|linker| (PathBuf::from(linker), Vec::new()));
        let Some((linker, folders)) = self.by.clone().or(own) else {
            let why = "a statically linked program, into which nothing is preloaded";
            return Some(Reach::Itself(why));
        };
        if let Some(name) = missing(&linker, &folders, library) {
            let why = format!("its C library lacks {name}, which the library calls");
            return Some(Reach::Nothing(why));
        }
        let mut needed = elf.named(DT_NEEDED);
        needed.retain(|name| is_sanitizer(name.as_bytes()));
        Some(Reach::After(needed))
    }
}

/// Bytes of a file's beginning, as many as the kernel looks at and more.
fn beginning(file: &Path) -> Vec<u8> {
    let mut begin = Vec::new();
    // An unreadable file is no program that could be run.
    let _ = regular(file).and_then(|file| file.take(4096).read_to_end(&mut begin));
    begin
}

/// An ELF file for 64 bits.
struct Elf(ReadCache<fs::File>);

impl Elf {
    fn read(file: &Path) -> Option<Elf> {
        let elf = Elf(ReadCache::new(regular(file).ok()?));
        FileHeader64::<Endianness>::parse(&elf.0).ok()?;
        Some(elf)
    }

    fn interpreter(&self) -> Option<OsString> {
        let header = FileHeader64::<Endianness>::parse(&self.0).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, &self.0).ok()?;
        let name = segments.iter().find_map(|of| of.interpreter(endian, &self.0).ok().flatten())?;
        Some(OsStr::from_bytes(name).to_owned())
    }

    /// Names in the dynamic section that have this tag.
    fn named(&self, tag: DynamicTag) -> Vec<OsString> {
        let names = || {
            let header = FileHeader64::<Endianness>::parse(&self.0).ok()?;
            let endian = header.endian().ok()?;
            let sections = header.sections(endian, &self.0).ok()?;
            let (entries, link) = sections.dynamic(endian, &self.0).ok()??;
            let strings = sections.strings(endian, &self.0, link).ok()?;
            let of_tag = entries.iter().filter(|entry| entry.tag(endian) == tag);
            let names = of_tag.filter_map(|entry| entry.string(endian, strings).ok());
            Some(names.map(|name| OsStr::from_bytes(name).to_owned()).collect())
        };
        names().unwrap_or_default()
    }

    /// Names of dynamic symbols: those that it defines for others, and those that it needs.
    fn symbols(&self) -> [BTreeSet<String>; 2] {
        let mut found = [BTreeSet::new(), BTreeSet::new()];
        let Ok(parsed) = ElfFile64::<Endianness, _>::parse(&self.0) else { return found };
        for symbol in parsed.dynamic_symbols() {
            let Ok(name) = symbol.name() else { continue };
            if !symbol.is_undefined() {
                found[0].insert(name.to_owned());
            } else if symbol.is_global() && !symbol.is_weak() {
                found[1].insert(name.to_owned());
            }
        }
        found
    }

    fn contains(&self, part: &[u8]) -> bool {
        let length = self.0.len().unwrap_or(0).min(MOST_BYTES);
        let bytes = self.0.read_bytes_at(0, length).unwrap_or_default();
        bytes.windows(part.len()).any(|window| window == part)
    }
}

/// Returns whether an ELF file defines a symbol for others.
#[must_use]
pub fn exports(file: &Path, symbol: &str) -> bool {
    Elf::read(file).is_some_and(|elf| elf.symbols()[0].contains(symbol))
}

/// Variables that an ELF file reads for an allocator inside it, by its strings: jemalloc's under any prefix, mimalloc's, those of
/// Arrow and of a Python that was built with mimalloc.
#[must_use]
pub fn variables_inside(file: &Path) -> BTreeSet<String> {
    let strings = |elf: &Elf| -> Option<BTreeSet<String>> {
        let parsed = ElfFile64::<Endianness, _>::parse(&elf.0).ok()?;
        let section = parsed.section_by_name(".rodata")?;
        let mut found = BTreeSet::new();
        let mut has_mimalloc = false;
        for text in section.data().ok()?.split(|byte| *byte == 0) {
            match text {
                b"purge_delay" => _ = found.insert("MIMALLOC_PURGE_DELAY".to_owned()),
                b"ARROW_DEFAULT_MEMORY_POOL" | b"PYTHONMALLOC" => {
                    found.insert(String::from_utf8_lossy(text).into_owned());
                }
                b"mimalloc_debug" => has_mimalloc = true,
                _ if text.ends_with(b"MALLOC_CONF") && text.len() < 40 => {
                    let is_name = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'_';
                    let name = String::from_utf8_lossy(text).into_owned();
                    found.extend(text.iter().all(is_name).then_some(name));
                }
                _ => {}
            }
        }
        if !has_mimalloc {
            found.remove("PYTHONMALLOC");
        }
        Some(found)
    };
    Elf::read(file).and_then(|elf| strings(&elf)).unwrap_or_default()
}

/// Returns true for a Go program: such an executable says how it was built.
#[must_use]
pub fn is_go(program: &Path) -> bool {
    Elf::read(program).is_some_and(|elf| {
        ElfFile64::<Endianness, _>::parse(&elf.0)
            .is_ok_and(|parsed| parsed.section_by_name(".go.buildinfo").is_some())
    })
}

/// The program that a command runs if its file is a dynamic linker, as in `ld.so --library-path lib PROGRAM`, and the folders.
fn linked(linker: &Path, arguments: &[OsString]) -> Option<(PathBuf, Vec<PathBuf>)> {
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
    let elf = Elf::read(linker)?;
    // Of what is run by itself, dynamic linkers alone have a name as a library.
    if elf.interpreter().is_some() || elf.named(DT_SONAME).is_empty() {
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
    Some((PathBuf::from(program), folders))
}

/// Returns whether the kernel sets `AT_SECURE` for it (`bprm_fill_uid` and `cap_bprm_creds_from_file`): its user or
/// group would change, or a user who is not root gains capabilities.
fn is_secure(program: &Path) -> bool {
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

/// Symbol that the library needs and that the C library lacks: `libc.so.6` in one of these folders or beside glibc's dynamic
/// linker, musl's linker itself.
fn missing(linker: &Path, folders: &[PathBuf], library: &Path) -> Option<String> {
    let linker = fs::canonicalize(linker).ok()?;
    let mut places: Vec<PathBuf> = folders.iter().map(|folder| folder.join("libc.so.6")).collect();
    places.extend([linker.with_file_name("libc.so.6"), linker]);
    let mut found = places.iter().filter_map(|place| Elf::read(place)).map(|elf| elf.symbols());
    let [defined, _] = found.find(|[defined, _]| defined.contains("getenv"))?;
    let library = Elf::read(library)?;
    // One that names others has symbols of theirs.
    let alone = library.named(DT_NEEDED).is_empty();
    let [_, asked] = library.symbols();
    asked.into_iter().find(|name| alone && !defined.contains(name))
}

/// Returns whether a library insists on being the first: those of gcc and of clang.
fn is_sanitizer(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"libclang_rt.").or_else(|| name.strip_prefix(b"lib"));
    let names = [b"asan".as_slice(), b"tsan", b"msan", b"hwasan"];
    let rest = name.and_then(|name| names.iter().find_map(|of| name.strip_prefix(*of)));
    rest.is_some_and(|rest| rest.starts_with(b".") || rest.starts_with(b"-"))
}

/// The library, after what has to come first and before what was to be preloaded anyway.
#[must_use]
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

/// The allocators that are installed where distributions put libraries, and that this C library can load: by name where the
/// dynamic linker finds them by it, so that a setting holds on every architecture; else by their path.
#[must_use]
pub fn installed(linkage: Linkage) -> Vec<Installed> {
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let places = [multiarch.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib"];
    let is_for_musl = |file: &Path| {
        let needed = Elf::read(file).map_or_else(Vec::new, |elf| elf.named(DT_NEEDED));
        !needed.iter().any(|name| name == "libc.so.6")
    };
    let found = |files: &[(&str, &str)]| {
        let all = places
            .iter()
            .flat_map(|place| files.iter().map(|(file, _)| Path::new(place).join(file)));
        let fits =
            |file: &PathBuf| file.exists() && is_for_musl(file) == (linkage == Linkage::Musl);
        let path = all.into_iter().find(fits)?;
        let name = path.file_name().map(PathBuf::from)?;
        Some(if is_loaded(&name) { name } else { path })
    };
    let all = ALLOCATORS
        .iter()
        .filter_map(|of| Some(Installed { name: of.name, file: found(of.files)? }));
    all.collect()
}

/// Returns true if the dynamic linker finds a library by its name: else it warns.
fn is_loaded(name: &Path) -> bool {
    let mut asked = std::process::Command::new("/bin/true");
    asked.env("LD_PRELOAD", name).stdin(std::process::Stdio::null());
    asked.output().is_ok_and(|said| said.status.success() && said.stderr.is_empty())
}

/// File of a program as a shell finds it: by `PATH` unless there is a slash in the name.
#[must_use]
pub fn find(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 || name.is_absolute() || name.starts_with(".") {
        return name.exists().then(|| name.to_path_buf());
    }
    // The C library's own list, where nobody set one.
    let list = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&list).map(|path| path.join(name)).find(|path| is_executable(path))
}

/// The reason why a program that was found cannot be started: of a script whose interpreter is missing the system says that
/// the script itself is.
#[must_use]
pub fn not_started(program: &Path, error: &std::io::Error) -> String {
    let file = program.display();
    if program.is_dir() {
        return format!("{file}: expected a program, found a directory");
    }
    let first_line = || {
        let begin = beginning(program);
        let line =
            begin.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
        let name = line.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
        Some(String::from_utf8_lossy(name).escape_debug().to_string())
    };
    match error.kind() {
        std::io::ErrorKind::NotFound if program.exists() => match first_line() {
            Some(interpreter) => format!("{file}: its interpreter {interpreter}: {error}"),
            None => format!("{file}: the interpreter or the loader that it names: {error}"),
        },
        std::io::ErrorKind::PermissionDenied if !is_executable(program) => {
            format!("{file}: it is not executable (chmod +x); {error}")
        }
        _ => format!("{file}: {error}"),
    }
}

/// Returns true for a file that somebody may execute.
#[must_use]
pub fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
}

/// Opens a file that is one: no pipe that never ends, and no device.
///
/// # Errors
/// Another kind of file, which the message names, or the system refuses to open it.
pub fn regular(path: &Path) -> std::io::Result<fs::File> {
    let check = |metadata: fs::Metadata| {
        let kind = metadata.file_type();
        let found = match () {
            () if kind.is_file() => return Ok(()),
            () if kind.is_dir() => "a directory",
            () if kind.is_fifo() => "a pipe",
            () if kind.is_socket() => "a socket",
            () => "a device",
        };
        Err(std::io::Error::other(format!("expected a regular file, found {found}")))
    };
    // A socket cannot be opened, and another file may come meanwhile.
    check(fs::metadata(path)?)?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripts_interpreter_is_the_program() {
        let directory = tempfile::tempdir().expect("a directory");
        let script = directory.path().join("script");
        for (text, file) in [
            ("#!/usr/bin/env -S sh -e\n", "sh"),
            ("#!/bin/sh -e\n", "/bin/sh"),
            ("echo\n", "/bin/sh"),
        ] {
            fs::write(&script, text).expect("written");
            assert!(Executable::open(&script, &[]).file.ends_with(file), "{text}");
        }
        let shell = Executable::open(Path::new("/bin/sh"), &[]);
        assert_eq!(shell.linkage(), Linkage::Glibc);
        assert!(!exports(&shell.file, "malloc") && !is_go(&shell.file));
    }

    /// Two scripts that are each other's interpreter were once the end of the stack.
    #[test]
    fn a_circle_of_interpreters_and_files_that_are_none_are_left_to_the_kernel() {
        let directory = tempfile::tempdir().expect("a directory");
        let [one, other, pipe] = ["one", "other", "pipe"].map(|name| directory.path().join(name));
        fs::write(&one, format!("#!{}\n", other.display())).expect("written");
        fs::write(&other, format!("#!{}\n", one.display())).expect("written");
        let (left, none) = (Reach::After(Vec::new()), Path::new(""));
        let reach = |file: &Path| Executable::open(file, &[]).reach(none);
        assert_eq!(reach(&one), left);
        let mode = rustix::fs::Mode::from(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
        for endless in [pipe.as_path(), Path::new("/dev/zero")] {
            assert_eq!(reach(endless), left);
            fs::write(&one, format!("#!{}\n", endless.display())).expect("written");
            assert_eq!(reach(&one), left);
        }
        for text in ["\x7FELF\x02\x01 and no more", "text", ""] {
            fs::write(&one, text).expect("written");
            assert_eq!(reach(&one), left, "{text}");
        }
        fs::write(&one, "\x7FELF\x01\x01 of 32 bits\0").expect("written");
        assert!(matches!(reach(&one), Reach::Nothing(_)));
    }

    /// The kernel's rule, and not the bits of the file that is named.
    #[test]
    fn what_has_more_privilege_than_its_caller_is_told_by_what_would_change() {
        let directory = tempfile::tempdir().expect("a directory");
        let [program, script] = ["program", "script"].map(|name| directory.path().join(name));
        fs::copy("/bin/sh", &program).expect("copied");
        fs::write(&script, format!("#!{}\n", program.display())).expect("written");
        let set = |mode| fs::set_permissions(&program, fs::Permissions::from_mode(mode));
        // Its owner is who runs it: nothing changes.
        set(0o6755).expect("its owner may");
        assert_eq!(Executable::open(&script, &[]).linkage(), Linkage::Glibc);
        let (mine, other) = (rustix::process::getuid(), rustix::process::Uid::from_raw(65534));
        if !mine.is_root() || rustix::fs::chown(&program, Some(other), None).is_err() {
            eprintln!("set-user-id: SKIPPED, only root can give a program away");
            return;
        }
        set(0o4755).expect("root may");
        let nosuid = rustix::fs::statvfs(&program).expect("a file system").f_flag;
        let changes = !nosuid.contains(StatVfsMountFlags::NOSUID);
        let found = Executable::open(&script, &[]);
        assert_eq!(found.linkage() == Linkage::Privileged, changes);
        assert_eq!(matches!(found.reach(Path::new("")), Reach::Itself(_)), changes);
    }

    #[test]
    fn sanitizers_come_first_and_the_library_before_all_others() {
        let all = |first: &[OsString], others: &str| {
            preload(Path::new("/l.so"), first, (!others.is_empty()).then(|| others.into()))
        };
        assert_eq!(all(&[], ""), "/l.so");
        assert_eq!(all(&[], "/a.so:b.so"), "/l.so:/a.so:b.so");
        assert_eq!(all(&[], "/x/libasan.so.8:/a.so"), "/x/libasan.so.8:/l.so:/a.so");
        assert_eq!(all(&["libtsan.so.2".into()], "/a.so"), "libtsan.so.2:/l.so:/a.so");
        assert_eq!(all(&["libasan.so.8".into()], "/x/libasan.so.8"), "/x/libasan.so.8:/l.so");
        for of_clang in ["asan-x86_64", "hwasan", "msan-aarch64", "tsan"] {
            let name = format!("/x/libclang_rt.{of_clang}.so");
            assert_eq!(all(&[], &format!("/a.so:{name}")), *format!("{name}:/l.so:/a.so"));
        }
    }

    #[test]
    fn a_library_is_named_as_the_linker_finds_it() {
        assert!(is_loaded(Path::new("libc.so.6")) && !is_loaded(Path::new("libnowhere.so.1")));
        for found in installed(Linkage::Glibc) {
            assert!(found.file.is_absolute() != is_loaded(&found.file), "{found:?}");
        }
    }
}
