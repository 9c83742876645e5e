//! `page-copy`: what a fork copies, by whom (seed 000.8 to .12).
//!
//! One loop zeroes 3 pages, copies 8 and touches some 100 bytes of these (000.10), copies every
//! page of a buffer when its byte 0 is written, as copy-on-write does, and reads every 32nd byte of
//! the buffer. It is one interval, as in the seed. The kernel's own fork and touch stand beside it
//! as a row, and so does copying at the grain of 2 MiB pages.
//!
//! The seed's loop finds its destination where the last loop left it. A system that has been running
//! takes free pages that nobody has touched for long, so that the same is measured again with every
//! destination in memory.

use super::forking::Forker;
use super::{self as loops, Words};
use crate::prelude::*;

/// State: the pages that are zeroed and copied to lie in memory.
const COLD_DESTINATION: &str = "cold destination";

const WORDS: Words = Words { work: "copying", last: "zeroes and copies by", of: kernels_of };

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-copy",
    about: "copying the pages that a fork copies, then using them; a real fork; 2 MiB pages",
    seeds: &["000.4", "000.8-13", "000.15"],
    operations: &[Operation::Copy, Operation::Zero],
    takes: &["--kernels", "--size"],
    classic: "buffers of 256k to 4k, five runs of 5000 to 40000 loops, 4 KiB pages only",
    tables: |rows| loops::tables(rows, &WORDS),
    figures,
    run: Some(run),
    ..PLAIN
};

/// Pages that one fork zeroes, and pages it copies, beside the buffer's (000.10).
const ZEROED_PAGES: usize = 3;

const COPIED_PAGES: usize = 8;

/// Buffers of the seed, with the loops of each of its five runs. It has seven.
const BUFFERS: &[(usize, usize)] = &[
    (256 << 10, 5_000),
    (128 << 10, 5_000),
    (64 << 10, 10_000),
    (32 << 10, 20_000),
    (28 << 10, 20_000),
    (20 << 10, 20_000),
    (4 << 10, 40_000),
];

/// Buffers that the short run also copies to destinations in memory.
const COLD_QUICK: [usize; 3] = [4 << 10, 32 << 10, 256 << 10];

/// Rows: name, kernel that zeroes, kernel that copies. The mixed ones stand at every size, also at
/// the two where the seed left them out.
const ROWS: &[(&str, &str, &str)] = &[
    ("slow", "zero.rep.stosl", "copy.rep.movsl"),
    ("mmx_APn", "zero.mmx", "copy.mmx.pf320.vlasenko"),
    ("mmx_APN", "zero.mmx.nt", "copy.mmx.nt.pf320.vlasenko"),
    ("mmx_APn/APN", "zero.mmx", "copy.mmx.nt.pf320.vlasenko"),
    ("sse_APn", "zero.sse", "copy.sse.pf320.vlasenko"),
    ("sse_APN", "zero.sse.nt", "copy.sse.nt.pf320.vlasenko"),
    ("sse_APn/APN", "zero.sse", "copy.sse.nt.pf320.vlasenko"),
    ("rep", "zero.rep.stosb", "copy.rep.movsb"),
    ("avx", "zero.avx", "copy.avx"),
    ("avx.nt", "zero.avx.nt", "copy.avx.nt"),
    ("avx/avx.nt", "zero.avx", "copy.avx.nt"),
    ("avx512", "zero.avx512", "copy.avx512"),
    ("avx512.nt", "zero.avx512.nt", "copy.avx512.nt"),
    ("avx512/avx512.nt", "zero.avx512", "copy.avx512.nt"),
];

/// Prefix of a kernel's name in a row with 2 MiB pages.
const HUGE_PREFIX: &str = "2M ";

/// The kernels of a row, the zeroing one first; nothing where they are in its name.
fn kernels_of(row: &str) -> String {
    let row = row.trim_start_matches(HUGE_PREFIX);
    let found = ROWS.iter().find(|(name, _, _)| *name == row);
    found.map_or_else(String::new, |(_, zero, copy)| format!("{zero}, {copy}"))
}

