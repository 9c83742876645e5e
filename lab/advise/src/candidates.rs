//! The settings that may gain something, each with the condition under which it is tried and the
//! variables that switch it on.

pub mod memory;

use std::path::PathBuf;

/// The heap keeps what is freed: no block by `mmap`, and the top is given back above 1 GiB.
pub const KEEP: &str = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1073741824";
/// The heap grows by so much at a time.
const PADDED: &str = "glibc.malloc.top_pad=67108864";
/// glibc from which on `malloc` asks for huge pages, and caches blocks beyond 1 KiB in each thread (NEWS of
/// 2.35 and 2.42).
const HUGE_SINCE: (u32, u32) = (2, 35);
const LARGE_CACHE_SINCE: (u32, u32) = (2, 42);

/// How much a setting interferes: the simplest is recommended among those not told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Variables that the program's own libraries read.
    Variables,
    /// Another way to start it.
    Start,
    /// Another allocator, preloaded.
    Allocator,
    /// This project's library, preloaded.
    Preload,
}

/// Cost that a setting lowers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acts {
    /// Page faults and system calls for memory.
    Faults,
    /// Copies, fills and comparisons.
    Copies,
    /// Faults, and what small blocks cost.
    Blocks,
    /// Memory that is held.
    Memory,
}

/// A way to run the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// A name of a few words.
    pub name: String,
    /// How much it interferes.
    pub kind: Kind,
    /// Cost that it lowers.
    pub acts: Acts,
    /// Variables of the environment.
    pub variables: Vec<(String, String)>,
    /// Words between the program and its first argument.
    pub words: Vec<String>,
    /// Transparent huge pages are off for its processes (prctl(2), `PR_SET_THP_DISABLE`).
    pub no_huge_pages: bool,
}

impl Candidate {
    fn new(name: &str, kind: Kind, acts: Acts, variables: &[(&str, &str)]) -> Candidate {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let variables = variables.iter().map(owned).collect();
        let (name, words) = (name.to_owned(), Vec::new());
        Candidate { name, kind, acts, variables, words, no_huge_pages: false }
    }

    /// As it would be typed before the program's words.
    pub fn line(&self, command: &[String]) -> String {
        let (program, arguments) = command
            .split_first()
            .map_or((&[][..], &[][..]), |(one, all)| (std::slice::from_ref(one), all));
        let words = program.iter().chain(&self.words).chain(arguments).map(|word| quoted(word));
        let variables =
            self.variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        variables.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// How simple it is: less interference first, then fewer settings. Keeping freed memory takes two variables of glibc, and
    /// is one setting.
    pub fn simplicity(&self) -> (Kind, usize) {
        let settings = |(name, value): &(String, String)| match name.as_str() {
            "GLIBC_TUNABLES" => value.matches(':').count() + 1 - usize::from(value.contains(KEEP)),
            _ => 1,
        };
        (self.kind, self.variables.iter().map(settings).sum::<usize>() + self.words.len())
    }
}

/// A setting that the user names.
pub fn named(name: &str, variables: Vec<(String, String)>) -> Candidate {
    let preloads = variables.iter().any(|(name, _)| name == "LD_PRELOAD");
    let kind = if preloads { Kind::Allocator } else { Kind::Variables };
    Candidate { variables, ..Candidate::new(name, kind, Acts::Memory, &[]) }
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Words as a shell takes them.
pub fn command(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A setting that is not tried, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Name of the setting.
    pub name: String,
    /// Why.
    pub why: String,
}

/// Source of a program's `malloc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Malloc {
    /// glibc's.
    #[default]
    Glibc,
    /// A library's, by its name.
    Library(String),
    /// The program's file itself has one, which no preload replaces.
    Own,
}

/// How a program is linked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linking {
    /// By glibc's dynamic linker.
    #[default]
    Glibc,
    /// Statically, with glibc inside.
    StaticGlibc,
    /// Statically, without glibc.
    Static,
    /// By another dynamic linker.
    Foreign,
    /// Runs with more privilege than its caller: neither preloads nor tunables reach it.
    Privileged,
}

