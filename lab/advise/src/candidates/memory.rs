//! The settings that may give memory back, each with the condition under which it is tried. The simplest come first.

use super::{Acts, Candidate, Facts, Kind, LeftOut, Linking, Malloc, leave, no_preload};

/// Both thresholds at so many bytes: one alone leaves glibc's other one moving (mallopt(3), `M_MMAP_THRESHOLD`).
const PINNED: [(&str, u32); 3] = [("128 KiB", 128 << 10), ("1 MiB", 1 << 20), ("64 MiB", 64 << 20)];
/// Settings of other allocators that give freed memory back soon: the allocator, its variable, a name and the value.
const GIVEN_BACK: [(&str, &str, &str, &str); 5] = [
    ("jemalloc", "MALLOC_CONF", "gives back at once", "dirty_decay_ms:0,muzzy_decay_ms:0"),
    (
        "jemalloc",
        "MALLOC_CONF",
        "2 arenas, gives back after 1 s",
        "dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:2,background_thread:true",
    ),
    ("mimalloc", "MIMALLOC_PURGE_DELAY", "gives back at once", "0"),
    ("tcmalloc", "TCMALLOC_RELEASE_RATE", "gives back often", "10"),
    ("tcmalloc", "TCMALLOC_AGGRESSIVE_DECOMMIT", "gives back at once", "1"),
];
/// Options of the JVM: the heap shrinks when it is idle; one collector thread with little memory of its own.
const JAVA: [(&str, &str); 2] = [
    (
        "serial collector, the heap shrinks",
        "-XX:+UseSerialGC -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20",
    ),
    (
        "G1, collects when idle, the heap shrinks",
        "-XX:+UseG1GC -XX:G1PeriodicGCInterval=1000 -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20",
    ),
];

/// All candidates for less memory, and what is left out.
pub fn all(facts: &Facts) -> (Vec<Candidate>, Vec<LeftOut>) {
    let (mut candidates, mut left_out) = (Vec::new(), Vec::new());
    tunables(facts, &mut candidates, &mut left_out);
    runtimes(facts, &mut candidates);
    huge_pages(facts, &mut candidates, &mut left_out);
    allocators(facts, &mut candidates, &mut left_out);
    candidates.sort_by_key(Candidate::simplicity);
    (candidates, left_out)
}

fn variables(name: &str, variables: &[(&str, &str)]) -> Candidate {
    Candidate::new(name, Kind::Variables, Acts::Memory, variables)
}

fn tunables(facts: &Facts, into: &mut Vec<Candidate>, left_out: &mut Vec<LeftOut>) {
    let why = match (&facts.malloc, facts.linking) {
        (Malloc::Glibc, Linking::Glibc | Linking::StaticGlibc) => None,
        (Malloc::Library(name), Linking::Glibc) => Some(format!("its malloc is that of {name}")),
        (Malloc::Own, _) => Some("it has a malloc of its own".to_owned()),
        (_, other) => no_preload(other).map(str::to_owned),
    };
    if let Some(why) = why {
        return leave(left_out, "glibc.malloc", why);
    }
    let mut malloc = |name: &str, line: &str| {
        into.push(variables(name, &[("GLIBC_TUNABLES", line)]));
    };
    let pinned = |bytes: u32| {
        format!("glibc.malloc.mmap_threshold={bytes}:glibc.malloc.trim_threshold={bytes}")
    };
    if facts.threads > 1 {
        for arenas in [1, 2, 4] {
            let name = if arenas == 1 { "1 arena".to_owned() } else { format!("{arenas} arenas") };
            malloc(&name, &format!("glibc.malloc.arena_max={arenas}"));
        }
    } else {
        leave(left_out, "arenas", "one thread was seen");
    }
    for (size, bytes) in PINNED {
        malloc(&format!("both thresholds at {size}"), &pinned(bytes));
    }
    malloc("no blocks cached per thread", "glibc.malloc.tcache_count=0");
    if facts.threads > 1 {
        let line = format!("glibc.malloc.arena_max=1:{}", pinned(128 << 10));
        malloc("1 arena, both thresholds at 128 KiB", &line);
    }
}

fn runtimes(facts: &Facts, into: &mut Vec<Candidate>) {
    if facts.is_go {
        into.push(variables("Go collects at 1.5 times the live heap", &[("GOGC", "50")]));
        into.push(variables("Go collects at 1.25 times the live heap", &[("GOGC", "25")]));
    }
    if facts.maps("libjvm.so") {
        for (name, options) in JAVA {
            into.push(variables(&format!("JVM: {name}"), &[("JAVA_TOOL_OPTIONS", options)]));
        }
    }
}

fn huge_pages(facts: &Facts, into: &mut Vec<Candidate>, left_out: &mut Vec<LeftOut>) {
    let name = "no huge pages";
    if !facts.has_huge_pages {
        return leave(left_out, name, "it holds none");
    }
    if facts.linking == Linking::Privileged {
        return leave(left_out, name, "it runs with more privilege than its caller");
    }
    let candidate = Candidate::new(name, Kind::Start, Acts::Memory, &[]);
    into.push(Candidate { no_huge_pages: true, ..candidate });
}

