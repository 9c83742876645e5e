//! Memory of a program's processes by what holds it: live, freed and held by an allocator, given back lazily, the rest; and
//! the word for it: leaked, held or needed.
//!
//! Resident memory is the kernel's figure (proc(5), `smaps`), proportional where processes share it. What is live and what
//! is free are the allocators' (`probe`). A free block need not be resident, nor a live one: so each is at most what is
//! resident where that allocator has its memory, the live ones first. glibc's arenas are found by what stands at their
//! beginning. Whatever is resident and claimed by nobody is unknown, with the reason, and never added to a part.

use crate::probe::{Probe, Said};
use cachewise_measure::units::bytes;
use cachewise_pages::smaps::{self, Mapped};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// Arenas of glibc but the first begin at multiples of it (`HEAP_MAX_SIZE`, 64-bit).
const ARENA: usize = 64 << 20;
/// Unknown memory counts as the rest up to this part of the level, or so many bytes.
const SMALL: f64 = 0.02;
const SMALL_BYTES: f64 = 1048576.0;
/// Live memory grows if each load adds this part of it, and so many bytes, and at least half of what any load adds: a cache
/// that fills adds less each time.
const GROWS: f64 = 0.01;
const GROWS_BYTES: f64 = 262144.0;
const STEADY: f64 = 0.5;
/// Freed memory of this part of the level is worth a word.
const HELD: f64 = 0.25;
/// Loads that tell growth.
pub const LOADS: usize = 3;

/// Bytes by what holds them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// The program still has it.
    pub live: f64,
    /// Freed, by the allocator that holds it.
    pub held: BTreeMap<String, f64>,
    /// Held by glibc in the main heap and in arenas, and the number of these.
    pub arenas: [f64; 3],
    /// Given back lazily: resident until the kernel needs it.
    pub lazy: f64,
    /// Shared memory: files of no disk.
    pub shared: f64,
    /// Explicit huge pages.
    pub huge: f64,
    /// Files, stacks and the rest.
    pub rest: f64,
    /// Unknown, by the reason.
    pub unknown: BTreeMap<String, f64>,
    /// The part of it that belongs to processes without any answer.
    pub unasked: f64,
    /// Processes that were read.
    pub processes: usize,
}

/// Is it a leak?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Live memory grows from load to load.
    Leaked,
    /// Freed, and kept by the allocator.
    Held,
    /// Live memory is the level.
    Needed,
    /// Most of it cannot be asked for.
    Unknown,
}

impl Word {
    /// The word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Word::Leaked => "leaked",
            Word::Held => "held",
            Word::Needed => "needed",
            Word::Unknown => "unknown",
        }
    }
}

impl Parts {
    /// Memory of all these processes; those that have ended meanwhile have none.
    pub fn of_all(processes: &[i32], probe: &mut Probe) -> Parts {
        let mut sum = Parts::default();
        for process in processes {
            // The probe first: its copies share pages, which halves them in smaps.
            let said = probe.ask(*process);
            let place = PathBuf::from(format!("/proc/{process}"));
            let maps = smaps::parse(&fs::read_to_string(place.join("smaps")).unwrap_or_default());
            if maps.iter().all(|map| map.bytes("Rss") == 0) {
                continue;
            }
            let tasks = fs::read_dir(place.join("task")).into_iter().flatten().flatten();
            let stacks = tasks.filter_map(|task| {
                let line = fs::read_to_string(task.path().join("syscall")).ok()?;
                let pointer = line.split_whitespace().rev().nth(1)?.strip_prefix("0x")?.to_owned();
                usize::from_str_radix(&pointer, 16).ok()
            });
            sum.add(Parts::of(&maps, &stacks.collect::<Vec<_>>(), &arenas(&place, &maps), said));
        }
        sum.settle();
        sum
    }

