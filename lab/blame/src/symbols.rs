//! Names of functions: from a file's symbols and debug information, or from a process's perf map.

use crate::unwind::Frame;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

/// Functions of the C library that it has several variants of, whose own names a stripped library lacks.
const VARIED: [&str; 34] = [
    "memcpy",
    "memmove",
    "mempcpy",
    "memset",
    "memcmp",
    "bcmp",
    "memchr",
    "memrchr",
    "rawmemchr",
    "strlen",
    "strnlen",
    "strcpy",
    "strncpy",
    "stpcpy",
    "stpncpy",
    "strcmp",
    "strncmp",
    "strcasecmp",
    "strncasecmp",
    "strchr",
    "strchrnul",
    "strrchr",
    "strcat",
    "strncat",
    "strspn",
    "strcspn",
    "strpbrk",
    "strstr",
    "wcslen",
    "wmemset",
    "wmemcmp",
    "wcschr",
    "wcscmp",
    "wmemchr",
];
/// Those that copy, fill or compare bytes.
const COPIES: [&str; 6] = ["memcpy", "memmove", "mempcpy", "memset", "memcmp", "bcmp"];
/// A variant is no longer than this.
const LONGEST: u64 = 4096;

/// Names, looked for once.
pub(crate) struct Symbols {
    symbolizer: Symbolizer,
    known: HashMap<Frame, Vec<String>>,
    maps: HashMap<i32, BTreeMap<u64, (u64, String)>>,
    /// The C library's file, and where its variants begin in it.
    varied: Option<(PathBuf, BTreeMap<u64, &'static str>)>,
}

impl Symbols {
    pub(crate) fn new() -> Symbols {
        let symbolizer = Symbolizer::builder()
            .enable_code_info(false)
            .enable_inlined_fns(true)
            .enable_demangling(true)
            .build();
        Symbols { symbolizer, known: HashMap::new(), maps: HashMap::new(), varied: varied() }
    }

    /// The names of a frame: a function, then what is inlined in it at that place.
    pub(crate) fn names(&mut self, frame: &Frame) -> &[String] {
        if !self.known.contains_key(frame) {
            let names = match frame {
                Frame::File(file, address) => self.in_file(file, *address),
                Frame::Memory(process, address) => self.in_map(*process, *address),
            };
            let plain = names.into_iter().map(|name| name.replace(';', ":").replace('\n', " "));
            self.known.insert(frame.clone(), plain.collect());
        }
        &self.known[frame]
    }

    fn in_file(&self, file: &Path, address: u64) -> Vec<String> {
        let unknown = || {
            let variant = self.varied.as_ref().filter(|(libc, _)| libc == file);
            let variant = variant.and_then(|(_, all)| all.range(..=address).next_back());
            match variant.filter(|(begin, _)| address - **begin < LONGEST) {
                Some((_, name)) => vec![(*name).to_owned()],
                None => {
                    let name = file.file_name().unwrap_or_default().to_string_lossy();
                    vec![format!("[{name}]")]
                }
            }
        };
        let source = Source::Elf(Elf::new(file));
        match self.symbolizer.symbolize_single(&source, Input::VirtOffset(address)) {
            Ok(Symbolized::Sym(symbol)) => {
                let inlined = symbol.inlined.iter().map(|inlined| inlined.name.to_string());
                std::iter::once(symbol.name.to_string()).chain(inlined).collect()
            }
            Ok(Symbolized::Unknown(_)) | Err(_) => unknown(),
        }
    }

    fn in_map(&mut self, process: i32, address: u64) -> Vec<String> {
        let map = self.maps.entry(process).or_insert_with(|| {
            read_map(&fs::read_to_string(perf_map(process)).unwrap_or_default())
        });
        let found = map.range(..=address).next_back();
        match found.filter(|(begin, (size, _))| address - **begin < *size) {
            Some((_, (_, name))) => vec![name.clone()],
            None => vec!["[unknown]".to_owned()],
        }
    }
}

/// The file in which a process's runtime lists the functions that it compiled.
pub(crate) fn perf_map(process: i32) -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{process}.map"))
}

/// Lines of begin, size and name, numbers in hexadecimal.
fn read_map(text: &str) -> BTreeMap<u64, (u64, String)> {
    let line = |line: &str| {
        let mut fields = line.splitn(3, ' ');
        let mut number = || {
            let field = fields.next()?;
            u64::from_str_radix(field.trim_start_matches("0x"), 16).ok()
        };
        let (begin, size) = (number()?, number()?);
        Some((begin, (size, fields.next()?.trim().to_owned())))
    };
    text.lines().filter_map(line).collect()
}

/// This process's C library: other programs have the same file, and on the same CPU the same variants.
fn varied() -> Option<(PathBuf, BTreeMap<u64, &'static str>)> {
    let mut found = BTreeMap::new();
    let mut file = None;
    for name in VARIED {
        let symbol = CString::new(name).ok()?;
        // SAFETY: a name that ends in NUL.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
        // SAFETY: zeroes are a valid Dl_info.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: any address, and a place for one Dl_info.
        if address.is_null() || unsafe { libc::dladdr(address, &raw mut info) } == 0 {
            continue;
        }
        let offset = (address as u64).wrapping_sub(info.dli_fbase as u64);
        // Names of one function: the first of them.
        found.entry(offset).or_insert(name);
        if file.is_none() && !info.dli_fname.is_null() {
            // SAFETY: the linker's own text, for as long as the library is loaded.
            let path = unsafe { std::ffi::CStr::from_ptr(info.dli_fname) };
            file = fs::canonicalize(path.to_string_lossy().as_ref()).ok();
        }
    }
    file.map(|file| (file, found))
}

/// Returns true for a function that copies, fills or compares bytes.
pub(crate) fn is_copy(name: &str) -> bool {
    let bare = name.trim_start_matches('_');
    let is_one = |known: &&str| {
        let rest = bare.strip_prefix(*known);
        // `memcpy`, `memcpy@GLIBC`, `__memcpy_avx_unaligned_erms`, `memcpy_chk`
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '@']))
    };
    COPIES.iter().any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_the_c_library_are_known_by_where_they_begin() {
        let (file, variants) = varied().expect("a C library");
        assert!(file.is_absolute(), "{}", file.display());
        assert!(variants.values().any(|name| *name == "memcpy" || *name == "memmove"));
        assert!(variants.values().any(|name| *name == "memset"));
    }

    #[test]
    fn copies_are_told_from_other_functions() {
        for name in
            ["memcpy", "__memmove_avx_unaligned_erms", "memset@GLIBC_2.2.5", "__memcmp_sse2"]
        {
            assert!(is_copy(name), "{name}");
        }
        for name in ["memchr", "memcpyish", "main", "[libc.so.6]", "memcmp2"] {
            assert!(!is_copy(name), "{name}");
        }
    }

    #[test]
    fn a_perf_map_names_what_was_compiled() {
        let map = read_map("7f00 10 py::f:/a b.py\n0x8000 20 g\nbad\n");
        assert_eq!(map[&0x7f00], (0x10, "py::f:/a b.py".to_owned()));
        assert_eq!(map.len(), 2);
    }
}
