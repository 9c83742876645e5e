//! `page-colour` (002.11): what it costs when the pages of a buffer compete for the same sets of a cache.
//!
//! A cache with physical addresses puts a page into the sets that the low bits of its frame number name:
//! its colour. Here buffers are made of small pages, chosen by their frame numbers: all of one colour,
//! of every colour in turn, or in the order in which the system gave them. Each is zeroed page by page,
//! over and over. Frame numbers come from `/proc/self/pagemap`, which tells them to root alone. A guest's
//! are the guest's own: where its host backs it with huge pages, the colours of an L2 are still right.

use super::support::{at_least_one, field, widest};
use super::{Experiment, Setting};
use crate::LabError;
use crate::bench::{Call, Cell, Task};
use crate::routines::Routine;
use cachewise_kernels::{Function, Kernel, Operation, PAGE_SIZE};
use cachewise_measure::record::names::{COLOURS, PAGES_OF};
use cachewise_measure::{
    Arena, Candidate, Figure, FigureKind, Level, MemoryBudget, PagePolicy, Place,
};
use std::fs::{File, read_to_string};
use std::io::{Read as _, Seek as _, SeekFrom};

/// Pages of one colour of the last level: more than it has ways.
const LLC_PAGES: usize = 64;

pub(super) fn figures() -> Vec<Figure> {
    let title = "Zeroing by the colours of a buffer's pages";
    let figure = Figure::new(title, FigureKind::Bars, "candidate", "gbps");
    vec![figure.by(&["destination", "state"])]
}

pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_, '_>) -> Result<(), LabError> {
    setting.refuse_placements("a page's colour decides where it can be")?;
    if let Some(&size) = setting.options.sizes.first() {
        return Err(LabError::Unsuited {
            option: "--size",
            found: size.to_string(),
            accepted: "no size here (it follows from the cache)".to_owned(),
        });
    }
    let features = setting.bench.features;
    let straight = widest(Operation::Zero, features);
    let routines = field(setting, Operation::Zero, |kernel: &Kernel| {
        straight.is_some_and(|(a, b)| kernel.name == a.name || kernel.name == b.name)
    })?;
    at_least_one(&[&routines])?;
    let levels = levels()?;
    let l2_bytes = setting.bench.machine.caches.l2.bytes;
    let wanted = levels.iter().map(|&(level, colours)| match level {
        // Enough of one colour for half of the level, and as much again for luck.
        Level::L2 => l2_bytes * colours,
        _ => 2 * LLC_PAGES * colours * PAGE_SIZE,
    });
    let bytes = wanted.max().unwrap_or(0).min(MemoryBudget::process().left() / 2);
    let arena = Arena::new(bytes, PagePolicy::Small, setting.bench.seed)?;
    let mut pages: Vec<(u64, usize)> = frames(&arena)?.into_iter().zip(0..).collect();
    setting.out.begin(experiment.name, levels.len() as f64);
    let l2_colours = levels[0].1;
    for (level, colours) in levels {
        if level != Level::L2 {
            // Of one colour of the L2, so that the last level's alone differ.
            pages.retain(|(frame, _)| *frame % l2_colours as u64 == 0);
        }
        let most = if level == Level::L2 { l2_bytes / 2 / PAGE_SIZE } else { LLC_PAGES };
        match buffers(&pages, colours, most) {
            Some(buffers) => one_level(experiment, setting, &routines, &arena, level, &buffers)?,
            None => setting.out.note(format!(
                "skipped the colours of the {level}: too few pages of one of {colours} were found"
            ))?,
        }
        setting.out.advance(&format!("{level}, {colours} colours"), 1.0);
    }
    Ok(())
}

/// The unified caches behind the L1, with how many colours each has.
fn levels() -> Result<Vec<(Level, usize)>, LabError> {
    let mut found = Vec::new();
    for index in 0..8 {
        let read = |name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
            read_to_string(path).ok().map(|text| text.trim().to_owned())
        };
        let number = |name: &str| read(name)?.parse::<usize>().ok();
        let (Some(level), Some(sets), Some(line)) =
            (number("level"), number("number_of_sets"), number("coherency_line_size"))
        else {
            continue;
        };
        let colours = sets * line / PAGE_SIZE;
        match level {
            2 if colours > 1 => found.push((Level::L2, colours)),
            3 if colours > 1 => found.push((Level::Llc, colours)),
            _ => {}
        }
    }
    found.sort_unstable();
    if found.first().is_none_or(|(level, _)| *level != Level::L2) {
        let why = "the system does not say how many sets the L2 has (found no such number in \
                   /sys/devices/system/cpu/cpu0/cache)";
        return Err(LabError::Nothing { why: why.to_owned() });
    }
    Ok(found)
}

/// The frame number of every page of an arena.
fn frames(arena: &Arena) -> Result<Vec<u64>, LabError> {
    let refused = |found: String| LabError::Nothing {
        why: format!(
            "page frame numbers cannot be read: /proc/self/pagemap: found {found}; it tells them to \
             root (CAP_SYS_ADMIN) alone"
        ),
    };
    let io = |error: std::io::Error| refused(error.to_string());
    let mut file = File::open("/proc/self/pagemap").map_err(io)?;
    file.seek(SeekFrom::Start((arena.as_mut_ptr() as usize / PAGE_SIZE * 8) as u64)).map_err(io)?;
    let mut entries = vec![0; arena.len() / PAGE_SIZE * 8];
    file.read_exact(&mut entries).map_err(io)?;
    let frames: Vec<u64> = entries.chunks_exact(8).map(frame).collect();
    if frames.contains(&0) { Err(refused("zeros".to_owned())) } else { Ok(frames) }
}

