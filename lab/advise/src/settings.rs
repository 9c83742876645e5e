//! The settings that may gain something, each with the condition under which it is tried, and what switches it on.

use crate::executable::Linkage;
use cachewise_measure::units::counted;
use std::path::PathBuf;

/// The heap keeps what is freed: no block by `mmap`, and the top is given back above 1 GiB.
pub const KEEP: &str = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1073741824";
/// The heap grows by so much at a time.
const PADDED: &str = "glibc.malloc.top_pad=67108864";
/// glibc from which on `malloc` asks for huge pages, and caches blocks beyond 1 KiB in each thread (NEWS of
/// 2.35 and 2.42).
const HUGE_SINCE: (u32, u32) = (2, 35);
const LARGE_CACHE_SINCE: (u32, u32) = (2, 42);
/// Both thresholds at so many bytes: one alone leaves glibc's other one moving (mallopt(3), `M_MMAP_THRESHOLD`).
const PINNED: [(&str, u32); 3] = [("128 KiB", 128 << 10), ("1 MiB", 1 << 20), ("64 MiB", 64 << 20)];
/// Options of the JVM: the heap shrinks when it is idle. One collector thread with little memory of its own; a collector
/// that works when the program is idle. The command's own choice of a collector excludes both.
const JAVA: [(&str, &str); 2] = [
    (
        "JVM: serial collector, the heap shrinks",
        "-XX:+UseSerialGC -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20",
    ),
    (
        "JVM: G1, collects when idle, the heap shrinks",
        "-XX:+UseG1GC -XX:G1PeriodicGCInterval=1000 -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20",
    ),
];

/// An allocator that can take the place of the C library's.
pub struct Allocator {
    /// Part of its library's name.
    pub name: &'static str,
    /// Files that distributions install, each with Debian's packages by release.
    pub files: &'static [(&'static str, &'static str)],
    /// Debian's package in most releases, Alpine's and Fedora's.
    pub packages: [&'static str; 3],
    /// The line for those who install by pip; empty where nothing there has it.
    pub pip: &'static str,
    /// The variable by which it keeps what is freed.
    kept: (&'static str, &'static str),
    /// Variables by which it gives that back, with a name for each.
    back: &'static [(&'static str, &'static str, &'static str)],
}

/// All that is known about other allocators.
pub const ALLOCATORS: [Allocator; 3] = [
    Allocator {
        name: "jemalloc",
        files: &[("libjemalloc.so.2", "libjemalloc2")],
        packages: ["libjemalloc2", "jemalloc", "jemalloc"],
        pip: "",
        kept: ("MALLOC_CONF", "dirty_decay_ms:-1,muzzy_decay_ms:-1"),
        back: &[
            ("gives back at once", "MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0"),
            (
                "2 arenas, gives back after 1 s",
                "MALLOC_CONF",
                "dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:2,background_thread:true",
            ),
        ],
    },
    Allocator {
        name: "mimalloc",
        files: &[("libmimalloc.so.3", "libmimalloc3"), ("libmimalloc.so.2", "libmimalloc2.0")],
        packages: ["libmimalloc2.0", "mimalloc2", "mimalloc"],
        pip: "cmeel-mimalloc",
        kept: ("MIMALLOC_PURGE_DELAY", "-1"),
        back: &[("gives back at once", "MIMALLOC_PURGE_DELAY", "0")],
    },
    Allocator {
        name: "tcmalloc",
        files: &[
            ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4t64 libtcmalloc-minimal4"),
            ("libtcmalloc.so.4", "libgoogle-perftools4t64 libgoogle-perftools4"),
        ],
        packages: ["libtcmalloc-minimal4", "gperftools", "gperftools-libs"],
        pip: "",
        kept: ("TCMALLOC_RELEASE_RATE", "0"),
        back: &[
            ("gives back often", "TCMALLOC_RELEASE_RATE", "10"),
            ("gives back at once", "TCMALLOC_AGGRESSIVE_DECOMMIT", "1"),
        ],
    },
];