fn allocators(facts: &Facts, into: &mut Vec<Candidate>, left_out: &mut Vec<LeftOut>) {
    if let Malloc::Library(own) = &facts.malloc {
        for (name, variable, how, value) in
            GIVEN_BACK.iter().filter(|(name, ..)| own.contains(name))
        {
            into.push(variables(&format!("{name} {how}"), &[(variable, value)]));
        }
    }
    let why = match facts.malloc {
        Malloc::Own => Some("it has a malloc of its own, which stands before any other"),
        _ => no_preload(facts.linking),
    };
    if let Some(why) = why {
        return leave(left_out, "other allocators", why);
    }
    for name in ["jemalloc", "mimalloc", "tcmalloc"] {
        let Some(found) = facts.allocators.iter().find(|found| found.name == name) else {
            leave(left_out, name, "it is not installed");
            continue;
        };
        if matches!(&facts.malloc, Malloc::Library(own) if own.contains(name)) {
            continue;
        }
        let preload = ("LD_PRELOAD", &*found.file.to_string_lossy());
        let mut allocator = |name: &str, variables: &[(&str, &str)]| {
            into.push(Candidate::new(name, Kind::Allocator, Acts::Memory, variables));
        };
        allocator(name, &[preload]);
        for (_, variable, how, value) in GIVEN_BACK.iter().filter(|(of, ..)| *of == name) {
            allocator(&format!("{name}, {how}"), &[preload, (variable, value)]);
        }
        // Python keeps small objects in arenas of its own, which no other allocator sees.
        if facts.maps("libpython") || facts.is_python {
            let [of_python, setting] = [("PYTHONMALLOC", "malloc"), back(name)];
            allocator(&format!("{name} for Python's objects too"), &[preload, of_python, setting]);
        }
    }
}

/// The variable by which an allocator gives back at once.
fn back(name: &str) -> (&'static str, &'static str) {
    let found = GIVEN_BACK.iter().find(|(of, ..)| *of == name);
    found.map_or(("", ""), |(_, variable, _, value)| (variable, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::Installed;

    fn names(facts: &Facts) -> Vec<String> {
        all(facts).0.into_iter().map(|candidate| candidate.name).collect()
    }

    #[test]
    fn what_applies_is_tried_and_the_simplest_stand_first() {
        let allocators = ["jemalloc", "mimalloc", "tcmalloc"]
            .map(|name| Installed { name: name.into(), file: format!("lib{name}.so").into() });
        let facts = Facts {
            threads: 8,
            allocators: allocators.to_vec(),
            mapped: vec!["libjvm.so".to_owned(), "libpython3.so".to_owned()],
            is_go: true,
            has_huge_pages: true,
            ..Facts::default()
        };
        let (found, left_out) = all(&facts);
        assert!(left_out.is_empty(), "{left_out:?}");
        assert_eq!(found.len(), 8 + 4 + 1 + 3 + 5 + 3, "{:?}", names(&facts));
        assert!(found.is_sorted_by_key(Candidate::simplicity));
        // One threshold alone is worse than none: always both, at one value.
        for one in &found {
            let line = one.variables.iter().find(|(name, _)| name == "GLIBC_TUNABLES");
            let Some((_, line)) = line else { continue };
            let value = |name: &str| {
                let found = line.split(':').find_map(|one| one.strip_prefix(name));
                found.and_then(|value| value.strip_prefix('=')).map(str::to_owned)
            };
            assert_eq!(value("glibc.malloc.mmap_threshold"), value("glibc.malloc.trim_threshold"));
        }
        let huge = found.iter().find(|one| one.no_huge_pages).expect("huge pages off");
        assert!(huge.variables.is_empty());
    }

    #[test]
    fn what_cannot_help_is_left_out_with_its_reason() {
        let single = Facts { threads: 1, ..Facts::default() };
        let (found, left_out) = all(&single);
        assert!(found.iter().all(|one| !one.name.contains("arena")), "{found:?}");
        let why =
            |name: &str| left_out.iter().find(|out| out.name == name).map(|out| out.why.as_str());
        assert_eq!(why("arenas"), Some("one thread was seen"));
        assert_eq!(why("no huge pages"), Some("it holds none"));
        assert_eq!(why("jemalloc"), Some("it is not installed"));
        let own = Facts { malloc: Malloc::Own, threads: 4, ..Facts::default() };
        assert!(names(&own).is_empty(), "{:?}", names(&own));
        let go = Facts { linking: Linking::Static, is_go: true, ..Facts::default() };
        assert_eq!(names(&go).len(), 2, "{:?}", names(&go));
        let jemalloc =
            Facts { malloc: Malloc::Library("libjemalloc.so.2".into()), ..Facts::default() };
        assert_eq!(
            names(&jemalloc),
            ["jemalloc gives back at once", "jemalloc 2 arenas, gives back after 1 s"]
        );
    }
}