    /// Memory of one process: its mappings, the stack pointers of its threads, the arenas of glibc with what is resident in
    /// each, and what its allocators said.
    fn of(
        maps: &[Mapped],
        stacks: &[usize],
        arenas: &[(Range<usize>, f64)],
        said: Result<Vec<Said>, String>,
    ) -> Parts {
        let mut parts = Parts { processes: 1, ..Parts::default() };
        // Resident bytes, and the process's share of them.
        let [mut main, mut others, mut own] = [[0.0; 2]; 3];
        for map in maps {
            let of = |name| map.bytes(name) as f64;
            let (rss, lazy) = (of("Rss"), of("LazyFree"));
            let share = if rss > 0.0 { of("Pss") / rss } else { 1.0 };
            let resident = (rss - lazy) * share + of("SwapPss");
            parts.lazy += lazy * share;
            parts.huge += of("Private_Hugetlb") + of("Shared_Hugetlb");
            let name = map.about.splitn(5, ' ').nth(4).unwrap_or_default().trim();
            let is_shared = ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero (deleted)"];
            match name {
                "[heap]" => (main[0], main[1]) = (main[0] + rss - lazy, main[1] + resident),
                _ if is_shared.iter().any(|one| name.starts_with(one)) => parts.shared += resident,
                name if (name.is_empty() || name.starts_with("[anon"))
                    && !stacks.iter().any(|stack| map.range.contains(stack)) =>
                {
                    let inside =
                        arenas.iter().filter(|(range, _)| map.range.contains(&range.start));
                    let there = inside.map(|(_, there)| there).sum::<f64>().min(rss - lazy);
                    (others[0], others[1]) = (others[0] + there, others[1] + there * share);
                    own[0] += rss - lazy - there;
                    own[1] += resident - there * share;
                }
                _ => parts.rest += resident,
            }
        }
        match said {
            Err(why) => {
                parts.unasked = main[1] + others[1] + own[1];
                parts.unknown.insert(why, parts.unasked);
            }
            Ok(said) => parts.divide([main, others, own], arenas.len(), &said),
        }
        parts
    }

    /// Divides what is resident in glibc's main heap, in its arenas and in other mappings of no file.
    fn divide(&mut self, [main, others, own]: [[f64; 2]; 3], arenas: usize, said: &[Said]) {
        let share = |[whole, share]: [f64; 2]| if whole > 0.0 { share / whole } else { 1.0 };
        let mut claims: Vec<(&str, f64, f64)> = Vec::new();
        // Others, tcmalloc for one, take memory of the main heap too.
        let (mut taken, mut silent) = (0.0, OWN);
        for one in said {
            match one {
                Said::Glibc { arenas: all, mapped } => {
                    claims.push(("glibc", *mapped as f64, *mapped as f64));
                    let sum = |which: &[[u64; 2]]| {
                        let sum = |at: usize| which.iter().map(|one| one[at]).sum::<u64>() as f64;
                        (sum(0) - sum(1), sum(1))
                    };
                    let (first, rest) = all.split_at(all.len().min(1));
                    for (at, (class, which)) in
                        [(main, first), (others, rest)].into_iter().enumerate()
                    {
                        let (live, free) = sum(which);
                        let there = class[1];
                        let live = (live * share(class)).min(there);
                        let held = (free * share(class)).min(there - live);
                        self.live += live;
                        self.arenas[at] += held;
                        *self.held.entry("glibc".to_owned()).or_default() += held;
                        taken += live + held;
                    }
                    self.arenas[2] += arenas as f64;
                }
                Said::Silent(why) => silent = why,
                Said::Other { name, live, whole } => {
                    claims.push((name, *live as f64, *whole as f64))
                }
            }
        }
        let mut left = main[1] + others[1] + own[1] - taken;
        for (_, live, _) in &claims {
            let live = (live * share(own)).min(left);
            self.live += live;
            left -= live;
        }
        for (name, live, whole) in claims {
            let held = ((whole - live).max(0.0) * share(own)).min(left);
            *self.held.entry(name.to_owned()).or_default() += held;
            left -= held;
        }
        *self.unknown.entry(silent.to_owned()).or_default() += left;
    }

    fn add(&mut self, other: Parts) {
        for (sum, one) in [
            (&mut self.live, other.live),
            (&mut self.lazy, other.lazy),
            (&mut self.shared, other.shared),
            (&mut self.huge, other.huge),
            (&mut self.rest, other.rest),
            (&mut self.unasked, other.unasked),
        ] {
            *sum += one;
        }
        self.arenas.iter_mut().zip(other.arenas).for_each(|(sum, one)| *sum += one);
        for (sum, one) in [(&mut self.held, other.held), (&mut self.unknown, other.unknown)] {
            one.into_iter().for_each(|(name, bytes)| *sum.entry(name).or_default() += bytes);
        }
        self.processes += other.processes;
    }

    /// Unknown memory, where it is little, belongs to the rest.
    fn settle(&mut self) {
        let least = (SMALL * self.level()).max(SMALL_BYTES);
        let rest = &mut self.rest;
        self.unknown.retain(|_, bytes| {
            let stays = *bytes >= least;
            *rest += if stays { 0.0 } else { *bytes };
            stays
        });
        self.held.retain(|_, bytes| *bytes > 0.0);
    }