/// Settings of allocators inside of a program or a library: the end of the variable's name, the allocator, a name, a value.
const INSIDE: [(&str, &str, &str, &str); 8] = [
    ("MALLOC_CONF", "jemalloc", "gives back at once", "dirty_decay_ms:0,muzzy_decay_ms:0"),
    (
        "MALLOC_CONF",
        "jemalloc",
        "gives back after 0.5 s",
        "dirty_decay_ms:500,muzzy_decay_ms:0,background_thread:true",
    ),
    ("MALLOC_CONF", "jemalloc", "gives back when idle, too", "background_thread:true"),
    ("MIMALLOC_PURGE_DELAY", "mimalloc", "gives back at once", "0"),
    ("PYTHONMALLOC", "mimalloc", "mimalloc for Python's objects", "mimalloc"),
    ("ARROW_DEFAULT_MEMORY_POOL", "libc", "the C library's malloc for Arrow", "system"),
    ("ARROW_DEFAULT_MEMORY_POOL", "mimalloc", "mimalloc for Arrow", "mimalloc"),
    ("ARROW_DEFAULT_MEMORY_POOL", "jemalloc", "jemalloc for Arrow", "jemalloc"),
];

impl Allocator {
    /// Line that installs it.
    #[must_use]
    pub fn install(&self) -> String {
        let [debian, alpine, _] = self.packages;
        let pip = match self.pip {
            "" => String::new(),
            name => format!("; pip install {name}, then --also LD_PRELOAD=its file"),
        };
        format!("{}: apt install {debian}; apk add {alpine}{pip}", self.name)
    }
}

/// Variables of the caller that change an allocator, by the beginning of their names.
const OF_ALLOCATORS: [&str; 8] = [
    "MALLOC_",
    "_RJEM_MALLOC_CONF",
    "MIMALLOC_",
    "TCMALLOC_",
    "GLIBC_TUNABLES",
    "PYTHONMALLOC",
    "ARROW_DEFAULT_MEMORY_POOL",
    "NUMPY_MADVISE_HUGEPAGE",
];

/// Returns whether a variable changes what an allocator does.
#[must_use]
pub fn is_of_allocator(name: &str) -> bool {
    OF_ALLOCATORS.iter().any(|of| name.starts_with(of))
}

/// Degrees of interference of a setting: the simplest is recommended among those not told apart.
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
    /// Faults, what small blocks cost, and where blocks lie.
    Blocks,
    /// Anything: nothing that is counted bounds it.
    Anything,
}

/// A way to run the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// A name of a few words.
    pub name: String,
    /// Degree of its interference.
    pub kind: Kind,
    /// Cost that it lowers.
    pub acts: Acts,
    /// Variables of the environment.
    pub variables: Vec<(String, String)>,
    /// Variables that the caller has set and that it takes away.
    pub unset: Vec<String>,
    /// Words between the program and its first argument.
    pub words: Vec<String>,
    /// Transparent huge pages are off for its processes (prctl(2), `PR_SET_THP_DISABLE`).
    pub no_huge_pages: bool,
}

impl Candidate {
    /// A setting of variables.
    #[must_use]
    pub fn new(name: &str, kind: Kind, acts: Acts, variables: &[(&str, &str)]) -> Candidate {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        Candidate {
            name: name.to_owned(),
            kind,
            acts,
            variables: variables.iter().map(owned).collect(),
            unset: Vec::new(),
            words: Vec::new(),
            no_huge_pages: false,
        }
    }

    /// The setting that a user names by its variables, between spaces; `None` where one is none.
    #[must_use]
    pub fn also(words: &str) -> Option<Candidate> {
        let pairs: Option<Vec<(&str, &str)>> =
            words.split_whitespace().map(|pair| pair.split_once('=')).collect();
        let pairs = pairs.filter(|pairs| pairs.iter().all(|(name, _)| !name.is_empty()))?;
        let preloads = pairs.iter().any(|(name, _)| *name == "LD_PRELOAD");
        let kind = if preloads { Kind::Allocator } else { Kind::Variables };
        (!pairs.is_empty()).then(|| Candidate::new(words, kind, Acts::Anything, &pairs))
    }

    /// True for settings of glibc's heap.
    #[must_use]
    pub fn is_of_glibc(&self) -> bool {
        !self.variables.is_empty()
            && self.variables.iter().all(|(name, _)| name == "GLIBC_TUNABLES")
    }

