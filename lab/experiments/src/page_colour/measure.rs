//! `page-colour` (002.11): what it costs when the pages of a buffer compete for the same sets of a cache.
//!
//! A cache with physical addresses puts a page into the sets that the low bits of its frame number name:
//! its colour. Here buffers are made of small pages, chosen by their frame numbers: all of one colour,
//! of every colour in turn, or in the order in which the system gave them. Each is zeroed page by page,
//! over and over. Frame numbers come from `/proc/self/pagemap`, which tells them to root alone. A guest's
//! are the guest's own: where its host backs it with huge pages, the colours of an L2 are still right.

use crate::prelude::*;
use std::fs::{File, read_to_string};
use std::os::unix::fs::FileExt as _;

/// Pages of one colour that are zeroed, at most, for each way of the cache: as many as it has ways
/// fit it.
const PAGES_PER_WAY: usize = 4;

pub(super) fn figures() -> Vec<Figure> {
    let title = "Zeroing by the colours of a buffer's pages";
    vec![Figure::bars(title, "gbps").by(&["destination", "state"])]
}

pub(super) fn run(setting: &mut Setting) -> Result {
    let features = setting.bench.features;
    let straight = widest(Operation::Zero, features);
    let routines = field(setting, Operation::Zero, |kernel: &Kernel| {
        straight.is_some_and(|(a, b)| kernel.name == a.name || kernel.name == b.name)
    })?;
    at_least_one([&routines])?;
    let page = rustix::param::page_size();
    let cpu = rustix::thread::sched_getcpu();
    let caches = Path::new("/sys/devices/system/cpu").join(format!("cpu{cpu}/cache"));
    let levels = coloured(&caches, page)?;
    // Twice what is used of one colour, for luck.
    let wanted = levels.iter().map(|cache| 2 * cache.most() * cache.colours * page);
    let bytes = wanted.max().unwrap_or(0).min(MemoryBudget::process().left() / 2);
    let arena = Arena::new(bytes, PagePolicy::Small, setting.bench.seed)?;
    let mut pages: Vec<(u64, usize)> = frames(&arena, page)?.into_iter().zip(0..).collect();
    setting.begin(levels.len() as f64);
    let l2_colours = levels[0].colours;
    for cache in &levels {
        let Coloured { level, colours, .. } = *cache;
        if level != Level::L2 {
            // One colour of the L2, so that the last level's alone differ.
            pages.retain(|(frame, _)| *frame % l2_colours as u64 == 0);
        }
        match buffers(&pages, cache) {
            Some(buffers) => one_level(setting, &routines, &arena, level, &buffers)?,
            None => setting.out.note(format!(
                "skipped the colours of the {level}: too few pages of one of {colours} were found"
            ))?,
        }
        setting.out.advance(&format!("{level}, {colours} colours"), 1.0);
    }
    Ok(())
}

/// A cache whose sets are more than one page fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Coloured {
    level: Level,
    colours: usize,
    ways: usize,
}

impl Coloured {
    /// Pages of one colour that are zeroed at most. All of the L2 has `ways` of each colour.
    fn most(&self) -> usize {
        PAGES_PER_WAY * self.ways
    }
}

