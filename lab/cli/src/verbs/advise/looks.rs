//! Facts about a program: its linking, its `malloc`, the files mapped into it while it runs.

use crate::program as programs;
use crate::verbs::reach;
use cachewise_advise::candidates::{Installed, Linking, Malloc};
use object::elf::{FileHeader64, PT_INTERP, SHN_UNDEF};
use object::read::elf::{FileHeader as _, ProgramHeader as _, Sym as _};
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Interpreters of interpreters that Linux goes through (`exec_binprm`).
const DEEPEST: usize = 5;
/// Larger programs are not looked through.
const MOST_BYTES: u64 = 512 << 20;
/// Other allocators, and the files that Debian, Fedora and Alpine install for them.
const ALLOCATORS: [(&str, &[&str]); 3] = [
    ("jemalloc", &["libjemalloc.so.2"]),
    ("mimalloc", &["libmimalloc.so.2", "libmimalloc.so.3"]),
    ("tcmalloc", &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"]),
];

/// The program that runs in the end: a script's interpreter, or what a dynamic linker is started with.
pub fn interpreter(program: &Path, arguments: &[OsString]) -> PathBuf {
    if let Some(linked) = reach::linked(program, arguments) {
        return linked.program;
    }
    let mut found = program.to_owned();
    for _ in 0..=DEEPEST {
        let mut begin = Vec::new();
        let read =
            programs::regular(&found).and_then(|file| file.take(256).read_to_end(&mut begin));
        let Some(line) = begin.strip_prefix(b"#!").filter(|_| read.is_ok()) else {
            // A script without that line is a shell's.
            let is_text = read.is_ok() && !begin.is_empty() && !begin.contains(&0);
            return if is_text { PathBuf::from("/bin/sh") } else { found };
        };
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or(b"").trim_ascii();
        let mut words = line.split(|byte| byte.is_ascii_whitespace());
        let first = words.next().unwrap_or(b"");
        let named = PathBuf::from(std::ffi::OsStr::from_bytes(first));
        found = match words.find(|word| !word.is_empty() && !word.starts_with(b"-")) {
            // `#!/usr/bin/env python3`
            Some(word) if named.ends_with("env") => {
                let word = Path::new(std::ffi::OsStr::from_bytes(word));
                programs::find(word).unwrap_or(named)
            }
            _ => named,
        };
    }
    found
}

/// How an executable is linked.
pub fn linking(program: &Path, is_privileged: bool) -> Linking {
    if is_privileged {
        return Linking::Privileged;
    }
    let bytes = whole(program);
    let interpreter = elf(&bytes).and_then(|header| {
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, &*bytes).ok()?;
        let found = segments.iter().find(|segment| segment.p_type(endian) == PT_INTERP);
        Some(found.map(|segment| segment.data(endian, &*bytes).unwrap_or_default().to_vec()))
    });
    match interpreter {
        // Not a program for 64 bits: the kernel will say what it is.
        None => Linking::Foreign,
        Some(Some(linker)) if contains(&linker, b"/ld-linux") => Linking::Glibc,
        Some(Some(linker)) if contains(&linker, b"/ld64.so") => Linking::Glibc,
        Some(Some(_)) => Linking::Foreign,
        Some(None) if contains(&bytes, b"GLIBC_TUNABLES") => Linking::StaticGlibc,
        Some(None) => Linking::Static,
    }
}

fn elf(bytes: &[u8]) -> Option<&FileHeader64<object::LittleEndian>> {
    FileHeader64::parse(bytes).ok()
}

fn whole(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read =
        programs::regular(file).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    // An unreadable file is no program that could be run.
    if read.is_err() { Vec::new() } else { bytes }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Returns whether an ELF file defines `malloc` for others.
fn has_malloc(file: &Path) -> bool {
    let bytes = whole(file);
    let found = elf(&bytes).and_then(|header| {
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, &*bytes).ok()?;
        let symbols = sections.symbols(endian, &*bytes, object::elf::SHT_DYNSYM).ok()?;
        let names = symbols.strings();
        Some(symbols.iter().any(|symbol| {
            symbol.st_shndx(endian) != SHN_UNDEF
                && symbol.name(endian, names).is_ok_and(|name| name == b"malloc")
        }))
    });
    found.unwrap_or(false)
}

/// Returns true for a Go program: such an executable says how it was built.
pub fn is_go(program: &Path) -> bool {
    let bytes = whole(program);
    let found = elf(&bytes).and_then(|header| {
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, &*bytes).ok()?;
        sections.section_by_name(endian, b".go.buildinfo")
    });
    found.is_some()
}

/// Observations of a program's processes while they ran.
#[derive(Default)]
pub struct Watched {
    files: BTreeSet<PathBuf>,
    programs: BTreeSet<PathBuf>,
    /// Most threads of one of them.
    pub threads: usize,
    /// The first process.
    pub program: Option<i32>,
}