/// An allocator's library that is installed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// `jemalloc`, `mimalloc`, `tcmalloc`.
    pub name: String,
    /// Its file.
    pub file: PathBuf,
}

/// The one variable of an allocator that matters here, with its value: freed memory is kept.
pub const KEPT_BY: [(&str, &str, &str); 3] = [
    ("jemalloc", "MALLOC_CONF", "dirty_decay_ms:-1,muzzy_decay_ms:-1"),
    ("mimalloc", "MIMALLOC_PURGE_DELAY", "-1"),
    ("tcmalloc", "TCMALLOC_RELEASE_RATE", "0"),
];

/// Facts about the program and the machine.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// How it is linked.
    pub linking: Linking,
    /// Its glibc; `None` where it is unknown.
    pub glibc: Option<(u32, u32)>,
    /// Its `malloc`.
    pub malloc: Malloc,
    /// Files mapped into it, by their names.
    pub mapped: Vec<String>,
    /// Most threads seen in one of its processes.
    pub threads: usize,
    /// Allocators installed here.
    pub allocators: Vec<Installed>,
    /// `GLIBC_TUNABLES` of the profile, where it has any.
    pub thresholds: Option<String>,
    /// Profiles to preload the library with: name, and its variables. None where there is no profile.
    pub profiles: Vec<(String, Vec<(String, String)>)>,
    /// True if transparent huge pages are asked for by `madvise` alone.
    pub huge_on_request: bool,
    /// True if it was seen with transparent huge pages.
    pub has_huge_pages: bool,
    /// True for a Go program.
    pub is_go: bool,
    /// True for a Python.
    pub is_python: bool,
}

impl Facts {
    fn maps(&self, name: &str) -> bool {
        self.mapped.iter().any(|file| file.contains(name))
    }
}

/// All candidates, and what is left out. The plain program is none of them.
pub fn all(facts: &Facts) -> (Vec<Candidate>, Vec<LeftOut>) {
    let (mut candidates, mut left_out) = (Vec::new(), Vec::new());
    tunables(facts, &mut candidates, &mut left_out);
    libraries(facts, &mut candidates);
    allocators(facts, &mut candidates, &mut left_out);
    preloads(facts, &mut candidates, &mut left_out);
    (candidates, left_out)
}

fn leave(left_out: &mut Vec<LeftOut>, name: &str, why: impl Into<String>) {
    left_out.push(LeftOut { name: name.to_owned(), why: why.into() });
}

/// Why nothing can be preloaded; `None` where it can.
fn no_preload(linking: Linking) -> Option<&'static str> {
    match linking {
        Linking::Glibc => None,
        Linking::StaticGlibc | Linking::Static => Some("it is linked statically"),
        Linking::Foreign => Some("it has another dynamic linker than glibc's"),
        Linking::Privileged => Some("it runs with more privilege than its caller"),
    }
}

fn tunables(facts: &Facts, into: &mut Vec<Candidate>, left_out: &mut Vec<LeftOut>) {
    let no_glibc = match facts.linking {
        Linking::Glibc | Linking::StaticGlibc => None,
        other => no_preload(other),
    };
    if let Some(why) = no_glibc {
        leave(left_out, "GLIBC_TUNABLES", why);
        return;
    }
    match &facts.malloc {
        Malloc::Glibc => heap(facts, into),
        Malloc::Library(name) => {
            leave(left_out, "glibc.malloc", format!("its malloc is that of {name}"));
        }
        Malloc::Own => leave(left_out, "glibc.malloc", "it has a malloc of its own"),
    }
    match &facts.thresholds {
        Some(line) => into.push(Candidate::new(
            "glibc's thresholds",
            Kind::Variables,
            Acts::Copies,
            &[("GLIBC_TUNABLES", line)],
        )),
        None => leave(left_out, "glibc's thresholds", "the profile has none to set"),
    }
}

