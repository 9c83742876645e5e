//! Settings from outside that decide over a process's memory: its allocator, what is preloaded, tunables, huge pages, and the
//! memory limit of its control group.

use cachewise_host::{Groups, Tree};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Variables that allocators read, beside `GLIBC_TUNABLES`.
pub const ALLOCATORS_READ: [&str; 8] = [
    "MALLOC_ARENA_MAX",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_CONF",
    "MIMALLOC_PURGE_DELAY",
    "TCMALLOC_RELEASE_RATE",
    "PYTHONMALLOC",
];
/// Allocators by a part of their libraries' names.
const LIBRARIES: [&str; 8] =
    ["jemalloc", "mimalloc", "tcmalloc", "snmalloc", "hoard", "rpmalloc", "scudo", "mallocng"];
/// Larger libraries are not searched for their version.
const MOST_BYTES: u64 = 64 << 20;

/// Settings from outside of a process's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The library that has its `malloc`, with its version as mapped.
    pub allocator: String,
    /// `LD_PRELOAD`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preload: String,
    /// `GLIBC_TUNABLES`, and other allocators' variables as `NAME=VALUE`, between spaces.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tunables: String,
    /// Transparent huge pages: the system's mode, and `off for the process` where they are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub huge_pages: String,
    /// Bytes that the process's control groups allow, the least of them; none without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
}

impl Surroundings {
    /// Settings of this process, which children inherit.
    pub fn of_process() -> Surroundings {
        let variable = |name: &str| {
            let value = std::env::var_os(name).unwrap_or_default();
            value.to_string_lossy().into_owned()
        };
        let own = Path::new("/proc/self");
        let maps = fs::read_to_string(own.join("maps")).unwrap_or_default();
        Surroundings {
            allocator: allocator(maps.lines().filter_map(mapped_file)),
            preload: variable("LD_PRELOAD"),
            tunables: tunables(variable),
            huge_pages: huge_pages(&fs::read_to_string(own.join("status")).unwrap_or_default()),
            memory_limit: Groups::of_process().memory_limit(),
        }
    }
}

/// The file of a line of `maps`.
pub fn mapped_file(line: &str) -> Option<PathBuf> {
    let path = &line[line.find('/')?..];
    Some(PathBuf::from(path.strip_suffix(" (deleted)").unwrap_or(path)))
}

fn tunables(variable: impl Fn(&str) -> String) -> String {
    let others = ALLOCATORS_READ.iter().map(|name| (*name, variable(name)));
    let others = others.filter(|(_, value)| !value.is_empty());
    let others = others.map(|(name, value)| format!("{name}={value}"));
    let all = std::iter::once(variable("GLIBC_TUNABLES")).filter(|line| !line.is_empty());
    all.chain(others).collect::<Vec<_>>().join(" ")
}

fn huge_pages(status: &str) -> String {
    let mode = Tree::default().chosen("sys/kernel/mm/transparent_hugepage/enabled");
    let mode = mode.unwrap_or_else(|| "unknown".to_owned());
    let line = status.lines().find_map(|line| line.strip_prefix("THP_enabled:"));
    match line.map(str::trim) {
        Some("0") => format!("{mode}, off for the process"),
        _ => mode,
    }
}

/// The library among those mapped files that has `malloc`, with its version.
pub fn allocator(files: impl Iterator<Item = PathBuf>) -> String {
    let name = |file: &Path| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (mut other, mut libc) = (None, None);
    for file in files {
        let called = name(&file);
        if LIBRARIES.iter().any(|known| called.contains(known)) {
            other = other.or(Some(file));
        } else if called.starts_with("libc.so") || called.starts_with("libc-2.") {
            libc = libc.or(Some(file));
        } else if called.starts_with("ld-musl") {
            return "musl".to_owned();
        }
    }
    match (other, libc) {
        (Some(file), _) => {
            let version = version(&file).map_or_else(String::new, |version| format!(" {version}"));
            format!("{}{version}", name(&file))
        }
        (None, Some(file)) => match version(&file) {
            Some(version) => format!("glibc {version}"),
            None => name(&file),
        },
        (None, None) => "unknown".to_owned(),
    }
}