    /// True for an allocator in the place of glibc's, and of nothing else.
    #[must_use]
    pub fn replaces_glibc(&self) -> bool {
        self.kind == Kind::Allocator
            && self.variables.iter().all(|(name, _)| name != "PYTHONMALLOC")
    }

    /// Command line with the setting before the program's words.
    #[must_use]
    pub fn line(&self, command: &[String]) -> String {
        let (program, arguments) = command.split_at(command.len().min(1));
        let words = program.iter().chain(&self.words).chain(arguments).map(|word| quoted(word));
        let unset = self.unset.iter().map(|name| format!("env -u {name}"));
        let variables =
            self.variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let line = variables.chain(unset).chain(words).collect::<Vec<_>>().join(" ");
        match self.no_huge_pages {
            true => {
                format!("prctl(PR_SET_THP_DISABLE), or MemoryTHP=disable in its unit, then: {line}")
            }
            false => line,
        }
    }

    /// Order of simplicity: less interference first, then fewer settings. Keeping freed memory takes two variables of glibc, and
    /// is one setting; what is only taken away is the simplest.
    #[must_use]
    pub fn simplicity(&self) -> (Kind, usize) {
        let settings = |(name, value): &(String, String)| match name.as_str() {
            "GLIBC_TUNABLES" => value.matches(':').count() + 1 - usize::from(value.contains(KEEP)),
            _ => 1,
        };
        (self.kind, self.variables.iter().map(settings).sum::<usize>() + self.words.len())
    }
}

/// A word as a shell takes it, in one line: control characters as bash, zsh, ksh and POSIX of 2024 read them.
#[must_use]
pub fn quoted(word: &str) -> String {
    if !word.contains(char::is_control) {
        return kept(word);
    }
    let escaped = word.chars().map(|c| match c {
        '\\' | '\'' => format!("\\{c}"),
        c if c.is_control() => c.to_string().bytes().map(|byte| format!("\\{byte:03o}")).collect(),
        c => c.to_string(),
    });
    format!("$'{}'", escaped.collect::<String>())
}

/// A word as every shell takes it; a newline stays one.
#[must_use]
pub fn kept(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Words as a shell takes them.
#[must_use]
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
    /// The C library's.
    #[default]
    Libc,
    /// A library's, by its name.
    Library(String),
    /// The program's file itself has one, which no preload replaces.
    Own,
}

/// An allocator's library that is installed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Its name in [`ALLOCATORS`].
    pub name: &'static str,
    /// Its file.
    pub file: PathBuf,
}

/// Facts about the program and the machine.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Its linkage.
    pub linkage: Linkage,
    /// Its glibc; `None` where it is unknown.
    pub glibc: Option<(u32, u32)>,
    /// Its `malloc`.
    pub malloc: Malloc,
    /// Files mapped into it, by their names.
    pub mapped: Vec<String>,
    /// Variables of allocators inside of what is mapped.
    pub inside: Vec<String>,
    /// Most threads seen in one of its processes.
    pub threads: usize,
    /// Allocators installed here that its C library can load.
    pub allocators: Vec<Installed>,
    /// Variables of the caller.
    pub environment: Vec<(String, String)>,
    /// `GLIBC_TUNABLES` of the profile, where it has any.
    pub thresholds: Option<String>,
    /// Variables that preload this project's library; `None` where there is no profile or no library.
    pub preload: Option<Vec<(String, String)>>,
    /// True if transparent huge pages are asked for by `madvise` alone.
    pub huge_on_request: bool,
    /// True if it was seen with transparent huge pages.
    pub has_huge_pages: bool,
    /// True for a Go program.
    pub is_go: bool,
    /// True for a Python.
    pub is_python: bool,
    /// True if its words choose a collector of the JVM.
    pub has_collector: bool,
}

impl Facts {
    fn maps(&self, name: &str) -> bool {
        self.mapped.iter().any(|file| file.contains(name))
    }