/// Settings of glibc's heap.
fn heap(facts: &Facts, into: &mut Vec<Candidate>) {
    let since = |least| facts.glibc.is_none_or(|version| version >= least);
    let mut malloc = |name: &str, acts, line: &str| {
        into.push(Candidate::new(name, Kind::Variables, acts, &[("GLIBC_TUNABLES", line)]));
    };
    malloc("keep freed memory", Acts::Faults, KEEP);
    malloc("keep freed memory, grow by 64 MiB", Acts::Faults, &format!("{KEEP}:{PADDED}"));
    if since(HUGE_SINCE) && facts.huge_on_request {
        malloc("huge pages for the heap", Acts::Faults, "glibc.malloc.hugetlb=1");
        let both = format!("{KEEP}:{PADDED}:glibc.malloc.hugetlb=1");
        malloc("keep freed memory, in huge pages", Acts::Faults, &both);
    }
    if facts.threads > 1 {
        malloc("one arena for all threads", Acts::Blocks, "glibc.malloc.arena_max=1");
        malloc(
            "one arena, keep freed memory",
            Acts::Faults,
            &format!("{KEEP}:glibc.malloc.arena_max=1"),
        );
    }
    if since(LARGE_CACHE_SINCE) && facts.glibc.is_some() {
        malloc(
            "blocks to 4 MiB cached per thread",
            Acts::Blocks,
            "glibc.malloc.tcache_max=4194304",
        );
    }
}

/// Variables of libraries that are mapped.
fn libraries(facts: &Facts, into: &mut Vec<Candidate>) {
    let mut variable = |name: &str, variable: (&str, &str)| {
        into.push(Candidate::new(name, Kind::Variables, Acts::Faults, &[variable]));
    };
    if facts.maps("_multiarray_umath") {
        // It asks for them by default from Linux 4.6 on.
        variable("no huge pages for NumPy", ("NUMPY_MADVISE_HUGEPAGE", "0"));
    }
    if facts.maps("libtorch_cpu") {
        variable("huge pages for PyTorch", ("THP_MEM_ALLOC_ENABLE", "1"));
    }
    if facts.maps("libjemalloc") {
        variable("huge pages for jemalloc", ("MALLOC_CONF", "thp:always"));
    }
    if let Malloc::Library(own) = &facts.malloc
        && let Some((name, key, value)) = KEPT_BY.into_iter().find(|(name, ..)| own.contains(name))
    {
        variable(&format!("{name}, keep freed memory"), (key, value));
    }
}

fn allocators(facts: &Facts, into: &mut Vec<Candidate>, left_out: &mut Vec<LeftOut>) {
    let why = match facts.malloc {
        Malloc::Own => Some("it has a malloc of its own, which stands before any other"),
        _ => no_preload(facts.linking),
    };
    if let Some(why) = why {
        return leave(left_out, "other allocators", why);
    }
    for (name, key, value) in KEPT_BY {
        let Some(found) = facts.allocators.iter().find(|found| found.name == name) else {
            leave(left_out, name, "it is not installed");
            continue;
        };
        if matches!(&facts.malloc, Malloc::Library(own) if own.contains(name)) {
            leave(left_out, name, "the program has it already");
            continue;
        }
        let preload = ("LD_PRELOAD", &*found.file.to_string_lossy());
        let mut allocator = |name: &str, variables: &[(&str, &str)]| {
            into.push(Candidate::new(name, Kind::Allocator, Acts::Blocks, variables));
        };
        allocator(name, &[preload]);
        allocator(&format!("{name}, keep freed memory"), &[preload, (key, value)]);
    }
}