/// The frame number in an entry of pagemap: its low 55 bits; 0 where it is absent or not told.
fn frame(entry: &[u8]) -> u64 {
    entry.iter().rev().fold(0, |word: u64, byte| word << 8 | u64::from(*byte)) & ((1 << 55) - 1)
}

/// What is zeroed, in the order of [`PAGES_OF`].
struct Buffers {
    /// Pages of the arena, by number, as many of each.
    pages: [Vec<usize>; 3],
    /// How many colours they have.
    colours: [usize; 3],
}

/// None where there are too few pages of one colour to exceed any cache's ways.
fn buffers(pages: &[(u64, usize)], colours: usize, most: usize) -> Option<Buffers> {
    let mut of_colour = vec![Vec::new(); colours];
    for &(frame, page) in pages {
        of_colour[(frame % colours as u64) as usize].push(page);
    }
    let one = of_colour.iter().max_by_key(|pages| pages.len())?;
    let count = one.len().min(most);
    let longest = one.len();
    let every: Vec<usize> = (0..longest)
        .flat_map(|nth| of_colour.iter().filter_map(move |pages| pages.get(nth).copied()))
        .take(count)
        .collect();
    let given = pages.iter().map(|(_, page)| *page).take(count).collect();
    let chosen: [Vec<usize>; 3] = [one[..count].to_vec(), every, given];
    let has = |chosen: &Vec<usize>| {
        let of = |colour: &&Vec<usize>| colour.iter().any(|page| chosen.contains(page));
        of_colour.iter().filter(of).count()
    };
    let colours = [has(&chosen[0]), has(&chosen[1]), has(&chosen[2])];
    (count >= LLC_PAGES / 2).then_some(Buffers { pages: chosen, colours })
}

/// Every routine on every buffer, in turns.
fn one_level(
    experiment: &Experiment,
    setting: &mut Setting<'_, '_>,
    routines: &[Routine],
    arena: &Arena,
    level: Level,
    buffers: &Buffers,
) -> Result<(), LabError> {
    let start = arena.as_mut_ptr();
    let mut calls: Vec<Call<'_>> = Vec::new();
    for routine in routines {
        for (buffer, of) in buffers.pages.iter().zip(PAGES_OF) {
            let Function::Zero(zero) = routine.function else { continue };
            calls.push(Call::new(format!("{}, {of}", routine.name), move |places: &[Place]| {
                for page in places.iter().flat_map(|_| buffer) {
                    // SAFETY: a page of the arena that nobody else uses; this CPU runs the kernel.
                    unsafe { zero(start.wrapping_add(page * PAGE_SIZE), PAGE_SIZE) };
                }
            }));
        }
    }
    let mut candidates: Vec<&mut dyn Candidate> =
        calls.iter_mut().map(|call| call as &mut dyn Candidate).collect();
    let size = buffers.pages[0].len() * PAGE_SIZE;
    // The places are not used: the pages are the arena's.
    let (cell, plan) = (Cell::reused("pages"), setting.plan(false));
    let operation = Operation::Zero;
    let task = Task { experiment: experiment.name, operation, size, cell, plan };
    let Some(found) = setting.measure(&task, &mut candidates)? else { return Ok(()) };
    for page in buffers.pages.iter().flatten() {
        // SAFETY: a page of the arena, written and used by nobody else now.
        let bytes =
            unsafe { std::slice::from_raw_parts(start.wrapping_add(page * PAGE_SIZE), PAGE_SIZE) };
        if bytes.iter().any(|byte| *byte != 0) {
            let what = format!("page {page} of a buffer was not zeroed");
            return Err(LabError::WrongBytes { what });
        }
    }
    for (nth, routine) in routines.iter().enumerate() {
        for (which, of) in PAGES_OF.into_iter().enumerate() {
            // Compared with pages of every colour.
            let mut row = found.row(nth * PAGES_OF.len() + which, nth * PAGES_OF.len() + 1);
            row.cell.state = of.into();
            row.cell.destination = Some(level.to_string());
            row.candidate.clone_from(&routine.name);
            row.reference = format!("{}, {}", routine.name, PAGES_OF[1]);
            row.extra.insert(COLOURS.into(), buffers.colours[which] as f64);
            setting.out.row(row)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_have_the_colours_they_are_named_after() {
        let pages: Vec<(u64, usize)> =
            (0..1024).map(|page| (7 + 3 * page, page as usize)).collect();
        let Buffers { pages: [one, every, given], colours } =
            buffers(&pages, 16, 48).expect("64 of each");
        assert!(one.len() == 48 && every.len() == 48 && given.len() == 48);
        assert_eq!(colours, [1, 16, 16]);
        assert!(one.iter().all(|page| pages[*page].0 % 16 == pages[one[0]].0 % 16));
        assert_eq!(given, (0..48).collect::<Vec<_>>());
        assert!(buffers(&pages, 512, 48).is_none(), "two of each are too few");
    }

    #[test]
    fn an_entry_of_pagemap_is_a_frame_and_flags() {
        assert_eq!(frame(&0xa100_0000_0037_ac52_u64.to_le_bytes()), 0x37_ac52);
        assert_eq!(frame(&0x8180_0000_0000_0000_u64.to_le_bytes()), 0);
    }
}