    /// The reason why nothing can be preloaded; `None` where it can.
    fn no_preload(&self) -> Option<&'static str> {
        match self.linkage {
            Linkage::Glibc | Linkage::Musl => None,
            Linkage::StaticGlibc | Linkage::Static => Some("it is linked statically"),
            Linkage::Foreign => Some("it has another dynamic linker than glibc's or musl's"),
            Linkage::Privileged => Some("it runs with more privilege than its caller"),
        }
    }
}

/// Candidates while they are collected.
struct Collected<'f> {
    facts: &'f Facts,
    candidates: Vec<Candidate>,
    left_out: Vec<LeftOut>,
}

/// All candidates, the simplest first, and what is left out. The plain program is none of them.
#[must_use]
pub fn all(facts: &Facts, is_for_memory: bool) -> (Vec<Candidate>, Vec<LeftOut>) {
    let mut all = Collected { facts, candidates: Vec::new(), left_out: Vec::new() };
    all.without();
    all.tunables(is_for_memory);
    match is_for_memory {
        true => all.runtimes(),
        false => all.libraries(),
    }
    all.allocators(is_for_memory);
    if !is_for_memory {
        all.preload();
    }
    all.candidates.sort_by_key(Candidate::simplicity);
    (all.candidates, all.left_out)
}