fn preloads(facts: &Facts, into: &mut Vec<Candidate>, left_out: &mut Vec<LeftOut>) {
    let name = "this machine's profile by preload";
    if let Some(why) = no_preload(facts.linking) {
        return leave(left_out, name, why);
    }
    if facts.profiles.is_empty() {
        leave(left_out, name, "there is no profile: `cachewise tune` makes one");
    }
    for (name, variables) in &facts.profiles {
        let candidate = Candidate::new(name, Kind::Preload, Acts::Copies, &[]);
        into.push(Candidate { variables: variables.clone(), ..candidate });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(facts: &Facts) -> (Vec<String>, Vec<String>) {
        let (candidates, left_out) = all(facts);
        let names = candidates.into_iter().map(|candidate| candidate.name).collect();
        (names, left_out.into_iter().map(|out| format!("{}: {}", out.name, out.why)).collect())
    }

    fn full() -> Facts {
        let library = ("LD_PRELOAD".to_owned(), "/lib/own.so".to_owned());
        Facts {
            glibc: Some((2, 43)),
            threads: 2,
            allocators: KEPT_BY
                .map(|(name, ..)| Installed {
                    name: name.into(),
                    file: format!("/lib/{name}").into(),
                })
                .to_vec(),
            thresholds: Some("glibc.cpu.x86_rep_movsb_threshold=0x800".to_owned()),
            profiles: vec![("the profile".to_owned(), vec![library])],
            mapped: vec!["_multiarray_umath.so".to_owned(), "libtorch_cpu.so".to_owned()],
            huge_on_request: true,
            ..Facts::default()
        }
    }

    #[test]
    fn everything_that_applies_is_tried() {
        let (names, left_out) = names(&full());
        assert_eq!(names.len(), 17, "{names:?}");
        assert!(left_out.is_empty(), "{left_out:?}");
    }

    #[test]
    fn what_cannot_be_tried_is_named_with_its_reason() {
        for (linking, none, why) in [
            (Linking::Privileged, "GLIBC_TUNABLES", "more privilege"),
            (Linking::Static, "other allocators", "statically"),
            (Linking::Foreign, "GLIBC_TUNABLES", "another dynamic linker"),
        ] {
            let (names, left_out) = names(&Facts { linking, mapped: vec![], ..full() });
            assert!(names.is_empty(), "{linking:?} {names:?}");
            let said = left_out.iter().any(|line| line.starts_with(none) && line.contains(why));
            assert!(said, "{left_out:?}");
        }
        let (tried, _) = names(&Facts { linking: Linking::StaticGlibc, mapped: vec![], ..full() });
        assert!(tried.iter().any(|name| name.contains("keep freed")), "{tried:?}");
        assert!(!tried.iter().any(|name| name.contains("malloc,")), "{tried:?}");
    }

    #[test]
    fn a_malloc_of_its_own_leaves_out_what_would_not_reach_it() {
        let (tried, left_out) = names(&Facts { malloc: Malloc::Own, ..full() });
        assert!(!tried.iter().any(|name| name.contains("jemalloc")), "{tried:?}");
        assert!(left_out.iter().any(|line| line.contains("of its own")), "{left_out:?}");
        let malloc = Malloc::Library("libjemalloc.so.2".to_owned());
        let (tried, _) = names(&Facts { malloc, ..full() });
        assert!(tried.contains(&"jemalloc, keep freed memory".to_owned()), "{tried:?}");
        assert!(tried.contains(&"mimalloc".to_owned()), "{tried:?}");
    }

    #[test]
    fn a_line_is_what_a_shell_takes_and_simplicity_counts_settings() {
        let (all, _) = all(&full());
        let command = ["python3", "a b.py"].map(str::to_owned);
        let keep = all.iter().find(|one| one.name.contains("keep")).expect("one");
        assert_eq!(keep.line(&command), format!("GLIBC_TUNABLES={KEEP} python3 'a b.py'"));
        let padded = all.iter().find(|one| one.name.contains("grow by")).expect("one");
        assert!(keep.simplicity() < padded.simplicity());
    }
}