fn figures() -> Vec<Figure> {
    let whole = "A fork's worth of pages and its buffer: time over libc's";
    let beside = "Beside the kernel's own fork: time per loop";
    let curve = |title: &str, states| {
        let names = ROWS.iter().map(|(name, _, _)| *name);
        Figure::curve(title, "size", "ratio").among(names).of(states)
    };
    vec![
        curve(whole, "buffer"),
        curve(&format!("{whole}, {COLD_DESTINATION}"), COLD_DESTINATION),
        Figure::bars(beside, "ns").by(&["size"]).of("buffer"),
    ]
}

/// A zeroing and a copying routine under one name.
#[derive(Clone)]
struct Pair {
    name: String,
    zero: Routine,
    copy: Routine,
    /// Bytes that are copied when one page of the buffer is written first.
    grain: usize,
}

impl Pair {
    /// One loop of the seed with these routines.
    fn copier(&self, buffer: usize) -> Call<'_> {
        let (zero, copy, grain) = (self.zero.function, self.copy.function, self.grain);
        let extra = ZEROED_PAGES + COPIED_PAGES;
        let bytes = extra * PAGE_SIZE;
        let a_loop = move |place: &Place| {
            let to = |at| place.dst.wrapping_add(at);
            let part = |at, n| Place { dst: to(at), src: place.src.wrapping_add(at), n };
            (0..ZEROED_PAGES).for_each(|page| once(zero, &part(page * PAGE_SIZE, PAGE_SIZE)));
            (ZEROED_PAGES..extra).for_each(|page| once(copy, &part(page * PAGE_SIZE, PAGE_SIZE)));
            // 9 bytes here and there in each of the 11 pages: the "some 100 bytes" of 000.10.
            for page in 0..extra {
                // SAFETY: a page of the place.
                unsafe { Reader::every(to(page * PAGE_SIZE), PAGE_SIZE, PAGE_SIZE / 9 + 1) };
            }
            for at in (0..buffer).step_by(PAGE_SIZE) {
                if at.is_multiple_of(grain) {
                    once(copy, &part(bytes + at, grain));
                }
                // SAFETY: byte 0 of a page of the buffer.
                unsafe { to(bytes + at).write_volatile(1) };
            }
            // SAFETY: the buffer's part of the place.
            unsafe { Reader::every(to(bytes), buffer, 32) };
        };
        let calls = move |places: &[Place]| places.iter().for_each(a_loop);
        let copied = COPIED_PAGES + buffer.div_ceil(grain) * (grain / PAGE_SIZE);
        let pages = [(ZEROED, ZEROED_PAGES as f64), (COPIED, copied as f64)];
        let call = Call::new(self.name.as_str(), calls).made_of(copy, Some(zero));
        call.staying(self.name == LIBC).told(move |row| row.with(&pages))
    }
}

fn run(setting: &mut Setting) -> Result {
    setting.whole("pages", PAGE_SIZE)?;
    let pairs = pairs(setting)?;
    let buffers = buffers(setting);
    let options = setting.options;
    // A fork of some hundred microseconds, and what grows with the buffer.
    let weight = |&(_, (buffer, loops)): &(bool, (usize, usize))| {
        calls(options, buffer, loops) as f64 * (3e5 + buffer as f64)
    };
    let passes: &[bool] = if options.classic { &[false] } else { &[false, true] };
    let cells = passes.iter().flat_map(|cold| buffers.iter().map(|buffer| (*cold, *buffer)));
    setting.through(cells.collect(), weight, |setting, (cold, buffer)| {
        let all = !cold || !options.quick || buffers.len() == 1;
        if all || COLD_QUICK.contains(&buffer.0) {
            one_buffer(setting, &pairs, buffer, cold)?;
        }
        let state = if cold { format!(", {COLD_DESTINATION}") } else { String::new() };
        Ok(format!("{}{state}", bytes(buffer.0)))
    })
}