impl Collected<'_> {
    fn leave(&mut self, name: &str, why: impl Into<String>) {
        self.left_out.push(LeftOut { name: name.to_owned(), why: why.into() });
    }

    fn variables(&mut self, name: &str, acts: Acts, variables: &[(&str, &str)]) {
        self.candidates.push(Candidate::new(name, Kind::Variables, acts, variables));
    }

    /// Variables that the caller has set for an allocator are settings, too, and the program without it a candidate.
    fn without(&mut self) {
        for (name, value) in &self.facts.environment {
            if is_of_allocator(name) {
                let said = format!("without {name}={value}");
                let candidate = Candidate::new(&said, Kind::Variables, Acts::Anything, &[]);
                self.candidates.push(Candidate { unset: vec![name.clone()], ..candidate });
            }
        }
    }

    fn tunables(&mut self, is_for_memory: bool) {
        let facts = self.facts;
        let why = match (&facts.malloc, facts.linkage) {
            (_, Linkage::Musl) => Some("its C library is musl".to_owned()),
            (_, Linkage::Glibc | Linkage::StaticGlibc) => None,
            _ => facts.no_preload().map(str::to_owned),
        };
        if let Some(why) = why {
            return self.leave("GLIBC_TUNABLES", why);
        }
        match &facts.malloc {
            Malloc::Libc if is_for_memory => self.smaller_heap(),
            Malloc::Libc => self.kept_heap(),
            Malloc::Library(name) => {
                self.leave("glibc.malloc", format!("its malloc is that of {name}"));
            }
            Malloc::Own => self.leave("glibc.malloc", "it has a malloc of its own"),
        }
        match &facts.thresholds {
            _ if is_for_memory => {}
            Some(line) => {
                self.variables("glibc's thresholds", Acts::Copies, &[("GLIBC_TUNABLES", line)]);
            }
            None => self.leave("glibc's thresholds", "the profile has none to set"),
        }
    }

    /// Settings by which glibc's heap keeps what is freed.
    fn kept_heap(&mut self) {
        let facts = self.facts;
        let since = |least| facts.glibc.is_none_or(|version| version >= least);
        let mut malloc = |name: &str, acts, line: &str| {
            self.variables(name, acts, &[("GLIBC_TUNABLES", line)]);
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
            let both = format!("{KEEP}:glibc.malloc.arena_max=1");
            malloc("one arena, keep freed memory", Acts::Faults, &both);
        }
        if since(LARGE_CACHE_SINCE) && facts.glibc.is_some() {
            let line = "glibc.malloc.tcache_max=4194304";
            malloc("blocks to 4 MiB cached per thread", Acts::Blocks, line);
        }
    }

    /// Settings by which glibc's heap gives back what is freed.
    fn smaller_heap(&mut self) {
        let threads = self.facts.threads;
        let mut malloc = |name: &str, line: &str| {
            self.variables(name, Acts::Anything, &[("GLIBC_TUNABLES", line)]);
        };
        let pinned = |bytes: u32| {
            format!("glibc.malloc.mmap_threshold={bytes}:glibc.malloc.trim_threshold={bytes}")
        };
        for arenas in [1, 2, 4].into_iter().filter(|_| threads > 1) {
            malloc(&counted(arenas, "arena"), &format!("glibc.malloc.arena_max={arenas}"));
        }
        for (size, bytes) in PINNED {
            malloc(&format!("both thresholds at {size}"), &pinned(bytes));
        }
        malloc("no blocks cached per thread", "glibc.malloc.tcache_count=0");
        if threads > 1 {
            let line = format!("glibc.malloc.arena_max=1:{}", pinned(128 << 10));
            malloc("1 arena, both thresholds at 128 KiB", &line);
        } else {
            self.leave("arenas", "one thread was seen");
        }
    }

    /// Variables of libraries that are mapped.
    fn libraries(&mut self) {
        let facts = self.facts;
        for (library, name, variable) in [
            // It asks for them by default from Linux 4.6 on.
            ("_multiarray_umath", "no huge pages for NumPy", ("NUMPY_MADVISE_HUGEPAGE", "0")),
            ("libtorch_cpu", "huge pages for PyTorch", ("THP_MEM_ALLOC_ENABLE", "1")),
            ("libjemalloc", "huge pages for jemalloc", ("MALLOC_CONF", "thp:always")),
        ] {
            if facts.maps(library) {
                self.variables(name, Acts::Faults, &[variable]);
            }
        }
        if let Malloc::Library(own) = &facts.malloc
            && let Some(of) = ALLOCATORS.iter().find(|of| own.contains(of.name))
        {
            let name = format!("{}, keep freed memory", of.name);
            self.variables(&name, Acts::Faults, &[of.kept]);
        }
    }

    /// Settings of runtimes, and of allocators that are mapped, for less memory.
    fn runtimes(&mut self) {
        let facts = self.facts;
        if facts.is_go {
            self.variables(
                "Go collects at 1.5 times the live heap",
                Acts::Anything,
                &[("GOGC", "50")],
            );
            self.variables(
                "Go collects at 1.25 times the live heap",
                Acts::Anything,
                &[("GOGC", "25")],
            );
        }
        if facts.maps("libjvm.so") && !facts.has_collector {
            for (name, options) in JAVA {
                self.variables(name, Acts::Anything, &[("JAVA_TOOL_OPTIONS", options)]);
            }
        } else if facts.maps("libjvm.so") {
            self.leave("collectors of the JVM", "the command chooses one");
        }
        if let Malloc::Library(own) = &facts.malloc {
            for of in ALLOCATORS.iter().filter(|of| own.contains(of.name)) {
                for (how, variable, value) in of.back {
                    let name = format!("{} {how}", of.name);
                    self.variables(&name, Acts::Anything, &[(variable, value)]);
                }
            }
        }
        self.inside();
        let name = "no huge pages";
        if !facts.has_huge_pages {
            return self.leave(name, "it holds none");
        }
        if facts.linkage == Linkage::Privileged {
            return self.leave(name, "it runs with more privilege than its caller");
        }
        let candidate = Candidate::new(name, Kind::Start, Acts::Anything, &[]);
        self.candidates.push(Candidate { no_huge_pages: true, ..candidate });
    }

    /// Variables of allocators that are inside of the program or of a library.
    fn inside(&mut self) {
        let facts = self.facts;
        let has = |part: &str| facts.inside.iter().any(|name| name.contains(part));
        for variable in &facts.inside {
            let of_name = |kind: &str| match variable.as_str() {
                "ARROW_DEFAULT_MEMORY_POOL" => kind != "jemalloc" || has("JE_ARROW"),
                _ => true,
            };
            for (part, kind, how, value) in INSIDE {
                let is_known = self
                    .candidates
                    .iter()
                    .any(|one| one.variables == [(variable.clone(), value.to_owned())]);
                if variable.ends_with(part) && of_name(kind) && !is_known {
                    self.variables(
                        &format!("{variable}: {how}"),
                        Acts::Anything,
                        &[(variable, value)],
                    );
                }
            }
        }
        if facts.maps("libjvm.so") {
            let option = "-XX:TrimNativeHeapInterval=5000";
            let name = "the C heap is trimmed every 5 s (JVM)";
            self.variables(name, Acts::Anything, &[("JAVA_TOOL_OPTIONS", option)]);
        }
    }

    fn allocators(&mut self, is_for_memory: bool) {
        let facts = self.facts;
        let why = match facts.malloc {
            Malloc::Own => Some("it has a malloc of its own, which stands before any other"),
            _ => facts.no_preload(),
        };
        if let Some(why) = why {
            return self.leave("other allocators", why);
        }
        for of in &ALLOCATORS {
            if matches!(&facts.malloc, Malloc::Library(own) if own.contains(of.name)) {
                continue;
            }
            let Some(found) = facts.allocators.iter().find(|found| found.name == of.name) else {
                self.leave(of.name, format!("it is not installed ({})", of.install()));
                continue;
            };
            let preload = ("LD_PRELOAD", &*found.file.to_string_lossy());
            let mut add = |how: &str, more: &[(&str, &str)]| {
                let name = format!("{}{how}", of.name);
                let variables = [&[preload], more].concat();
                self.candidates.push(Candidate::new(
                    &name,
                    Kind::Allocator,
                    Acts::Blocks,
                    &variables,
                ));
            };
            add("", &[]);
            if !is_for_memory {
                add(", keep freed memory", &[of.kept]);
                continue;
            }
            for (how, variable, value) in of.back {
                add(&format!(", {how}"), &[(variable, value)]);
            }
            // Python keeps small objects in arenas of its own, which no other allocator sees.
            if facts.maps("libpython") || facts.is_python {
                let (_, variable, value) = of.back[0];
                add(" for Python's objects too", &[("PYTHONMALLOC", "malloc"), (variable, value)]);
            }
        }
    }

    fn preload(&mut self) {
        let name = "this machine's profile by preload";
        match (&self.facts.preload, self.facts.no_preload()) {
            (_, Some(why)) => self.leave(name, why),
            (None, None) => self.leave(name, "there is no profile: `cachewise tune` makes one"),
            (Some(variables), None) => {
                let candidate = Candidate::new(name, Kind::Preload, Acts::Copies, &[]);
                self.candidates.push(Candidate { variables: variables.clone(), ..candidate });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(facts: &Facts, is_for_memory: bool) -> Vec<String> {
        all(facts, is_for_memory).0.into_iter().map(|candidate| candidate.name).collect()
    }

    fn full() -> Facts {
        let installed = |of: &Allocator| Installed { name: of.name, file: of.files[0].0.into() };
        Facts {
            glibc: Some((2, 43)),
            threads: 8,
            allocators: ALLOCATORS.iter().map(installed).collect(),
            environment: vec![("MALLOC_TRIM_THRESHOLD_".to_owned(), "65536".to_owned())],
            thresholds: Some("glibc.cpu.x86_rep_movsb_threshold=0x800".to_owned()),
            preload: Some(vec![("LD_PRELOAD".to_owned(), "/lib/own.so".to_owned())]),
            mapped: ["_multiarray_umath.so", "libtorch_cpu.so", "libjvm.so", "libpython3.so"]
                .map(str::to_owned)
                .to_vec(),
            huge_on_request: true,
            has_huge_pages: true,
            is_go: true,
            ..Facts::default()
        }
    }

    #[test]
    fn everything_that_applies_is_tried_and_the_simplest_stand_first() {
        for (is_for_memory, count) in [(false, 18), (true, 1 + 8 + 4 + 1 + 3 + 5 + 3 + 1)] {
            let (found, left_out) = all(&full(), is_for_memory);
            assert_eq!(found.len(), count, "{:?}", names(&full(), is_for_memory));
            assert!(left_out.is_empty(), "{left_out:?}");
            assert!(found.is_sorted_by_key(Candidate::simplicity));
            assert_eq!(found[0].unset, ["MALLOC_TRIM_THRESHOLD_"]);
            // One threshold alone is worse than none: always both, at one value.
            for (_, line) in found.iter().flat_map(|one| &one.variables) {
                let value = |name: &str| {
                    let found = line.split(':').find_map(|one| one.strip_prefix(name));
                    found.and_then(|value| value.strip_prefix('=')).map(str::to_owned)
                };
                let [one, other] =
                    ["mmap", "trim"].map(|of| value(&format!("glibc.malloc.{of}_threshold")));
                assert!(one.is_none() || one == other, "{line}");
            }
        }
    }

    #[test]
    fn allocators_inside_are_set_by_the_variables_that_they_read() {
        let count = |inside: &[&str]| {
            let inside: Vec<String> = inside.iter().map(|name| (*name).to_owned()).collect();
            let (all, _) = all(
                &Facts { malloc: Malloc::Own, inside: inside.clone(), ..Facts::default() },
                true,
            );
            let of = |one: &Candidate| inside.contains(&one.variables[0].0);
            all.iter().filter(|one| of(one)).count()
        };
        for (inside, settings) in [
            (&[][..], 0),
            (&["_RJEM_MALLOC_CONF"], 3),
            (&["MIMALLOC_PURGE_DELAY", "ARROW_DEFAULT_MEMORY_POOL"], 3),
            (&["JE_ARROW_MALLOC_CONF", "ARROW_DEFAULT_MEMORY_POOL"], 6),
            (&["PYTHONMALLOC"], 1),
        ] {
            assert_eq!(count(inside), settings, "{inside:?}");
        }
    }

    #[test]
    fn what_cannot_be_tried_is_named_with_its_reason() {
        let why = |facts: Facts, is_for_memory, name: &str| {
            let (_, left_out) = all(&facts, is_for_memory);
            left_out.into_iter().find(|out| out.name == name).map(|out| out.why)
        };
        for (linkage, none, part) in [
            (Linkage::Privileged, "GLIBC_TUNABLES", "more privilege"),
            (Linkage::Static, "other allocators", "statically"),
            (Linkage::Foreign, "GLIBC_TUNABLES", "another dynamic linker"),
            (Linkage::Musl, "GLIBC_TUNABLES", "musl"),
        ] {
            let found = why(Facts { linkage, ..full() }, false, none).expect(none);
            assert!(found.contains(part), "{linkage:?}: {found}");
        }
        // Allocators that musl's linker loads are tried there.
        assert!(
            names(&Facts { linkage: Linkage::Musl, ..full() }, false)
                .contains(&"jemalloc".to_owned())
        );
        let bare = || Facts { threads: 1, ..Facts::default() };
        for name in ["jemalloc", "mimalloc", "tcmalloc"] {
            let found = why(bare(), true, name).expect(name);
            assert!(found.contains("apt install lib") && found.contains("apk add "), "{found}");
        }
        assert!(
            why(bare(), true, "arenas").is_some() && why(bare(), true, "no huge pages").is_some()
        );
        let own = Facts { malloc: Malloc::Own, threads: 4, ..Facts::default() };
        assert!(names(&own, true).is_empty() && names(&own, false).is_empty());
        let jemalloc = Malloc::Library("libjemalloc.so.2".to_owned());
        let mapped = Facts { malloc: jemalloc, ..bare() };
        assert_eq!(names(&mapped, true).len(), 2);
        let chosen = Facts { has_collector: true, ..full() };
        assert!(names(&chosen, true).iter().all(|name| !name.starts_with("JVM")));
    }

    #[test]
    fn a_line_is_what_a_shell_takes() {
        let words = ["./my prog".to_owned(), "a'b".to_owned()];
        let also = Candidate::also("A=1 LD_PRELOAD=/x.so").expect("two variables");
        assert_eq!(also.kind, Kind::Allocator);
        assert_eq!(also.line(&words), "A=1 LD_PRELOAD=/x.so './my prog' 'a'\\''b'");
        let unset = Candidate { unset: vec!["B".to_owned()], variables: vec![], ..also };
        assert_eq!(unset.line(&words[1..]), "env -u B 'a'\\''b'");
        let raw = "a\nb\u{1b}[1m\u{85}7\\'é";
        let word = quoted(raw);
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", &format!("printf %s {word}")]);
        let read = bash.output().expect("bash").stdout;
        assert!(read == raw.as_bytes() && !word.contains(char::is_control), "{word}");
        assert!(Candidate::also("=1").is_none() && Candidate::also(" ").is_none());
    }
}
