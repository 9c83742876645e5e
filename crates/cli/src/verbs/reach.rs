//! What preloading does to a program: its file is looked at as the kernel and the dynamic linker will.

use super::program as programs;
use object::elf::{DT_NEEDED, FileHeader64, PT_INTERP};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use object::read::{ReadCache, ReadRef as _};
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
    /// Not: why.
    Not(&'static str),
    /// By preloading, after these libraries: sanitizers, which insist on being the first.
    After(Vec<OsString>),
}

/// Interpreters of interpreters that Linux goes through (`exec_binprm`).
const DEEPEST: usize = 5;

/// How preloading reaches the program. Where the file says nothing, the kernel will.
pub fn of(program: &Path) -> Reach {
    run(program).unwrap_or(Reach::After(Vec::new()))
}

fn run(program: &Path) -> Option<Reach> {
    let mut program = program.to_owned();
    for _ in 0..=DEEPEST {
        let mut line = Vec::new();
        programs::regular(&program).ok()?.take(4096).read_to_end(&mut line).ok()?;
        let Some(line) = line.strip_prefix(b"#!") else {
            // The bits of a script count for nothing, those of its interpreter do.
            if is_secure(&program) {
                let why = "it runs with more privilege than its caller, so nothing is preloaded";
                return Some(Reach::Not(why));
            }
            return elf(&program);
        };
        // A script's interpreter may be a script.
        let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii();
        let interpreter = line.split(|byte| byte.is_ascii_whitespace()).next()?;
        program = PathBuf::from(OsStr::from_bytes(interpreter));
    }
    None
}

/// Whether the kernel sets `AT_SECURE` for it (`bprm_fill_uid` and `cap_bprm_creds_from_file`): its user or
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

/// What an ELF file says; `None` for other files.
fn elf(program: &Path) -> Option<Reach> {
    let file = ReadCache::new(programs::regular(program).ok()?);
    let magic = (&file).read_bytes_at(0, 5).ok()?;
    if magic == b"\x7FELF\x01" {
        return Some(Reach::Not("a 32-bit program, into which nothing is preloaded"));
    }
    let header = FileHeader64::<object::Endianness>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &file).ok()?;
    if !segments.iter().any(|segment| segment.p_type(endian) == PT_INTERP) {
        return Some(Reach::Not("a statically linked program, into which nothing is preloaded"));
    }
    let first = |name: &&[u8]| {
        ["libasan.so", "libtsan.so", "libhwasan.so"]
            .iter()
            .any(|of| name.starts_with(of.as_bytes()))
    };
    let sections = header.sections(endian, &file).ok()?;
    let needed = sections.dynamic(endian, &file).ok().flatten().and_then(|(entries, link)| {
        let strings = sections.strings(endian, &file, link).ok()?;
        let needed = entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED);
        let names = needed.filter_map(|entry| entry.string(endian, strings).ok());
        Some(names.filter(first).map(|name| OsStr::from_bytes(name).to_owned()).collect())
    });
    Some(Reach::After(needed.unwrap_or_default()))
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
    let leads = |name: &&OsString| {
        let file = Path::new(name).file_name().unwrap_or_default().as_bytes();
        [b"libasan.so".as_slice(), b"libtsan.so", b"libhwasan.so"]
            .iter()
            .any(|of| file.starts_with(of))
    };
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
        let left = Reach::After(Vec::new());
        assert_eq!(of(&one), left);
        let name = std::ffi::CString::new(pipe.as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the path ends in NUL.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for endless in [pipe.as_path(), Path::new("/dev/zero")] {
            assert_eq!(of(endless), left);
            fs::write(&one, format!("#!{}\n", endless.display())).expect("written");
            assert_eq!(of(&one), left);
        }
        for text in ["\x7FELF\x02\x01 and no more", "text", ""] {
            fs::write(&one, text).expect("written");
            assert_eq!(of(&one), left);
        }
        fs::write(&one, "\x7FELF\x01\x01 of 32 bits").expect("written");
        assert!(matches!(of(&one), Reach::Not(_)));
    }

    /// The kernel's rule, and not the bits of the file that is named.
    #[test]
    fn what_has_more_privilege_than_its_caller_is_told_by_what_would_change() {
        let directory = tempfile::tempdir().expect("a directory");
        let [program, script] = ["program", "script"].map(|name| directory.path().join(name));
        fs::copy("/bin/sh", &program).expect("copied");
        fs::write(&script, "#!/bin/sh\n").expect("written");
        for file in [&program, &script] {
            // Its owner is who runs it: nothing changes.
            fs::set_permissions(file, fs::Permissions::from_mode(0o6755)).expect("its owner may");
            assert_eq!(of(file), Reach::After(Vec::new()), "{}", file.display());
        }
        // Somebody else's, where this test may make it so.
        let (mine, other) = (rustix::process::getuid(), rustix::process::Uid::from_raw(65534));
        if mine.is_root() && rustix::fs::chown(&program, Some(other), None).is_ok() {
            fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("root may");
            let nosuid = rustix::fs::statvfs(&program).expect("a file system").f_flag;
            let changes = !nosuid.contains(StatVfsMountFlags::NOSUID);
            assert_eq!(matches!(of(&program), Reach::Not(_)), changes);
            fs::write(&script, format!("#!{}\n", program.display())).expect("written");
            assert_eq!(
                matches!(of(&script), Reach::Not(_)),
                changes,
                "its interpreter's bits count"
            );
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
    }
}