    /// The sum of all parts: everything that is resident, and what was swapped out.
    pub fn level(&self) -> f64 {
        let sums = self.all_held() + self.unknown.values().sum::<f64>();
        sums + self.live + self.lazy + self.shared + self.huge + self.rest
    }

    /// The level without files, stacks and what was given back lazily.
    pub fn own(&self) -> f64 {
        self.level() - self.rest - self.lazy
    }

    /// Freed and held by any allocator.
    pub fn all_held(&self) -> f64 {
        self.held.values().sum()
    }

    /// Most that settings of glibc's heap, or another allocator in its place, could give back.
    pub fn of_glibc(&self) -> f64 {
        self.held.get("glibc").copied().unwrap_or(0.0) + self.unasked
    }

    /// The word, by the live memory after each load; one load tells nothing of growth.
    pub fn word(&self, lives: &[f64]) -> Word {
        let (level, unknown) = (self.level() - self.lazy, self.unknown.values().sum::<f64>());
        match () {
            () if grows(lives) => Word::Leaked,
            () if unknown > self.live.max(self.all_held()) => Word::Unknown,
            () if self.all_held() > HELD * level => Word::Held,
            () => Word::Needed,
        }
    }

    /// The parts, a line each.
    pub fn lines(&self) -> Vec<String> {
        let line = |size: f64, what: &str| format!("{:>9}  {what}", mib(size));
        let mut lines = vec![line(self.live, "live: the program still has it")];
        for (name, size) in &self.held {
            let [main, others, arenas] = self.arenas;
            let split = match name.as_str() {
                "glibc" if arenas > 0.0 => {
                    format!(" (main heap {}, {arenas:.0} arenas {})", mib(main), mib(others))
                }
                _ => String::new(),
            };
            lines.push(line(*size, &format!("freed, held by {name}{split}")));
        }
        let lazy = "given back lazily (the kernel takes it when it needs it)";
        lines.push(line(self.lazy, lazy));
        let more = [(self.shared, "shared memory files"), (self.huge, "explicit huge pages")];
        lines.extend(
            more.iter().filter(|(size, _)| *size > 0.0).map(|(size, what)| line(*size, what)),
        );
        lines.push(line(self.rest, "files, stacks and the rest"));
        let unknown =
            self.unknown.iter().map(|(why, size)| line(*size, &format!("unknown: {why}")));
        lines.extend(unknown);
        lines
    }
}

const OWN: &str = "mapped by the program itself, or by an allocator that has no symbols";

/// A size as a sentence has it.
pub fn mib(size: f64) -> String {
    match size / SMALL_BYTES {
        mib if mib < 9.95 => bytes((size.max(0.0) as u64) >> 16 << 16),
        mib => format!("{mib:.0} MiB"),
    }
}

/// True if each load adds to what is live, none much less than another.
fn grows(lives: &[f64]) -> bool {
    let added: Vec<f64> = lives.windows(2).map(|two| two[1] - two[0]).collect();
    let most = added.iter().copied().fold(0.0, f64::max);
    let least = lives.last().map_or(0.0, |last| GROWS * last).max(GROWS_BYTES).max(STEADY * most);
    lives.len() >= LOADS && added.iter().all(|added| *added >= least)
}

/// glibc's arenas but the first: their addresses, and what is resident in them. A heap begins with the address of its arena,
/// which lies in such a heap, and with its size (malloc/arena.c, `heap_info`).
fn arenas(place: &std::path::Path, maps: &[Mapped]) -> Vec<(Range<usize>, f64)> {
    let (Ok(memory), Ok(pages)) =
        (File::open(place.join("mem")), File::open(place.join("pagemap")))
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for map in maps.iter().filter(|map| map.about.starts_with("rw-p 00000000 00:00 0")) {
        let mut at = map.range.start.next_multiple_of(ARENA);
        while at < map.range.end {
            let mut head = [0u8; 24];
            let read = memory.read_exact_at(&mut head, at as u64).is_ok();
            let word = |which: usize| {
                let bytes = head[8 * which..].first_chunk().copied().unwrap_or_default();
                usize::from_ne_bytes(bytes)
            };
            let (arena, size) = (word(0), word(2));
            let is_heap = (1..256).contains(&(arena % ARENA)) && (1..=ARENA).contains(&size);
            if read && is_heap && size % 4096 == 0 {
                let range = at..(at + size).min(map.range.end);
                found.push((range.clone(), resident(&pages, &range)));
            }
            at += ARENA;
        }
    }
    found
}