/// Everybody at one buffer: its destinations where the last loop left them, or all in memory.
fn one_buffer(
    setting: &mut Setting,
    pairs: &[Pair],
    (buffer, loops): (usize, usize),
    cold: bool,
) -> Result {
    let extra = (ZEROED_PAGES + COPIED_PAGES) * PAGE_SIZE;
    let (cell, size) = if cold {
        let destination = Placement::at(Level::Dram, 0);
        (Cell { destination, ..Cell::reused(COLD_DESTINATION) }, extra + buffer)
    } else {
        let regime = regime(buffer, &setting.bench.machine.caches);
        (Cell::reused(regime), extra + buffer.next_multiple_of(HUGE_PAGE))
    };
    let mut task = setting.task(Operation::Copy, size, cell.page_aligned());
    task.plan.max_sample_ns = 5e7;
    task.plan.calls = Some(calls(setting.options, buffer, loops));
    let mut forker = if cold { None } else { forker(setting, buffer)? };
    // A huge page for each loop would leave room in memory for few.
    let fitting = pairs.iter().filter(|pair| !cold || pair.grain == PAGE_SIZE);
    let mut calls: Vec<_> = fitting.map(|pair| pair.copier(buffer)).collect();
    calls.extend(forker.iter_mut().map(Forker::candidate));
    let Some((_, rows)) = setting.told(&task, calls)? else { return Ok(()) };
    if let Some(error) = forker.as_mut().and_then(|it| it.helper.take_failure()) {
        return Err(LabError::Child(format!("forking: {error}")));
    }
    let figures = forker.as_mut().map_or(Ok(Vec::new()), |forker| of_fork(forker, setting))?;
    for mut row in rows {
        // The seed names the buffer, not what its fork copies beside it.
        row.cell.size = buffer as u64;
        let figures = if row.candidate == FORK { &figures[..] } else { &[] };
        setting.out.row(row.with(&[(LOOPS, loops as f64)]).with(figures))?;
    }
    Ok(())
}

/// The faults of a fork's loops, and the pages of one more.
fn of_fork(forker: &mut Forker, setting: &mut Setting) -> Result<Vec<(&'static str, f64)>> {
    let mut figures: Vec<_> =
        forker.faults_per_loop().map(|of| ("faults_per_loop", of)).into_iter().collect();
    // A busy machine lets the child end too early.
    let counted = (0..2).fold(forker.count(), |counted, _| counted.or_else(|_| forker.count()));
    match counted {
        Ok(pages) => figures.extend([(ZEROED, pages.zeroed as f64), (COPIED, pages.copied as f64)]),
        Err(error) => setting.out.note(format!("the pages of a fork are not counted: {error}"))?,
    }
    Ok(figures)
}

/// Loops per run: the seed's own, or what hides the 20 us that a request to the forking process
/// costs beside 50 us and more of each fork.
fn calls(options: &Options, buffer: usize, loops: usize) -> usize {
    if options.classic {
        return loops;
    }
    let affordable = if options.quick { 50 } else { 200 };
    affordable.min((64 << 20) / buffer).max(1)
}

fn forker(setting: &mut Setting, buffer: usize) -> Result<Option<Forker>> {
    let note = match &setting.options.helper {
        None => format!("skipped {FORK} at {}: no program to fork was given", bytes(buffer)),
        Some(helper) => match Forker::start(helper, buffer) {
            Ok(forker) => return Ok(Some(forker)),
            Err(error) => format!("skipped {FORK}: {error}"),
        },
    };
    setting.out.note(note)?;
    Ok(None)
}

/// The cache that the seed's footprint, the buffer and 44k, fits (000.13).
fn regime(buffer: usize, caches: &Caches) -> String {
    let footprint = buffer + (ZEROED_PAGES + COPIED_PAGES) * PAGE_SIZE;
    format!("buffer + 44k {}", relation(footprint, caches))
}