/// The L2 and the last level behind it, of the caches below `directory` (a CPU's, in sysfs).
fn coloured(directory: &Path, page: usize) -> Result<Vec<Coloured>> {
    let numbers = |index: std::fs::DirEntry| {
        let read = |name: &str| read_to_string(index.path().join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<usize>().ok();
        let colours = number("number_of_sets")? * number("coherency_line_size")? / page;
        let found = (number("level")?, colours, number("ways_of_associativity")?);
        read("type").is_none_or(|kind| kind.trim() != "Instruction").then_some(found)
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<(usize, usize, usize)> = entries.filter_map(numbers).collect();
    found.sort_unstable();
    let cache = |level, wanted: Option<&(usize, usize, usize)>| {
        let &(_, colours, ways) = wanted?;
        (colours > 1 && ways > 0).then_some(Coloured { level, colours, ways })
    };
    let last = cache(Level::Llc, found.last().filter(|(level, ..)| *level > 2));
    match cache(Level::L2, found.iter().find(|(level, ..)| *level == 2)) {
        Some(l2) => Ok(std::iter::once(l2).chain(last).collect()),
        None => nothing(format!(
            "the system does not say how many sets and ways the L2 has (no such numbers in {})",
            directory.display()
        )),
    }
}

/// The frame number of every page of an arena.
fn frames(arena: &Arena, page: usize) -> Result<Vec<u64>> {
    let refused = |found: String| {
        LabError::Nothing(format!(
            "page frame numbers cannot be read: /proc/self/pagemap: found {found}; it tells them to \
             root (CAP_SYS_ADMIN) alone"
        ))
    };
    let mut entries = vec![0; arena.len() / page * 8];
    let first = (arena.as_mut_ptr() as usize / page * 8) as u64;
    File::open("/proc/self/pagemap")
        .and_then(|file| file.read_exact_at(&mut entries, first))
        .map_err(|error| refused(error.to_string()))?;
    let frames: Vec<u64> = entries.as_chunks().0.iter().map(frame).collect();
    if frames.contains(&0) { Err(refused("zeros".to_owned())) } else { Ok(frames) }
}

/// The frame number in an entry of pagemap: its low 55 bits; 0 where it is absent or not told.
fn frame(entry: &[u8; 8]) -> u64 {
    u64::from_ne_bytes(*entry) & ((1 << 55) - 1)
}

/// The buffers to zero, in the order of [`PAGES_OF`]: pages of the arena by number, as many of each, and how
/// many colours they have.
type Buffers = [(Vec<usize>, usize); 3];

/// None where there are too few pages of one colour to exceed the cache's ways.
fn buffers(pages: &[(u64, usize)], cache: &Coloured) -> Option<Buffers> {
    let mut of_colour = vec![Vec::new(); cache.colours];
    for &(frame, page) in pages {
        of_colour[(frame % cache.colours as u64) as usize].push(page);
    }
    let one = of_colour.iter().max_by_key(|pages| pages.len())?;
    let (longest, count) = (one.len(), one.len().min(cache.most()));
    let every = (0..longest)
        .flat_map(|nth| of_colour.iter().filter_map(move |pages| pages.get(nth).copied()));
    let given = pages.iter().map(|(_, page)| *page);
    let chosen = [one[..count].to_vec(), every.take(count).collect(), given.take(count).collect()];
    let coloured = |chosen: Vec<usize>| {
        let of = |colour: &&Vec<usize>| colour.iter().any(|page| chosen.contains(page));
        let colours = of_colour.iter().filter(of).count();
        (chosen, colours)
    };
    (count >= 2 * cache.ways).then(|| chosen.map(coloured))
}

/// Every routine on every buffer, in turns.
fn one_level(
    setting: &mut Setting,
    routines: &[Routine],
    arena: &Arena,
    level: Level,
    buffers: &Buffers,
) -> Result {
    let (start, bytes) = (arena.as_mut_ptr(), rustix::param::page_size());
    let at = |page: &usize| {
        let dst = start.wrapping_add(page * bytes);
        Place { dst, src: dst, n: bytes }
    };
    let mut calls = Vec::new();
    for (routine, first) in routines.iter().zip((0..).step_by(PAGES_OF.len())) {
        for ((pages, colours), of) in buffers.iter().zip(PAGES_OF) {
            let name = format!("{}, {of}", routine.name);
            // Compared with pages of every colour. The places are not used: the pages are the arena's.
            let call = Call::on(name, routine.function, move |_| pages.iter().map(at));
            calls.push(call.variant(routine, first + 1, "").told(move |mut row| {
                row.cell.state = of.into();
                row.cell.destination = Some(level.into());
                row.reference = format!("{}, {}", row.candidate, PAGES_OF[1]);
                row.with(&[(COLOURS, *colours as f64)])
            }));
        }
    }
    let size = buffers[0].0.len() * bytes;
    let task = setting.task(Operation::Zero, size, Cell::reused("pages"));
    let Some((_, rows)) = setting.told(&task, calls)? else { return Ok(()) };
    for page in buffers.iter().flat_map(|(pages, _)| pages) {
        if is_zeroed(&at(page)).is_err() {
            let what = format!("page {page} of a buffer was not zeroed");
            return Err(LabError::WrongBytes(what));
        }
    }
    setting.out.rows(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_have_the_colours_they_are_named_after() {
        let pages: Vec<(u64, usize)> =
            (0..1024).map(|page| (7 + 3 * page, page as usize)).collect();
        let cache = Coloured { level: Level::L2, colours: 16, ways: 12 };
        let [(one, in_one), (every, in_every), (given, in_given)] =
            buffers(&pages, &cache).expect("64 of each");
        assert!(one.len() == 48 && every.len() == 48 && given.len() == 48);
        assert_eq!([in_one, in_every, in_given], [1, 16, 16]);
        assert!(one.iter().all(|page| pages[*page].0 % 16 == pages[one[0]].0 % 16));
        assert_eq!(given, (0..48).collect::<Vec<_>>());
        assert!(
            buffers(&pages, &Coloured { colours: 512, ..cache }).is_none(),
            "two of each are too few"
        );
    }

    #[test]
    fn caches_are_told_by_level_and_kind_not_by_their_number() {
        let tree = tempfile::tempdir().expect("a directory");
        let plant = |index: &str, level: u32, kind: &str, sets: u32, ways: u32| {
            let at = tree.path().join(index);
            std::fs::create_dir_all(&at).expect("a directory");
            let numbers = [
                ("level", level),
                ("number_of_sets", sets),
                ("coherency_line_size", 64),
                ("ways_of_associativity", ways),
            ];
            for (name, number) in numbers {
                std::fs::write(at.join(name), format!("{number}\n")).expect("written");
            }
            std::fs::write(at.join("type"), format!("{kind}\n")).expect("written");
        };
        let found = |page| coloured(tree.path(), page).map_err(|error| error.to_string());
        assert!(found(4096).is_err_and(|text| text.contains("sets and ways the L2 has")));
        plant("index0", 4, "Unified", 65536, 20);
        plant("index1", 1, "Data", 64, 12);
        plant("index2", 2, "Instruction", 512, 8);
        plant("index3", 2, "Unified", 1024, 16);
        let l2 = Coloured { level: Level::L2, colours: 16, ways: 16 };
        let last = Coloured { level: Level::Llc, colours: 1024, ways: 20 };
        assert_eq!(found(4096), Ok(vec![l2, last]));
        assert_eq!((l2.most(), last.most()), (64, 80));
        // The L2 is one colour of pages of 64 KiB.
        assert!(found(65536).is_err());
        let l2 = Coloured { colours: 4, ..l2 };
        assert_eq!(found(16384), Ok(vec![l2, Coloured { colours: 256, ..last }]));
    }

    #[test]
    fn an_entry_of_pagemap_is_a_frame_and_flags() {
        assert_eq!(frame(&0xa100_0000_0037_ac52_u64.to_ne_bytes()), 0x37_ac52);
        assert_eq!(frame(&0x8180_0000_0000_0000_u64.to_ne_bytes()), 0);
    }
}