/// Bytes of a range that are in memory (`pagemap`, bit 63).
fn resident(pages: &File, range: &Range<usize>) -> f64 {
    let size = rustix::param::page_size();
    let mut entries = vec![0u8; range.len() / size * 8];
    if pages.read_exact_at(&mut entries, (range.start / size * 8) as u64).is_err() {
        return 0.0;
    }
    let is_there = |entry: &&[u8]| entry.last().is_some_and(|last| last >> 7 == 1);
    (entries.chunks_exact(8).filter(is_there).count() * size) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn maps(lines: &[(&str, u64, u64)]) -> Vec<Mapped> {
        let text: String = lines
            .iter()
            .map(|(head, rss, lazy)| {
                format!(
                    "{head}\nRss: {} kB\nPss: {} kB\nLazyFree: {} kB\n",
                    rss << 10,
                    rss << 10,
                    lazy << 10
                )
            })
            .collect();
        smaps::parse(&text)
    }

    #[test]
    fn each_byte_is_in_one_part() {
        let all = maps(&[
            ("10000000-20000000 rw-p 00000000 00:00 0    [heap]", 100, 0),
            ("7f0000000000-7f0010000000 rw-p 00000000 00:00 0 ", 90, 10),
            ("7f1000000000-7f1010000000 rw-p 00000000 00:00 0 ", 8, 0),
            ("7f2000000000-7f2010000000 rw-s 00000000 00:01 7    /memfd:x (deleted)", 5, 0),
            ("7f3000000000-7f3010000000 r-xp 00000000 08:01 7    /lib/x.so", 3, 0),
        ]);
        let arena = (0x7f0000000000..0x7f0004000000, 30.0 * MIB as f64);
        let said = vec![
            Said::Glibc {
                arenas: vec![[100 * MIB, 60 * MIB], [40 * MIB, 35 * MIB]],
                mapped: 10 * MIB,
            },
            Said::Other { name: "jemalloc".to_owned(), live: 5 * MIB, whole: 20 * MIB },
        ];
        let stacks = [0x7f1000000010];
        let mut parts = Parts::of(&all, &stacks, std::slice::from_ref(&arena), Ok(said));
        parts.settle();
        let mib = |size: f64| (size / MIB as f64).round() as i64;
        // Live: 40 of the heap, 5 of the arena (40 - 35), 10 in blocks of their own, 5 of jemalloc's.
        assert_eq!(mib(parts.live), 60);
        assert_eq!(parts.held.values().map(|size| mib(*size)).collect::<Vec<_>>(), [85, 15]);
        assert_eq!(parts.arenas.map(mib)[..2], [60, 25]);
        assert_eq!([parts.lazy, parts.shared, parts.rest].map(mib), [10, 5, 11]);
        // 80 MiB there, 30 of the arena's, 30 of others': nobody claims 20.
        assert_eq!(parts.unknown.values().map(|size| mib(*size)).collect::<Vec<_>>(), [20]);
        assert_eq!(mib(parts.level()), 206);
        // A process that cannot be asked is unknown as a whole; live blocks that were never touched are not resident.
        let why = || Err("it is static".to_owned());
        assert_eq!(
            Parts::of(&all, &stacks, &[], why())
                .unknown
                .values()
                .map(|size| mib(*size))
                .sum::<i64>(),
            180
        );
        let untouched = Said::Glibc { arenas: vec![[900 * MIB, MIB]], mapped: 900 * MIB };
        let parts = Parts::of(&all, &stacks, &[], Ok(vec![untouched]));
        assert_eq!((mib(parts.live), mib(parts.level())), (180, 206));
    }

    #[test]
    fn the_word_is_of_what_grows_and_of_what_is_held() {
        let of = |live: f64, held: f64, unknown: f64| Parts {
            live,
            held: [("glibc".to_owned(), held)].into(),
            unknown: [("own".to_owned(), unknown)].into(),
            ..Parts::default()
        };
        let mib = |all: &[f64]| all.iter().map(|one| one * 1048576.0).collect::<Vec<_>>();
        for (parts, lives, word) in [
            (of(9.0, 1.0, 0.0), mib(&[10.0, 15.0, 20.0]), Word::Leaked),
            (of(9.0, 1.0, 0.0), mib(&[10.0, 15.0]), Word::Needed),
            (of(9.0, 1.0, 0.0), mib(&[10.0, 15.0, 16.0]), Word::Needed),
            (of(9.0, 1.0, 0.0), mib(&[100.0, 100.1, 100.2]), Word::Needed),
            (of(4.0, 6.0, 0.0), mib(&[10.0, 10.0, 10.0]), Word::Held),
            (of(4.0, 6.0, 11.0), mib(&[10.0]), Word::Unknown),
        ] {
            assert_eq!(parts.word(&lives), word, "{parts:?} {lives:?}");
        }
    }
}