/// The seed's seven buffers, and one that this machine's L2 does not hold.
fn buffers(setting: &Setting) -> Vec<(usize, usize)> {
    let loops = |size: usize| {
        let known = BUFFERS.iter().find(|(buffer, _)| *buffer == size);
        known.map_or(5_000, |(_, loops)| *loops)
    };
    if !setting.options.sizes.is_empty() {
        return setting.options.sizes.iter().map(|&size| (size, loops(size))).collect();
    }
    let mut buffers = BUFFERS.to_vec();
    if !setting.options.classic {
        let beyond = (2 * setting.bench.machine.caches.l2.bytes).next_multiple_of(PAGE_SIZE);
        // Last, since it takes longest: whoever stops early keeps the seed's.
        buffers.push((beyond, loops(beyond)));
    }
    buffers
}

/// Chooses the candidates. Kernels that are asked for stand in the rows that copy by them; those in none get
/// one with libc for the other half.
fn pairs(setting: &mut Setting) -> Result<Vec<Pair>> {
    let both = [Operation::Copy, Operation::Zero];
    let listed = || {
        let mut kernels = listed(ROWS.iter().map(|(_, zero, _)| *zero), Operation::Zero);
        kernels.extend(listed(ROWS.iter().map(|(_, _, copy)| *copy), Operation::Copy));
        kernels.sort_unstable_by_key(|kernel| kernel.name);
        kernels.dedup_by_key(|kernel| kernel.name);
        kernels
    };
    let here = asked_or(setting, &both, listed)?;
    let is_here = |name: &str| here.iter().any(|kernel| kernel.name == name);
    let pair =
        |name: &str, zero, copy| Pair { name: name.to_owned(), zero, copy, grain: PAGE_SIZE };
    let [libc_copy, libc_zero] = both.map(libc_reference);
    let mut pairs = vec![pair(LIBC, libc_zero.clone(), libc_copy.clone())];
    let mut used: Vec<&str> = Vec::new();
    for (name, zero, copy) in ROWS {
        let (Some(zero), Some(copy)) = (find(zero), find(copy)) else { continue };
        if is_here(copy.name) && zero.runs_on(setting.bench.features) {
            used.extend([zero.name, copy.name]);
            pairs.push(pair(name, zero.into(), copy.into()));
        }
    }
    for kernel in here.into_iter().filter(|kernel| !used.contains(&kernel.name)) {
        pairs.push(match kernel.operation() {
            Operation::Copy => pair(kernel.name, libc_zero.clone(), kernel.into()),
            _ => pair(kernel.name, kernel.into(), libc_copy.clone()),
        });
    }
    if setting.options.classic {
        return Ok(pairs);
    }
    // At the grain of huge pages: what is widest here, temporal and non-temporal.
    for names in [["avx512", "avx"], ["avx512.nt", "avx.nt"]] {
        let widest = names.iter().find_map(|name| pairs.iter().find(|row| row.name == *name));
        if let Some(Pair { name, zero, copy, .. }) = widest.cloned() {
            let name = format!("{HUGE_PREFIX}{name}");
            pairs.push(Pair { name, zero, copy, grain: HUGE_PAGE });
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_footprint_decides_the_regime() {
        let mut caches = cachewise_measure::Machine::describe().caches;
        caches.l1d.bytes = 64 << 10;
        assert_eq!(regime(20 << 10, &caches), "buffer + 44k fits L1");
        assert_ne!(regime(24 << 10, &caches), "buffer + 44k fits L1");
        assert_eq!(regime(2 * caches.llc.bytes, &caches), "buffer + 44k fits no cache");
    }

    #[test]
    fn every_row_has_its_kernels() {
        if cfg!(target_arch = "x86_64") {
            for (name, zero, copy) in ROWS {
                let of = |name| find(name).map(|kernel| kernel.operation());
                assert_eq!(
                    (of(zero), of(copy)),
                    (Some(Operation::Zero), Some(Operation::Copy)),
                    "{name}"
                );
            }
            for (alias, zero, copy) in ROWS.iter().filter(|(name, _, _)| name.contains("_AP")) {
                let alias = cachewise_kernels::resolve_pair(alias).map(|(z, c)| (z.name, c.name));
                assert_eq!(alias, Some((*zero, *copy)));
            }
        }
    }
}