/// The version that an allocator's library has in its bytes or in its file's name.
fn version(file: &Path) -> Option<String> {
    let length = fs::metadata(file).ok()?.len();
    let bytes = if length <= MOST_BYTES { fs::read(file).ok()? } else { Vec::new() };
    let of_bytes = glibc_version(&bytes).or_else(|| jemalloc_version(&bytes));
    of_bytes.or_else(|| {
        let name = file.file_name().and_then(OsStr::to_str)?;
        let (_, version) = name.split_once(".so.")?;
        version.contains('.').then(|| version.to_owned())
    })
}

/// "GNU C Library (...) stable release version 2.36."
fn glibc_version(bytes: &[u8]) -> Option<String> {
    let begin = b"release version ";
    let at = bytes.windows(begin.len()).position(|window| window == begin)? + begin.len();
    let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
    let version: String = digits.map(|byte| char::from(*byte)).collect();
    Some(version.trim_end_matches('.').to_owned()).filter(|version| !version.is_empty())
}

/// "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c"
fn jemalloc_version(bytes: &[u8]) -> Option<String> {
    let is_commit =
        |window: &[u8]| window.starts_with(b"-g") && window[2..].iter().all(u8::is_ascii_hexdigit);
    let end = bytes.windows(42).position(is_commit)?;
    let is_part = |byte: &&u8| byte.is_ascii_digit() || matches!(**byte, b'.' | b'-');
    let length = bytes[..end].iter().rev().take_while(is_part).count();
    let text = String::from_utf8_lossy(&bytes[end - length..end]).into_owned();
    let version = text.split('-').next()?.to_owned();
    version.contains('.').then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_an_allocator_with_a_version() {
        let own = Surroundings::of_process();
        assert!(own.allocator.contains('.') || own.allocator == "musl", "{own:?}");
        assert!(!own.huge_pages.is_empty());
    }

    #[test]
    fn versions_are_read_from_bytes_and_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).expect("written");
            path
        };
        let je = b"\0x\x005.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c\0";
        for (name, bytes, said) in [
            ("libjemalloc.so.2", &je[..], "libjemalloc.so.2 5.3.0"),
            ("libmimalloc.so.2.0", b"", "libmimalloc.so.2.0 2.0"),
            ("libtcmalloc_minimal.so.4", b"", "libtcmalloc_minimal.so.4"),
            ("libc.so.6", b"GNU C Library stable release version 2.36.\n", "glibc 2.36"),
        ] {
            assert_eq!(allocator(std::iter::once(file(name, bytes))), said);
        }
        let both = [file("libc.so.6", b""), file("libjemalloc.so.2", b"")];
        assert_eq!(allocator(both.into_iter()), "libjemalloc.so.2");
        assert_eq!(allocator(std::iter::empty()), "unknown");
        let line = "7f-80 r-xp 0 08:01 7   /a b/lib.so (deleted)";
        assert_eq!(mapped_file(line), Some(PathBuf::from("/a b/lib.so")));
        assert_eq!(mapped_file("7f-80 rw-p 0 00:00 0 [heap]"), None);
    }

    #[test]
    fn tunables_of_all_allocators_are_kept() {
        let one = |name: &str| match name {
            "GLIBC_TUNABLES" => "a=1".to_owned(),
            "MALLOC_CONF" => "thp:never".to_owned(),
            _ => String::new(),
        };
        assert_eq!(tunables(one), "a=1 MALLOC_CONF=thp:never");
        assert_eq!(tunables(|_| String::new()), "");
        assert!(huge_pages("THP_enabled:\t0\n").ends_with(", off for the process"));
        assert!(!huge_pages("THP_enabled:\t1\n").contains("process"));
    }
}