impl Watched {
    /// Looks at a process and at those that descend from it.
    pub fn look(&mut self, pid: Pid) {
        let mut left = vec![pid.as_raw_nonzero().get()];
        self.program = Some(left[0]);
        while let Some(pid) = left.pop() {
            let place = PathBuf::from(format!("/proc/{pid}"));
            self.programs.extend(fs::read_link(place.join("exe")).ok());
            let tasks: Vec<_> =
                fs::read_dir(place.join("task")).into_iter().flatten().flatten().collect();
            self.threads = self.threads.max(tasks.len());
            for task in tasks {
                let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
                left.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
            }
            // It may have ended meanwhile.
            let maps = fs::read_to_string(place.join("maps")).unwrap_or_default();
            let files = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
            self.files.extend(files.map(PathBuf::from));
        }
    }

    /// Returns true if any of its programs is one.
    pub fn is_any(&self, is_one: impl Fn(&Path) -> bool) -> bool {
        self.programs.iter().any(|program| is_one(program))
    }

    /// The library among the mapped files that has its `malloc`, with its version.
    pub fn allocator(&self) -> String {
        cachewise_measure::surroundings::allocator(self.files.iter().cloned())
    }

    /// The names of the files that were mapped.
    pub fn mapped(&self) -> Vec<String> {
        let name = |file: &PathBuf| Some(file.file_name()?.to_string_lossy().into_owned());
        self.files.iter().filter_map(name).collect()
    }

    /// Source of the program's `malloc`.
    pub fn malloc(&self, program: &Path) -> Malloc {
        if self.programs.iter().map(PathBuf::as_path).chain([program]).any(has_malloc) {
            return Malloc::Own;
        }
        let known = |file: &&PathBuf| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            ALLOCATORS.iter().any(|(allocator, _)| name.contains(allocator))
        };
        match self.files.iter().filter(known).find(|file| has_malloc(file)) {
            Some(file) => {
                Malloc::Library(file.file_name().unwrap_or_default().to_string_lossy().into_owned())
            }
            None => Malloc::Glibc,
        }
    }
}

/// The allocators that are installed where distributions put libraries: by name where the dynamic linker finds them by
/// it, so that a setting holds on every architecture; else by their path.
pub fn installed() -> Vec<Installed> {
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let places = [multiarch.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib"];
    let found = |files: &[&str]| {
        let all =
            places.iter().flat_map(|place| files.iter().map(|file| Path::new(place).join(file)));
        let path = all.into_iter().find(|path| path.exists())?;
        let name = path.file_name().map(PathBuf::from)?;
        Some(if is_loaded(&name) { name } else { path })
    };
    let all = ALLOCATORS.iter().filter_map(|(name, files)| {
        Some(Installed { name: (*name).to_owned(), file: found(files)? })
    });
    all.collect()
}

/// Returns true if the dynamic linker finds a library by its name: else it warns.
fn is_loaded(name: &Path) -> bool {
    let mut asked = std::process::Command::new("/bin/true");
    asked.env("LD_PRELOAD", name).stdin(std::process::Stdio::null());
    asked.output().is_ok_and(|said| said.status.success() && said.stderr.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripts_interpreter_is_the_program() {
        let directory = tempfile::tempdir().expect("a directory");
        let script = directory.path().join("script");
        fs::write(&script, "#!/usr/bin/env -S sh -e\n").expect("written");
        assert!(interpreter(&script, &[]).ends_with("sh"));
        fs::write(&script, "#!/bin/sh -e\n").expect("written");
        assert_eq!(interpreter(&script, &[]), Path::new("/bin/sh"));
        assert_eq!(linking(Path::new("/bin/sh"), false), Linking::Glibc);
        assert_eq!(linking(Path::new("/bin/sh"), true), Linking::Privileged);
        assert_eq!(linking(&script, false), Linking::Foreign);
    }

    #[test]
    fn a_library_is_named_as_the_linker_finds_it() {
        assert!(is_loaded(Path::new("libc.so.6")));
        assert!(!is_loaded(Path::new("libnowhere.so.1")));
        for found in installed() {
            assert!(found.file.is_absolute() != is_loaded(&found.file), "{found:?}");
        }
    }

    #[test]
    fn libc_has_a_malloc_and_this_program_has_none() {
        let own = std::env::current_exe().expect("a path");
        assert!(!has_malloc(&own));
        let mut watched = Watched::default();
        watched.look(rustix::process::getpid());
        let libc = watched.files.iter().find(|file| file.to_string_lossy().contains("/libc.so"));
        assert!(libc.is_some_and(|libc| has_malloc(libc)), "{:?}", watched.mapped());
        assert!(watched.threads >= 1);
        assert_eq!(watched.malloc(&own), Malloc::Glibc);
    }
}
